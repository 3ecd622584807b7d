// A recipe's configuration of torchtune, YAML, as a scenario.
//
// Keys: pytorch/torchtune, recipes/full_finetune_distributed.py and its configs (2025). The model
// is the component that "model" names (tools/foreign/runs/model_names.h). A file whose name ends
// with single_device is for one device; otherwise the ranks are not in it. Distillation,
// preferences, images, and files that do not train are refused.
#pragma once

#include "tools/foreign/runs/run_source.h"
#include "tools/foreign/runs/scenario_draft.h"

namespace rehearse {

// Throws Error with file, line and key.
ImportedScenario ImportTorchtune(const RunSource& source);

}  // namespace rehearse
