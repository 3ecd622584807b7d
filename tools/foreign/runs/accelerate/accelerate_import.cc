#include "tools/foreign/runs/accelerate/accelerate_import.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/json_parse.h"
#include "tools/foreign/machines/infragraph/yaml_text.h"
#include "tools/foreign/runs/deepspeed/deepspeed_import.h"
#include "tools/foreign/runs/flat_keys.h"
#include "tools/foreign/runs/trainer_step.h"

namespace rehearse {
namespace {

// The keys of deepspeed_config as DeepSpeed's own JSON has them.
struct DeepSpeedName {
  const char* theirs;
  const char* ours;
};
constexpr DeepSpeedName kDeepSpeedNames[] = {
    {"deepspeed_config.zero_stage", "zero_optimization.stage"},
    {"deepspeed_config.offload_optimizer_device", "zero_optimization.offload_optimizer.device"},
    {"deepspeed_config.offload_param_device", "zero_optimization.offload_param.device"},
    {"deepspeed_config.gradient_accumulation_steps", "gradient_accumulation_steps"}};

// DeepSpeed's keys: of its file, or of those that are here.
FlatKeys DeepSpeedOfAccelerate(FlatKeys& keys, const RunSource& source,
                               const std::string& precision) {
  const JobConfig::Names names = {"deepspeed_config.deepspeed_config_file",
                                  "deepspeed_config_file"};
  const std::string path = keys.Word(names);
  std::string text = "{}";
  RunSettings settings;
  if (!path.empty()) {
    const std::optional<std::string> found =
        source.beside ? source.beside(path) : std::optional<std::string>();
    if (!found)
      keys.Fail(names, fmt::format("there is no {} beside this file, or in a folder above",
                                   QuotedJson(path)));
    text = *found;
  } else {
    for (const DeepSpeedName& name : kDeepSpeedNames) {
      const std::string word = keys.Word({name.theirs});
      if (!word.empty()) settings.push_back({name.ours, word});
    }
    if (precision == "bf16") settings.push_back({"bf16.enabled", "true"});
    if (precision == "fp16") settings.push_back({"fp16.enabled", "true"});
  }
  return FlatKeys(JsonDocument::FromText(text, path.empty() ? source.file : path), settings,
                  "the keys of DeepSpeed, such as zero_optimization");
}

// Degrees of the parallelism config, or of Megatron-LM's plugin.
void ReadDegreesOfAccelerate(FlatKeys& keys, TrainerStep* step) {
  const auto degree = [&](JobConfig::Names names) {
    return Degree{keys.WholeOr(names, 1, kMostDegree, 1), keys.OriginOf(names)};
  };
  step->tensor = degree({"parallelism_config.parallelism_config_tp_size",
                         "megatron_lm_config.megatron_lm_tp_degree", "tp_config.tp_size"});
  step->context = degree({"parallelism_config.parallelism_config_cp_size",
                          "parallelism_config.parallelism_config_sp_size"});
  const Degree shard = degree({"parallelism_config.parallelism_config_dp_shard_size"});
  const Degree replicas = degree({"parallelism_config.parallelism_config_dp_replicate_size"});
  if (shard.value > 1 || step->context.value > 1) step->shard = shard;
  if (replicas.value > 1) step->replicas = replicas;
  const Degree stages = degree({"megatron_lm_config.megatron_lm_pp_degree"});
  if (stages.value > 1)
    keys.Fail({"megatron_lm_config.megatron_lm_pp_degree"},
              "pipelines of accelerate are not imported; expected 1");
}

void SetProductsOfAccelerate(FlatKeys& keys, const std::string& precision, TrainerStep* step,
                             ScenarioDraft* draft) {
  const JobConfig::Names names = {"mixed_precision"};
  step->is_bf16 = precision == "bf16" || precision == "fp16" || precision == "fp8";
  if (precision == "fp16") draft->Remark("fp16: played as bf16, which has as many bits");
  if (!step->is_bf16) draft->Remark("mixed_precision: no; everything is computed in fp32");
  if (precision != "fp8") return;
  const std::string backend = keys.Word({"fp8_config.backend"});
  draft->Set("/training/products", backend == "AO" || backend == "ao" ? "fp8-current" : "fp8",
             keys.OriginOf(names));
  if (backend == "MSAMP" || backend == "msamp")
    draft->Remark("not supported: fp8_config.backend MSAMP; played as Transformer Engine");
}

}  // namespace

ImportedScenario ImportAccelerate(const RunSource& source) {
  ScenarioDraft draft(source.file);
  FlatKeys keys(ReadYaml(source.text, draft.file()), source.settings,
                "accelerate's configuration, such as distributed_type: FSDP");
  const JobConfig::Names kind_names = {"distributed_type"};
  const std::string kind = keys.Word(kind_names);
  if (kind.empty() && !keys.Has({"compute_environment"}) && !keys.Has({"num_processes"})) {
    throw Error({draft.file(), 0, ""},
                "no configuration of accelerate; expected its distributed_type");
  }
  constexpr const char* kPlain[] = {"", "NO", "MULTI_GPU"};
  const bool is_plain = std::any_of(std::begin(kPlain), std::end(kPlain),
                                    [&](const char* one) { return kind == one; });
  const bool is_deepspeed = kind == "DEEPSPEED";
  if (!is_plain && !is_deepspeed && kind != "FSDP" && kind != "MEGATRON_LM" && kind != "TP")
    keys.Fail(kind_names, fmt::format("found {}, expected NO, MULTI_GPU, FSDP, DEEPSPEED or "
                                      "MEGATRON_LM",
                                      QuotedJson(kind)));
  if (keys.Flag({"use_cpu"}, false)) keys.Fail({"use_cpu"}, "runs without GPUs are not supported");
  const std::string precision = keys.Word({"mixed_precision"});
  TrainerStep step;
  SetProductsOfAccelerate(keys, precision, &step, &draft);
  std::optional<FlatKeys> deepspeed;
  if (is_deepspeed) {
    deepspeed.emplace(DeepSpeedOfAccelerate(keys, source, precision));
    const bool is_bf16 = step.is_bf16;
    ReadDeepSpeed(*deepspeed, &step, &draft);
    step.is_bf16 = step.is_bf16 || is_bf16;
  }
  const Degree of_file = step.context;
  ReadDegreesOfAccelerate(keys, &step);
  if (step.context.value == 1) step.context = of_file;
  if (kind == "FSDP") ReadFsdpConfig(keys, &step, &draft);
  if (kind == "MEGATRON_LM" &&
      keys.Flag({"megatron_lm_config.megatron_lm_use_distributed_optimizer"}, false)) {
    step.sharing = TrainerSharing::kFsdp1;
    step.zero = 1;
  }
  if (keys.Flag({"megatron_lm_config.megatron_lm_recompute_activations"}, false))
    draft.Set("/training/recomputation", "selective");
  const JobConfig::Names model_names = {"model"};
  SetNamedModel(source.model, keys.Word(model_names), keys.OriginOf(model_names), &draft);
  SetSequenceBeside(keys, {"sequence", "sequence_length"}, &step, draft);
  const JobConfig::Names micro_names = {"micro_batch_size", "per_device_train_batch_size"};
  if (!keys.Has(micro_names)) {
    throw Error({draft.file(), 0, ""},
                "nothing says the batch of a rank; expected --set micro_batch_size=1");
  }
  step.micro_batch = {keys.WholeOr(micro_names, 1, 1 << 20, 1), keys.OriginOf(micro_names)};
  const JobConfig::Names passes_names = {"gradient_accumulation_steps",
                                         "deepspeed_config.gradient_accumulation_steps",
                                         "megatron_lm_config.megatron_lm_num_micro_batches"};
  step.passes = {keys.WholeOr(passes_names, 1, 1 << 16, 1), keys.OriginOf(passes_names)};
  if (const std::string recompute = keys.Word({"recomputation"}); !recompute.empty())
    draft.Set("/training/recomputation", recompute, keys.OriginOf({"recomputation"}));
  step.compiles = !keys.Word({"dynamo_config.dynamo_backend", "dynamo_backend"}).empty() &&
                  keys.Word({"dynamo_config.dynamo_backend", "dynamo_backend"}) != "NO" &&
                  keys.Word({"dynamo_config.dynamo_backend", "dynamo_backend"}) != "no";
  const JobConfig::Names ranks_names = {"num_processes"};
  std::optional<uint64_t> ranks;
  if (keys.Has(ranks_names)) ranks = keys.WholeOr(ranks_names, 1, kMostDegree, 1);
  const uint64_t data = PutTrainerOnMachine(source.cluster, ranks, keys.OriginOf(ranks_names),
                                            "--cluster, or num_processes", &step, &draft);
  SetTrainerStep(step, data, &draft);
  if (step.context.value > 1)
    draft.Set("/strategy/context_kind",
              is_deepspeed || keys.Has({"parallelism_config.parallelism_config_sp_size"})
                  ? "ulysses"
                  : "all-gather",
              step.context.from);
  if (deepspeed) {
    SetDeepSpeedBuckets(*deepspeed, step, &draft);
    RemarkOnRestOfDeepSpeed(*deepspeed, &draft);
  }
  draft.RemarkOnUnknown(keys.Unread({"compute_environment",
                                     "debug",
                                     "downcast",
                                     "machine_rank",
                                     "main_",
                                     "num_machines",
                                     "rdzv",
                                     "same_network",
                                     "tpu",
                                     "use_",
                                     "fsdp_config.",
                                     "deepspeed_config.deepspeed_",
                                     "deepspeed_config.zero3_init_flag",
                                     "deepspeed_config.zero3_save_16bit_model",
                                     "deepspeed_config.gradient_clipping",
                                     "deepspeed_config.offload_optimizer_nvme_path",
                                     "deepspeed_config.offload_param_nvme_path",
                                     "megatron_lm_config.",
                                     "fp8_config.",
                                     "dynamo",
                                     "enable_cpu",
                                     "gpu_ids",
                                     "ipex",
                                     "mpirun",
                                     "commands",
                                     "command_file",
                                     "deepspeed_hostfile",
                                     "ec2",
                                     "iam",
                                     "image_uri",
                                     "profile",
                                     "py_version",
                                     "pytorch_version",
                                     "region",
                                     "sagemaker",
                                     "transformers_version",
                                     "base_job",
                                     "additional_args",
                                     "fsdp_",
                                     "parallelism_config.",
                                     "tp_config.",
                                     "ipex_config",
                                     "mpirun_config",
                                     "deepspeed_fields"}));
  return draft.Finish();
}

}  // namespace rehearse
