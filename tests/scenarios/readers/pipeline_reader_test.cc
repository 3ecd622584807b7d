// What a scenario may say about a pipeline, and the messages where it may not.
#include "scenarios/readers/pipeline_reader.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/playing/prepare.h"
#include "scenarios/readers/scenario.h"
#include "sim/base/json_document.h"
#include "sim/schedule/attention_part.h"

namespace rehearse {
namespace pipeline_reader_test {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Eight layers on four ranks of two devices.
std::string Written(const std::string& pipeline, uint32_t micro_batches = 8,
                    const std::string& software = "") {
  return fmt::format(
      R"({{"name": "x", "cluster": "switch:devices=8", {}
          "model": {{"layers": 8, "hidden": 64, "heads": 4, "vocabulary": 128}},
          "training": {{"batch": {}, "sequence": 32, "micro_batches": {}, "recomputation": "none"}},
          "strategy": {{"kind": "megatron", "tensor": 2, "data": 1, "sequence_parallel": false,
                       "overlap_all_reduce": true, "overlap_gradients": false,
                       "distributed_optimizer": false}},
          "pipeline": {}}})",
      software, micro_batches, micro_batches, pipeline);
}

Scenario Read(const std::string& text) {
  return ReadScenario(JsonDocument::FromText(text, "x.json"));
}

std::string MistakeOf(const std::string& pipeline, uint32_t micro_batches = 8) {
  try {
    Prepare(Read(Written(pipeline, micro_batches)));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

StagePipeline PipelineOf(const std::string& pipeline, const std::string& software = "") {
  const Scenario scenario = Read(Written(pipeline, 8, software));
  return *std::get<Workload>(scenario.jobs.front().work).pipeline;
}

using Sizes = std::vector<uint32_t>;

TEST(PipelineReaderTest, EveryScheduleIsPlanned) {
  for (const PipelineScheduleFacts& facts : PipelineSchedules()) {
    SCOPED_TRACE(facts.name);
    EXPECT_EQ(MistakeOf(fmt::format(R"({{"stages": 4, "schedule": "{}"}})", facts.name)), "");
  }
}

TEST(PipelineReaderTest, StagesAreCutAsIsSaid) {
  // Units: embedding, 8 layers, output layer.
  EXPECT_EQ(PipelineOf(R"({"stages": 4, "schedule": "1f1b"})").units_of_stage, (Sizes{3, 2, 2, 3}));
  EXPECT_EQ(
      PipelineOf(R"({"stages": 4, "schedule": "1f1b", "layers": [1, 3, 3, 1]})").units_of_stage,
      (Sizes{2, 3, 3, 2}));
  EXPECT_EQ(PipelineOf(R"({"stages": 4, "schedule": "1f1b", "first_layers": 1, "last_layers": 1})")
                .units_of_stage,
            (Sizes{2, 3, 3, 2}));
  EXPECT_EQ(
      PipelineOf(R"({"stages": 4, "schedule": "1f1b", "layout": "Et*2|(ttt|)*2L"})").units_of_stage,
      (Sizes{3, 3, 3, 1}));
  EXPECT_EQ(
      PipelineOf(R"({"stages": 4, "schedule": "1f1b", "split": "layers-and-ends"})").units_of_stage,
      (Sizes{3, 3, 2, 2}));
  EXPECT_EQ(PipelineOf(R"({"stages": 4, "schedule": "interleaved"})").units_of_stage,
            (Sizes{2, 1, 1, 1, 1, 1, 1, 2}));
}

// DeepSeek-V3 as NVIDIA's recipes cut it: 16 parts of four layers, the last one with a layer, the
// one that predicts further ahead, and the losses.
constexpr const char* kDeepSeek =
    R"({"name": "x", "software": "nemo", "cluster": "dgx-h100:nodes=16",
        "model": {"preset": "deepseek-v3", "predict_ahead": 1},
        "training": {"batch": 256, "sequence": 4096, "micro_batches": 16, "recomputation": "none"},
        "strategy": {"kind": "combined", "tensor": 2, "sequence_parallel": true, "shard": 16,
                     "zero": 1, "expert": 32, "expert_tensor": 1},
        "pipeline": {"stages": 4, "schedule": "interleaved", "virtual": 4,
                     "layout": "Et*4|(t*4|)*14tmL"}})";

