#include "tools/foreign/runs/nemo/nemo_import.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/json_parse.h"
#include "tools/foreign/runs/megatron/megatron_import.h"
#include "tools/foreign/runs/megatron/megatron_parts.h"
#include "tools/foreign/runs/nemo/python_recipe.h"

namespace rehearse {
namespace {

enum class KeyForm : uint8_t {
  kValue,      // a number, a text, or a list of such
  kSwitch,     // given where it is true
  kSwitchOff,  // given where it is false
};

struct NemoName {
  const char* theirs = "";
  const char* ours = "";  // Megatron-LM's argument
  KeyForm form = KeyForm::kValue;
};
constexpr NemoName kNemoNames[] = {
    {"tensor_model_parallel_size", "tensor-model-parallel-size"},
    {"pipeline_model_parallel_size", "pipeline-model-parallel-size"},
    {"virtual_pipeline_model_parallel_size", "num-virtual-stages-per-pipeline-rank"},
    {"context_parallel_size", "context-parallel-size"},
    {"expert_model_parallel_size", "expert-model-parallel-size"},
    {"expert_tensor_parallel_size", "expert-tensor-parallel-size"},
    {"sequence_parallel", "sequence-parallel", KeyForm::kSwitch},
    {"pipeline_model_parallel_layout", "pipeline-model-parallel-layout"},
    {"account_for_embedding_in_pipeline_split", "account-for-embedding-in-pipeline-split",
     KeyForm::kSwitch},
    {"account_for_loss_in_pipeline_split", "account-for-loss-in-pipeline-split", KeyForm::kSwitch},
    {"num_layers_in_first_pipeline_stage", "decoder-first-pipeline-num-layers"},
    {"num_layers_in_last_pipeline_stage", "decoder-last-pipeline-num-layers"},
    {"num_layers", "num-layers"},
    {"mtp_num_layers", "mtp-num-layers"},
    {"mtp_hybrid_override_pattern", "mtp-hybrid-override-pattern"},
    {"mtp_use_repeated_layer", "mtp-use-repeated-layer", KeyForm::kSwitch},
    {"mtp_loss_scaling_factor", "mtp-loss-scaling-factor"},
    {"seq_length", "seq-length"},
    {"micro_batch_size", "micro-batch-size"},
    {"global_batch_size", "global-batch-size"},
    {"recompute_granularity", "recompute-granularity"},
    {"recompute_method", "recompute-method"},
    {"recompute_num_layers", "recompute-num-layers"},
    {"recompute_modules", "recompute-modules"},
    {"cpu_offloading_num_layers", "cpu-offloading-num-layers"},
    {"fine_grained_activation_offloading", "fine-grained-activation-offloading", KeyForm::kSwitch},
    {"use_distributed_optimizer", "use-distributed-optimizer", KeyForm::kSwitch},
    {"use_megatron_fsdp", "use-megatron-fsdp", KeyForm::kSwitch},
    {"data_parallel_sharding_strategy", "data-parallel-sharding-strategy"},
    {"num_distributed_optimizer_instances", "num-distributed-optimizer-instances"},
    {"overlap_grad_reduce", "overlap-grad-reduce", KeyForm::kSwitch},
    {"overlap_param_gather", "overlap-param-gather", KeyForm::kSwitch},
    {"grad_reduce_in_fp32", "grad-reduce-in-bf16", KeyForm::kSwitchOff},
    {"tp_comm_overlap", "tp-comm-overlap", KeyForm::kSwitch},
    {"overlap_p2p_comm", "no-overlap-p2p-communication", KeyForm::kSwitchOff},
    {"overlap_moe_expert_parallel_comm", "overlap-moe-expert-parallel-comm", KeyForm::kSwitch},
    {"delay_wgrad_compute", "delay-wgrad-compute", KeyForm::kSwitch},
    {"cp_comm_type", "cp-comm-type"},
    {"moe_token_dispatcher_type", "moe-token-dispatcher-type"},
    {"moe_flex_dispatcher_backend", "moe-flex-dispatcher-backend"},
    {"moe_enable_deepep", "moe-enable-deepep", KeyForm::kSwitch},
    {"moe_shared_expert_overlap", "moe-shared-expert-overlap", KeyForm::kSwitch},
    {"moe_permute_fusion", "moe-permute-fusion", KeyForm::kSwitch},
    {"cross_entropy_loss_fusion", "cross-entropy-loss-fusion", KeyForm::kSwitch},
    {"use_transformer_engine_op_fuser", "use-transformer-engine-op-fuser", KeyForm::kSwitch},
    {"gradient_accumulation_fusion", "no-gradient-accumulation-fusion", KeyForm::kSwitchOff},
    {"use_precision_aware_optimizer", "use-precision-aware-optimizer", KeyForm::kSwitch},
    {"exp_avg_dtype", "exp-avg-dtype"},
    {"exp_avg_sq_dtype", "exp-avg-sq-dtype"},
    {"main_params_dtype", "main-params-dtype"},
    {"main_grads_dtype", "main-grads-dtype"},
    {"activation_func_fp8_input_store", "activation-func-fp8-input-store", KeyForm::kSwitch},
    {"moe_expert_capacity_factor", "moe-expert-capacity-factor"},
    {"window_size", "window-size"},
    {"bucket_size", "ddp-bucket-size"},
    {"attention_backend", "attention-backend"},
    {"transformer_impl", "transformer-impl"}};

// What a provider of hybrids says about the model itself (NVIDIA-NeMo/Megatron-Bridge,
// models/hybrid/hybrid_provider.py).
constexpr const char* kHybridProvider = "()HybridModelProvider";
constexpr NemoName kHybridNames[] = {
    {"hybrid_layer_pattern", "hybrid-layer-pattern"},
    {"hidden_size", "hidden-size"},
    {"ffn_hidden_size", "ffn-hidden-size"},
    {"num_attention_heads", "num-attention-heads"},
    {"num_query_groups", "num-query-groups"},
    {"kv_channels", "kv-channels"},
    {"mamba_num_heads", "mamba-num-heads"},
    {"mamba_head_dim", "mamba-head-dim"},
    {"mamba_state_dim", "mamba-state-dim"},
    {"mamba_num_groups", "mamba-num-groups"},
    {"num_moe_experts", "num-experts"},
    {"moe_ffn_hidden_size", "moe-ffn-hidden-size"},
    {"moe_shared_expert_intermediate_size", "moe-shared-expert-intermediate-size"},
    {"moe_latent_size", "moe-latent-size"},
    {"moe_router_topk", "moe-router-topk"},
    {"moe_router_score_function", "moe-router-score-function"},
    {"moe_router_load_balancing_type", "moe-router-load-balancing-type"},
    {"moe_aux_loss_coeff", "moe-aux-loss-coeff"},
    {"make_vocab_size_divisible_by", "make-vocab-size-divisible-by"},
    {"vocab_size", "vocab-size"},
    {"share_embeddings_and_output_weights", "untie-embeddings-and-output-weights",
     KeyForm::kSwitchOff},
    {"tokenizer_model", "tokenizer-model"}};

// Sizes that change a model that is known by its name.
constexpr NemoName kSizeNames[] = {
    {"hidden_size", "hidden-size"},
    {"ffn_hidden_size", "ffn-hidden-size"},
    {"num_attention_heads", "num-attention-heads"},
    {"num_query_groups", "num-query-groups"},
    {"kv_channels", "kv-channels"},
    {"num_moe_experts", "num-experts"},
    {"moe_router_topk", "moe-router-topk"},
    {"moe_ffn_hidden_size", "moe-ffn-hidden-size"},
    {"moe_shared_expert_intermediate_size", "moe-shared-expert-intermediate-size"}};

// Names that are read elsewhere.
constexpr std::string_view kReadElsewhere[] = {"moe_grouped_gemm",
                                               "peft",
                                               "dim",
                                               "target_modules",
                                               "env_vars",
                                               "mixed_precision",
                                               "plugins",
                                               "precision",
                                               "fp8",
                                               "fp8_recipe",
                                               "fp8_param",
                                               "fp8_param_gather",
                                               "first_last_layers_bf16",
                                               "num_layers_at_start_in_bf16",
                                               "num_layers_at_end_in_bf16",
                                               "num_nodes",
                                               "devices",
                                               "num_gpus_per_node",
                                               "gpus_per_node",
                                               "bf16",
                                               "fp16",
                                               "params_dtype",
                                               "pipeline_dtype",
                                               "autocast_dtype",
                                               "autocast_enabled",
                                               "ddp",
                                               "ddp_config",
                                               "strategy",
                                               "model",
                                               "config",
                                               "trainer",
                                               "callbacks"};

// What of the model, the strategy and DDP decides nothing, by how it begins.
constexpr std::string_view kQuietNames[] = {"gradient_as_bucket_view",
                                            "find_unused_parameters",
                                            "check_for_nan",
                                            "average_in_collective",
                                            "ckpt_",
                                            "save_ckpt",
                                            "init_method",
                                            "output_layer_init_method",
                                            "embedding_init_method",
                                            "perform_initialization",
                                            "rotary_",
                                            "rope_",
                                            "scale_factor",
                                            "layernorm_epsilon",
                                            "attention_dropout",
                                            "hidden_dropout",
                                            "tp_comm_overlap_cfg",
                                            "tp_only_amax_red",
                                            "hf_model_id",
                                            "generation_config",
                                            "moe_aux_loss_coeff",
                                            "moe_router_load_balancing_type",
                                            "moe_router_bias_update_rate",
                                            "moe_router_dtype",
                                            "use_te_rng_tracker",
                                            "nccl_communicator_config_path",
                                            "progress_interval",
                                            "setup_optimizers",
                                            "lazy_init",
                                            "distributed_timeout"};

// "bf16_with_fp8_current_scaling_mixed", "fp8_cs", "bf16-mixed": the arguments of a precision.
struct NemoPrecision {
  const char* part = "";    // of the name
  const char* recipe = "";  // of fp8; "" for none
  bool keeps_ends = false;
};
constexpr NemoPrecision kPrecisions[] = {{"nvfp4", ""},
                                         {"mxfp8", "mxfp8"},
                                         {"fp8_mx", "mxfp8"},
                                         {"fp8_subchannel", "blockwise"},
                                         {"fp8_sc", "blockwise"},
                                         {"fp8_blockwise", "blockwise"},
                                         {"fp8_current", "tensorwise", true},
                                         {"fp8_cs", "tensorwise", true},
                                         {"fp8", "delayed"}};

// Machines in the names of recipes. Of the 72 devices of a rack, such runs take 64.
struct MachineName {
  const char* part = "";
  AssumedMachine machine;
};
constexpr MachineName kMachineNames[] = {{"gb200", {"gb200-nvl72", "racks", 72, 64}},
                                         {"gb300", {"gb300-nvl72", "racks", 72, 64}},
                                         {"b200", {"dgx-b200", "nodes", 8, 8}},
                                         {"b300", {"dgx-b300", "nodes", 8, 8}}};

class NemoArguments {
 public:
  NemoArguments(const RunSource& source, const PythonRecipe& recipe, ScenarioDraft* draft)
      : recipe_(recipe), draft_(draft) {
    run_.software = "nemo";
    // NVIDIA/Megatron-LM, core/transformer/moe/experts.py, since summer of 2025, when
    // Megatron-Bridge began.
    has_launcher_ = source.text.find("megatron.bridge.perf_recipes") != std::string_view::npos;
    run_.weighs_early = source.text.find("megatron.bridge") != std::string_view::npos;
    const Origin from{"model", recipe.model_line};
    if (source.model) {
      run_.model = source.model;
    } else if (!recipe.model.empty()) {
      run_.model = FindModelByName(recipe.model);
      if (!run_.model) {
        draft->Fail(from, fmt::format("found {}, a model that is not known by name; expected "
                                      "--model-config with its config.json",
                                      QuotedJson(recipe.model)));
      }
    }
    run_.model_from = from;
  }

