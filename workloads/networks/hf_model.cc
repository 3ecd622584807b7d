#include "workloads/networks/hf_model.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/json_document.h"
#include "sim/base/known_names.h"

namespace rehearse {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr int64_t kMostColumns = 1 << 24;
constexpr int64_t kMostLayers = 10000;

// These keys change no sizes: positions, initialisation, inference, tokens, book-keeping.
constexpr const char* kWithoutSizes[] = {"_name_or_path",
                                         "learned_pos_emb",
                                         "attention_out_bias",
                                         "use_routing_bias",
                                         "qk_norm_type",
                                         "input_jitter_noise",
                                         "lm_head_bias",
                                         "order_of_interleaved_layers",
                                         "activation_dropout",
                                         "alibi",
                                         "apply_residual_connection_post_layernorm",
                                         "architectures",
                                         "attention_dropout",
                                         "attention_dropout_prob",
                                         "attention_multiplier",
                                         "attention_probs_dropout",
                                         "attention_softmax_in_fp32",
                                         "attn_dropout",
                                         "attn_dropout_prob",
                                         "attn_implementation",
                                         "attn_logit_softcapping",
                                         "attn_pdrop",
                                         "attn_scale",
                                         "attn_temperature_tuning",
                                         "auto_map",
                                         "bad_words_ids",
                                         "begin_suppress_tokens",
                                         "bf16",
                                         "bias_dropout_fusion",
                                         "boi_token_id",
                                         "bos_token_id",
                                         "cache_dir",
                                         "cache_implementation",
                                         "chunk_size_feed_forward",
                                         "classifier_dropout",
                                         "clip_limit",
                                         "cls_token_id",
                                         "cross_attention_hidden_size",
                                         "decoder_start_token_id",
                                         "dim_model_base",
                                         "diversity_penalty",
                                         "do_sample",
                                         "dropout",
                                         "dtype",
                                         "early_stopping",
                                         "emb_dropout_prob",
                                         "emb_pdrop",
                                         "embd_pdrop",
                                         "embedding_dropout",
                                         "embedding_multiplier",
                                         "encoder_no_repeat_ngram_size",
                                         "eoi_token_id",
                                         "eos_token_id",
                                         "ep_size",
                                         "experts_per_token",
                                         "exponential_decay_length_penalty",
                                         "ffn_dropout",
                                         "final_logit_softcapping",
                                         "final_w_init_variance_scale",
                                         "finetuning_task",
                                         "flash_attn",
                                         "floor_scale",
                                         "for_llm_compressor",
                                         "forced_bos_token_id",
                                         "forced_eos_token_id",
                                         "fp16",
                                         "fp32",
                                         "fp32_residual",
                                         "fused_dropout_add_ln",
                                         "hidden_dropout",
                                         "hidden_dropout_prob",
                                         "id2label",
                                         "im_end_id",
                                         "im_start_id",
                                         "image_token_id",
                                         "image_token_index",
                                         "init_config",
                                         "init_device",
                                         "init_std",
                                         "initial_context_length",
                                         "initializer_factor",
                                         "initializer_range",
                                         "is_decoder",
                                         "label2id",
                                         "layer_norm_bias",
                                         "layer_norm_eps",
                                         "layer_norm_epsilon",
                                         "layerdrop",
                                         "layernorm_compute_fp32",
                                         "layernorm_epsilon",
                                         "length_penalty",
                                         "logit_scale",
                                         "logits_attention_multiplier",
                                         "logits_scaling",
                                         "mask_token_id",
                                         "masked_softmax_fusion",
                                         "max_length",
                                         "max_position_embeddings",
                                         "max_seq_len",
                                         "max_sequence_length",
                                         "min_length",
                                         "mm_tokens_per_image",
                                         "model_max_length",
                                         "model_type",
                                         "moe_router_enable_expert_bias",
                                         "moe_router_topk_scaling_factor",
                                         "moe_z_loss_coeff",
                                         "mtp_loss_scaling_factor",
                                         "n_ctx",
                                         "n_positions",
                                         "no_repeat_ngram_size",
                                         "no_rope_layer_interval",
                                         "no_rope_layers",
                                         "no_rope_layers_interval",
                                         "norm_eps",
                                         "norm_epsilon",
                                         "norm_topk_prob",
                                         "num_beam_groups",
                                         "num_beams",
                                         "num_labels",
                                         "num_return_sequences",
                                         "offset_alibi",
                                         "original_max_position_embeddings",
                                         "output_attentions",
                                         "output_hidden_states",
                                         "output_router_logits",
                                         "output_scores",
                                         "pad_token_id",
                                         "partial_rotary",
                                         "partial_rotary_factor",
                                         "precision",
                                         "prefix",
                                         "pretraining_tp",
                                         "problem_type",
                                         "pruned_heads",
                                         "qk_layernorm_eps",
                                         "quantization",
                                         "query_pre_attn_scalar",
                                         "remove_invalid_values",
                                         "reorder_and_upcast_attn",
                                         "repetition_penalty",
                                         "resid_pdrop",
                                         "residual_dropout",
                                         "residual_multiplier",
                                         "return_dict",
                                         "return_dict_in_generate",
                                         "rms_norm_eps",
                                         "rope_dim",
                                         "rope_interleave",
                                         "rope_local_base_freq",
                                         "rope_parameters",
                                         "rope_pct",
                                         "rope_ratio",
                                         "rope_reorder",
                                         "rope_scaling",
                                         "rope_theta",
                                         "rope_theta_global",
                                         "rope_type",
                                         "rotary_dim",
                                         "rotary_emb_base",
                                         "rotary_emb_fraction",
                                         "rotary_pct",
                                         "rotary_percent",
                                         "rotary_percentage",
                                         "routed_scaling_factor",
                                         "router_bias_update_rate",
                                         "router_dtype",
                                         "router_jitter_noise",
                                         "router_use_fp32",
                                         "router_z_loss_coef",
                                         "scale_attention_softmax_in_fp32",
                                         "scale_attn_by_inverse_layer_idx",
                                         "scale_attn_weights",
                                         "scale_depth",
                                         "scale_emb",
                                         "scale_embedding",
                                         "scoring_function",
                                         "sep_token_id",
                                         "seq_aux",
                                         "seq_len",
                                         "seq_length",
                                         "skip_bias_add",
                                         "slow_but_exact",
                                         "summary_activation",
                                         "summary_first_dropout",
                                         "summary_proj_to_labels",
                                         "summary_type",
                                         "summary_use_proj",
                                         "suppress_tokens",
                                         "swiglu_limit",
                                         "task_specific_params",
                                         "temperature",
                                         "tf_legacy_loss",
                                         "tie_encoder_decoder",
                                         "tokenizer_class",
                                         "top_k",
                                         "top_p",
                                         "topk_scaling_factor",
                                         "torch_dtype",
                                         "torchscript",
                                         "transformers_version",
                                         "typical_p",
                                         "unk_token_id",
                                         "use_bfloat16",
                                         "use_cache",
                                         "use_dynamic_ntk",
                                         "use_flash_attn",
                                         "use_flash_attn_2",
                                         "use_logn_attn",
                                         "use_pad_tokenizer",
                                         "use_rmsnorm",
                                         "verbose",
                                         "video_token_id",
                                         "vision_end_token_id",
                                         "vision_feature_layer",
                                         "vision_start_token_id",
                                         "vision_token_id"};

// A config.json, its keys ticked off as they are read. Programs spell the same key in several ways;
// the first of the names that is there counts.
using Names = std::vector<const char*>;

class Config {
 public:
  explicit Config(const JsonReader& root) : root_(root) {
    for (const char* key : kWithoutSizes) read_.emplace_back(key);
  }

