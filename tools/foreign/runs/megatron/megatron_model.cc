// The network: layers, heads, vocabulary, experts, latent attention.
#include <algorithm>
#include <charconv>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "sim/base/json_document.h"
#include "tools/foreign/runs/megatron/megatron_parts.h"
#include "workloads/networks/model.h"
#include "workloads/networks/state_space.h"

namespace rehearse {
namespace {

constexpr int64_t kMostLayers = 10000;
constexpr int64_t kMostColumns = 1 << 24;

// How many tokens a tokenizer has if the arguments do not say. For Hugging Face's, the name of the
// model tells: it is the vocabulary of our preset.
struct TokenizerSize {
  const char* type;
  int64_t tokens;
};
constexpr TokenizerSize kTokenizers[] = {
    {"GPT2BPETokenizer", 50257},  // openai/gpt-2, encoder.json
    {"Llama2Tokenizer", 32000},   // Touvron et al. 2023, section 2.2
    {"Llama3Tokenizer", 128256},  // Grattafiori et al. 2024, section 3.2, and 256 reserved
    {"TikTokenizer", 131072},     // Megatron-LM's default of --tiktoken-num-special-tokens' file
    {"Qwen2Tokenizer", 151643},   // Qwen2's vocab.json; scripts add --extra-vocab-size
    {"LLamaTokenizer", 32000},    // Llama 2's, as Pai-Megatron-Patch names it
    {"BertWordPieceLowerCase", 30522},  // google-research/bert, uncased
    {"BertWordPieceCase", 28996}};      // and cased

struct ModelName {
  const char* part;  // of the tokenizer's name, in lower case
  const char* preset;
};
constexpr ModelName kModelNames[] = {
    {"llama-2", "llama-2-7b"},      {"llama-3", "llama-3-8b"},    {"mixtral", "mixtral-8x7b"},
    {"qwen3", "qwen3-30b-a3b"},     {"llama-4", "llama-4-scout"}, {"deepseek-v3", "deepseek-v3"},
    {"deepseek-v2", "deepseek-v2"}, {"gpt-oss", "gpt-oss-20b"},   {"mistral-7b", "mistral-7b"}};

// Of models that are no presets: the rows of their embeddings, from their config.json.
struct VocabularyOfName {
  const char* part;
  int64_t tokens;
};
constexpr VocabularyOfName kVocabularies[] = {{"meta-llama-3", 128256},
                                              {"llama3", 128256},
                                              {"llama2", 32000},
                                              {"llama-7b", 32000},
                                              {"llama-13b", 32000},
                                              {"llama-1", 32000},
                                              {"codellama", 32016},
                                              {"vicuna", 32000},
                                              {"tinyllama", 32000},
                                              {"qwen2.5", 151936},
                                              {"qwen2", 151936},
                                              {"qwen1.5", 151936},
                                              {"qwen", 151936},
                                              {"mistral-nemo", 131072},
                                              {"mistral", 32000},
                                              {"gemma-3", 262208},
                                              {"gemma", 256000},
                                              {"phi-4", 100352},
                                              {"phi-3", 32064},
                                              {"20b_tokenizer", 50277},
                                              {"gpt-neox", 50432},
                                              {"pythia", 50304},
                                              {"gpt2", 50257},
                                              {"gpt-2", 50257},
                                              {"opt-", 50272},
                                              {"bloom", 250880},
                                              {"falcon", 65024},
                                              {"starcoder", 49152},
                                              {"deepseek-moe", 102400},
                                              {"moonlight", 163840},
                                              {"kimi-k2", 163840},
                                              {"glm-4", 151552},
                                              {"chatglm", 65024},
                                              {"internlm2", 92544},
                                              {"internlm", 103168},
                                              {"baichuan2", 125696},
                                              {"baichuan", 64000},
                                              {"yi-", 64000},
                                              {"olmo", 100352},
                                              {"granite", 49155},
                                              {"nemotron-4", 256000},
                                              {"minitron", 256000},
                                              {"nemotron-h", 131072},
                                              {"nemotron-nano", 131072},
                                              {"nemotron-3", 131072},
                                              {"llava-1.5", 32064},
                                              {"nemotron_2_256k", 256000},
                                              {"command-r", 256000},
                                              {"minimax", 200064}};

bool IsOfType(const std::string& type) {
  return std::any_of(std::begin(kTokenizers), std::end(kTokenizers),
                     [&](const TokenizerSize& known) { return type == known.type; });
}

std::optional<int64_t> TokensOf(const std::string& type, std::string model) {
  for (const TokenizerSize& known : kTokenizers) {
    if (type == known.type) return known.tokens;
  }
  std::transform(model.begin(), model.end(), model.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  for (const ModelName& known : kModelNames) {
    if (model.find(known.part) == std::string::npos) continue;
    for (const GptModel& preset : KnownModels()) {
      if (preset.name == known.preset) return static_cast<int64_t>(preset.vocabulary);
    }
  }
  for (const VocabularyOfName& known : kVocabularies) {
    if (model.find(known.part) != std::string::npos) return known.tokens;
  }
  return std::nullopt;
}

// Padded, so that each tensor-parallel rank has a multiple of --make-vocab-size-divisible-by.
void SetVocabulary(ArgumentList& arguments, ScenarioDraft& draft, const MegatronRun& run) {
  const int64_t divisor = arguments.WholeOr({"make-vocab-size-divisible-by"}, 1, 1 << 20, 128);
  const std::optional<int64_t> padded = arguments.Whole({"padded-vocab-size"}, 1, kMostColumns);
  if (padded) {
    draft.Set("/model/vocabulary", *padded, arguments.OriginOf({"padded-vocab-size"}));
    return;
  }
  const std::string type = arguments.Values({"tokenizer-type"}).empty()
                               ? arguments.Text({"patch-tokenizer-type"}).value_or("")
                               : arguments.Values({"tokenizer-type"}).front();
  const int64_t extra = arguments.WholeOr({"extra-vocab-size"}, 0, 1 << 20, 0);
  const std::vector<std::string> model = arguments.Values({"tokenizer-model"});
  Origin from = arguments.OriginOf({"vocab-size"});
  std::optional<int64_t> tokens = arguments.Whole({"vocab-size"}, 1, kMostColumns);
  if (tokens && type == "NullTokenizer") ++*tokens;  // the end of a document
  if (!tokens) {
    from = arguments.OriginOf({"tokenizer-type"});
    const bool is_gpt2 = type.empty() && arguments.Has({"merge-file"});
    // NeMo gives a model's name in place of a type.
    const std::string named = model.empty() ? type : model.front();
    tokens = TokensOf(is_gpt2 ? "GPT2BPETokenizer" : type, named);
    if (!tokens) {
      draft.Fail({},
                 fmt::format("nothing says how many tokens there are{}; expected --vocab-size in "
                             "the file, or --set vocab-size=N beside it",
                             type.empty() ? "" : fmt::format(" ({})", type)));
    }
    draft.Remark(fmt::format("a vocabulary of {} tokens, that of {}", *tokens,
                             is_gpt2           ? "GPT-2's merge file"
                             : !IsOfType(type) ? named
                                               : type));
  }
  *tokens += extra;
  const int64_t multiple = divisor * static_cast<int64_t>(run.tensor.value);
  draft.Set("/model/vocabulary", (*tokens + multiple - 1) / multiple * multiple, from);
}

// Windows of --window-size before,after: a token sees that many before itself.
void SetWindow(ArgumentList& arguments, ScenarioDraft& draft) {
  std::string text;
  for (const std::string& value : arguments.Values({"window-size"})) text += value;
  std::erase_if(text, [](char c) { return c == '(' || c == ')' || c == ' '; });
  if (text.empty()) return;
  int64_t before = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), before);
  if (error != std::errc() || before < -1 || before >= kMostColumns)
    arguments.Fail({"window-size"}, "expected a number of tokens before, a comma, and 0");
  if (before < 0) return;
  draft.Set("/model/window", before + 1, arguments.OriginOf({"window-size"}));
  const std::vector<std::string> skips = arguments.Values({"window-attn-skip-freq"});
  if (skips.empty()) return;
  const std::optional<int64_t> every =
      skips.front().starts_with("[") || skips.front().starts_with("(")
          ? std::nullopt
          : arguments.Whole({"window-attn-skip-freq"}, 1, kMostLayers);
  if (every) {
    draft.Set("/model/global_every", *every, arguments.OriginOf({"window-attn-skip-freq"}));
  } else {
    arguments.Fail({"window-attn-skip-freq"},
                   "expected a number N: every N-th layer sees all tokens");
  }
}

void SetLatent(ArgumentList& arguments, ScenarioDraft& draft) {
  const std::optional<int64_t> query = arguments.Whole({"q-lora-rank"}, 1, 1 << 20);
  const int64_t keys = arguments.WholeOr({"kv-lora-rank"}, 1, 1 << 20, 32);
  const int64_t head = arguments.WholeOr({"qk-head-dim"}, 1, 1 << 20, 128);
  const int64_t rope = arguments.WholeOr({"qk-pos-emb-head-dim"}, 1, 1 << 20, 64);
  const int64_t value = arguments.WholeOr({"v-head-dim"}, 1, 1 << 20, 128);
  if (!arguments.Switch({"multi-latent-attention"})) return;
  draft.Set("/model/latent",
            {{"query_rank", query.value_or(0)},
             {"kv_rank", keys},
             {"rope_head", rope},
             {"head", head},
             {"value_head", value}},
            arguments.OriginOf({"multi-latent-attention"}));
}

// ---- which layers have experts ------------------------------------------------------------------

// "[0]*3+[1]*58", as Python evaluates it, and lists written out in full.
class LayerPattern {
 public:
  explicit LayerPattern(std::string text) : text_(std::move(text)) {
    std::erase_if(text_, [](char c) { return c == ' ' || c == '(' || c == ')'; });
  }

