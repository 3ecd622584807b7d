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
                                         "architectures",
                                         "attention_dropout",
                                         "attn_pdrop",
                                         "attention_probs_dropout",
                                         "attn_implementation",
                                         "auto_map",
                                         "bos_token_id",
                                         "classifier_dropout",
                                         "clip_limit",
                                         "cache_dir",
                                         "dtype",
                                         "embd_pdrop",
                                         "embedding_dropout",
                                         "eos_token_id",
                                         "ep_size",
                                         "experts_per_token",
                                         "hidden_dropout",
                                         "initial_context_length",
                                         "initializer_range",
                                         "is_decoder",
                                         "layer_norm_eps",
                                         "layer_norm_epsilon",
                                         "max_position_embeddings",
                                         "model_type",
                                         "n_ctx",
                                         "n_positions",
                                         "norm_topk_prob",
                                         "original_max_position_embeddings",
                                         "output_attentions",
                                         "output_hidden_states",
                                         "output_router_logits",
                                         "pad_token_id",
                                         "partial_rotary_factor",
                                         "pretraining_tp",
                                         "reorder_and_upcast_attn",
                                         "resid_pdrop",
                                         "return_dict",
                                         "rms_norm_eps",
                                         "rope_interleave",
                                         "rope_parameters",
                                         "rope_scaling",
                                         "rope_theta",
                                         "rotary_dim",
                                         "rotary_emb_base",
                                         "rotary_pct",
                                         "routed_scaling_factor",
                                         "router_jitter_noise",
                                         "scale_attn_by_inverse_layer_idx",
                                         "scale_attn_weights",
                                         "seq_aux",
                                         "summary_activation",
                                         "summary_first_dropout",
                                         "summary_proj_to_labels",
                                         "summary_type",
                                         "summary_use_proj",
                                         "swiglu_limit",
                                         "task_specific_params",
                                         "torch_dtype",
                                         "transformers_version",
                                         "unk_token_id",
                                         "use_cache"};

// A config.json, its keys ticked off as they are read.
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
  JsonReader At(const std::string& key) {
    read_.push_back(key);
    return root_.At(key);
  }
  int64_t Whole(const std::string& key, int64_t least, int64_t most) {
    return At(key).Integer(least, most);
  }
  int64_t WholeOr(const std::string& key, int64_t least, int64_t most, int64_t otherwise) {
    return Has(key) ? Whole(key, least, most) : otherwise;
  }
  bool BoolOr(const std::string& key, bool otherwise) {
    return Has(key) ? At(key).Bool() : otherwise;
  }

  void Remark(std::string remark) { remarks_.push_back(std::move(remark)); }
  // Remarks that something is left out if a switch is on.
  void LeaveOut(const std::string& key, bool otherwise, const char* what) {
    if (BoolOr(key, otherwise)) Remark(fmt::format("{}: {} left out", key, what));
  }

  std::vector<std::string> Remarks() {
    std::sort(read_.begin(), read_.end());
    std::vector<std::string> unknown;
    for (const auto& [key, value] : root_.Members()) {
      if (!std::binary_search(read_.begin(), read_.end(), key) && !value.value().is_null())
        unknown.push_back(key);
    }
    if (!unknown.empty()) Remark(fmt::format("not understood: {}", fmt::join(unknown, ", ")));
    return remarks_;
  }

 private:
  JsonReader root_;
  std::vector<std::string> read_;
  std::vector<std::string> remarks_;
};

void ReadActivation(Config& config, const char* key, const std::vector<std::string>& carried) {
  if (!config.Has(key)) return;
  const JsonReader activation = config.At(key);
  const std::string name = activation.String();
  if (std::find(carried.begin(), carried.end(), name) == carried.end())
    activation.Expected(
        fmt::format("one that a decoder here can have: {}", fmt::join(carried, ", ")));
}