  const JsonReader& root() const { return root_; }
  // Whether the key is there and not null.
  bool Has(const std::string& key) {
    read_.push_back(key);
    return root_.Has(key) && !root_.At(key).value().is_null();
  }
  bool HasOne(const Names& names) {
    bool has = false;
    for (const char* name : names) has = Has(name) || has;
    return has;
  }
  // A missing one is reported under its first name.
  JsonReader At(const Names& names) {
    for (const char* name : names) {
      if (Has(name)) return root_.At(name);
    }
    return root_.At(names.front());
  }
  int64_t Whole(const Names& names, int64_t least, int64_t most) {
    return OneOf(At(names)).Integer(least, most);
  }
  int64_t WholeOr(const Names& names, int64_t least, int64_t most, int64_t otherwise) {
    return HasOne(names) ? Whole(names, least, most) : otherwise;
  }
  bool BoolOr(const Names& names, bool otherwise) {
    return HasOne(names) ? At(names).Bool() : otherwise;
  }

  void Remark(std::string remark) { remarks_.push_back(std::move(remark)); }
  // Remarks that something is left out if a switch is on.
  void LeaveOut(const char* key, bool otherwise, const char* what) {
    if (BoolOr({key}, otherwise)) Remark(fmt::format("{}: {} left out", key, what));
  }

  // Refuses what would add other layers or experts under names that this kind is not known to have.
  void RefuseUnreadLayers();

  std::vector<std::string> Remarks() {
    std::sort(read_.begin(), read_.end());
    std::vector<std::string> unknown;
    for (const auto& [key, value] : root_.Members()) {
      if (!IsRead(key) && !value.value().is_null()) unknown.push_back(key);
    }
    if (!unknown.empty()) Remark(fmt::format("not understood: {}", fmt::join(unknown, ", ")));
    return remarks_;
  }

 private:
  bool IsRead(const std::string& key) const {
    return std::find(read_.begin(), read_.end(), key) != read_.end();
  }
  // A value that may be written once for each layer, if it is the same for all.
  static JsonReader OneOf(const JsonReader& value) {
    if (!value.IsArray() || value.value().empty()) return value;
    const std::vector<JsonReader> all = value.Elements();
    for (const JsonReader& one : all) {
      if (one.value() != all.front().value())
        one.Expected("the same as for the layers before: all layers of a decoder here are alike");
    }
    return all.front();
  }

  JsonReader root_;
  std::vector<std::string> read_;
  std::vector<std::string> remarks_;
};

// Whether a value says that there is something: not 0, 1, false, "" or an empty list.
bool SaysThatThereIs(const nlohmann::json& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number()) return value.get<double>() > 1;
  if (value.is_string()) return !value.get_ref<const std::string&>().empty();
  return !value.empty();
}

void Config::RefuseUnreadLayers() {
  constexpr const char* kExperts[] = {"expert", "moe"};
  constexpr const char* kLayers[] = {"mamba",        "ssm_",
                                     "linear_attn",  "linear_num_",
                                     "hybrid_",      "attn_type",
                                     "attn_layer_",  "layers_block_type",
                                     "block_conf",   "cross_attention_layers",
                                     "cla_share",    "rwkv",
                                     "conv_l_cache", "lightning",
                                     "index_topk",   "block_types",
                                     "altup",        "laurel"};
  for (const auto& [key, value] : root_.Members()) {
    if (IsRead(key) || !SaysThatThereIs(value.value())) continue;
    const auto has = [&key = key](const char* part) { return key.find(part) != std::string::npos; };
    if (std::any_of(std::begin(kLayers), std::end(kLayers), has))
      value.Fail("says that there are layers of another kind, which a decoder here cannot have");
    // Coefficients and names of kernels are no experts; numbers of them are.
    if (has("capacity")) continue;
    const bool is_number = value.value().is_number_integer() || value.value().is_structured();
    if (is_number && std::any_of(std::begin(kExperts), std::end(kExperts), has))
      value.Fail(
          "says that there are experts, under a name that this kind of model is not known to "
          "have; they must not be dropped");
  }
}

// ---- families -----------------------------------------------------------------------------------

// What a family is, beside what its files say.
enum Trait : uint32_t {
  kGpt = 1U << 0,          // two matrices in an MLP; otherwise three, one of which is a gate
  kTied = 1U << 1,         // unless "tie_word_embeddings" says otherwise
  kHeadNorms = 1U << 2,    // norms of queries and keys
  kQueryBiases = 1U << 3,  // biases of queries, keys and values, which are left out
  kLayerNorms = 1U << 4,   // layer norms where ours are RMS norms
  kNoBiases = 1U << 5,     // none where ours of this style has them
  kParallel = 1U << 6,     // attention and MLP beside each other
  kMoreNorms = 1U << 7,    // norms behind attention and MLP, too
  kWindow = 1U << 8,       // "sliding_window" counts without a switch
  kExperts = 1U << 9,      // experts in place of MLPs
  kLatent = 1U << 10,      // latent attention, if "kv_lora_rank" is there
  kSigmoid = 1U << 11,     // the router's scores, unless the file says it
  kPositions = 1U << 12,   // a table of positions, which is not counted
  kBiasedExperts = 1U << 13,
  kSharedTwin = 1U << 14,  // every token also passes an expert like the others
  kInnerSizes = 1U << 16,  // says some sizes in objects of its own
  kMayBeDense = 1U << 15,  // has experts only if the file says so
};

// Of the class in transformers: what a file inside of another one need not say.
struct Defaults {
  int64_t layers = 0;
  int64_t hidden = 0;
  int64_t heads = 0;
  int64_t groups = 0;
  int64_t head = 0;  // also of a file that stands alone
  int64_t feed_forward = 0;
  int64_t vocabulary = 0;
  int64_t window = 0;  // also of a file that stands alone
};

// What is particular to one family.
using Particular = void (*)(Config& config, OrderedJson& keys);

struct Family {
  const char* model_type = "";
  uint32_t traits = 0;
  int64_t global_every = 0;  // every so many layers sees all tokens, unless the file says it
  Particular particular = nullptr;
  Defaults defaults = {};