  // Nothing if it is something else.
  std::optional<std::vector<bool>> Read() {
    std::vector<bool> layers;
    do {
      std::vector<bool> some;
      if (!Take('[')) return std::nullopt;
      while (!Take(']')) {
        const std::optional<int64_t> bit = Number();
        if (!bit || *bit > 1) return std::nullopt;
        some.push_back(*bit == 1);
        Take(',');
      }
      const std::optional<int64_t> times = Take('*') ? Number() : std::optional<int64_t>(1);
      if (!times) return std::nullopt;
      for (int64_t i = 0; i < *times; ++i) {
        layers.insert(layers.end(), some.begin(), some.end());
        if (std::cmp_greater(layers.size(), kMostLayers)) return std::nullopt;
      }
    } while (Take('+'));
    return at_ == text_.size() ? std::optional(layers) : std::nullopt;
  }

 private:
  bool Take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  std::optional<int64_t> Number() {
    int64_t number = 0;
    const auto [end, error] =
        std::from_chars(text_.data() + at_, text_.data() + text_.size(), number);
    if (error != std::errc() || number < 0 || number > kMostLayers) return std::nullopt;
    at_ = static_cast<size_t>(end - text_.data());
    return number;
  }

  std::string text_;
  size_t at_ = 0;
};

void SetExpertLayers(ArgumentList& arguments, ScenarioDraft& draft, const MegatronRun& run) {
  const ArgumentList::Names names = {"moe-layer-freq", "expert-interval"};
  std::string text;
  for (const std::string& value : arguments.Values(names)) text += value;
  if (text.empty()) return;
  const Origin from = arguments.OriginOf(names);
  if (text.find('[') == std::string::npos) {
    const int64_t every = arguments.WholeOr(names, 1, kMostLayers, 1);
    if (every == 1) return;
    draft.Set("/model/experts/every", every, from);
    draft.Remark(fmt::format(
        "{}: of {} layers, the last has experts here, the first in Megatron-LM", from.name, every));
    return;
  }
  const std::optional<std::vector<bool>> layers = LayerPattern(text).Read();
  if (!layers) arguments.Fail(names, "expected a number, or a list such as ([0]*3+[1]*58)");
  if (std::cmp_not_equal(layers->size(), run.layers)) {
    arguments.Fail(
        names, fmt::format("found a list of {} layers, expected {}", layers->size(), run.layers));
  }
  const auto first = std::find(layers->begin(), layers->end(), true);
  const int64_t period = first - layers->begin() + 1;
  bool repeats = first != layers->end() && period > 1;
  for (int64_t layer = 0; layer < run.layers; ++layer)
    repeats = repeats && (*layers)[static_cast<size_t>(layer)] == ((layer + 1) % period == 0);
  if (repeats) {
    draft.Set("/model/experts/every", period, from);
    return;
  }
  if (std::find(first, layers->end(), false) != layers->end())
    arguments.Fail(names,
                   "only the first layers can be without experts here, or all but every n-th");
  if (first != layers->begin())
    draft.Set("/model/experts/first_dense", first - layers->begin(), from);
}

void SetGroupsOfExperts(ArgumentList& arguments, ScenarioDraft& draft) {
  const std::optional<int64_t> groups = arguments.Whole({"moe-router-num-groups"}, 1, 1 << 16);
  const std::optional<int64_t> limited = arguments.Whole({"moe-router-group-topk"}, 1, 1 << 16);
  if (!groups || !limited) return;
  draft.Set("/model/experts/groups", *groups, arguments.OriginOf({"moe-router-num-groups"}));
  draft.Set("/model/experts/limited_groups", *limited,
            arguments.OriginOf({"moe-router-group-topk"}));
}

// Experts have three matrices here, one of them a gate. Those without a gate become two thirds as
// wide, so that they have as many weights and products; ranks of a tensor must still share them.
int64_t ColumnsHere(int64_t columns, const MegatronRun& run) {
  if (run.is_gated || !run.is_llama || run.has_pattern) return columns;
  const auto multiple = 8 * static_cast<int64_t>(run.tensor.value);
  return std::max((columns * 2 / 3 + multiple / 2) / multiple, int64_t{1}) * multiple;
}

void SetExperts(ArgumentList& arguments, ScenarioDraft& draft, int64_t feed_forward,
                MegatronRun* run) {
  const ArgumentList::Names count = {"num-experts"};
  const int64_t experts = arguments.WholeOr(count, 1, 1 << 16, 1);
  const int64_t per_token =
      arguments.WholeOr({"moe-router-topk", "topk"}, 1, 1 << 16, run->is_deepspeed ? 1 : 2);
  const int64_t hidden = arguments.WholeOr({"moe-ffn-hidden-size"}, 1, kMostColumns, feed_forward);
  const int64_t shared =
      arguments.WholeOr({"moe-shared-expert-intermediate-size"}, 0, kMostColumns, 0);
  const int64_t latent = arguments.WholeOr({"moe-latent-size"}, 0, kMostColumns, 0);
  const std::optional<double> auxiliary =
      arguments.Number({"moe-aux-loss-coeff", "moe-loss-coeff"}, 0, 1e6);
  const std::optional<double> capacity =
      arguments.Number({"moe-expert-capacity-factor"}, 1e-6, 1e6);
  const std::string score = arguments.Text({"moe-router-score-function"}).value_or("softmax");
  const bool is_grouped = arguments.Switch({"moe-grouped-gemm"});
  if (experts == 1) {
    for (const char* name :
         {"moe-layer-freq", "expert-interval", "moe-router-num-groups", "moe-router-group-topk"})
      arguments.Has({name});
    return;
  }
  run->experts = static_cast<uint32_t>(experts);
  draft.Set("/model/experts", nlohmann::ordered_json::object(), arguments.OriginOf(count));
  draft.Set("/model/experts/count", experts, arguments.OriginOf(count));
  draft.Set("/model/experts/per_token", per_token, arguments.OriginOf({"moe-router-topk"}));
  draft.Set("/model/experts/hidden", ColumnsHere(hidden, *run),
            arguments.OriginOf({"moe-ffn-hidden-size"}));
  if (shared > 0) draft.Set("/model/experts/shared", ColumnsHere(shared, *run));
  if (latent > 0)
    draft.Set("/model/experts/latent", latent, arguments.OriginOf({"moe-latent-size"}));
  if (!run->has_pattern) SetExpertLayers(arguments, draft, *run);
  SetGroupsOfExperts(arguments, draft);
  if (capacity) draft.Set("/model/experts/capacity", *capacity);
  if (score == "sigmoid") draft.Set("/model/experts/router", "sigmoid");
  draft.Set("/model/experts/auxiliary_loss", auxiliary.value_or(0));
  if (!is_grouped)
    draft.Set("/training/expert_kernels", "sequential", arguments.OriginOf({"moe-grouped-gemm"}));
}

// Models with SwiGLU are Llama-like here, the others GPTs; remarks say what differs.
void SetStyle(ArgumentList& arguments, ScenarioDraft& draft, const MegatronRun& run) {
  draft.Set("/model/style", run.is_llama ? "llama" : "gpt");
  const std::string norm = arguments.Text({"normalization"}).value_or("LayerNorm");
  if (arguments.Switch({"qk-layernorm"})) {
    if (run.is_llama) draft.Set("/model/head_norms", true);
    draft.Remark(run.is_llama ? "--qk-layernorm: norms of queries and keys only take time"
                              : "--qk-layernorm: norms of queries and keys are left out");
  }
  const bool has_biases = arguments.Unless({"disable-bias-linear"}, "add-bias-linear");
  if (run.is_llama && norm == "LayerNorm") draft.Remark("LayerNorm: played as RMSNorm");
  if (!run.is_llama && norm == "RMSNorm") draft.Remark("RMSNorm: played as LayerNorm");
  if (run.is_llama && has_biases)
    draft.Remark(
        "biases are left out (there is no --disable-bias-linear): with SwiGLU there are none here");
  if (!run.is_llama && !has_biases) draft.Remark("--disable-bias-linear: biases are still counted");
  for (const char* gated : {"quick-geglu", "geglu"}) {
    if (arguments.Switch({gated}))
      draft.Remark(fmt::format("--{}: played as SwiGLU, which costs as much", gated));
  }
  if (arguments.Has({"glu-activation"}))
    draft.Remark("--glu-activation: played as SwiGLU, which costs as much");
  for (const char* other : {"squared-relu", "openai-gelu"}) {
    if (arguments.Switch({other}) && !run.has_pattern)
      draft.Remark(fmt::format("--{}: played as GELU", other));
  }
  if (run.is_llama && !run.is_gated && !run.has_pattern) {
    draft.Remark(
        "MLPs and experts without a gate: played as gated ones of two thirds of the columns, which "
        "have as many weights and products");
  }
}

// Behind the first slash of a pattern: the same letters for each layer that predicts further ahead.
void ReadAheadPatterns(const std::string& text, const ArgumentList::Names& names,
                       const ArgumentList& arguments, MegatronRun* run) {
  std::stringstream parts(text);
  for (std::string part; std::getline(parts, part, '/'); ++run->ahead) {
    if (run->ahead > 0 && part != run->ahead_pattern)
      arguments.Fail(names, "layers behind the slashes differ, which is not supported");
    run->ahead_pattern = part;
  }
}

// Layers by letters, as --hybrid-layer-pattern has them: before a slash, with bars between stages.
void SetPattern(ArgumentList& arguments, ScenarioDraft& draft, MegatronRun* run) {
  const ArgumentList::Names names = {"hybrid-layer-pattern", "hybrid-override-pattern"};
  const Origin from = arguments.OriginOf(names);
  std::string pattern = arguments.Text(names).value_or("");
  const size_t slash = pattern.find('/');
  if (slash != std::string::npos) {
    ReadAheadPatterns(pattern.substr(slash + 1), names, arguments, run);
    pattern.resize(slash);
  }
  if (std::erase(pattern, '|') > 0)
    draft.Remark(fmt::format("{}: bars between stages are left out", from.name));
  if (pattern.empty() || pattern.size() > static_cast<size_t>(kMostLayers))
    arguments.Fail(names, fmt::format("expected a letter for each layer, at most {}", kMostLayers));
  const std::optional<size_t> unknown = UnknownLetter(pattern);
  if (unknown)
    arguments.Fail(names, fmt::format("layers \"{}\" are not supported, expected M (Mamba-2), * "
                                      "(attention), - (MLP) and E (experts)",
                                      pattern.substr(*unknown, 1)));
  run->layers = static_cast<int64_t>(pattern.size());
  draft.Set("/model/layer_pattern", pattern, from);
  // Megatron-Core's defaults: megatron/core/transformer/transformer_config.py.
  const int64_t state = arguments.WholeOr({"mamba-state-dim"}, 1, 1 << 20, 128);
  const int64_t head = arguments.WholeOr({"mamba-head-dim"}, 1, 1 << 20, 64);
  const int64_t groups = arguments.WholeOr({"mamba-num-groups"}, 1, 1 << 16, 8);
  const std::optional<int64_t> heads = arguments.Whole({"mamba-num-heads"}, 1, 1 << 16);
  if (CountOf(pattern, LayerLetter::kStateSpace) > 0)
    draft.Set("/model/mamba",
              {{"state", state}, {"head", head}, {"groups", groups}, {"heads", heads.value_or(0)}},
              from);
  if (!run->is_gated) {
    draft.Set("/model/activation", "squared-relu");
    if (!arguments.Has({"squared-relu"}))
      draft.Remark("MLPs without a gate: played with a squared ReLU, which costs as much");
  }
  const bool is_rotary = arguments.Has({"use-rotary-position-embeddings"}) ||
                         arguments.Text({"position-embedding-type"}).value_or("none") == "rope";
  if (!is_rotary) draft.Set("/model/rotary", false);
}

// Layers that predict tokens after the next one.
void SetAhead(ArgumentList& arguments, ScenarioDraft& draft, MegatronRun* run) {
  const ArgumentList::Names names = {"mtp-num-layers"};
  run->ahead = arguments.WholeOr(names, 0, 16, run->ahead);
  const bool is_shared = arguments.Switch({"mtp-use-repeated-layer"});
  const std::string letters = arguments.Text({"mtp-hybrid-override-pattern"}).value_or("none");
  if (letters != "none") run->ahead_pattern = letters;
  const double weight = arguments.Number({"mtp-loss-scaling-factor"}, 0, 1e6).value_or(0.1);
  if (run->ahead == 0) return;
  const bool is_tied = draft.json()["model"]["tied"] == true;
  if (is_tied || !run->is_llama || (run->has_pattern && run->ahead_pattern.empty())) {
    draft.Remark(fmt::format(
        "not supported: {} {} with {}; the layers that predict ahead are left out",
        arguments.OriginOf(names).name, run->ahead,
        is_tied            ? "one table for embedding and output"
        : run->has_pattern ? "a pattern that does not say them (--mtp-hybrid-override-pattern)"
                           : "MLPs without a gate"));
    return;
  }
  draft.Set("/model/predict_ahead", run->ahead, arguments.OriginOf(names));
  draft.Set("/model/ahead_weight", weight);
  if (run->has_pattern) draft.Set("/model/ahead_pattern", run->ahead_pattern);
  if (is_shared) draft.Set("/model/ahead_weights", "shared");
}

}  // namespace

