#include "tools/foreign/runs/model_names.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/json_document.h"
#include "sim/base/json_parse.h"
#include "tools/foreign/runs/torchtitan/torchtitan_flavors.h"
#include "workloads/networks/hf_model.h"
#include "workloads/networks/model.h"

namespace rehearse {
namespace {

// Sizes as in the config.json of each on Hugging Face, under its keys.
struct ModelSizes {
  const char* name = "";  // squeezed, see SqueezedName()
  const char* type = "";
  int64_t layers = 0;
  int64_t hidden = 0;
  int64_t heads = 0;
  int64_t groups = 0;
  int64_t head = 0;  // 0: hidden / heads
  int64_t feed_forward = 0;
  int64_t vocabulary = 0;
  bool is_tied = false;
  const char* more = "{}";
};

constexpr const char* kKimi =
    R"({"n_routed_experts": 384, "num_experts_per_tok": 8, "moe_intermediate_size": 2048,
        "n_shared_experts": 1, "first_k_dense_replace": 1, "q_lora_rank": 1536,
        "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
        "scoring_func": "sigmoid"})";
constexpr const char* kMoonlight =
    R"({"n_routed_experts": 64, "num_experts_per_tok": 6, "moe_intermediate_size": 1408,
        "n_shared_experts": 2, "first_k_dense_replace": 1, "kv_lora_rank": 512,
        "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "q_lora_rank": 0,
        "scoring_func": "sigmoid"})";
constexpr const char* kGlm =
    R"({"n_routed_experts": 160, "num_experts_per_tok": 8, "moe_intermediate_size": 1536,
        "n_shared_experts": 1, "first_k_dense_replace": 3, "use_qk_norm": true})";
constexpr const char* kGlmAir =
    R"({"n_routed_experts": 128, "num_experts_per_tok": 8, "moe_intermediate_size": 1408,
        "n_shared_experts": 1, "first_k_dense_replace": 1, "use_qk_norm": false})";
constexpr const char* kOlmoe = R"({"num_experts": 64, "num_experts_per_tok": 8})";
constexpr const char* kGemma2 = R"({"sliding_window": 4096})";
constexpr const char* kGemma3 = R"({"sliding_window": 1024, "sliding_window_pattern": 6})";
constexpr const char* kGemma3Small = R"({"sliding_window": 512, "sliding_window_pattern": 6})";

