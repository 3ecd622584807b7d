#include "scenarios/readers/model_reader.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "scenarios/readers/image_model_reader.h"
#include "scenarios/readers/training_reader.h"
#include "sim/base/error.h"
#include "workloads/networks/decoder_network.h"
#include "workloads/networks/mlp_network.h"

namespace rehearse {
namespace {

const Fields<MlpModel>& MlpFields() {
  std::vector<std::string> names;
  for (const MlpModel& known : KnownMlps()) names.push_back(known.name);
  static const Fields<MlpModel> fields(
      "model: mlp", "A chain of fully connected layers.",
      {{"kind", OneOf({"mlp"}), Optional("the preset's, or decoder"), "which network"},
       {"preset", OneOf(std::move(names)), Optional("sizes are given"), "a known model"},
       {"name", &MlpModel::name, AText(), Optional("the preset's, or mlp"), "what results call it",
        "\"mine\""},
       {"sizes", &MlpModel::sizes, ListOf(AWhole(1, 1 << 24)),
        Optional("the preset's; without one it must be given"),
        "columns of the input, each hidden layer and the output", "[1024, 4096, 512]"}});
  return fields;
}

MlpModel ReadMlp(const JsonReader& object) {
  const JsonReader reader = object.As(MlpFields().shape());
  MlpModel model;
  if (reader.Has("preset")) model = KnownMlps()[reader.At("preset").Choice()];
  MlpFields().ReadInto(reader, &model);
  if (!reader.Has("preset")) MustHave(reader, {"sizes"});
  if (model.name.empty()) model.name = "mlp";
  if (model.sizes.size() < 2) reader.At("sizes").Expected("at least two sizes");
  return model;
}

// For the rows of a network with one image or sample.
Training OneSample() {
  Training training;
  training.batch = 1;
  return training;
}

std::string DescribeExperts(const GptModel& model) {
  if (!model.experts) return "";
  return fmt::format(", {} of {} experts per token ({:.1f} billion active)",
                     model.experts->per_token, model.experts->count,
                     model.ActiveParameters() / 1e9);
}

std::vector<ModelPreset> Decoders() {
  std::vector<ModelPreset> presets;
  for (const GptModel& model : KnownModels()) {
    presets.push_back({model.name,
                       fmt::format("{:.1f} billion parameters: {} layers, hidden {}, {} heads{}",
                                   model.Parameters() / 1e9, model.layers, model.hidden,
                                   model.heads, DescribeExperts(model)),
                       model.source,
                       {},
                       model.experts.has_value()});
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

// Names of the presets, without building a network of each to describe it.
template <auto kKnown>
std::vector<std::string> NamesOf() {
  std::vector<std::string> names;
  for (const auto& model : kKnown()) names.push_back(model.name);
  return names;
}

struct Kind {
  const char* name;
  TrainingOf training;
  std::vector<std::string> (*names)();
  std::vector<ModelPreset> (*presets)();
  Network (*read)(const JsonReader& reader, const Training& training);
  ObjectShapeOf table;
};
constexpr std::array<Kind, 4> kKinds = {
    {{"decoder", TrainingOf::kDecoders, NamesOf<KnownModels>, Decoders, DecoderOf, DecoderShape},
     {"mlp", TrainingOf::kSamples, NamesOf<KnownMlps>, Mlps, MlpOf, ShapeIn<MlpFields>},
     {"vgg", TrainingOf::kImages, NamesOf<KnownVggs>, Vggs, VggOf, ShapeIn<VggFields>},
     {"u-net", TrainingOf::kImages, NamesOf<KnownUnets>, Unets, UnetOf, ShapeIn<UnetFields>}}};

// The one that "kind" names, or that of the preset, or a decoder.
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
    for (std::string& name : kind.names()) {
      names.push_back(std::move(name));
      kinds.push_back(&kind);
    }
  }
  return *kinds[model.At("preset").Choice(names)];
}

}  // namespace

namespace {

// Sizes are counted in 64 bits, but most products of two of them in the 53 of a double.
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

JsonShape ModelShape() {
  std::vector<JsonShape> tables;
  for (const Kind& kind : kKinds) tables.push_back(ObjectOf(kind.table));
  return Either(std::move(tables));
}

ModelAndTraining ReadModelAndTraining(const JsonReader& model, const JsonReader& training) {
  const Kind& kind = KindOf(model);
  const Training numbers = ReadTraining(training, kind.training);
  Network network = kind.read(model, numbers);
  CheckSizes(network, training);
  return {std::make_shared<const Network>(std::move(network)), numbers};
}

const char* VariantOfTraining(const std::string& kind) {
  for (const Kind& row : kKinds) {
    if (kind == row.name) return VariantOf(row.training);
  }
  CHECK(false);
}

const std::vector<ModelPreset>& ModelPresets() {
  static const std::vector<ModelPreset> all = [] {
    std::vector<ModelPreset> presets;
    for (const Kind& kind : kKinds) {
      for (ModelPreset& preset : kind.presets()) {
        preset.kind = kind.name;
        presets.push_back(std::move(preset));
      }
    }
    return presets;
  }();
  return all;
}

}  // namespace rehearse
