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
  if (reader.Has("preset")) {
    std::vector<std::string> names;
    for (const Model& preset : known) names.push_back(preset.name);
    model = known[reader.At("preset").Choice(names)];
  }
  if (reader.Has("name")) model.name = reader.At("name").String();
  return model;
}

void ReadOptional(const JsonReader& reader, const char* key, int64_t least, int64_t most,
                  uint64_t* value) {
  if (reader.Has(key)) *value = static_cast<uint64_t>(reader.At(key).Integer(least, most));
}

std::vector<uint64_t> ReadList(const JsonReader& reader, int64_t most) {
  std::vector<uint64_t> list;
  for (const JsonReader& element : reader.Elements()) {
    list.push_back(static_cast<uint64_t>(element.Integer(1, most)));
  }
  return list;
}

// The place that says so, or the whole where a preset does.
void CheckHalves(const JsonReader& reader, uint64_t image, size_t times) {
  if (times < 32 && image % (uint64_t{1} << times) == 0) return;
  const JsonReader place = reader.Has("image") ? reader.At("image") : reader;
  place.Fail(fmt::format("an image of {} pixels a side cannot be halved {} times", image, times));
}

// What group norms and heads need to divide the channels of a level.
void CheckDivides(const JsonReader& reader, const char* what, uint64_t divisor, uint64_t channels) {
  if (channels % divisor == 0) return;
  reader.Fail(fmt::format("{} of {} do not divide {} channels", what, divisor, channels));
}

}  // namespace

VggModel ReadVgg(const JsonReader& reader) {
  reader.AllowKeys(
      {"kind", "preset", "name", "stages", "image", "image_channels", "hidden", "classes"});
  VggModel model = PresetOf(reader, KnownVggs());
  if (model.name.empty()) model.name = "vgg";
  if (!reader.Has("preset") || reader.Has("stages")) {
    const JsonReader stages = reader.At("stages");
    model.stages.clear();
    for (const JsonReader& stage : stages.Elements()) {
      model.stages.push_back(ReadList(stage, kMostChannels));
      if (model.stages.back().empty()) stage.Expected("one convolution or more");
    }
    if (model.stages.empty()) stages.Expected("one stage or more");
  }
  ReadOptional(reader, "image", 1, kLargestImage, &model.image);
  ReadOptional(reader, "image_channels", 1, kMostChannels, &model.image_channels);
  ReadOptional(reader, "hidden", 1, kMostChannels, &model.hidden);
  ReadOptional(reader, "classes", 1, 1 << 24, &model.classes);
  CheckHalves(reader, model.image, model.stages.size());
  return model;
}

UnetModel ReadUnet(const JsonReader& reader) {
  reader.AllowKeys({"kind", "preset", "name", "channels", "multipliers", "blocks", "image",
                    "image_channels", "attention", "head_size", "groups"});
  UnetModel model = PresetOf(reader, KnownUnets());
  if (!reader.Has("preset") || reader.Has("channels")) {
    model.channels = static_cast<uint64_t>(reader.At("channels").Integer(1, kMostChannels));
  }
  if (model.name.empty()) model.name = fmt::format("u-net of {} channels", model.channels);
  if (reader.Has("multipliers")) {
    model.multipliers = ReadList(reader.At("multipliers"), 1024);
    if (model.multipliers.empty()) reader.At("multipliers").Expected("one level or more");
  }
  if (reader.Has("attention")) model.attention = ReadList(reader.At("attention"), kLargestImage);
  ReadOptional(reader, "blocks", 1, 1000, &model.blocks);
  ReadOptional(reader, "image", 1, kLargestImage, &model.image);
  ReadOptional(reader, "image_channels", 1, kMostChannels, &model.image_channels);
  ReadOptional(reader, "head_size", 1, kMostChannels, &model.head_size);
  ReadOptional(reader, "groups", 1, kMostChannels, &model.groups);
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
