#include "workloads/networks/hf_model.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/json_document.h"
#include "sim/base/known_names.h"
#include "workloads/networks/hf_config.h"
#include "workloads/networks/hf_families.h"
#include "workloads/networks/state_space.h"

namespace rehearse {
namespace {

using OrderedJson = nlohmann::ordered_json;

const HfNames kLayerNames = {"num_hidden_layers", "n_layer", "n_layers", "num_layers"};
const HfNames kHiddenNames = {"hidden_size", "n_embd", "d_model", "n_embed"};
const HfNames kHeadNames = {"num_attention_heads", "n_head", "n_heads"};
const HfNames kGroupNames = {"num_key_value_heads", "num_kv_heads", "n_head_kv"};
const HfNames kColumnNames = {"intermediate_size", "ffn_dim", "n_inner", "ffn_hidden_size"};
const HfNames kVocabularyNames = {"vocab_size", "padded_vocab_size"};
const HfNames kActivationNames = {"hidden_act", "hidden_activation", "activation_function",
                                  "activation"};
const HfNames kChoiceNames = {
    "num_experts_per_tok", "num_experts_per_token", "moe_topk", "moe_top_k", "moe_k",
    "num_selected_experts"};

int64_t NumberOr(HfConfig& config, const HfNames& names, int64_t most, int64_t otherwise) {
  return config.HasOne(names) || otherwise == 0 ? config.Whole(names, 1, most) : otherwise;
}

void ReadActivation(HfConfig& config, const HfFamily& family) {
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
void ReadLayerTypes(HfConfig& config, int64_t layers, int64_t window, OrderedJson& keys) {
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
int64_t GlobalEvery(HfConfig& config, const HfFamily& family) {
  const HfNames names = {"sliding_window_pattern", "_sliding_window_pattern"};
  if (!config.HasOne(names)) return family.global_every;
  const JsonReader pattern = config.At(names);
  if (!pattern.IsString()) return pattern.Integer(0, kMostHfLayers);
  const std::string text = pattern.String();
  if (text.empty() || text.find_first_not_of('L') != text.size() - 1 || text.back() != 'G')
    pattern.Expected("layers with windows and a last one without, such as LLLG");
  return static_cast<int64_t>(text.size());
}

void ReadWindow(HfConfig& config, const HfFamily& family, int64_t layers, OrderedJson& keys) {
  const HfNames names = {"sliding_window", "attention_chunk_size"};
  const bool is_silent = std::none_of(names.begin(), names.end(),
                                      [&](const char* name) { return config.root().Has(name); });
  const int64_t window =
      config.WholeOr(names, 0, kMostHfColumns, is_silent ? family.defaults.window : 0);
  const bool is_used = config.BoolOr({"use_sliding_window"}, family.Is(kWindow));
  const int64_t from = config.WholeOr({"max_window_layers"}, 0, kMostHfLayers, 0);
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

void ReadAuxiliary(HfConfig& config, OrderedJson& experts) {
  const HfNames names = {"router_aux_loss_coef", "aux_loss_alpha", "moe_aux_loss_coeff"};
  if (config.HasOne(names)) experts["auxiliary_loss"] = config.At(names).Number(0, 1e6);
}

// Reads which layers have an MLP in place of experts: they can only be the first ones.
void ReadDenseLayers(HfConfig& config, OrderedJson& experts) {
  const JsonReader layers = config.At({"mlp_only_layers"});
  int64_t next = 0;
  for (const JsonReader& layer : layers.Elements()) {
    if (layer.Integer(0, kMostHfLayers) != next++)
      layer.Expected(
          "the first layers in order: a decoder here has experts in all layers after them");
  }
  if (next > 0) experts["first_dense"] = next;
}

// "moe_layer_freq": 1, or 0 for each layer with an MLP and 1 for each with experts.
void ReadExpertFrequency(HfConfig& config, OrderedJson& experts) {
  const JsonReader frequency = config.At({"moe_layer_freq"});
  if (!frequency.IsArray()) {
    if (frequency.Integer(1, kMostHfLayers) != 1)
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

void ReadRouter(HfConfig& config, const HfFamily& family, OrderedJson& experts) {
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
  const HfNames names = {"scoring_func", "score_function", "moe_router_activation_func"};
  const std::vector<std::string> scores = {"softmax", "sigmoid"};
  const size_t score = config.HasOne(names) && config.At(names).IsString()
                           ? config.At(names).Choice(scores)
                           : (family.Is(kSigmoid) ? 1 : 0);
  if (score == 1 || config.HasOne(names)) experts["router"] = scores[score];
}

void ReadHfExperts(HfConfig& config, const HfFamily& family, OrderedJson& keys) {
  OrderedJson& experts = keys["experts"];
  const HfNames hidden_names = {"moe_intermediate_size", "expert_ffn_hidden_size"};
  const int64_t columns =
      config.WholeOr(kColumnNames, 1, kMostHfColumns, keys["feed_forward"].get<int64_t>());
  const int64_t hidden = config.WholeOr(hidden_names, 1, kMostHfColumns, columns);
  const HfNames shared_names = {"n_shared_experts", "num_shared_experts", "moe_num_shared_experts",
                                "num_shared_expert"};
  const int64_t count = config.WholeOr(shared_names, 0, 1 << 16, 0);
  const HfNames width_names = {"shared_expert_intermediate_size", "shared_intermediate_size",
                               "moe_shared_expert_intermediate_size"};
  const int64_t width = config.WholeOr(width_names, 0, kMostHfColumns, 0);
  experts["count"] = config.Whole(kHfExpertNames, 1, 1 << 16);
  experts["per_token"] = config.Whole(kChoiceNames, 1, 1 << 16);
  experts["hidden"] = hidden;
  const int64_t shared = width > 0                ? width * std::max<int64_t>(count, 1)
                         : family.Is(kSharedTwin) ? hidden
                                                  : count * hidden;
  if (shared > 0) experts["shared"] = shared;
  const int64_t latent = config.WholeOr({"moe_latent_size"}, 0, kMostHfColumns, 0);
  if (latent > 0) experts["latent"] = latent;
  const HfNames dense_names = {"first_k_dense_replace", "moe_layer_start_index",
                               "moe_layer_num_skipped"};
  const int64_t dense = config.WholeOr(dense_names, 0, kMostHfLayers, 0);
  if (dense > 0) experts["first_dense"] = dense;
  const HfNames every_names = {"decoder_sparse_step", "interleave_moe_layer_step",
                               "moe_layer_interval"};
  const int64_t every = config.WholeOr(every_names, 1, kMostHfLayers, 1);
  if (every > 1) experts["every"] = every;
  const int64_t last = config.WholeOr({"moe_layer_end_index"}, -1, kMostHfLayers, -1);
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

void ReadHfLatent(HfConfig& config, OrderedJson& keys) {
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
void ReadAhead(HfConfig& config, OrderedJson& keys) {
  const HfNames names = {"num_nextn_predict_layers", "num_mtp_modules", "mtp_num_layers"};
  const int64_t ahead = config.WholeOr(names, 0, 1 << 10, 0);
  config.Has("mtp_transformer_layers");
  const bool is_known = !keys.contains("layer_pattern") || keys.contains("ahead_pattern");
  const bool is_played = ahead > 0 && ahead <= 16 && config.BoolOr({"use_mtp"}, true);
  if (!is_played || keys["tied"] == true || keys["style"] == "gpt" || !is_known) {
    if (is_played || ahead > 16) config.Remark("the heads that predict further ahead are left out");
    keys.erase("ahead_pattern");
    return;
  }
  keys["predict_ahead"] = ahead;
}

void RemarkOnTraits(HfConfig& config, const HfFamily& family, OrderedJson& keys) {
  if (family.Is(kQueryBiases)) config.Remark("biases of queries, keys and values are left out");
  const HfNames bias_names = {"attention_bias", "qkv_bias", "use_qkv_bias", "add_qkv_bias",
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
    const HfNames norm_names = {"use_qk_norm", "qk_layernorm", "use_qk_layernorm", "qk_norm"};
    if (config.BoolOr(norm_names, family.Is(kHeadNorms))) {
      keys["head_norms"] = true;
      config.Remark("norms of queries and keys only take time");
    }
  } else {
    const HfNames all_names = {"attention_bias", "mlp_bias", "use_bias", "bias", "enable_bias"};
    const bool says_none = config.BoolOr({"no_bias"}, false);
    const bool has_biases = config.BoolOr(all_names, !family.Is(kNoBiases)) && !says_none;
    for (const char* name : bias_names) config.Has(name);
    if (!has_biases)
      config.Remark("biases and layer norms of GPT's style are counted, which it has not");
    config.BoolOr({"use_qk_norm", "qk_layernorm"}, false);
  }
  if (family.Is(kLayerNorms)) config.Remark("layer norms are played as RMS norms");
  if (family.Is(kMoreNorms)) config.Remark("norms behind attention and MLP are left out");
  const HfNames parallel_names = {"use_parallel_residual", "parallel_attn"};
  if (config.BoolOr(parallel_names, family.Is(kParallel))) {
    // GPT-NeoX has a norm for each of the two.
    const bool has_two =
        keys.contains("parallel_blocks") || family.model_type == std::string_view("gpt_neox");
    keys["parallel_blocks"] = has_two ? "two-norms" : "one-norm";
  } else {
    keys.erase("parallel_blocks");
  }
  if (family.Is(kPositions)) {
    const int64_t rows = config.WholeOr({"n_positions", "max_position_embeddings", "max_seq_len"},
                                        0, kMostHfColumns, 0);
    if (rows > 0) {
      config.Remark(
          fmt::format("the table of {} positions, {:.3g} million parameters, is not counted", rows,
                      static_cast<double>(rows) * keys["hidden"].get<double>() / 1e6));
    }
  }
}

OrderedJson ReadFamily(HfConfig& config, const HfFamily& family, bool is_inner) {
  const HfDefaults given = family.defaults;
  const HfDefaults defaults =
      is_inner ? given : HfDefaults{.head = given.head, .window = given.window};
  OrderedJson keys;
  const int64_t layers = NumberOr(config, kLayerNames, kMostHfLayers, defaults.layers);
  const bool has_attention = !family.Is(kNoAttention);
  const int64_t heads = has_attention ? NumberOr(config, kHeadNames, 1 << 16, defaults.heads) : 1;
  const int64_t hidden = NumberOr(config, kHiddenNames, 1 << 20, defaults.hidden);
  keys["style"] = family.Is(kGpt) ? "gpt" : "llama";
  keys["layers"] = layers;
  keys["hidden"] = hidden;
  keys["heads"] = heads;
  const int64_t groups =
      config.WholeOr(kGroupNames, 1, 1 << 16, defaults.groups > 0 ? defaults.groups : heads);
  if (groups != heads) keys["groups"] = groups;
  // HfParticular families say it in another way.
  const bool has_columns = config.HasOne(kColumnNames) || defaults.feed_forward > 0;
  if (has_columns || (!family.Is(kGpt) && !family.Is(kInnerSizes) && has_attention))
    keys["feed_forward"] = NumberOr(config, kColumnNames, kMostHfColumns, defaults.feed_forward);
  keys["vocabulary"] = NumberOr(config, kVocabularyNames, kMostHfColumns, defaults.vocabulary);
  keys["tied"] = config.BoolOr({"tie_word_embeddings"}, family.Is(kTied));
  const int64_t head =
      has_attention ? config.WholeOr({"head_dim", "kv_channels"}, 1, 1 << 16, defaults.head) : 0;
  if (head > 0) keys["head_size"] = head;
  ReadActivation(config, family);
  if (family.particular != nullptr) family.particular(config, keys);
  ReadWindow(config, family, layers, keys);
  if (family.Is(kLatent) && config.Has("kv_lora_rank")) ReadHfLatent(config, keys);
  const bool may_have =
      !keys.contains("layer_pattern") || CountOf(keys["layer_pattern"], LayerLetter::kExperts) > 0;
  const bool has_experts =
      family.Is(kExperts) && may_have && config.WholeOr(kHfExpertNames, 0, 1 << 16, 0) > 0;
  if (has_experts) {
    ReadHfExperts(config, family, keys);
  } else if (family.Is(kExperts) && !family.Is(kMayBeDense)) {
    config.Whole(kHfExpertNames, 1, 1 << 16);
  }
  ReadAhead(config, keys);
  RemarkOnTraits(config, family, keys);
  if (config.BoolOr({"add_cross_attention"}, false))
    config.At({"add_cross_attention"}).Expected("false: there is no encoder");
  return keys;
}

// "Llama-2-7b-hf" for "meta-llama/Llama-2-7b-hf"; a model without a name is called by its kind and
// sizes.
std::string NameOf(const HfConfig& config, const char* model_type, const OrderedJson& keys) {
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
bool ScalesRotary(const HfConfig& config) {
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
  const JsonReader decoder = HfDecoderOf(config);
  const bool is_inner = &decoder.value() != &config.value();
  HfConfig keys(decoder);
  keys.Has("model_type");
  const HfFamily& family = HfFamilyOf(decoder, config);
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
  JsonDocument document = file.Open(file.Text(), InputSize::kUsual, JsonNumbers::kOfPython);
  file.Change(&document);
  const JsonReader root = document.Root();
  if (root.IsObject() && root.Has("model_type")) return ReadHfConfig(root).model;
  if (root.IsObject() && root.Has("file"))
    root.At("file").Fail("a model's file cannot name another");
  return ReadModel(root);
}

}  // namespace rehearse
