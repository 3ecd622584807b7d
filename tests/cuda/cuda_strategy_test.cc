// Every strategy of the planner on fake GPUs: loss, gradients and updated parameters of the serial
// step, no race, no access outside what was allocated, no collective out of order.
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "real/cuda/cuda_backend.h"
#include "real/execution/check.h"
#include "real/transports/transport_threads.h"
#include "scenarios/playing/execution.h"
#include "scenarios/playing/prepare.h"
#include "sim/base/json_document.h"
#include "tests/support/gpu_double.h"
#include "tests/support/gpu_run.h"
#include "tests/support/sanitizers.h"

namespace rehearse {
namespace cuda_strategy_test {

struct StrategyCase {
  const char* name;
  uint32_t ranks;
  const char* strategy;
  const char* training = R"("batch": 8, "micro_batches": 1, "recomputation": "none")";
  const char* more = "";  // of the model, and beside the strategy
  const char* beside = "";
  uint32_t layers = 2;
};

void PrintTo(const StrategyCase& own, std::ostream* out) { *out << own.name; }

// Recomputed, so that it includes gathers and kernels of the second forward pass.
constexpr const char* kRecomputed = R"("batch": 8, "micro_batches": 1, "recomputation": "full")";
constexpr const char* kTwoMicroBatches =
    R"("batch": 8, "micro_batches": 2, "recomputation": "none")";

constexpr const char* kFourMicroBatches =
    R"("batch": 16, "micro_batches": 4, "recomputation": "none")";
constexpr const char* kExpertsOfTwo =
    R"({"kind": "combined", "shard": 2, "zero": 1, "expert": 2, "overlap_gradients": true})";
constexpr const char* kEightExperts = R"(, "style": "llama", "feed_forward": 64,
    "experts": {"count": 8, "per_token": 2, "hidden": 48, "shared": 32})";

Scenario ScenarioOf(const StrategyCase& own) {
  const std::string text = fmt::format(
      R"({{"name": "{}", "cluster": "local-cpu:ranks={}",
           "model": {{"name": "small", "layers": {}, "hidden": 32, "heads": 8,
                     "vocabulary": 64{}}},
           "training": {{{}, "sequence": 4, "precision": "fp32"}},{}
           "strategy": {}}})",
      own.name, own.ranks, own.layers, own.more, own.training, own.beside, own.strategy);
  return ReadScenario(JsonDocument::FromText(text, own.name));
}

// The serial loss, gradients and parameters; by the source of our kernels itself, if that is said.
void ExpectSerialNumbers(const StrategyCase& own, bool runs_source) {
  gpu_double::Door* door = gpu_double::OpenGpuDouble();
  door->Reset();
  door->control().runs_source = runs_source;
  const Scenario scenario = ScenarioOf(own);
  const Schedule schedule = PrepareOne(scenario, "this test").schedule;
  ASSERT_EQ(schedule.ranks(), own.ranks);
  const StepNumbers serial = ComputeSerially(PlanSerially(scenario), 3);
  CudaOptions options;
  options.all_fp32 = true;
  options.stall_seconds = 30;
  CheckReport report;
  RunAsThreads(schedule.ranks(), [&](Transport& transport) {
    CheckReport found = CheckAgainst(serial, schedule, transport, 3, OnGpus(options, 8));
    if (transport.rank() == 0) report = std::move(found);
  });
  EXPECT_TRUE(report.Passes(kGpuCheckTolerance));
  EXPECT_THAT(report.missing, ::testing::IsEmpty());
  // Sums of up to 64 products of fp32 through two layers; an array's largest element
  // is what counts.
  EXPECT_LE(report.WorstOf(BufferKind::kGradient), 2e-4);
  EXPECT_LE(report.LossDifference(), 1e-5);
  EXPECT_THAT(door->Findings(), ::testing::IsEmpty());
}

class CudaStrategyTest : public ::testing::TestWithParam<StrategyCase> {};

TEST_P(CudaStrategyTest, GivesTheSerialLossGradientsAndParameters) {
  ExpectSerialNumbers(GetParam(), /*runs_source=*/false);
}

