// How ranks share the work: tensor, context, data and expert parallelism, ZeRO, and the pipeline.
#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "tools/foreign/runs/megatron/megatron_parts.h"
#include "workloads/planner/stage_sizes.h"

namespace rehearse {
namespace {

// From --zero-stage, Megatron-FSDP or the distributed optimizer.
uint32_t ZeroStage(ArgumentList& arguments) {
  const ArgumentList::Names sharding = {"data-parallel-sharding-strategy"};
  const size_t stage =
      arguments.ChoiceOr(sharding, {"no_shard", "optim", "optim_grads", "optim_grads_params"}, 0);
  const bool is_fsdp = arguments.Switch({"use-megatron-fsdp", "use-custom-fsdp"});
  const bool is_torch = arguments.Switch({"use-torch-fsdp2"});
  const bool is_distributed = arguments.Switch({"use-distributed-optimizer"});
  const int64_t deepspeed = arguments.WholeOr({"zero-stage"}, 0, 3, is_distributed ? 1 : 0);
  if (is_torch) return 3;
  if (is_fsdp) return static_cast<uint32_t>(stage);
  return static_cast<uint32_t>(deepspeed);
}

void SetContext(ArgumentList& arguments, ScenarioDraft& draft, const MegatronRun& run) {
  const ArgumentList::Names names = {"cp-comm-type"};
  const size_t kind = arguments.ChoiceOr(names, {"p2p", "all_gather", "a2a", "a2a+p2p"}, 0);
  if (run.context.value == 1) return;
  constexpr const char* kKinds[] = {"ring", "all-gather", "ulysses", "ring"};
  draft.Set("/strategy/context", run.context.value, run.context.from);
  const bool is_deepspeed = run.context.from.name.find("ds") != std::string::npos;
  draft.Set("/strategy/context_kind", is_deepspeed ? "ulysses" : kKinds[kind],
            arguments.OriginOf(names));
  if (kind == 3)
    draft.Remark("not supported: --cp-comm-type a2a+p2p; keys and values travel round a ring");
}

void SetExpertRanks(ArgumentList& arguments, ScenarioDraft& draft, const MegatronRun& run) {
  const ArgumentList::Names names = {"expert-model-parallel-size", "moe-expert-parallel-size"};
  const ArgumentList::Names tensor_names = {"expert-tensor-parallel-size"};
  const Degree expert{static_cast<uint64_t>(arguments.WholeOr(names, 1, 1 << 16, 1)),
                      arguments.OriginOf(names)};
  const auto tensor = static_cast<uint64_t>(arguments.WholeOr(
      tensor_names, 1, 1 << 16,
      run.is_deepspeed ? 1 : std::min<int64_t>(static_cast<int64_t>(run.tensor.value), 1 << 16)));
  const std::string dispatcher =
      arguments.Text({"moe-token-dispatcher-type"}).value_or("allgather");
  // For the flexible dispatcher; a log names a backend with any dispatcher.
  const bool has_deepep = arguments.Switch({"moe-enable-deepep"});
  const std::string backend = arguments.Text({"moe-flex-dispatcher-backend"}).value_or("");
  // Hybrid-EP's kernels take the same ways: once to each machine, then on inside.
  const bool is_hybrid = dispatcher == "flex" && backend == "hybridep" && !has_deepep;
  const bool is_deepep = is_hybrid || (dispatcher == "flex" && (has_deepep || backend == "deepep"));
  const bool overlaps = arguments.Switch({"moe-shared-expert-overlap"});
  if (run.experts == 0) {
    if (expert.value > 1) draft.Fail(expert.from, "there are no experts; expected --num-experts");
    return;
  }
  const uint64_t ranks = run.tensor.value * run.context.value * run.data;
  if (ranks % (expert.value * tensor) != 0) {
    draft.Fail(
        expert.from,
        fmt::format("{} ranks (tensor {} x context {} x data {}) cannot be shared by {} "
                    "expert x {} tensor ranks of an expert",
                    ranks, run.tensor.value, run.context.value, run.data, expert.value, tensor));
  }
  if (expert.value > 1) draft.Set("/strategy/expert", expert.value, expert.from);
  if (tensor > 1) draft.Set("/strategy/expert_tensor", tensor, arguments.OriginOf(tensor_names));
  if (overlaps) draft.Set("/strategy/overlap_shared_expert", true);
  if (is_deepep) {
    draft.Set(
        "/simulator", {{"collectives", {{{"kind", "all-to-all"}, {"algorithm", "deepep"}}}}},
        arguments.OriginOf({is_hybrid ? "moe-flex-dispatcher-backend" : "moe-enable-deepep"}));
    if (is_hybrid)
      draft.Remark("--moe-flex-dispatcher-backend hybridep is played as DeepEP, whose ways it has");
  } else if (dispatcher == "allgather" && expert.value * tensor > 1) {
    draft.Remark(
        "not supported: --moe-token-dispatcher-type allgather; tokens go to experts by all-to-all");
  }
}

void SetGatheredParameters(ScenarioDraft& draft, uint32_t zero) {
  draft.Set("/strategy/overlap_reduce_scatter", true);
  if (zero < 3) return;
  draft.Set("/strategy/gather", "layer");
  draft.Set("/strategy/prefetch", 1);
  draft.Set("/strategy/reshard_after_forward", true);
  draft.Remark("sharded parameters are gathered layer by layer, one layer ahead");
}

}  // namespace

void SetMegatronStrategy(ArgumentList& arguments, ScenarioDraft& draft, const MegatronRun& run) {
  const uint32_t zero = ZeroStage(arguments);
  const bool is_sequence = arguments.Switch({"sequence-parallel"}) && run.tensor.value > 1;
  const bool overlaps_sums = arguments.Switch({"overlap-grad-reduce"});
  const bool overlaps_gathers = arguments.Switch({"overlap-param-gather"});
  const bool waits_for_dx = !arguments.Unless({"no-async-tensor-model-parallel-allreduce"},
                                              "async-tensor-model-parallel-allreduce");
  const ArgumentList::Names copies_names = {"num-distributed-optimizer-instances"};
  const auto copies = static_cast<uint64_t>(arguments.WholeOr(copies_names, 1, 1 << 20, 1));
  const ArgumentList::Names bucket_names = {"ddp-bucket-size"};
  const std::optional<int64_t> bucket = arguments.Whole(bucket_names, 1, int64_t{1} << 40);
  if (run.data % copies != 0) {
    draft.Fail(arguments.OriginOf(copies_names),
               fmt::format("{} data-parallel ranks are not a multiple of {}", run.data, copies));
  }
  if (run.experts > 0 && run.tensor.value > 1 && !is_sequence)
    draft.Fail(run.tensor.from, "experts with tensor parallelism need --sequence-parallel");

  const bool is_plain = zero <= 1 && run.context.value == 1 && run.experts == 0 && copies == 1;
  draft.Set("/strategy/kind", is_plain ? "megatron" : "combined");
  draft.Set("/strategy/tensor", run.tensor.value, run.tensor.from);
  SetContext(arguments, draft, run);
  if (is_plain) {
    draft.Set("/strategy/data", run.data);
    draft.Set("/strategy/distributed_optimizer", zero == 1,
              arguments.OriginOf({"use-distributed-optimizer"}));
  } else {
    draft.Set(zero > 0 ? "/strategy/shard" : "/strategy/data", run.data / copies);
    if (copies > 1) draft.Set("/strategy/replicas", copies, arguments.OriginOf(copies_names));
    draft.Set("/strategy/zero", zero, arguments.OriginOf({"zero-stage"}));
    if (zero >= 2) SetGatheredParameters(draft, zero);
  }
  // A log of a run with sequence parallelism says that the all-reduce is not asynchronous, because
  // there is none.
  draft.Set("/strategy/sequence_parallel", is_sequence);
  if (arguments.Switch({"tp-comm-overlap"}) && is_sequence)
    draft.Remark(
        "--tp-comm-overlap: products are played whole, with which published steps of NeMo agree "
        "better; \"split_products\": \"user-buffers\" cuts them");
  if (waits_for_dx && !is_sequence) draft.Set("/strategy/overlap_all_reduce", false);
  draft.Set("/strategy/overlap_gradients", overlaps_sums || zero == 3,
            arguments.OriginOf({"overlap-grad-reduce"}));
  if (overlaps_gathers && zero == 1)
    draft.Set("/strategy/overlap_parameter_gathers", true,
              arguments.OriginOf({"overlap-param-gather"}));
  if (bucket) draft.Set("/strategy/bucket_elements", *bucket, arguments.OriginOf(bucket_names));
  SetExpertRanks(arguments, draft, run);
}

namespace {

const ArgumentList::Names& LayoutNames() {
  static const ArgumentList::Names names = {"pipeline-model-parallel-layout"};
  return names;
}

// A layout says how many stages there are; a mistake in it is the reader's to explain.
std::optional<uint32_t> StagesByLayout(ArgumentList& arguments) {
  const std::optional<std::string> layout = arguments.Text(LayoutNames());
  if (!layout) return std::nullopt;
  try {
    return CountStagesOfLayout(*layout);
  } catch (const Error&) {
    return std::nullopt;
  }
}

// Stages of each rank: from the layout or the layers per stage, or as given.
uint64_t VirtualStages(ArgumentList& arguments, const MegatronRun& run) {
  const ArgumentList::Names layers_names = {"num-layers-per-virtual-pipeline-stage"};
  const ArgumentList::Names stages_names = {"num-virtual-stages-per-pipeline-rank",
                                            "virtual-pipeline-model-parallel-size"};
  const std::optional<int64_t> of_stage = arguments.Whole(layers_names, 1, 10000);
  const int64_t stages = arguments.WholeOr(stages_names, 1, 1024, 1);
  if (const std::optional<uint32_t> in_all = StagesByLayout(arguments)) {
    if (*in_all % run.stages.value == 0) return *in_all / run.stages.value;
    arguments.Fail(LayoutNames(), fmt::format("its {} stages are not a multiple of {} ranks",
                                              *in_all, run.stages.value));
  }
  if (!of_stage) return static_cast<uint64_t>(stages);
  const int64_t at_once = *of_stage * static_cast<int64_t>(run.stages.value);
  if (run.layers % at_once != 0) {
    arguments.Fail(layers_names, fmt::format("{} layers are not a multiple of {} stages of {}",
                                             run.layers, run.stages.value, *of_stage));
  }
  return static_cast<uint64_t>(run.layers / at_once);
}

// DeepSpeed's "type:transformer|embedding" counts the embedding and the output layer like layers;
// stages differ by one at most, the first being the longer ones.
std::vector<int64_t> LayersWithEnds(int64_t layers, int64_t stages) {
  std::vector<int64_t> of_stages;
  for (int64_t i = 0; i < stages; ++i)
    of_stages.push_back((layers + 2) / stages + (i < (layers + 2) % stages ? 1 : 0));
  --of_stages.front();
  --of_stages.back();
  return of_stages;
}

// How many layers each stage has, if not all have the same number.
void SetStages(ArgumentList& arguments, ScenarioDraft& draft, const MegatronRun& run,
               uint64_t stages) {
  const ArgumentList::Names first_names = {"decoder-first-pipeline-num-layers"};
  const ArgumentList::Names last_names = {"decoder-last-pipeline-num-layers"};
  const std::optional<std::string> layout = arguments.Text(LayoutNames());
  const ArgumentList::Names method_names = {"pp-partition-method"};
  const std::string method = arguments.Text(method_names).value_or("");
  const std::optional<int64_t> first = arguments.Whole(first_names, 0, 10000);
  const std::optional<int64_t> last = arguments.Whole(last_names, 0, 10000);
  const int64_t embedding = arguments.Switch({"account-for-embedding-in-pipeline-split"}) ? 1 : 0;
  const int64_t loss = arguments.Switch({"account-for-loss-in-pipeline-split"}) ? 1 : 0;
  const auto count = static_cast<int64_t>(stages);
  if (layout) {
    draft.Set("/pipeline/layout", *layout, arguments.OriginOf(LayoutNames()));
  } else if (first || last) {
    if (first) draft.Set("/pipeline/first_layers", *first, arguments.OriginOf(first_names));
    if (last) draft.Set("/pipeline/last_layers", *last, arguments.OriginOf(last_names));
  } else if (method.find("embedding") != std::string::npos) {
    draft.Set("/pipeline/layers", LayersWithEnds(run.layers, count),
              arguments.OriginOf(method_names));
  } else if ((run.layers + embedding + loss) % count != 0) {
    draft.Fail(run.stages.from, fmt::format("{} layers{} cannot be shared by {} stages", run.layers,
                                            embedding + loss > 0 ? " and ends" : "", stages));
  } else if (embedding + loss > 0) {
    std::vector<int64_t> layers(stages, (run.layers + embedding + loss) / count);
    layers.front() -= embedding;
    layers.back() -= loss;
    draft.Set("/pipeline/layers", layers,
              arguments.OriginOf({"account-for-embedding-in-pipeline-split"}));
  }
}

}  // namespace

void SetMegatronPipeline(ArgumentList& arguments, ScenarioDraft& draft, const MegatronRun& run) {
  const uint64_t a_rank = VirtualStages(arguments, run);
  const bool overlaps = arguments.Unless({"no-overlap-p2p-communication"}, "overlap-p2p-comm");
  arguments.Has({"overlap-p2p-communication"});
  const ArgumentList::Names pair_names = {"overlap-moe-expert-parallel-comm"};
  const bool pairs = arguments.Switch(pair_names);
  const bool delays = arguments.Switch({"delay-wgrad-compute"});
  if (delays && !pairs)
    draft.Remark(
        "not supported: --delay-wgrad-compute without --overlap-moe-expert-parallel-comm; "
        "gradients "
        "of weights are computed in the usual order");
  const char* const pair_order = delays ? "megatron-core" : "megatron-core-beside";
  if (run.stages.value == 1) {
    for (const char* split :
         {"account-for-embedding-in-pipeline-split", "account-for-loss-in-pipeline-split"})
      arguments.Switch({split});  // of stages that are not there
    if (!pairs || run.micro_batches == 1) return;
    draft.Set("/pipeline", nlohmann::ordered_json::object(), arguments.OriginOf(pair_names));
    draft.Set("/pipeline/stages", 1);
    draft.Set("/pipeline/schedule", "1f1b");
    draft.Set("/pipeline/pair_passes", true, arguments.OriginOf(pair_names));
    draft.Set("/pipeline/pair_order", pair_order);
    return;
  }
  if (run.stages.value * a_rank > kMostPipelineParts / run.micro_batches) {
    draft.Fail(run.stages.from,
               fmt::format("{} stages x {} micro-batches, expected at most {} together",
                           run.stages.value * a_rank, run.micro_batches, kMostPipelineParts));
  }
  draft.Set("/pipeline", nlohmann::ordered_json::object(), run.stages.from);
  draft.Set("/pipeline/stages", run.stages.value, run.stages.from);
  draft.Set("/pipeline/schedule", a_rank > 1 ? "interleaved" : "1f1b");
  if (a_rank > 1) {
    draft.Set("/pipeline/virtual", a_rank);
    if (!overlaps) draft.Set("/pipeline/batch_messages", true);
  }
  if (pairs && a_rank == 1)
    arguments.Fail(pair_names, "Megatron-LM needs virtual stages for it where there are stages");
  if (pairs) {
    draft.Set("/pipeline/pair_passes", true, arguments.OriginOf(pair_names));
    draft.Set("/pipeline/pair_order", pair_order);
  }
  SetStages(arguments, draft, run, run.stages.value * a_rank);
}

}  // namespace rehearse
