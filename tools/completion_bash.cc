// Completion for bash, 4.0 and newer, without the package bash-completion.
#include <fmt/format.h>

#include "tools/completion.h"
#include "tools/scenario_paths.h"

namespace rehearse {
namespace {

constexpr const char* kBashBegin =
    R"sh(# What bash completes after "rehearse"; made by: rehearse completion bash
)sh";

constexpr const char* kBashEnd = R"sh(
# The candidates that begin with what is typed.
_rehearse_words() {
  local word
  for word in $1; do
    [[ $word == "$2"* ]] && COMPREPLY+=("$word")
  done
}

# Files with one of the endings, and folders on the way to them.
_rehearse_files() {
  local current=$1 file ending
  shift
  compopt -o filenames 2> /dev/null
  while IFS= read -r file; do
    if [[ -d $file ]] || (($# == 0)); then
      COMPREPLY+=("$file")
      continue
    fi
    for ending in "$@"; do
      if [[ $file == *"$ending" ]]; then
        COMPREPLY+=("$file")
        break
      fi
    done
  done < <(compgen -f -- "$current")
}

# Completes $1, of which $2 ... say what it is.
_rehearse_value() {
  local current=$1 word
  shift
  case $1 in
    names) _rehearse_words "${*:2}" "$current" ;;
    files) _rehearse_files "$current" "${@:2}" ;;
    folder)
      compopt -o filenames 2> /dev/null
      while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -d -- "$current")
      ;;
    cluster)
      if [[ $current == *:* ]]; then
        _rehearse_words "$_rehearse_clusters" "$current"
      else
        for word in $_rehearse_clusters; do
          [[ $word != *:* && $word == "$current"* ]] && COMPREPLY+=("$word")
        done
        _rehearse_files "$current" .json
      fi
      ;;
    path)
      if [[ $current != *=* ]]; then
        _rehearse_words "$_rehearse_paths" "$current"
      else
        for word in $(_rehearse_names_of "${current%%=*}"); do
          [[ $word == "${current#*=}"* ]] && COMPREPLY+=("${current%%=*}=$word")
        done
      fi
      ;;
  esac
}

_rehearse() {
  COMPREPLY=()
  # Words as the program gets them: bash splits at '=' and ':' too.
  local line=${COMP_LINE:0:COMP_POINT} words=() current command taken after='' place=0 i
  read -ra words <<< "$line"
  if ((${#words[@]} == 0)) || [[ $line == *[[:space:]] ]]; then words+=(''); fi
  current=${words[${#words[@]} - 1]}
  command=${words[1]}
  for ((i = 2; i < ${#words[@]} - 1; ++i)); do
    if [[ -n $after ]]; then
      after=''
    elif [[ ${words[i]} == -?* ]]; then
      taken=$(_rehearse_taken "$command" "${words[i]}")
      [[ ${words[i]} != *=* && -n $taken && $taken != nothing ]] && after=$taken
    else
      place=$((place + 1))
    fi
  done
  if ((${#words[@]} <= 2)); then
    _rehearse_words "$_rehearse_commands help --help --version" "$current"
  elif [[ $command == help || $command == --help || $command == -h ]]; then
    ((place == 0)) && _rehearse_words "$_rehearse_commands" "$current"
  elif [[ -n $after ]]; then
    # shellcheck disable=SC2086
    _rehearse_value "$current" $after
  elif [[ $current == --*=* ]]; then
    # shellcheck disable=SC2046
    _rehearse_value "${current#*=}" $(_rehearse_taken "$command" "${current%%=*}")
    for i in "${!COMPREPLY[@]}"; do COMPREPLY[i]="${current%%=*}=${COMPREPLY[i]}"; done
  elif [[ $current == -* ]]; then
    _rehearse_words "$(_rehearse_options "$command")" "$current"
  else
    # shellcheck disable=SC2046
    _rehearse_value "$current" $(_rehearse_taken "$command" "$place")
  fi
  # What ends in '=' goes on.
  if ((${#COMPREPLY[@]} == 1)) && [[ ${COMPREPLY[0]} == *= ]]; then
    compopt -o nospace 2> /dev/null
  fi
  # Of what bash split off, only the last part is to be given.
  local breaks='' kept
  [[ $COMP_WORDBREAKS == *=* ]] && breaks+='='
  [[ $COMP_WORDBREAKS == *:* ]] && breaks+=':'
  if [[ -n $breaks && $current == *["$breaks"]* ]]; then
    kept=${current%"${current##*["$breaks"]}"}
    for i in "${!COMPREPLY[@]}"; do COMPREPLY[i]=${COMPREPLY[i]#"$kept"}; done
  fi
}

complete -F _rehearse rehearse
)sh";

std::string Joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

// The words are in the form that _rehearse_value reads.
std::string WordsFor(const Taken& taken) {
  switch (taken.kind) {
    case Taken::Kind::kNothing:
      return "nothing";
    case Taken::Kind::kFree:
      return "free";
    case Taken::Kind::kName:
      return "names " + Joined(taken.names);
    case Taken::Kind::kFile:
      return taken.endings.empty() ? "files" : "files " + Joined(taken.endings);
    case Taken::Kind::kFolder:
      return "folder";
    case Taken::Kind::kCluster:
      return "cluster";
    case Taken::Kind::kScenarioPath:
      return "path";
  }
  return "";
}

}  // namespace

std::string BashCompletion() {
  std::vector<std::string> names;
  std::string options = "_rehearse_options() {\n  case $1 in\n";
  std::string taken =
      "# What comes after an option, or at a place without one.\n"
      "_rehearse_taken() {\n  case $1:$2 in\n";
  for (const CommandWords& command : WordsOfCommands()) {
    names.push_back(command.name);
    std::vector<std::string> of_command;
    for (const OptionWords& option : command.options) {
      of_command.push_back(option.name);
      std::string pattern = fmt::format("{}:{}", command.name, option.name);
      if (!option.letter.empty()) pattern += fmt::format(" | {}:{}", command.name, option.letter);
      taken += fmt::format("    {}) echo '{}' ;;\n", pattern, WordsFor(option.taken));
    }
    for (size_t i = 0; i < command.arguments.size(); ++i) {
      const ArgumentWords& argument = command.arguments[i];
      taken +=
          fmt::format("    {}:{}) echo '{}' ;;\n", command.name,
                      argument.repeats ? "[0-9]*" : fmt::format("{}", i), WordsFor(argument.taken));
    }
    options += fmt::format("    {}) echo '{}' ;;\n", command.name, Joined(of_command));
  }
  std::vector<std::string> paths;
  std::string names_of =
      "# What a value of a scenario may be, where that is a name.\n"
      "_rehearse_names_of() {\n  case $1 in\n";
  for (const ScenarioPath& path : ScenarioPaths()) {
    paths.push_back(path.path + "=");
    if (!path.names.empty())
      names_of += fmt::format("    {}) echo '{}' ;;\n", path.path, Joined(path.names));
  }
  std::string text = kBashBegin;
  text += fmt::format("_rehearse_commands='{}'\n", Joined(names));
  text += fmt::format("_rehearse_clusters='{}'\n", Joined(ClusterWords()));
  text += fmt::format("_rehearse_paths='{}'\n", Joined(paths));
  for (const std::string& function : {options, taken, names_of})
    text += "\n" + function + "  esac\n}\n";
  return text + kBashEnd;
}

}  // namespace rehearse
