#include "collectives/algorithms/switch_tree.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "sim/base/error.h"

namespace rehearse {
namespace {

constexpr VertexId kNowhere = static_cast<VertexId>(-1);

VertexId HeadOf(const Cluster& cluster, uint32_t link) { return cluster.TargetOf(link); }

VertexId FirstOf(VertexKind kind, const Route& route, const Cluster& cluster) {
  for (const uint32_t link : route.links) {
    const VertexId head = HeadOf(cluster, link);
    if (cluster.KindOfVertex(head) == kind) return head;
  }
  return kNowhere;
}

// The part of the route up to the root, or from it on; its latency is negative if the root is not
// on it. Links that are already taken are left out.
SwitchWay Cut(const Route& route, VertexId root, bool upwards, const Cluster& cluster,
              std::set<uint32_t>* taken) {
  SwitchWay way;
  bool met = false;
  for (const uint32_t link : route.links) {
    if (upwards != met) {
      way.latency += cluster.Link(link).latency;
      if (taken->insert(link).second) way.links.push_back(link);
    }
    met = met || HeadOf(cluster, link) == root;
  }
  if (!met) way.latency = Seconds(-1);
  way.crosses_nodes = route.crosses_nodes;
  return way;
}

bool Passes(const Route& route, VertexId root, const Cluster& cluster) {
  return std::any_of(route.links.begin(), route.links.end(),
                     [&](uint32_t link) { return HeadOf(cluster, link) == root; });
}

}  // namespace

bool MeetAtSwitch(Router& router, const std::vector<uint32_t>& ranks, VertexKind kind) {
  const Cluster& cluster = router.cluster();
  const VertexId root = FirstOf(kind, router.Between(ranks[0], ranks[1]), cluster);
  if (root == kNowhere) return false;
  for (size_t i = 0; i < ranks.size(); ++i) {
    const uint32_t other = ranks[i == 0 ? 1 : 0];
    if (!Passes(router.Between(ranks[i], other), root, cluster) ||
        !Passes(router.Between(other, ranks[i]), root, cluster))
      return false;
  }
  return true;
}

SwitchTree FindSwitchTree(Router& router, const std::vector<uint32_t>& ranks, VertexKind kind,
                          const char* algorithm) {
  const Cluster& cluster = router.cluster();
  const auto fail = [&](uint32_t a, uint32_t b) {
    throw Error(fmt::format(
        "algorithm \"{}\" needs {} that adds: the way from rank {} to rank {} passes through none",
        algorithm, kind == VertexKind::kNvSwitch ? "an NVSwitch" : "a network switch", a, b));
  };
  const VertexId root = FirstOf(kind, router.Between(ranks[0], ranks[1]), cluster);
  if (root == kNowhere) fail(ranks[0], ranks[1]);
  SwitchTree tree;
  std::set<uint32_t> taken;
  for (size_t i = 0; i < ranks.size(); ++i) {
    const uint32_t other = ranks[i == 0 ? 1 : 0];
    tree.up.push_back(Cut(router.Between(ranks[i], other), root, true, cluster, &taken));
    tree.down.push_back(Cut(router.Between(other, ranks[i]), root, false, cluster, &taken));
    if (tree.up.back().latency < Seconds(0)) fail(ranks[i], other);
    if (tree.down.back().latency < Seconds(0)) fail(other, ranks[i]);
  }
  return tree;
}

}  // namespace rehearse