  LaunchedRun Read() {
    if (!run_.model && IsHybrid()) {
      ReadHybrid();
    } else if (!run_.model) {
      throw Error({draft_->file(), 0, ""},
                  fmt::format("{} names no model; expected --model-config with its config.json, or "
                              "its name",
                              recipe_.function));
    }
    ReadAdapters();
    for (const char* key : {"freeze_vision_model", "freeze_language_model", "hf_processor_path"}) {
      if (const PythonKey* const found = Find(key); found != nullptr)
        draft_->Fail({key, std::max(found->line, 0)},
                     "models of images or sound are not supported; expected text");
    }
    for (const NemoName& name : kNemoNames) {
      ReadKey(name);
      const auto skipped = recipe_.skipped.find(name.theirs);
      if (skipped == recipe_.skipped.end()) continue;
      run_.remarks.push_back(
          fmt::format("{}: {} is under a condition or loop that is not followed, and left as it is",
                      skipped->second > 0 ? fmt::format("line {}", skipped->second)
                                          : std::string("in another file"),
                      name.theirs));
    }
    SetUnfused();
    if (run_.model)
      for (const NemoName& name : kSizeNames) ReadKey(name);
    ReadDispatcher();
    ReadOverlapCallback();
    ReadPrecision();
    ReadRanks();
    ReadEnvironment();
    // What recipes leave to their providers.
    const PythonKey* const grouped = Find("moe_grouped_gemm");
    if (grouped == nullptr || grouped->value != false) Add("moe-grouped-gemm", {}, 0);
    for (const char* dropout : {"attention-dropout", "hidden-dropout"}) Add(dropout, {"0"}, 0);
    if (Find("()distributed_fused_adam_with_cosine_annealing") != nullptr &&
        Find("use_distributed_optimizer") == nullptr)
      Add("use-distributed-optimizer", {}, 0);
    RemarkOnLostCalls();
    RemarkOnUnread();
    return std::move(run_);
  }

