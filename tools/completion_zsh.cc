// Completion for zsh's own system (compsys).
#include <fmt/format.h>

#include "tools/completion.h"
#include "tools/scenario_paths.h"

namespace rehearse {
namespace {

constexpr const char* kZshBegin = R"(#compdef rehearse
# What zsh completes after "rehearse"; made by: rehearse completion zsh

_rehearse_cluster() {
  _alternative 'presets:preset:_rehearse_preset' 'files:cluster file:_files -g "*.json"'
}
)";

constexpr const char* kZshEnd = R"(
# PATH=VALUE of --set
_rehearse_path() {
  local path
  if [[ $PREFIX != *=* ]]; then
    compadd -S '' -a _rehearse_paths
    return
  fi
  path=${PREFIX%%=*}
  compset -P '*='
  compadd -- ${=_rehearse_names_of[$path]}
}

if [[ $funcstack[1] == _rehearse ]]; then
  _rehearse "$@"
else
  compdef _rehearse rehearse
fi
)";

// Escapes :, [ and ], which have a meaning in an _arguments specification in single quotes.
std::string PlainForZsh(const std::string& text) {
  std::string plain;
  for (const char c : text) {
    if (c == '\'') {
      plain += "'\\''";
      continue;
    }
    if (c == '[' || c == ']' || c == ':' || c == '\\') plain += '\\';
    plain += c;
  }
  return plain;
}

std::string ActionFor(const Taken& taken) {
  std::string text;
  switch (taken.kind) {
    case Taken::Kind::kNothing:
    case Taken::Kind::kFree:
      return " ";
    case Taken::Kind::kName:
      for (const std::string& name : taken.names) text += (text.empty() ? "" : " ") + name;
      return "(" + text + ")";
    case Taken::Kind::kFile:
      for (const std::string& ending : taken.endings) text += (text.empty() ? "" : "|") + ending;
      return text.empty() ? "_files" : fmt::format("_files -g \"*({})\"", text);
    case Taken::Kind::kFolder:
      return "_files -/";
    case Taken::Kind::kCluster:
      return "_rehearse_cluster";
    case Taken::Kind::kScenarioPath:
      return "_rehearse_path";
  }
  return " ";
}

// Makes "'(-o --output)'{-o,--output=}'[where to write it]:FILE:_files'".
std::string Specification(const OptionWords& option) {
  const bool takes = option.taken.kind != Taken::Kind::kNothing;
  const std::string rest = fmt::format(
      "[{}]{}", PlainForZsh(option.description),
      takes ? fmt::format(":{}:{}", PlainForZsh(option.value), ActionFor(option.taken)) : "");
  const std::string name = option.name + (takes ? "=" : "");
  if (option.is_repeated) return fmt::format("'*{}{}'", name, rest);
  if (option.letter.empty()) return fmt::format("'{}{}'", name, rest);
  return fmt::format("'({} {})'{{{},{}}}'{}'", option.letter, option.name, option.letter, name,
                     rest);
}

std::string ZshList(const char* variable, const std::vector<std::string>& words) {
  std::string text = fmt::format("{}=(", variable);
  for (const std::string& word : words) text += fmt::format(" '{}'", word);
  return text + " )\n";
}

}  // namespace

std::string ZshCompletion() {
  std::string text = kZshBegin;
  text += "_rehearse_preset() {\n  local -a presets\n  " + ZshList("presets", ClusterWords()) +
          "  compadd -S '' -a presets\n}\n\n";
  std::vector<std::string> paths;
  std::string names_of = "typeset -gA _rehearse_names_of\n_rehearse_names_of=(\n";
  for (const ScenarioPath& path : ScenarioPaths()) {
    paths.push_back(path.path + "=");
    if (path.names.empty()) continue;
    std::string names;
    for (const std::string& name : path.names) names += (names.empty() ? "" : " ") + name;
    names_of += fmt::format("  '{}' '{}'\n", path.path, names);
  }
  text += "typeset -ga _rehearse_paths\n" + ZshList("_rehearse_paths", paths) + names_of + ")\n\n";

  std::string commands;
  std::string cases;
  for (const CommandWords& command : WordsOfCommands()) {
    commands += fmt::format("    '{}:{}'\n", command.name, PlainForZsh(command.summary));
    cases += fmt::format("    {})\n      _arguments -S", command.name);
    for (const OptionWords& option : command.options)
      cases += " \\\n        " + Specification(option);
    for (size_t i = 0; i < command.arguments.size(); ++i) {
      const ArgumentWords& argument = command.arguments[i];
      cases +=
          fmt::format(" \\\n        '{}:{}:{}'", argument.repeats ? "*" : fmt::format("{}", i + 1),
                      argument.name, ActionFor(argument.taken));
    }
    cases += "\n      ;;\n";
  }
  text += "_rehearse() {\n  local -a commands\n  commands=(\n" + commands +
          "    'help:explain a command'\n  )\n"
          "  if (( CURRENT == 2 )); then\n    _describe command commands\n    return\n  fi\n"
          "  local command=$words[2]\n  shift words\n  (( CURRENT-- ))\n  case $command in\n" +
          cases + "    help)\n      (( CURRENT == 2 )) && _describe command commands\n      ;;\n" +
          "  esac\n}\n";
  return text + kZshEnd;
}

}  // namespace rehearse
