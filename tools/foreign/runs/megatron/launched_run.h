// What a script, a list of arguments or a log says about one run of Megatron-LM: its arguments, and
// on how many ranks it is started.
//
// In a script, the run is the command with --num-layers; words before the Python file are the
// launcher's (torchrun, deepspeed, srun, mpirun). A text that begins with an argument is a list of
// arguments. A log has what Megatron-LM prints when it starts:
//   ------------------------ arguments ------------------------
//     num_layers ...................................... 24
//   -------------------- end of arguments ---------------------
// A model_config.yaml of Megatron-LM's own tests has the arguments under MODEL_ARGS.
//
// Settings given beside, NAME=VALUE, are variables that the script begins with ("1" is its first
// argument) and keeps, and, unless the name has a capital letter, arguments that come last.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/foreign/runs/adapters.h"
#include "tools/foreign/runs/megatron/shell_script.h"
#include "tools/foreign/runs/model_names.h"
#include "tools/foreign/runs/origin.h"
#include "tools/foreign/runs/run_settings.h"

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

struct WrittenVariable {
  std::string name;
  std::string value;
  int line = 0;
};

struct LaunchedRun {
  std::vector<WrittenArgument> arguments;
  bool is_log = false;   // a log has all arguments, also defaults
  bool is_test = false;  // Megatron-LM's tests run on a machine of eight, unless told otherwise
  std::optional<WrittenCount> ranks = std::nullopt;    // all of them
  std::optional<WrittenCount> of_node = std::nullopt;  // on each machine
  std::vector<WrittenVariable> environment = {};  // what NCCL, CUDA and Transformer Engine look at
  std::vector<std::string> remarks;
  std::optional<NamedModel> model = std::nullopt;  // in place of arguments that describe it
  Origin model_from = {};
  std::optional<NamedAdapters> adapters = std::nullopt;  // beside the model, which is then frozen
  const char* software = nullptr;                        // in place of Megatron-LM's own
  bool weighs_early = false;  // routers' weights multiply what SwiGLU of experts makes
};

// `files` are what a script may read in. Throws Error with file and line.
LaunchedRun ReadLaunchedRun(std::string_view text, const std::string& name,
                            const RunSettings& settings = {}, const ShellFiles& files = nullptr);

}  // namespace rehearse
