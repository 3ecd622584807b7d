#include "tools/foreign/runs/megatron/argument_list.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/json_parse.h"
#include "sim/base/known_names.h"
#include "tools/foreign/runs/megatron/shell_script.h"

namespace rehearse {
namespace {

bool IsOff(const WrittenArgument& argument) {
  return argument.values.size() == 1 &&
         (argument.values[0] == "False" || argument.values[0] == "false" ||
          argument.values[0] == "None");
}

// Whether a log's name, such as num_layers, is that of the option.
bool IsNamed(const WrittenArgument& argument, ArgumentList::Names names) {
  return std::any_of(names.begin(), names.end(),
                     [&](const char* name) { return argument.name == name; });
}

}  // namespace

ArgumentList::ArgumentList(std::string file, const LaunchedRun& run)
    : file_(std::move(file)), arguments_(run.arguments), is_log_(run.is_log) {}

const WrittenArgument* ArgumentList::Find(Names names) const {
  const auto found =
      std::find_if(arguments_.rbegin(), arguments_.rend(),
                   [&](const WrittenArgument& argument) { return IsNamed(argument, names); });
  return found == arguments_.rend() || IsOff(*found) ? nullptr : &*found;
}

const WrittenArgument* ArgumentList::Take(Names names) {
  for (const char* name : names) read_.insert(name);
  return Find(names);
}

std::string ArgumentList::Shown(const WrittenArgument& argument) const {
  if (!is_log_) return "--" + argument.name;
  std::string name = argument.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

std::string ArgumentList::Shown(Names names) const {
  return Shown(WrittenArgument{*names.begin(), {}, 0});
}

Origin ArgumentList::OriginOf(Names names) const {
  const WrittenArgument* const argument = Find(names);
  return argument != nullptr ? Origin{Shown(*argument), argument->line} : Origin{Shown(names), 0};
}

void ArgumentList::Fail(Names names, const std::string& message) const {
  const Origin origin = OriginOf(names);
  throw Error({file_, origin.line, ""}, fmt::format("{}: {}", origin.name, message));
}

bool ArgumentList::Switch(Names names) {
  const WrittenArgument* const argument = Take(names);
  if (argument == nullptr) return false;
  for (const std::string& value : argument->values) {
    if (!is_log_ && IsLeftOpen(value)) strays_.push_back(value);
  }
  return true;
}

bool ArgumentList::Unless(Names switches, const char* name) {
  if (!is_log_) return !Switch(switches);
  read_.insert(name);
  for (const char* other : switches) read_.insert(other);
  return std::none_of(arguments_.begin(), arguments_.end(), [&](const WrittenArgument& argument) {
    return argument.name == name && IsOff(argument);
  });
}

std::vector<std::string> ArgumentList::Values(Names names) {
  const WrittenArgument* const argument = Take(names);
  return argument != nullptr ? argument->values : std::vector<std::string>();
}

const std::string& ArgumentList::ValueOf(const WrittenArgument& argument, Names names,
                                         const char* expected) {
  if (argument.values.empty()) Fail(names, fmt::format("found no value, expected {}", expected));
  for (size_t i = 1; i < argument.values.size(); ++i) {
    if (!IsLeftOpen(argument.values[i]))
      Fail(names, fmt::format("found {} values, expected {}", argument.values.size(), expected));
    strays_.push_back(argument.values[i]);
  }
  const std::string& value = argument.values.front();
  if (IsLeftOpen(value)) {
    Fail(names, fmt::format("found {}, to which the file gives no value; expected {}",
                            QuotedJson(value), expected));
  }
  return value;
}

std::optional<int64_t> ArgumentList::Whole(Names names, int64_t least, int64_t most) {
  const WrittenArgument* const argument = Take(names);
  if (argument == nullptr) return std::nullopt;
  const std::string expected = fmt::format("a whole number from {} to {}", least, most);
  const std::string& value = ValueOf(*argument, names, expected.c_str());
  int64_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size() || number < least || number > most)
    Fail(names, fmt::format("found {}, expected {}", QuotedJson(value), expected));
  return number;
}

int64_t ArgumentList::WholeOr(Names names, int64_t least, int64_t most, int64_t otherwise) {
  return Whole(names, least, most).value_or(otherwise);
}

int64_t ArgumentList::NeededWhole(Names names, int64_t least, int64_t most) {
  const std::optional<int64_t> number = Whole(names, least, most);
  if (!number) throw Error({file_, 0, ""}, fmt::format("no {} given", Shown(names)));
  return *number;
}

std::optional<double> ArgumentList::Number(Names names, double least, double most) {
  const WrittenArgument* const argument = Take(names);
  if (argument == nullptr) return std::nullopt;
  const std::string expected = fmt::format("a number from {} to {}", least, most);
  const std::string& value = ValueOf(*argument, names, expected.c_str());
  double number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size() ||
      !(number >= least && number <= most))
    Fail(names, fmt::format("found {}, expected {}", QuotedJson(value), expected));
  return number;
}

std::optional<std::string> ArgumentList::Text(Names names) {
  const WrittenArgument* const argument = Take(names);
  if (argument == nullptr) return std::nullopt;
  return ValueOf(*argument, names, "a value");
}

size_t ArgumentList::ChoiceOr(Names names, const std::vector<std::string>& choices,
                              size_t otherwise) {
  const std::optional<std::string> text = Text(names);
  if (!text) return otherwise;
  const auto found = std::find(choices.begin(), choices.end(), *text);
  if (found == choices.end())
    Fail(names, fmt::format("found {}{}", QuotedJson(*text), KnownNames(*text, choices)));
  return static_cast<size_t>(found - choices.begin());
}

std::vector<WrittenArgument> ArgumentList::Unread() const {
  std::vector<WrittenArgument> unread;
  for (const WrittenArgument& argument : arguments_) {
    if (!read_.contains(argument.name) && !IsOff(argument)) unread.push_back(argument);
  }
  return unread;
}

}  // namespace rehearse