  bool Is(Trait trait) const { return (traits & trait) != 0; }
};

const Names kLayerNames = {"num_hidden_layers", "n_layer", "n_layers", "num_layers"};
const Names kHiddenNames = {"hidden_size", "n_embd", "d_model", "n_embed"};
const Names kHeadNames = {"num_attention_heads", "n_head", "n_heads"};
const Names kGroupNames = {"num_key_value_heads", "num_kv_heads", "n_head_kv"};
const Names kColumnNames = {"intermediate_size", "ffn_dim", "n_inner", "ffn_hidden_size"};
const Names kVocabularyNames = {"vocab_size", "padded_vocab_size"};
const Names kActivationNames = {"hidden_act", "hidden_activation", "activation_function",
                                "activation"};
const Names kExpertNames = {"num_experts",        "num_local_experts", "n_routed_experts",
                            "num_routed_experts", "moe_num_experts",   "n_experts"};
const Names kChoiceNames = {
    "num_experts_per_tok", "num_experts_per_token", "moe_topk", "moe_top_k", "moe_k",
    "num_selected_experts"};

int64_t NumberOr(Config& config, const Names& names, int64_t most, int64_t otherwise) {
  return config.HasOne(names) || otherwise == 0 ? config.Whole(names, 1, most) : otherwise;
}

void ReadActivation(Config& config, const Family& family) {
  if (!config.HasOne(kActivationNames)) return;
  const JsonReader activation = config.At(kActivationNames);
  if (!activation.IsString()) return;
  const std::string name = activation.String();
  const bool is_gelu = name.starts_with("gelu") || name == "quick_gelu" || name == "gegelu";
  const bool is_silu = name == "silu" || name == "swish" || name == "swiglu";
  if (family.Is(kGpt)) {
    constexpr const char* kCarried[] = {"relu", "relu2", "relu_squared", "squared_relu", "xielu"};
    const bool costs_the_same =
        is_silu || std::any_of(std::begin(kCarried), std::end(kCarried),
                               [&](const char* one) { return name == one; });
    if (!is_gelu && !costs_the_same)
      activation.Expected("one that a decoder here can have: gelu, relu, relu2");
    if (costs_the_same) config.Remark(fmt::format("{}: played as GELU, which costs as much", name));
  } else if (is_gelu) {
    config.Remark(fmt::format("{}: the MLP's gate is played as SwiGLU, which costs as much", name));
  } else if (!is_silu) {
    activation.Expected("one that a decoder here can have: silu, swish, gelu");
  }
}

// Reads layers with windows: all, none, or all except every n-th. Chunks are windows here.
void ReadLayerTypes(Config& config, int64_t layers, int64_t window, OrderedJson& keys) {
  const JsonReader types = config.At({"layer_types"});
  std::vector<bool> has_window;
  const std::vector<std::string> names = {"full_attention", "sliding_attention",
                                          "chunked_attention", "attention"};
  for (const JsonReader& type : types.Elements()) {
    const size_t kind = type.Choice(names);
    has_window.push_back(kind == 1 || kind == 2);
  }
  if (std::cmp_not_equal(has_window.size(), layers)) {
    types.Fail(
        fmt::format("found {} layers, expected {} (num_hidden_layers)", has_window.size(), layers));
  }
  const auto first = std::find(has_window.begin(), has_window.end(), false);
  if (first == has_window.begin() &&
      std::find(has_window.begin(), has_window.end(), true) == has_window.end())
    return;
  if (window == 0) types.Fail("says which layers have a window, but there is no sliding_window");
  keys["window"] = window;
  if (first == has_window.end()) return;
  const int64_t every = first - has_window.begin() + 1;
  for (int64_t layer = 0; layer < layers; ++layer) {
    if (has_window[static_cast<size_t>(layer)] != ((layer + 1) % every != 0)) {
      types.Fail(
          fmt::format("layer {} breaks the order of the layers before it, in which every {}-th "
                      "sees all tokens; a decoder here can have no other order",
                      layer, every));
    }
  }
  keys["global_every"] = every;
}

// Every how many layers one sees all tokens: a number, or a text such as "LLLG".
int64_t GlobalEvery(Config& config, const Family& family) {
  const Names names = {"sliding_window_pattern", "_sliding_window_pattern"};
  if (!config.HasOne(names)) return family.global_every;
  const JsonReader pattern = config.At(names);
  if (!pattern.IsString()) return pattern.Integer(0, kMostLayers);
  const std::string text = pattern.String();
  if (text.empty() || text.find_first_not_of('L') != text.size() - 1 || text.back() != 'G')
    pattern.Expected("layers with windows and a last one without, such as LLLG");
  return static_cast<int64_t>(text.size());
}

void ReadWindow(Config& config, const Family& family, int64_t layers, OrderedJson& keys) {
  const Names names = {"sliding_window", "attention_chunk_size"};
  const bool is_silent = std::none_of(names.begin(), names.end(),
                                      [&](const char* name) { return config.root().Has(name); });
  const int64_t window =
      config.WholeOr(names, 0, kMostColumns, is_silent ? family.defaults.window : 0);
  const bool is_used = config.BoolOr({"use_sliding_window"}, family.Is(kWindow));
  const int64_t from = config.WholeOr({"max_window_layers"}, 0, kMostLayers, 0);
  const int64_t every = GlobalEvery(config, family);
  if (config.Has("layer_types")) {
    ReadLayerTypes(config, layers, window, keys);
  } else if (is_used && window > 0 && from < layers) {
    if (from > 0)
      config.At({"max_window_layers"})
          .Expected("0 or all layers: windows only in the last layers are not supported here");
    keys["window"] = window;
    if (every > 0) keys["global_every"] = every;
  }
  if (keys.contains("window") && config.Has("attention_chunk_size"))
    config.Remark("attention_chunk_size: chunks of tokens are played as windows of that size");
}

void ReadAuxiliary(Config& config, OrderedJson& experts) {
  const Names names = {"router_aux_loss_coef", "aux_loss_alpha", "moe_aux_loss_coeff"};
  if (config.HasOne(names)) experts["auxiliary_loss"] = config.At(names).Number(0, 1e6);
}

// Reads which layers have an MLP in place of experts: they can only be the first ones.
void ReadDenseLayers(Config& config, OrderedJson& experts) {
  const JsonReader layers = config.At({"mlp_only_layers"});
  int64_t next = 0;
  for (const JsonReader& layer : layers.Elements()) {
    if (layer.Integer(0, kMostLayers) != next++)
      layer.Expected(
          "the first layers in order: a decoder here has experts in all layers after them");
  }
  if (next > 0) experts["first_dense"] = next;
}

