// rehearse completion SHELL: a script from which a shell learns what can be typed.
#include "tools/completion.h"

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/known_names.h"
#include "topology/presets/presets.h"

namespace rehearse {
namespace {

namespace po = boost::program_options;

struct Shell {
  const char* name;
  std::string (*script)();
};
constexpr Shell kShells[] = {
    {"bash", BashCompletion}, {"zsh", ZshCompletion}, {"fish", FishCompletion}};

// Turns "what to print; csv for timelines" into "what to print".
std::string FirstClause(const std::string& text) {
  constexpr size_t kLongest = 76;
  std::string clause = text.substr(0, text.find_first_of("\n;"));
  clause.resize(std::min({clause.size(), clause.find(". "), clause.find(", e.g. ")}));
  if (clause.size() > kLongest) clause = clause.substr(0, clause.rfind(' ', kLongest)) + " ...";
  return clause;
}

OptionWords WordsOf(const CommandSyntax& syntax, const po::option_description& option) {
  OptionWords words;
  words.name = "--" + option.long_name();
  const std::string shown =
      option.canonical_display_name(po::command_line_style::allow_dash_for_short);
  if (shown.size() == 2 && shown[0] == '-' && shown[1] != '-') words.letter = shown;
  words.description = FirstClause(option.description());
  words.taken = TakenBy(syntax, option);
  if (words.taken.kind != Taken::Kind::kNothing) words.value = NameOfValue(option);
  words.is_repeated = option.semantic()->is_composing();
  return words;
}

}  // namespace

std::vector<CommandWords> WordsOfCommands() {
  std::vector<CommandWords> commands;
  for (const Command& command : Commands()) {
    const CommandSyntax syntax = command.syntax();
    CommandWords& words = commands.emplace_back();
    words.name = command.name;
    words.summary = command.summary;
    for (const auto& option : syntax.options.options())
      words.options.push_back(WordsOf(syntax, *option));
    words.options.push_back(
        {"--help", "-h", "print this and stop", "", {.kind = Taken::Kind::kNothing}, false});
    for (const std::string& name : syntax.positional)
      words.arguments.push_back(
          {name, TakenBy(syntax, name), syntax.last_repeats && name == syntax.positional.back()});
  }
  return commands;
}

std::vector<std::string> ClusterWords() {
  std::vector<std::string> words;
  for (const ClusterPreset& preset : ClusterPresets()) {
    words.push_back(preset.name);
    for (const PresetParameter& parameter : preset.parameters)
      words.push_back(fmt::format("{}:{}=", preset.name, parameter.name));
    for (const char* key : kMachineChangeKeys)
      words.push_back(fmt::format("{}:{}=", preset.name, key));
  }
  return words;
}

CommandSyntax CompletionSyntax() {
  CommandSyntax syntax;
  syntax.usage = "rehearse completion bash|zsh|fish";
  syntax.explanation =
      "Prints a script that teaches a shell what can be typed: commands, options, the names that\n"
      "they take, clusters, collectives, what --set can change, files of the right kind.\n"
      "  source <(rehearse completion bash)                              in ~/.bashrc\n"
      "  rehearse completion zsh > ~/.zsh/_rehearse                      a folder in $fpath\n"
      "  rehearse completion fish > ~/.config/fish/completions/rehearse.fish\n";
  syntax.positional = {"shell"};
  syntax.takes["shell"] = TakenName({});
  for (const Shell& shell : kShells) syntax.takes["shell"].names.emplace_back(shell.name);
  return syntax;
}

int CompletionCommand(const std::vector<std::string>& arguments) {
  CommandSyntax syntax = CompletionSyntax();
  po::variables_map values;
  if (!ParseCommandLine(syntax, arguments, &values)) return 0;
  if (values.count("shell") == 0) throw Error("no shell given; usage: " + syntax.usage);
  const std::string wanted = values["shell"].as<std::string>();
  for (const Shell& shell : kShells) {
    if (wanted != shell.name) continue;
    std::fputs(shell.script().c_str(), stdout);
    return 0;
  }
  throw Error(fmt::format("unknown shell \"{}\"{}", wanted,
                          KnownNames(wanted, syntax.takes["shell"].names)));
}

}  // namespace rehearse
