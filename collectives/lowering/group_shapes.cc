#include "collectives/lowering/group_shapes.h"

#include <unordered_map>

#include "topology/fabrics/structure.h"

namespace rehearse {
namespace {

bool HasShapes(const Router& router) {
  if (!router.MachinesAreAlike() || router.IsHashed()) return false;
  const Fabric* fabric = FabricOf(router.cluster());
  if (fabric == nullptr) return false;
  const std::optional<RoutingRule>& rule = router.rule();
  std::vector<uint32_t> blocks;
  return rule && rule->choice == RouteChoice::kSpray && AppendBlocks(*fabric, 0, &blocks);
}

// Numbers things in the order in which they are first met.
class Numbers {
 public:
  uint32_t Of(uint64_t thing) {
    return numbers_.emplace(thing, static_cast<uint32_t>(numbers_.size())).first->second;
  }

 private:
  std::unordered_map<uint64_t, uint32_t> numbers_;
};

}  // namespace

GroupShapes::GroupShapes(const Router& router) : router_(router), are_shared_(HasShapes(router)) {}

uint32_t GroupShapes::Of(const std::vector<uint32_t>& ranks) {
  const auto number = static_cast<uint32_t>(numbers_.size());
  return numbers_.emplace(are_shared_ ? SignatureOf(ranks) : ranks, number).first->second;
}

std::vector<uint32_t> GroupShapes::SignatureOf(const std::vector<uint32_t>& ranks) const {
  const Cluster& cluster = router_.cluster();
  const ClusterStructure& structure = *cluster.structure();
  const Fabric& fabric = *structure.fabric;
  Numbers machines;
  Numbers blocks;
  std::vector<uint32_t> signature;
  signature.reserve(4 * ranks.size());
  uint32_t met = 0;
  std::vector<uint32_t> above;
  for (const uint32_t rank : ranks) {
    const uint32_t machine = rank / structure.devices_per_machine;
    const uint32_t number = machines.Of(machine);
    signature.push_back(number);
    signature.push_back(rank % structure.devices_per_machine);
    signature.push_back(cluster.SpecOf(rank));
    if (number < met) continue;
    ++met;
    uint32_t before = ClusterStructure::kGone;
    for (uint32_t port = 0; port < structure.ports(); ++port) {
      const uint32_t own = SwitchOfPort(fabric, machine, port);
      if (own == before) {  // on the same switch as the port before
        signature.push_back(ClusterStructure::kGone);
        continue;
      }
      before = own;
      above.clear();
      AppendBlocks(fabric, own, &above);
      for (size_t level = 0; level < above.size(); ++level)
        signature.push_back(blocks.Of(uint64_t{level} << 32 | above[level]));
    }
  }
  return signature;
}

}  // namespace rehearse