// "moe_layer_freq": 1, or 0 for each layer with an MLP and 1 for each with experts.
void ReadExpertFrequency(Config& config, OrderedJson& experts) {
  const JsonReader frequency = config.At({"moe_layer_freq"});
  if (!frequency.IsArray()) {
    if (frequency.Integer(1, kMostLayers) != 1)
      frequency.Expected("1: here the last of so many layers has experts, there the first");
    return;
  }
  int64_t dense = 0;
  bool has_begun = false;
  for (const JsonReader& layer : frequency.Elements()) {
    const bool has_experts = layer.Integer(0, 1) == 1;
    if (has_begun && !has_experts)
      layer.Expected("1: a decoder here has experts in all layers after the first that has them");
    has_begun = has_begun || has_experts;
    if (!has_begun) ++dense;
  }
  if (dense > 0) experts["first_dense"] = dense;
}

void ReadRouter(Config& config, const Family& family, OrderedJson& experts) {
  const std::vector<std::string> methods = {"greedy", "group_limited_greedy", "noaux_tc"};
  const bool has_method = config.Has("topk_method");
  const size_t method = has_method            ? config.At({"topk_method"}).Choice(methods)
                        : family.Is(kSigmoid) ? 2
                                              : 0;
  const int64_t groups = config.WholeOr({"n_group"}, 0, 1 << 16, 1);
  const int64_t limited = config.WholeOr({"topk_group"}, 0, 1 << 16, groups);
  if (method != 0 && groups > 1) {
    experts["groups"] = groups;
    experts["limited_groups"] = limited;
  }
  const Names names = {"scoring_func", "score_function", "moe_router_activation_func"};
  const std::vector<std::string> scores = {"softmax", "sigmoid"};
  const size_t score = config.HasOne(names) && config.At(names).IsString()
                           ? config.At(names).Choice(scores)
                           : (family.Is(kSigmoid) ? 1 : 0);
  if (score == 1 || config.HasOne(names)) experts["router"] = scores[score];
}

void ReadHfExperts(Config& config, const Family& family, OrderedJson& keys) {
  OrderedJson& experts = keys["experts"];
  const Names hidden_names = {"moe_intermediate_size", "expert_ffn_hidden_size"};
  const int64_t columns =
      config.WholeOr(kColumnNames, 1, kMostColumns, keys["feed_forward"].get<int64_t>());
  const int64_t hidden = config.WholeOr(hidden_names, 1, kMostColumns, columns);
  const Names shared_names = {"n_shared_experts", "num_shared_experts", "moe_num_shared_experts",
                              "num_shared_expert"};
  const int64_t count = config.WholeOr(shared_names, 0, 1 << 16, 0);
  const Names width_names = {"shared_expert_intermediate_size", "shared_intermediate_size",
                             "moe_shared_expert_intermediate_size"};
  const int64_t width = config.WholeOr(width_names, 0, kMostColumns, 0);
  experts["count"] = config.Whole(kExpertNames, 1, 1 << 16);
  experts["per_token"] = config.Whole(kChoiceNames, 1, 1 << 16);
  experts["hidden"] = hidden;
  const int64_t shared = width > 0                ? width * std::max<int64_t>(count, 1)
                         : family.Is(kSharedTwin) ? hidden
                                                  : count * hidden;
  if (shared > 0) experts["shared"] = shared;
  const Names dense_names = {"first_k_dense_replace", "moe_layer_start_index",
                             "moe_layer_num_skipped"};
  const int64_t dense = config.WholeOr(dense_names, 0, kMostLayers, 0);
  if (dense > 0) experts["first_dense"] = dense;
  const Names every_names = {"decoder_sparse_step", "interleave_moe_layer_step",
                             "moe_layer_interval"};
  const int64_t every = config.WholeOr(every_names, 1, kMostLayers, 1);
  if (every > 1) experts["every"] = every;
  const int64_t last = config.WholeOr({"moe_layer_end_index"}, -1, kMostLayers, -1);
  if (last >= 0 && last != keys["layers"].get<int64_t>() - 1)
    config.At({"moe_layer_end_index"}).Expected("the last layer, which also has experts here");
  if (config.Has("mlp_only_layers")) ReadDenseLayers(config, experts);
  if (config.Has("moe_layer_freq")) ReadExpertFrequency(config, experts);
  ReadRouter(config, family, experts);
  ReadAuxiliary(config, experts);
  if (family.Is(kBiasedExperts)) {
    experts["biased"] = true;
    config.Remark("attention sinks are left out, biases of experts only take time");
  }
}

void ReadHfLatent(Config& config, OrderedJson& keys) {
  // Each head has a key of its own, and sizes are in "latent".
  keys.erase("groups");
  keys.erase("head_size");
  OrderedJson& latent = keys["latent"];
  latent["query_rank"] = config.WholeOr({"q_lora_rank"}, 0, 1 << 20, 0);
  latent["kv_rank"] = config.Whole({"kv_lora_rank"}, 1, 1 << 20);
  latent["rope_head"] = config.Whole({"qk_rope_head_dim"}, 1, 1 << 20);
  latent["head"] = config.Whole({"qk_nope_head_dim"}, 1, 1 << 20);
  const int64_t usual = keys["hidden"].get<int64_t>() / keys["heads"].get<int64_t>();
  latent["value_head"] = config.WholeOr({"v_head_dim"}, 1, 1 << 20, std::max<int64_t>(usual, 1));
  config.Has("qk_head_dim");  // the sum of two above
}

// Layers that predict tokens after the next one.
void ReadAhead(Config& config, OrderedJson& keys) {
  const Names names = {"num_nextn_predict_layers", "num_mtp_modules", "mtp_num_layers"};
  const int64_t ahead = config.WholeOr(names, 0, 1 << 10, 0);
  config.Has("mtp_transformer_layers");
  if (ahead == 0 || !config.BoolOr({"use_mtp"}, true)) return;
  if (keys["tied"] == true || keys["style"] == "gpt") {
    config.Remark("the heads that predict further ahead are left out");
    return;
  }
  if (ahead > 1)
    config.Remark(fmt::format("of {} layers that predict further ahead, one is played", ahead));
  keys["predict_ahead"] = 1;
}

