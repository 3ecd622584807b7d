// A shell script, as far as its commands are known without running it.
//
// Understood are assignments of texts and arrays (also +=), $NAME, ${NAME}, ${NAME:-otherwise},
// ${NAME:+instead}, ${NAME[@]}, ${NAME[2]}, ${#NAME[@]}, $((arithmetic)), $(expr ...), $(echo ...),
// quotes, continued lines, comments, here-documents, redirections, and `if`, `case`, && and ||
// where what they ask is known. Unknown words such as "$1" or "$(hostname)" stay as written. Loops,
// functions and unknown conditions are gone through once: what they run is marked as conditional,
// and their assignments do not count. Nothing is executed, and no variable is taken from the
// environment, but some can be given. Scripts that are read in (`source`) or submitted (`sbatch`)
// are read in their place, where they lie beside this one; their lines are those of the command.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rehearse {

struct ShellWord {
  std::string text;
  int line = 0;  // where it begins, possibly in the value of a variable
};

struct ShellCommand {
  std::vector<ShellWord> words;
  bool is_conditional = false;
};

struct ShellScript {
  std::vector<ShellCommand> commands;
  std::map<std::string, ShellWord, std::less<>> variables;  // texts, as they are at the end
  std::vector<ShellWord> batch_options;                     // Slurm's #SBATCH lines
  std::vector<std::string> left_open;                       // variables that may or may not be set
  std::vector<ShellWord> documents;                         // here-documents, as written
  std::vector<ShellWord> read_in;                           // files that were read in their place
};

// The text of a file that a script names, if it is there.
using ShellFiles = std::function<std::optional<std::string>(const std::string& name)>;

// Variables that a script begins with; "1" is its first argument.
struct ShellStart {
  std::map<std::string, ShellWord, std::less<>> variables = {};
  bool is_fixed = false;       // they keep their values, whatever the script assigns
  ShellFiles files = nullptr;  // null: none are there
};

// Throws Error with file and line for what is never closed, and for what is too large.
ShellScript ReadShellScript(std::string_view text, const std::string& name,
                            const ShellStart& start = {});

// Whether a part of the word is unknown: a variable without a value, or a command's output.
bool IsLeftOpen(std::string_view word);

}  // namespace rehearse
