// Random small scenarios, the same for a seed on every machine: machines of several presets and
// hand-made ones; 4D, SBP, ATP, SUMMA, Megatron-LM, FSDP, ZeRO and combined strategies; stages,
// experts and jobs; edits, channels and fidelities. Nearly all of them can be planned.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scenarios/readers/scenario.h"
#include "sim/schedule/jobs.h"

namespace rehearse {

struct RandomScenarioLimits {
  bool jobs = true;
  bool edits = true;
  // The step is so small that CPUs execute it at once, on the machine itself; no edits, no jobs.
  bool for_execution = false;
  // Collectives are rings on bare links, with one channel each, so that nothing is chosen
  // differently on another machine.
  bool pinned = false;
  // Nearly all have many layers or many micro-batches, most of which need not be played.
  bool long_steps = false;
};

// By how much edits of such a scenario may raise a device's peak.
inline constexpr double kMostOfPeak = 1.4;
// The scenario as JSON.
std::string RandomScenarioText(uint64_t seed, const RandomScenarioLimits& limits = {});

// The first one that can be read and planned, of a sequence of seeds that depends on this one.
struct RandomScenario {
  std::string text;
  Scenario scenario;
  std::vector<Job> jobs;  // as Prepare() made them
};
RandomScenario DrawScenario(uint64_t seed, const RandomScenarioLimits& limits = {});

}  // namespace rehearse
