#include "tools/foreign/runs/megatron/megatron_import.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "sim/base/input_file.h"
#include "tools/foreign/runs/megatron/argument_list.h"
#include "tools/foreign/runs/megatron/launched_run.h"
#include "tools/foreign/runs/megatron/megatron_parts.h"

namespace rehearse {
namespace {

// Megatron-LM's tests run on a machine of eight, or on as many ranks as their degrees need.
constexpr uint64_t kRanksOfTests = 8;
constexpr uint64_t kMostRanksOfTests = 1 << 20;

Degree DegreeOf(ArgumentList& arguments, ArgumentList::Names names) {
  return {static_cast<uint64_t>(arguments.WholeOr(names, 1, kMostDegree, 1)),
          arguments.OriginOf(names)};
}

}  // namespace

ImportedScenario ImportMegatron(std::string_view text, const std::string& file,
                                const std::string& cluster, const RunSettings& settings,
                                const ShellFiles& files) {
  ScenarioDraft draft(file);
  return ImportLaunchedRun(ReadLaunchedRun(text, draft.file(), settings, files), cluster, &draft);
}

ImportedScenario ImportLaunchedRun(const LaunchedRun& launched, const std::string& cluster,
                                   ScenarioDraft* into) {
  ScenarioDraft& draft = *into;
  for (const std::string& remark : launched.remarks) draft.Remark(remark);
  ArgumentList arguments(draft.file(), launched);

  MegatronRun run;
  run.is_2021 = arguments.Has({"activations-checkpoint-method", "checkpoint-activations"}) ||
                arguments.Has({"DDP-impl"});
  run.is_deepspeed = arguments.Has({"deepspeed", "deepspeed-config", "zero-stage"});
  draft.Set("/software", launched.software != nullptr       ? launched.software
                         : run.is_2021 && !run.is_deepspeed ? "megatron-lm-2021"
                                                            : "megatron-core");
  std::optional<uint64_t> ranks;
  Origin from;
  if (launched.ranks) {
    ranks = launched.ranks->value;
    from = launched.ranks->from;
  }
  run.tensor = DegreeOf(arguments, {"tensor-model-parallel-size", "model-parallel-size"});
  run.context = DegreeOf(arguments, {"context-parallel-size", "ds-sequence-parallel-size"});
  run.stages = DegreeOf(arguments, {"pipeline-model-parallel-size", "pipe-parallel-size"});
  if (!ranks && launched.is_test) {
    const Degree expert = DegreeOf(arguments, {"expert-model-parallel-size"});
    const Degree of_expert = DegreeOf(arguments, {"expert-tensor-parallel-size"});
    const bool has_own = arguments.Has({"expert-tensor-parallel-size"});
    const uint64_t dense = run.tensor.value * run.context.value;
    const uint64_t sparse = expert.value * (has_own ? of_expert.value : run.tensor.value);
    const uint64_t together = std::lcm(dense, sparse) * run.stages.value;
    ranks = std::min(std::max(kRanksOfTests / together, uint64_t{1}) * together, kMostRanksOfTests);
    from = {"one machine of eight, as Megatron-LM's tests have, or more where they need it", 0};
  }
  run.machine = draft.PutOnMachine(
      cluster, ranks, from,
      "--cluster, or --nproc_per_node and --nnodes of torchrun, or WORLD_SIZE in the script or by "
      "--set");
  run.data = RanksLeft(draft, run.machine, {run.tensor, run.context, run.stages});

  if (launched.model)
    SetGivenMegatronModel(*launched.model, launched.model_from, arguments, draft, &run);
  else
    SetMegatronModel(arguments, draft, &run);
  if (launched.adapters) SetAdapters(*launched.adapters, &draft);
  SetMegatronTraining(arguments, draft, &run);
  if (launched.weighs_early && HasExperts(draft))
    draft.Set("/training/router_weights", "activation");
  SetMegatronStrategy(arguments, draft, run);
  SetMegatronPipeline(arguments, draft, run);
  if (run.machine.spares) draft.Set("/placement", "block");
  HonourEnvironment(launched.environment, arguments, draft);
  RemarkOnRest(arguments, draft);
  return draft.Finish();
}

}  // namespace rehearse