std::string DeepSeek(std::initializer_list<std::pair<std::string, std::string>> changes) {
  std::string text = kDeepSeek;
  for (const auto& [from, to] : changes) {
    const size_t at = text.find(from);
    CHECK_NE(at, std::string::npos);
    text.replace(at, from.size(), to);
  }
  return text;
}

std::string MistakeOfDeepSeek(const std::string& layout) {
  try {
    Read(DeepSeek({{"Et*4|(t*4|)*14tmL", layout}}));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(PipelineReaderTest, ALayoutNamesTheLayerThatPredictsFurtherAhead) {
  const Scenario scenario = Read(kDeepSeek);
  Sizes sizes(16, 4);
  sizes.front() = 5;
  sizes.back() = 2;
  EXPECT_EQ(std::get<Workload>(scenario.jobs.front().work).pipeline->units_of_stage, sizes);
  EXPECT_THAT(MistakeOfDeepSeek("Et*4|(t*4|)*14tL"), HasSubstr("then mL"));
  EXPECT_THAT(MistakeOfDeepSeek("Et*4|(t*4|)*13t*5m|L"), HasSubstr("m is in another stage than L"));
  EXPECT_THAT(MistakeOf(R"({"stages": 4, "schedule": "1f1b", "layout": "Et*2|(ttt|)*2mL"})"),
              AllOf(HasSubstr("/pipeline/layout"), HasSubstr("then L")));
  Read(DeepSeek({{"\"predict_ahead\": 1", "\"predict_ahead\": 0"}, {"tmL", "tL"}}));
}

// With one sequence for each pair of ranks of a tensor: attention has both ranks' tokens and half
// of the heads, whatever layout the short vectors of keys rest in.
TEST(PipelineReaderTest, RanksOfATensorShareASequenceOfLatentAttention) {
  Scenario scenario = Read(kDeepSeek);
  scenario.allow_out_of_memory = true;
  const std::vector<Job> jobs = Prepare(scenario);
  const Schedule& schedule = jobs.front().schedule;
  EXPECT_EQ(schedule.roles.size(), 4u);
  uint32_t cores = 0;
  for (const Op& op : schedule.roles.front().ops) {
    const auto* compute = std::get_if<Compute>(&op.work);
    if (compute == nullptr || compute->kernel != Kernel::kAttention) continue;
    ++cores;
    EXPECT_EQ(compute->attributes[kAttentionSequence], 4096);
    EXPECT_EQ(compute->attributes[kAttentionGroups], 64);
  }
  EXPECT_GT(cores, 0u);
}

TEST(PipelineReaderTest, AnOrderIsReadAsItIsWritten) {
  const PipelineOrder order = OrderOf(PipelineSchedule::kZeroBubbleV, 2, 2, 8, {});
  std::string rows;
  std::string csv = ToPipelineCsv(order);
  for (size_t end; (end = csv.find('\n')) != std::string::npos; csv = csv.substr(end + 1)) {
    rows += fmt::format("{}\"{}\"", rows.empty() ? "" : ", ", csv.substr(0, end));
  }
  const Scenario scenario = Read(fmt::format(R"({{"name": "x", "cluster": "switch:devices=4",
          "model": {{"layers": 8, "hidden": 64, "heads": 4, "vocabulary": 128}},
          "training": {{"batch": 16, "sequence": 32, "micro_batches": 8, "recomputation": "none"}},
          "strategy": {{"kind": "data-parallel", "data": 2, "overlap_gradients": true}},
          "pipeline": {{"stages": 2, "order": [{}]}}}})",
                                             rows));
  const auto& read = *std::get<Workload>(scenario.jobs.front().work).pipeline;
  EXPECT_EQ(read.actions, order.actions);
  EXPECT_EQ(read.places.rank_of, order.places.rank_of);
}

