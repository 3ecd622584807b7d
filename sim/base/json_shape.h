// What a JSON document may say, as tables: one row per key, with its type, its range or choices,
// what holds without it, what it is, and an example.
//
// Readers read through these tables (JsonReader::As in sim/base/json_reader.h), which refuse what
// they do not list; `rehearse schema` prints the same tables. A table is a function that returns a
// static ObjectShape, beside the reader of the object.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "sim/base/quantity.h"

namespace rehearse {

struct ObjectShape;
using ObjectShapeOf = const ObjectShape& (*)();

enum class JsonType : uint8_t {
  kAnything,
  kText,
  kTrueFalse,
  kWhole,   // a whole number
  kNumber,  // a bare number, in `unit` where it has one
  kBandwidth,
  kDuration,  // these are strings with units (sim/base/units.h)
  kSize,
  kFlopRate,
  kFlopCount,
  kChoice,
  kObject,
  kNamed,   // an object whose keys the user chooses, or which are many
  kList,    // any number of one shape
  kTuple,   // one value for each of these shapes
  kEither,  // one of several shapes
};

struct JsonShape {
  JsonType type = JsonType::kAnything;
  // kText: what is meant ("path of a file"), for people only; kNumber: its unit.
  std::string words = {};
  // kWhole, inclusive.
  int64_t least = std::numeric_limits<int64_t>::lowest();
  int64_t most = std::numeric_limits<int64_t>::max();
  // kNumber, inclusive except for `above_lowest`; kDuration: the longest, in seconds.
  double lowest = std::numeric_limits<double>::lowest();
  double highest = std::numeric_limits<double>::max();
  bool above_lowest = false;
  std::vector<std::string> choices = {};  // kChoice, in the order of what Choice() returns
  ObjectShapeOf object = nullptr;         // kObject
  std::vector<JsonShape> parts = {};      // kNamed and kList: one; kTuple and kEither: each
};

JsonShape Anything(std::string words = "");
JsonShape AText(std::string words = "");
JsonShape TrueFalse();
JsonShape AWhole(int64_t least, int64_t most);
JsonShape ANumber(double lowest, double highest, std::string unit = "");
JsonShape ANumberAbove(double lowest, double highest, std::string unit = "");
JsonShape ABandwidth();
JsonShape ADuration();
JsonShape ADurationUpTo(Seconds longest);
JsonShape ASize();
JsonShape AFlopRate();
JsonShape AFlopCount();
JsonShape OneOf(std::vector<std::string> choices);
JsonShape ObjectOf(ObjectShapeOf object);
JsonShape Named(JsonShape value, std::string words = "name");
JsonShape ListOf(JsonShape element);
JsonShape Tuple(std::vector<JsonShape> parts);
JsonShape Either(std::vector<JsonShape> shapes);

// What holds where the key is missing.
struct Presence {
  enum class Kind : uint8_t { kRequired, kDefault, kOptional };
  Kind kind = Kind::kRequired;
  std::string words = {};                                 // of kOptional: what holds then
  std::shared_ptr<const nlohmann::json> value = nullptr;  // of kDefault
};
Presence Required();
Presence Default(std::string_view json);  // as JSON: "1", "\"auto\"", "[]"
Presence Optional(std::string words);

struct JsonKey {
  std::string name;
  JsonShape shape;
  Presence presence;
  std::string about;         // what it is, in a few words
  std::string example = {};  // JSON; empty: the default or the first choice speaks for itself
  // Where objects of one table come in variants: the one that has this key; empty: all.
  std::string only = {};
};

struct ObjectShape {
  std::string name;   // "training": unique among what one document may hold
  std::string about;  // a sentence
  std::vector<JsonKey> keys;

  // nullptr where there is no such key.
  const JsonKey* Find(std::string_view key) const;
  std::vector<std::string> KeysOf(std::string_view variant) const;
};

// A row for editors, which want a file to name its JSON Schema.
JsonKey SchemaForEditors();
// A row for "schema": "rehearse.calibration.v1".
JsonKey SchemaVersion(const std::string& schema);

// "a whole number from 1 to 8", "true or false", "\"fused\" or \"unfused\"": as errors say it.
std::string Described(const JsonShape& shape);
std::string InRange(const std::string& what, int64_t least, int64_t most);
std::string InRange(const std::string& what, double lowest, double highest, bool above_lowest);
// "a", "b" or "c".
std::string QuotedList(const std::vector<std::string>& names, const std::string& last_separator);

// Every object that is reached from the shape, once, in order of first mention.
std::vector<const ObjectShape*> ObjectsIn(const JsonShape& shape);

}  // namespace rehearse
