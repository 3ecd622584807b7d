#include "workloads/networks/model.h"

#include <fmt/format.h>

#include "sim/base/error.h"

namespace rehearse {
namespace {

// Products and the attention core without its mask. For GPT it is
// 24·tokens·l·h²·(1 + s/6h + V/12lh), a third of Narayanan's formula.
Flops ForwardFlops(const GptModel& model, double tokens, uint64_t sequence) {
  const double h = static_cast<double>(model.hidden);
  const double qkv = static_cast<double>((model.heads + 2 * model.Groups()) * model.HeadSize());
  const double feed_forward = (model.llama ? 3 : 2) * h * static_cast<double>(model.FeedForward());
  const double layer = h * qkv + h * h + feed_forward + 2 * static_cast<double>(sequence) * h;
  const double output = static_cast<double>(model.vocabulary) * h;
  return Flops(2 * tokens * (model.layers * layer + output));
}

}  // namespace

double GptModel::Parameters() const {
  const double h = static_cast<double>(hidden);
  const double ff = static_cast<double>(FeedForward());
  const double qkv = static_cast<double>((heads + 2 * Groups()) * HeadSize());
  const double table = static_cast<double>(vocabulary) * h;
  const double vectors = llama ? 2 * h : qkv + ff + 2 * h + 4 * h;  // biases and norms of a layer
  const double matrices = h * qkv + h * h + (llama ? 3 : 2) * h * ff;
  return layers * (matrices + vectors) + (tied ? 1 : 2) * table + (llama ? 1 : 2) * h;
}

Flops ModelFlops(const GptModel& model, double tokens, uint64_t sequence) {
  return 3 * ForwardFlops(model, tokens, sequence);
}

GptModel ReadModel(const JsonReader& reader) {
  reader.AllowKeys({"kind", "preset", "name", "style", "layers", "hidden", "heads", "groups",
                    "feed_forward", "vocabulary", "tied"});
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
  if (reader.Has("style")) model.llama = reader.At("style").Choice({"gpt", "llama"}) == 1;
  if (reader.Has("groups")) {
    model.groups = static_cast<uint32_t>(reader.At("groups").Integer(1, 1 << 16));
  }
  if (reader.Has("feed_forward")) {
    model.feed_forward = static_cast<uint64_t>(reader.At("feed_forward").Integer(1, 1 << 24));
  }
  if (reader.Has("tied")) model.tied = reader.At("tied").Bool();
  if (model.heads % model.Groups() != 0) {
    reader.Fail(fmt::format("{} groups do not divide {} heads", model.groups, model.heads));
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