TEST(PipelineReaderTest, CellsOfTorchsMessagesSayNothing) {
  const PipelineOrder order = ParsePipelineOrder(
      {{"0UNSHARD", "0F0", "0SEND_F0", "", "0RECV_B0", "0B0"}, {"1RECV_F0", "1F0", "1I0", "1W0"}},
      {});
  EXPECT_EQ(order.actions.size(), 2u + 3u + 2u * 2u);
  EXPECT_EQ(order.places.ranks, 2u);
}

TEST(PipelineReaderTest, MegatronsStacksWaitForTheMessagesOf1F1B) {
  const std::string software = R"("software": "megatron-lm-2021",)";
  EXPECT_TRUE(PipelineOf(R"({"stages": 4, "schedule": "1f1b"})").overlaps_messages);
  const StagePipeline waits = PipelineOf(R"({"stages": 4, "schedule": "1f1b"})", software);
  EXPECT_FALSE(waits.overlaps_messages);
  EXPECT_EQ(waits.scattered_axes, Sizes{0});
  EXPECT_TRUE(PipelineOf(R"({"stages": 4, "schedule": "gpipe"})", software).overlaps_messages);
}

TEST(PipelineReaderTest, PassesInPairsAndUpdatesValidatedLater) {
  const StagePipeline usual = PipelineOf(R"({"stages": 4, "schedule": "zb-h1"})");
  EXPECT_EQ(usual.validation, kAdamOnce);
  EXPECT_FALSE(usual.pairs_passes);
  EXPECT_FALSE(usual.batches_messages);
  const StagePipeline other = PipelineOf(
      R"({"stages": 4, "schedule": "zb-h1", "validation": "after-update", "pair_passes": true,
          "batch_messages": true})");
  EXPECT_EQ(other.validation, kAdamIfClipped);
  EXPECT_TRUE(other.pairs_passes);
  EXPECT_TRUE(other.batches_messages);
}

TEST(PipelineReaderTest, PairsInAnOrderOfTheirOwn) {
  const StagePipeline named = PipelineOf(
      R"({"stages": 4, "schedule": "1f1b", "pair_passes": true, "pair_order": "dualpipe"})");
  EXPECT_EQ(named.pair_order, PairOrders().front().order);
  const StagePipeline own = PipelineOf(
      R"({"stages": 4, "schedule": "1f1b", "pair_passes": true, "pair_order":
          ["F.attention", "I.combine", "F.dispatch", "I.experts", "I.dispatch", "F.experts",
           "F.combine", "I.attention"]})");
  EXPECT_EQ(own.pair_order.size(), 8u);
  EXPECT_FALSE(PutsWeightsApart(own.pair_order));
}

TEST(BadPipelineTest, OrdersOfPairsThatAChunkCannotHave) {
  const auto mistake = [](const std::string& order) {
    return MistakeOf(R"({"stages": 4, "schedule": "1f1b", "pair_passes": true, "pair_order": )" +
                     order + "}");
  };
  const std::string backward = R"("I.combine", "I.experts", "I.dispatch", "I.attention"])";
  EXPECT_THAT(
      mistake(R"(["F.attention", "F.experts", "F.dispatch", "F.combine", )" + backward),
      AllOf(HasSubstr("/pipeline/pair_order"), HasSubstr("found F.experts next after F.attention"),
            HasSubstr("expected F.dispatch")));
  EXPECT_THAT(mistake(R"(["F.attention", "F.attention", )" + backward),
              HasSubstr("found F.attention twice"));
  EXPECT_THAT(mistake(R"(["F.attention", "F.dispatch", "F.combine", )" + backward),
              HasSubstr("found no F.experts"));
  EXPECT_THAT(mistake(R"(["W.experts", "F.attention", "F.dispatch", "F.experts", "F.combine", )" +
                      backward),
              HasSubstr("both or neither"));
  EXPECT_THAT(mistake(R"("dualpipes")"), HasSubstr("\"dualpipe\""));
  EXPECT_THAT(MistakeOf(R"({"stages": 4, "schedule": "1f1b", "pair_order": "dualpipe"})"),
              AllOf(HasSubstr("/pipeline/pair_order"), HasSubstr("\"pair_passes\": true")));
}