 private:
  const PythonKey* Find(std::string_view name) const {
    const auto found = recipe_.keys.find(name);
    return found == recipe_.keys.end() ? nullptr : &found->second;
  }

  // Of every model with experts, NeMo's configurations have all-to-all, where Megatron-LM itself
  // would gather.
  void ReadDispatcher() {
    if (Find("moe_token_dispatcher_type") == nullptr)
      Add("moe-token-dispatcher-type", {"alltoall"}, 0);
  }

  // With the distributed optimizer it makes gradients and parameters overlap, in buckets of 2^27
  // (NVIDIA/NeMo, lightning/pytorch/callbacks/megatron_comm_overlap.py), unless that is said.
  void ReadOverlapCallback() {
    const PythonKey* const callback = Find("()MegatronCommOverlapCallback");
    const PythonKey* const optimizer = Find("use_distributed_optimizer");
    const bool is_distributed =
        optimizer != nullptr ? optimizer->value == true
                             : Find("()distributed_fused_adam_with_cosine_annealing") != nullptr;
    if (callback == nullptr || !is_distributed) return;
    const auto is_open = [&](const char* name) {
      const PythonKey* const key = Find(name);
      return key == nullptr || key->value.is_null();
    };
    if (is_open("overlap_grad_reduce")) Add("overlap-grad-reduce", {}, callback->line);
    const PythonKey* const sums = Find("overlap_grad_reduce");
    const bool has_sums = is_open("overlap_grad_reduce") || sums->value == true;
    if (has_sums && is_open("overlap_param_gather"))
      Add("overlap-param-gather", {}, callback->line);
    if (is_open("bucket_size")) Add("ddp-bucket-size", {"134217728"}, callback->line);
  }

