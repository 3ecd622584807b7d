// Clusters known by name. A preset is a row of a table: a name, one line of description, where its
// figures come from, its parameters with ranges and defaults, and the function that describes it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "topology/presets/machine.h"
#include "topology/presets/machine_changes.h"

namespace rehearse {

// A million devices, at four per machine; BuildMachine refuses what is too large in other ways.
inline constexpr uint32_t kMostNodes = 1u << 18;

struct PresetParameter {
  std::string name;  // "nodes"
  uint32_t minimum = 1;
  uint32_t maximum = 65536;
  uint32_t standard = 1;
  std::string meaning;
};

struct ClusterPreset {
  std::string name;
  std::string summary;
  std::string source;
  std::string device;  // a known device, which its nodes have unless the user names another
  std::vector<PresetParameter> parameters;
  // Gets every parameter, in range.
  MachineSpec (*describe)(const std::map<std::string, uint32_t>& parameters);
};

const std::vector<ClusterPreset>& ClusterPresets();  // sorted by name

// Throws Error (with `place` in front and "did you mean") if no preset has that name.
const ClusterPreset& FindPreset(const std::string& name, const Place& place);

// The machine that a preset describes; missing parameters take their standard values. Throws Error
// (with `place` in front, "did you mean" for names) for unknown presets or parameters, values out
// of range and changes that do not suit it.
MachineSpec DescribePreset(const std::string& name,
                           const std::map<std::string, uint32_t>& parameters, const Place& place,
                           const std::optional<MachineChanges>& changes = std::nullopt);

// Builds it; missing parameters take their standard values; `device` replaces all its
// devices. Throws Error as DescribePreset() does.
std::unique_ptr<Cluster> BuildPreset(const std::string& name,
                                     const std::map<std::string, uint32_t>& parameters,
                                     const Place& place, const DeviceSpec* device = nullptr,
                                     const std::optional<MachineChanges>& changes = std::nullopt);

}  // namespace rehearse
