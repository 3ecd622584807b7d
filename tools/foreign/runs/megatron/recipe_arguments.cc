#include "tools/foreign/runs/megatron/recipe_arguments.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/base/error.h"
#include "sim/base/json_document.h"
#include "sim/base/json_reader.h"
#include "tools/foreign/machines/infragraph/yaml_text.h"

namespace rehearse {
namespace {

struct RecipeName {
  std::string_view theirs;  // the last part of the key, or the last two
  const char* ours;
};
constexpr RecipeName kRecipeNames[] = {
    {"num_layers", "num-layers"},
    {"hidden_size", "hidden-size"},
    {"ffn_hidden_size", "ffn-hidden-size"},
    {"intermediate_size", "ffn-hidden-size"},
    {"num_attention_heads", "num-attention-heads"},
    {"num_query_groups", "num-query-groups"},
    {"num_kv_heads", "num-query-groups"},
    {"kv_channels", "kv-channels"},
    {"encoder_seq_length", "seq-length"},
    {"seq_length", "seq-length"},
    {"sequence_length", "seq-length"},
    {"micro_batch_size", "micro-batch-size"},
    {"train_micro_batch_size_per_gpu", "micro-batch-size"},
    {"global_batch_size", "global-batch-size"},
    {"train_batch_size", "global-batch-size"},
    {"gradient_accumulation_steps", "gas"},
    {"tensor_model_parallel_size", "tensor-model-parallel-size"},
    {"model_parallel_size", "tensor-model-parallel-size"},
    {"pipeline_model_parallel_size", "pipeline-model-parallel-size"},
    {"pipe_parallel_size", "pipeline-model-parallel-size"},
    {"virtual_pipeline_model_parallel_size", "num-virtual-stages-per-pipeline-rank"},
    {"context_parallel_size", "context-parallel-size"},
    {"expert_model_parallel_size", "expert-model-parallel-size"},
    {"expert_tensor_parallel_size", "expert-tensor-parallel-size"},
    {"sequence_parallel", "sequence-parallel"},
    {"vocab_size", "vocab-size"},
    {"padded_vocab_size", "padded-vocab-size"},
    {"make_vocab_size_divisible_by", "make-vocab-size-divisible-by"},
    {"tokenizer_type", "tokenizer-type"},
    {"tokenizer.type", "tokenizer-type"},
    {"tokenizer_model", "tokenizer-model"},
    {"vocab_file", "tokenizer-model"},
    {"num_moe_experts", "num-experts"},
    {"num_experts", "num-experts"},
    {"moe_num_experts", "num-experts"},
    {"moe_router_topk", "moe-router-topk"},
    {"moe_top_k", "moe-router-topk"},
    {"moe_ffn_hidden_size", "moe-ffn-hidden-size"},
    {"moe_shared_expert_intermediate_size", "moe-shared-expert-intermediate-size"},
    {"moe_grouped_gemm", "moe-grouped-gemm"},
    {"moe_layer_freq", "moe-layer-freq"},
    {"moe_token_dispatcher_type", "moe-token-dispatcher-type"},
    {"moe_permute_fusion", "moe-permute-fusion"},
    {"moe_aux_loss_coeff", "moe-aux-loss-coeff"},
    {"multi_latent_attention", "multi-latent-attention"},
    {"q_lora_rank", "q-lora-rank"},
    {"kv_lora_rank", "kv-lora-rank"},
    {"moe_latent_size", "moe-latent-size"},
    {"mtp_num_layers", "mtp-num-layers"},
    {"mtp_hybrid_override_pattern", "mtp-hybrid-override-pattern"},
    {"activations_checkpoint_granularity", "recompute-granularity"},
    {"recompute_granularity", "recompute-granularity"},
    {"activations_checkpoint_method", "recompute-method"},
    {"recompute_method", "recompute-method"},
    {"activations_checkpoint_num_layers", "recompute-num-layers"},
    {"recompute_num_layers", "recompute-num-layers"},
    {"recompute_modules", "recompute-modules"},
    {"checkpoint_activations", "checkpoint-activations"},
    {"attention_dropout", "attention-dropout"},
    {"hidden_dropout", "hidden-dropout"},
    {"use_distributed_optimizer", "use-distributed-optimizer"},
    {"overlap_grad_reduce", "overlap-grad-reduce"},
    {"overlap_grad_sync", "overlap-grad-reduce"},
    {"overlap_param_gather", "overlap-param-gather"},
    {"overlap_param_sync", "overlap-param-gather"},
    {"zero_optimization.stage", "zero-stage"},
    {"zero_optimization.overlap_comm", "overlap-grad-reduce"},
    {"partition_activations", "distribute-saved-activations"},
    {"account_for_embedding_in_pipeline_split", "account-for-embedding-in-pipeline-split"},
    {"account_for_loss_in_pipeline_split", "account-for-loss-in-pipeline-split"},
    {"num_layers_in_first_pipeline_stage", "decoder-first-pipeline-num-layers"},
    {"num_layers_in_last_pipeline_stage", "decoder-last-pipeline-num-layers"},
    {"tp_comm_overlap", "tp-comm-overlap"},
    {"ub_tp_comm_overlap", "tp-comm-overlap"},
    {"hybrid_override_pattern", "hybrid-override-pattern"}};

// Tables whose keys say nothing about a step's work.
constexpr std::string_view kQuietTables[] = {
    "exp_manager.", "run.",         "logger.",    "checkpoint.", "rerun_state_machine.",
    "model.data.",  "model.optim.", "scheduler.", "optimizer.",  "ft.",
    "profiling.",   "inference.",   "hydra.",     "data.",       "cluster.",
    "rng.",         "straggler.",   "dist.",      "launcher"};
constexpr std::string_view kQuietParts[] = {"log",
                                            "save",
                                            "load",
                                            "path",
                                            "init",
                                            "lr",
                                            "seed",
                                            "eval",
                                            "name",
                                            "wandb",
                                            "train",
                                            "steps",
                                            "iters",
                                            "tensorboard",
                                            "dropout",
                                            "epsilon",
                                            "rotary",
                                            "decay",
                                            "grad_clip",
                                            "gradient_clip",
                                            "bucket_size",
                                            "hysteresis",
                                            "keep_last",
                                            "checkpoint_factor",
                                            "allgather",
                                            "contiguous_gradients",
                                            "reduce_scatter",
                                            "synchronize_each",
                                            "attention_config",
                                            "clip",
                                            "target",
                                            "optim",
                                            "sched",
                                            "tokenizer",
                                            "position",
                                            "scale",
                                            "data",
                                            "interval",
                                            "split",
                                            "monitor",
                                            "callback",
                                            "warmup",
                                            "beta",
                                            "host",
                                            "dir",
                                            "file",
                                            "nsys",
                                            "fusion",
                                            "pos_emb",
                                            "distributed_backend",
                                            "steps_per_print",
                                            "wall_clock",
                                            "loss",
                                            "eps"};

bool IsTrue(const nlohmann::json& value) { return value == true || value == "True"; }

std::string RecipeText(const nlohmann::json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

class RecipeReader {
 public:
  explicit RecipeReader(std::string name) : name_(std::move(name)) {}

  void ReadTable(const JsonReader& table, const std::string& before) {
    for (const auto& [key, value] : table.Members()) {
      std::string path = before + key;
      std::replace(path.begin(), path.end(), '-', '_');
      if (value.IsObject()) {
        ReadTable(value, path + ".");
      } else {
        ReadKey(path, value);
      }
    }
  }

  LaunchedRun Finish() {
    const bool has_tokens = std::any_of(
        run_.arguments.begin(), run_.arguments.end(), [](const WrittenArgument& argument) {
          return argument.name == "tokenizer-type" || argument.name == "vocab-size";
        });
    if (is_neox_ && !has_tokens) Add("tokenizer-type", {"GPT2BPETokenizer"}, 0);  // its default
    if (nodes_ || devices_) {
      const WrittenCount nodes = nodes_.value_or(WrittenCount{1, {}});
      const WrittenCount devices = devices_.value_or(WrittenCount{1, {}});
      run_.of_node = devices_;
      run_.ranks = WrittenCount{
          nodes.value * devices.value,
          {nodes_ && devices_ ? fmt::format("{} x {}", nodes.from.name, devices.from.name)
                              : (nodes_ ? nodes : devices).from.name,
           (nodes_ ? nodes : devices).from.line}};
    }
    return std::move(run_);
  }

 private:
  void Add(const char* argument, std::vector<std::string> values, int line) {
    run_.arguments.push_back({argument, std::move(values), line});
  }

  void ReadKey(const std::string& path, const JsonReader& value) {
    const nlohmann::json& json = value.value();
    const int line = value.place().line;
    const std::string leaf = path.substr(path.rfind('.') + 1);
    // In gpt-neox, 0 stages are none.
    is_neox_ = is_neox_ || leaf == "pipe_parallel_size";
    if (leaf == "attention_config") ReadAttention(json, line);
    RefuseOtherModels(path, leaf, json, line);
    const bool is_nothing = leaf == "pipe_parallel_size" && json == 0;
    const bool is_open =
        is_nothing || json.is_null() ||
        (json.is_string() && (json.get_ref<const std::string&>() == "???" ||
                              json.get_ref<const std::string&>().starts_with("${")));
    if (is_open || ReadRanks(leaf, value) || ReadSpecial(path, leaf, json, line)) return;
    for (const RecipeName& known : kRecipeNames) {
      const bool fits = known.theirs.find('.') == std::string_view::npos
                            ? leaf == known.theirs
                            : path.ends_with(known.theirs);
      if (!fits) continue;
      if (json == false) return;
      std::vector<std::string> values;
      if (json.is_array()) {
        for (const nlohmann::json& element : json) values.push_back(RecipeText(element));
      } else if (json != true) {
        values.push_back(RecipeText(json));
      }
      Add(known.ours, std::move(values), line);
      if (std::string_view(known.ours) == "num-query-groups")
        Add("group-query-attention", {}, line);
      return;
    }
    // Quiet by their names' parts or tables, were they not here.
    constexpr std::string_view kHeard[] = {"cpu_offload", "offload_optimizer.device",
                                           "offload_param.device", "bucket_cap_mb",
                                           "communication_data_type"};
    const bool is_heard =
        std::any_of(std::begin(kHeard), std::end(kHeard),
                    [&](std::string_view known) { return path.ends_with(known); });
    const bool is_quiet =
        !is_heard &&
        (std::any_of(std::begin(kQuietTables), std::end(kQuietTables),
                     [&](std::string_view table) { return path.starts_with(table); }) ||
         std::any_of(std::begin(kQuietParts), std::end(kQuietParts),
                     [&](std::string_view part) { return leaf.find(part) != std::string::npos; }));
    const bool says_something = json != false && json != 0 && json != "none" &&
                                !(json.is_string() && json.get_ref<const std::string&>().empty()) &&
                                !(json.is_array() && json.empty());
    if (!is_quiet && says_something) Add(path.c_str(), {RecipeText(json)}, line);
  }

  // NeMo's recipes have names such as megatron_gpt.
  void RefuseOtherModels(const std::string& path, const std::string& leaf,
                         const nlohmann::json& json, int line) const {
    const std::string text = path == "name" && json.is_string() ? json.get<std::string>() : leaf;
    const bool is_named = path == "name";
    for (const char* other : {"mamba", "griffin", "hyena", "bert", "retro", "t5", "bart"}) {
      const bool fits = is_named ? text.find(other) != std::string::npos
                                 : std::string_view(other) == "mamba" && text.starts_with(other);
      if (fits && json != 0 && !json.is_null())
        throw Error({name_, line, ""},
                    fmt::format("{}: models of {} are not supported; expected a decoder with "
                                "attention",
                                path, other));
    }
  }

  // gpt-neox names the kinds of layers: [[["global"], 12]].
  void ReadAttention(const nlohmann::json& json, int line) {
    const std::string text = json.dump();
    for (const char* other : {"mamba", "rwkv", "gmlp", "amlp", "sparse", "bigbird", "local"}) {
      if (text.find(other) != std::string::npos)
        throw Error({name_, line, ""},
                    fmt::format("attention_config: layers of {} are not supported", other));
    }
    if (text.find("flash") != std::string::npos) Add("use-flash-attn", {}, line);
  }

  bool ReadRanks(const std::string& leaf, const JsonReader& value) {
    const bool is_nodes = leaf == "num_nodes";
    const bool is_devices = leaf == "devices" || leaf == "gpus_per_node" || leaf == "num_gpus";
    if (!is_nodes && !is_devices) return false;
    if (!value.value().is_number_integer()) return true;  // "auto"
    const auto count = static_cast<uint64_t>(value.Integer(1, 1 << 20));
    (is_nodes ? nodes_ : devices_) = WrittenCount{count, {leaf, value.place().line}};
    return true;
  }

  // What has another form there than in Megatron-LM.
  bool ReadSpecial(const std::string& path, const std::string& leaf, const nlohmann::json& json,
                   int line) {
    const std::string text = json.is_string() ? json.get<std::string>() : "";
    if (leaf == "precision" || path.ends_with("fp16.type")) {
      const std::string bits = RecipeText(json);
      if (bits.find("bf") != std::string::npos)
        Add("bf16", {}, line);
      else if (bits.find("16") != std::string::npos)
        Add("fp16", {}, line);
      return true;
    }
    if (path.ends_with("bf16.enabled") || leaf == "bf16") {
      if (IsTrue(json)) Add("bf16", {}, line);
      return true;
    }
    if (path.ends_with("fp16.enabled") || leaf == "fp16") {
      if (IsTrue(json)) Add("fp16", {}, line);
      return true;
    }
    if (path.ends_with("zero_optimization.stage") && json == 0) return true;
    if (leaf == "activation" || leaf == "activation_func" || leaf == "mlp_type") {
      if (text.find("swiglu") != std::string::npos || text == "llama")
        Add("swiglu", {}, line);
      else if (text.find("geglu") != std::string::npos)
        Add("geglu", {}, line);
      else if (text.find("squared") != std::string::npos)
        Add("squared-relu", {}, line);
      return true;
    }
    if (leaf == "gated_linear_unit") {
      if (IsTrue(json)) Add("swiglu", {}, line);
      return true;
    }
    if (leaf == "normalization" || leaf == "norm") {
      const bool is_rms = text.find("rms") != std::string::npos || text == "RMSNorm";
      if (is_rms) Add("normalization", {"RMSNorm"}, line);
      return true;
    }
    if (leaf == "share_embeddings_and_output_weights") {
      if (json == false) Add("untie-embeddings-and-output-weights", {}, line);
      return true;
    }
    if (leaf == "no_weight_tying") {
      if (IsTrue(json)) Add("untie-embeddings-and-output-weights", {}, line);
      return true;
    }
    if (leaf == "add_bias_linear" || leaf == "bias") {
      if (json == false) Add("disable-bias-linear", {}, line);
      return true;
    }
    if (leaf == "fp8" || leaf == "fp8_hybrid") {
      if (IsTrue(json) || text == "hybrid" || text == "e4m3") Add("fp8-format", {"hybrid"}, line);
      return true;
    }
    // Of NeMo's distributed Adam: the type in which gradients are summed.
    if (leaf == "grad_sync_dtype") {
      if (text == "bf16" || text == "fp16" || json == 16)
        Add("grad-reduce-in-bf16", {}, line);
      else if (text != "fp32" && json != 32)
        Add(path.c_str(), {RecipeText(json)}, line);
      return true;
    }
    if (path.ends_with("optim.name") && text == "distributed_fused_adam") {
      Add("use-distributed-optimizer", {}, line);
      return true;
    }
    return false;
  }

  std::string name_;
  LaunchedRun run_;
  bool is_neox_ = false;
  std::optional<WrittenCount> nodes_;
  std::optional<WrittenCount> devices_;
};

}  // namespace

bool IsRecipe(std::string_view text) {
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    const size_t first = line.find_first_not_of(" \t\"'{");
    if (first == std::string_view::npos) continue;
    line.remove_prefix(first);
    for (const std::string_view key : {"num_layers", "num-layers"}) {
      if (!line.starts_with(key)) continue;
      const size_t colon = line.find_first_not_of(" \"'", key.size());
      if (colon != std::string_view::npos && line[colon] == ':') return true;
    }
  }
  return false;
}

LaunchedRun ReadRecipe(std::string_view text, const std::string& name) {
  const JsonDocument document = ReadYaml(text, name);
  const JsonReader root = document.Root();
  if (!root.IsObject()) root.Expected("a recipe's keys, such as num_layers: 24");
  RecipeReader reader(name);
  reader.ReadTable(root, "");
  return reader.Finish();
}

}  // namespace rehearse