  static bool IsKnown(std::string_view name) {
    const auto is_it = [name](const NemoName& one) { return name == one.theirs; };
    return std::any_of(std::begin(kNemoNames), std::end(kNemoNames), is_it) ||
           std::any_of(std::begin(kSizeNames), std::end(kSizeNames), is_it) ||
           std::find(std::begin(kReadElsewhere), std::end(kReadElsewhere), name) !=
               std::end(kReadElsewhere);
  }

  static std::string WhereOf(int line) {
    return line > 0 ? fmt::format("line {}", line) : std::string("in another file");
  }

  void RemarkOnLostCalls() {
    for (const LostCall& call : recipe_.lost) {
      std::vector<std::string> lost;
      for (const auto& [key, value] : call.arguments) {
        const bool is_size = key.find("parallel") != std::string::npos && !key.starts_with("ckpt_");
        if (is_size && !IsKnown(key)) lost.push_back(fmt::format("{}={}", key, value));
      }
      if (lost.empty()) continue;
      run_.remarks.push_back(
          fmt::format("{}: {}() is in {}, which is not beside this file: what it is given is lost "
                      "({}); --set gives such sizes, as in tensor_model_parallel_size=2",
                      WhereOf(call.line), call.function, call.module, fmt::join(lost, ", ")));
    }
  }

