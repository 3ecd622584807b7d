// A run of axolotl, YAML, as a scenario.
//
// Keys: axolotl-ai-cloud/axolotl, src/axolotl/utils/schemas (2025). The model is known by its name
// (tools/foreign/runs/model_names.h) or given beside; "deepspeed" names a JSON that is read from
// beside the file. Adapters (LoRA) stand beside a frozen model; other frozen parts, preferences and
// rewards, images and sound are refused. How many ranks there are is not in the file, unless it
// says the size of every axis.
#pragma once

#include "tools/foreign/runs/run_source.h"
#include "tools/foreign/runs/scenario_draft.h"

namespace rehearse {

// Throws Error with file, line and key.
ImportedScenario ImportAxolotl(const RunSource& source);

}  // namespace rehearse
