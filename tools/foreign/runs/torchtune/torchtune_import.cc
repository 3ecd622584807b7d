#include "tools/foreign/runs/torchtune/torchtune_import.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/json_parse.h"
#include "tools/foreign/machines/infragraph/yaml_text.h"
#include "tools/foreign/runs/adapters.h"
#include "tools/foreign/runs/deepspeed/deepspeed_import.h"
#include "tools/foreign/runs/flat_keys.h"
#include "tools/foreign/runs/trainer_step.h"

namespace rehearse {
namespace {

// "llama3_1_8b" of "torchtune.models.llama3_1.llama3_1_8b".
std::string LastName(const std::string& component) {
  return component.substr(component.rfind('.') + 1);
}

void RefuseOtherRecipes(FlatKeys& keys, const ScenarioDraft& draft) {
  const JobConfig::Names model_names = {"model._component_"};
  const std::string model = LastName(keys.Word(model_names));
  for (const char* part : {"teacher_model._component_", "kd_loss._component_"}) {
    if (keys.Has({part})) keys.Fail({part}, "distillation is not supported");
  }
  for (const char* part : {"policy_model._component_", "ppo_epochs", "grpo_samples",
                           "reward_and_value_model._component_"}) {
    if (keys.Has({part})) keys.Fail({part}, "training by rewards is not supported");
  }
  const JobConfig::Names loss_names = {"loss._component_"};
  const std::string loss = LastName(keys.Word(loss_names));
  if (loss.starts_with("DPO") || loss.starts_with("GRPO") || loss.starts_with("PPO") ||
      loss.starts_with("RSO") || loss.starts_with("SimPO"))
    keys.Fail(loss_names,
              fmt::format("found {}; training by preferences is not supported", QuotedJson(loss)));
  if (model.empty() || !keys.Has({"optimizer._component_"}) || !keys.Has({"batch_size"})) {
    throw Error({draft.file(), 0, ""},
                "no training of torchtune; expected its model, optimizer and batch_size");
  }
  if (model.starts_with("dora_"))
    keys.Fail(model_names, fmt::format("found {}; adapters with magnitudes of their own (DoRA) are "
                                       "not supported",
                                       QuotedJson(model)));
  if (model.find("vision") != std::string::npos)
    keys.Fail(model_names,
              fmt::format("found {}; models of images are not supported", QuotedJson(model)));
}

// "llama3_8b" of "lora_llama3_8b".
std::string WithoutAdapters(const std::string& model) {
  for (const std::string prefix : {"lora_", "qlora_"})
    if (model.starts_with(prefix)) return model.substr(prefix.size());
  return model;
}

void SetAdaptersOfTorchtune(FlatKeys& keys, ScenarioDraft* draft) {
  const JobConfig::Names model_names = {"model._component_"};
  const std::string model = LastName(keys.Word(model_names));
  if (WithoutAdapters(model) == model) return;
  if (keys.Flag({"model.use_dora"}, false))
    draft->Remark("not supported: use_dora; adapters have no magnitudes of their own");
  constexpr int64_t kMostRank = 1 << 16;
  NamedAdapters adapters;
  adapters.rank = keys.WholeOr({"model.lora_rank"}, 1, kMostRank, 8);
  adapters.from = keys.OriginOf(model_names);
  adapters.on = keys.job().Texts({"model.lora_attn_modules"});
  const bool has_mlp = keys.Flag({"model.apply_lora_to_mlp"}, false);
  if (has_mlp) adapters.on.insert(adapters.on.end(), {"w1", "w2", "w3"});
  if (adapters.on.empty())
    keys.Fail(model_names, "expected lora_attn_modules or apply_lora_to_mlp beside it");
  if (keys.Flag({"model.apply_lora_to_output"}, false))
    draft->Remark("not supported: apply_lora_to_output; the output layer has no adapters");
  adapters.is_quantised = model.starts_with("qlora_") || keys.Flag({"model.quantize_base"}, false);
  SetAdapters(adapters, draft);
}

void SetArithmeticOfTorchtune(FlatKeys& keys, TrainerStep* step, ScenarioDraft* draft) {
  const JobConfig::Names type_names = {"dtype"};
  const std::string type = keys.Word(type_names);
  step->is_bf16 = type != "fp32";
  step->compiles = keys.Flag({"compile"}, false) || keys.Flag({"compile.model"}, false);
  const JobConfig::Names recompute_names = {"enable_activation_checkpointing"};
  if (keys.Flag(recompute_names, false))
    draft->Set("/training/recomputation", "full", keys.OriginOf(recompute_names));
  if (keys.Has({"ac_mode"}))
    draft->Remark("not supported: ac_mode; layers are kept or computed again as a whole");
  if (keys.Flag({"enable_activation_offloading"}, false))
    draft->Remark("not supported: enable_activation_offloading; activations stay on the devices");
  if (keys.Flag({"optimizer_in_bwd"}, false))
    draft->Remark("not supported: optimizer_in_bwd; the optimizer runs at the end of the step");
  const JobConfig::Names offload_names = {"fsdp_cpu_offload", "fsdp.cpu_offload"};
  if (keys.Flag(offload_names, false))
    SetOnHost(keys.OriginOf(offload_names), /*parameters=*/true, draft);
  const JobConfig::Names optimizer_names = {"optimizer._component_"};
  const bool is_fused = keys.Flag({"optimizer.fused"}, false);
  const std::string optimizer = LastName(keys.Word(optimizer_names));
  SetTrainerOptimizer(is_fused && optimizer.starts_with("Adam") ? optimizer + " fused" : optimizer,
                      keys.OriginOf(optimizer_names), draft);
  if (step->is_bf16) {
    // Such moments are played in one kernel only.
    if (is_fused) draft->Set("/training/moments", "bf16", keys.OriginOf(type_names));
    draft->Remark(
        "dtype bf16: weights, gradients and moments have 16 bits; here Adam also keeps master "
        "weights in 32");
  }
  if (keys.Flag({"enable_fp8_training"}, false))
    draft->Set("/training/products", "fp8-current", keys.OriginOf({"enable_fp8_training"}));
  const std::string loss = LastName(keys.Word({"loss._component_"}));
  if (loss.starts_with("LinearCrossEntropy") || loss.find("Chunked") != std::string::npos) {
    draft->Set("/training/cross_entropy", "fused", keys.OriginOf({"loss._component_"}));
    draft->Remark(fmt::format("loss {}: logits are kept in 16 bits, not made in pieces", loss));
  }
}

void ReadSharingOfTorchtune(FlatKeys& keys, TrainerStep* step, ScenarioDraft* draft) {
  const auto degree = [&](JobConfig::Names names) {
    return Degree{keys.WholeOr(names, 1, kMostDegree, 1), keys.OriginOf(names)};
  };
  step->tensor = degree({"tensor_parallel_dim"});
  step->context = degree({"context_parallel_dim"});
  step->expert = degree({"expert_parallel_dim"});
  step->replicas = degree({"data_parallel_replicate_dim"});
  const JobConfig::Names shard_names = {"data_parallel_shard_dim"};
  const int64_t shard = keys.job().WholeOr(shard_names, -1, kMostDegree, -1);
  if (step->is_of_one_device) return;
  if (shard > 0) step->shard = Degree{static_cast<uint64_t>(shard), keys.OriginOf(shard_names)};
  step->sharing = TrainerSharing::kFsdp2;
  step->zero = 3;
  const JobConfig::Names reshard_names = {"fsdp_reshard_after_forward"};
  if (!keys.Flag(reshard_names, true))
    draft->Set("/strategy/reshard_after_forward", false, keys.OriginOf(reshard_names));
}

}  // namespace

ImportedScenario ImportTorchtune(const RunSource& source) {
  ScenarioDraft draft(source.file);
  FlatKeys keys(ReadYaml(source.text, draft.file()), source.settings,
                "a recipe of torchtune, such as model: {_component_: ...}");
  RefuseOtherRecipes(keys, draft);
  TrainerStep step;
  const std::string stem = std::filesystem::path(source.file).stem().string();
  step.is_of_one_device = stem.find("single_device") != std::string::npos;
  ReadSharingOfTorchtune(keys, &step, &draft);
  const JobConfig::Names model_names = {"model._component_"};
  SetNamedModel(source.model, WithoutAdapters(LastName(keys.Word(model_names))),
                keys.OriginOf(model_names), &draft);
  SetAdaptersOfTorchtune(keys, &draft);
  SetSequenceBeside(keys, {"tokenizer.max_seq_len", "max_seq_len"}, &step, draft);
  const bool is_packed = keys.Flag({"dataset.packed"}, false);
  draft.Remark(is_packed
                   ? "dataset.packed: every token attends to all before it, of other samples too, "
                     "unless training.document says how long those are"
                   : "samples are not packed there: they are shorter than tokenizer.max_seq_len, "
                     "with which they are played");
  const JobConfig::Names micro_names = {"batch_size"};
  const JobConfig::Names passes_names = {"gradient_accumulation_steps"};
  step.micro_batch = {keys.WholeOr(micro_names, 1, 1 << 20, 1), keys.OriginOf(micro_names)};
  step.passes = {keys.WholeOr(passes_names, 1, 1 << 16, 1), keys.OriginOf(passes_names)};
  SetArithmeticOfTorchtune(keys, &step, &draft);
  std::optional<uint64_t> ranks;
  if (step.shard)
    ranks = std::min(step.shard->value * step.replicas.value, uint64_t{1} << 34) *
            step.tensor.value * step.context.value;
  const uint64_t data = PutTrainerOnMachine(
      source.cluster, ranks,
      {step.is_of_one_device ? "a recipe for a single device" : "the product of dims", 0},
      "--cluster, since torchtune's file does not say it (tune run --nproc_per_node)", &step,
      &draft);
  SetTrainerStep(step, data, &draft);
  draft.RemarkOnUnknown(keys.Unread({"output_dir",     "tokenizer.",
                                     "checkpointer.",  "seed",
                                     "device",         "dtype",
                                     "log_",           "metric_logger.",
                                     "resume_",        "optimizer.",
                                     "loss.",          "dataset",
                                     "shuffle",        "epochs",
                                     "max_steps",      "profiler.",
                                     "clip_grad",      "lr_scheduler.",
                                     "custom_sharded", "save_",
                                     "run_val",        "batch_size_val",
                                     "name",           "collate_fn",
                                     "model.",         "tensor_parallel_plan.",
                                     "compile.",       "parallelize_plan",
                                     "low_cpu",        "quantizer.",
                                     "ac_option",      "num_output_chunks",
                                     "cudnn_",         "keep_last",
                                     "fsdp."}));
  return draft.Finish();
}

}  // namespace rehearse
