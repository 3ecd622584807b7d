// Random programs, the same for a seed on every machine, compiler and standard library.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "sim/engine/program.h"

namespace rehearse {

// std::mt19937_64 is specified to the bit, the standard distributions are not; hence these.
class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}

  // 0 .. bound-1; the bias of the remainder does not matter here.
  uint32_t Below(uint32_t bound) { return static_cast<uint32_t>(engine_() % bound); }
  uint32_t Between(uint32_t low, uint32_t high) { return low + Below(high - low + 1); }
  bool Chance(uint32_t percent) { return Below(100) < percent; }
  // The fraction is in [0, 1), a multiple of 2^-53.
  double Fraction() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }

 private:
  std::mt19937_64 engine_;
};

// A program in a form that can be put together in any order, several of them into one.
struct ProgramRecipe {
  struct Step {
    Task task;                            // payload: position in delays, flows
    std::vector<uint32_t> predecessors;   // positions in steps
    uint32_t ready = Id<TaskTag>::kNone;  // one of them
  };
  std::vector<ProgramLink> links;
  std::vector<std::vector<LinkUse>> use_sets;
  std::vector<Time> delays;
  std::vector<Flow> flows;  // without neighbours
  std::vector<Step> steps;
  std::vector<std::pair<uint32_t, uint32_t>> chains;  // upstream, downstream: positions in steps

  // These are as in Program, with positions in this recipe: one entry a delay, a flow, or none.
  std::vector<double> host_cores;
  std::vector<Processor> processors;
  std::vector<DelayOwner> owners;
  std::vector<std::vector<uint32_t>> parties;  // a flow; may be empty
  std::vector<LinkChange> link_changes;
  std::vector<uint32_t> alternatives;  // a flow; may be Program::kNone
};

// What a recipe may be given on top.
struct Extras {
  bool core = false;          // links that many flows cross and that rarely bind
  bool long_chains = false;   // of 32 to 150 steps, among them flows that are their own upstream
  bool interference = false;  // processors, hosts
  bool link_changes = false;  // links that slow down, fail and recover; alternatives
};

// A program of up to `max_tasks` tasks or a few more: joins, delays and flows that wait for random
// earlier tasks. Flows cross random links with random multiplicities, or none, have zero or more
// bytes, perhaps a latency, one or more steps, and some form rings or open chains. About half of
// all numbers are coarse, so that things happen at the same instant.
ProgramRecipe RandomRecipe(uint64_t seed, uint32_t max_tasks);

// RandomRecipe and what `extras` name, for about half of the flows and delays.
ProgramRecipe ExtendedRecipe(uint64_t seed, uint32_t max_tasks, const Extras& extras);

// `lanes` transfers are under way all the time, each followed by the next of its lane: `length`
// flows per lane over two to four of a few dozen links, many of them over a core. Half of the
// programs have coarse numbers and equal sizes, so that much happens at once. Extras are as above.
ProgramRecipe BusyRecipe(uint64_t seed, uint32_t lanes, uint32_t length, const Extras& extras);

// A way to put recipes together: links and tasks are added in a shuffled order when `shuffle` is
// set. Every task has one span: rank = position of the recipe, op = position of the task in it.
Program Assemble(const std::vector<ProgramRecipe>& recipes, Random* shuffle = nullptr);

Program RandomProgram(uint64_t seed, uint32_t max_tasks = 40);

// A ring of flows, one for each entry of `capacities`, each over a link of its own.
Program RingProgram(const std::vector<double>& capacities, uint32_t steps, double bytes,
                    Time latency);

}  // namespace rehearse
