#include "scenarios/diagnosing/other_measurements.h"

#include <cmath>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/units.h"

namespace rehearse {
namespace {

using enum CollectiveKind;

struct OtherGroup {
  const char* where;
  std::vector<uint32_t> ranks;
};

// All ranks, and parts of them that leave out what may be broken: the first box alone, two GPUs of
// others' NICs, the boxes without the first.
std::vector<OtherGroup> OtherGroupsOf(const CollectiveRun& run) {
  const std::vector<uint32_t>& all = run.trials.front().groups.front();
  std::vector<std::vector<uint32_t>> boxes;
  std::map<uint32_t, size_t> box_of;
  for (const uint32_t rank : all) {
    const auto [at, is_new] = box_of.emplace(run.cluster->NodeIndexOf(rank), boxes.size());
    if (is_new) boxes.emplace_back();
    boxes[at->second].push_back(rank);
  }
  std::vector<OtherGroup> groups = {{"", all}};
  if (boxes.size() == 1) return groups;
  if (boxes.front().size() > 1) groups.push_back({" within the first box", boxes.front()});
  if (boxes.front().size() > 1)
    groups.push_back(
        {" between the last GPUs of two boxes", {boxes.front().back(), boxes[1].back()}});
  if (boxes.size() == 2) return groups;
  const auto joined = [&](size_t first, size_t last) {
    std::vector<uint32_t> ranks;
    for (size_t box = first; box < last; ++box)
      ranks.insert(ranks.end(), boxes[box].begin(), boxes[box].end());
    return ranks;
  };
  groups.push_back({" without the box that is suspected", joined(1, boxes.size())});
  if (boxes.size() > 3)
    groups.push_back({" on the second half of the boxes", joined(boxes.size() / 2, boxes.size())});
  return groups;
}

struct OtherKind {
  CollectiveKind kind;
  double bytes;
};
constexpr OtherKind kOtherKinds[] = {{kAllReduce, 1 << 30}, {kAllReduce, 8},
                                     {kAllReduce, 1 << 20}, {kAllToAll, 1 << 28},
                                     {kAllGather, 1 << 30}, {kBroadcast, 1 << 28}};

// On its ranks, if they are not all.
Seconds TimeOn(CollectiveRun run, const OtherMeasurement& other) {
  if (!other.ranks.empty()) run.trials.front().groups = {other.ranks};
  return Seconds(std::exp(SimulateLogTimes(run, {{other.bytes}}).front()));
}

}  // namespace

std::vector<OtherMeasurement> OtherMeasurementsOf(const CollectiveRun& run) {
  std::vector<OtherMeasurement> others;
  for (const OtherGroup& group : OtherGroupsOf(run)) {
    const bool is_all = group.where[0] == '\0';
    for (const OtherKind& other : kOtherKinds) {
      // Parts of the machine with one kind, which shows where the fault is.
      if (!is_all && (other.kind != kAllReduce || other.bytes < 1 << 30)) continue;
      OtherMeasurement measurement;
      const Bytes bytes(other.bytes);
      measurement.bytes = bytes;
      measurement.what = fmt::format("{} of {}{}", Name(other.kind), Print(bytes), group.where);
      const NcclTest* const test = FindNcclTest(other.kind);
      CHECK(test != nullptr);
      measurement.command = fmt::format("{} -b {:.0f} -e {:.0f} on {} GPUs", test->program,
                                        other.bytes, other.bytes, group.ranks.size());
      measurement.run = run;
      Trial trial = run.trials.front();
      trial.kind = other.kind;
      trial.groups = {run.trials.front().groups.front()};
      trial.root = 0;
      measurement.run.trials = {trial};
      if (!is_all) measurement.ranks = group.ranks;
      try {
        measurement.expected = TimeOn(measurement.run, measurement);
      } catch (const Error&) {
        continue;  // a pinned algorithm cannot do the kind
      }
      others.push_back(std::move(measurement));
    }
  }
  return others;
}

Seconds TimeWith(const SuspectedCause& suspect, const OtherMeasurement& other) {
  try {
    // What cannot be changed there is as it should be.
    CollectiveRun run = suspect.cause->change(other.run, suspect.strength).value_or(other.run);
    if (suspect.also != nullptr)
      run = suspect.also->change(run, suspect.also_strength).value_or(run);
    return TimeOn(std::move(run), other);
  } catch (const Error&) {
    return Seconds(0);
  }
}

}  // namespace rehearse
