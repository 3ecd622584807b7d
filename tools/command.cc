#include "tools/command.h"

#include <algorithm>
#include <cstdio>
#include <sstream>

#include <boost/algorithm/string/split.hpp>
#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/known_names.h"
#include "sim/base/output_file.h"
#include "sim/base/say.h"
#include "tools/number_options.h"
#include "tools/separate_files.h"

namespace rehearse {

namespace po = boost::program_options;

Taken TakenName(std::vector<std::string> names) {
  return {.kind = Taken::Kind::kName, .names = std::move(names)};
}
Taken TakenFile(std::vector<std::string> endings) {
  return {.kind = Taken::Kind::kFile, .endings = std::move(endings)};
}
Taken TakenOutput(std::vector<std::string> endings) {
  return {.kind = Taken::Kind::kFile, .endings = std::move(endings), .is_output = true};
}

namespace {

// These names of values take whatever their option's help says.
constexpr std::string_view kFreeValues[] = {"N",       "N,...",    "K",     "X",         "SIZE",
                                            "SECONDS", "TIME",     "GFLOP", "A,B",       "A,B-C",
                                            "FROM-TO", "RANK,...", "I/N",   "NAME=VALUE"};

bool IsFree(const std::string& value) {
  return std::find(std::begin(kFreeValues), std::end(kFreeValues), value) != std::end(kFreeValues);
}

}  // namespace

std::string NameOfValue(const po::option_description& option) {
  const std::string text = option.format_parameter();  // "SIZE (=32M)"
  return text.substr(0, text.find(" (="));
}

Taken TakenBy(const CommandSyntax& syntax, const po::option_description& option) {
  const auto told = syntax.takes.find(option.long_name());
  if (told != syntax.takes.end()) return told->second;
  if (option.semantic()->max_tokens() == 0) return {.kind = Taken::Kind::kNothing};
  const std::string name = NameOfValue(option);
  if (name == "FILE") return TakenFile({});
  if (name == "DIR") return {.kind = Taken::Kind::kFolder};
  if (name == "CLUSTER") return {.kind = Taken::Kind::kCluster};
  if (name == "PATH=VALUE") return {.kind = Taken::Kind::kScenarioPath};
  if (name.find('|') != std::string::npos) {
    Taken taken = TakenName({});
    boost::split(taken.names, name, [](char c) { return c == '|'; });
    // "N|all" takes numbers too.
    taken.only_names = std::erase_if(taken.names, IsFree) == 0;
    return taken;
  }
  if (!IsFree(name)) {
    throw InternalError(
        fmt::format("--{}: what {} takes is not said (tools/command.h)", option.long_name(), name));
  }
  return {};
}

Taken TakenBy(const CommandSyntax& syntax, const std::string& positional) {
  return syntax.takes.at(positional);
}

namespace {

// Refuses all names but those that an option takes.
void CheckNames(const CommandSyntax& syntax, const po::variables_map& values) {
  for (const auto& option : syntax.options.options()) {
    const std::string& name = option->long_name();
    if (values.count(name) == 0 || values[name].defaulted()) continue;
    const Taken taken = TakenBy(syntax, *option);
    if (taken.kind != Taken::Kind::kName || !taken.only_names) continue;
    const std::string text = values[name].as<std::string>();
    if (std::find(taken.names.begin(), taken.names.end(), text) != taken.names.end()) continue;
    throw Error(fmt::format("--{}: found \"{}\"{}", name, text, KnownNames(text, taken.names)));
  }
}

constexpr auto kStyle =
    po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;

// The first argument beyond the `taken` ones that are not options.
std::string Extra(const std::vector<std::string>& arguments, const po::options_description& options,
                  size_t taken) {
  const auto parsed = po::command_line_parser(arguments).options(options).style(kStyle).run();
  for (const po::option& option : parsed.options) {
    if (option.position_key == static_cast<int>(taken)) return option.value.front();
  }
  return arguments.back();
}

// What an option takes, as its help calls it: "exhaustive|random". `name` includes its dashes.
std::string ValueOf(const std::string& name, const po::options_description& options) {
  for (const auto& option : options.options()) {
    if (name == "--" + option->long_name() || name == option->canonical_display_name(kStyle))
      return NameOfValue(*option);
  }
  return "a value";
}

// Explanations keep at least this many columns; a longer option stands on a line of its own.
std::string OptionsText(const po::options_description& options) {
  constexpr unsigned kLine = 80;
  constexpr unsigned kExplanation = 52;
  po::options_description shown(kLine, kExplanation);
  for (const auto& option : options.options()) shown.add(option);
  std::ostringstream text;
  text << shown;
  std::string lines;
  std::string line;
  for (std::istringstream all(text.str()); std::getline(all, line);) {
    line.erase(line.find_last_not_of(' ') + 1);  // words are wrapped with the blank behind them
    lines += line + "\n";
  }
  return lines;
}

}  // namespace

bool ParseCommandLine(CommandSyntax& syntax, const std::vector<std::string>& arguments,
                      po::variables_map* values) {
  syntax.options.add_options()("help,h", "print this help and stop");
  po::options_description all;
  all.add(syntax.options);
  po::positional_options_description positional;
  for (const std::string& name : syntax.positional) {
    const bool repeats = syntax.last_repeats && name == syntax.positional.back();
    if (repeats)
      all.add_options()(name.c_str(), po::value<std::vector<std::string>>());
    else
      all.add_options()(name.c_str(), po::value<std::string>());
    positional.add(name.c_str(), repeats ? -1 : 1);
  }
  std::vector<std::string> names;
  for (const auto& option : syntax.options.options()) {
    names.push_back("--" + option->long_name());
  }
  try {
    po::store(
        po::command_line_parser(arguments).options(all).positional(positional).style(kStyle).run(),
        *values);
    po::notify(*values);
  } catch (const po::unknown_option& error) {
    const std::string found = error.get_option_name();
    const std::string suggestion = DidYouMean(found, names);
    throw Error(
        fmt::format("unknown option {}{}", found,
                    suggestion.empty()
                        ? "; see " + syntax.usage.substr(0, syntax.usage.find(' ', 9)) + " --help"
                        : suggestion));
  } catch (const OptionMistake& error) {
    throw Error(error.Message());
  } catch (const po::too_many_positional_options_error&) {
    throw Error(fmt::format("found \"{}\", an argument too many; usage: {}",
                            Extra(arguments, all, syntax.positional.size()), syntax.usage));
  } catch (const po::invalid_command_line_syntax& error) {
    if (error.kind() != po::invalid_syntax::missing_parameter) throw Error(error.what());
    const std::string name = error.get_option_name();
    throw Error(fmt::format("{}: found nothing, expected {}", name, ValueOf(name, syntax.options)));
  } catch (const po::error& error) {
    throw Error(error.what());
  }
  if (values->count("help") == 0) {
    CheckNames(syntax, *values);
    CheckThatFilesDiffer(syntax, *values);
    return true;
  }
  const std::string text = fmt::format("usage: {}\n\n{}\n{}", syntax.usage, syntax.explanation,
                                       OptionsText(syntax.options));
  std::fputs(text.c_str(), stdout);
  return false;
}

namespace {

constexpr Fidelity kFidelities[] = {Fidelity::kFormula, Fidelity::kFluid, Fidelity::kStep,
                                    Fidelity::kPacket};

}  // namespace

std::string FidelityHelp(const std::string& what) {
  std::string help = what;
  for (const Fidelity fidelity : kFidelities) {
    help += fmt::format("\n{} leaves out {}", Name(fidelity), LeftOutBy(fidelity));
  }
  return help;
}

Fidelity ParseFidelity(const std::string& option, const std::string& text) {
  std::vector<std::string> names;
  for (const Fidelity fidelity : kFidelities) {
    if (text == Name(fidelity)) return fidelity;
    names.emplace_back(Name(fidelity));
  }
  throw Error(fmt::format("{}: found \"{}\"{}", option, text, KnownNames(text, names)));
}

void PrintBeside(const std::string& output, const std::string& text) {
  if (IsStandardOutput(output))
    SayAsItIs(text);
  else
    std::fputs(text.c_str(), stdout);
}

std::string FolderOption(const po::variables_map& values, const char* option) {
  if (values.count(option) == 0) return "";
  std::string folder = values[option].as<std::string>();
  if (folder.empty()) throw Error(fmt::format("--{}: found \"\", expected a folder", option));
  if (IsStandardOutput(folder)) {
    throw Error(fmt::format(
        "--{}: found \"{}\", which is no folder; --format json prints the result", option, folder));
  }
  return folder;
}

}  // namespace rehearse
