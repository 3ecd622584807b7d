#include "workloads/model.h"

#include "sim/error.h"

namespace rehearse {
namespace {

// Products and the attention core without its mask, and the output layer where wanted. For GPT it
// is 24·tokens·l·h²·(1 + s/6h + V/12lh), a third of Narayanan's formula.
Flops ForwardFlops(const GptModel& model, double tokens, uint64_t sequence, bool with_output) {
  const double h = static_cast<double>(model.hidden);
  const double qkv = static_cast<double>((model.heads + 2 * model.Groups()) * model.HeadSize());
  const double feed_forward = (model.llama ? 3 : 2) * h * static_cast<double>(model.FeedForward());
  const double layer = h * qkv + h * h + feed_forward + 2 * static_cast<double>(sequence) * h;
  const double output = with_output ? static_cast<double>(model.vocabulary) * h : 0;
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
  return 3 * ForwardFlops(model, tokens, sequence, true);
}

Flops HardwareFlopsWithRecomputation(const GptModel& model, double tokens, uint64_t sequence) {
  return 3 * ForwardFlops(model, tokens, sequence, true) +
         ForwardFlops(model, tokens, sequence, false);
}

const std::vector<GptModel>& KnownModels() {
  // Vocabularies of GPTs are not always stated; 51,200 is what Narayanan et al. 2021 use and
  // Megatron-LM pads GPT-2's tokens to.
  static const std::vector<GptModel> models = [] {
    std::vector<GptModel> list;
    const auto gpt = [&](const char* name, uint32_t layers, uint64_t hidden, uint32_t heads,
                         const char* source) {
      GptModel model;
      model.name = name;
      model.layers = layers;
      model.hidden = hidden;
      model.heads = heads;
      model.source = source;
      list.push_back(std::move(model));
    };
    const auto llama = [&](const char* name, uint32_t layers, uint64_t hidden, uint32_t heads,
                           uint32_t groups, uint64_t feed_forward, uint64_t vocabulary,
                           const char* source) {
      gpt(name, layers, hidden, heads, source);
      GptModel& model = list.back();
      model.llama = true;
      model.groups = groups;
      model.feed_forward = feed_forward;
      model.vocabulary = vocabulary;
      model.tied = false;
    };
    constexpr const char* kGpt3 = "Brown et al., arXiv 2005.14165, Table 2.1 (heads that divide)";
    constexpr const char* kAxonn = "AxoNN, arXiv 2305.13525, Table III";
    constexpr const char* kKorthikanti = "Korthikanti et al., arXiv 2205.05198, Table 3";
    constexpr const char* kAtp = "ATP, arXiv 2301.08658, Table 2 (4 layers of it)";
    constexpr const char* kAutoDdl = "AutoDDL, arXiv 2301.06813, section 5.4";
    constexpr const char* kLlama2 = "Touvron et al., arXiv 2307.09288";
    constexpr const char* kLlama3 = "Grattafiori et al., arXiv 2407.21783";
    gpt("gpt-125m", 12, 768, 12, kGpt3);
    gpt("atp-m1", 4, 2048, 16, kAtp);
    gpt("gpt-350m", 24, 1024, 16, kGpt3);
    gpt("atp-m2", 4, 4096, 32, kAtp);
    gpt("gpt-1.3b", 24, 2048, 16, kGpt3);
    gpt("gpt-2.7b", 32, 2560, 32, kGpt3);
    gpt("atp-m3", 4, 8192, 64, kAtp);
    gpt("gpt-5b", 24, 4096, 32, kAxonn);
    gpt("gpt-6.7b", 32, 4096, 32, kGpt3);
    llama("llama-2-7b", 32, 4096, 32, 32, 11008, 32000, kLlama2);
    gpt("autoddl-deep", 36, 4096, 32, kAutoDdl);
    gpt("atp-m4", 4, 12288, 96, kAtp);
    llama("llama-3-8b", 32, 4096, 32, 8, 14336, 128256, kLlama3);
    gpt("gpt-10b", 32, 5120, 40, kAxonn);
    gpt("gpt-13b", 40, 5120, 40, kGpt3);
    llama("llama-2-13b", 40, 5120, 40, 40, 13824, 32000, kLlama2);
    gpt("autoddl-wide", 20, 8192, 64, kAutoDdl);
    gpt("gpt-20b", 32, 7168, 56, kAxonn);
    gpt("gpt-22b", 48, 6144, 64, kKorthikanti);
    gpt("gpt-40b", 38, 9216, 72, kAxonn);
    llama("llama-2-70b", 80, 8192, 64, 8, 28672, 32000, kLlama2);
    llama("llama-3-70b", 80, 8192, 64, 8, 28672, 128256, kLlama3);
    gpt("gpt-80b", 42, 12288, 96, kAxonn);
    gpt("gpt-175b", 96, 12288, 96, kKorthikanti);
    gpt("gpt-530b", 105, 20480, 128, kKorthikanti);
    gpt("gpt-1t", 128, 25600, 160, kKorthikanti);
    return list;
  }();
  return models;
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