// Reads layers with windows: all, none, or all except every n-th.
void ReadLayerTypes(Config& config, int64_t layers, int64_t window, OrderedJson& keys) {
  const JsonReader types = config.At("layer_types");
  std::vector<bool> has_window;
  const std::vector<std::string> names = {"full_attention", "sliding_attention"};
  for (const JsonReader& type : types.Elements()) has_window.push_back(type.Choice(names) == 1);
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

// `by_default` says whether a sliding_window counts without a switch.
void ReadWindow(Config& config, int64_t layers, bool by_default, OrderedJson& keys) {
  const int64_t window = config.WholeOr("sliding_window", 0, kMostColumns, 0);
  const bool is_used = config.BoolOr("use_sliding_window", by_default);
  const int64_t from = config.WholeOr("max_window_layers", 0, kMostLayers, 0);
  if (config.Has("layer_types")) {
    ReadLayerTypes(config, layers, window, keys);
  } else if (is_used && window > 0 && from < layers) {
    if (from > 0)
      config.At("max_window_layers")
          .Expected("0 or all layers: windows only in the last layers are not supported here");
    keys["window"] = window;
  }
}

// The keys that all Llama-like ones have.
struct LlamaKeys {
  OrderedJson keys;
  int64_t layers = 0;
};
LlamaKeys ReadLlama(Config& config) {
  LlamaKeys llama;
  OrderedJson& keys = llama.keys;
  llama.layers = config.Whole("num_hidden_layers", 1, kMostLayers);
  const int64_t heads = config.Whole("num_attention_heads", 1, 1 << 16);
  keys["style"] = "llama";
  keys["layers"] = llama.layers;
  keys["hidden"] = config.Whole("hidden_size", 1, 1 << 20);
  keys["heads"] = heads;
  const int64_t groups = config.WholeOr("num_key_value_heads", 1, 1 << 16, heads);
  if (groups != heads) keys["groups"] = groups;
  keys["feed_forward"] = config.Whole("intermediate_size", 1, kMostColumns);
  keys["vocabulary"] = config.Whole("vocab_size", 1, kMostColumns);
  keys["tied"] = config.BoolOr("tie_word_embeddings", false);
  const int64_t head = config.WholeOr("head_dim", 1, 1 << 16, 0);
  if (head > 0) keys["head_size"] = head;
  ReadActivation(config, "hidden_act", {"silu", "swish"});
  config.LeaveOut("mlp_bias", false, "biases of the MLP are");
  return llama;
}

void ReadAuxiliary(Config& config, const char* key, OrderedJson& experts) {
  if (config.Has(key)) experts["auxiliary_loss"] = config.At(key).Number(0, 1e6);
}

OrderedJson LlamaModel(Config& config) {
  LlamaKeys llama = ReadLlama(config);
  config.LeaveOut("attention_bias", false, "biases of attention are");
  return llama.keys;
}

OrderedJson MistralModel(Config& config) {
  LlamaKeys llama = ReadLlama(config);
  ReadWindow(config, llama.layers, /*by_default=*/true, llama.keys);
  return llama.keys;
}

OrderedJson MixtralModel(Config& config) {
  LlamaKeys llama = ReadLlama(config);
  ReadWindow(config, llama.layers, /*by_default=*/true, llama.keys);
  OrderedJson& experts = llama.keys["experts"];
  experts["count"] = config.Whole("num_local_experts", 1, 1 << 16);
  experts["per_token"] = config.Whole("num_experts_per_tok", 1, 1 << 16);
  experts["hidden"] = llama.keys["feed_forward"];
  ReadAuxiliary(config, "router_aux_loss_coef", experts);
  return llama.keys;
}

OrderedJson Qwen2Model(Config& config) {
  LlamaKeys llama = ReadLlama(config);
  ReadWindow(config, llama.layers, /*by_default=*/false, llama.keys);
  config.Remark("biases of queries, keys and values are left out");
  return llama.keys;
}

OrderedJson Qwen3Model(Config& config) {
  LlamaKeys llama = ReadLlama(config);
  ReadWindow(config, llama.layers, /*by_default=*/false, llama.keys);
  config.LeaveOut("attention_bias", false, "biases of attention are");
  llama.keys["head_norms"] = true;
  config.Remark("norms of queries and keys only take time");
  return llama.keys;
}

// Reads which layers have an MLP in place of experts: they can only be the first ones.
void ReadDenseLayers(Config& config, OrderedJson& experts) {
  if (!config.Has("mlp_only_layers")) return;
  const JsonReader layers = config.At("mlp_only_layers");
  int64_t next = 0;
  for (const JsonReader& layer : layers.Elements()) {
    if (layer.Integer(0, kMostLayers) != next++)
      layer.Expected(
          "the first layers in order: a decoder here has experts in all layers after them");
  }
  if (next > 0) experts["first_dense"] = next;
}

void ReadQwenExperts(Config& config, OrderedJson& keys) {
  OrderedJson& experts = keys["experts"];
  experts["count"] = config.Whole("num_experts", 1, 1 << 16);
  experts["per_token"] = config.Whole("num_experts_per_tok", 1, 1 << 16);
  experts["hidden"] = config.Whole("moe_intermediate_size", 1, kMostColumns);
  const int64_t every = config.WholeOr("decoder_sparse_step", 1, kMostLayers, 1);
  if (every > 1) experts["every"] = every;
  ReadDenseLayers(config, experts);
  ReadAuxiliary(config, "router_aux_loss_coef", experts);
}

OrderedJson Qwen2MoeModel(Config& config) {
  OrderedJson keys = Qwen2Model(config);
  ReadQwenExperts(config, keys);
  keys["experts"]["shared"] = config.Whole("shared_expert_intermediate_size", 0, kMostColumns);
  config.Remark("the gate of the shared expert is left out");
  return keys;
}

OrderedJson Qwen3MoeModel(Config& config) {
  OrderedJson keys = Qwen3Model(config);
  ReadQwenExperts(config, keys);
  return keys;
}

void ReadDeepSeekExperts(Config& config, bool is_v3, OrderedJson& keys) {
  OrderedJson& experts = keys["experts"];
  const int64_t hidden = config.Whole("moe_intermediate_size", 1, kMostColumns);
  const int64_t shared = config.WholeOr("n_shared_experts", 0, 1 << 16, 0);
  experts["count"] = config.Whole("n_routed_experts", 1, 1 << 16);
  experts["per_token"] = config.Whole("num_experts_per_tok", 1, 1 << 16);
  experts["hidden"] = hidden;
  experts["shared"] = shared * hidden;
  experts["first_dense"] = config.WholeOr("first_k_dense_replace", 0, kMostLayers, 0);
  if (config.WholeOr("moe_layer_freq", 1, kMostLayers, 1) != 1) {
    config.At("moe_layer_freq")
        .Expected("1: here the last of so many layers has experts, there the first");
  }
  const std::vector<std::string> methods = {"greedy", "group_limited_greedy", "noaux_tc"};
  const size_t method =
      config.Has("topk_method") ? config.At("topk_method").Choice(methods) : (is_v3 ? 2 : 0);
  const int64_t groups = config.WholeOr("n_group", 1, 1 << 16, 1);
  const int64_t limited = config.WholeOr("topk_group", 1, 1 << 16, groups);
  if (method != 0 && groups > 1) {
    experts["groups"] = groups;
    experts["limited_groups"] = limited;
  }
  const std::vector<std::string> scores = {"softmax", "sigmoid"};
  experts["router"] = scores[config.Has("scoring_func") ? config.At("scoring_func").Choice(scores)
                                                        : (is_v3 ? 1 : 0)];
  ReadAuxiliary(config, "aux_loss_alpha", experts);
}

OrderedJson DeepSeekModel(Config& config, bool is_v3) {
  LlamaKeys llama = ReadLlama(config);
  OrderedJson& keys = llama.keys;
  // With latent attention each head has a key of its own, and sizes are in "latent".
  keys.erase("groups");
  keys.erase("head_size");
  OrderedJson& latent = keys["latent"];
  latent["query_rank"] = config.WholeOr("q_lora_rank", 0, 1 << 20, 0);
  latent["kv_rank"] = config.Whole("kv_lora_rank", 1, 1 << 20);
  latent["rope_head"] = config.Whole("qk_rope_head_dim", 1, 1 << 20);
  latent["head"] = config.Whole("qk_nope_head_dim", 1, 1 << 20);
  latent["value_head"] = config.Whole("v_head_dim", 1, 1 << 20);
  config.Has("qk_head_dim");  // the sum of two above
  config.LeaveOut("attention_bias", false, "biases of attention are");
  if (config.Has("n_routed_experts")) ReadDeepSeekExperts(config, is_v3, keys);
  const int64_t ahead = config.WholeOr("num_nextn_predict_layers", 0, 1, 0);
  if (ahead > 0) keys["predict_ahead"] = ahead;
  return keys;
}
OrderedJson DeepSeekV2Model(Config& config) { return DeepSeekModel(config, /*is_v3=*/false); }
OrderedJson DeepSeekV3Model(Config& config) { return DeepSeekModel(config, /*is_v3=*/true); }

OrderedJson GptOssModel(Config& config) {
  OrderedJson keys = MixtralModel(config);
  config.LeaveOut("attention_bias", true, "biases of attention are");
  keys["experts"]["biased"] = true;
  config.Remark("attention sinks are left out, biases of experts only take time");
  return keys;
}

OrderedJson GptNeoxModel(Config& config) {
  OrderedJson keys;
  keys["style"] = "gpt";
  keys["layers"] = config.Whole("num_hidden_layers", 1, kMostLayers);
  keys["hidden"] = config.Whole("hidden_size", 1, 1 << 20);
  keys["heads"] = config.Whole("num_attention_heads", 1, 1 << 16);
  keys["feed_forward"] = config.Whole("intermediate_size", 1, kMostColumns);
  keys["vocabulary"] = config.Whole("vocab_size", 1, kMostColumns);
  keys["tied"] = config.BoolOr("tie_word_embeddings", false);
  ReadActivation(config, "hidden_act", {"gelu", "gelu_new", "gelu_fast", "gelu_pytorch_tanh"});
  if (!config.BoolOr("attention_bias", true))
    config.Remark("attention_bias: biases of attention are counted all the same");
  if (config.BoolOr("use_parallel_residual", true))
    config.Remark("use_parallel_residual: attention and MLP come one after the other here");
  return keys;
}

OrderedJson Gpt2Model(Config& config) {
  OrderedJson keys;
  keys["style"] = "gpt";
  keys["layers"] = config.Whole("n_layer", 1, kMostLayers);
  keys["hidden"] = config.Whole("n_embd", 1, 1 << 20);
  keys["heads"] = config.Whole("n_head", 1, 1 << 16);
  if (config.Has("n_inner")) keys["feed_forward"] = config.Whole("n_inner", 1, kMostColumns);
  keys["vocabulary"] = config.Whole("vocab_size", 1, kMostColumns);
  keys["tied"] = config.BoolOr("tie_word_embeddings", true);
  ReadActivation(config, "activation_function",
                 {"gelu", "gelu_new", "gelu_fast", "gelu_pytorch_tanh"});
  if (config.BoolOr("add_cross_attention", false))
    config.At("add_cross_attention").Expected("false: there is no encoder");
  return keys;
}

struct Family {
  const char* model_type;
  OrderedJson (*read)(Config& config);
};
constexpr std::array<Family, 12> kFamilies = {{{"llama", LlamaModel},
                                               {"mistral", MistralModel},
                                               {"mixtral", MixtralModel},
                                               {"qwen2", Qwen2Model},
                                               {"qwen2_moe", Qwen2MoeModel},
                                               {"qwen3", Qwen3Model},
                                               {"qwen3_moe", Qwen3MoeModel},
                                               {"deepseek_v2", DeepSeekV2Model},
                                               {"deepseek_v3", DeepSeekV3Model},
                                               {"gpt_neox", GptNeoxModel},
                                               {"gpt2", Gpt2Model},
                                               {"gpt_oss", GptOssModel}}};

const Family& FamilyOf(Config& config) {
  std::vector<std::string> names;
  for (const Family& family : kFamilies) names.emplace_back(family.model_type);
  return kFamilies[config.At("model_type").Choice(names)];
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
  Config keys(config);
  const Family& family = FamilyOf(keys);
  if (keys.BoolOr("is_encoder_decoder", false))
    keys.At("is_encoder_decoder").Expected("false: there is no encoder here");
  if (keys.Has("quantization_config"))
    keys.Remark("quantization_config: the scenario's \"training\" says how a step computes");
  HfModel result;
  const OrderedJson numbers = family.read(keys);
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
