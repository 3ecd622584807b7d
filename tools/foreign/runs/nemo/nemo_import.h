// A recipe of Megatron-Bridge or NeMo 2.0, in Python, as a scenario.
//
// Keys: NVIDIA-NeMo/Megatron-Bridge, src/megatron/bridge/recipes and training; NVIDIA/NeMo,
// nemo/collections/llm/recipes (2025). They are Megatron-LM's arguments under other names
// (tools/foreign/runs/megatron/megatron_import.h); the table is in the .cc. The model is the one
// that the recipe names, as on Hugging Face or as NeMo's class (tools/foreign/runs/model_names.h).
// How many ranks there are says the name of the function ("_256gpu_") or num_nodes and devices.
#pragma once

#include "tools/foreign/runs/run_source.h"
#include "tools/foreign/runs/scenario_draft.h"

namespace rehearse {

// `source.settings` name the recipe (config=llama3_8b_pretrain_config). Throws Error with file,
// line and key.
ImportedScenario ImportNemo(const RunSource& source);

}  // namespace rehearse
