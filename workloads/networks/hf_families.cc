#include "workloads/networks/hf_families.h"

#include <string>
#include <vector>

#include <fmt/format.h>

namespace rehearse {
namespace {

using OrderedJson = nlohmann::ordered_json;

void ReadGatedShare(HfConfig& config, OrderedJson& /*keys*/) {
  config.Remark("the gate of the shared expert is left out");
}

// Qwen's first: the file has the columns of both halves of the gated MLP.
void ReadFirstQwen(HfConfig& /*config*/, OrderedJson& keys) {
  keys["feed_forward"] = keys["feed_forward"].get<int64_t>() / 2;
}

void ReadFalcon(HfConfig& config, OrderedJson& keys) {
  const bool is_new = config.BoolOr({"new_decoder_architecture"}, false);
  const bool is_single = config.BoolOr({"multi_query"}, true);
  const bool has_two = config.WholeOr({"num_ln_in_parallel_attn"}, 1, 2, is_new ? 2 : 1) == 2;
  if (has_two) keys["parallel_blocks"] = "two-norms";
  // RefinedWeb, its first code for 40B, only has the number of keys.
  if (config.Has("n_head_kv")) return;
  if (!is_new && is_single) keys["groups"] = 1;
  if (!is_new && !is_single) keys.erase("groups");
  config.BoolOr({"alibi"}, false);
}

void ReadBigCode(HfConfig& config, OrderedJson& keys) {
  if (config.BoolOr({"multi_query"}, true)) keys["groups"] = 1;
}

void ReadOpt(HfConfig& config, OrderedJson& keys) {
  const int64_t width = config.WholeOr({"word_embed_proj_dim"}, 1, 1 << 20, keys["hidden"]);
  if (width != keys["hidden"])
    config.At({"word_embed_proj_dim"})
        .Expected("the hidden size: an embedding of another width is not supported");
  config.BoolOr({"do_layer_norm_before"}, true);
  config.BoolOr({"_remove_final_layer_norm"}, false);
  config.BoolOr({"layer_norm_elementwise_affine"}, true);
}

void ReadMpt(HfConfig& config, OrderedJson& keys) {
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

void ReadDbrx(HfConfig& config, OrderedJson& keys) {
  const JsonReader attention = config.At({"attn_config"});
  const JsonReader ffn = config.At({"ffn_config"});
  keys["groups"] = attention.At("kv_n_heads").Integer(1, 1 << 16);
  const int64_t columns = ffn.At("ffn_hidden_size").Integer(1, kMostHfColumns);
  keys["feed_forward"] = columns;
  keys["experts"] = {{"count", ffn.At("moe_num_experts").Integer(1, 1 << 16)},
                     {"per_token", ffn.At("moe_top_k").Integer(1, 1 << 16)},
                     {"hidden", columns}};
}

void ReadChatGlm(HfConfig& config, OrderedJson& keys) {
  if (config.BoolOr({"multi_query_attention"}, false))
    keys["groups"] = config.Whole({"multi_query_group_num"}, 1, 1 << 16);
  config.BoolOr({"post_layer_norm"}, true);
  config.BoolOr({"rmsnorm"}, true);
}

void ReadLlama4(HfConfig& config, OrderedJson& keys) {
  const int64_t columns = keys["feed_forward"];
  keys["feed_forward"] = config.WholeOr({"intermediate_size_mlp"}, 1, kMostHfColumns, columns);
  if (config.Has("moe_layers")) {
    const int64_t every = config.WholeOr({"interleave_moe_layer_step"}, 1, kMostHfLayers, 1);
    int64_t next = every - 1;
    for (const JsonReader& layer : config.At({"moe_layers"}).Elements()) {
      if (layer.Integer(0, kMostHfLayers) != next)
        layer.Expected(fmt::format("{}: the last of every {} layers has experts", next, every));
      next += every;
    }
  }
}

void ReadMiniMax(HfConfig& config, OrderedJson& /*keys*/) {
  if (!config.Has("attn_type_list")) return;
  for (const JsonReader& layer : config.At({"attn_type_list"}).Elements()) {
    if (layer.Integer(0, 1) != 1)
      layer.Fail("lightning attention is not supported; a decoder here can only have attention");
  }
}

void ReadGraniteHybrid(HfConfig& config, OrderedJson& keys) {
  if (config.WholeOr(kHfExpertNames, 0, 1 << 16, 0) == 0) {
    keys["feed_forward"] = config.WholeOr({"shared_intermediate_size"}, 1, kMostHfColumns,
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

// The numbers of Mamba-2's layers, under the names that Nemotron-H or Mamba-2 has for them.
OrderedJson ReadStateSpaceNumbers(HfConfig& config, const HfNames& state, const HfNames& head,
                                  const HfNames& heads) {
  OrderedJson numbers;
  numbers["state"] = config.WholeOr(state, 1, kMostHfColumns, 128);
  numbers["head"] = config.WholeOr(head, 1, kMostHfColumns, 64);
  numbers["groups"] = config.WholeOr({"n_groups", "mamba_n_groups"}, 1, 1 << 16, 8);
  numbers["heads"] = config.WholeOr(heads, 1, 1 << 16, 128);
  numbers["conv"] = config.WholeOr({"conv_kernel"}, 1, 1 << 10, 4);
  numbers["chunk"] = config.WholeOr({"chunk_size"}, 1, 1 << 20, 256);
  for (const char* name :
       {"expand", "mamba_hidden_act", "use_mamba_kernels", "time_step_limit", "time_step_rank",
        "time_step_min", "time_step_max", "time_step_floor", "rescale_prenorm_residual",
        "residual_in_fp32", "norm_before_gate", "mamba_ssm_cache_dtype", "use_conv_bias"})
    config.Has(name);
  config.LeaveOut("mamba_proj_bias", false, "biases of state-space layers are");
  return numbers;
}

// One letter for each layer, or its name.
std::string ReadLayerLetters(HfConfig& config, const char* pattern, const char* list) {
  if (config.Has(pattern) && !config.Has(list)) return config.At({pattern}).String();
  const std::vector<std::string> names = {"mamba", "attention", "mlp", "moe"};
  std::string letters;
  for (const JsonReader& layer : config.At({list}).Elements())
    letters += "M*-E"[layer.Choice(names)];
  return letters;
}

void ReadNemotronH(HfConfig& config, OrderedJson& keys) {
  const std::string letters =
      ReadLayerLetters(config, "hybrid_override_pattern", "layers_block_type");
  keys["layer_pattern"] = letters;
  keys["mamba"] =
      ReadStateSpaceNumbers(config, {"ssm_state_size"}, {"mamba_head_dim"}, {"mamba_num_heads"});
  keys["activation"] = "squared-relu";
  keys["rotary"] = false;
  const int64_t head = config.WholeOr({"attention_head_dim"}, 1, 1 << 16, 0);
  if (head > 0) keys["head_size"] = head;
  if (config.Has("mlp_hidden_act")) {
    const JsonReader activation = config.At({"mlp_hidden_act"});
    if (activation.String() != "relu2")
      config.Remark("mlp_hidden_act: played as a squared ReLU, which costs as much");
  }
  if (letters.find('E') == std::string::npos) {
    for (const char* name : {"n_routed_experts", "num_experts_per_tok", "moe_intermediate_size",
                             "moe_shared_expert_intermediate_size", "n_shared_experts"})
      config.Has(name);
  }
  if (config.Has("mtp_hybrid_override_pattern") || config.Has("mtp_layers_block_type"))
    keys["ahead_pattern"] =
        ReadLayerLetters(config, "mtp_hybrid_override_pattern", "mtp_layers_block_type");
}

void ReadMamba2(HfConfig& config, OrderedJson& keys) {
  keys["layer_pattern"] = std::string(keys["layers"].get<size_t>(), 'M');
  keys["mamba"] = ReadStateSpaceNumbers(config, {"state_size"}, {"head_dim"}, {"num_heads"});
}

void ReadOlmo(HfConfig& config, OrderedJson& keys) {
  config.Has("clip_qkv");
  if (config.Has("mlp_hidden_size"))
    keys["feed_forward"] = config.Whole({"mlp_hidden_size"}, 2, kMostHfColumns) / 2;
}

void ReadHunyuan(HfConfig& config, OrderedJson& /*keys*/) {
  if (config.BoolOr({"use_cla"}, false))
    config.At({"use_cla"}).Fail("layers that share keys and values are not supported");
  config.Has("cla_share_factor");
  config.BoolOr({"use_mixed_mlp_moe"}, true);
  config.BoolOr({"moe_drop_tokens"}, false);
  config.Has("head_dim");
  config.Has("attention_head_dim");
}

void ReadNeo(HfConfig& config, OrderedJson& /*keys*/) {
  for (const char* name : {"attention_layers", "attention_types", "window_size"}) config.Has(name);
  if (!config.Has("attention_layers")) return;
  for (const JsonReader& layer : config.At({"attention_layers"}).Elements()) {
    if (layer.String() != "global")
      layer.Fail("windows that begin behind the first layer are not supported");
  }
}

void ReadPerceptive(HfConfig& config, OrderedJson& /*keys*/) {
  config.Remark("adapters of images and sound are left out");
  for (const char* name :
       {"speech_lora", "vision_lora", "img_processor", "audio_processor", "embd_layer"})
    config.Has(name);
}

constexpr HfDefaults kLlamaDefaults = {32, 4096, 32, 0, 0, 11008, 32000};
constexpr HfDefaults kMistralDefaults = {32, 4096, 32, 8, 0, 14336, 32000, 4096};
constexpr HfDefaults kQwen2Defaults = {32, 4096, 32, 32, 0, 22016, 151936};
constexpr HfDefaults kGemmaDefaults = {28, 3072, 16, 16, 256, 24576, 256000};
constexpr HfDefaults kGemma2Defaults = {26, 2304, 8, 4, 256, 9216, 256000, 4096};
constexpr HfDefaults kGemma3Defaults = {26, 2304, 8, 4, 256, 9216, 262208, 4096};
constexpr HfDefaults kLlama4Defaults = {48, 5120, 40, 8, 128, 8192, 202048, 8192};

constexpr HfFamily kFamilies[] = {
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
    // With state spaces.
    {"nemotron_h", kStateSpaces | kExperts | kMayBeDense | kSigmoid, 0, ReadNemotronH},
    {"mamba2", kStateSpaces | kNoAttention, 0, ReadMamba2},
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
    {"falcon_mamba", kStateSpace},
    {"falcon_h1", kStateSpace},
    {"jamba", kStateSpace},
    {"bamba", kStateSpace},
    {"zamba", kStateSpace},
    {"zamba2", kStateSpace},
    {"hymba", kStateSpace},
    {"plamo2", kStateSpace},
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

}  // namespace

const HfFamily& HfFamilyOf(const JsonReader& root, const JsonReader& outer) {
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
  for (const HfFamily& family : kFamilies) {
    if (name == family.model_type) return family;
    names.emplace_back(family.model_type);
  }
  return kFamilies[root.At("model_type").Choice(names)];
}

JsonReader HfDecoderOf(const JsonReader& root) {
  if (root.Has("model_type") && root.At("model_type").IsString()) {
    const std::string name = root.At("model_type").String();
    for (const Refused& refused : kRefused) {
      if (name == refused.model_type)
        root.At("model_type").Fail(fmt::format("found \"{}\": {}", name, refused.why));
    }
  }
  for (const char* name : kInnerNames) {
    if (root.Has(name) && root.At(name).IsObject() && !root.At(name).value().empty())
      return HfDecoderOf(root.At(name));
  }
  return root;
}

}  // namespace rehearse