constexpr ModelSizes kSizes[] = {
    {"llama7b", "llama", 32, 4096, 32, 32, 0, 11008, 32000, false},
    {"yi6b", "llama", 32, 4096, 32, 4, 0, 11008, 64000, false},
    {"yi34b", "llama", 60, 7168, 56, 8, 0, 20480, 64000, false},
    {"llama13b", "llama", 40, 5120, 40, 40, 0, 13824, 32000, false},
    {"llama321b", "llama", 16, 2048, 32, 8, 0, 8192, 128256, true},
    {"llama323b", "llama", 28, 3072, 24, 8, 0, 8192, 128256, true},
    {"orpheus3b01", "llama", 28, 3072, 24, 8, 0, 8192, 156940, true},
    {"tinyllama11b", "llama", 22, 2048, 32, 4, 0, 5632, 32000, false},
    {"openllama3b", "llama", 26, 3200, 32, 32, 0, 8640, 32000, false},
    {"codellama7b", "llama", 32, 4096, 32, 32, 0, 11008, 32016, false},
    {"codellama13b", "llama", 40, 5120, 40, 40, 0, 13824, 32016, false},
    {"codellama34b", "llama", 48, 8192, 64, 8, 0, 22016, 32000, false},
    {"smollm2135m", "llama", 30, 576, 9, 3, 0, 1536, 49152, true},
    {"smollm2360m", "llama", 32, 960, 15, 5, 0, 2560, 49152, true},
    {"smollm217b", "llama", 24, 2048, 32, 32, 0, 8192, 49152, true},
    {"baichuan27b", "llama", 32, 4096, 32, 32, 0, 11008, 125696, false},
    {"mistral7bv03", "mistral", 32, 4096, 32, 8, 0, 14336, 32768, false},
    {"mistral7bv02", "mistral", 32, 4096, 32, 8, 0, 14336, 32000, false},
    {"mistralnemo12b", "mistral", 40, 5120, 32, 8, 128, 14336, 131072, false},
    {"mistralsmall24b", "mistral", 40, 5120, 32, 8, 128, 32768, 131072, false},
    {"qwen205b", "qwen2", 24, 896, 14, 2, 0, 4864, 151936, true},
    {"qwen215b", "qwen2", 28, 1536, 12, 2, 0, 8960, 151936, true},
    {"qwen27b", "qwen2", 28, 3584, 28, 4, 0, 18944, 152064, false},
    {"qwen272b", "qwen2", 80, 8192, 64, 8, 0, 29568, 152064, false},
    {"qwen2505b", "qwen2", 24, 896, 14, 2, 0, 4864, 151936, true},
    {"qwen2515b", "qwen2", 28, 1536, 12, 2, 0, 8960, 151936, true},
    {"qwen253b", "qwen2", 36, 2048, 16, 2, 0, 11008, 151936, true},
    {"qwen257b", "qwen2", 28, 3584, 28, 4, 0, 18944, 152064, false},
    {"qwen2514b", "qwen2", 48, 5120, 40, 8, 0, 13824, 152064, false},
    {"qwen2532b", "qwen2", 64, 5120, 40, 8, 0, 27648, 152064, false},
    {"qwen2572b", "qwen2", 80, 8192, 64, 8, 0, 29568, 152064, false},
    {"gemma2b", "gemma", 18, 2048, 8, 1, 256, 16384, 256000, true},
    {"gemma7b", "gemma", 28, 3072, 16, 16, 256, 24576, 256000, true},
    {"gemma22b", "gemma2", 26, 2304, 8, 4, 256, 9216, 256000, true, kGemma2},
    {"gemma29b", "gemma2", 42, 3584, 16, 8, 256, 14336, 256000, true, kGemma2},
    {"gemma227b", "gemma2", 46, 4608, 32, 16, 128, 36864, 256000, true, kGemma2},
    {"gemma31b", "gemma3_text", 26, 1152, 4, 1, 256, 6912, 262144, true, kGemma3Small},
    {"gemma34b", "gemma3_text", 34, 2560, 8, 4, 256, 10240, 262208, true, kGemma3},
    {"gemma312b", "gemma3_text", 48, 3840, 16, 8, 256, 15360, 262208, true, kGemma3},
    {"gemma327b", "gemma3_text", 62, 5376, 32, 16, 128, 21504, 262208, true, kGemma3},
    {"phi15", "phi", 24, 2048, 32, 32, 0, 8192, 51200, false},
    {"phi2", "phi", 32, 2560, 32, 32, 0, 10240, 51200, false},
    {"phi3mini", "phi3", 32, 3072, 32, 32, 0, 8192, 32064, false},
    {"phi3mini4k", "phi3", 32, 3072, 32, 32, 0, 8192, 32064, false, R"({"sliding_window": 2047})"},
    {"phi35mini", "phi3", 32, 3072, 32, 32, 0, 8192, 32064, false},
    {"phi4", "phi3", 40, 5120, 40, 10, 0, 17920, 100352, false},
    {"phi414b", "phi3", 40, 5120, 40, 10, 0, 17920, 100352, false},
    {"pythia14b", "gpt_neox", 24, 2048, 16, 16, 0, 8192, 50304, false},
    {"pythia28b", "gpt_neox", 32, 2560, 32, 32, 0, 10240, 50304, false},
    {"pythia69b", "gpt_neox", 32, 4096, 32, 32, 0, 16384, 50432, false},
    {"pythia12b", "gpt_neox", 36, 5120, 40, 40, 0, 20480, 50688, false},
    {"redpajamaincite3b", "gpt_neox", 32, 2560, 32, 32, 0, 10240, 50432, false},
    {"stablelm216b", "stablelm", 24, 2048, 32, 32, 0, 5632, 100352, false},
    {"starcoder23b", "starcoder2", 30, 3072, 24, 2, 0, 12288, 49152, true},
    {"starcoder27b", "starcoder2", 32, 4608, 36, 4, 0, 18432, 49152, true},
    {"starcoder215b", "starcoder2", 40, 6144, 48, 4, 0, 24576, 49152, true},
    {"nemotron34b", "nemotron", 32, 3072, 24, 8, 128, 9216, 256000, false},
    {"nemotron38b", "nemotron", 32, 4096, 32, 32, 0, 16384, 256000, false},
    {"nemotron322b", "nemotron", 40, 6144, 48, 48, 0, 24576, 256000, false},
    {"olmoe7b", "olmoe", 16, 2048, 16, 16, 0, 1024, 50304, false, kOlmoe},
    {"olmoe1b7b", "olmoe", 16, 2048, 16, 16, 0, 1024, 50304, false, kOlmoe},
    {"moonlight16b", "deepseek_v3", 27, 2048, 16, 16, 0, 11264, 163840, false, kMoonlight},
    {"moonlight16ba3b", "deepseek_v3", 27, 2048, 16, 16, 0, 11264, 163840, false, kMoonlight},
    {"glm45", "glm4_moe", 92, 5120, 96, 8, 128, 12288, 151552, false, kGlm},
    {"glm45air", "glm4_moe", 46, 4096, 96, 8, 128, 10944, 151552, false, kGlmAir},
    {"kimik2", "kimi_k2", 61, 7168, 64, 64, 0, 18432, 163840, false, kKimi}};