// What says that layers are others than those of a decoder with attention.
struct OtherLayers {
  const char* name;
  const char* why;
};
constexpr OtherLayers kOtherLayers[] = {
    {"hybrid-attention-ratio",
     "layers of different kinds are only read as --hybrid-layer-pattern says them"},
    {"hybrid-mlp-ratio",
     "layers of different kinds are only read as --hybrid-layer-pattern says them"},
    {"experimental-attention-variant", "its linear or sparse attention is not supported"},
    {"linear-attention-freq", "layers of linear attention are not supported"},
    {"heterogeneous-layers-config-path",
     "its layers are of different sizes, which is not supported"},
    {"heterogeneous-layers-config-encoded-json",
     "its layers are of different sizes, which is not supported"}};

void SetMegatronModel(ArgumentList& arguments, ScenarioDraft& draft, MegatronRun* run) {
  const ArgumentList::Names heads_names = {"num-attention-heads"};
  for (const auto& [name, why] : kOtherLayers)
    if (arguments.Has({name})) arguments.Fail({name}, why);
  run->has_pattern = arguments.Has({"hybrid-layer-pattern", "hybrid-override-pattern"});
  if (arguments.Has({"is-hybrid-model"}) && !run->has_pattern)
    arguments.Fail({"is-hybrid-model"}, "expected --hybrid-layer-pattern beside it");
  // A pattern has as many.
  if (run->has_pattern)
    run->layers = arguments.WholeOr({"num-layers"}, 1, kMostLayers, 0);
  else
    run->layers = arguments.NeededWhole({"num-layers", "encoder-num-layers"}, 1, kMostLayers);
  const int64_t hidden = arguments.NeededWhole({"hidden-size"}, 1, 1 << 20);
  run->heads = arguments.NeededWhole(heads_names, 1, 1 << 16);
  const bool is_swiglu = arguments.Switch({"swiglu"});
  run->is_gated = is_swiglu || arguments.Switch({"quick-geglu"}) || arguments.Switch({"geglu"}) ||
                  arguments.Has({"glu-activation"});
  run->is_llama = run->is_gated || arguments.WholeOr({"num-experts"}, 1, 1 << 16, 1) > 1 ||
                  arguments.Has({"multi-latent-attention"}) || run->has_pattern;
  draft.Set("/model", nlohmann::ordered_json::object(), arguments.OriginOf(heads_names));
  const int64_t said = run->layers;
  if (run->has_pattern) SetPattern(arguments, draft, run);
  if (run->has_pattern && said > 0 && said != run->layers)
    arguments.Fail({"num-layers"}, fmt::format("found {}, expected {}, the letters of the pattern",
                                               said, run->layers));
  SetStyle(arguments, draft, *run);
  draft.Set("/model/layers", run->layers, arguments.OriginOf({"num-layers"}));
  draft.Set("/model/hidden", hidden, arguments.OriginOf({"hidden-size"}));
  draft.Set("/model/heads", run->heads, arguments.OriginOf(heads_names));

  const bool is_grouped = arguments.Switch({"group-query-attention"});
  int64_t groups = arguments.WholeOr({"num-query-groups"}, 1, 1 << 16, 1);
  if (!is_grouped) groups = arguments.WholeOr({"num-key-value-heads"}, 1, 1 << 16, run->heads);
  if (groups != run->heads)
    draft.Set("/model/groups", groups, arguments.OriginOf({"num-query-groups"}));
  const int64_t usual = is_swiglu ? 4 * hidden * 2 / 3 / 64 * 64 : 4 * hidden;
  const int64_t feed_forward = arguments.WholeOr({"ffn-hidden-size"}, 1, kMostColumns, usual);
  const int64_t columns = ColumnsHere(feed_forward, *run);
  if (columns != 4 * hidden)
    draft.Set("/model/feed_forward", columns, arguments.OriginOf({"ffn-hidden-size"}));
  SetVocabulary(arguments, draft, *run);
  draft.Set("/model/tied", !arguments.Switch({"untie-embeddings-and-output-weights"}));
  const std::optional<int64_t> head = arguments.Whole({"kv-channels"}, 1, 1 << 16);
  if (head && *head * run->heads != hidden)
    draft.Set("/model/head_size", *head, arguments.OriginOf({"kv-channels"}));
  SetWindow(arguments, draft);
  SetLatent(arguments, draft);
  SetExperts(arguments, draft, feed_forward, run);

  SetAhead(arguments, draft, run);

  const auto tensor = static_cast<int64_t>(run->tensor.value);
  if (run->heads % tensor != 0 || (groups % tensor != 0 && groups != run->heads)) {
    draft.Fail(
        run->tensor.from,
        run->heads % tensor != 0
            ? fmt::format("{} attention heads cannot be shared by {} ranks", run->heads, tensor)
            : fmt::format("{} query groups cannot be shared by {} ranks", groups, tensor));
  }
  if (feed_forward % tensor != 0) {
    draft.Fail(run->tensor.from,
               fmt::format("{} columns of the MLP (--ffn-hidden-size) cannot be shared by {} ranks",
                           feed_forward, tensor));
  }
}

