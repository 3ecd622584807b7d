#include "sim/base/json_shape.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/base/error.h"
#include "sim/base/json_parse.h"

namespace rehearse {
namespace {

JsonShape OfType(JsonType type, std::string words = "") {
  JsonShape shape;
  shape.type = type;
  shape.words = std::move(words);
  return shape;
}

JsonShape OfParts(JsonType type, std::vector<JsonShape> parts) {
  JsonShape shape;
  shape.type = type;
  shape.parts = std::move(parts);
  return shape;
}

template <typename T>
std::string Ranged(const std::string& what, T least, T most, bool above_least) {
  const bool from_below = least <= std::numeric_limits<T>::lowest();
  const bool to_above = most >= std::numeric_limits<T>::max();
  if (from_below && to_above) return what;
  if (above_least) {
    return to_above ? fmt::format("{} above {}", what, least)
                    : fmt::format("{} above {} and at most {}", what, least, most);
  }
  if (to_above) return fmt::format("{} of at least {}", what, least);
  if (from_below) return fmt::format("{} of at most {}", what, most);
  return fmt::format("{} from {} to {}", what, least, most);
}

void Collect(const JsonShape& shape, std::vector<const ObjectShape*>* objects) {
  for (const JsonShape& part : shape.parts) Collect(part, objects);
  if (shape.type != JsonType::kObject) return;
  const ObjectShape& object = shape.object();
  if (std::find(objects->begin(), objects->end(), &object) == objects->end())
    objects->push_back(&object);
}

}  // namespace

JsonShape Anything(std::string words) { return OfType(JsonType::kAnything, std::move(words)); }
JsonShape AText(std::string words) { return OfType(JsonType::kText, std::move(words)); }
JsonShape TrueFalse() { return OfType(JsonType::kTrueFalse); }
JsonShape ABandwidth() { return OfType(JsonType::kBandwidth); }
JsonShape ADuration() { return OfType(JsonType::kDuration); }
JsonShape ASize() { return OfType(JsonType::kSize); }
JsonShape AFlopRate() { return OfType(JsonType::kFlopRate); }
JsonShape AFlopCount() { return OfType(JsonType::kFlopCount); }

JsonShape ADurationUpTo(Seconds longest) {
  JsonShape shape = ADuration();
  shape.highest = longest.value();
  return shape;
}

JsonShape AWhole(int64_t least, int64_t most) {
  JsonShape shape = OfType(JsonType::kWhole);
  shape.least = least;
  shape.most = most;
  return shape;
}

JsonShape ANumber(double lowest, double highest, std::string unit) {
  JsonShape shape = OfType(JsonType::kNumber, std::move(unit));
  shape.lowest = lowest;
  shape.highest = highest;
  return shape;
}

JsonShape ANumberAbove(double lowest, double highest, std::string unit) {
  JsonShape shape = ANumber(lowest, highest, std::move(unit));
  shape.above_lowest = true;
  return shape;
}

JsonShape OneOf(std::vector<std::string> choices) {
  JsonShape shape = OfType(JsonType::kChoice);
  shape.choices = std::move(choices);
  return shape;
}

JsonShape ObjectOf(ObjectShapeOf object) {
  JsonShape shape = OfType(JsonType::kObject);
  shape.object = object;
  return shape;
}

JsonShape Named(JsonShape value, std::string words) {
  JsonShape shape = OfParts(JsonType::kNamed, {std::move(value)});
  shape.words = std::move(words);
  return shape;
}

JsonShape ListOf(JsonShape element) { return OfParts(JsonType::kList, {std::move(element)}); }
JsonShape Tuple(std::vector<JsonShape> parts) {
  return OfParts(JsonType::kTuple, std::move(parts));
}
JsonShape Either(std::vector<JsonShape> shapes) {
  return OfParts(JsonType::kEither, std::move(shapes));
}

Presence Required() { return {}; }

Presence Default(std::string_view json) {
  return {Presence::Kind::kDefault, "",
          std::make_shared<const nlohmann::json>(nlohmann::json::parse(json))};
}

Presence Optional(std::string words) {
  return {Presence::Kind::kOptional, std::move(words), nullptr};
}

const JsonKey* ObjectShape::Find(std::string_view key) const {
  const auto found =
      std::find_if(keys.begin(), keys.end(), [&](const JsonKey& row) { return row.name == key; });
  return found == keys.end() ? nullptr : &*found;
}

std::vector<std::string> ObjectShape::KeysOf(std::string_view variant) const {
  std::vector<std::string> names;
  names.reserve(keys.size());
  for (const JsonKey& row : keys) {
    if (row.only.empty() || row.only == variant) names.push_back(row.name);
  }
  return names;
}

JsonKey SchemaForEditors() {
  return {"$schema", AText("path"), Optional("nothing"),
          "for editors: where the output of `rehearse schema --json` is; not read",
          "\"scenario.schema.json\""};
}

JsonKey SchemaVersion(const std::string& schema) {
  return {"schema", OneOf({schema}), Required(), "what the file is, and its version"};
}

std::string InRange(const std::string& what, int64_t least, int64_t most) {
  return Ranged(what, least, most, false);
}

std::string InRange(const std::string& what, double lowest, double highest, bool above_lowest) {
  return Ranged(what, lowest, highest, above_lowest);
}

std::string QuotedList(const std::vector<std::string>& names, const std::string& last_separator) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? last_separator : ", ";
    text += QuotedJson(names[i]);
  }
  return text;
}

