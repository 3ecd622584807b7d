#include "tools/foreign/runs/trainer_step.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/base/error.h"
#include "sim/base/json_parse.h"
#include "tools/foreign/runs/model_names.h"

namespace rehearse {
namespace {

bool Contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

const char* SoftwareOf(const TrainerStep& step) {
  if (step.sharing == TrainerSharing::kDeepSpeed) return "deepspeed-zero3";
  return step.compiles ? "fsdp-compiled" : "fsdp-eager";
}

}  // namespace

uint64_t PutTrainerOnMachine(const std::string& cluster, std::optional<uint64_t> ranks,
                             const Origin& from, const std::string& hint, TrainerStep* step,
                             ScenarioDraft* draft) {
  ImportedMachine machine = draft->PutOnMachine(
      cluster, step->is_of_one_device && cluster.empty() ? 1 : ranks, from, hint);
  if (step->is_of_one_device && machine.ranks > 1) {
    machine.ranks = 1;
    machine.spares = true;
  }
  if (machine.spares) draft->Set("/placement", "block");
  const uint64_t samples =
      RanksLeft(*draft, machine, {step->tensor, step->context, step->replicas});
  if (step->sharing == TrainerSharing::kDdp || step->zero == 0)
    return samples * step->replicas.value;
  const uint64_t of_node =
      std::max<uint64_t>(machine.of_node / (step->tensor.value * step->context.value), 1);
  if (step->is_hybrid && !step->shard && samples % of_node == 0)
    step->shard = Degree{of_node, step->sharing_from};
  if (!step->shard) {
    step->shard = Degree{samples, {}};
  } else if (step->shard->value != samples) {
    // Ranks beyond a shard hold copies of it.
    const uint64_t copies =
        RanksLeft(*draft, machine, {step->tensor, step->context, step->replicas, *step->shard});
    step->replicas.value *= copies;
  }
  return step->shard->value * step->replicas.value;
}

void SetTrainerStep(const TrainerStep& step, uint64_t data, ScenarioDraft* draft) {
  draft->Set("/software", SoftwareOf(step));
  const uint64_t at_once = std::max<uint64_t>(step.micro_batch.value * data, 1);
  if (step.passes.value > static_cast<uint64_t>(kMostSequences) / at_once)
    draft->Fail(step.passes.from, "the batch of all ranks is more than 4,294,967,296 sequences");
  draft->Set("/training/batch", at_once * step.passes.value, step.micro_batch.from);
  draft->Set("/training/sequence", step.sequence, step.sequence_from);
  draft->Set("/training/micro_batches", step.passes.value, step.passes.from);
  if (!draft->json()["training"].contains("recomputation"))
    draft->Set("/training/recomputation", "none");
  if (!step.is_bf16) draft->Set("/training/precision", "fp32");
  const bool is_shared = step.sharing != TrainerSharing::kDdp && step.zero > 0;
  draft->Set("/strategy/kind", "combined");
  draft->Set("/strategy/tensor", step.tensor.value, step.tensor.from);
  if (step.context.value > 1)
    draft->Set("/strategy/context", step.context.value, step.context.from);
  if (is_shared) {
    draft->Set("/strategy/shard", step.shard ? step.shard->value : data, step.sharing_from);
    if (step.replicas.value > 1)
      draft->Set("/strategy/replicas", step.replicas.value, step.replicas.from);
  } else {
    draft->Set("/strategy/data", data);
    if (step.is_bf16) draft->Set("/training/gradients", "bf16");
  }
  draft->Set("/strategy/zero", is_shared ? step.zero : 0, step.sharing_from);
  if (step.sharing == TrainerSharing::kFsdp2)
    draft->Set("/strategy/copies", "per-parameter", step.sharing_from);
  if (step.expert.value <= 1) return;
  if (!HasExperts(*draft)) draft->Fail(step.expert.from, "the model has no experts; expected 1");
  draft->Set("/strategy/expert", step.expert.value, step.expert.from);
}

bool SetUpdateRule(const std::string& name, const std::string& given, const Origin& from,
                   ScenarioDraft* draft) {
  if (name != "lamb" && name != "sgd" && name != "muon") return false;
  if (name == "muon" && HasExperts(*draft)) {
    draft->Remark(fmt::format("not supported: {} {} of a model with experts; played as Adam",
                              from.name, given));
    return true;
  }
  draft->Set("/training/update_rule", name, from);
  return true;
}

void SetTrainerOptimizer(const std::string& given, const Origin& from, ScenarioDraft* draft) {
  std::string name = given;
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  const bool is_adam = Contains(name, "adam");
  const bool has_few_bits =
      Contains(name, "8bit") || Contains(name, "4bit") || Contains(name, "bnb");
  const std::string last = name.substr(name.rfind('.') + 1);
  const std::string rule = last == "fusedlamb" ? "lamb" : last;
  // DeepSpeed's OneBitAdam, ZeroOneAdam and OneBitLamb.
  if (last.starts_with("onebit") || last.starts_with("zeroone"))
    draft->Remark(fmt::format(
        "not supported: {} {}; gradients are summed with all their bits, not compressed to one",
        from.name, given));
  if (!is_adam && SetUpdateRule(rule, given, from, draft)) {
    if (rule == "sgd")
      draft->Remark(fmt::format("{} {}: it is taken to have a momentum", from.name, given));
  } else if (!is_adam) {
    draft->Remark(fmt::format("not supported: {} {}; played as Adam", from.name, given));
  } else if (has_few_bits) {
    draft->Set("/training/optimizer", "fused", from);
    draft->Set("/training/moments", "bf16", from);
    draft->Remark(
        fmt::format("not supported: {} {}; Adam's moments have 16 bits", from.name, given));
  } else if (Contains(name, "fused")) {
    draft->Set("/training/optimizer", "fused", from);
  }
  if (Contains(name, "paged"))
    draft->Remark(fmt::format("not supported: {} {}; the optimizer's state stays on the devices",
                              from.name, given));
}

void SetTrainerAttention(const std::string& name, const Origin& from, ScenarioDraft* draft) {
  const char* ours = nullptr;
  if (name == "flash_attention_2") ours = "flash-2";
  if (name == "flash_attention_3" || Contains(name, "flash-attn3")) ours = "flash-3";
  if (name == "xformers") ours = "efficient";
  if (name == "eager") ours = "unfused";
  if (ours != nullptr) draft->Set("/training/attention", ours, from);
  if (ours == nullptr && !name.empty() && name != "sdpa")
    draft->Remark(fmt::format("not supported: {} {}; attention is FlashAttention-2's", from.name,
                              QuotedJson(name)));
}

namespace {

// Lists keys of FSDP that were not read and change something.
void RemarkOnRestOfFsdp(const FlatKeys& keys, ScenarioDraft* draft) {
  constexpr std::string_view kTable = "fsdp_config.";
  constexpr std::string_view kQuiet[] = {"auto_wrap_policy",
                                         "transformer_layer_cls_to_wrap",
                                         "min_num_params",
                                         "state_dict_type",
                                         "final_state_dict_type",
                                         "save_state_dict_type",
                                         "cpu_ram_efficient_loading",
                                         "sync_module_states",
                                         "use_orig_params",
                                         "limit_all_gathers",
                                         "backward_prefetch",
                                         "backward_prefetch_policy"};
  std::vector<std::string> unknown;
  for (const std::string& key : keys.Unread({})) {
    if (!key.starts_with(kTable)) continue;
    std::string_view name = std::string_view(key).substr(kTable.size());
    if (name.starts_with("fsdp_")) name.remove_prefix(std::string_view("fsdp_").size());
    if (std::find(std::begin(kQuiet), std::end(kQuiet), name) == std::end(kQuiet))
      unknown.push_back(key);
  }
  draft->RemarkOnUnknown(unknown);
}

}  // namespace

void ReadFsdpConfig(FlatKeys& keys, TrainerStep* step, ScenarioDraft* draft) {
  const JobConfig::Names version_names = {"fsdp_config.fsdp_version", "fsdp_version"};
  const JobConfig::Names strategy_names = {"fsdp_config.fsdp_sharding_strategy",
                                           "fsdp_config.sharding_strategy"};
  const JobConfig::Names reshard_names = {"fsdp_config.fsdp_reshard_after_forward",
                                          "fsdp_config.reshard_after_forward"};
  const uint64_t version = keys.WholeOr(version_names, 1, 2, 1);
  step->sharing = version == 2 ? TrainerSharing::kFsdp2 : TrainerSharing::kFsdp1;
  step->zero = 3;
  std::string strategy = keys.Word(strategy_names);
  std::string reshard = keys.Word(reshard_names);
  if (strategy.empty() && !reshard.empty() && Contains(reshard, "SHARD")) strategy = reshard;
  step->sharing_from = keys.OriginOf(strategy.empty() ? version_names : strategy_names);
  // Formerly a number, from 1.
  constexpr const char* kStrategies[] = {"FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD", "HYBRID_SHARD",
                                         "HYBRID_SHARD_ZERO2"};
  size_t kind = 0;
  for (size_t i = 0; i < std::size(kStrategies); ++i)
    if (strategy == kStrategies[i] || strategy == std::to_string(i + 1)) kind = i;
  if (!strategy.empty() && kind == 0 && strategy != kStrategies[0] && strategy != "1") {
    keys.Fail(strategy_names,
              fmt::format("found {}, expected FULL_SHARD, SHARD_GRAD_OP, NO_SHARD, HYBRID_SHARD "
                          "or HYBRID_SHARD_ZERO2",
                          QuotedJson(strategy)));
  }
  if (kind == 1 || kind == 4) step->zero = 2;
  if (kind == 2) step->zero = 0;
  step->is_hybrid = kind >= 3;
  const bool is_kept = version == 2 && (reshard == "false" || reshard == "False");
  if (is_kept) draft->Set("/strategy/reshard_after_forward", false, keys.OriginOf(reshard_names));
  const JobConfig::Names prefetch_names = {"fsdp_config.fsdp_backward_prefetch",
                                           "fsdp_config.fsdp_backward_prefetch_policy",
                                           "fsdp_config.backward_prefetch"};
  if (keys.Word(prefetch_names) == "BACKWARD_POST" && step->zero == 3)
    draft->Set("/strategy/backward_prefetch", "post", keys.OriginOf(prefetch_names));
  if (keys.Flag(
          {"fsdp_config.fsdp_activation_checkpointing", "fsdp_config.activation_checkpointing"},
          false)) {
    draft->Set("/training/recomputation", "full",
               keys.OriginOf({"fsdp_config.fsdp_activation_checkpointing",
                              "fsdp_config.activation_checkpointing"}));
  }
  const JobConfig::Names offload_names = {"fsdp_config.fsdp_offload_params",
                                          "fsdp_config.offload_params"};
  if (keys.Flag(offload_names, false))
    SetOnHost(keys.OriginOf(offload_names), /*parameters=*/step->zero == 3, draft);
  const JobConfig::Names ahead_names = {"fsdp_config.fsdp_forward_prefetch",
                                        "fsdp_config.forward_prefetch"};
  if (keys.Flag(ahead_names, false))
    draft->Remark(fmt::format("not supported: {}; the next gather starts as it usually does",
                              keys.OriginOf(ahead_names).name));
  RemarkOnRestOfFsdp(keys, draft);
}

void SetOnHost(const Origin& from, bool parameters, ScenarioDraft* draft) {
  draft->Set("/training/optimizer_on_host", true, from);
  if (parameters) draft->Set("/training/parameters_on_host", true, from);
}

void ReadDeepSpeed(FlatKeys& keys, TrainerStep* step, ScenarioDraft* draft) {
  const JobConfig::Names stage_names = {"zero_optimization.stage"};
  step->sharing = TrainerSharing::kDeepSpeed;
  step->zero = keys.WholeOr(stage_names, 0, 3, 0);
  step->sharing_from = keys.OriginOf(stage_names);
  const JobConfig::Names bf16_names = {"bf16.enabled", "bfloat16.enabled"};
  const JobConfig::Names fp16_names = {"fp16.enabled"};
  const bool is_bf16 = keys.Flag(bf16_names, false);
  const bool is_fp16 = keys.Flag(fp16_names, false, !is_bf16);
  step->is_bf16 = is_bf16 || is_fp16;
  if (is_fp16 && !is_bf16) draft->Remark("fp16: played as bf16, which has as many bits");
  const JobConfig::Names mics_names = {"zero_optimization.mics_shard_size"};
  const auto mics = static_cast<int64_t>(
      keys.Has(mics_names) ? keys.job().WholeOr(mics_names, -1, kMostDegree, -1) : -1);
  if (mics > 0) step->shard = Degree{static_cast<uint64_t>(mics), keys.OriginOf(mics_names)};
  const std::string optimizer_device = keys.Word({"zero_optimization.offload_optimizer.device"});
  const bool is_old_offload = keys.Flag({"zero_optimization.cpu_offload"}, false);
  const bool has_optimizer =
      is_old_offload || (!optimizer_device.empty() && optimizer_device != "none");
  if (has_optimizer) {
    SetOnHost(keys.OriginOf(
                  {"zero_optimization.offload_optimizer.device", "zero_optimization.cpu_offload"}),
              /*parameters=*/false, draft);
  }
  const JobConfig::Names parameter_names = {"zero_optimization.offload_param.device"};
  const std::string device = keys.Word(parameter_names);
  const bool is_on_host = !device.empty() && device != "none";
  if (is_on_host && step->zero == 3 && has_optimizer) {
    draft->Set("/training/parameters_on_host", true, keys.OriginOf(parameter_names));
  } else if (is_on_host) {
    draft->Remark(
        "not supported: offload_param without offload_optimizer, or below stage 3; parameters stay "
        "on the devices");
  }
  if (optimizer_device == "nvme" || device == "nvme")
    draft->Remark("nvme: played as the host's memory, which is faster");
  const JobConfig::Names scatter_names = {"zero_optimization.reduce_scatter"};
  if (!keys.Flag(scatter_names, true, true))
    draft->Remark(
        "not supported: zero_optimization.reduce_scatter false; gradients are summed by "
        "reduce-scatter all the same");
  const JobConfig::Names tensor_names = {"tensor_parallel.autotp_size"};
  step->tensor = {keys.WholeOr(tensor_names, 1, kMostDegree, 1), keys.OriginOf(tensor_names)};
  const JobConfig::Names context_names = {"sequence_parallel_size"};
  step->context = {keys.WholeOr(context_names, 1, kMostDegree, 1), keys.OriginOf(context_names)};
  for (const char* table :
       {"compression_training", "quantize_training", "sparse_attention", "progressive_layer_drop",
        "data_efficiency", "autotuning", "pipeline"}) {
    const std::vector<std::string> unread = keys.Unread({});
    const bool is_there = std::any_of(unread.begin(), unread.end(), [&](const std::string& key) {
      return key.starts_with(std::string(table) + ".");
    });
    if (is_there) draft->Remark(fmt::format("not supported: {}; it is left out", table));
  }
}

namespace {

// Keys of DeepSpeed that change nothing of the step that is played: whole tables end with a dot.
constexpr std::string_view kQuietInDeepSpeed[] = {
    "zero_optimization.allgather_partitions",
    "zero_optimization.allgather_bucket_size",
    "zero_optimization.contiguous_gradients",
    "zero_optimization.round_robin_gradients",
    "zero_optimization.sub_group_size",
    "zero_optimization.stage3_gather_16bit_weights_on_model_save",
    "zero_optimization.stage3_gather_fp16_weights_on_model_save",
    "zero_optimization.stage3_param_persistence_threshold",
    "zero_optimization.stage3_model_persistence_threshold",
    "zero_optimization.stage3_max_reuse_distance",
    "zero_optimization.elastic_checkpoint",
    "zero_optimization.load_from_fp32_weights",
    "zero_optimization.ignore_unused_parameters",
    "zero_optimization.legacy_stage1",
    "zero_optimization.memory_efficient_linear",
    "zero_optimization.override_module_apply",
    "zero_optimization.log_trace_cache_warnings",
    "zero_optimization.mics_hierarchical_params_gather",
    "zero_optimization.use_multi_rank_bucket_allreduce",
    "zero_optimization.pipeline_loading_checkpoint",
    "zero_optimization.offload_optimizer.pin_memory",
    "zero_optimization.offload_optimizer.nvme_path",
    "zero_optimization.offload_optimizer.buffer_count",
    "zero_optimization.offload_optimizer.buffer_size",
    "zero_optimization.offload_optimizer.pipeline_read",
    "zero_optimization.offload_optimizer.pipeline_write",
    "zero_optimization.offload_optimizer.fast_init",
    "zero_optimization.offload_param.pin_memory",
    "zero_optimization.offload_param.nvme_path",
    "zero_optimization.offload_param.buffer_count",
    "zero_optimization.offload_param.buffer_size",
    "zero_optimization.offload_param.max_in_cpu",
    "zero_allow_untested_optimizer",
    "zero_force_ds_cpu_optimizer",
    "gradient_clipping",
    "gradient_predivide_factor",
    "prescale_gradients",
    "steps_per_print",
    "train_batch_size",
    "train_micro_batch_size_per_gpu",
    "gradient_accumulation_steps",
    "wall_clock_breakdown",
    "memory_breakdown",
    "dump_state",
    "disable_allgather",
    "fp16.auto_cast",
    "fp16.loss_scale",
    "fp16.initial_scale_power",
    "fp16.loss_scale_window",
    "fp16.hysteresis",
    "fp16.consecutive_hysteresis",
    "fp16.min_loss_scale",
    "bf16.check_grad_overflow",
    "bfloat16.check_grad_overflow",
    "bf16.immediate_grad_update",
    "activation_checkpointing.contiguous_memory_optimization",
    "activation_checkpointing.number_checkpoints",
    "activation_checkpointing.synchronize_checkpoint_boundary",
    "activation_checkpointing.profile",
    "optimizer.params.",
    "scheduler.",
    "flops_profiler.",
    "tensorboard.",
    "wandb.",
    "csv_monitor.",
    "comet.",
    "comms_logger.",
    "checkpoint.",
    "aio.",
    "elasticity."};

// Tables that ReadDeepSpeed() has remarked on.
constexpr std::string_view kLeftOutOfDeepSpeed[] = {
    "compression_training.", "quantize_training.", "sparse_attention.", "progressive_layer_drop.",
    "data_efficiency.",      "autotuning.",        "pipeline."};

bool IsQuietInDeepSpeed(std::string_view key) {
  const auto fits = [key](std::string_view known) {
    return known.ends_with('.') ? key.starts_with(known) : key == known;
  };
  return std::any_of(std::begin(kQuietInDeepSpeed), std::end(kQuietInDeepSpeed), fits) ||
         std::any_of(std::begin(kLeftOutOfDeepSpeed), std::end(kLeftOutOfDeepSpeed), fits);
}

}  // namespace

void RemarkOnRestOfDeepSpeed(FlatKeys& keys, ScenarioDraft* draft) {
  std::vector<std::string> unknown = keys.Unread({});
  std::erase_if(unknown, [&](const std::string& key) {
    const bool is_off = key.ends_with(".enabled") && keys.Word({key.c_str()}) == "false";
    return is_off || IsQuietInDeepSpeed(key);
  });
  draft->RemarkOnUnknown(unknown);
}

void SetDeepSpeedBuckets(FlatKeys& keys, const TrainerStep& step, ScenarioDraft* draft) {
  const std::string optimizer = keys.Word({"optimizer.type"});
  if (!optimizer.empty() && optimizer != "AdamW" && optimizer != "Adam")
    SetTrainerOptimizer(optimizer, keys.OriginOf({"optimizer.type"}), draft);
  const JobConfig::Names hpz_names = {"zero_optimization.zero_hpz_partition_size"};
  const uint64_t within = keys.WholeOr(hpz_names, 1, kMostDegree, 1);
  const JobConfig::Names overlap_names = {"zero_optimization.overlap_comm"};
  const bool overlaps = keys.Flag(overlap_names, step.zero == 3, true);
  const auto hidden = static_cast<uint64_t>(std::max<int64_t>(HiddenSizeOf(*draft), 1));
  constexpr int64_t kMost = int64_t{1} << 40;
  // What is "auto" is filled in by transformers, from the model's hidden size.
  const auto elements = [&](const char* name, uint64_t by_model, uint64_t usual) -> uint64_t {
    const std::string word = keys.Word({name});
    if (word == "auto") return by_model;
    if (word.empty()) return usual;
    const double value = keys.job().At({name}).Number(0, static_cast<double>(kMost));
    return static_cast<uint64_t>(value);
  };
  const uint64_t reduced =
      elements("zero_optimization.reduce_bucket_size", hidden * hidden, 500'000'000);
  const uint64_t ahead = elements("zero_optimization.stage3_prefetch_bucket_size",
                                  hidden * hidden * 9 / 10, 50'000'000);
  const uint64_t live =
      elements("zero_optimization.stage3_max_live_parameters", 1'000'000'000, 1'000'000'000);
  for (const char* name :
       {"zero_optimization.zero_quantized_weights", "zero_optimization.zero_quantized_gradients"}) {
    if (keys.Flag({name}, false))
      draft->Remark(fmt::format("not supported: {}; collectives carry 16 bits", name));
  }
  if (step.zero >= 2 && reduced > 0)
    draft->Set("/strategy/reduce_elements", reduced,
               keys.OriginOf({"zero_optimization.reduce_bucket_size"}));
  if (step.zero == 3) {
    draft->Set("/strategy/prefetch_elements", ahead,
               keys.OriginOf({"zero_optimization.stage3_prefetch_bucket_size"}));
    draft->Set("/strategy/most_gathered", live,
               keys.OriginOf({"zero_optimization.stage3_max_live_parameters"}));
    if (within > 1) draft->Set("/strategy/backward_within", within, keys.OriginOf(hpz_names));
  }
  if (!overlaps) {
    draft->Set("/strategy/overlap_gradients", false, keys.OriginOf(overlap_names));
    draft->Set("/strategy/overlap_reduce_scatter", false, keys.OriginOf(overlap_names));
  }
}

}  // namespace rehearse
