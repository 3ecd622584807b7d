#include "workloads/model.h"

#include "sim/error.h"

namespace rehearse {

double GptModel::Parameters() const {
  const double h = static_cast<double>(hidden);
  return layers * (12 * h * h + 13 * h) + static_cast<double>(vocabulary) * h + 2 * h;
}

Flops ModelFlops(const GptModel& model, double tokens, uint64_t sequence) {
  const double h = static_cast<double>(model.hidden);
  const double l = model.layers;
  const double s = static_cast<double>(sequence);
  const double v = static_cast<double>(model.vocabulary);
  return Flops(72 * tokens * l * h * h * (1 + s / (6 * h) + v / (12 * l * h)));
}

Flops HardwareFlopsWithRecomputation(const GptModel& model, double tokens, uint64_t sequence) {
  const double h = static_cast<double>(model.hidden);
  const double l = model.layers;
  const double s = static_cast<double>(sequence);
  const double v = static_cast<double>(model.vocabulary);
  return Flops(96 * tokens * l * h * h * (1 + s / (6 * h) + v / (16 * l * h)));
}

const std::vector<GptModel>& KnownModels() {
  // Table III of the AxoNN paper (arXiv 2305.13525); its vocabulary is not stated, 51,200 is what
  // Narayanan et al. 2021 and Megatron-LM's GPT-2 tokenizer pad to.
  static const std::vector<GptModel> models = [] {
    const std::string axonn = "AxoNN, arXiv 2305.13525, Table III";
    return std::vector<GptModel>{
        {"gpt-5b", 24, 4096, 32, 51200, axonn},   {"gpt-10b", 32, 5120, 40, 51200, axonn},
        {"gpt-20b", 32, 7168, 56, 51200, axonn},  {"gpt-40b", 38, 9216, 72, 51200, axonn},
        {"gpt-80b", 42, 12288, 96, 51200, axonn},
    };
  }();
  return models;
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
