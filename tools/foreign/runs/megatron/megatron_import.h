// Megatron-LM's command line as a scenario, from a script, a list of arguments or a log
// (tools/foreign/runs/megatron/launched_run.h).
//
// What is not given has Megatron-LM's default (NVIDIA/Megatron-LM,
// megatron/training/arguments.py): columns of the MLP, padding of the vocabulary, the batch. What
// makes no difference to a simulation is dropped; what would change the step but is not supported
// becomes a remark, and so does what is unknown. Arguments of Megatron-DeepSpeed are also read.
#pragma once

#include <string>
#include <string_view>

#include "tools/foreign/runs/megatron/launched_run.h"
#include "tools/foreign/runs/run_settings.h"
#include "tools/foreign/runs/scenario_draft.h"

namespace rehearse {

// `file` is its name in messages; `cluster` is the command line's --cluster, "" if none is given;
// `settings` are its --set (tools/foreign/runs/megatron/launched_run.h).
// `files` are what a script may read in. Throws Error with file, line and argument.
ImportedScenario ImportMegatron(std::string_view text, const std::string& file,
                                const std::string& cluster, const RunSettings& settings = {},
                                const ShellFiles& files = nullptr);

// The same of arguments that were read of something else.
ImportedScenario ImportLaunchedRun(const LaunchedRun& launched, const std::string& cluster,
                                   ScenarioDraft* into);

}  // namespace rehearse
