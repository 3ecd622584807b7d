// Small machines on fabrics of any kind, whose links are round numbers, for tests.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/error.h"
#include "topology/fabrics/router.h"
#include "topology/presets/machine.h"

namespace rehearse {

inline const FabricRouting kEcmp = {RouteChoice::kEcmp, std::nullopt, std::nullopt};
inline const FabricRouting kMinimal = {RouteChoice::kMinimal, std::nullopt, std::nullopt};

inline ClusterLink Cable(double gigabytes = 10, double microseconds = 1) {
  return MakeLink(LinkKind::kNetwork, BytesPerSecond(gigabytes * 1e9), 1,
                  Seconds(microseconds * 1e-6));
}

// One device per machine, cabled at 100 GB/s so that the fabric binds.
inline std::unique_ptr<Cluster> Single(const FabricSpec& fabric, uint32_t nodes) {
  NodeSpec node;
  node.cable = Cable(100);
  return BuildMachine({"test", node, nodes, fabric, {}}, FindDevice("a100-40g"));
}

// `gpus` devices and as many NICs per machine, each pair on a PCIe switch of its own, all devices
// on an NVSwitch.
inline std::unique_ptr<Cluster> Boxes(const FabricSpec& fabric, uint32_t nodes, uint32_t gpus) {
  Host host;
  host.switches = gpus;
  host.nics = gpus;
  host.device = host.root_port = host.nic = Cable(100);
  NodeSpec node;
  node.devices = gpus;
  node.nvswitch = Cable(300, 0.5);
  node.host = host;
  node.cable = Cable(10);
  return BuildMachine({"test", node, nodes, fabric, {}}, FindDevice("a100-40g"));
}

inline std::vector<std::string> Names(const Cluster& cluster, const Route& route) {
  std::vector<std::string> names;
  for (const uint32_t link : route.links) names.push_back(cluster.LinkName(link));
  return names;
}

template <typename Function>
std::string ErrorOf(Function function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

inline ClosSpec ClosOf(uint32_t radix, uint32_t levels = 0, double oversubscription = 1,
                       bool rails = false) {
  ClosSpec spec;
  spec.radix = radix;
  spec.levels = levels;
  spec.oversubscription = oversubscription;
  spec.rails = rails;
  spec.cable = Cable();
  return spec;
}

// Groups of 4 switches with 2 machines each, and `cables` global cables of 10 GB/s per group.
inline DragonflySpec DragonflyOf(uint32_t cables) {
  DragonflySpec spec;
  spec.local = {{4, Cable(40)}};
  spec.machines_per_switch = 2;
  spec.global_cables = cables;
  spec.global = Cable(10);
  return spec;
}

}  // namespace rehearse
