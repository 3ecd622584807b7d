// How long steps of a queue's jobs take where they are: alone on the best devices, alone where the
// scheduler put them, and beside others whose traffic meets theirs. Every figure is a simulation,
// and each kind of place is simulated once: machines that are alike to the fabric are alike, unless
// something else tells them apart (MachinesAreAlike in scenarios/playing/placement_cost.h).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "scenarios/readers/arrival_options.h"
#include "scenarios/readers/scenario.h"
#include "sim/base/quantity.h"

namespace rehearse {

// Parts of the fabric whose way out a job's traffic takes: {level, number}; machines are level 0.
using Uplinks = std::set<std::array<uint32_t, 2>>;

// A job as it runs.
struct PlacedJob {
  size_t work = 0;                  // position in ArrivalOptions::work
  std::vector<uint32_t> placement;  // rank -> device
  Uplinks uplinks;
};

class JobSteps {
 public:
  // `scenario` has "arrivals". Its jobs do not matter.
  explicit JobSteps(const Scenario& scenario);

  // The best of "block" and "even" on an empty cluster. Throws as PlayScenario() does.
  Seconds Best(size_t work, uint32_t devices);
  // Where it is, without others.
  Seconds Alone(const PlacedJob& job);
  // The first job's step beside the others, over its step alone. They all begin at once, and go on
  // for two steps of the longest, or 256 of their own.
  double BesideOthers(const std::vector<const PlacedJob*>& jobs);

  Uplinks UplinksOf(const std::vector<uint32_t>& placement) const;
  uint64_t simulations() const { return simulations_; }

 private:
  // What placements have in common that take equally long, for as many jobs at once.
  using Pattern = std::vector<uint32_t>;
  Pattern PatternOf(const std::vector<const PlacedJob*>& jobs) const;
  std::vector<Seconds> Play(const std::vector<const PlacedJob*>& jobs,
                            const std::vector<uint32_t>& repeats);
  const JobRequest& RequestFor(size_t work, uint32_t devices);

  const Scenario& scenario_;
  const ArrivalOptions& arrivals_;
  bool are_alike_ = false;  // machines; else places count device by device
  // By machine, what it is cabled to: {level, number}, level by level for each port. Empty where
  // the fabric's ways depend on more.
  std::vector<std::vector<std::array<uint32_t, 2>>> blocks_;
  std::vector<uint32_t> machine_of_;  // by device
  std::vector<uint32_t> place_in_;    // by device, in its machine
  std::map<std::pair<size_t, uint32_t>, JobRequest> requests_;
  std::map<std::pair<size_t, uint32_t>, Seconds> best_;
  std::map<Pattern, Seconds> alone_;
  std::map<Pattern, double> beside_;
  uint64_t simulations_ = 0;
};

}  // namespace rehearse
