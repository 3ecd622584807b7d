#include "scenarios/readers/image_model_reader.h"

#include <fmt/format.h>

#include "sim/base/error.h"

namespace rehearse {
namespace {

constexpr int64_t kMostChannels = 1 << 20;
constexpr int64_t kLargestImage = 1 << 14;

template <typename Model>
Model PresetOf(const JsonReader& reader, const std::vector<Model>& known) {
  Model model;
  if (reader.Has("preset")) model = known[reader.At("preset").Choice()];
  if (reader.Has("name")) model.name = reader.At("name").String();
  return model;
}

void ReadOptional(const JsonReader& reader, const char* key, uint64_t* value) {
  if (reader.Has(key)) *value = reader.At(key).Whole<uint64_t>();
}

std::vector<uint64_t> ReadList(const JsonReader& reader) {
  std::vector<uint64_t> list;
  for (const JsonReader& element : reader.Elements()) list.push_back(element.Whole<uint64_t>());
  return list;
}

template <typename Model>
JsonKey PresetRow(const std::vector<Model>& known) {
  std::vector<std::string> names;
  for (const Model& model : known) names.push_back(model.name);
  return {"preset", OneOf(std::move(names)), Optional("all numbers are given"), "a known model"};
}

JsonKey NameRow() {
  return {"name", AText(), Optional("the preset's, or made of its numbers"), "what results call it",
          "\"mine\""};
}

// A number that a preset may have, and that is `usual` without one.
JsonKey Count(const char* name, int64_t most, uint64_t usual, const char* about) {
  return {name, AWhole(1, most), Optional(fmt::format("the preset's, or {}", usual)), about,
          std::to_string(usual)};
}

// Reports the place of the image, or the whole model if its preset says so.
void CheckHalves(const JsonReader& reader, uint64_t image, size_t times) {
  if (times < 32 && image % (uint64_t{1} << times) == 0) return;
  const JsonReader place = reader.Has("image") ? reader.At("image") : reader;
  place.Fail(
      fmt::format("an image of {} pixels on a side cannot be halved {} times", image, times));
}

// What group norms and heads need to divide the channels of a level.
void CheckDivides(const JsonReader& reader, const char* what, uint64_t divisor, uint64_t channels) {
  if (channels % divisor == 0) return;
  reader.Fail(fmt::format("{} of {} do not divide {} channels", what, divisor, channels));
}

}  // namespace

const ObjectShape& VggShape() {
  const VggModel usual;
  static const ObjectShape shape = {
      "model: vgg",
      "VGG: stages of 3x3 convolutions that end in a max-pool, then three dense layers.",
      {{"kind", OneOf({"vgg"}), Optional("the preset's, or decoder"), "which network"},
       PresetRow(KnownVggs()),
       NameRow(),
       {"stages", ListOf(ListOf(AWhole(1, kMostChannels))),
        Optional("the preset's; without one it must be given"),
        "channels of each convolution, stage by stage", "[[64, 64], [128]]"},
       Count("image", kLargestImage, usual.image, "pixels on a side, halved by each stage"),
       Count("image_channels", kMostChannels, usual.image_channels, "colours of the image"),
       Count("hidden", kMostChannels, usual.hidden, "columns of the first two dense layers"),
       Count("classes", 1 << 24, usual.classes, "columns of the last dense layer")}};
  return shape;
}

const ObjectShape& UnetShape() {
  const UnetModel usual;
  static const ObjectShape shape = {
      "model: u-net",
      "A diffusion model's U-Net: levels of residual blocks down and up again.",
      {{"kind", OneOf({"u-net"}), Optional("the preset's, or decoder"), "which network"},
       PresetRow(KnownUnets()),
       NameRow(),
       {"channels", AWhole(1, kMostChannels),
        Optional("the preset's; without one it must be given"), "channels of the first level",
        "256"},
       {"multipliers", ListOf(AWhole(1, 1024)), Optional("the preset's, or [1, 2, 2, 2]"),
        "multiples of the channels, level by level", "[1, 2, 2, 2]"},
       Count("blocks", 1000, usual.blocks, "residual blocks per level"),
       Count("image", kLargestImage, usual.image, "pixels on a side, halved between levels"),
       Count("image_channels", kMostChannels, usual.image_channels, "colours of the image"),
       {"attention", ListOf(AWhole(1, kLargestImage)), Optional("the preset's, or [16, 8]"),
        "sizes of the image at which there is attention", "[16, 8]"},
       Count("head_size", kMostChannels, usual.head_size, "channels of an attention head"),
       Count("groups", kMostChannels, usual.groups, "groups of a norm; they divide the channels")}};
  return shape;
}

VggModel ReadVgg(const JsonReader& object) {
  const JsonReader reader = object.As(VggShape());
  VggModel model = PresetOf(reader, KnownVggs());
  if (model.name.empty()) model.name = "vgg";
  if (!reader.Has("preset") || reader.Has("stages")) {
    const JsonReader stages = reader.At("stages");
    model.stages.clear();
    for (const JsonReader& stage : stages.Elements()) {
      model.stages.push_back(ReadList(stage));
      if (model.stages.back().empty()) stage.Expected("at least one convolution");
    }
    if (model.stages.empty()) stages.Expected("at least one stage");
  }
  ReadOptional(reader, "image", &model.image);
  ReadOptional(reader, "image_channels", &model.image_channels);
  ReadOptional(reader, "hidden", &model.hidden);
  ReadOptional(reader, "classes", &model.classes);
  CheckHalves(reader, model.image, model.stages.size());
  return model;
}

UnetModel ReadUnet(const JsonReader& object) {
  const JsonReader reader = object.As(UnetShape());
  UnetModel model = PresetOf(reader, KnownUnets());
  if (!reader.Has("preset") || reader.Has("channels")) {
    model.channels = reader.At("channels").Whole<uint64_t>();
  }
  if (model.name.empty()) model.name = fmt::format("u-net of {} channels", model.channels);
  if (reader.Has("multipliers")) {
    model.multipliers = ReadList(reader.At("multipliers"));
    if (model.multipliers.empty()) reader.At("multipliers").Expected("at least one level");
  }
  if (reader.Has("attention")) model.attention = ReadList(reader.At("attention"));
  ReadOptional(reader, "blocks", &model.blocks);
  ReadOptional(reader, "image", &model.image);
  ReadOptional(reader, "image_channels", &model.image_channels);
  ReadOptional(reader, "head_size", &model.head_size);
  ReadOptional(reader, "groups", &model.groups);
  CheckHalves(reader, model.image, model.multipliers.size() - 1);
  for (size_t level = 0; level < model.multipliers.size(); ++level) {
    const uint64_t channels = model.multipliers[level] * model.channels;
    const bool is_middle = level + 1 == model.multipliers.size();
    CheckDivides(reader, "groups", model.groups, channels);
    if (is_middle || model.Attends(model.image >> level)) {
      CheckDivides(reader, "heads", model.head_size, channels);
    }
  }
  return model;
}

}  // namespace rehearse