// Other names of what is known, squeezed.
struct OtherName {
  const char* theirs;
  const char* ours;
};
constexpr OtherName kOtherNames[] = {{"llama318b", "llama38b"},
                                     {"llama3170b", "llama370b"},
                                     {"llama3370b", "llama370b"},
                                     {"llama31405b", "llama3405b"},
                                     {"codellama70b", "llama270b"},
                                     {"mistral7bv01", "mistral7b"},
                                     {"mixtral8x7bv01", "mixtral8x7b"},
                                     {"mixtral8x22bv01", "mixtral8x22b"},
                                     {"openllama3bv2", "openllama3b"},
                                     {"redpajamainciteinstruct3bv1", "redpajamaincite3b"},
                                     {"redpajamainciteinstruct3b", "redpajamaincite3b"},
                                     {"redpajamaincite3bv1", "redpajamaincite3b"},
                                     {"tinyllama11bintermediatestep1431k3t", "tinyllama11b"},
                                     {"tinyllama11bv10", "tinyllama11b"},
                                     {"tinyllamav11", "tinyllama11b"},
                                     {"magistralsmall2506", "mistralsmall24b"},
                                     {"magistralsmall2507", "mistralsmall24b"},
                                     {"llama31nemotron70b", "llama370b"},
                                     {"llama31nemotronnano8b", "llama38b"},
                                     {"llama417bscout", "llama4scout"},
                                     {"llama417bmaverick", "llama4maverick"},
                                     {"llama4scout17b16e", "llama4scout"},
                                     {"llama4maverick17b128e", "llama4maverick"},
                                     {"llama4experts16", "llama4scout"},
                                     {"llama4experts128", "llama4maverick"},
                                     {"llama4e16", "llama4scout"},
                                     {"llama4e128", "llama4maverick"},
                                     {"gpt3175b", "gpt175b"},
                                     {"olmoe", "olmoe7b"},
                                     {"mistralnemo2407", "mistralnemo12b"},
                                     {"mistralsmall24b2501", "mistralsmall24b"},
                                     {"qwen3600m", "qwen306b"},
                                     {"qwen31p7b", "qwen317b"},
                                     {"qwen2500m", "qwen205b"},
                                     {"qwen21p5b", "qwen215b"},
                                     {"qwen25500m", "qwen2505b"},
                                     {"qwen251p5b", "qwen2515b"},
                                     {"nvidianemotronnano9bv2", "nemotronnano9bv2"},
                                     {"nvidianemotronnano12bv2", "nemotronnano12bv2"},
                                     {"nvidianemotron3nano30ba3b", "nemotron3nano30b"},
                                     {"nvidianemotron3super120ba12b", "nemotron3super120b"},
                                     {"basemamba27b", "mamba227b"},
                                     {"deepseekv3base", "deepseekv3"}};