  // Of the model's, the strategy's or DDP's configuration; others say nothing about a step's work.
  static bool DecidesSomething(std::string_view owner) {
    const std::string_view last = owner.substr(std::min(owner.rfind('.') + 1, owner.size()));
    for (const char* part : {"model", "strategy", "ddp", "ddp_config", "comm_overlap"})
      if (last == part && owner != last) return true;
    if (owner.ends_with("model.config")) return true;
    const bool has_digit = last.find_first_of("0123456789") != std::string_view::npos;
    return last.ends_with("Strategy") || last.ends_with("Provider") ||
           last == "DistributedDataParallelConfig" || last == "MegatronCommOverlapCallback" ||
           last == "CommOverlapConfig" ||
           (has_digit && last.find("Config") != std::string_view::npos);
  }

  // What is given by --set under a name that nothing has, or in the recipe and not false.
  void RemarkOnUnread() {
    std::vector<std::string> unknown;
    for (const auto& [name, key] : recipe_.keys) {
      if (name.starts_with("()") || IsKnown(name)) continue;
      const bool is_given = key.line == PythonKey::kGiven;
      const bool is_hybrid =
          IsHybrid() &&
          (name == "activation_func" ||
           std::any_of(std::begin(kHybridNames), std::end(kHybridNames),
                       [&name = name](const NemoName& one) { return name == one.theirs; }));
      if (is_hybrid || (is_given && recipe_.arguments.contains(name))) continue;
      std::string argument = name;
      std::replace(argument.begin(), argument.end(), '_', '-');
      const bool is_quiet =
          DecidesNothingInMegatron(argument) ||
          std::any_of(std::begin(kQuietNames), std::end(kQuietNames),
                      [&name = name](std::string_view begin) { return name.starts_with(begin); });
      // Kernels are fused unless it is said.
      const bool says_something = !key.value.is_null() && key.value != name.ends_with("_fusion");
      if (is_given ? !is_quiet : says_something && !is_quiet && DecidesSomething(key.owner))
        unknown.push_back(name);
    }
    draft_->RemarkOnUnknown(unknown);
  }

  bool IsHybrid() const {
    const PythonKey* const pattern = Find("hybrid_layer_pattern");
    return Find(kHybridProvider) != nullptr && pattern != nullptr && pattern->value.is_string();
  }

  // With what the provider has unless it is said.
  void ReadHybrid() {
    const int line = Find(kHybridProvider)->line;
    for (const NemoName& name : kHybridNames) ReadKey(name);
    Add("normalization", {"RMSNorm"}, line);
    Add("disable-bias-linear", {}, line);
    Add("position-embedding-type", {"none"}, line);
    if (Find("share_embeddings_and_output_weights") == nullptr)
      Add("untie-embeddings-and-output-weights", {}, line);
    if (Find("num_query_groups") != nullptr) Add("group-query-attention", {}, line);
    const PythonKey* const activation = Find("activation_func");
    if (activation == nullptr ||
        TextOf(activation->value).find("squared_relu") == std::string::npos)
      draft_->Fail({"activation_func", activation == nullptr ? 0 : std::max(activation->line, 0)},
                   "expected squared_relu; other activations of hybrids are not supported");
    Add("squared-relu", {}, activation->line);
  }

