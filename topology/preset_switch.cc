// A plain switch: the machine of textbooks, for teaching and for checking closed forms by hand.
// Its figures are round numbers, not those of a product.
#include <fmt/format.h>

#include "topology/preset_rows.h"

namespace rehearse {
namespace {

ClusterLink Cable() {
  ClusterLink link;
  link.kind = LinkKind::kNetwork;
  link.bandwidth = BytesPerSecond(25e9);
  link.latency = Seconds(1e-6);
  return link;
}

std::unique_ptr<Cluster> Build(const DeviceSpec& device,
                               const std::map<std::string, uint32_t>& parameters) {
  auto cluster = std::make_unique<Cluster>("switch");
  const uint32_t spec = cluster->AddDeviceSpec(device);
  const auto hub = cluster->AddVertex({"switch", VertexKind::kSwitch, "", 0});
  for (uint32_t i = 0; i < parameters.at("devices"); ++i) {
    const std::string node = fmt::format("node{}", i);
    const auto gpu = cluster->AddVertex({node + "/gpu0", VertexKind::kDevice, node, spec});
    cluster->AddLinks(gpu, hub, Cable());
  }
  cluster->AddNote(
      "Not a real machine: one device a node, each on a 25 GB/s, 1 us cable to one switch.");
  cluster->Finish();
  return cluster;
}

}  // namespace

ClusterPreset PlainSwitch() {
  return {.name = "switch",
          .summary = "single devices on one switch, for teaching and checking",
          .source = "round numbers, not a product",
          .device = "a100-40g",
          .parameters = {{"devices", 1, 65536, 8, "devices, one a node"}},
          .build = Build};
}

}  // namespace rehearse
