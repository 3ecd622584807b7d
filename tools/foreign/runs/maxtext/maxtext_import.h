// MaxText's settings as a scenario: its base.yml, one of its models' files, or the one with the
// other's keys changed by --set, as its command line changes them.
//
// Keys and their defaults: AI-Hypercomputer/maxtext, src/maxtext/configs/base.yml (2026). What is
// -1 in a mesh takes the ranks that are left. Keys that size the model or the mesh and are unknown
// are remarked on; the hundreds of others decide nothing here.
#pragma once

#include <string>
#include <string_view>

#include "tools/foreign/runs/run_settings.h"
#include "tools/foreign/runs/scenario_draft.h"

namespace rehearse {

// `file` is its name in messages; `cluster` is the command line's --cluster, "" if none is given.
// Throws Error with file, line and key.
ImportedScenario ImportMaxText(std::string_view text, const std::string& file,
                               const std::string& cluster, const RunSettings& settings = {});

}  // namespace rehearse
