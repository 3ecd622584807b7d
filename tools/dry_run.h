// What a script would start: the user's own shell runs it, with stubs of launchers in front of
// PATH that write their arguments and environment down, and start nothing.
//
// Everything else that the script does, it does. So this is done only where the user asks for it
// (--dry-run): what others wrote is otherwise read, never run.
#pragma once

#include <string>

#include "tools/foreign/runs/run_settings.h"

namespace rehearse {

// The command that trains, as a script of one line behind the variables that matter to it and the
// script's own #SBATCH lines. Settings are variables, or with a number as name arguments of the
// script. Throws Error when the script cannot be run, or starts none of the launchers.
std::string DryRunScript(const std::string& path, const RunSettings& settings);

}  // namespace rehearse
