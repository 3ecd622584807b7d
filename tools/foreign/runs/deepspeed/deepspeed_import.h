// DeepSpeed's JSON (ds_config.json) as a scenario, with the model beside.
//
// Keys: deepspeedai/DeepSpeed, docs "DeepSpeed Configuration JSON" (2025). It says neither the
// model (--model-config), nor the sequence (--set sequence=4096), nor, but for all three of its
// batch sizes, how many ranks there are.
#pragma once

#include "tools/foreign/runs/flat_keys.h"
#include "tools/foreign/runs/run_source.h"
#include "tools/foreign/runs/scenario_draft.h"
#include "tools/foreign/runs/trainer_step.h"

namespace rehearse {

// Throws Error with file, line and key.
ImportedScenario ImportDeepSpeed(const RunSource& source);

// The sequence, which such files leave open: key "sequence" or what else is said.
void SetSequenceBeside(FlatKeys& keys, JobConfig::Names names, TrainerStep* step,
                       const ScenarioDraft& draft);

}  // namespace rehearse