bool IsKept(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

// "llama318b" of "meta-llama/Llama-3.1-8B-Instruct".
std::string SqueezedName(std::string_view name) {
  name = name.substr(name.rfind('/') + 1);
  std::string words;
  for (const char c : name)
    words += c == '_' || c == ' ' ? '-' : static_cast<char>(std::tolower(static_cast<int>(c)));
  constexpr std::string_view kQuiet[] = {
      "-instruct", "-chat",         "-base",       "-hf",       "-it",       "-pt",
      "-2507",     "-deduped",      "-pretrained", "-bf16",     "-fp8",      "-dequantized",
      "-8k",       "-16k",          "-64k",        "-128k",     "meta-",     "-dense",
      "config",    "modelprovider", "provider",    "-thinking", "-community"};
  for (const std::string_view word : kQuiet) {
    for (size_t at = words.find(word); at != std::string::npos; at = words.find(word)) {
      const size_t end = at + word.size();
      const bool is_whole =
          word == "config" || word == "meta-" || end == words.size() || !IsKept(words[end]);
      if (!is_whole) break;
      words.erase(at, word.size());
    }
  }
  std::string squeezed;
  for (const char c : words)
    if (IsKept(c)) squeezed += c;
  for (const OtherName& other : kOtherNames)
    if (squeezed == other.theirs) return other.ours;
  return squeezed;
}

NamedModel ModelOfSizes(const ModelSizes& sizes) {
  nlohmann::json config = nlohmann::json::parse(sizes.more);
  config["model_type"] = sizes.type;
  config["num_hidden_layers"] = sizes.layers;
  config["hidden_size"] = sizes.hidden;
  config["num_attention_heads"] = sizes.heads;
  config["num_key_value_heads"] = sizes.groups;
  if (sizes.head > 0) config["head_dim"] = sizes.head;
  config["intermediate_size"] = sizes.feed_forward;
  config["vocab_size"] = sizes.vocabulary;
  config["tie_word_embeddings"] = sizes.is_tied;
  const JsonDocument document = JsonDocument::FromValue(std::move(config), {sizes.name, 0, ""});
  HfModel read = ReadHfConfig(document.Root());
  return {std::move(read.keys), std::move(read.remarks), sizes.name};
}

}  // namespace

std::optional<NamedModel> FindModelByName(std::string_view name) {
  if (name.size() > 200) return std::nullopt;
  const std::string wanted = SqueezedName(name);
  std::optional<NamedModel> found;
  for (const GptModel& preset : KnownModels()) {
    if (!found && SqueezedName(preset.name) == wanted)
      found = NamedModel{{{"preset", preset.name}}, {}, ""};
  }
  for (const TorchtitanFlavor& flavor : TorchtitanFlavors()) {
    const bool is_small = std::string_view(flavor.flavor).starts_with("debug");
    if (found || is_small || SqueezedName(std::string(flavor.model) + flavor.flavor) != wanted)
      continue;
    found = NamedModel{nlohmann::ordered_json::parse(flavor.keys), {}, ""};
    if (*flavor.remark != '\0') found->remarks.emplace_back(flavor.remark);
  }
  const auto sizes = std::find_if(std::begin(kSizes), std::end(kSizes),
                                  [&](const ModelSizes& one) { return wanted == one.name; });
  if (!found && sizes != std::end(kSizes)) found = ModelOfSizes(*sizes);
  if (found) found->name = std::string(name.substr(name.rfind('/') + 1));
  return found;
}

void SetNamedModel(const std::optional<NamedModel>& given, const std::string& name,
                   const Origin& from, ScenarioDraft* draft) {
  const std::optional<NamedModel> found = given ? given : FindModelByName(name);
  if (!found && name.empty()) {
    throw Error({draft->file(), from.line, ""},
                "nothing says which model it is; expected --model-config with its config.json, or "
                "its name");
  }
  if (!found) {
    draft->Fail(from, fmt::format("found {}, a model that is not known by name; expected "
                                  "--model-config with its config.json",
                                  QuotedJson(name)));
  }
  draft->Set("/model", found->keys, from);
  if (!found->keys.contains("preset")) draft->Set("/model/name", found->name);
  for (const std::string& remark : found->remarks) draft->Remark(remark);
}

namespace {

// The preset that the model is, or null.
const GptModel* PresetOf(const ScenarioDraft& draft) {
  const auto& presets = KnownModels();
  const std::string preset = draft.json()["model"].value("preset", "");
  const auto found = std::find_if(presets.begin(), presets.end(),
                                  [&](const GptModel& one) { return one.name == preset; });
  return found == presets.end() ? nullptr : &*found;
}

}  // namespace

bool HasExperts(const ScenarioDraft& draft) {
  const GptModel* const preset = PresetOf(draft);
  return draft.json()["model"].contains("experts") ||
         (preset != nullptr && preset->experts.has_value());
}

int64_t HiddenSizeOf(const ScenarioDraft& draft) {
  const GptModel* const preset = PresetOf(draft);
  const nlohmann::ordered_json& model = draft.json()["model"];
  if (model.contains("hidden")) return model["hidden"].get<int64_t>();
  return preset == nullptr ? 0 : preset->hidden;
}

}  // namespace rehearse