namespace {

// Sizes that are given beside a model's name count in place of its own.
void ChangeGivenSizes(ArgumentList& arguments, ScenarioDraft& draft) {
  struct Size {
    const char* theirs;
    const char* ours;
    int64_t least;
    bool is_of_experts;
  };
  constexpr Size kSizesGiven[] = {
      {"hidden-size", "/model/hidden", 1, false},
      {"ffn-hidden-size", "/model/feed_forward", 1, false},
      {"num-attention-heads", "/model/heads", 1, false},
      {"num-query-groups", "/model/groups", 1, false},
      {"kv-channels", "/model/head_size", 1, false},
      {"num-experts", "/model/experts/count", 2, true},
      {"moe-router-topk", "/model/experts/per_token", 1, true},
      {"moe-ffn-hidden-size", "/model/experts/hidden", 1, true},
      {"moe-shared-expert-intermediate-size", "/model/experts/shared", 0, true}};
  const bool has_experts = HasExperts(draft);
  for (const Size& size : kSizesGiven) {
    if (size.is_of_experts && !has_experts) continue;
    const ArgumentList::Names names = {size.theirs};
    if (const std::optional<int64_t> value = arguments.Whole(names, size.least, kMostColumns))
      draft.Set(size.ours, *value, arguments.OriginOf(names));
  }
  const ArgumentList::Names capacity_names = {"moe-expert-capacity-factor"};
  const std::optional<double> capacity =
      has_experts ? arguments.Number(capacity_names, 1e-6, 1e6) : std::nullopt;
  if (capacity) draft.Set("/model/experts/capacity", *capacity, arguments.OriginOf(capacity_names));
  SetWindow(arguments, draft);
}

}  // namespace

