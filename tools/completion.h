// Completion of the command line, made from what commands declare (tools/command.h).
#pragma once

#include <string>
#include <vector>

#include "tools/command.h"

namespace rehearse {

struct OptionWords {
  std::string name;         // "--output"
  std::string letter;       // "-o", or ""
  std::string description;  // the first clause of its help
  std::string value;        // "FILE", or ""
  Taken taken;
  bool is_repeated = false;
};

struct ArgumentWords {
  std::string name;
  Taken taken;
  bool repeats = false;  // all that follow are of this kind too
};

struct CommandWords {
  std::string name;
  std::string summary;
  std::vector<OptionWords> options;
  std::vector<ArgumentWords> arguments;  // without a dash, in order
};

std::vector<CommandWords> WordsOfCommands();

// What --cluster takes: presets, and "perlmutter:nodes=" for each of their parameters.
std::vector<std::string> ClusterWords();

// These are scripts that a shell reads once: source <(rehearse completion bash).
std::string BashCompletion();
std::string ZshCompletion();
std::string FishCompletion();

}  // namespace rehearse