  // What such software has unless a recipe says otherwise.
  void SetUnfused() {
    constexpr std::pair<const char*, const char*> kFused[] = {
        {"cross_entropy_loss_fusion", "/training/cross_entropy"},
        {"moe_permute_fusion", "/training/permutation"}};
    for (const auto& [theirs, ours] : kFused) {
      const PythonKey* const key = Find(theirs);
      if (key != nullptr && key->value == false) draft_->Set(ours, "unfused");
    }
  }

  // By the key, by a condition that might set it, or by the recipe's name.
  void ReadAdapters() {
    const PythonKey* const key = Find("peft");
    const bool is_skipped = recipe_.skipped.contains("peft");
    const bool is_set = key != nullptr && !key->value.is_null() && key->value != "none";
    const bool is_off = key != nullptr && key->line == PythonKey::kGiven && !is_set;
    const bool is_named = recipe_.function.find("peft") != std::string::npos;
    if (is_off || (!is_set && !is_named && !is_skipped)) return;
    const Origin from = {"peft", key != nullptr ? std::max(key->line, 0) : 0};
    if (!is_set && !is_named) {
      draft_->Fail(from,
                   "whether there are adapters depends on a condition that is not followed; --set "
                   "peft=lora or --set peft=None says it");
    }
    const std::string kind = is_set ? TextOf(key->value) : "";
    if (kind.find("DoRA") != std::string::npos || kind.find("dora") != std::string::npos)
      draft_->Fail(from, "adapters with magnitudes of their own (DoRA) are not supported");
    NamedAdapters adapters;
    adapters.from = from;
    // LoRA's own (nemo/collections/llm/peft/lora.py, megatron/bridge/peft/lora.py).
    adapters.rank = 32;
    adapters.on = {"linear_qkv", "linear_proj", "linear_fc1", "linear_fc2"};
    const PythonKey* const rank = Find("dim");
    constexpr uint64_t kMostRank = 1 << 16;
    if (rank != nullptr && rank->value.is_number_integer() && rank->value >= 1 &&
        rank->value <= kMostRank)
      adapters.rank = rank->value.get<uint64_t>();
    const PythonKey* const on = Find("target_modules");
    if (on != nullptr && on->value.is_array() && !on->value.empty()) {
      adapters.on.clear();
      for (const nlohmann::json& name : on->value) adapters.on.push_back(TextOf(name));
    }
    for (const char* name : {"dim", "target_modules"}) {
      if (recipe_.skipped.contains(name))
        run_.remarks.push_back(
            fmt::format("{} is under a condition that is not followed: adapters have {} columns "
                        "beside {}",
                        name, adapters.rank, fmt::join(adapters.on, ", ")));
    }
    run_.adapters = std::move(adapters);
  }

  void Add(const char* argument, std::vector<std::string> values, int line) {
    run_.arguments.push_back({argument, std::move(values), std::max(line, 0)});
  }

  static std::string TextOf(const nlohmann::json& value) {
    return value.is_string() ? value.get<std::string>()
                             : value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }

  // Stages as lists of "embedding", "decoder", "mtp" and "loss", as Megatron-LM writes them:
  // "Ett|tt|tmL". "" for other lists.
  static std::string LayoutOf(const nlohmann::json& stages) {
    constexpr std::pair<const char*, char> kParts[] = {
        {"embedding", 'E'}, {"decoder", 't'}, {"mtp", 'm'}, {"loss", 'L'}};
    std::string layout;
    for (const nlohmann::json& stage : stages) {
      if (!stage.is_array()) return "";
      if (&stage != &stages.front()) layout += '|';
      for (const nlohmann::json& part : stage) {
        const auto known = std::find_if(std::begin(kParts), std::end(kParts),
                                        [&](const auto& one) { return part == one.first; });
        if (known == std::end(kParts)) return "";
        layout += known->second;
      }
    }
    return layout;
  }

