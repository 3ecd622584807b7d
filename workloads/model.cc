#include "workloads/model.h"

#include "sim/error.h"

namespace rehearse {

// The matrices of one layer: QKV, projection, and two of the MLP or three where it is gated.
double GptModel::LayerMatrices() const {
  const double h = static_cast<double>(hidden);
  const double keys_and_values = 2 * static_cast<double>(Groups() * HeadSize());
  const double mlp = (llama ? 3 : 2) * static_cast<double>(FeedForward());
  return h * (2 * h + keys_and_values + mlp);
}

double GptModel::Parameters() const {
  const double h = static_cast<double>(hidden);
  const double qkv = h + 2 * static_cast<double>(Groups() * HeadSize());
  // Gains alone, or biases of all four products and gain and bias of two norms.
  const double vectors = llama ? 2 * h : qkv + 2 * h + static_cast<double>(FeedForward()) + 4 * h;
  return layers * (LayerMatrices() + vectors) +
         (tied ? 1 : 2) * static_cast<double>(vocabulary) * h + (llama ? 1 : 2) * h;
}

namespace {

// Each pass over a product of a×b costs 2ab a token, over the attention core 4·s·h.
Flops FlopsOfPasses(const GptModel& model, double tokens, uint64_t sequence, double layer_passes) {
  const double h = static_cast<double>(model.hidden);
  const double s = static_cast<double>(sequence);
  const double v = static_cast<double>(model.vocabulary);
  const double layer = 2 * model.LayerMatrices() + 4 * s * h;
  return Flops(tokens * (layer_passes * model.layers * layer + 3 * 2 * v * h));
}

}  // namespace

Flops ModelFlops(const GptModel& model, double tokens, uint64_t sequence) {
  return FlopsOfPasses(model, tokens, sequence, 3);
}

Flops HardwareFlopsWithRecomputation(const GptModel& model, double tokens, uint64_t sequence) {
  return FlopsOfPasses(model, tokens, sequence, 4);
}

GptModel ReadModel(const JsonReader& reader) {
  reader.AllowKeys({"preset", "name", "layers", "hidden", "heads", "vocabulary"});
  GptModel model;
  if (reader.Has("preset")) {
    std::vector<std::string> names;
    for (const GptModel& known : KnownModels()) names.push_back(known.name);
    model = KnownModels()[reader.At("preset").Choice(names)];
  }
  if (reader.Has("name")) model.name = reader.At("name").String();
  const bool whole = !reader.Has("preset");
  if (whole || reader.Has("layers")) {
    model.layers = static_cast<uint32_t>(reader.At("layers").Integer(1, 10000));
  }
  if (whole || reader.Has("hidden")) {
    model.hidden = static_cast<uint64_t>(reader.At("hidden").Integer(1, 1 << 20));
  }
  if (whole || reader.Has("heads")) {
    model.heads = static_cast<uint32_t>(reader.At("heads").Integer(1, 1 << 16));
  }
  if (whole || reader.Has("vocabulary")) {
    model.vocabulary = static_cast<uint64_t>(reader.At("vocabulary").Integer(1, 1 << 24));
  }
  if (model.hidden % model.heads != 0) {
    reader.Fail(
        fmt::format("{} heads do not divide the hidden size {}", model.heads, model.hidden));
  }
  if (model.name.empty()) {
    model.name = fmt::format("gpt-{}x{}", model.layers, model.hidden);
  }
  return model;
}

}  // namespace rehearse
