// AMD's platforms of 8 accelerators.
#include "topology/presets/link_rows.h"
#include "topology/presets/node_amd.h"
#include "topology/presets/preset_rows.h"

namespace rehearse {
namespace {

using Parameters = std::map<std::string, uint32_t>;

MachineSpec EightOnRails(const char* name, const NodeSpec& node, const Parameters& parameters) {
  ClosSpec fabric;
  fabric.radix = 64;
  fabric.rails = true;
  fabric.cable = SwitchCable(400, kInfiniBandEfficiency);
  return {name,
          node,
          parameters.at("nodes"),
          fabric,
          {"The fabric is assumed: rails on a fat tree of 400 Gb/s without oversubscription."}};
}
MachineSpec Mi300x(const Parameters& parameters) {
  return EightOnRails("mi300x", Mi300xNode(), parameters);
}
MachineSpec Mi355x(const Parameters& parameters) {
  return EightOnRails("mi355x", Mi355xNode(), parameters);
}

}  // namespace

std::vector<ClusterPreset> AmdPresets() {
  return {
      {"mi300x",
       "AMD Instinct MI300X platform: 8 MI300X joined all to all, 8 NICs of 400 Gb/s",
       "AMD Instinct MI300X platform data sheet; efficiency: openxla/xla (ROCm/xla d02afb4fc18a)",
       "mi300x",
       {Nodes("boxes of 8 GPUs")},
       Mi300x},
      {"mi355x",
       "AMD Instinct MI355X platform: 8 MI355X joined all to all, 8 NICs of 400 Gb/s",
       "AMD Instinct MI355X platform data sheet; efficiency: "
       "oci-ai-incubations/oci-gpu-quickstarts",
       "mi355x",
       {Nodes("boxes of 8 GPUs")},
       Mi355x},
  };
}

}  // namespace rehearse
