// Reading JSON that a person wrote, with errors a person understands.
//
// JsonDocument parses a file or a text (comments // and /* */ allowed, duplicate keys refused, nesting at
// most 64 deep, at most 64 MiB, 4 million values, keys of 1,000 bytes) and remembers the line of every
// value. JsonReader is a cursor into it that knows file, line and JSON pointer, and turns every mistake
// into an Error such as
//   scenarios/a.json:12: /cluster/nodes: found "four", expected a whole number from 1 to 65536
// Readers are cheap to copy and must not outlive their document. Documents are immutable after Parse and
// Set, and may then be read from several threads.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "sim/error.h"
#include "sim/quantity.h"

namespace rehearse {

class JsonReader;

class JsonDocument {
 public:
  // Reads the file. Throws Error when it cannot be read, is no JSON, is truncated, too deep or too large.
  static JsonDocument FromFile(const std::string& path);
  // `name` stands for the file in messages.
  static JsonDocument FromText(std::string_view text, const std::string& name);

  // Sets one value, as `--set cluster.nodes=8` does: a dotted path (numbers index arrays, missing
  // objects on the way are made) and a text that is JSON if it parses as JSON, else a string.
  // Throws Error when the path goes through something that is not an object or array.
  void Set(std::string_view assignment);

  JsonReader Root() const;
  const nlohmann::json& value() const { return value_; }
  const std::string& name() const { return name_; }

 private:
  friend class JsonReader;
  std::string name_;
  nlohmann::json value_;
  // JSON pointer -> line; a value that is not listed is in the line of the value that contains it.
  // Line 0 is a value that Set() made.
  std::map<std::string, int, std::less<>> lines_;
};

class JsonReader {
 public:
  // The place of this value, for errors that are found later than the reading.
  Place place() const;
  // Throws Error at this place: "found <value as JSON, shortened>, expected <expected>".
  [[noreturn]] void Expected(const std::string& expected) const;
  // Throws Error at this place with a free message.
  [[noreturn]] void Fail(const std::string& message) const;

  const nlohmann::json& value() const { return *value_; }
  bool IsObject() const { return value_->is_object(); }
  bool IsArray() const { return value_->is_array(); }
  bool IsString() const { return value_->is_string(); }

  // Object access. AllowKeys refuses every other key ("unknown key; did you mean ..."), and anything
  // that is not an object.
  void AllowKeys(const std::vector<std::string>& keys) const;
  bool Has(const std::string& key) const;
  JsonReader At(const std::string& key) const;                      // Error when missing
  std::vector<std::pair<std::string, JsonReader>> Members() const;  // sorted by key

  // Array access; Error when it is no array.
  std::vector<JsonReader> Elements() const;

  // Typed values; Error when it is something else or out of range. Ranges are inclusive.
  std::string String() const;
  bool Bool() const;
  int64_t Integer(int64_t minimum, int64_t maximum) const;
  double Number(double minimum, double maximum) const;
  BytesPerSecond Bandwidth() const;  // strings with units, see sim/units.h
  Seconds Duration() const;
  Bytes Size() const;
  FlopsPerSecond FlopRate() const;
  // One of `names`; returns its position. Error with "did you mean".
  size_t Choice(const std::vector<std::string>& names) const;

 private:
  friend class JsonDocument;
  const JsonDocument* document_ = nullptr;
  const nlohmann::json* value_ = nullptr;
  std::string pointer_;
};

}  // namespace rehearse