void RemarkOnTraits(Config& config, const Family& family, OrderedJson& keys) {
  if (family.Is(kQueryBiases)) config.Remark("biases of queries, keys and values are left out");
  const Names bias_names = {"attention_bias", "qkv_bias", "use_qkv_bias", "add_qkv_bias",
                            "attention_qkv_bias"};
  if (!family.Is(kGpt)) {
    for (const char* name : bias_names) {
      if (family.Is(kQueryBiases)) {
        config.Has(name);
        continue;
      }
      config.LeaveOut(name, family.Is(kBiasedExperts) && name == bias_names.front(),
                      "biases of attention are");
    }
    for (const char* name : {"mlp_bias", "bias", "use_bias", "add_bias_linear"})
      config.LeaveOut(name, false, "biases of the MLP are");
    config.Has("no_bias");
    const Names norm_names = {"use_qk_norm", "qk_layernorm", "use_qk_layernorm", "qk_norm"};
    if (config.BoolOr(norm_names, family.Is(kHeadNorms))) {
      keys["head_norms"] = true;
      config.Remark("norms of queries and keys only take time");
    }
  } else {
    const Names all_names = {"attention_bias", "mlp_bias", "use_bias", "bias", "enable_bias"};
    const bool says_none = config.BoolOr({"no_bias"}, false);
    const bool has_biases = config.BoolOr(all_names, !family.Is(kNoBiases)) && !says_none;
    for (const char* name : bias_names) config.Has(name);
    if (!has_biases)
      config.Remark("biases and layer norms of GPT's style are counted, which it has not");
    config.BoolOr({"use_qk_norm", "qk_layernorm"}, false);
  }
  if (family.Is(kLayerNorms)) config.Remark("layer norms are played as RMS norms");
  if (family.Is(kMoreNorms)) config.Remark("norms behind attention and MLP are left out");
  const Names parallel_names = {"use_parallel_residual", "parallel_attn"};
  if (config.BoolOr(parallel_names, family.Is(kParallel))) {
    const char* name = config.Has("parallel_attn") ? "parallel_attn" : "use_parallel_residual";
    config.Remark(fmt::format("{}: attention and MLP come one after the other here", name));
  }
  if (family.Is(kPositions)) {
    const int64_t rows = config.WholeOr({"n_positions", "max_position_embeddings", "max_seq_len"},
                                        0, kMostColumns, 0);
    if (rows > 0) {
      config.Remark(
          fmt::format("the table of {} positions, {:.3g} million parameters, is not counted", rows,
                      static_cast<double>(rows) * keys["hidden"].get<double>() / 1e6));
    }
  }
}

OrderedJson ReadFamily(Config& config, const Family& family, bool is_inner) {
  const Defaults given = family.defaults;
  const Defaults defaults = is_inner ? given : Defaults{.head = given.head, .window = given.window};
  OrderedJson keys;
  const int64_t layers = NumberOr(config, kLayerNames, kMostLayers, defaults.layers);
  const int64_t heads = NumberOr(config, kHeadNames, 1 << 16, defaults.heads);
  const int64_t hidden = NumberOr(config, kHiddenNames, 1 << 20, defaults.hidden);
  keys["style"] = family.Is(kGpt) ? "gpt" : "llama";
  keys["layers"] = layers;
  keys["hidden"] = hidden;
  keys["heads"] = heads;
  const int64_t groups =
      config.WholeOr(kGroupNames, 1, 1 << 16, defaults.groups > 0 ? defaults.groups : heads);
  if (groups != heads) keys["groups"] = groups;
  // Particular families say it in another way.
  const bool has_columns = config.HasOne(kColumnNames) || defaults.feed_forward > 0;
  if (has_columns || (!family.Is(kGpt) && !family.Is(kInnerSizes)))
    keys["feed_forward"] = NumberOr(config, kColumnNames, kMostColumns, defaults.feed_forward);
  keys["vocabulary"] = NumberOr(config, kVocabularyNames, kMostColumns, defaults.vocabulary);
  keys["tied"] = config.BoolOr({"tie_word_embeddings"}, family.Is(kTied));
  const int64_t head = config.WholeOr({"head_dim", "kv_channels"}, 1, 1 << 16, defaults.head);
  if (head > 0) keys["head_size"] = head;
  ReadActivation(config, family);
  if (family.particular != nullptr) family.particular(config, keys);
  ReadWindow(config, family, layers, keys);
  if (family.Is(kLatent) && config.Has("kv_lora_rank")) ReadHfLatent(config, keys);
  const bool has_experts = family.Is(kExperts) && config.WholeOr(kExpertNames, 0, 1 << 16, 0) > 0;
  if (has_experts) {
    ReadHfExperts(config, family, keys);
  } else if (family.Is(kExperts) && !family.Is(kMayBeDense)) {
    config.Whole(kExpertNames, 1, 1 << 16);
  }
  ReadAhead(config, keys);
  RemarkOnTraits(config, family, keys);
  if (config.BoolOr({"add_cross_attention"}, false))
    config.At({"add_cross_attention"}).Expected("false: there is no encoder");
  return keys;
}

// ---- what is particular to a family -------------------------------------------------------------

void ReadGatedShare(Config& config, OrderedJson& /*keys*/) {
  config.Remark("the gate of the shared expert is left out");
}

// Qwen's first: the file has the columns of both halves of the gated MLP.
void ReadFirstQwen(Config& /*config*/, OrderedJson& keys) {
  keys["feed_forward"] = keys["feed_forward"].get<int64_t>() / 2;
}

void ReadFalcon(Config& config, OrderedJson& keys) {
  const bool is_new = config.BoolOr({"new_decoder_architecture"}, false);
  const bool is_single = config.BoolOr({"multi_query"}, true);
  // RefinedWeb, its first code for 40B, only has the number of keys.
  if (config.Has("n_head_kv")) return;
  if (!is_new && is_single) keys["groups"] = 1;
  if (!is_new && !is_single) keys.erase("groups");
  config.BoolOr({"alibi"}, false);
}

void ReadBigCode(Config& config, OrderedJson& keys) {
  if (config.BoolOr({"multi_query"}, true)) keys["groups"] = 1;
}

void ReadOpt(Config& config, OrderedJson& keys) {
  const int64_t width = config.WholeOr({"word_embed_proj_dim"}, 1, 1 << 20, keys["hidden"]);
  if (width != keys["hidden"])
    config.At({"word_embed_proj_dim"})
        .Expected("the hidden size: an embedding of another width is not supported");
  config.BoolOr({"do_layer_norm_before"}, true);
  config.BoolOr({"_remove_final_layer_norm"}, false);
  config.BoolOr({"layer_norm_elementwise_affine"}, true);
}

void ReadMpt(Config& config, OrderedJson& keys) {
  if (config.Has("expansion_ratio"))
    keys["feed_forward"] =
        config.Whole({"expansion_ratio"}, 1, 1 << 10) * keys["hidden"].get<int64_t>();
  if (config.Has("ffn_config")) {
    const JsonReader ffn = config.At({"ffn_config"});
    if (ffn.Has("ffn_type") && ffn.At("ffn_type").String() != "mptmlp")
      ffn.At("ffn_type").Expected("\"mptmlp\": other MLPs are not supported");
  }
  if (config.Has("attn_config")) {
    const JsonReader attention = config.At({"attn_config"});
    const std::vector<std::string> kinds = {"multihead_attention", "multiquery_attention",
                                            "grouped_query_attention"};
    const size_t kind = attention.Has("attn_type") ? attention.At("attn_type").Choice(kinds) : 0;
    if (kind == 1) keys["groups"] = 1;
    if (kind == 2) keys["groups"] = attention.At("kv_n_heads").Integer(1, 1 << 16);
  }
}

