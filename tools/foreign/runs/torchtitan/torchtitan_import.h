// A torchtitan job's TOML as a scenario.
//
// Keys and their defaults: pytorch/torchtitan, torchtitan/config/job_config.py (2025), and
// config_manager.py (2024) for older spellings. Models are torchtitan's own
// (tools/foreign/runs/torchtitan/torchtitan_flavors.h). What makes no difference to a simulation is
// dropped; what would change the step but is not supported becomes a remark, and so does what is
// unknown.
#pragma once

#include <string>
#include <string_view>

#include "tools/foreign/runs/run_settings.h"
#include "tools/foreign/runs/scenario_draft.h"

namespace rehearse {

// `file` is its name in messages; `cluster` is the command line's --cluster, "" if none is given.
// `settings` are its --set: they override keys of the file (training.seq_len=4096), and name the
// job of a registry in Python (config=llama3_8b). Throws Error with file, line and key.
ImportedScenario ImportTorchtitan(std::string_view text, const std::string& file,
                                  const std::string& cluster, const RunSettings& settings = {});

}  // namespace rehearse
