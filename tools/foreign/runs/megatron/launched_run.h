// What a script, a list of arguments or a log says about one run of Megatron-LM: its arguments, and
// on how many ranks it is started.
//
// In a script, the run is the command with --num-layers; words before the Python file are the
// launcher's (torchrun, deepspeed, srun, mpirun). A text that begins with an argument is a list of
// arguments. A log has what Megatron-LM prints when it starts:
//   ------------------------ arguments ------------------------
//     num_layers ...................................... 24
//   -------------------- end of arguments ---------------------
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/foreign/runs/origin.h"

namespace rehearse {

struct WrittenArgument {
  std::string name;  // "num-layers", also for num_layers in a log
  std::vector<std::string> values;
  int line = 0;
};

struct WrittenCount {
  uint64_t value = 0;
  Origin from;
};

struct LaunchedRun {
  std::vector<WrittenArgument> arguments;
  bool is_log = false;                                 // a log has all arguments, also defaults
  std::optional<WrittenCount> ranks = std::nullopt;    // all of them
  std::optional<WrittenCount> of_node = std::nullopt;  // on each machine
  std::vector<std::string> remarks;
};

// Throws Error with file and line.
LaunchedRun ReadLaunchedRun(std::string_view text, const std::string& name);

}  // namespace rehearse
