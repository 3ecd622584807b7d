// The rows of the table of presets, in preset_*.cc, gathered in presets.cc; and what they share.
#pragma once

#include <vector>

#include "topology/presets/presets.h"

namespace rehearse {

std::vector<ClusterPreset> NvidiaPresets();  // DGX boxes, Selene, NVL72
std::vector<ClusterPreset> AmdPresets();     // boxes of MI300X, MI355X
std::vector<ClusterPreset> CloudPresets();   // AWS, Azure, Google
std::vector<ClusterPreset>
SupercomputerPresets();                     // Perlmutter, Leonardo, Alps, Frontier, Piz Daint
std::vector<ClusterPreset> AtpPresets();    // the interconnects of the ATP paper
std::vector<ClusterPreset> SmallPresets();  // single boxes, CPUs, a plain switch

inline PresetParameter Nodes(const char* meaning, uint32_t standard = 1) {
  return {"nodes", 1, kMostNodes, standard, meaning};
}

}  // namespace rehearse
