// A configuration of accelerate (accelerate config), YAML, as a scenario, with the model beside.
//
// Keys: huggingface/accelerate, docs "accelerate config" (2025): FSDP of either version, DeepSpeed
// (its keys here, or its JSON, which is read from beside the file), Megatron-LM's degrees, and the
// parallelism config. Neither the model (--model-config), nor the sequence (--set sequence=4096)
// and the batch (--set micro_batch_size=1) are in it.
#pragma once

#include "tools/foreign/runs/run_source.h"
#include "tools/foreign/runs/scenario_draft.h"

namespace rehearse {

// Throws Error with file, line and key.
ImportedScenario ImportAccelerate(const RunSource& source);

}  // namespace rehearse
