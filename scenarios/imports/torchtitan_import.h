// A torchtitan job's TOML as a scenario.
//
// Keys and their defaults: pytorch/torchtitan, torchtitan/config/job_config.py (2025), and
// config_manager.py (2024) for older spellings. Models are its own
// (scenarios/imports/torchtitan_flavors.h). What decides nothing in a simulation is dropped, what
// would change the step and cannot be carried is a remark, and so is what nobody here knows.
#pragma once

#include <string>
#include <string_view>

#include "scenarios/imports/scenario_draft.h"

namespace rehearse {

// `file` is called so in messages, `cluster` the command line's --cluster, "" where none is given.
// Throws Error with file, line and key.
ImportedScenario ImportTorchtitan(std::string_view text, const std::string& file,
                                  const std::string& cluster);

}  // namespace rehearse
