#include "sim/engine/contention.h"

#include <algorithm>
#include <map>
#include <span>

#include "sim/base/error.h"

namespace rehearse {
namespace {

// A flow on one link.
struct Crossing {
  TaskTime time;
  uint32_t group = 0;
  uint32_t multiplicity = 1;
  Bytes bytes;
  bool held = false;  // the link is its bottleneck
};

struct Edge {
  Time at;
  const Crossing* crossing = nullptr;
  bool begins = false;
};

std::span<const LinkUse> UsesOf(const Program& program, uint32_t use_set) {
  return {program.uses.data() + program.use_set_begin[use_set],
          program.uses.data() + program.use_set_begin[use_set + 1]};
}

std::span<const LinkUse> WayOf(const Program& program, uint32_t flow,
                               const Bottleneck& bottleneck) {
  const auto own = UsesOf(program, program.flows[flow].use_set);
  const bool has_other =
      !program.alternatives.empty() && program.alternatives[flow] != Program::kNone;
  const bool on_own = std::any_of(own.begin(), own.end(),
                                  [&](const LinkUse& use) { return use.link == bottleneck.link; });
  if (on_own || !has_other || !bottleneck.link.IsSet()) return own;
  return UsesOf(program, program.alternatives[flow]);
}

HoldingLink Describe(LinkId link, const std::vector<Crossing>& crossings) {
  HoldingLink result;
  result.link = link;
  std::map<uint32_t, LinkSharer> sharers;
  std::map<uint32_t, uint32_t> now_by_group;
  std::vector<Edge> edges;
  for (const Crossing& crossing : crossings) {
    LinkSharer& sharer = sharers[crossing.group];
    sharer.group = crossing.group;
    sharer.bytes += crossing.bytes;
    edges.push_back({crossing.time.start, &crossing, true});
    edges.push_back({crossing.time.end, &crossing, false});
  }
  std::stable_sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) {
    return a.at != b.at ? a.at < b.at : a.begins < b.begins;
  });
  uint32_t at_once = 0;
  uint32_t held = 0;
  Time now;
  for (const Edge& edge : edges) {
    if (held > 0) {
      result.time += edge.at - now;
      if (edge.at > now) result.most_at_once = std::max(result.most_at_once, at_once);
    }
    now = edge.at;
    const Crossing& crossing = *edge.crossing;
    uint32_t& of_group = now_by_group[crossing.group];
    if (edge.begins) {
      at_once += crossing.multiplicity;
      of_group += crossing.multiplicity;
      held += crossing.held ? 1 : 0;
      LinkSharer& sharer = sharers[crossing.group];
      sharer.most_at_once = std::max(sharer.most_at_once, of_group);
    } else {
      at_once -= crossing.multiplicity;
      of_group -= crossing.multiplicity;
      held -= crossing.held ? 1 : 0;
    }
  }
  for (const auto& [group, sharer] : sharers) result.sharers.push_back(sharer);
  std::stable_sort(result.sharers.begin(), result.sharers.end(),
                   [](const LinkSharer& a, const LinkSharer& b) { return a.bytes > b.bytes; });
  return result;
}

}  // namespace

std::vector<HoldingLink> FindHoldingLinks(const Program& program, const Simulation& simulation,
                                          const std::vector<uint32_t>& group_of_flow) {
  CHECK_EQ(simulation.bottlenecks.size(), program.flows.size());
  CHECK_EQ(group_of_flow.size(), program.flows.size());
  std::vector<bool> holds(program.links.size());
  for (const Bottleneck& bottleneck : simulation.bottlenecks) {
    if (bottleneck.link.IsSet()) holds[bottleneck.link.index()] = true;
  }
  std::vector<std::vector<Crossing>> crossings(program.links.size());
  for (uint32_t task = 0; task < program.tasks.size(); ++task) {
    if (program.tasks[task].kind != TaskKind::kFlow) continue;
    const uint32_t index = program.tasks[task].payload;
    const Flow& flow = program.flows[index];
    for (const auto& [link, multiplicity] : WayOf(program, index, simulation.bottlenecks[index])) {
      if (!holds[link.index()]) continue;
      crossings[link.index()].push_back({simulation.tasks[task], group_of_flow[index], multiplicity,
                                         Bytes(flow.bytes * flow.steps * multiplicity),
                                         simulation.bottlenecks[index].link == link});
    }
  }
  std::vector<HoldingLink> links;
  for (uint32_t link = 0; link < crossings.size(); ++link) {
    if (holds[link]) links.push_back(Describe(LinkId(link), crossings[link]));
  }
  std::stable_sort(links.begin(), links.end(),
                   [](const HoldingLink& a, const HoldingLink& b) { return a.time > b.time; });
  return links;
}

}  // namespace rehearse
