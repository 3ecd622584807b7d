// The cluster of a preset of which nothing was changed.
#pragma once

#include <map>
#include <string>

#include "topology/presets/presets.h"

namespace rehearse {

inline MachineSpec StandardMachine(const ClusterPreset& preset) {
  std::map<std::string, uint32_t> parameters;
  for (const PresetParameter& parameter : preset.parameters)
    parameters[parameter.name] = parameter.standard;
  return preset.describe(parameters);
}

}  // namespace rehearse