void ReadDbrx(Config& config, OrderedJson& keys) {
  const JsonReader attention = config.At({"attn_config"});
  const JsonReader ffn = config.At({"ffn_config"});
  keys["groups"] = attention.At("kv_n_heads").Integer(1, 1 << 16);
  const int64_t columns = ffn.At("ffn_hidden_size").Integer(1, kMostColumns);
  keys["feed_forward"] = columns;
  keys["experts"] = {{"count", ffn.At("moe_num_experts").Integer(1, 1 << 16)},
                     {"per_token", ffn.At("moe_top_k").Integer(1, 1 << 16)},
                     {"hidden", columns}};
}

void ReadChatGlm(Config& config, OrderedJson& keys) {
  if (config.BoolOr({"multi_query_attention"}, false))
    keys["groups"] = config.Whole({"multi_query_group_num"}, 1, 1 << 16);
  config.BoolOr({"post_layer_norm"}, true);
  config.BoolOr({"rmsnorm"}, true);
}

void ReadLlama4(Config& config, OrderedJson& keys) {
  const int64_t columns = keys["feed_forward"];
  keys["feed_forward"] = config.WholeOr({"intermediate_size_mlp"}, 1, kMostColumns, columns);
  if (config.Has("moe_layers")) {
    const int64_t every = config.WholeOr({"interleave_moe_layer_step"}, 1, kMostLayers, 1);
    int64_t next = every - 1;
    for (const JsonReader& layer : config.At({"moe_layers"}).Elements()) {
      if (layer.Integer(0, kMostLayers) != next)
        layer.Expected(fmt::format("{}: the last of every {} layers has experts", next, every));
      next += every;
    }
  }
}

void ReadMiniMax(Config& config, OrderedJson& /*keys*/) {
  if (!config.Has("attn_type_list")) return;
  for (const JsonReader& layer : config.At({"attn_type_list"}).Elements()) {
    if (layer.Integer(0, 1) != 1)
      layer.Fail("lightning attention is not supported; a decoder here can only have attention");
  }
}

void ReadGraniteHybrid(Config& config, OrderedJson& keys) {
  if (config.WholeOr(kExpertNames, 0, 1 << 16, 0) == 0) {
    keys["feed_forward"] = config.WholeOr({"shared_intermediate_size"}, 1, kMostColumns,
                                          keys["feed_forward"].get<int64_t>());
    config.Has("num_experts_per_tok");
  }
  for (const JsonReader& layer : config.At({"layer_types"}).Elements()) {
    if (layer.String() != "attention")
      layer.Fail("found a state-space layer; a decoder here can only have attention");
  }
  for (const auto& [key, value] : config.root().Members()) {
    if (key.starts_with("mamba_")) config.Has(key);
  }
}

void ReadOlmo(Config& config, OrderedJson& keys) {
  config.Has("clip_qkv");
  if (config.Has("mlp_hidden_size"))
    keys["feed_forward"] = config.Whole({"mlp_hidden_size"}, 2, kMostColumns) / 2;
}

void ReadHunyuan(Config& config, OrderedJson& /*keys*/) {
  if (config.BoolOr({"use_cla"}, false))
    config.At({"use_cla"}).Fail("layers that share keys and values are not supported");
  config.Has("cla_share_factor");
  config.BoolOr({"use_mixed_mlp_moe"}, true);
  config.BoolOr({"moe_drop_tokens"}, false);
  config.Has("head_dim");
  config.Has("attention_head_dim");
}

void ReadNeo(Config& config, OrderedJson& /*keys*/) {
  for (const char* name : {"attention_layers", "attention_types", "window_size"}) config.Has(name);
  if (!config.Has("attention_layers")) return;
  for (const JsonReader& layer : config.At({"attention_layers"}).Elements()) {
    if (layer.String() != "global")
      layer.Fail("windows that begin behind the first layer are not supported");
  }
}

void ReadPerceptive(Config& config, OrderedJson& /*keys*/) {
  config.Remark("adapters of images and sound are left out");
  for (const char* name :
       {"speech_lora", "vision_lora", "img_processor", "audio_processor", "embd_layer"})
    config.Has(name);
}

constexpr Defaults kLlamaDefaults = {32, 4096, 32, 0, 0, 11008, 32000};
constexpr Defaults kMistralDefaults = {32, 4096, 32, 8, 0, 14336, 32000, 4096};
constexpr Defaults kQwen2Defaults = {32, 4096, 32, 32, 0, 22016, 151936};
constexpr Defaults kGemmaDefaults = {28, 3072, 16, 16, 256, 24576, 256000};
constexpr Defaults kGemma2Defaults = {26, 2304, 8, 4, 256, 9216, 256000, 4096};
constexpr Defaults kGemma3Defaults = {26, 2304, 8, 4, 256, 9216, 262208, 4096};
constexpr Defaults kLlama4Defaults = {48, 5120, 40, 8, 128, 8192, 202048, 8192};

