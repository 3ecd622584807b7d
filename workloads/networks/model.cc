#include "workloads/networks/model.h"

#include <fmt/format.h>

#include "sim/base/error.h"

namespace rehearse {
namespace {

// Weights of a layer's attention: Q, K, V and the projection behind the core.
double AttentionWeights(const GptModel& model) {
  if (model.latent) return model.latent->Weights(model.hidden, model.heads);
  const double h = static_cast<double>(model.hidden);
  return h * static_cast<double>((model.heads + 2 * model.Groups()) * model.HeadSize()) + h * h;
}

// What a core multiplies for a token and a key: the columns of its queries and of its values.
double CoreColumns(const GptModel& model) {
  if (!model.latent) return 2 * static_cast<double>(model.hidden);
  return static_cast<double>(model.heads * (model.latent->QuerySize() + model.latent->value_head));
}

// Products and the attention core without its mask. For GPT it is
// 24·tokens·l·h²·(1 + s/6h + V/12lh), a third of Narayanan's formula.
Flops ForwardFlops(const GptModel& model, double tokens, uint64_t sequence) {
  const double h = static_cast<double>(model.hidden);
  const double feed_forward = (model.llama ? 3 : 2) * h * static_cast<double>(model.FeedForward());
  const double layer =
      AttentionWeights(model) + feed_forward + static_cast<double>(sequence) * CoreColumns(model);
  const double output = static_cast<double>(model.vocabulary) * h;
  double unseen = 0;  // keys outside of windows, over all layers
  for (uint32_t i = 0; i < model.layers + model.predict_ahead; ++i) {
    const uint64_t window = model.WindowOf(i);
    if (window > 0 && window < sequence) unseen += static_cast<double>(sequence - window);
  }
  // One more layer, what joins a token with the one before it, and the output layer once more.
  const double ahead = model.predict_ahead * (layer + 2 * h * h + output);
  return Flops(2 * tokens * (ahead + model.layers * layer - unseen * CoreColumns(model) + output));
}

}  // namespace

double GptModel::Parameters() const {
  const double h = static_cast<double>(hidden);
  const double ff = static_cast<double>(FeedForward());
  const double qkv = static_cast<double>((heads + 2 * Groups()) * HeadSize());
  const double table = static_cast<double>(vocabulary) * h;
  const double vectors = llama ? 2 * h : qkv + ff + 2 * h + 4 * h;  // biases and norms of a layer
  const double matrices = AttentionWeights(*this) + (llama ? 3 : 2) * h * ff;
  const double gains = latent ? latent->Gains() : 0;
  const double ahead = predict_ahead * (2 * h * h + (llama ? 3 : 6) * h);
  return ahead + (layers + predict_ahead) * (matrices + vectors + gains) + (tied ? 1 : 2) * table +
         (llama ? 1 : 2) * h;
}

Flops ModelFlops(const GptModel& model, double tokens, uint64_t sequence) {
  return 3 * ForwardFlops(model, tokens, sequence);
}

const ObjectShape& DecoderShape() {
  constexpr int64_t kMostColumns = 1 << 24;
  constexpr int64_t kMostHeads = 1 << 16;
  const auto own = [] { return Optional("the preset's; without one it must be given"); };
  std::vector<std::string> names;
  for (const GptModel& known : KnownModels()) names.push_back(known.name);
  static const ObjectShape shape = {
      "model: decoder",
      "A transformer decoder: a preset, a preset with changes, or its numbers.",
      {{"kind", OneOf({"decoder"}), Optional("the preset's, or decoder"), "which network"},
       {"preset", OneOf(std::move(names)), Optional("all numbers are given"), "a known model",
        "\"gpt-20b\""},
       {"name", AText(), Optional("the preset's, or made of its numbers"), "in results",
        "\"mine\""},
       {"style", OneOf({"gpt", "llama"}), Optional("the preset's, or gpt"),
        "llama: RMS norms, SwiGLU, no biases, no dropout"},
       {"layers", AWhole(1, 10000), own(), "of attention and MLP", "48"},
       {"hidden", AWhole(1, 1 << 20), own(), "size of a token's vector", "6144"},
       {"heads", AWhole(1, kMostHeads), own(), "of attention; they divide hidden", "48"},
       {"groups", AWhole(1, kMostHeads), Optional("the preset's, or a group a head"),
        "of heads that share a key and a value; they divide the heads", "8"},
       {"feed_forward", AWhole(1, kMostColumns), Optional("the preset's, or 4 hidden"),
        "columns between the matrices of the MLP", "24576"},
       {"vocabulary", AWhole(1, kMostColumns), own(), "tokens that there are, padded", "51200"},
       {"tied", TrueFalse(), Optional("the preset's, or true"),
        "the embedding is the output layer too", "true"},
       {"window", AWhole(0, int64_t{1} << 24), Optional("the preset's, or 0"),
        "tokens that a token attends to, itself the last; 0: all before it", "4096"},
       {"global_every", AWhole(0, 10000), Optional("the preset's, or 0"),
        "of so many layers the last has no window; 0: all have it", "2"},
       {"predict_ahead", AWhole(0, 1), Optional("the preset's, or 0"),
        "tokens behind the next one that are predicted too, by a layer more", "1"},
       {"ahead_weight", ANumber(0, 1e6), Optional("the preset's, or 0.3"), "what their loss counts",
        "0.1"},
       {"latent", ObjectOf(LatentShape), Optional("the preset's, or none"),
        "multi-head latent attention, in place of q, k, v of every head (llama style)",
        R"({"query_rank": 1536, "kv_rank": 512, "rope_head": 64, "head": 128})"}}};
  return shape;
}

GptModel ReadModel(const JsonReader& object) {
  const JsonReader reader = object.As(DecoderShape());
  GptModel model;
  if (reader.Has("preset")) model = KnownModels()[reader.At("preset").Choice()];
  if (reader.Has("name")) model.name = reader.At("name").String();
  const auto is_own = [&](const char* key) { return !reader.Has("preset") || reader.Has(key); };
  if (is_own("layers")) model.layers = reader.At("layers").Whole<uint32_t>();
  if (is_own("hidden")) model.hidden = reader.At("hidden").Whole<uint64_t>();
  if (is_own("heads")) model.heads = reader.At("heads").Whole<uint32_t>();
  if (is_own("vocabulary")) model.vocabulary = reader.At("vocabulary").Whole<uint64_t>();
  if (reader.Has("style")) model.llama = reader.At("style").Choice() == 1;
  if (reader.Has("groups")) model.groups = reader.At("groups").Whole<uint32_t>();
  if (reader.Has("feed_forward")) model.feed_forward = reader.At("feed_forward").Whole<uint64_t>();
  if (reader.Has("tied")) model.tied = reader.At("tied").Bool();
  if (reader.Has("window")) model.window = reader.At("window").Whole<uint64_t>();
  if (reader.Has("global_every")) model.global_every = reader.At("global_every").Whole<uint32_t>();
  if (reader.Has("global_every") && model.global_every > 0 && model.window == 0) {
    reader.At("global_every").Fail("says which layers have no window, but there is no \"window\"");
  }
  if (reader.Has("predict_ahead")) {
    model.predict_ahead = reader.At("predict_ahead").Whole<uint32_t>();
  }
  if (reader.Has("ahead_weight")) model.ahead_weight = reader.At("ahead_weight").Number();
  if (model.predict_ahead > 0 && model.tied)
    reader.Fail(
        "prediction of tokens ahead shares embedding and output layer, which then have to "
        "be two; expected \"tied\": false");
  if (reader.Has("latent")) model.latent = ReadLatent(reader.At("latent"), model.latent);
  if (model.latent && !model.llama)
    reader.Fail("latent attention has no biases; expected \"style\": \"llama\"");
  if (model.latent && model.groups != 0 && model.groups != model.heads)
    reader.Fail(fmt::format("{} groups of heads, but latent attention has a key of each head's own",
                            model.groups));
  if (model.heads % model.Groups() != 0) {
    reader.Fail(fmt::format("{} groups do not divide {} heads", model.groups, model.heads));
  }
  if (!model.latent && model.hidden % model.heads != 0) {
    reader.Fail(
        fmt::format("{} heads do not divide the hidden size {}", model.heads, model.hidden));
  }
  if (model.name.empty()) {
    model.name = fmt::format("gpt-{}x{}", model.layers, model.hidden);
  }
  return model;
}

}  // namespace rehearse
