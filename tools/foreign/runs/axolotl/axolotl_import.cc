#include "tools/foreign/runs/axolotl/axolotl_import.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/json_parse.h"
#include "tools/foreign/machines/infragraph/yaml_text.h"
#include "tools/foreign/runs/adapters.h"
#include "tools/foreign/runs/flat_keys.h"
#include "tools/foreign/runs/trainer_step.h"

namespace rehearse {
namespace {

// What makes it another kind of training. Not where its value is false.
struct OtherTraining {
  const char* key;
  const char* why;
};
constexpr OtherTraining kOtherTrainings[] = {
    {"rl", "training by preferences is not supported; expected a model that predicts tokens"},
    {"reward_model", "models of rewards are not supported; expected one that predicts tokens"},
    {"process_reward_model", "models of rewards are not supported"},
    {"num_labels", "models that classify are not supported; expected one that predicts tokens"},
    {"processor_type", "models of images or sound are not supported; expected text"},
    {"is_multimodal", "models of images or sound are not supported; expected text"},
    {"lisa_n_layers", "layers that are frozen now and then are not supported"},
    {"relora_steps", "adapters that are merged now and then are not supported"}};

void RefuseOtherTrainings(FlatKeys& keys) {
  for (const OtherTraining& other : kOtherTrainings) {
    const std::string word = keys.Word({other.key});
    if (!word.empty() && word != "false" && word != "False")
      keys.Fail({other.key}, fmt::format("found {}; {}", QuotedJson(word), other.why));
  }
  const std::string adapter = keys.Word({"adapter"});
  if (!adapter.empty() && adapter != "lora" && adapter != "qlora" && adapter != "false") {
    keys.Fail({"adapter"}, fmt::format("found {}, expected lora, qlora or none; --set adapter=null "
                                       "plays the run with all weights trained",
                                       QuotedJson(adapter)));
  }
  if (!keys.job().Texts({"unfrozen_parameters"}).empty())
    keys.Fail({"unfrozen_parameters"}, "frozen weights are not supported; expected all trained");
}

// Returns DeepSpeed's keys, if it is used.
std::optional<FlatKeys> DeepSpeedOf(FlatKeys& keys, const RunSource& source) {
  const JobConfig::Names names = {"deepspeed"};
  const std::string path = keys.Word(names);
  if (path.empty()) return std::nullopt;
  const std::optional<std::string> text =
      source.beside ? source.beside(path) : std::optional<std::string>();
  if (!text) {
    keys.Fail(names, fmt::format("there is no {} beside this file, or in a folder above; expected "
                                 "the JSON of DeepSpeed",
                                 QuotedJson(path)));
  }
  return std::optional<FlatKeys>(std::in_place, JsonDocument::FromText(*text, path), RunSettings{},
                                 "the keys of DeepSpeed, such as zero_optimization");
}

void ReadSharingOfAxolotl(FlatKeys& keys, std::optional<FlatKeys>* deepspeed, TrainerStep* step,
                          ScenarioDraft* draft) {
  const auto degree = [&](JobConfig::Names names) {
    return Degree{keys.WholeOr(names, 1, kMostDegree, 1), keys.OriginOf(names)};
  };
  const bool has_list = !keys.job().Texts({"fsdp"}).empty();
  const std::vector<std::string> unread = keys.Unread({});
  const bool has_config = std::any_of(unread.begin(), unread.end(), [](const std::string& key) {
    return key.starts_with("fsdp_config.");
  });
  const Degree shard = degree({"dp_shard_size"});
  const Degree replicas = degree({"dp_replicate_size"});
  if (*deepspeed) {
    ReadDeepSpeed(**deepspeed, step, draft);
  } else if (has_list || has_config || shard.value > 1) {
    ReadFsdpConfig(keys, step, draft);
    if (!has_list && !has_config) step->sharing = TrainerSharing::kFsdp2;
  }
  step->tensor = degree({"tensor_parallel_size"});
  step->context = degree({"context_parallel_size", "sequence_parallel_degree"});
  step->expert = degree({"expert_parallel_size"});
  if (shard.value > 1) step->shard = shard;
  if (replicas.value > 1) step->replicas = replicas;
}

void SetAdaptersOfAxolotl(FlatKeys& keys, ScenarioDraft* draft) {
  const std::string adapter = keys.Word({"adapter"});
  if (adapter != "lora" && adapter != "qlora") return;
  constexpr int64_t kMostRank = 1 << 16;
  NamedAdapters adapters;
  adapters.rank = keys.WholeOr({"lora_r"}, 1, kMostRank, 8);
  adapters.from = keys.OriginOf({"adapter"});
  const bool is_all = keys.Flag({"lora_target_linear"}, false) ||
                      keys.Word({"lora_target_modules"}) == "all-linear";
  if (!is_all) adapters.on = keys.job().Texts({"lora_target_modules"});
  if (!is_all && adapters.on.empty()) adapters.on = {"q_proj", "v_proj"};  // PEFT's own
  adapters.is_quantised = adapter == "qlora" || keys.Flag({"load_in_4bit"}, false) ||
                          keys.Flag({"load_in_8bit"}, false);
  if (!keys.job().Texts({"lora_modules_to_save"}).empty())
    draft->Remark("not supported: lora_modules_to_save; only adapters are trained");
  SetAdapters(adapters, draft);
}

void SetArithmeticOfAxolotl(FlatKeys& keys, TrainerStep* step, ScenarioDraft* draft) {
  const bool is_bf16 = keys.Flag({"bf16", "bfloat16"}, true) || keys.Word({"bf16"}) == "full";
  const bool is_fp16 = keys.Flag({"fp16", "float16"}, false);
  step->is_bf16 = is_bf16 || is_fp16;
  if (is_fp16 && !is_bf16) draft->Remark("fp16: played as bf16, which has as many bits");
  if (keys.Flag({"fp8"}, false)) {
    draft->Set("/training/products", "fp8-current", keys.OriginOf({"fp8"}));
    if (keys.Flag({"fp8_enable_fsdp_float8_all_gather"}, false) && step->zero == 3)
      draft->Set("/training/narrow_parameters", true);
  }
  step->compiles = keys.Flag({"torch_compile"}, false);
  const JobConfig::Names recompute_names = {"gradient_checkpointing"};
  const std::string recompute = keys.Word(recompute_names);
  if (recompute == "offload" || recompute == "offload_disk" || keys.Flag(recompute_names, false)) {
    draft->Set("/training/recomputation", "full", keys.OriginOf(recompute_names));
    if (recompute.starts_with("offload"))
      draft->Remark("not supported: gradient_checkpointing: offload; inputs of layers are kept");
    const JobConfig::Names again_names = {"gradient_checkpointing_kwargs.use_reentrant"};
    if (keys.Has(again_names))
      draft->Set("/training/recomputed_last_product", keys.Flag(again_names, false),
                 keys.OriginOf(again_names));
  }
  const std::string offload = keys.Word({"activation_offloading"});
  if (!offload.empty() && offload != "false")
    draft->Remark("not supported: activation_offloading; activations stay on the devices");
  SetTrainerOptimizer(
      keys.Word({"optimizer"}).empty() ? "adamw_torch_fused" : keys.Word({"optimizer"}),
      keys.OriginOf({"optimizer"}), draft);
  const JobConfig::Names attention_names = {"attn_implementation"};
  std::string attention = keys.Word(attention_names);
  if (attention.empty() && keys.Flag({"flash_attention"}, false)) attention = "flash_attention_2";
  if (attention.empty() && keys.Flag({"xformers_attention"}, false)) attention = "xformers";
  if (attention.empty() && keys.Flag({"eager_attention"}, false)) attention = "eager";
  SetTrainerAttention(attention, keys.OriginOf(attention_names), draft);
}

void SetKernelsOfAxolotl(FlatKeys& keys, ScenarioDraft* draft) {
  const std::vector<std::string> plugins = keys.job().Texts({"plugins"});
  bool is_cut = keys.Flag({"cut_cross_entropy", "liger_fused_linear_cross_entropy"}, false) ||
                keys.Flag({"liger_cross_entropy"}, false) ||
                keys.Flag({"flash_attn_cross_entropy"}, false);
  for (const std::string& plugin : plugins) {
    is_cut = is_cut || plugin.ends_with("CutCrossEntropyPlugin");
    if (plugin.ends_with("DiffusionPlugin") || plugin.ends_with("LLMCompressorPlugin"))
      draft->Remark(fmt::format("not supported: plugins {}; it is left out", plugin));
  }
  if (is_cut) {
    draft->Set("/training/cross_entropy", "fused", keys.OriginOf({"plugins"}));
    draft->Remark("the loss is computed from logits that are kept in 16 bits, not in pieces");
  }
  if (keys.Flag({"liger_rms_norm"}, false) && keys.Flag({"liger_glu_activation"}, false))
    draft->Set("/training/kernels", "fused", keys.OriginOf({"liger_rms_norm"}));
  const std::vector<std::string> unread = keys.Unread({});
  for (const char* table : {"qat.", "torchao."}) {
    const bool is_there = std::any_of(unread.begin(), unread.end(), [&](const std::string& key) {
      return key.starts_with(table);
    });
    if (is_there)
      draft->Remark(fmt::format("not supported: {}; rounding of weights takes no time here",
                                std::string(table, std::string_view(table).size() - 1)));
  }
}

void SetSequenceOfAxolotl(FlatKeys& keys, TrainerStep* step, ScenarioDraft* draft) {
  const JobConfig::Names names = {"sequence_len"};
  step->sequence = keys.WholeOr(names, 1, int64_t{1} << 24, 512);
  step->sequence_from = keys.OriginOf(names);
  const bool is_packed = keys.Flag({"sample_packing"}, false);
  const bool is_padded = keys.Flag({"pad_to_sequence_len"}, is_packed);
  if (is_packed)
    draft->Remark(
        "sample_packing: every token attends to all before it, of other samples too, unless "
        "training.document says how long those are");
  if (!is_packed && !is_padded) {
    draft->Remark(
        "samples are neither packed nor padded there: they are shorter than sequence_len, with "
        "which they are played");
  }
  const JobConfig::Names micro_names = {"micro_batch_size"};
  const JobConfig::Names passes_names = {"gradient_accumulation_steps"};
  step->micro_batch = {keys.WholeOr(micro_names, 1, 1 << 20, 1), keys.OriginOf(micro_names)};
  step->passes = {keys.WholeOr(passes_names, 1, 1 << 16, 1), keys.OriginOf(passes_names)};
  const JobConfig::Names batch_names = {"batch_size"};
  const uint64_t batch = keys.WholeOr(batch_names, 1, 1 << 20, 0);
  if (batch > 0 && !keys.Has(passes_names))
    step->passes = {std::max<uint64_t>(batch / step->micro_batch.value, 1),
                    keys.OriginOf(batch_names)};
}

// What decides nothing of a step's time.
const std::vector<std::string>& QuietKeysOfAxolotl() {
  static const std::vector<std::string> quiet = {"output_dir",
                                                 "learning_rate",
                                                 "dataset",
                                                 "lr_",
                                                 "logging_",
                                                 "num_epochs",
                                                 "tf32",
                                                 "warmup",
                                                 "save",
                                                 "val_",
                                                 "weight_decay",
                                                 "wandb",
                                                 "eval",
                                                 "lora_",
                                                 "special_tokens",
                                                 "resume_",
                                                 "load_in",
                                                 "model_type",
                                                 "chat_template",
                                                 "tokenizer",
                                                 "strict",
                                                 "trust_remote",
                                                 "liger_",
                                                 "eot_",
                                                 "max_steps",
                                                 "fsdp_config.",
                                                 "loss_",
                                                 "seed",
                                                 "torchdistx",
                                                 "gptq",
                                                 "ddp_",
                                                 "push_",
                                                 "hub_",
                                                 "max_packed",
                                                 "adam_",
                                                 "max_grad",
                                                 "train_on",
                                                 "group_by",
                                                 "remove_unused",
                                                 "skip_prepare",
                                                 "tokens",
                                                 "debug",
                                                 "pretraining_dataset",
                                                 "shuffle",
                                                 "cosine_",
                                                 "eta_min",
                                                 "early_stopping",
                                                 "use_swanlab",
                                                 "swanlab",
                                                 "trackio",
                                                 "qat.",
                                                 "torchao.",
                                                 "fused_",
                                                 "flash_attn",
                                                 "flash_optimum",
                                                 "added_tokens",
                                                 "base_model_",
                                                 "test_datasets",
                                                 "xformers",
                                                 "noisy",
                                                 "use_tensorboard",
                                                 "mlflow",
                                                 "comet",
                                                 "split_",
                                                 "min_sample",
                                                 "streaming",
                                                 "local_rank",
                                                 "resize_",
                                                 "default_",
                                                 "is_",
                                                 "type_of",
                                                 "gradient_checkpointing_kwargs",
                                                 "sample_packing_",
                                                 "profiler",
                                                 "revision",
                                                 "pad_",
                                                 "sdp_",
                                                 "s2_",
                                                 "lisa_",
                                                 "optim_",
                                                 "dataloader",
                                                 "batch_flattening",
                                                 "fix_untrained",
                                                 "mean_resizing",
                                                 "auto_resume",
                                                 "multipack",
                                                 "torch_dtype",
                                                 "landmark",
                                                 "use_cache",
                                                 "cut_cross",
                                                 "rope",
                                                 "experimental_",
                                                 "opt",
                                                 "hf_"};
  return quiet;
}

}  // namespace

ImportedScenario ImportAxolotl(const RunSource& source) {
  ScenarioDraft draft(source.file);
  FlatKeys keys(ReadYaml(source.text, draft.file()), source.settings,
                "a run of axolotl, such as base_model: meta-llama/Llama-3.1-8B");
  if (!keys.Has({"base_model"}) && !source.model) {
    throw Error({draft.file(), 0, ""}, "no run of axolotl; expected its base_model");
  }
  RefuseOtherTrainings(keys);
  std::optional<FlatKeys> deepspeed = DeepSpeedOf(keys, source);
  TrainerStep step;
  ReadSharingOfAxolotl(keys, &deepspeed, &step, &draft);
  SetNamedModel(source.model, keys.Word({"base_model"}), keys.OriginOf({"base_model"}), &draft);
  SetAdaptersOfAxolotl(keys, &draft);
  SetSequenceOfAxolotl(keys, &step, &draft);
  SetArithmeticOfAxolotl(keys, &step, &draft);
  SetKernelsOfAxolotl(keys, &draft);
  std::optional<uint64_t> ranks;
  if (step.shard) {
    uint64_t product = 1;  // of factors of at most 2^17
    for (const uint64_t degree :
         {step.shard->value, step.replicas.value, step.tensor.value, step.context.value})
      product = std::min(product * degree, uint64_t{1} << 40);
    ranks = product;
  }
  const uint64_t data = PutTrainerOnMachine(
      source.cluster, ranks, {"dp_shard_size x dp_replicate_size x tensor x context", 0},
      "--cluster, since axolotl's file does not say it", &step, &draft);
  SetTrainerStep(step, data, &draft);
  if (deepspeed) {
    SetDeepSpeedBuckets(*deepspeed, step, &draft);
    RemarkOnRestOfDeepSpeed(*deepspeed, &draft);
  }
  draft.RemarkOnUnknown(keys.Unread(QuietKeysOfAxolotl()));
  return draft.Finish();
}

}  // namespace rehearse
