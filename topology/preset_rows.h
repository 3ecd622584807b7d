// The rows of the table of presets, in preset_*.cc, gathered in presets.cc; and what they share.
#pragma once

#include <vector>

#include "topology/machine.h"
#include "topology/presets.h"

namespace rehearse {

std::vector<ClusterPreset> NvidiaPresets();  // DGX boxes, Selene, NVL72
std::vector<ClusterPreset> CloudPresets();   // AWS, Azure, Google
std::vector<ClusterPreset>
SupercomputerPresets();                     // Perlmutter, Leonardo, Alps, Frontier, Piz Daint
std::vector<ClusterPreset> AtpPresets();    // the interconnects of the ATP paper
std::vector<ClusterPreset> SmallPresets();  // single boxes, CPUs, a plain switch

// What a preset is, for values of its parameters.
using SpecOf = MachineSpec (*)(const std::map<std::string, uint32_t>& parameters);

// Whose cluster is what `spec` says.
template <SpecOf spec>
std::unique_ptr<Cluster> BuildFrom(const DeviceSpec& device,
                                   const std::map<std::string, uint32_t>& parameters) {
  return BuildMachine(spec(parameters), device);
}

inline PresetParameter Nodes(const char* meaning, uint32_t standard = 1) {
  return {"nodes", 1, 65536, standard, meaning};
}

// One switch that passes everything that its ports do: for fabrics that we do not know, or need not.
inline ClosSpec OneSwitch(const char* name = "fabric") {
  ClosSpec spec;
  spec.radix = 1u << 22;
  spec.levels = 1;
  spec.hub = name;
  return spec;
}

}  // namespace rehearse
