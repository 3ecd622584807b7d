// The arguments of a run, ticked off as they are read: what was asked for is understood, the rest
// can be listed.
//
// As in argparse, the last value counts if an argument is given twice. In a log, None and False
// mean that it was not given.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tools/foreign/runs/megatron/launched_run.h"
#include "tools/foreign/runs/origin.h"

namespace rehearse {

class ArgumentList {
 public:
  using Names =
      std::initializer_list<const char*>;  // spellings of one argument, the usual one first

  ArgumentList(std::string file, const LaunchedRun& run);

  const std::string& file() const { return file_; }

  // Whether one is given; a switch that is False is not.
  bool Has(Names names) { return Take(names) != nullptr; }
  // The same for one that takes no value: words behind it do not belong to it.
  bool Switch(Names names);
  // For what is on unless one of these switches it off; a log has `name` itself.
  bool Unless(Names switches, const char* name);
  std::vector<std::string> Values(Names names);
  std::optional<int64_t> Whole(Names names, int64_t least, int64_t most);
  int64_t WholeOr(Names names, int64_t least, int64_t most, int64_t otherwise);
  int64_t NeededWhole(Names names, int64_t least, int64_t most);
  std::optional<double> Number(Names names, double least, double most);
  std::optional<std::string> Text(Names names);
  // The position of a choice.
  size_t ChoiceOr(Names names, const std::vector<std::string>& choices, size_t otherwise);

  // Its name as written, and the line where it is given.
  Origin OriginOf(Names names) const;
  // At its line: "--num-layers: ...".
  [[noreturn]] void Fail(Names names, const std::string& message) const;

  // Arguments that nobody asked about.
  std::vector<WrittenArgument> Unread() const;
  // Words behind a switch or a value that do not belong to it.
  const std::vector<std::string>& strays() const { return strays_; }

 private:
  const WrittenArgument* Find(Names names) const;
  const WrittenArgument* Take(Names names);
  // The value of an argument that takes one; Error if there is none, or several.
  const std::string& ValueOf(const WrittenArgument& argument, Names names, const char* expected);
  std::string Shown(const WrittenArgument& argument) const;
  std::string Shown(Names names) const;

  std::string file_;
  std::vector<WrittenArgument> arguments_;
  bool is_log_ = false;
  std::set<std::string, std::less<>> read_;
  std::vector<std::string> strays_;
};

}  // namespace rehearse
