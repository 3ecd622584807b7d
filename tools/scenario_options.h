// What commands that take a scenario have in common: the argument and how it may be
// changed on the way.
#pragma once

#include "scenarios/readers/scenario.h"
#include "tools/command.h"

namespace rehearse {

// What SCENARIO takes, and --cluster, for schedules.
void AddClusterOption(CommandSyntax* syntax);
// SCENARIO, --cluster, --set, --fidelity, --calibration, --allow-oom, --no-fold.
void AddScenarioOptions(CommandSyntax* syntax);

// Reads it with all changes: a scenario, or a schedule on --cluster. Throws Error, also when none
// is given.
Scenario ReadScenarioArgument(const CommandSyntax& syntax,
                              const boost::program_options::variables_map& values);

}  // namespace rehearse