  void ReadKey(const NemoName& name) {
    const PythonKey* const key = Find(name.theirs);
    if (key == nullptr || key->value.is_null()) return;
    if (name.form != KeyForm::kValue) {
      if (key->value == (name.form == KeyForm::kSwitch)) Add(name.ours, {}, key->line);
      return;
    }
    std::vector<std::string> values;
    const std::string_view ours = name.ours;
    const bool is_layout = ours == "pipeline-model-parallel-layout";
    if (is_layout && key->value.is_array()) {
      values.push_back(LayoutOf(key->value));
      if (values.front().empty()) values.clear();
    } else if (key->value.is_array()) {
      for (const nlohmann::json& element : key->value) {
        if (element.is_structured()) {
          draft_->Remark(fmt::format("not supported: {}, as a list of lists", name.theirs));
          return;
        }
        values.push_back(TextOf(element));
      }
      if (values.empty()) return;
    } else if (!key->value.is_object()) {
      values.push_back(TextOf(key->value));
    }
    if (key->value.is_boolean() || values.empty()) return;
    if (ours == "window-size") values = {fmt::format("{}", fmt::join(values, ","))};
    if (ours == "attention-backend")  // of AttnBackend.flash
      values.front().erase(0, values.front().rfind('.') + 1);
    Add(name.ours, std::move(values), key->line);
  }

  void ReadPrecision() {
    std::string name = "bf16_mixed";
    int line = 0;
    for (const char* key : {"mixed_precision", "plugins", "precision"}) {
      const PythonKey* const found = Find(key);
      if (found == nullptr || !found->value.is_string()) continue;
      const std::string text = TextOf(found->value);
      const bool says_it = text.find("16") != std::string::npos ||
                           text.find("fp8") != std::string::npos ||
                           text.find("fp4") != std::string::npos;
      if (!says_it) continue;
      name = text;
      line = found->line;
      break;
    }
    const bool is_bf16 = name.find("fp16") == std::string::npos && !name.starts_with("16");
    Add(is_bf16 ? "bf16" : "fp16", {}, line);
    const auto precision = std::find_if(
        std::begin(kPrecisions), std::end(kPrecisions),
        [&](const NemoPrecision& one) { return name.find(one.part) != std::string::npos; });
    const PythonKey* const format = Find("fp8");
    const bool has_format =
        format != nullptr && (format->value == "hybrid" || format->value == "e4m3");
    if (precision == std::end(kPrecisions) && !has_format) {
      if (is_bf16) TakeLaunchersOptimizer();
      return;
    }
    if (precision != std::end(kPrecisions) && std::string_view(precision->part) == "nvfp4") {
      Add("fp4-format", {"e2m1"}, line);
      return;
    }
    std::string recipe = precision == std::end(kPrecisions) ? "delayed" : precision->recipe;
    if (const PythonKey* const given = Find("fp8_recipe");
        given != nullptr && given->value.is_string())
      recipe = TextOf(given->value);
    Add("fp8-format", {"hybrid"}, line);
    Add("fp8-recipe", {recipe}, line);
    const auto is = [&](const char* key, bool otherwise) {
      const PythonKey* const found = Find(key);
      return found != nullptr && found->value.is_boolean() ? found->value.get<bool>() : otherwise;
    };
    if (is("fp8_param_gather", is("fp8_param", recipe != "blockwise")))
      Add("fp8-param-gather", {}, line);
    else
      draft_->Set("/training/narrow_parameters", false);
    if (is("first_last_layers_bf16", precision != std::end(kPrecisions) && precision->keeps_ends)) {
      Add("first-last-layers-bf16", {}, line);
      for (const char* end : {"num_layers_at_start_in_bf16", "num_layers_at_end_in_bf16"}) {
        if (const PythonKey* const count = Find(end);
            count != nullptr && count->value.is_number_integer())
          Add(std::string_view(end).find("start") != std::string_view::npos
                  ? "num-layers-at-start-in-bf16"
                  : "num-layers-at-end-in-bf16",
              {TextOf(count->value)}, count->line);
      }
    } else if (recipe == "tensorwise") {
      draft_->Set("/training/precise_layers", 0);
    }
  }