void SetGivenMegatronModel(const NamedModel& model, const Origin& from, ArgumentList& arguments,
                           ScenarioDraft& draft, MegatronRun* run) {
  SetNamedModel(model, model.name, from, &draft);
  const ArgumentList::Names layers_names = {"num-layers"};
  if (const std::optional<int64_t> layers = arguments.Whole(layers_names, 1, kMostLayers))
    draft.Set("/model/layers", *layers, arguments.OriginOf(layers_names));
  ChangeGivenSizes(arguments, draft);
  const ArgumentList::Names ahead_names = {"mtp-num-layers"};
  const std::optional<int64_t> ahead = arguments.Whole(ahead_names, 0, 16);
  const std::optional<double> weight = arguments.Number({"mtp-loss-scaling-factor"}, 0, 1e6);
  if (ahead) draft.Set("/model/predict_ahead", *ahead);
  if (ahead && *ahead > 0 && weight) draft.Set("/model/ahead_weight", *weight);
  const JsonDocument document =
      JsonDocument::FromValue(nlohmann::json(draft.json()["model"]), {draft.file(), from.line, ""});
  const GptModel read = ReadModel(document.Root());
  run->layers = read.layers;
  run->heads = read.heads;
  run->experts = read.experts ? read.experts->count : 0;
  run->is_llama = read.llama;
  run->is_gated = read.IsGated();
  run->has_pattern = !read.layer_pattern.empty();
  const bool is_grouped = arguments.Switch({"moe-grouped-gemm"});
  if (run->experts > 0 && !is_grouped)
    draft.Set("/training/expert_kernels", "sequential", arguments.OriginOf({"moe-grouped-gemm"}));
  // Tables are padded, so that tensor-parallel ranks have equal parts.
  const uint64_t part = run->tensor.value;
  if (read.vocabulary % part != 0)
    draft.Set("/model/vocabulary", (read.vocabulary + part - 1) / part * part, from);
}

}  // namespace rehearse
