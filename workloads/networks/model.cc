#include "workloads/networks/model.h"

#include <algorithm>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/json_fields.h"
#include "sim/schedule/expert_routing.h"
#include "workloads/networks/hf_model.h"

namespace rehearse {
namespace {

// The weights of a layer's attention: Q, K, V and the projection after the core.
double AttentionWeights(const GptModel& model) {
  if (model.latent) return model.latent->Weights(model.hidden, model.heads);
  const double h = static_cast<double>(model.hidden);
  return h * static_cast<double>(2 * (model.heads + model.Groups()) * model.HeadSize());
}

// What a core multiplies for a token and a key: the columns of its queries and of its values.
double CoreColumns(const GptModel& model) {
  const uint64_t size =
      model.latent ? model.latent->QuerySize() + model.latent->value_head : 2 * model.HeadSize();
  return static_cast<double>(model.heads * size);
}

// The weights of all MLPs and experts, including the layer that predicts further ahead, where `met`
// of a layer's experts count.
double FeedForwards(const GptModel& model, double met) {
  const double h = static_cast<double>(model.hidden);
  const double matrices = model.IsGated() ? 3 : 2;
  const double sum = model.MlpLayers() * matrices * h * static_cast<double>(model.FeedForward());
  if (!model.experts) return sum;
  const ExpertModel& experts = *model.experts;
  const auto latent = static_cast<double>(experts.latent);
  // What tokens have for their experts, and its way there and back.
  const double own = matrices * (latent > 0 ? latent : h) * met;
  const double layer = own * static_cast<double>(experts.hidden) +
                       matrices * h * static_cast<double>(experts.shared) + 2 * h * latent +
                       h * experts.count;
  return sum + model.ExpertLayers() * layer;
}

// The weights of the adapters of all layers.
double AdapterWeights(const GptModel& model) {
  if (!model.lora) return 0;
  const LoraTargets& on = model.lora->on;
  const auto h = static_cast<double>(model.hidden);
  const uint64_t value = model.latent ? model.latent->value_head : model.HeadSize();
  const auto core = static_cast<double>(model.heads * value);
  const auto qkv = static_cast<double>((model.heads + 2 * model.Groups()) * model.HeadSize());
  const auto ff = static_cast<double>(model.FeedForward());
  const double attention = (on.qkv ? h + qkv : 0) + (on.projection ? core + h : 0);
  const double mlp = (on.up ? h + (model.IsGated() ? 2 : 1) * ff : 0) + (on.down ? ff + h : 0);
  return static_cast<double>(model.lora->rank) *
         (model.AttentionLayers() * attention + model.MlpLayers() * mlp);
}

// Of all experts, or of those that one token passes through.
double ParametersOf(const GptModel& model, bool of_token) {
  const double met =
      model.experts ? (of_token ? model.experts->per_token : model.experts->count) : 0;
  const double h = static_cast<double>(model.hidden);
  const double ff = static_cast<double>(model.FeedForward());
  const double qkv = static_cast<double>((model.heads + 2 * model.Groups()) * model.HeadSize());
  const double table = static_cast<double>(model.vocabulary) * h;
  // The biases and norms of a layer.
  const double norms = model.parallel == ParallelBlocks::kOneNorm ? 1 : 2;
  const double vectors = (model.llama ? norms * h : qkv + ff + 2 * h + norms * 2 * h) +
                         (model.latent ? model.latent->Gains() : 0);
  // What joins a token with the one before it, and three norms.
  const double ahead = model.predict_ahead * (2 * h * h + (model.llama ? 3 : 6) * h);
  const double ends = (model.tied ? 1 : 2) * table + (model.llama ? 1 : 2) * h;
  if (!model.layer_pattern.empty()) {
    // A norm for each layer, and latent attention's own.
    const double gains = static_cast<double>(model.Letters().size()) * h +
                         model.AttentionLayers() * (model.latent ? model.latent->Gains() : 0);
    const StateSpaceModel state_space = model.mamba.value_or(StateSpaceModel());
    return model.AttentionLayers() * AttentionWeights(model) + FeedForwards(model, met) +
           model.StateSpaceLayers() *
               (state_space.Weights(model.hidden) + state_space.Vectors(model.hidden)) +
           gains + ahead + ends + model.AdapterParameters();
  }
  return (model.layers + model.predict_ahead) * (AttentionWeights(model) + vectors) +
         FeedForwards(model, met) + ahead + ends + model.AdapterParameters();
}

// The experts that a token reaches in the mean: what experts do not accept is not computed. As if
// all were wanted alike; a capacity below the busiest one's share drops more than is said here.
double ExpertsReached(const GptModel& model) {
  if (!model.experts) return 0;
  const ExpertModel& experts = *model.experts;
  return experts.per_token * (experts.capacity > 0 ? std::min(1.0, experts.capacity) : 1);
}

// Counts products and the attention core without its mask. For GPT it is 24·tokens·l·h²·(1 + s/6h +
// V/12lh), a third of Narayanan's formula.
Flops ForwardFlops(const GptModel& model, double tokens, uint64_t sequence) {
  const double h = static_cast<double>(model.hidden);
  const double layer = AttentionWeights(model) + static_cast<double>(sequence) * CoreColumns(model);
  const double feed_forward = FeedForwards(model, ExpertsReached(model));
  const double output = static_cast<double>(model.vocabulary) * h;
  double unseen = 0;  // keys outside of windows, over all layers
  const auto all = static_cast<uint32_t>(model.Letters().size());
  for (uint32_t i = 0; i < (all > 0 ? all : model.layers + model.predict_ahead); ++i) {
    const uint64_t window = model.HasAttention(i) ? model.WindowOf(i) : 0;
    if (window > 0 && window < sequence) unseen += static_cast<double>(sequence - window);
  }
  // What joins a token with the one before it, and the output layer once more.
  const double ahead = model.predict_ahead * (2 * h * h + output);
  return Flops(2 * tokens *
               (model.AttentionLayers() * layer + feed_forward + ahead -
                unseen * CoreColumns(model) + output));
}

// The same of a model with a pattern of layers, whose cores count by half.
Flops PatternFlops(const GptModel& model, double tokens, uint64_t sequence) {
  const Flops products = ForwardFlops(model, tokens, 0);
  const Flops cores = ForwardFlops(model, tokens, sequence) - products;
  const StateSpaceModel state_space = model.mamba.value_or(StateSpaceModel());
  const double scan = 7 * static_cast<double>(state_space.Inner(model.hidden)) *
                      static_cast<double>(state_space.state);
  return products + 0.5 * cores +
         Flops(tokens * model.StateSpaceLayers() * (2 * state_space.Weights(model.hidden) + scan));
}

}  // namespace

std::vector<double> ExpertModel::RoutingAttributes() const {
  std::vector<double> attributes(kRoutingAttributes);
  attributes[kRoutingExperts] = count;
  attributes[kRoutingPerToken] = per_token;
  attributes[kRoutingGroups] = groups;
  attributes[kRoutingLimitedGroups] = limited_groups;
  attributes[kRoutingCapacity] = capacity;
  attributes[kRoutingImbalance] = imbalance;
  attributes[kRoutingSeed] = seed.value_or(1);
  attributes[kRoutingSigmoid] = sigmoid ? 1 : 0;
  attributes[kRoutingAuxiliary] = auxiliary;
  if (balanced_over > 1) attributes.push_back(balanced_over);
  return attributes;
}

double GptModel::Parameters() const {
  return ParametersOf(WithoutRepeatedLayers(), /*of_token=*/false);
}
double GptModel::ActiveParameters() const {
  return ParametersOf(WithoutRepeatedLayers(), /*of_token=*/true);
}

std::string GptModel::Letters() const {
  std::string letters = layer_pattern;
  for (uint32_t i = 0; i < predict_ahead; ++i) letters += ahead_pattern;
  return letters;
}

GptModel GptModel::WithoutRepeatedLayers() const {
  GptModel once = *this;
  if (shares_ahead) once.predict_ahead = std::min(1u, predict_ahead);
  return once;
}

double GptModel::AdapterParameters() const { return AdapterWeights(*this); }

uint32_t GptModel::AttentionLayers() const {
  return layer_pattern.empty() ? layers + predict_ahead
                               : CountOf(Letters(), LayerLetter::kAttention);
}

uint32_t GptModel::MlpLayers() const {
  return layer_pattern.empty() ? layers + predict_ahead - ExpertLayers()
                               : CountOf(Letters(), LayerLetter::kMlp);
}

uint32_t GptModel::ExpertLayers() const {
  if (!layer_pattern.empty()) return CountOf(Letters(), LayerLetter::kExperts);
  uint32_t sum = 0;
  for (uint32_t layer = 0; experts && layer < layers + predict_ahead; ++layer)
    sum += experts->IsIn(layer) ? 1 : 0;
  return sum;
}

Flops ModelFlops(const GptModel& model, double tokens, uint64_t sequence) {
  const auto of = [&](uint64_t seen) {
    return model.layer_pattern.empty() ? ForwardFlops(model, tokens, seen)
                                       : PatternFlops(model, tokens, seen);
  };
  const Flops forward = of(sequence);
  if (!model.lora) return 3 * forward;
  // A core has two gradients for each product, whatever is frozen.
  const Flops weights = of(0);
  return 2 * weights + 3 * (forward - weights) + Flops(6 * tokens * model.AdapterParameters());
}

namespace {

constexpr const char* kPresetOr = "the preset's, or ";
constexpr ValueName<bool> kDrawnNames[] = {{"step", false}, {"micro-batch", true}};
constexpr ValueName<bool> kRouterNames[] = {{"softmax", false}, {"sigmoid", true}};
constexpr ValueName<ParallelBlocks> kParallelNames[] = {{"no", ParallelBlocks::kNone},
                                                        {"one-norm", ParallelBlocks::kOneNorm},
                                                        {"two-norms", ParallelBlocks::kTwoNorms}};
constexpr ValueName<bool> kMlpActivationNames[] = {{"usual", false}, {"squared-relu", true}};
constexpr ValueName<bool> kAheadNames[] = {{"own", false}, {"shared", true}};
constexpr ValueName<bool> kStyleNames[] = {{"gpt", false}, {"llama", true}};

const Fields<ExpertModel>& ExpertFields() {
  constexpr int64_t kMostExperts = 1 << 16;
  const auto own = [] { return Optional("the preset's; without one it must be given"); };
  static const Fields<ExpertModel> fields(
      "model: decoder: experts",
      "Experts in place of MLPs; a router chooses some of them for each token.",
      {{"count", &ExpertModel::count, AWhole(1, kMostExperts), own(), "experts per layer", "8"},
       {"per_token", &ExpertModel::per_token, AWhole(1, kMostExperts), own(),
        "experts that each token goes to", "2"},
       {"hidden", &ExpertModel::hidden, AWhole(1, 1 << 24), own(),
        "columns between the two matrices of an expert", "14336"},
       {"shared", &ExpertModel::shared, AWhole(0, 1 << 24), OrUsual(kPresetOr),
        "columns of the shared expert, which every token also goes to; with several, their sum",
        "2048"},
       {"latent", &ExpertModel::latent, AWhole(0, 1 << 24), OrUsual(kPresetOr),
        "columns that a product gives tokens for their experts, and another takes back "
        "(LatentMoE); 0: experts get them whole",
        "1024"},
       {"first_dense", &ExpertModel::first_dense, AWhole(0, 10000), OrUsual(kPresetOr),
        "this many first layers have an MLP instead", "1"},
       {"every", &ExpertModel::every, AWhole(1, 10000), OrUsual(kPresetOr),
        "every n-th layer has experts, the others an MLP", "2"},
       {"groups", &ExpertModel::groups, AWhole(1, kMostExperts), OrUsual(kPresetOr),
        "equal groups of experts; they divide the count", "8"},
       {"limited_groups", &ExpertModel::limited_groups, AWhole(1, kMostExperts),
        Optional("the preset's, or the groups"),
        "how many of these groups a token's experts may lie in; they divide per_token", "4"},
       {"capacity", &ExpertModel::capacity, ANumber(0, 1e6), OrUsual(kPresetOr),
        "tokens that an expert accepts, relative to an equal share; the rest are dropped; 0: all "
        "are accepted",
        "1.25"},
       {"imbalance", &ExpertModel::imbalance, ANumber(1, 1e6), OrUsual(kPresetOr),
        "tokens that the busiest expert gets, relative to an equal share", "1.5"},
       {"seed", &ExpertModel::seed, AWhole(0, 1 << 30),
        Optional("the preset's, or 1; with an imbalance, seven others are tried too"),
        "seed that decides which experts are busy", "7"},
       {"balanced_over", &ExpertModel::balanced_over, AWhole(1, kMostExperts), OrUsual(kPresetOr),
        "busy experts are placed on so many ranks as EPLB places them, so that each has about as "
        "much to do (without redundant experts); 1: as they come",
        "8"},
       {"drawn", &ExpertModel::drawn_by_micro_batch, OneOf(kDrawnNames), OrUsual(kPresetOr),
        "how long the same experts are busy: all step, or other ones in each micro-batch",
        "\"micro-batch\""},
       {"router", &ExpertModel::sigmoid, OneOf(kRouterNames), OrUsual(kPresetOr),
        "how experts are scored; the scores become the weights of those chosen", "\"sigmoid\""},
       {"auxiliary_loss", &ExpertModel::auxiliary, ANumber(0, 1e6), OrUsual(kPresetOr),
        "weight of the loss that balances the experts", "0.001"},
       {"biased", &ExpertModel::biased, TrueFalse(), OrUsual(kPresetOr),
        "both products have a bias and SwiGLU is clamped; it only takes time, backends do not "
        "compute it",
        "true"}});
  return fields;
}

void CheckExperts(const JsonReader& reader, const ExpertModel& experts) {
  if (experts.per_token > experts.count) {
    reader.Fail(fmt::format(
        "\"per_token\" {} of \"count\" {} experts: a token cannot pass through more than there are",
        experts.per_token, experts.count));
  }
  if (experts.count % experts.groups != 0) {
    reader.Fail(fmt::format("{} groups do not divide {} experts", experts.groups, experts.count));
  }
  if (experts.limited_groups > experts.groups) {
    reader.Fail(fmt::format("\"limited_groups\" {} of \"groups\" {}", experts.limited_groups,
                            experts.groups));
  }
  const uint32_t of_group = experts.count / experts.groups;
  if (experts.limited_groups < experts.groups &&
      (experts.per_token % experts.limited_groups != 0 ||
       experts.per_token / experts.limited_groups > of_group)) {
    reader.Fail(
        fmt::format("{} experts per token out of {} groups of {}: expected equally many of each "
                    "group, and no more than it has",
                    experts.per_token, experts.limited_groups, of_group));
  }
  const uint32_t over = experts.balanced_over;
  const bool cuts_groups = experts.limited_groups < experts.groups && over % experts.groups != 0;
  if (experts.count % over != 0 || (over > 1 && cuts_groups)) {
    reader.Fail(fmt::format(
        "\"balanced_over\" {}: expected a divisor of {} experts{}", over, experts.count,
        cuts_groups ? fmt::format(" and a multiple of {} groups", experts.groups) : ""));
  }
  if (over > 1 && experts.drawn_by_micro_batch) {
    reader.Fail(
        "\"balanced_over\" with \"drawn\": \"micro-batch\": experts are placed for what a whole "
        "step "
        "needs, expected \"step\"");
  }
  if (experts.imbalance * experts.per_token > experts.count) {
    reader.Fail(
        fmt::format("\"imbalance\" {}: with {} of {} experts per token the busiest one has at most "
                    "{} times an equal share",
                    experts.imbalance, experts.per_token, experts.count,
                    static_cast<double>(experts.count) / experts.per_token));
  }
}

ExpertModel ReadExperts(const JsonReader& object, const std::optional<ExpertModel>& preset) {
  const JsonReader reader = object.As(ExpertFields().shape());
  ExpertModel experts = preset.value_or(ExpertModel());
  ExpertFields().ReadInto(reader, &experts);
  if (!preset) MustHave(reader, {"count", "per_token", "hidden"});
  if (reader.Has("groups") && !reader.Has("limited_groups"))
    experts.limited_groups = experts.groups;
  CheckExperts(reader, experts);
  return experts;
}

const Fields<GptModel>& DecoderFields() {
  constexpr int64_t kMostColumns = 1 << 24;
  constexpr int64_t kMostHeads = 1 << 16;
  const auto own = [] { return Optional("the preset's; without one it must be given"); };
  std::vector<std::string> names;
  for (const GptModel& known : KnownModels()) names.push_back(known.name);
  static const Fields<GptModel> fields(
      "model: decoder", "A transformer decoder: a preset, a preset with changes, or its numbers.",
      {{"kind", OneOf({"decoder"}), Optional("the preset's, or decoder"), "which network"},
       {"preset", OneOf(std::move(names)), Optional("all numbers are given"), "a known model",
        "\"gpt-20b\""},
       {"file", AText("path of a file"), Optional("no file is read"),
        "a config.json of Hugging Face, or a file with these keys, instead of a preset",
        "\"config.json\""},
       {"name", &GptModel::name, AText(), Optional("the preset's, or made of its numbers"),
        "what results call it", "\"mine\""},
       {"style", &GptModel::llama, OneOf(kStyleNames), OrUsual(kPresetOr),
        "llama: RMS norms, SwiGLU, no biases, no dropout"},
       {"layers", &GptModel::layers, AWhole(1, 10000),
        Optional("the preset's, or the letters of \"layer_pattern\""),
        "layers, each of attention and an MLP", "48"},
       {"hidden", &GptModel::hidden, AWhole(1, 1 << 20), own(), "size of a token's vector", "6144"},
       {"heads", &GptModel::heads, AWhole(1, kMostHeads),
        Optional("the preset's; without one it must be given if there is attention"),
        "attention heads; they divide hidden", "48"},
       {"groups", &GptModel::groups, AWhole(1, kMostHeads),
        Optional("the preset's, or one for each head"),
        "groups of heads that share a key and a value; they divide the heads", "8"},
       {"feed_forward", &GptModel::feed_forward, AWhole(1, kMostColumns),
        Optional("the preset's, or 4 hidden"), "columns between the two matrices of the MLP",
        "24576"},
       {"vocabulary", &GptModel::vocabulary, AWhole(1, kMostColumns), own(),
        "number of different tokens, padded", "51200"},
       {"tied", &GptModel::tied, TrueFalse(), OrUsual(kPresetOr),
        "the embedding is also the output layer", "true"},
       {"window", &GptModel::window, AWhole(0, int64_t{1} << 24), OrUsual(kPresetOr),
        "tokens that a token attends to, itself included; 0: all before it", "4096"},
       {"global_every", &GptModel::global_every, AWhole(0, 10000), OrUsual(kPresetOr),
        "every n-th layer has no window; 0: all layers have it", "2"},
       {"head_size", &GptModel::head_size, AWhole(0, 1 << 16), OrUsual(kPresetOr),
        "columns per head; 0: hidden / heads", "128"},
       {"head_norms", &GptModel::head_norms, TrueFalse(), OrUsual(kPresetOr),
        "RMS norms of each head's queries and keys (llama style); they only take time, backends "
        "do not compute them",
        "true"},
       {"scaled_rotary", &GptModel::scaled_rotary, TrueFalse(), OrUsual(kPresetOr),
        "rotary embeddings also scale queries and keys (YaRN; llama style); it only takes time",
        "true"},
       {"parallel_blocks", &GptModel::parallel, OneOf(kParallelNames), OrUsual(kPresetOr),
        "attention and MLP of a layer have the same input, with one norm for both or one each; "
        "what both make is summed over ranks as one",
        "\"one-norm\""},
       {"experts", ObjectOf(ShapeIn<ExpertFields>), Optional("the preset's, or none"),
        "experts instead of MLPs (llama style)",
        R"({"count": 8, "per_token": 2, "hidden": 14336})"},
       {"predict_ahead", &GptModel::predict_ahead, AWhole(0, 16), OrUsual(kPresetOr),
        "how many tokens after the next one are predicted too, each by an extra layer", "1"},
       {"ahead_weight", &GptModel::ahead_weight, ANumber(0, 1e6), OrUsual(kPresetOr),
        "weight of the loss of these predictions", "0.1"},
       {"ahead_pattern", &GptModel::ahead_pattern, AText(), OrUsual(kPresetOr),
        "what an extra layer consists of, in the letters of \"layer_pattern\"", "\"*E\""},
       {"ahead_weights", &GptModel::shares_ahead, OneOf(kAheadNames), OrUsual(kPresetOr),
        "own: each extra layer has weights; shared: all have the first one's", "\"shared\""},
       {"latent", ObjectOf(ShapeIn<LatentFields>), Optional("the preset's, or none"),
        "multi-head latent attention, instead of q, k and v for every head (llama style)",
        R"({"query_rank": 1536, "kv_rank": 512, "rope_head": 64, "head": 128})"},
       {"activation", &GptModel::squared_relu, OneOf(kMlpActivationNames), OrUsual(kPresetOr),
        "of MLPs and experts (llama style): usual: SwiGLU; squared-relu: without a gate",
        "\"squared-relu\""},
       {"rotary", &GptModel::rotary, TrueFalse(), OrUsual(kPresetOr),
        "queries and keys are rotated by their positions (llama style); it only takes time",
        "false"},
       {"layer_pattern", &GptModel::layer_pattern, AText(), OrUsual(kPresetOr),
        "a letter for each layer, which has a norm before it (llama style): M Mamba-2, * "
        "attention, - MLP, E experts",
        "\"M-M*-M-\""},
       {"mamba", ObjectOf(ShapeIn<StateSpaceFields>),
        Optional("the preset's, or as Megatron-Core's, where the pattern has an M"),
        "state-space layers", R"({"state": 128, "head": 64, "groups": 8})"},
       {"lora", ObjectOf(ShapeIn<LoraFields>), Optional("all parameters are trained"),
        "low-rank adapters, which alone are trained", R"({"rank": 16})"}});
  return fields;
}

// What a pattern of layers, and what belongs to it, must fulfil.
void CheckPattern(const JsonReader& reader, const GptModel& model) {
  const std::string& pattern = model.layer_pattern;
  if (reader.Has("mamba") && CountOf(pattern, LayerLetter::kStateSpace) == 0)
    reader.At("mamba").Fail("expected a \"layer_pattern\" with an M, a state-space layer");
  if (pattern.empty()) {
    if (reader.Has("ahead_pattern"))
      reader.At("ahead_pattern").Fail("expected a \"layer_pattern\", which it continues");
    return;
  }
  const auto refuse = [&](const std::string& why) {
    (reader.Has("layer_pattern") ? reader.At("layer_pattern") : reader).Fail(why);
  };
  if (const auto unknown = UnknownLetter(pattern))
    refuse(
        fmt::format("letter {} is \"{}\", expected M (Mamba-2), * (attention), - (MLP) or E "
                    "(experts)",
                    *unknown + 1, pattern.substr(*unknown, 1)));
  if (const auto unknown = UnknownLetter(model.ahead_pattern))
    (reader.Has("ahead_pattern") ? reader.At("ahead_pattern") : reader)
        .Fail(fmt::format("letter {} is \"{}\", expected M, *, - or E", *unknown + 1,
                          model.ahead_pattern.substr(*unknown, 1)));
  if (pattern.size() != model.layers)
    refuse(fmt::format("{} letters, but \"layers\" is {}", pattern.size(), model.layers));
  if (!model.llama)
    refuse("layers of a pattern have RMS norms and no biases; expected \"style\": \"llama\"");
  if (model.StateSpaceLayers() > 0) {
    const std::string why = WhyNot(*model.mamba, model.hidden);
    if (!why.empty()) (reader.Has("mamba") ? reader.At("mamba") : reader).Fail(why);
  }
  const bool has_experts = model.ExpertLayers() > 0;
  if (has_experts != model.experts.has_value())
    refuse(has_experts ? "found an E, expected \"experts\""
                       : "has no E, but there are \"experts\"");
  if (model.parallel != ParallelBlocks::kNone)
    refuse("its layers are attention or MLP, and \"parallel_blocks\" have both");
  if (model.predict_ahead > 0 && model.ahead_pattern.empty())
    (reader.Has("predict_ahead") ? reader.At("predict_ahead") : reader)
        .Fail("expected \"ahead_pattern\", the letters of a layer that predicts further ahead");
}

// What sizes must fulfil together.
void CheckModel(const JsonReader& reader, const GptModel& model) {
  CheckPattern(reader, model);
  if (model.squared_relu && !model.llama)
    reader.Fail("a squared ReLU has no biases here; expected \"style\": \"llama\"");
  if (reader.Has("global_every") && model.global_every > 0 && model.window == 0) {
    reader.At("global_every").Fail("says which layers have no window, but there is no \"window\"");
  }
  if (model.predict_ahead > 0 && model.tied)
    reader.Fail(
        "prediction of tokens ahead shares embedding and output layer, which must then be "
        "separate; expected \"tied\": false");
  if (model.latent && !model.llama)
    reader.Fail("latent attention has no biases; expected \"style\": \"llama\"");
  if (model.latent && model.groups != 0 && model.groups != model.heads)
    reader.Fail(
        fmt::format("{} groups of heads, but in latent attention each head has a key of its own",
                    model.groups));
  if (model.latent && model.lora && model.lora->on.qkv)
    reader.At("lora").Fail(
        "latent attention has no product of queries, keys and values; expected \"on\" without "
        "\"qkv\"");
  if (model.heads % model.Groups() != 0) {
    reader.Fail(fmt::format("{} groups do not divide {} heads", model.groups, model.heads));
  }
  if (model.parallel != ParallelBlocks::kNone && model.experts)
    reader.Fail("\"parallel_blocks\" are of attention and an MLP, and there are \"experts\"");
  if (model.experts && !model.llama)
    reader.Fail("\"experts\" are SwiGLUs without biases; expected \"style\": \"llama\"");
  if (!model.latent && model.head_size == 0 && model.hidden % model.heads != 0) {
    reader.Fail(
        fmt::format("{} heads do not divide the hidden size {}", model.heads, model.hidden));
  }
}

}  // namespace

const ObjectShape& DecoderShape() { return DecoderFields().shape(); }

GptModel ReadModel(const JsonReader& object) {
  const JsonReader reader = object.As(DecoderShape());
  GptModel model;
  if (reader.Has("preset")) model = KnownModels()[reader.At("preset").Choice()];
  if (reader.Has("preset") && reader.Has("file"))
    reader.At("file").Fail("found \"preset\" and \"file\", expected one of them");
  if (reader.Has("file")) model = ReadModelFile(reader.At("file"));
  DecoderFields().ReadInto(reader, &model);
  if (reader.Has("layer_pattern") && !reader.Has("layers"))
    model.layers = static_cast<uint32_t>(model.layer_pattern.size());
  if (!reader.Has("preset") && !reader.Has("file")) {
    MustHave(reader, {"hidden", "vocabulary"});
    if (model.layer_pattern.empty()) MustHave(reader, {"layers"});
    if (model.AttentionLayers() > 0) MustHave(reader, {"heads"});
    model.heads = std::max(model.heads, 1u);
  }
  if (reader.Has("latent")) model.latent = ReadLatent(reader.At("latent"), model.latent);
  if (reader.Has("experts")) model.experts = ReadExperts(reader.At("experts"), model.experts);
  if (reader.Has("mamba")) model.mamba = ReadStateSpace(reader.At("mamba"), model.mamba);
  if (!model.mamba && model.StateSpaceLayers() > 0) model.mamba = StateSpaceModel();
  if (reader.Has("lora")) model.lora = ReadLora(reader.At("lora"));
  CheckModel(reader, model);
  if (model.name.empty()) {
    model.name = fmt::format("gpt-{}x{}", model.layers, model.hidden);
  }
  return model;
}

}  // namespace rehearse