constexpr Family kFamilies[] = {
    {"llama", 0, 0, nullptr, kLlamaDefaults},
    {"mistral", kWindow, 0, nullptr, kMistralDefaults},
    {"mixtral", kWindow | kExperts},
    {"qwen2", kQueryBiases, 0, nullptr, kQwen2Defaults},
    {"qwen2_moe", kQueryBiases | kExperts, 0, ReadGatedShare},
    {"qwen3", kHeadNorms, 0, nullptr, {.head = 128}},
    {"qwen3_moe", kHeadNorms | kExperts},
    {"deepseek_v2", kLatent | kExperts | kMayBeDense},
    {"deepseek_v3", kLatent | kExperts | kSigmoid | kMayBeDense},
    {"gpt_neox", kGpt | kParallel},
    {"gpt2", kGpt | kTied | kPositions},
    {"gpt_oss", kWindow | kExperts | kBiasedExperts, 2, nullptr, {.head = 64, .window = 128}},
    // DeepSeek's under other names, and with usual attention.
    {"kimi_k2", kLatent | kExperts | kSigmoid},
    {"deepseek", kExperts},
    {"glm4_moe_lite", kLatent | kExperts | kSigmoid},
    {"glm4_moe", kExperts | kSigmoid, 0, nullptr, {.head = 128}},
    {"glm4v_moe_text", kExperts | kSigmoid, 0, nullptr, {.head = 128}},
    {"dots1", kExperts | kSigmoid | kHeadNorms | kWindow},
    {"bailing_moe", kExperts},
    {"bailing_moe_v2", kExperts | kSigmoid | kHeadNorms},
    // Llama's.
    {"Yi", 0},
    {"aquila", 0},
    {"aquila3", 0},
    {"arcee", kGpt | kNoBiases},
    {"baichuan", 0},
    {"codellama", 0},
    {"ernie4_5", kTied},
    {"exaone", 0},
    {"exaone4", kHeadNorms | kMoreNorms | kWindow, 4},
    {"glm", kQueryBiases, 0, nullptr, {.head = 128}},
    {"glm4", kMoreNorms, 0, nullptr, {.head = 128}},
    {"glm4v_text", kMoreNorms},
    {"granite", 0},
    {"helium", 0},
    {"hunyuan_v1_dense", kHeadNorms, 0, ReadHunyuan},
    {"internlm", 0},
    {"internlm2", 0},
    {"internlm3", 0},
    {"mimo", kQueryBiases},
    {"minicpm", kTied},
    {"minicpm3", kLatent | kTied},
    {"ministral", kWindow},
    {"ministral3", kWindow},
    {"olmo", kLayerNorms, 0, ReadOlmo},
    {"olmo2", kHeadNorms},
    {"olmo3", kHeadNorms | kWindow, 4, nullptr, {.window = 4096}},
    {"orion", kLayerNorms},
    {"phi3", kWindow},
    {"phi3_v", kWindow},
    {"phi4mm", kWindow | kTied, 0, ReadPerceptive},
    {"qwen", kQueryBiases, 0, ReadFirstQwen},
    {"seed_oss", kQueryBiases, 0, nullptr, {.head = 128}},
    {"smollm3", kTied},
    {"solar", 0},
    {"stablelm", kLayerNorms},
    {"stablelm_epoch", kLayerNorms},
    {"xverse", 0},
    {"qwen2_vl", kQueryBiases, 0, nullptr, kQwen2Defaults},
    {"qwen2_vl_text", kQueryBiases, 0, nullptr, kQwen2Defaults},
    {"qwen2_5_vl", kQueryBiases, 0, nullptr, kQwen2Defaults},
    {"qwen2_5_vl_text", kQueryBiases, 0, nullptr, kQwen2Defaults},
    {"qwen3_vl_text", kHeadNorms, 0, nullptr, {.head = 128}},
    {"qwen3_vl_moe_text", kHeadNorms | kExperts, 0, nullptr, {.head = 128}},
    {"minicpmv", kQueryBiases},
    {"chatglm", kQueryBiases, 0, ReadChatGlm},
    // Other gated ones.
    {"cohere", kTied | kLayerNorms | kParallel},
    {"cohere2", kTied | kLayerNorms | kParallel | kWindow, 4, nullptr, {.window = 4096}},
    {"gemma", kTied, 0, nullptr, kGemmaDefaults},
    {"gemma2", kTied | kMoreNorms | kWindow, 2, nullptr, kGemma2Defaults},
    {"gemma3_text", kTied | kMoreNorms | kHeadNorms | kWindow, 6, nullptr, kGemma3Defaults},
    // With experts.
    {"dbrx", kLayerNorms | kInnerSizes, 0, ReadDbrx},
    {"ernie4_5_moe", kExperts | kTied},
    {"flex_olmo", kExperts | kHeadNorms},
    {"granitemoe", kExperts},
    {"granitemoeshared", kExperts},
    {"granitemoehybrid", kExperts | kMayBeDense, 0, ReadGraniteHybrid},
    {"hunyuan", kExperts | kMayBeDense | kHeadNorms, 0, ReadHunyuan},
    {"hunyuan_v1_moe", kExperts | kHeadNorms, 0, ReadHunyuan},
    {"llama4_text", kExperts | kSharedTwin | kSigmoid | kWindow, 4, ReadLlama4, kLlama4Defaults},
    {"minimax_m2", kExperts | kSigmoid | kHeadNorms, 0, ReadMiniMax},
    {"olmoe", kExperts | kHeadNorms},
    {"phimoe", kExperts | kLayerNorms | kWindow},
    // Two matrices in an MLP.
    {"RefinedWeb", kGpt | kTied | kParallel | kNoBiases, 0, ReadFalcon},
    {"RefinedWebModel", kGpt | kTied | kParallel | kNoBiases, 0, ReadFalcon},
    {"apertus", kGpt | kNoBiases},
    {"bloom", kGpt | kTied},
    {"codegen", kGpt | kParallel},
    {"falcon", kGpt | kTied | kParallel | kNoBiases, 0, ReadFalcon},
    {"gpt_bigcode", kGpt | kTied | kPositions, 0, ReadBigCode},
    {"gpt_neo", kGpt | kTied | kPositions, 0, ReadNeo},
    {"gptj", kGpt | kParallel},
    {"mpt", kGpt | kTied | kNoBiases, 0, ReadMpt},
    {"nemotron", kGpt | kNoBiases},
    {"opt", kGpt | kTied | kPositions, 0, ReadOpt},
    {"persimmon", kGpt},
    {"phi", kGpt | kParallel},
    {"phi-msft", kGpt | kParallel},
    {"starcoder2", kGpt | kTied | kWindow},
};

// What a decoder here cannot be, and why.
struct Refused {
  const char* model_type;
  const char* why;
};
constexpr const char* kStateSpace = "its state-space layers are not supported";
constexpr const char* kLinear = "its layers of linear attention are not supported";
constexpr const char* kEncoder = "it is no decoder: encoders are not supported";
constexpr Refused kRefused[] = {
    {"mamba", kStateSpace},
    {"mamba2", kStateSpace},
    {"falcon_mamba", kStateSpace},
    {"falcon_h1", kStateSpace},
    {"jamba", kStateSpace},
    {"bamba", kStateSpace},
    {"zamba", kStateSpace},
    {"zamba2", kStateSpace},
    {"hymba", kStateSpace},
    {"plamo2", kStateSpace},
    {"nemotron_h", kStateSpace},
    {"phi4flash", kStateSpace},
    {"qwen3_next", kLinear},
    {"qwen3_5", kLinear},
    {"qwen3_5_text", kLinear},
    {"qwen3_5_moe", kLinear},
    {"qwen3_5_moe_text", kLinear},
    {"kimi_linear", kLinear},
    {"minimax", "its layers of lightning attention are not supported"},
    {"minimax_text_01", "its layers of lightning attention are not supported"},
    {"minimax_m1", "its layers of lightning attention are not supported"},
    {"bailing_moe_linear", kLinear},
    {"rwkv", "its recurrent layers are not supported"},
    {"rwkv6", "its recurrent layers are not supported"},
    {"rwkv7", "its recurrent layers are not supported"},
    {"xlstm", "its recurrent layers are not supported"},
    {"recurrent_gemma", "its recurrent layers are not supported"},
    {"retnet", "its retention is not supported"},
    {"lfm2", "its convolutions are not supported"},
    {"lfm2_moe", "its convolutions are not supported"},
    {"deepseek_v32", "its sparse attention is not supported"},
    {"glm_moe_dsa", "its sparse attention is not supported"},
    {"longcat_flash", "its layers with two attentions and empty experts are not supported"},
    {"gemma3n", "its layers with several streams are not supported"},
    {"gemma3n_text", "its layers with several streams are not supported"},
    {"openelm", "its layers are of different sizes, which is not supported"},
    {"nemotron-nas", "its layers are of different sizes, which is not supported"},
    {"deci", "its layers are of different sizes, which is not supported"},
    {"mimo_v2_flash", "its layers have keys of different sizes, which is not supported"},
    {"step3", "its attention is not supported"},
    {"phi3small", "its block-sparse attention is not supported"},
    {"mllama", "its layers that attend to images are not supported"},
    {"mllama_text_model", "its layers that attend to images are not supported"},
    {"jetmoe", "its experts of attention are not supported"},
    {"arctic", "its experts beside MLPs are not supported"},
    {"diffllama", "its differential attention is not supported"},
    {"bitnet", "its products of ternary weights are not supported"},
    {"t5", kEncoder},
    {"mt5", kEncoder},
    {"t5gemma", kEncoder},
    {"bart", kEncoder},
    {"bert", kEncoder},
    {"roberta", kEncoder},
    {"distilbert", kEncoder},
    {"deberta-v2", kEncoder},
    {"electra", kEncoder},
    {"modernbert", kEncoder},
    {"ernie", kEncoder},
    {"xlm-roberta", kEncoder},
    {"whisper", kEncoder},
    {"vit", kEncoder},
    {"clip", kEncoder},
};

