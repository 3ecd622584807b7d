#include "topology/fabrics/structure.h"

#include <algorithm>
#include <utility>

namespace rehearse {

uint32_t ClusterStructure::LinksNow() const {
  if (link_now.empty()) return link_count;
  return static_cast<uint32_t>(link_now.size() -
                               std::count(link_now.begin(), link_now.end(), kGone));
}

void SetStructure(ClusterBuilder& cluster, std::shared_ptr<const ClusterStructure> structure,
                  std::vector<Seconds> machine_latencies) {
  CHECK(structure != nullptr);
  CHECK_EQ(structure->device_count(), cluster.device_count());
  CHECK_EQ(structure->LinksNow(), cluster.link_count());
  const bool is_whole = structure->link_now.empty();
  cluster.set_structure(std::move(structure), std::move(machine_latencies), is_whole);
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