std::string Described(const JsonShape& shape) {
  const auto each = [&](const char* separator) {
    std::string text;
    for (const JsonShape& part : shape.parts)
      text += (text.empty() ? "" : separator) + Described(part);
    return text;
  };
  switch (shape.type) {
    case JsonType::kAnything:
      return shape.words.empty() ? "anything" : shape.words;
    case JsonType::kText:
      return shape.words.empty() ? "text" : shape.words;
    case JsonType::kTrueFalse:
      return "true or false";
    case JsonType::kWhole:
      return InRange("a whole number", shape.least, shape.most);
    case JsonType::kNumber:
      return InRange("a number", shape.lowest, shape.highest, shape.above_lowest) +
             (shape.words.empty() ? "" : " in " + shape.words);
    case JsonType::kBandwidth:
      return "a bandwidth with its unit such as \"25GBps\"";
    case JsonType::kDuration:
      return fmt::format("a time with its unit such as \"1.5us\"{}",
                         shape.highest < std::numeric_limits<double>::max()
                             ? fmt::format(", at most {} s", shape.highest)
                             : "");
    case JsonType::kSize:
      return "a size with its unit such as \"40GiB\"";
    case JsonType::kFlopRate:
      return "a rate of computation with its unit such as \"312TFLOPS\"";
    case JsonType::kFlopCount:
      return "a number of operations with its unit such as \"1.5TFLOP\"";
    case JsonType::kChoice:
      return QuotedList(shape.choices, " or ");
    case JsonType::kObject:
      return "an object, \"" + shape.object().name + "\"";
    case JsonType::kNamed:
      return fmt::format("an object that has for each {} {}", shape.words, each(""));
    case JsonType::kList:
      return "a list, each " + each("");
    case JsonType::kTuple:
      return "a list of " + each(" and ");
    case JsonType::kEither: {
      std::vector<std::string> objects;
      std::string text;
      for (const JsonShape& part : shape.parts) {
        if (part.type == JsonType::kObject) {
          objects.push_back(part.object().name);
        } else {
          text += (text.empty() ? "" : "; or ") + Described(part);
        }
      }
      if (objects.empty()) return text;
      return text + (text.empty() ? "" : "; or ") + "an object, " + QuotedList(objects, " or ");
    }
  }
  CHECK(false);
}

std::vector<const ObjectShape*> ObjectsIn(const JsonShape& shape) {
  std::vector<const ObjectShape*> objects;
  Collect(shape, &objects);
  for (size_t i = 0; i < objects.size(); ++i) {  // grows meanwhile
    for (const JsonKey& row : objects[i]->keys) Collect(row.shape, &objects);
  }
  return objects;
}

}  // namespace rehearse
