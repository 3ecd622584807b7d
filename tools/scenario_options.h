// What commands that take a scenario have in common: the argument, and options that change it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scenarios/readers/scenario.h"
#include "sim/base/json_document.h"
#include "tools/command.h"

namespace rehearse {

// Adds what SCENARIO takes, and --cluster, for schedules.
void AddClusterOption(CommandSyntax* syntax);
// Adds all but SCENARIO: --cluster, --set and those below.
void AddScenarioSettings(CommandSyntax* syntax);
// Adds SCENARIO, --cluster, --set, --fidelity, --calibration, --allow-oom, --no-fold.
void AddScenarioOptions(CommandSyntax* syntax);

// Whether the command plays jobs as they come (Scenario::arrivals); they are a mistake otherwise.
enum class Arrivals : uint8_t { kRefused, kTaken };

// Reads SCENARIO with all changes: a scenario, or a schedule on --cluster. Throws Error, also if
// none is given.
Scenario ReadScenarioArgument(const CommandSyntax& syntax,
                              const boost::program_options::variables_map& values,
                              Arrivals arrivals = Arrivals::kRefused);
// The same for a document that was already read; `changes` come after those of --set.
Scenario ReadScenarioWith(JsonDocument document,
                          const boost::program_options::variables_map& values,
                          const std::vector<std::string>& changes = {},
                          Arrivals arrivals = Arrivals::kRefused);

}  // namespace rehearse
