#include "scenarios/playing/far_from_bound.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "collectives/algorithms/algorithm.h"
#include "collectives/lowering/plan_load.h"
#include "collectives/lowering/trial.h"
#include "sim/base/error.h"
#include "sim/base/units.h"
#include "sim/base/visible_text.h"

namespace rehearse {
namespace {

constexpr Bytes kLarge(16.0 * (1 << 20));
constexpr double kFar = 0.5;  // of the bound
constexpr uint32_t kMostBoundedRanks = 1024;
constexpr uint32_t kMostMembers = 256;

// The largest collective of each kind on each communicator.
std::vector<Collective> LargestOf(const Schedule& schedule) {
  std::map<std::tuple<uint32_t, CollectiveKind, AlgorithmId, Protocol>, Collective> largest;
  for (const Role& role : schedule.roles) {
    for (const Op& op : role.ops) {
      const auto* collective = std::get_if<Collective>(&op.work);
      if (collective == nullptr || collective->bytes < kLarge || !collective->pair_bytes.empty() ||
          IsHostCopy(collective->kind) || collective->algorithm == AlgorithmId::kDeepEp)
        continue;
      const auto [known, is_new] =
          largest.try_emplace({collective->communicator.index(), collective->kind,
                               collective->algorithm, collective->protocol},
                              *collective);
      if (!is_new && known->second.bytes < collective->bytes) known->second = *collective;
    }
  }
  std::vector<Collective> collectives;
  for (auto& [key, collective] : largest) collectives.push_back(std::move(collective));
  return collectives;
}

// Whether all devices of each machine that the group is in are its members. If not, data could take
// the NICs and links of others, which the bound allows and no library does.
bool TakesWholeMachines(const std::vector<uint32_t>& ranks, const Cluster& cluster) {
  std::map<uint32_t, int64_t> missing;  // by machine
  for (const uint32_t rank : ranks) missing.try_emplace(cluster.NodeIndexOf(rank), 0);
  for (uint32_t rank = 0; rank < cluster.device_count(); ++rank) {
    const auto machine = missing.find(cluster.NodeIndexOf(rank));
    if (machine != missing.end()) ++machine->second;
  }
  for (const uint32_t rank : ranks) --missing[cluster.NodeIndexOf(rank)];
  return std::all_of(missing.begin(), missing.end(),
                     [](const auto& machine) { return machine.second == 0; });
}

// The quickest of the other algorithms, if it is quicker by a third.
std::optional<std::pair<const Algorithm*, Seconds>> Quicker(const Trial& trial, Bytes bytes,
                                                            Seconds time, Router& router) {
  std::optional<std::pair<const Algorithm*, Seconds>> quickest;
  for (const Algorithm& row : Algorithms()) {
    if (!row.kinds.Has(trial.kind) || row.forwards) continue;
    Trial other = trial;
    other.algorithm = row.id;
    try {
      const Seconds takes = TimeOf(other, bytes, router);
      if (!quickest || takes < quickest->second) quickest.emplace(&row, takes);
    } catch (const Error&) {
      continue;  // it does not suit this group
    }
  }
  if (!quickest || quickest->second > 0.75 * time) return std::nullopt;
  return quickest;
}

std::string CauseOf(const Trial& trial, const FarCollective& far, Router& router, Tuner& tuner) {
  const Cluster& cluster = router.cluster();
  if (const auto quicker = Quicker(trial, far.bytes, far.time, router))
    return fmt::format("algorithm {} would take {}", quicker->first->name(),
                       Print(quicker->second));
  const std::vector<std::string> fallbacks = router.Fallbacks();
  if (!fallbacks.empty()) return fmt::format("links are down: {}", VisibleText(fallbacks.front()));
  ChannelFinder finder(router);
  const Choice choice = ChoiceOf(trial, far.bytes, tuner);
  const GroupPlan plan =
      ArrangePlan(choice, trial.kind, trial.root, trial.groups.front(), router, finder);
  const BindingLink binding = BindingLinkOf(plan, router);
  const ClusterLink link = cluster.Link(binding.link);
  const double busy = binding.bytes * far.bytes / link.Capacity() / far.time;
  if (choice.bandwidth_share < kFar && busy < kFar)
    return fmt::format("protocol {} moves data at {:.0f} % of what the links carry",
                       Name(choice.protocol), 100 * choice.bandwidth_share);
  return fmt::format("its {} load {} with {:.3g} times the size{}",
                     far.algorithm == AlgorithmId::kRing ? "rings" : "ways",
                     VisibleText(cluster.LinkName(binding.link)), binding.bytes,
                     router.IsHashed() ? ", where hashed routes meet" : "");
}

}  // namespace

std::vector<FarCollective> FarFromBound(const Schedule& schedule, const Scenario& scenario) {
  std::vector<FarCollective> found;
  const Cluster& cluster = *scenario.cluster;
  const std::vector<uint32_t>& placement = scenario.jobs.front().placement;
  if (scenario.lists_jobs || placement.size() != schedule.ranks() ||
      cluster.device_count() > kMostBoundedRanks || cluster.measured_collectives() != nullptr)
    return found;
  Router router(cluster, scenario.routing);
  Tuner tuner(router, scenario.lowering.nccl);
  std::map<std::vector<uint32_t>, WireBounds> bounds;  // by members
  for (const Collective& collective : LargestOf(schedule)) {
    const Communicator& communicator = schedule.communicators[collective.communicator.index()];
    if (communicator.size() < 2 || communicator.size() > kMostMembers) continue;
    Trial trial;
    trial.kind = collective.kind;
    trial.groups.emplace_back();
    for (uint32_t member = 0; member < communicator.size(); ++member)
      trial.groups.front().push_back(placement[communicator.Rank(0, member)]);
    if (!TakesWholeMachines(trial.groups.front(), cluster)) continue;
    trial.channels = scenario.lowering.channels;
    trial.nccl = scenario.lowering.nccl;
    trial.algorithm = collective.algorithm;
    trial.protocol = collective.protocol;
    trial.root = collective.root;
    trial.routing = scenario.routing;
    FarCollective far;
    far.axis = communicator.name();
    far.kind = collective.kind;
    far.bytes = collective.bytes;
    far.ranks = communicator.size();
    far.algorithm = ChoiceOf(trial, far.bytes, tuner).algorithm->id;
    far.time = TimeOf(trial, far.bytes, router);
    const std::vector<uint32_t>& ranks = trial.groups.front();
    const auto known = bounds.try_emplace(ranks, cluster, ranks).first;
    far.bound = known->second.Of(far.kind, far.bytes, trial.root, SwitchesOf(far.algorithm));
    if (far.bound.time > kFar * far.time || !(far.bound.time > Seconds(0))) continue;
    far.cause = CauseOf(trial, far, router, tuner);
    found.push_back(std::move(far));
  }
  return found;
}

std::string ToText(const std::vector<FarCollective>& far) {
  if (far.empty()) return "";
  std::string text = "\nFar from what the wires allow, alone on idle devices\n";
  for (const FarCollective& one : far)
    text += fmt::format("  {} {} of {} over {} ranks, {}: {}, {:.0f} % of the bound by {}; {}\n",
                        VisibleText(one.axis), Name(one.kind), Print(one.bytes), one.ranks,
                        Name(one.algorithm), Print(one.time), 100 * (one.bound.time / one.time),
                        VisibleText(one.bound.cut), one.cause);
  return text;
}

}  // namespace rehearse
