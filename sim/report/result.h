// What a Timeline means: the numbers of "rehearse run" (schema rehearse.result.v1).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "sim/base/json_change.h"
#include "sim/base/quantity.h"
#include "sim/engine/simulate.h"
#include "sim/engine/timeline.h"
#include "sim/schedule/memory.h"
#include "sim/schedule/schedule.h"

namespace rehearse {

// Means over ranks; the three sum to the step.
struct Breakdown {
  Seconds compute;                // a compute op runs
  Seconds exposed_communication;  // none does, but a transfer is active
  Seconds idle;                   // neither (waiting for other ranks counts here)
};

// One communicator ("axis"), per rank, mean over ranks.
struct AxisUse {
  std::string name;
  double operations = 0;
  Bytes bytes;      // sum of the collectives' sizes
  Seconds seconds;  // a transfer on this axis is active
  // ... and no compute op runs. Where several axes are exposed at once, each takes an equal share,
  // so that the axes sum to Breakdown::exposed_communication.
  Seconds exposed;
};

// The ranks of one role, where there are several: a stage of a pipeline.
struct RoleUse {
  std::string name;
  uint32_t ranks = 0;
  Breakdown breakdown;  // mean over these ranks; idle is mostly the pipeline's bubble
};

struct LinkSummary {
  std::string name;
  std::string kind;
  Bytes bytes;
  BytesPerSecond capacity;
  double utilization = 0;  // bytes / (capacity · step)
  uint32_t count = 1;      // links that each carried this much, this one included
};

// How a collective runs that is not a ring on bare links (collectives/lowering/tuning.h).
struct ChosenCollective {
  std::string axis;
  std::string kind;
  Bytes bytes;
  std::string algorithm;
  std::string protocol;
  uint32_t channels = 0;  // of NCCL; 0 if NCCL is not involved

