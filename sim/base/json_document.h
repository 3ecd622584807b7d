// A JSON file that a person wrote, parsed, with the line of every value. Gzipped files are read as
// well.
//
// Comments // and /* */ are allowed, duplicate keys refused, nesting at most 64 deep, at most 64
// MiB, 4 million values, keys of 1,000 bytes. Documents are immutable after FromFile, FromText and
// Set, and may then be read from several threads, by sim/base/json_reader.h.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "sim/base/json_parse.h"

namespace rehearse {

// Stands for the file of values that Set() made.
inline constexpr const char* kJsonSetFile = "--set";
inline constexpr int kJsonSetLine = 0;

class JsonReader;

class JsonDocument {
 public:
  // Reads the file. Throws Error when it cannot be read, is no JSON, is truncated, too
  // deep or too large.
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
  JsonLines lines_;  // kJsonSetLine is a value that Set() made
};

}  // namespace rehearse