constexpr StrategyCase kStrategies[] = {
    {"data_parallel", 2, R"({"kind": "data-parallel", "data": 2, "overlap_gradients": true})",
     kTwoMicroBatches},
    {"zero_1", 4, R"({"kind": "zero-1", "shard": 4, "replicas": 1, "overlap_gradients": true})"},
    {"zero_2", 4,
     R"({"kind": "zero-2", "shard": 2, "replicas": 2, "overlap_gradients": true,
         "overlap_reduce_scatter": true})",
     kTwoMicroBatches},
    {"fsdp", 3,
     R"({"kind": "fsdp", "shard": 3, "replicas": 1, "overlap_gradients": false,
         "overlap_reduce_scatter": true, "prefetch": 1, "reshard_after_forward": true})",
     R"("batch": 6, "micro_batches": 1, "recomputation": "full")"},
    {"fsdp_by_layer", 3,
     R"({"kind": "fsdp", "shard": 3, "replicas": 1, "overlap_gradients": false, "gather": "layer",
         "overlap_reduce_scatter": true, "prefetch": 1, "reshard_after_forward": true})",
     R"("batch": 6, "micro_batches": 1, "recomputation": "full")"},
    {"hybrid_sharding", 8,
     R"({"kind": "fsdp", "shard": 4, "replicas": 2, "overlap_gradients": true,
         "overlap_reduce_scatter": true, "prefetch": 2, "reshard_after_forward": false})"},
    {"megatron", 4,
     R"({"kind": "megatron", "tensor": 2, "data": 2, "sequence_parallel": false,
         "overlap_all_reduce": true, "overlap_gradients": true, "distributed_optimizer": false})"},
    {"sequence_parallel", 8,
     R"({"kind": "megatron", "tensor": 4, "data": 2, "sequence_parallel": true,
         "overlap_all_reduce": true, "overlap_gradients": true, "distributed_optimizer": true})",
     kRecomputed},
    {"user_buffers", 8,
     R"({"kind": "megatron", "tensor": 4, "data": 2, "sequence_parallel": true,
         "split_products": "user-buffers", "overlap_all_reduce": true, "overlap_gradients": true,
         "distributed_optimizer": true})",
     kRecomputed},
    {"async_tp", 8,
     R"({"kind": "combined", "tensor": 4, "shard": 2, "zero": 3, "sequence_parallel": true,
         "split_products": "async-tp", "keep_gathered": true, "overlap_all_reduce": true,
         "overlap_gradients": true, "overlap_reduce_scatter": true, "prefetch": 1,
         "reshard_after_forward": true})"},
    {"combined", 8,
     R"({"kind": "combined", "tensor": 2, "shard": 2, "replicas": 2, "order": ["shard"], "zero": 3,
         "sequence_parallel": true, "overlap_all_reduce": true, "overlap_gradients": true,
         "overlap_reduce_scatter": true, "prefetch": 1, "reshard_after_forward": true})",
     kRecomputed},
    {"context_ring", 8,
     R"({"kind": "combined", "tensor": 2, "context": 2, "data": 2, "zero": 1,
         "sequence_parallel": true, "overlap_all_reduce": true, "overlap_gradients": true})",
     kTwoMicroBatches},
    {"context_all_gather", 4,
     R"({"kind": "combined", "context": 2, "shard": 2, "zero": 3, "context_kind": "all-gather",
         "overlap_gradients": true, "overlap_reduce_scatter": true, "prefetch": 1,
         "reshard_after_forward": true})",
     kRecomputed},
    {"context_ulysses", 4,
     R"({"kind": "combined", "tensor": 2, "context": 2, "zero": 0, "context_kind": "ulysses",
         "sequence_parallel": false, "overlap_all_reduce": true, "overlap_gradients": false})"},
    {"four_d", 8,
     R"({"kind": "4d", "column": 2, "row": 2, "depth": 2, "data": 1,
         "transpose_alternate_layers": true, "overlap_all_reduce": true,
         "overlap_reduce_scatter": true, "overlap_all_gather": true, "cached_layers": 1})",
     kRecomputed},
    {"four_d_and_data", 4,
     R"({"kind": "4d", "column": 1, "row": 1, "depth": 2, "data": 2,
         "transpose_alternate_layers": false, "overlap_all_reduce": true,
         "overlap_reduce_scatter": true, "overlap_all_gather": true, "cached_layers": 0})",
     kTwoMicroBatches},
    {"sbp", 8,
     R"({"kind": "sbp", "nodes": 2, "gpus": 4, "overlap_all_reduce": true,
         "overlap_gradients": true, "products": {"default": [[2, 1], [1, 2], [1, 2]]}})"},
    {"sbp_layouts", 4,
     R"_({"kind": "sbp", "mesh": [2, 2], "overlap_all_reduce": true, "overlap_gradients": false,
         "products": {
           "default": {"x": ["S(0)", "B"], "w": ["B", "S(1)"], "rest": ["S(0)", "S(1)"]},
           "embedding": {"x": ["S(0)", "S(1)"], "w": ["B", "S(0)"], "rest": ["S(0)", "B"]},
           "projection": {"x": ["S(0)", "S(1)"], "w": ["B", "S(0)"], "rest": ["S(0)", "B"]},
           "down": {"x": ["S(0)", "S(1)"], "w": ["B", "S(0)"], "rest": ["S(0)", "B"]}}
})_"},
    {"atp_in_chunks", 4,
     R"({"kind": "atp", "d1": 2, "d2": 2, "data": 1, "first": "column", "chunks": 2,
         "overlap_all_reduce": true})"},
    {"atp_row_first", 8,
     R"({"kind": "atp", "d1": 4, "d2": 1, "data": 2, "first": "row", "chunks": 1,
         "overlap_all_reduce": true})",
     kRecomputed},
    {"summa", 4, R"({"kind": "summa", "q": 2, "depth": 1, "data": 1, "overlap_panels": true})"},
    {"summa_2_5d", 8, R"({"kind": "summa", "q": 2, "depth": 2, "data": 1, "overlap_panels": true})",
     kRecomputed},
    {"experts", 4,
     R"({"kind": "combined", "shard": 4, "zero": 1, "expert": 4, "overlap_gradients": true})",
     kTwoMicroBatches,
     R"(, "style": "llama", "feed_forward": 64,
        "experts": {"count": 8, "per_token": 2, "hidden": 48, "shared": 32})"},
    {"experts_uneven", 4,
     R"({"kind": "combined", "tensor": 2, "shard": 2, "zero": 3, "expert": 2,
         "sequence_parallel": true, "overlap_all_reduce": true, "overlap_gradients": true,
         "overlap_reduce_scatter": true, "prefetch": 1, "reshard_after_forward": true})",
     R"("batch": 64, "micro_batches": 1, "recomputation": "full")",
     R"(, "style": "llama", "feed_forward": 64,
        "experts": {"count": 4, "per_token": 1, "hidden": 48, "imbalance": 1.5, "capacity": 1.25})"},
    {"experts_drawn", 4,
     R"({"kind": "combined", "shard": 4, "zero": 1, "expert": 4, "overlap_gradients": true})",
     R"("batch": 128, "micro_batches": 2, "recomputation": "none")",
     R"(, "style": "llama", "feed_forward": 64,
        "experts": {"count": 4, "per_token": 1, "hidden": 48, "imbalance": 1.5,
                    "drawn": "micro-batch"})"},
    {"pairs_in_turns", 4, kExpertsOfTwo, kFourMicroBatches, kEightExperts,
     R"("pipeline": {"stages": 2, "schedule": "1f1b", "pair_passes": true},)"},
    {"pairs_without_stages", 2, kExpertsOfTwo, kFourMicroBatches, kEightExperts,
     R"("pipeline": {"stages": 1, "schedule": "1f1b", "pair_passes": true,
                     "pair_order": "megatron-core"},)"},
    {"pairs_by_table", 4, kExpertsOfTwo, kFourMicroBatches, kEightExperts,
     R"("pipeline": {"stages": 2, "schedule": "1f1b", "pair_passes": true,
                     "pair_order": "dualpipe"},)"},
    {"dualpipev", 4, kExpertsOfTwo, kFourMicroBatches, kEightExperts,
     R"("pipeline": {"stages": 2, "schedule": "dualpipev", "pair_passes": true,
                     "pair_order": "dualpipe"},)",
     4},
    {"update_done_again", 2,
     R"({"kind": "combined", "data": 1, "zero": 0, "overlap_gradients": false})", kTwoMicroBatches,
     "", R"("pipeline": {"stages": 2, "schedule": "zb-h1", "validation": "done-again"},)"},
    {"offloaded", 4,
     R"({"kind": "fsdp", "shard": 4, "replicas": 1, "overlap_gradients": false, "gather": "layer",
         "overlap_reduce_scatter": true, "prefetch": 1, "reshard_after_forward": true})",
     R"("batch": 8, "micro_batches": 2, "recomputation": "none", "offloaded_layers": 1,
        "offloaded_optimizer": true, "moments": "bf16")"},
    {"latent", 4,
     R"({"kind": "combined", "tensor": 2, "sequence_parallel": true, "data": 2, "zero": 0,
         "overlap_all_reduce": true, "overlap_gradients": true})",
     R"("batch": 8, "micro_batches": 2, "recomputation": "none", "moments": "bf16")",
     R"(, "style": "llama", "feed_forward": 64, "tied": false, "predict_ahead": 1,
        "latent": {"query_rank": 16, "kv_rank": 16, "rope_head": 4, "head": 8})"},
};
INSTANTIATE_TEST_SUITE_P(Strategies, CudaStrategyTest, ::testing::ValuesIn(kStrategies),
                         [](const auto& own) { return std::string(own.param.name); });

// Whole steps by the kernels' own source: with it the optimizer and the loss, which single kernels
// on random numbers leave out.
TEST(CudaStrategySourceTest, GivesTheSerialLossGradientsAndParameters) {
  if (kIsSanitized) GTEST_SKIP() << "threads of a block take turns on stacks of their own";
  for (const StrategyCase& own : kStrategies) {
    const std::string name = own.name;
    if (name != "data_parallel" && name != "experts" && name != "update_done_again" &&
        name != "latent")
      continue;
    SCOPED_TRACE(name);
    ExpectSerialNumbers(own, /*runs_source=*/true);
  }
}

}  // namespace cuda_strategy_test
}  // namespace rehearse
