// The keys of a torchtitan job, "training.seq_len", ticked off as they are read. A key may have
// several spellings, the newest first: the file has one of them.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <set>
#include <string>
#include <vector>

#include "sim/base/json_reader.h"
#include "tools/foreign/runs/origin.h"

namespace rehearse {

class JobConfig {
 public:
  using Names = std::initializer_list<const char*>;

  // What is in `overrides` counts in place of the file's.
  JobConfig(const JsonReader& root, const JsonReader& overrides)
      : root_(root), overrides_(overrides) {}

  bool Has(Names names);
  int64_t WholeOr(Names names, int64_t least, int64_t most, int64_t otherwise);
  bool BoolOr(Names names, bool otherwise);
  std::string TextOr(Names names, const std::string& otherwise);
  // A list of texts, or one text with commas; empty if it is not given.
  std::vector<std::string> Texts(Names names);
  // The value as written; it must be there.
  JsonReader At(Names names);
  [[noreturn]] void Fail(Names names, const std::string& message);

  // Its name as written, with its line.
  Origin OriginOf(Names names) const;
  std::vector<std::string> Unread() const;

 private:
  const char* Given(Names names) const;  // null if none is
  const JsonReader& Where(const char* name) const;

  JsonReader root_;
  JsonReader overrides_;
  std::set<std::string, std::less<>> read_;
};

}  // namespace rehearse