  friend auto operator<=>(const ChosenCollective&, const ChosenCollective&) = default;
};

// A step time that depends on a seed.
struct SeededStep {
  uint64_t seed = 0;
  Seconds step;
};
// Seeds decide the routes over the network.
struct RouteSpread {
  std::string routing;            // "ecmp with 1 queue pair"
  std::vector<SeededStep> steps;  // the quickest first; one where the scenario fixes the seed
  uint64_t seed = 0;              // whose step the result is: of the (lower) median
  Seconds sprayed;                // the step if traffic were spread over all equal routes
  std::string worst_link;         // the cable with the most to carry; "" if none carries anything
  double worst_share = 0;         // what it carries, over the mean of its bundle's cables
};

// A step on other devices than the best ones of an empty cluster.
struct PlacementSpread {
  double busy = 0;                // share of the devices that others hold; 0: none do
  std::vector<SeededStep> steps;  // of several draws, the quickest first; none if nothing is drawn
  uint64_t seed = 0;              // whose step the result is: of the (lower) median
  Seconds best;                   // the step on the best devices
  std::string best_order;         // how they are taken: "block", "even"
};

// Steps in which a seed decides which experts are busy.
struct ExpertSpread {
  double imbalance = 1;           // of the busiest expert, over an equal share
  std::vector<SeededStep> steps;  // of several seeds, the quickest first; the result's is seed 1
  Seconds even;                   // the step if all experts had as much to do
};

// What a step takes in practice, where it waits for the slowest of many nominally equal devices.
struct TypicalStep {
  Seconds median;
  Seconds low;         // 10 % of clusters are quicker
  Seconds high;        // 10 % are slower
  double slowest = 1;  // times the median device's time, in the median cluster
};

// How near predictions of steps like this one have been to published measurements.
struct Trust {
  std::string like;     // "h100 with llm-foundry"; "" where no row is like this step
  uint32_t rows = 0;    // published
  uint32_t fewest = 0;  // GPUs that they ran on
  uint32_t most = 0;
  double mean_error = 0;  // without signs
  double bias = 0;        // the mean with signs: below 0 if predictions are too quick
};

struct SimulatorCost {
  Seconds wall;
  uint64_t events = 0;
  uint64_t transfers = 0;
  uint64_t classes = 0;  // simulated ranks; equal to the ranks when nothing is folded
  Bytes peak_rss;
  uint64_t packet_hops = 0;  // at fidelity packet: cables that were crossed and played
};

// A software stack by name, and its switches as they are.
struct SwitchUse {
  std::string path;   // "training.kernels"
  std::string value;  // as JSON
  std::string stack;  // what the stack sets, if the scenario says otherwise
};
struct SoftwareUse {
  std::string name;  // "" for none
  std::vector<SwitchUse> switches;
};

struct Result {
  std::string scenario;
  std::string fidelity;
  std::string left_out;  // by that fidelity, in a few words; empty if nothing is known
  uint32_t ranks = 0;
  Seconds step;
  Breakdown breakdown;
  Seconds communication;        // a transfer is active, mean over ranks
  double overlap_fraction = 0;  // share of it hidden behind compute; 0 without communication
  std::vector<AxisUse> axes;    // in the order of the schedule's communicators
  std::vector<RoleUse> roles;   // in the order of the schedule; none if there is only one
  double model_flops_utilization = 0;
  double hardware_flops_utilization = 0;
  FlopsPerSecond peak;     // of one device, what the utilisations refer to
  std::string peak_dtype;  // "bf16": whose peak that is
  double tokens_per_second = 0;
  std::string token_name = "tokens";  // as in the schedule
  // Of the rank with the least room on its device: the fullest, if all devices have the same size.
  MemoryUse memory;
  Bytes memory_capacity;  // of that rank's device; 0 when unknown
  Bytes memory_reserve;   // about what libraries and the driver also take; 0 if unknown
  // What the allocator has reserved beyond arrays when it has reserved most; 0 if not played.
  Bytes memory_idle;
  double memory_headroom = 0;  // share of the capacity that must stay free
  uint32_t memory_rank = 0;    // within its job, if there are several
  std::string tightest_rank;   // its name, "" if all devices have the same size
  // Of arrays, driver and libraries.
  Bytes MemoryNeeded() const { return memory.Total() + memory_reserve; }
  // Those in use, busiest first (utilization, then order). Links that behave alike are one entry if
  // the step was folded, else one entry each.
  std::vector<LinkSummary> links;
  std::vector<ChosenCollective> chosen;      // none if all collectives are rings on bare links
  std::optional<RouteSpread> routes;         // nothing where no seed decides
  std::optional<PlacementSpread> placement;  // nothing on all devices, or not asked for
  std::optional<ExpertSpread> experts;       // nothing if no seed decides which are busy
  std::optional<TypicalStep> typical;        // nothing if it is not known how far devices differ
  std::optional<Trust> trust;                // nothing for steps of measured devices, and of jobs
  SimulatorCost simulator;
  std::string timeline_hash;
  std::vector<JsonChange> changes;  // of the scenario as it was written; the caller's
  SoftwareUse software;             // the caller's
  std::vector<std::string> notes;   // what a reader of the numbers must know; the caller's
};

// The type that most of the arithmetic is done in; nothing without arithmetic.
std::optional<DType> MainDType(const Schedule& schedule);

// How long a step takes. If ranks update before they know the norm of all gradients
// (kAdamIfClipped in sim/schedule/kernel.h), each begins its next step right after its update, and
// what validates this runs beside it: then it is the time from the first op to the update of the
// rank for which that is longest (the "cost" of Qi et al. 2023, arXiv 2401.10241, section 5.3).
// Otherwise the timeline's.
Seconds StepOf(const Schedule& schedule, const Timeline& timeline);

// Everything that follows from schedule and timeline; `peak` is one device's rate. The caller fills
// scenario, fidelity, left_out, memory where devices differ, its capacity and rank, chosen and
// simulator. A collective is active from begin to end; one on a communicator of one rank, or that
// takes no time, counts as nothing. Cost: linear in the spans (after a sort per rank).
Result Summarize(const Schedule& schedule, const Timeline& timeline, FlopsPerSecond peak);
struct SummaryOptions {
  bool hash = true;  // Result::timeline_hash
  // If the timeline has repeated ops only once, by role: how much later than the one before each
  // copy of a repeat would be. Its step and its links are those of the whole. While the repeated
  // ops and the copy before them are under way, nothing else is: not from the first one's `ready`
  // until as much later.
  std::vector<std::vector<Time>> periods = {};
  // Those of the timeline, if it lacks them. Not of a schedule that validates updates later.
  const SpansByRank* spans = nullptr;
};
// The same, if it is known what memory is needed.
Result Summarize(const Schedule& schedule, const Timeline& timeline, FlopsPerSecond peak,
                 const MemoryUse& memory, const SummaryOptions& options = {});
// Whether ranks update before they know the norm of all gradients.
bool ValidatesUpdatesLater(const Schedule& schedule);

// The JSON object rehearse.result.v1: what Result has, times in seconds and sizes in bytes, each
// number under the same key in every version. "changes", "notes", "left_out" and "collectives" only
// if there are any. The "count" of a link says how many links each carried this much, this one
// included; memory is that of its "rank", the one with the least room on its device. `rehearse run`
// adds the scenario under "given"; older files lack it.
nlohmann::ordered_json ToJson(const Result& result);

nlohmann::ordered_json ToJson(const RouteSpread& spread);      // what stands under "routes"
nlohmann::ordered_json ToJson(const PlacementSpread& spread);  // "placement"
nlohmann::ordered_json ToJson(const ExpertSpread& spread);     // ... under "experts"

// The dotted paths of its numbers, where "*" is the name of an axis: "by_axis.*.seconds".
std::vector<std::string> NumbersOfResults();

// What a person reads: step time, breakdown, per-axis communication and its exposed part,
// utilisation with the peak it refers to, memory beside the capacity, the five busiest links, the
// simulator's cost. Ends with a newline. `color` uses ANSI colours.
std::string ToText(const Result& result, bool color);
// Its two parts: the step's own, down to the memory, and from the links on, which also cover what
// ran beside it.
std::string StepToText(const Result& result, bool color);
std::string MachineToText(const Result& result, bool color);

// How much of the step depends on which experts are busy; "" if no seed decides that.
std::string ExpertLine(const Result& result);
// How much of the step depends on a hash, what sprayed routes would take, what collisions cost.
// None if no seed decides.
std::vector<std::string> RouteLines(const Result& result);
// What the devices that the step has cost it, beside the best ones.
std::vector<std::string> PlacementLines(const Result& result);

}  // namespace rehearse
