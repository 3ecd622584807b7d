// A JSON file that a person wrote, parsed, with the line of every value. Gzipped files are read as
// well.
//
// Comments // and /* */ are allowed, duplicate keys refused, nesting at most 64 deep, keys of 1,000
// bytes; how large a text may be says sim/base/read_options.h. Documents are immutable after
// FromFile, FromText and Set; then several threads may read them, by sim/base/json_reader.h.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "sim/base/json_change.h"
#include "sim/base/json_parse.h"
#include "sim/base/read_options.h"

namespace rehearse {

// Stands for the file of values that Set() made.
inline constexpr const char* kJsonSetFile = "--set";
inline constexpr int kJsonSetLine = 0;  // and below

class JsonReader;

class JsonDocument {
 public:
  // Reads the file, or standard input ("-"). Throws Error when it cannot be read, is not JSON, is
  // truncated, too deep or too large.
  static JsonDocument FromFile(const std::string& path, const ReadOptions& options = {});
  // `name` stands for the file in messages.
  static JsonDocument FromText(std::string_view text, const std::string& name,
                               const ReadOptions& options = {});

  // What stands at `place` in another document, written in full.
  static JsonDocument FromValue(nlohmann::json value, const Place& place,
                                const ReadOptions& options = {});

  // Sets one value, as `--set cluster.nodes=8` does: a dotted path (numbers index arrays, missing
  // objects on the way are made) and a value, read as JSON if it parses as JSON, else as a string.
  // Where the path goes through a string, that may name another document, in which the rest is set
  // (JsonReader::Change()); a string that names none is an Error when it is read. Throws Error when
  // the path goes through something else that is not an object or array. `by` says in messages
  // where the value comes from.
  void Set(std::string_view assignment, const Place& by = {kJsonSetFile, 0, ""});

  // From now on the record notes the files that are read because the document names them.
  void NoteIn(std::shared_ptr<InputRecord> record) { files_.record = std::move(record); }

  JsonReader Root() const;
  const nlohmann::json& value() const { return value_; }
  const std::string& name() const { return name_; }
  // The value, with what Set() is to change in other documents written after the strings that name
  // them: "my.json:nodes=8".
  nlohmann::json Given() const;
  // What Set() last set at this path in another document; null if nothing.
  nlohmann::json ValueInside(std::string_view path) const;
  // What Set() changed here, without what it changes in other documents.
  const std::vector<JsonChange>& changes() const { return changes_; }

 private:
  friend class JsonReader;
  struct Deferred {
    std::string assignment;
    size_t rest = 0;  // where the part for the named document begins
    Place by;
  };

  Place PlaceOf(const std::string& pointer) const;
  // Drops everything that Set() said about this value.
  void Forget(const std::string& pointer);
  // For JsonLines: a line number that stands for a place outside the document.
  int LineFor(const Place& by);

  std::string name_;
  ReadOptions files_;  // how those are read that it names, which are of the usual size
  std::string path_;   // "cluster." of what stands at /cluster in another document
  nlohmann::json value_;
  JsonLines lines_;  // at or below kJsonSetLine: an entry of origins_, not a line of the text
  std::vector<Place> origins_;  // of lines kJsonSetLine, kJsonSetLine - 1, ...
  std::vector<JsonChange> changes_;
  std::map<std::string, std::vector<Deferred>, std::less<>> deferred_;  // by pointer of a string
};

}  // namespace rehearse
