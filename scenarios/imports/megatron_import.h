// Megatron-LM's command line as a scenario: of a script, a list of arguments or a log
// (scenarios/imports/launched_run.h).
//
// What is not given is what Megatron-LM takes for it (NVIDIA/Megatron-LM,
// megatron/training/arguments.py): columns of the MLP, padding of the vocabulary, the batch. What
// decides nothing in a simulation is dropped, what would change the step and cannot be carried is a
// remark, and so is what nobody here knows. Arguments of Megatron-DeepSpeed are taken, too.
#pragma once

#include <string>
#include <string_view>

#include "scenarios/imports/scenario_draft.h"

namespace rehearse {

// `file` is called so in messages, `cluster` the command line's --cluster, "" where none is given.
// Throws Error with file, line and argument.
ImportedScenario ImportMegatron(std::string_view text, const std::string& file,
                                const std::string& cluster);

}  // namespace rehearse
