// A cursor into a JSON document, with errors that a person understands.
//
// It knows file, line and JSON pointer, and turns every mistake into an Error such as
//   scenarios/cpu-4d.json:12: /cluster/nodes: found "four", expected a whole number from 1 to 65536
// Readers are cheap to copy and must not outlive their document.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "sim/base/error.h"
#include "sim/base/json_shape.h"
#include "sim/base/quantity.h"
#include "sim/base/read_options.h"

namespace rehearse {

class JsonDocument;

struct NamedText {
  std::string name;  // of the file, in messages
  std::string text;
};

class JsonReader {
 public:
  // The place of this value, for errors that are found after reading.
  Place place() const;
  // Throws Error at this place: "found <value as JSON, shortened>, expected <expected>".
  [[noreturn]] void Expected(const std::string& expected) const;
  // Throws Error at this place with a free message.
  [[noreturn]] void Fail(const std::string& message) const;

  const nlohmann::json& value() const { return *value_; }
  bool IsObject() const;
  bool IsArray() const;
  bool IsString() const;

  // The same object, read through its table, which must outlive the reader: refuses keys that the
  // table lacks ("unknown key; did you mean ...") or has for another variant only. At() then knows
  // the default of a missing key, and the reader that it returns knows its range and choices.
  // Asking for a key that the table lacks is a bug of ours.
  JsonReader As(const ObjectShape& shape, std::string_view variant = "") const;
  // Likewise where only the document says which keys there may be.
  void AllowKeys(const std::vector<std::string>& keys) const;
  bool Has(const std::string& key) const;  // in the document
  // Error when it is missing and has no default.
  JsonReader At(const std::string& key) const;
  std::vector<std::pair<std::string, JsonReader>> Members() const;  // sorted by key

  // Array access; Error when it is not an array. If a table describes the list, its elements know
  // their range.
  std::vector<JsonReader> Elements() const;

  // Typed values; Error when the value is something else or out of range. Ranges are inclusive;
  // where none is given, the table's counts.
  std::string String() const;
  // The string as `parse` understands it, whose Error becomes one at this place.
  template <typename Value>
  Value StringBy(Value (*parse)(std::string_view)) const {
    const std::string text = String();
    try {
      return parse(text);
    } catch (const Error& error) {
      Fail(error.what());
    }
  }
  bool Bool() const;
  int64_t Integer(int64_t minimum, int64_t maximum) const;
  int64_t Integer() const;
  // As an unsigned number of that type, which must have room for the table's range.
  template <typename Count>
  Count Whole() const {
    return static_cast<Count>(Integer());
  }
  double Number(double minimum, double maximum) const;
  double Number() const;
  BytesPerSecond Bandwidth() const;  // strings with units, see sim/base/units.h
  Seconds Duration() const;
  Bytes Size() const;
  FlopsPerSecond FlopRate() const;
  Flops FlopCount() const;
  // One of `names`, or of the table's choices; returns its position. Error with "did you mean".
  size_t Choice(const std::vector<std::string>& names) const;
  size_t Choice() const;

  // A string may name another document, of which this document's Set() may have changed a part.
  // String() and Choice() refuse such changes; Text() does not, for code that opens what it names.
  const std::string& Text() const;
  // The document in a file, whose path is relative to this document's. Error when there is none.
  JsonDocument Open(const std::string& path, InputSize size = InputSize::kUsual,
                    JsonNumbers numbers = JsonNumbers::kOfJson) const;
  // The file that this string names likewise; `kind` as in ReadInputFile() (sim/base/input_file.h).
  NamedText OpenText(const std::string& kind) const;
  // How this document's files are read; for documents that are made of parts of it.
  const ReadOptions& FilesOfDocument() const;
  // Makes these changes ("nodes=32", written here) in the document that this string names, then
  // those of Set(), and notes them (sim/base/input_record.h).
  void Change(JsonDocument* named, const std::vector<std::string>& changes = {}) const;
  bool HasChanges() const;  // by Set(), inside what this string names

 private:
  void RefuseChanges() const;
  std::string PathTo(const std::string& path) const;

  friend class JsonDocument;
  const JsonDocument* document_ = nullptr;
  const nlohmann::json* value_ = nullptr;
  const JsonShape* shape_ = nullptr;    // of this value, where a table says it
  const ObjectShape* table_ = nullptr;  // of this object, after As()
  std::string pointer_;

  const JsonShape& ShapeOf(JsonType type) const;
};

}  // namespace rehearse
