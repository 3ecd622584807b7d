#include "scenarios/readers/image_model_reader.h"

#include <fmt/format.h>

#include "sim/base/error.h"

namespace rehearse {
namespace {

constexpr int64_t kMostImageChannels = 1 << 20;
constexpr int64_t kLargestImage = 1 << 14;

template <typename Model>
Model PresetOf(const JsonReader& reader, const std::vector<Model>& known) {
  return reader.Has("preset") ? known[reader.At("preset").Choice()] : Model();
}

template <typename Model>
JsonKey PresetRow(const std::vector<Model>& known) {
  std::vector<std::string> names;
  for (const Model& model : known) names.push_back(model.name);
  return {"preset", OneOf(std::move(names)), Optional("all numbers are given"), "a known model"};
}

template <typename Model>
Field<Model> NameRow() {
  return {"name",
          &Model::name,
          AText(),
          Optional("the preset's, or made of its numbers"),
          "what results call it",
          "\"mine\""};
}

constexpr const char* kPresetOr = "the preset's, or ";

// A number that a preset may have, and that is as usual without one.
template <typename Model>
Field<Model> Count(const char* name, uint64_t Model::*member, int64_t most, const char* about) {
  return {
      name, member, AWhole(1, most), OrUsual(kPresetOr), about, std::to_string(Model().*member)};
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

const Fields<VggModel>& VggFields() {
  using Model = VggModel;
  static const Fields<Model> fields(
      "model: vgg",
      "VGG: stages of 3x3 convolutions that end in a max-pool, then three dense layers.",
      {{"kind", OneOf({"vgg"}), Optional("the preset's, or decoder"), "which network"},
       PresetRow(KnownVggs()),
       NameRow<Model>(),
       {"stages", &Model::stages, ListOf(ListOf(AWhole(1, kMostImageChannels))),
        Optional("the preset's; without one it must be given"),
        "channels of each convolution, stage by stage", "[[64, 64], [128]]"},
       Count("image", &Model::image, kLargestImage, "pixels on a side, halved by each stage"),
       Count("image_channels", &Model::image_channels, kMostImageChannels, "colours of the image"),
       Count("hidden", &Model::hidden, kMostImageChannels, "columns of the first two dense layers"),
       Count("classes", &Model::classes, 1 << 24, "columns of the last dense layer")});
  return fields;
}

const Fields<UnetModel>& UnetFields() {
  using Model = UnetModel;
  static const Fields<Model> fields(
      "model: u-net", "A diffusion model's U-Net: levels of residual blocks down and up again.",
      {{"kind", OneOf({"u-net"}), Optional("the preset's, or decoder"), "which network"},
       PresetRow(KnownUnets()),
       NameRow<Model>(),
       {"channels", &Model::channels, AWhole(1, kMostImageChannels),
        Optional("the preset's; without one it must be given"), "channels of the first level",
        "256"},
       {"multipliers", &Model::multipliers, ListOf(AWhole(1, 1024)), OrUsual(kPresetOr),
        "multiples of the channels, level by level", "[1, 2, 2, 2]"},
       Count("blocks", &Model::blocks, 1000, "residual blocks per level"),
       Count("image", &Model::image, kLargestImage, "pixels on a side, halved between levels"),
       Count("image_channels", &Model::image_channels, kMostImageChannels, "colours of the image"),
       {"attention", &Model::attention, ListOf(AWhole(1, kLargestImage)), OrUsual(kPresetOr),
        "sizes of the image at which there is attention", "[16, 8]"},
       Count("head_size", &Model::head_size, kMostImageChannels, "channels of an attention head"),
       Count("groups", &Model::groups, kMostImageChannels,
             "groups of a norm; they divide the channels")});
  return fields;
}

VggModel ReadVgg(const JsonReader& object) {
  const JsonReader reader = object.As(VggFields().shape());
  VggModel model = PresetOf(reader, KnownVggs());
  VggFields().ReadInto(reader, &model);
  if (!reader.Has("preset")) MustHave(reader, {"stages"});
  if (model.name.empty()) model.name = "vgg";
  if (model.stages.empty()) reader.At("stages").Expected("at least one stage");
  for (size_t i = 0; i < model.stages.size(); ++i) {
    if (model.stages[i].empty())
      reader.At("stages").Elements()[i].Expected("at least one convolution");
  }
  CheckHalves(reader, model.image, model.stages.size());
  return model;
}

UnetModel ReadUnet(const JsonReader& object) {
  const JsonReader reader = object.As(UnetFields().shape());
  UnetModel model = PresetOf(reader, KnownUnets());
  UnetFields().ReadInto(reader, &model);
  if (!reader.Has("preset")) MustHave(reader, {"channels"});
  if (model.name.empty()) model.name = fmt::format("u-net of {} channels", model.channels);
  if (model.multipliers.empty()) reader.At("multipliers").Expected("at least one level");
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