  // Flat recipes of Megatron-Bridge leave to their launcher that Adam in bf16 keeps what parameters
  // lack of their masters (NVIDIA-NeMo/Megatron-Bridge, scripts/performance/run_script.py:
  // use_precision_aware_optimizer). Its FSDP cannot have it.
  void TakeLaunchersOptimizer() {
    const PythonKey* const shares = Find("use_megatron_fsdp");
    const bool is_shared = shares != nullptr && shares->value == true;
    if (!has_launcher_ || is_shared) return;
    Add("use-precision-aware-optimizer", {}, 0);
    run_.remarks.emplace_back(
        "in bf16 its launcher (scripts/performance/run_script.py) has the precision-aware "
        "optimizer");
  }

  void ReadRanks() {
    // "llama3_8b_pretrain_8gpu_h100_bf16_config".
    const std::string& name = recipe_.function;
    const size_t gpus = name.find("gpu_");
    size_t begin = gpus == std::string::npos ? 0 : gpus;
    while (begin > 0 && name[begin - 1] >= '0' && name[begin - 1] <= '9') --begin;
    uint64_t ranks = 0;
    if (gpus != std::string::npos) std::from_chars(name.data() + begin, name.data() + gpus, ranks);
    if (ranks > 0 && ranks <= static_cast<uint64_t>(kMostDegree)) {
      run_.ranks = WrittenCount{ranks, {"the name of " + name, 0}};
      for (const char* other : {"r100", "vr200"}) {
        if (name.find(std::string("_") + other) == std::string::npos) continue;
        draft_->Remark(fmt::format("the recipe is for {}, which is not known here", other));
      }
      for (const MachineName& machine : kMachineNames) {
        if (name.find(std::string("_") + machine.part) == std::string::npos) continue;
        draft_->Assume(machine.machine);
        break;
      }
      return;
    }
    const auto count = [&](std::initializer_list<const char*> names) -> const PythonKey* {
      for (const char* one : names) {
        const PythonKey* const key = Find(one);
        if (key != nullptr && key->value.is_number_integer() && key->value >= 1 &&
            key->value <= kMostDegree)
          return key;
      }
      return nullptr;
    };
    const PythonKey* const nodes = count({"num_nodes"});
    const PythonKey* const devices = count({"devices", "num_gpus_per_node", "gpus_per_node"});
    if (nodes == nullptr && devices == nullptr) return;
    const uint64_t of_node = devices == nullptr ? 1 : devices->value.get<uint64_t>();
    run_.ranks = WrittenCount{(nodes == nullptr ? 1 : nodes->value.get<uint64_t>()) * of_node,
                              {"num_nodes x devices", 0}};
  }

  void ReadEnvironment() {
    const PythonKey* const table = Find("env_vars");
    if (table == nullptr || !table->value.is_object()) return;
    for (const auto& [name, value] : table->value.items()) {
      const bool is_ours = name.starts_with("NCCL_") || name.starts_with("NVTE_") ||
                           name == "CUDA_DEVICE_MAX_CONNECTIONS";
      if (is_ours && !value.is_structured())
        run_.environment.push_back({name, TextOf(value), table->line});
    }
  }

  const PythonRecipe& recipe_;
  ScenarioDraft* draft_;
  LaunchedRun run_;
  bool has_launcher_ = false;
};

}  // namespace

ImportedScenario ImportNemo(const RunSource& source) {
  ScenarioDraft draft(source.file);
  const PythonRecipe recipe =
      ReadPythonRecipe(source.text, draft.file(), source.settings, source.beside);
  if (!source.settings.empty() || recipe.function != "pretrain_recipe")
    draft.Set("/name", recipe.function);
  NemoArguments arguments(source, recipe, &draft);
  return ImportLaunchedRun(arguments.Read(), source.cluster, &draft);
}

}  // namespace rehearse
