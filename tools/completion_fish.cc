// Completion for fish, 3.0 and newer.
#include <fmt/format.h>

#include "tools/completion.h"
#include "tools/scenario_paths.h"

namespace rehearse {
namespace {

constexpr const char* kFishBegin =
    R"(# What fish completes after "rehearse"; made by: rehearse completion fish
complete -c rehearse -f

# Files with one of the endings, and folders on the way to them.
function __rehearse_files
    set -l typed (string replace -r '^--[^=]*=' '' -- (commandline -ct))
    test -n "$typed"; or set typed ''
    for file in $typed*
        if test -d $file
            echo $file/
        else
            for ending in $argv
                string match -q -- "*$ending" $file; and echo $file; and break
            end
        end
    end
end

# How many words without a dash stand between the command and the cursor.
function __rehearse_place
    set -l words (commandline -opc)
    set -e words[1..2]
    set -l place 0
    for word in $words
        string match -q -- '-*' $word; or set place (math $place + 1)
    end
    echo $place
end

function __rehearse_argument --description 'COMMAND: its first argument is not there yet'
    __fish_seen_subcommand_from $argv[1]; and test (__rehearse_place) -eq 0
end

)";

std::string PlainForFish(const std::string& text) {
  std::string plain;
  for (const char c : text) {
    if (c == '\'' || c == '\\') plain += '\\';
    plain += c;
  }
  return plain;
}

// The part of a `complete` line that says what a value is.
std::string ArgumentsFor(const Taken& taken) {
  std::string text;
  switch (taken.kind) {
    case Taken::Kind::kNothing:
      return "";
    case Taken::Kind::kFree:
      return " -x";
    case Taken::Kind::kName:
      for (const std::string& name : taken.names) text += (text.empty() ? "" : " ") + name;
      return fmt::format(" -x -a '{}'", text);
    case Taken::Kind::kFile:
      if (taken.endings.empty()) return " -r -F";
      for (const std::string& ending : taken.endings) text += " " + ending;
      return fmt::format(" -x -a '(__rehearse_files{})'", text);
    case Taken::Kind::kFolder:
      return " -x -a '(__fish_complete_directories)'";
    case Taken::Kind::kCluster:
      return " -x -a '$__rehearse_clusters (__rehearse_files .json)'";
    case Taken::Kind::kScenarioPath:
      return " -x -a '$__rehearse_paths'";
  }
  return "";
}

std::string FishList(const char* variable, const std::vector<std::string>& words) {
  std::string text = fmt::format("set -g {}", variable);
  for (const std::string& word : words) text += " " + word;
  return text + "\n";
}

}  // namespace

std::string FishCompletion() {
  std::string text = kFishBegin;
  text += FishList("__rehearse_clusters", ClusterWords());
  std::vector<std::string> paths;
  for (const ScenarioPath& path : ScenarioPaths()) {
    if (path.names.empty()) paths.push_back(path.path + "=");
    for (const std::string& name : path.names)
      paths.push_back(fmt::format("{}={}", path.path, name));
  }
  text += FishList("__rehearse_paths", paths) + "\n";
  const std::vector<CommandWords> commands = WordsOfCommands();
  std::string names;
  for (const CommandWords& command : commands) {
    names += (names.empty() ? "" : " ") + command.name;
    text += fmt::format("complete -c rehearse -n __fish_use_subcommand -a {} -d '{}'\n",
                        command.name, PlainForFish(command.summary));
  }
  text += "complete -c rehearse -n __fish_use_subcommand -a help -d 'explain a command'\n";
  text += "complete -c rehearse -n __fish_use_subcommand -l version -d 'print the version'\n";
  text += fmt::format("complete -c rehearse -n '__rehearse_argument help' -a '{}'\n", names);
  for (const CommandWords& command : commands) {
    text += fmt::format("\n# {}\n", command.name);
    for (const OptionWords& option : command.options) {
      text += fmt::format("complete -c rehearse -n '__fish_seen_subcommand_from {}' -l {}",
                          command.name, option.name.substr(2));
      if (!option.letter.empty()) text += " -s " + option.letter.substr(1);
      text +=
          fmt::format("{} -d '{}'\n", ArgumentsFor(option.taken), PlainForFish(option.description));
    }
    // All arguments of a command together: fish does not ask for positions.
    for (const ArgumentWords& argument : command.arguments) {
      text += fmt::format("complete -c rehearse -n '__rehearse_argument {}'{}\n", command.name,
                          ArgumentsFor(argument.taken));
    }
  }
  return text;
}

}  // namespace rehearse
