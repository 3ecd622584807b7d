#include "tools/foreign/runs/deepspeed/deepspeed_import.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/json_document.h"
#include "sim/base/json_reader.h"

namespace rehearse {

void SetSequenceBeside(FlatKeys& keys, JobConfig::Names names, TrainerStep* step,
                       const ScenarioDraft& draft) {
  if (!keys.Has(names)) {
    throw Error(
        {draft.file(), 0, ""},
        fmt::format("nothing says how long a sequence is; expected --set {}=4096", *names.begin()));
  }
  step->sequence = keys.WholeOr(names, 1, int64_t{1} << 24, 0);
  step->sequence_from = keys.OriginOf(names);
}

namespace {

constexpr int64_t kMostOfRank = 1 << 20;

// Batch, micro-batch and passes, any two of which say the third.
struct DeepSpeedBatch {
  Degree batch;
  Degree micro;
  Degree passes;
  bool has_batch = false;
  bool has_micro = false;
  bool has_passes = false;
};

DeepSpeedBatch ReadBatchOfDeepSpeed(FlatKeys& keys) {
  const JobConfig::Names batch_names = {"train_batch_size"};
  const JobConfig::Names micro_names = {"train_micro_batch_size_per_gpu", "micro_batch_size"};
  const JobConfig::Names passes_names = {"gradient_accumulation_steps"};
  DeepSpeedBatch read;
  read.has_batch = keys.Has(batch_names);
  read.has_micro = keys.Has(micro_names);
  read.has_passes = keys.Has(passes_names);
  read.batch = {keys.WholeOr(batch_names, 1, kMostSequences, 1), keys.OriginOf(batch_names)};
  read.micro = {keys.WholeOr(micro_names, 1, kMostOfRank, 1), keys.OriginOf(micro_names)};
  read.passes = {keys.WholeOr(passes_names, 1, 1 << 16, 1), keys.OriginOf(passes_names)};
  return read;
}

void SetBatchOfDeepSpeed(const DeepSpeedBatch& read, uint64_t data, TrainerStep* step,
                         const ScenarioDraft& draft) {
  step->micro_batch = read.micro;
  step->passes = read.passes;
  if (!read.has_batch) {
    if (!read.has_micro) {
      throw Error({draft.file(), 0, ""},
                  "nothing says the batch; expected --set train_micro_batch_size_per_gpu=1, or "
                  "train_batch_size");
    }
    return;
  }
  if (!read.has_micro) {
    step->micro_batch = {MicroBatchesOf(draft, read.batch, read.passes, data), read.batch.from};
  } else {
    const uint64_t passes = MicroBatchesOf(draft, read.batch, read.micro, data);
    if (read.has_passes && passes != read.passes.value) {
      draft.Fail(read.batch.from,
                 fmt::format("{} are not {} a micro-batch x {} passes x {} data-parallel ranks",
                             read.batch.value, read.micro.value, read.passes.value, data));
    }
    step->passes = {passes, read.batch.from};
  }
}

}  // namespace

ImportedScenario ImportDeepSpeed(const RunSource& source) {
  ScenarioDraft draft(source.file);
  const JsonDocument document = JsonDocument::FromText(source.text, draft.file());
  FlatKeys keys(document, source.settings,
                "DeepSpeed's JSON, such as {\"zero_optimization\": {\"stage\": 3}}");
  constexpr const char* kOwn[] = {"zero_optimization", "train_batch_size", "bf16", "fp16",
                                  "train_micro_batch_size_per_gpu"};
  const JsonReader root = document.Root();
  const bool is_known =
      std::any_of(std::begin(kOwn), std::end(kOwn), [&](const char* key) { return root.Has(key); });
  if (!is_known) {
    throw Error({draft.file(), 0, ""},
                "no configuration of DeepSpeed; expected zero_optimization or train_batch_size");
  }
  TrainerStep step;
  ReadDeepSpeed(keys, &step, &draft);
  const JobConfig::Names model_names = {"model"};
  SetNamedModel(source.model, keys.Word(model_names), keys.OriginOf(model_names), &draft);
  SetSequenceBeside(keys, {"sequence", "sequence_length"}, &step, draft);
  const bool recomputes = root.Has("activation_checkpointing");
  const std::string recompute = keys.Word({"recomputation"});
  if (!recompute.empty()) {
    draft.Set("/training/recomputation", recompute, keys.OriginOf({"recomputation"}));
  } else {
    draft.Set("/training/recomputation", recomputes ? "full" : "none");
    draft.Remark(recomputes
                     ? "activation_checkpointing: every layer is computed again; --set "
                       "recomputation=none if the model does not use it"
                     : "activations are kept; --set recomputation=full if the model checkpoints");
  }
  if (keys.Flag({"activation_checkpointing.cpu_checkpointing"}, false))
    draft.Remark("not supported: cpu_checkpointing; inputs of layers stay on the devices");
  if (keys.Word({"activation_checkpointing.partition_activations"}) == "true")
    draft.Remark("not supported: partition_activations; each rank keeps whole inputs of layers");
  const DeepSpeedBatch batch = ReadBatchOfDeepSpeed(keys);
  std::optional<uint64_t> ranks;
  if (batch.has_batch && batch.has_micro && batch.has_passes) {
    const uint64_t of_rank = batch.micro.value * batch.passes.value;
    if (batch.batch.value % of_rank != 0) {
      draft.Fail(batch.batch.from,
                 fmt::format("{} are not a multiple of {} a micro-batch x {} passes",
                             batch.batch.value, batch.micro.value, batch.passes.value));
    }
    ranks = batch.batch.value / of_rank * step.tensor.value * step.context.value;
  }
  const uint64_t data = PutTrainerOnMachine(
      source.cluster, ranks, {"train_batch_size / micro-batch / passes", 0},
      "--cluster, or all of train_batch_size, train_micro_batch_size_per_gpu and "
      "gradient_accumulation_steps",
      &step, &draft);
  SetBatchOfDeepSpeed(batch, data, &step, draft);
  SetTrainerStep(step, data, &draft);
  SetDeepSpeedBuckets(keys, step, &draft);
  RemarkOnRestOfDeepSpeed(keys, &draft);
  return draft.Finish();
}

}  // namespace rehearse
