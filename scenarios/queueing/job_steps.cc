#include "scenarios/queueing/job_steps.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "scenarios/playing/placement_cost.h"
#include "scenarios/playing/prepare.h"
#include "scenarios/playing/rehearsal.h"
#include "sim/report/job_part.h"
#include "topology/fabrics/structure.h"

namespace rehearse {
namespace {

constexpr uint32_t kMostRepeats = 256;
constexpr double kStepsOfLongest = 2;

// Names things by when they first appear.
class Renamed {
 public:
  uint32_t operator()(std::array<uint32_t, 2> name) {
    return names_.try_emplace(name, static_cast<uint32_t>(names_.size())).first->second;
  }

 private:
  std::map<std::array<uint32_t, 2>, uint32_t> names_;
};

Seconds MeanOf(const std::vector<Seconds>& steps, size_t count) {
  const auto end = steps.begin() + static_cast<ptrdiff_t>(count);
  return std::accumulate(steps.begin(), end, Seconds()) / static_cast<double>(count);
}

}  // namespace

JobSteps::JobSteps(const Scenario& scenario) : scenario_(scenario), arrivals_(*scenario.arrivals) {
  const Cluster& cluster = *scenario.cluster;
  std::vector<uint32_t> in_machine(cluster.node_count());
  for (uint32_t device = 0; device < cluster.device_count(); ++device) {
    machine_of_.push_back(cluster.NodeIndexOf(device));
    place_in_.push_back(in_machine[machine_of_.back()]++);
  }
  const Fabric* const fabric = FabricOf(cluster);
  if (fabric == nullptr) return;
  const ClusterStructure& structure = *cluster.structure();
  if (structure.machines != cluster.node_count()) return;
  std::vector<uint32_t> blocks;
  for (uint32_t machine = 0; machine < structure.machines; ++machine) {
    std::vector<std::array<uint32_t, 2>>& own = blocks_.emplace_back();
    for (uint32_t port = 0; port < structure.ports(); ++port) {
      blocks.clear();
      if (!AppendBlocks(*fabric, SwitchOfPort(*fabric, machine, port), &blocks)) {
        blocks_.clear();
        return;
      }
      for (uint32_t level = 0; level < blocks.size(); ++level)
        own.push_back({level + 1, blocks[level]});
    }
  }
}

const JobRequest& JobSteps::RequestFor(size_t work, uint32_t devices) {
  const auto [known, is_new] = requests_.try_emplace({work, devices});
  if (is_new) known->second = RequestOf(arrivals_.work[work], devices, *scenario_.cluster);
  return known->second;
}

Seconds JobSteps::Best(size_t work, uint32_t devices) {
  const auto [known, is_new] = best_.try_emplace({work, devices});
  if (!is_new) return known->second;
  Scenario alone = scenario_;
  alone.jobs = {RequestFor(work, devices)};
  alone.lists_jobs = true;
  PlacedJob first = {work, alone.jobs.front().placement, {}};
  const Seconds own = Alone(first);
  const BestPlacement best = FindBestPlacement(alone, 0, own);
  simulations_ += best.played;
  return known->second = best.step;
}

Uplinks JobSteps::UplinksOf(const std::vector<uint32_t>& placement) const {
  std::set<uint32_t> machines;
  for (const uint32_t device : placement) machines.insert(machine_of_[device]);
  Uplinks uplinks;
  if (machines.size() < 2) return uplinks;
  for (const uint32_t machine : machines) uplinks.insert({0, machine});
  if (blocks_.empty()) {
    uplinks.insert({1, 0});  // all may meet
    return uplinks;
  }
  const uint32_t first = *machines.begin();
  for (size_t i = 0; i < blocks_[first].size(); ++i) {
    const bool leaves = std::any_of(machines.begin(), machines.end(), [&](uint32_t machine) {
      return blocks_[machine][i] != blocks_[first][i];
    });
    if (!leaves) continue;
    for (const uint32_t machine : machines) uplinks.insert(blocks_[machine][i]);
  }
  return uplinks;
}

JobSteps::Pattern JobSteps::PatternOf(const std::vector<const PlacedJob*>& jobs) const {
  Pattern pattern;
  Renamed machines;
  Renamed blocks;
  for (const PlacedJob* const job : jobs) {
    pattern.push_back(static_cast<uint32_t>(job->work));
    pattern.push_back(static_cast<uint32_t>(job->placement.size()));
    for (const uint32_t device : job->placement) {
      if (!are_alike_ || blocks_.empty()) {
        pattern.push_back(device);
        continue;
      }
      const uint32_t machine = machine_of_[device];
      pattern.push_back(machines({0, machine}));
      pattern.push_back(place_in_[device]);
      for (const std::array<uint32_t, 2>& block : blocks_[machine])
        pattern.push_back(blocks(block));
    }
  }
  return pattern;
}

// The mean step of each, of those that no other has ended before.
std::vector<Seconds> JobSteps::Play(const std::vector<const PlacedJob*>& jobs,
                                    const std::vector<uint32_t>& repeats) {
  ++simulations_;
  Scenario together = scenario_;
  together.lists_jobs = true;
  together.jobs.clear();
  for (size_t i = 0; i < jobs.size(); ++i) {
    JobRequest request =
        RequestFor(jobs[i]->work, static_cast<uint32_t>(jobs[i]->placement.size()));
    request.name = fmt::format("job {}", i);
    request.placement = jobs[i]->placement;
    request.repeat = repeats[i];
    together.jobs.push_back(std::move(request));
  }
  const PlayedScenario played = PlayJobs(together, Prepare(together));
  std::vector<std::vector<Seconds>> steps;
  Seconds first_end(std::numeric_limits<double>::infinity());
  for (const Job& job : played.jobs) {
    steps.push_back(CutOut(job, played.simulation.timeline).steps);
    first_end = std::min(first_end, MeanOf(steps.back(), steps.back().size()) *
                                        static_cast<double>(steps.back().size()));
  }
  std::vector<Seconds> means;
  for (const std::vector<Seconds>& own : steps) {
    size_t count = 0;
    Seconds end;
    while (count < own.size() && (count == 0 || end + own[count] <= first_end)) end += own[count++];
    means.push_back(MeanOf(own, count));
  }
  return means;
}

Seconds JobSteps::Alone(const PlacedJob& job) {
  const auto [known, is_new] = alone_.try_emplace(PatternOf({&job}));
  if (is_new) known->second = Play({&job}, {1}).front();
  return known->second;
}

double JobSteps::BesideOthers(const std::vector<const PlacedJob*>& jobs) {
  if (jobs.size() < 2) return 1;
  Pattern pattern = PatternOf(jobs);
  const auto known = beside_.find(pattern);
  if (known != beside_.end()) return known->second;
  Seconds longest;
  for (const PlacedJob* const job : jobs) longest = std::max(longest, Alone(*job));
  std::vector<uint32_t> repeats;
  for (const PlacedJob* const job : jobs) {
    const double steps = std::ceil(kStepsOfLongest * (longest / Alone(*job)));
    repeats.push_back(static_cast<uint32_t>(std::min<double>(steps, kMostRepeats)));
  }
  const Seconds own = Play(jobs, repeats).front();
  const double beside = std::max(1.0, own / Alone(*jobs.front()));
  beside_.emplace(std::move(pattern), beside);
  return beside;
}

}  // namespace rehearse
