// A cursor into a JSON document, with errors that a person understands.
//
// It knows file, line and JSON pointer, and turns every mistake into an Error such as
//   scenarios/cpu-4d.json:12: /cluster/nodes: found "four", expected a whole number from 1 to 65536
// Readers are cheap to copy and must not outlive their document.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "sim/base/error.h"
#include "sim/base/json_document.h"
#include "sim/base/quantity.h"

namespace rehearse {

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

  // Object access. AllowKeys refuses every other key ("unknown key; did you mean ..."), and
  // anything that is not an object.
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
  BytesPerSecond Bandwidth() const;  // strings with units, see sim/base/units.h
  Seconds Duration() const;
  Bytes Size() const;
  FlopsPerSecond FlopRate() const;
  Flops FlopCount() const;
  // One of `names`; returns its position. Error with "did you mean".
  size_t Choice(const std::vector<std::string>& names) const;

 private:
  friend class JsonDocument;
  const JsonDocument* document_ = nullptr;
  const nlohmann::json* value_ = nullptr;
  std::string pointer_;
};

}  // namespace rehearse
