#include "tests/support/shape_check.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/base/error.h"
#include "sim/base/units.h"

namespace rehearse {
namespace {

using nlohmann::json;

template <typename Parse>
bool Reads(const json& value, Parse parse) {
  try {
    parse(value.get_ref<const std::string&>());
    return true;
  } catch (const Error&) {
    return false;
  }
}

std::string Below(const std::string& key, const std::string& mismatch) {
  return mismatch.empty() ? "" : "/" + key + mismatch;
}

std::string MismatchOfObject(const ObjectShape& object, const json& value) {
  if (!value.is_object()) return ": no object";
  for (const JsonKey& row : object.keys) {
    const bool is_wanted = row.presence.kind == Presence::Kind::kRequired && row.only.empty();
    if (is_wanted && !value.contains(row.name)) return ": lacks " + row.name;
  }
  for (const auto& [key, member] : value.items()) {
    const JsonKey* const row = object.Find(key);
    if (row == nullptr) return fmt::format(": {} has no key {}", object.name, key);
    const std::string mismatch = Below(key, Mismatch(row->shape, member));
    if (!mismatch.empty()) return mismatch;
  }
  return "";
}

}  // namespace

std::string Mismatch(const JsonShape& shape, const json& value) {
  const auto unless = [&](bool fits) {
    return fits ? "" : fmt::format(": {} is not {}", value.dump().substr(0, 60), Described(shape));
  };
  const bool is_text = value.is_string();
  switch (shape.type) {
    case JsonType::kAnything:
      return "";
    case JsonType::kText:
      return unless(is_text);
    case JsonType::kTrueFalse:
      return unless(value.is_boolean());
    case JsonType::kWhole:
      return unless(value.is_number_integer() && value >= shape.least && value <= shape.most);
    case JsonType::kNumber:
      return unless(value.is_number() && value >= shape.lowest && value <= shape.highest &&
                    !(shape.above_lowest && value == shape.lowest));
    case JsonType::kBandwidth:
      return unless(is_text && Reads(value, ParseBandwidth));
    case JsonType::kDuration:
      return unless(is_text && Reads(value, ParseDuration));
    case JsonType::kSize:
      return unless(is_text && (value == "0B" || Reads(value, ParseSize)));
    case JsonType::kFlopRate:
      return unless(is_text && Reads(value, ParseFlopRate));
    case JsonType::kFlopCount:
      return unless(is_text && Reads(value, ParseFlops));
    case JsonType::kChoice:
      return unless(std::find(shape.choices.begin(), shape.choices.end(), value) !=
                    shape.choices.end());
    case JsonType::kObject:
      return MismatchOfObject(shape.object(), value);
    case JsonType::kNamed:
      if (!value.is_object()) return unless(false);
      for (const auto& [key, member] : value.items()) {
        const std::string mismatch = Below(key, Mismatch(shape.parts.front(), member));
        if (!mismatch.empty()) return mismatch;
      }
      return "";
    case JsonType::kList:
    case JsonType::kTuple: {
      const bool is_tuple = shape.type == JsonType::kTuple;
      if (!value.is_array() || (is_tuple && value.size() != shape.parts.size()))
        return unless(false);
      for (size_t i = 0; i < value.size(); ++i) {
        const std::string mismatch =
            Below(std::to_string(i), Mismatch(shape.parts[is_tuple ? i : 0], value[i]));
        if (!mismatch.empty()) return mismatch;
      }
      return "";
    }
    case JsonType::kEither: {
      std::string all;
      for (const JsonShape& part : shape.parts) {
        const std::string mismatch = Mismatch(part, value);
        if (mismatch.empty()) return "";
        all += "\n  " + mismatch;
      }
      return " fits none:" + all;
    }
  }
  return "?";
}

}  // namespace rehearse
