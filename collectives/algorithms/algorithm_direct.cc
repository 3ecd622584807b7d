// Direct: everybody sends to everybody at once.
//   reduce-scatter  chunk j goes to position j, which adds: 1 step
//   all-gather      a member's own chunk goes to all others: 1 step
//   all-reduce      both, 2 steps
//   all-to-all      block j goes to position j: 1 step; the sizes may differ (grouped sends)
//   T = steps·(α + n/(p·b)), b the rate of each of the p(p-1) messages while all of them move: that
//   of a link of its own on a full mesh, a (p-1)-th of its port on a switch
//   send-receive    to the next member: 1 step, T = α + n/b
#include <fmt/format.h>

#include "collectives/algorithms/algorithm_rows.h"
#include "sim/base/error.h"
#include "topology/fabrics/structure.h"

namespace rehearse {
namespace {

bool IsAllToAll(const StepInput& input) { return input.kind == CollectiveKind::kAllToAll; }
bool IsShift(const StepInput& input) { return input.kind == CollectiveKind::kSendReceive; }

uint32_t DirectChunks(const StepInput& input) {
  if (IsShift(input)) return 2;
  return IsAllToAll(input) ? 2 * input.ranks() : input.ranks();
}

void DirectSteps(const StepInput& input, uint32_t position, std::vector<Leg>* legs) {
  const uint32_t p = input.ranks();
  const auto chunk = [](uint32_t number) {
    return Chunks{.base = number, .cycle = 1, .first = 0, .count = 1};
  };
  if (IsShift(input)) {
    for (const uint32_t from : {position, (position + p - 1) % p}) {
      legs->push_back({0, 1, from, (from + 1) % p, Combine::kCopy, chunk(0), chunk(1)});
    }
    return;
  }
  if (IsAllToAll(input)) {
    legs->push_back(
        {0, 1, position, position, Combine::kCopy, chunk(position), chunk(p + position)});
  }
  uint32_t step = 0;
  const auto exchange = [&](Combine combine) {
    for (uint32_t distance = 1; distance < p; ++distance) {
      const uint32_t to = (position + distance) % p;
      const uint32_t from = (position + p - distance) % p;
      if (IsAllToAll(input)) {
        legs->push_back({step, 1, position, to, combine, chunk(to), chunk(p + position)});
        legs->push_back({step, 1, from, position, combine, chunk(position), chunk(p + from)});
      } else {
        const bool adds = combine == Combine::kAdd;
        legs->push_back(InPlace(step, 1, position, to, combine, chunk(adds ? to : position)));
        legs->push_back(InPlace(step, 1, from, position, combine, chunk(adds ? position : from)));
      }
    }
    ++step;
  };
  const bool reduces =
      input.kind == CollectiveKind::kAllReduce || input.kind == CollectiveKind::kReduceScatter;
  if (reduces) exchange(Combine::kAdd);
  if (input.kind != CollectiveKind::kReduceScatter) exchange(Combine::kCopy);
}

// Whether the way leads over routers of other members, as on a torus.
bool IsOverOthersRouters(const Cluster& cluster, const Route& route) {
  const Fabric* fabric = FabricOf(cluster);
  return route.crosses_nodes && route.links.size() > 1 && fabric != nullptr &&
         std::holds_alternative<Torus>(fabric->kind);
}

// All-reduces this way are for members that reach each other within a machine, over switches, or
// over links of their own.
std::vector<Part> ArrangeDirect(const GroupOnMachine& group) {
  const bool is_light =
      group.kind == CollectiveKind::kAllToAll || group.kind == CollectiveKind::kSendReceive;
  for (const uint32_t a : group.ranks) {
    if (is_light) break;
    for (const uint32_t b : group.ranks) {
      if (a == b) continue;
      if (!IsOverOthersRouters(group.router.cluster(), group.router.Between(a, b))) continue;
      throw Error(
          fmt::format("algorithm \"direct\" cannot do {} here: it needs a full mesh or switches, "
                      "but ranks {} and {} reach each other over the routers of others; expected "
                      "another, such as \"bucket\", or \"auto\"",
                      Name(group.kind), a, b));
    }
  }
  return {AsTheyAre(group)};
}

Seconds DirectClosedForm(const StepInput& input, Bytes bytes, std::span<const Pace> paces) {
  const Bytes message = IsShift(input) ? bytes : bytes / input.ranks();
  Seconds time = RoundTime(PaceOf(paces, 0), 1, message);
  if (input.kind == CollectiveKind::kAllReduce) time += RoundTime(PaceOf(paces, 1), 1, message);
  return time;
}

}  // namespace

Algorithm DirectRow() {
  using enum CollectiveKind;
  return {AlgorithmId::kDirect,
          "everybody sends to everybody at once",
          {kAllReduce, kAllGather, kReduceScatter, kAllToAll, kSendReceive},
          {},
          ArrangeDirect,
          DirectChunks,
          nullptr,
          DirectSteps,
          NoSwitches,
          DirectClosedForm};
}

}  // namespace rehearse
