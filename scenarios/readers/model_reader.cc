#include "scenarios/readers/model_reader.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "scenarios/readers/image_model_reader.h"
#include "sim/base/error.h"
#include "workloads/networks/decoder_network.h"
#include "workloads/networks/mlp_network.h"

namespace rehearse {
namespace {

// What a kind of network wants to know of the training.
enum class Rows : uint8_t { kTokens, kSamples, kPixels };

Training ReadTraining(const JsonReader& reader, Rows rows) {
  std::vector<std::string> keys = {"batch",     "micro_batches", "recomputation",
                                   "precision", "gradients",     "tuned_kernels"};
  if (rows == Rows::kTokens) keys.insert(keys.end(), {"sequence", "attention"});
  if (rows == Rows::kPixels) keys.emplace_back("convolution");
  reader.AllowKeys(keys);
  Training training;
  training.batch = static_cast<uint64_t>(reader.At("batch").Integer(1, int64_t{1} << 32));
  training.sequence = 1;
  if (rows == Rows::kTokens) {
    training.sequence = static_cast<uint64_t>(reader.At("sequence").Integer(1, int64_t{1} << 24));
  }
  if (reader.Has("attention")) {
    training.fused_attention = reader.At("attention").Choice({"fused", "unfused"}) == 0;
  }
  if (reader.Has("convolution")) {
    training.implicit_convolution = reader.At("convolution").Choice({"implicit", "explicit"}) == 0;
  }
  if (reader.Has("micro_batches")) {
    training.micro_batches = static_cast<uint32_t>(reader.At("micro_batches").Integer(1, 1 << 16));
  }
  constexpr Recomputation kModes[] = {Recomputation::kNone, Recomputation::kSelective,
                                      Recomputation::kFull};
  training.recomputation = kModes[reader.At("recomputation").Choice({"none", "selective", "full"})];
  if (reader.Has("precision")) {
    constexpr DType kPrecisions[] = {DType::kBf16, DType::kFp32};
    training.precision = kPrecisions[reader.At("precision").Choice({"bf16", "fp32"})];
  }
  if (reader.Has("gradients")) {
    constexpr DType kGradients[] = {DType::kFp32, DType::kBf16};
    training.gradients = kGradients[reader.At("gradients").Choice({"fp32", "bf16"})];
    if (training.gradients == DType::kBf16 && training.precision == DType::kFp32) {
      reader.At("gradients").Expected("\"fp32\", as \"precision\" is");
    }
  }
  if (reader.Has("tuned_kernels")) training.tuned_kernels = reader.At("tuned_kernels").Bool();
  return training;
}

MlpModel ReadMlp(const JsonReader& reader) {
  reader.AllowKeys({"kind", "preset", "name", "sizes"});
  MlpModel model;
  if (reader.Has("preset")) {
    std::vector<std::string> names;
    for (const MlpModel& known : KnownMlps()) names.push_back(known.name);
    model = KnownMlps()[reader.At("preset").Choice(names)];
  }
  if (reader.Has("name")) model.name = reader.At("name").String();
  if (model.name.empty()) model.name = "mlp";
  if (!reader.Has("preset") || reader.Has("sizes")) {
    const JsonReader sizes = reader.At("sizes");
    model.sizes.clear();
    for (const JsonReader& size : sizes.Elements()) {
      model.sizes.push_back(static_cast<uint64_t>(size.Integer(1, 1 << 24)));
    }
    if (model.sizes.size() < 2) sizes.Expected("two sizes or more");
  }
  return model;
}

// The rows of the network of one image or sample.
Training OneSample() {
  Training training;
  training.batch = 1;
  return training;
}

std::vector<ModelPreset> Decoders() {
  std::vector<ModelPreset> presets;
  for (const GptModel& model : KnownModels()) {
    presets.push_back(
        {model.name,
         fmt::format("{:.1f} billion parameters: {} layers, hidden {}, {} heads",
                     model.Parameters() / 1e9, model.layers, model.hidden, model.heads),
         model.source});
  }
  return presets;
}
std::vector<ModelPreset> Mlps() {
  std::vector<ModelPreset> presets;
  for (const MlpModel& model : KnownMlps()) {
    presets.push_back({model.name,
                       fmt::format("{:.0f} million parameters: {}", model.Parameters() / 1e6,
                                   fmt::join(model.sizes, "-")),
                       model.source});
  }
  return presets;
}
std::vector<ModelPreset> Vggs() {
  std::vector<ModelPreset> presets;
  for (const VggModel& model : KnownVggs()) {
    presets.push_back({model.name,
                       fmt::format("{:.0f} million parameters, {} classes",
                                   model.Parameters() / 1e6, model.classes),
                       model.source});
  }
  return presets;
}
std::vector<ModelPreset> Unets() {
  std::vector<ModelPreset> presets;
  for (const UnetModel& model : KnownUnets()) {
    presets.push_back({model.name,
                       fmt::format("{:.0f} million parameters: {} channels, {} levels of {} blocks",
                                   MakeUnet(model, OneSample()).Parameters() / 1e6, model.channels,
                                   model.multipliers.size(), model.blocks),
                       model.source});
  }
  return presets;
}

Network DecoderOf(const JsonReader& reader, const Training& training) {
  return MakeDecoder(ReadModel(reader), training);
}
Network MlpOf(const JsonReader& reader, const Training& training) {
  return MakeMlp(ReadMlp(reader), training);
}
Network VggOf(const JsonReader& reader, const Training& training) {
  return MakeVgg(ReadVgg(reader), training);
}
Network UnetOf(const JsonReader& reader, const Training& training) {
  return MakeUnet(ReadUnet(reader), training);
}

struct Kind {
  const char* name;
  Rows rows;
  std::vector<ModelPreset> (*presets)();
  Network (*read)(const JsonReader& reader, const Training& training);
};
constexpr std::array<Kind, 4> kKinds = {{{"decoder", Rows::kTokens, Decoders, DecoderOf},
                                         {"mlp", Rows::kSamples, Mlps, MlpOf},
                                         {"vgg", Rows::kPixels, Vggs, VggOf},
                                         {"u-net", Rows::kPixels, Unets, UnetOf}}};

// By "kind", or that of the preset, or a decoder.
const Kind& KindOf(const JsonReader& model) {
  if (!model.IsObject()) return kKinds.front();
  if (model.Has("kind")) {
    std::vector<std::string> names;
    for (const Kind& kind : kKinds) names.emplace_back(kind.name);
    return kKinds[model.At("kind").Choice(names)];
  }
  if (!model.Has("preset")) return kKinds.front();
  std::vector<std::string> names;
  std::vector<const Kind*> kinds;
  for (const Kind& kind : kKinds) {
    for (const ModelPreset& preset : kind.presets()) {
      names.push_back(preset.name);
      kinds.push_back(&kind);
    }
  }
  return *kinds[model.At("preset").Choice(names)];
}

}  // namespace

namespace {

// Sizes are counted in 64 bits, and most products of two of them in the 53 of a double.
void CheckSizes(const Network& network, const JsonReader& training) {
  constexpr double kMost = 0x1p62;
  for (const NetworkNode& node : network.nodes) {
    const double elements =
        static_cast<double>(node.rows) * static_cast<double>(node.columns) * network.micro_batches;
    if (elements <= kMost) continue;
    training.At("batch").Fail(fmt::format(
        "makes \"{}\" an array of {:.3g} elements, expected at most 2^62", node.name, elements));
  }
}

}  // namespace

ModelAndTraining ReadModelAndTraining(const JsonReader& model, const JsonReader& training) {
  const Kind& kind = KindOf(model);
  const Training numbers = ReadTraining(training, kind.rows);
  Network network = kind.read(model, numbers);
  CheckSizes(network, training);
  return {std::move(network), numbers};
}

std::vector<ModelPreset> ModelPresets() {
  std::vector<ModelPreset> presets;
  for (const Kind& kind : kKinds) {
    for (ModelPreset& preset : kind.presets()) presets.push_back(std::move(preset));
  }
  return presets;
}

}  // namespace rehearse