// Where a file of another kind, often of images and text, has its decoder, and which kind that is
// if it does not say it.
struct Wrapper {
  const char* model_type;
  const char* inner;
};
constexpr Wrapper kWrappers[] = {{"aya_vision", "cohere2"},
                                 {"gemma3", "gemma3_text"},
                                 {"glm4v", "glm4v_text"},
                                 {"glm4v_moe", "glm4v_moe_text"},
                                 {"llama4", "llama4_text"},
                                 {"llava", "llama"},
                                 {"llava_next", "llama"},
                                 {"mistral3", "mistral"},
                                 {"paligemma", "gemma"},
                                 {"qwen2_5_vl", "qwen2_5_vl_text"},
                                 {"qwen2_vl", "qwen2_vl_text"},
                                 {"qwen3_vl", "qwen3_vl_text"},
                                 {"qwen3_vl_moe", "qwen3_vl_moe_text"},
                                 {"video_llava", "llama"},
                                 {"vipllava", "llama"}};

constexpr const char* kInnerNames[] = {"text_config", "llm_config", "language_config"};

const Family& FamilyOf(const JsonReader& root, const JsonReader& outer) {
  std::string name;
  if (root.Has("model_type")) {
    name = root.At("model_type").String();
  } else if (outer.Has("model_type")) {
    const std::string around = outer.At("model_type").String();
    for (const Wrapper& wrapper : kWrappers) {
      if (around == wrapper.model_type) name = wrapper.inner;
    }
  }
  for (const Refused& refused : kRefused) {
    if (name == refused.model_type)
      root.At("model_type").Fail(fmt::format("found \"{}\": {}", name, refused.why));
  }
  std::vector<std::string> names;
  for (const Family& family : kFamilies) {
    if (name == family.model_type) return family;
    names.emplace_back(family.model_type);
  }
  return kFamilies[root.At("model_type").Choice(names)];
}

// The decoder inside of a model of images and text, or the whole.
JsonReader DecoderOf(const JsonReader& root) {
  if (root.Has("model_type") && root.At("model_type").IsString()) {
    const std::string name = root.At("model_type").String();
    for (const Refused& refused : kRefused) {
      if (name == refused.model_type)
        root.At("model_type").Fail(fmt::format("found \"{}\": {}", name, refused.why));
    }
  }
  for (const char* name : kInnerNames) {
    if (root.Has(name) && root.At(name).IsObject() && !root.At(name).value().empty())
      return DecoderOf(root.At(name));
  }
  return root;
}

// "Llama-2-7b-hf" for "meta-llama/Llama-2-7b-hf"; a model without a name is called by its kind and
// sizes.
std::string NameOf(const Config& config, const char* model_type, const OrderedJson& keys) {
  const auto& value = config.root().value();
  const auto path = value.find("_name_or_path");
  std::string name;
  if (path != value.end() && path->is_string()) {
    name = path->get<std::string>();
    while (name.ends_with('/')) name.pop_back();
    name = name.substr(name.rfind('/') + 1);
  }
  const bool is_plain = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return c > ' ' && c < 0x7f && c != '"' && c != '\\';
  });
  if (is_plain && name != ".") return name;
  return fmt::format("{}-{}x{}", model_type, keys["layers"].get<int64_t>(),
                     keys["hidden"].get<int64_t>());
}

// YaRN scales sines and cosines, unless its factor is given as 1 or cancels (DeepSeek). gpt-oss has
// it whether its config says so or not.
bool ScalesRotary(const Config& config) {
  const auto& values = config.root().value();
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const auto scaling = values.find(key);
    if (scaling == values.end() || !scaling->is_object()) continue;
    const auto kind =
        scaling->contains("rope_type") ? scaling->find("rope_type") : scaling->find("type");
    if (kind == scaling->end() || *kind != "yarn") continue;
    const auto factor = scaling->find("attention_factor");
    if (factor != scaling->end() && *factor == 1) return false;
    return !scaling->contains("mscale_all_dim");
  }
  return values.value("model_type", "") == "gpt_oss";
}

}  // namespace

HfModel ReadHfConfig(const JsonReader& config) {
  if (!config.IsObject()) config.Expected("an object, as a config.json is");
  const JsonReader decoder = DecoderOf(config);
  const bool is_inner = &decoder.value() != &config.value();
  Config keys(decoder);
  keys.Has("model_type");
  const Family& family = FamilyOf(decoder, config);
  if (keys.BoolOr({"is_encoder_decoder"}, false))
    keys.At({"is_encoder_decoder"}).Expected("false: there is no encoder here");
  if (is_inner)
    keys.Remark(
        "only the decoder of text is read; what images and sound pass before it is left out");
  else if (keys.Has("vision_config"))
    keys.Remark("vision_config: what images pass before the decoder is left out");
  if (keys.Has("quantization_config") || config.Has("quantization_config"))
    keys.Remark("quantization_config: the scenario's \"training\" says how a step computes");
  HfModel result;
  const OrderedJson numbers = ReadFamily(keys, family, is_inner);
  keys.RefuseUnreadLayers();
  result.keys["name"] = NameOf(keys, family.model_type, numbers);
  for (const auto& [key, value] : numbers.items()) result.keys[key] = value;
  if (ScalesRotary(keys) && !numbers.contains("latent")) result.keys["scaled_rotary"] = true;
  result.remarks = keys.Remarks();
  const JsonDocument own =
      JsonDocument::FromValue(nlohmann::json::parse(result.keys.dump()), config.place());
  result.model = ReadModel(own.Root());
  return result;
}

GptModel ReadModelFile(const JsonReader& file) {
  JsonDocument document = file.Open(file.Text());
  file.Change(&document);
  const JsonReader root = document.Root();
  if (root.IsObject() && root.Has("model_type")) return ReadHfConfig(root).model;
  if (root.IsObject() && root.Has("file"))
    root.At("file").Fail("a model's file cannot name another");
  return ReadModel(root);
}

}  // namespace rehearse