TEST(BadPipelineTest, PairsThatAPipelineCannotCarry) {
  EXPECT_THAT(MistakeOf(R"({"stages": 4, "schedule": "gpipe", "pair_passes": true})"),
              AllOf(HasSubstr("/pipeline/pair_passes"), HasSubstr("expected an order that has")));
}

TEST(BadPipelineTest, LayersThatDoNotSplit) {
  EXPECT_THAT(MistakeOf(R"({"stages": 4, "schedule": "interleaved", "virtual": 3})"),
              AllOf(HasSubstr("/pipeline"), HasSubstr("8 layers"), HasSubstr("12 stages")));
  EXPECT_THAT(MistakeOf(R"({"stages": 4, "schedule": "1f1b", "layers": [2, 2, 2, 1]})"),
              AllOf(HasSubstr("/pipeline/layers"), HasSubstr("found 7 in all")));
  EXPECT_THAT(MistakeOf(R"({"stages": 4, "schedule": "1f1b", "layout": "Ett|tt|tt|ttLL"})"),
              AllOf(HasSubstr("/pipeline/layout"), HasSubstr("8 layers")));
  EXPECT_THAT(MistakeOf(R"({"stages": 4, "schedule": "1f1b", "layout": "E(tt|*3L"})"),
              HasSubstr("\"(\" without \")\""));
}

TEST(BadPipelineTest, MicroBatchesThatAScheduleDoesNotTake) {
  EXPECT_THAT(MistakeOf(R"({"stages": 4, "schedule": "interleaved"})", 6),
              AllOf(HasSubstr("6 micro-batches"), HasSubstr("a multiple of the 4 ranks")));
  EXPECT_THAT(MistakeOf(R"({"stages": 4, "schedule": "dualpipe"})", 4),
              AllOf(HasSubstr("4 micro-batches"), HasSubstr("at least 8")));
  EXPECT_THAT(MistakeOf(R"({"stages": 4, "schedule": "1f1b", "virtual": 2})"),
              AllOf(HasSubstr("2 stages per rank"), HasSubstr("\"interleaved\"")));
}

TEST(BadPipelineTest, OrdersThatCannotBeDone) {
  const auto order = [](const char* first, const char* second) {
    return MistakeOf(fmt::format(R"({{"stages": 4, "order": ["{}", "{}", "2F0,2B0", "3F0,3B0"]}})",
                                 first, second),
                     1);
  };
  EXPECT_EQ(order("0F0,0B0", "1F0,1B0"), "");
  EXPECT_THAT(order("0F0", "1F0,1B0"),
              AllOf(HasSubstr("/pipeline/order"), HasSubstr("forward of micro-batch 0 on stage 0"),
                    HasSubstr("has no backward pass")));
  EXPECT_THAT(order("0B0,0F0", "1F0,1B0"), HasSubstr("comes before"));
  EXPECT_THAT(order("0X0", "1F0,1B0"), HasSubstr("found \"0X0\""));
  EXPECT_THAT(MistakeOf(R"({"stages": 4})"), HasSubstr("\"schedule\" or an \"order\""));
  EXPECT_THAT(MistakeOf(R"({"stages": 4, "schedule": "1f2b"})"), HasSubstr("1f1b"));
}

TEST(BadPipelineTest, RanksThatTheClusterHasNot) {
  EXPECT_THAT(MistakeOf(R"({"stages": 2, "schedule": "1f1b"})"),
              AllOf(HasSubstr("stages 2 = 4 ranks"), HasSubstr("8 devices")));
}

}  // namespace pipeline_reader_test
}  // namespace rehearse
