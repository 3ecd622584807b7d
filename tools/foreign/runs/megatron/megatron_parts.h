// The parts of a scenario that Megatron-LM's arguments become, one function each.
#pragma once

#include <cstdint>
#include <string_view>

#include "tools/foreign/runs/megatron/argument_list.h"
#include "tools/foreign/runs/scenario_draft.h"

namespace rehearse {

// What several parts need to know.
struct MegatronRun {
  ImportedMachine machine;
  Degree tensor;
  Degree context;
  Degree stages;
  uint64_t data = 1;
  uint64_t micro_batches = 1;
  int64_t layers = 0;
  int64_t heads = 0;
  uint32_t experts = 0;       // 0: none
  bool is_llama = false;      // of that style here
  bool is_gated = false;      // its MLPs have a gate; if not, those of that style are made narrower
  bool has_pattern = false;   // each layer is one of Mamba-2, attention, MLP and experts
  int64_t ahead = 0;          // tokens after the next one that are predicted too
  std::string ahead_pattern;  // the letters of a layer that predicts one, with a pattern
  bool is_2021 = false;       // Megatron-LM's arguments of 2021
  bool is_deepspeed = false;  // Megatron-DeepSpeed's
};

void SetMegatronModel(ArgumentList& arguments, ScenarioDraft& draft, MegatronRun* run);
// A model that is known by its name; arguments change its sizes and what it predicts ahead.
void SetGivenMegatronModel(const NamedModel& model, const Origin& from, ArgumentList& arguments,
                           ScenarioDraft& draft, MegatronRun* run);
void SetMegatronTraining(ArgumentList& arguments, ScenarioDraft& draft, MegatronRun* run);
void SetMegatronStrategy(ArgumentList& arguments, ScenarioDraft& draft, const MegatronRun& run);
void SetMegatronPipeline(ArgumentList& arguments, ScenarioDraft& draft, const MegatronRun& run);

// What variables of the environment change: some choose attention, others how NCCL's collectives
// run; remarks on the rest.
void HonourEnvironment(const std::vector<WrittenVariable>& environment, ArgumentList& arguments,
                       ScenarioDraft& draft);

// Remarks on what would change the step but is not supported, and on what is unknown.
void RemarkOnRest(ArgumentList& arguments, ScenarioDraft& draft);
// Whether an argument, "weight-decay", says nothing about a step's time.
bool DecidesNothingInMegatron(std::string_view name);

}  // namespace rehearse
