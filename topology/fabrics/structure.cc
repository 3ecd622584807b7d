#include "topology/fabrics/structure.h"

#include <algorithm>
#include <utility>

namespace rehearse {

uint32_t ClusterStructure::LinksNow() const {
  if (link_now.empty()) return link_count;
  return static_cast<uint32_t>(link_now.size() -
                               std::count(link_now.begin(), link_now.end(), kGone));
}

namespace {

// A fabric of one switch has none.
Trunks TrunksOf(const ClusterStructure& structure, const ClusterBuilder& cluster) {
  Trunks trunks;
  if (!structure.fabric) return trunks;
  const uint32_t count = TrunkCount(*structure.fabric);
  trunks.ends.reserve(count);
  trunks.begin.reserve(size_t{count} + 1);
  for (uint32_t trunk = 0; trunk < count; ++trunk) {
    Trunks::Ends ends;
    for (const uint32_t drawn : CablesOfTrunk(*structure.fabric, trunk)) {
      const uint32_t link = structure.LinkNow(drawn);
      if (link == ClusterStructure::kGone) continue;
      if (trunks.cables.size() == trunks.begin.back()) ends = cluster.EndsOf(link);
      trunks.cables.push_back(link);
    }
    if (const auto hubs = HubsOfTrunk(*structure.fabric, trunk)) {
      const auto first = static_cast<uint32_t>(structure.fabric->first_switch);
      ends = {first + hubs->first, first + hubs->second};
    }
    trunks.ends.push_back(ends);
    trunks.begin.push_back(static_cast<uint32_t>(trunks.cables.size()));
  }
  return trunks;
}

}  // namespace

void SetStructure(ClusterBuilder& cluster, std::shared_ptr<const ClusterStructure> structure) {
  CHECK(structure != nullptr);
  CHECK_EQ(structure->device_count(), cluster.device_count());
  CHECK_EQ(structure->LinksNow(), cluster.link_count());
  const bool is_whole = structure->link_now.empty();
  Trunks trunks = TrunksOf(*structure, cluster);
  cluster.set_structure(std::move(structure), std::move(trunks), is_whole);
}

const Fabric* FabricOf(const Cluster& cluster) {
  const ClusterStructure* structure = cluster.structure().get();
  return structure != nullptr && structure->fabric ? &*structure->fabric : nullptr;
}

const LinkFigures& FiguresForRoutes(const Cluster& cluster, uint32_t link) {
  return (*cluster.wiring()->drawn_figures)[link];
}

ClusterStructure WithoutLinks(const ClusterStructure& structure, const std::vector<bool>& gone) {
  ClusterStructure rest = structure;
  if (std::find(gone.begin(), gone.end(), true) == gone.end()) return rest;
  rest.link_now.assign(structure.link_count, ClusterStructure::kGone);
  uint32_t next = 0;  // links keep their order
  for (uint32_t drawn = 0; drawn < structure.link_count; ++drawn) {
    const uint32_t now = structure.LinkNow(drawn);
    if (now != ClusterStructure::kGone && !gone[now]) rest.link_now[drawn] = next++;
  }
  return rest;
}

}  // namespace rehearse
