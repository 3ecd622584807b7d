#include "topology/presets/presets.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "sim/base/known_names.h"
#include "topology/presets/preset_rows.h"

namespace rehearse {

const std::vector<ClusterPreset>& ClusterPresets() {
  static const std::vector<ClusterPreset> presets = [] {
    std::vector<ClusterPreset> rows;
    for (auto* family :
         {AmdPresets, NvidiaPresets, CloudPresets, SupercomputerPresets, AtpPresets, SmallPresets})
      for (ClusterPreset& row : family()) rows.push_back(std::move(row));
    std::sort(rows.begin(), rows.end(),
              [](const ClusterPreset& a, const ClusterPreset& b) { return a.name < b.name; });
    return rows;
  }();
  return presets;
}

const ClusterPreset& FindPreset(const std::string& name, const Place& place) {
  std::vector<std::string> names;
  for (const ClusterPreset& preset : ClusterPresets()) {
    if (preset.name == name) return preset;
    names.push_back(preset.name);
  }
  throw Error(place, fmt::format("there is no cluster preset \"{}\"{}", name,
                                 KnownNames(name, names, "rehearse list clusters")));
}

MachineSpec DescribePreset(const std::string& name,
                           const std::map<std::string, uint32_t>& parameters, const Place& place,
                           const std::optional<MachineChanges>& changes) {
  const ClusterPreset& preset = FindPreset(name, place);
  std::map<std::string, uint32_t> values;
  std::vector<std::string> known;
  for (const PresetParameter& parameter : preset.parameters) {
    values[parameter.name] = parameter.standard;
    known.push_back(parameter.name);
  }
  known.insert(known.end(), std::begin(kMachineChangeKeys), std::end(kMachineChangeKeys));
  known.emplace_back("device");
  for (const auto& [key, value] : parameters) {
    const auto name_is_key = [&wanted = key](const PresetParameter& candidate) {
      return candidate.name == wanted;
    };
    const auto parameter =
        std::find_if(preset.parameters.begin(), preset.parameters.end(), name_is_key);
    if (parameter == preset.parameters.end())
      throw Error(place, fmt::format("preset \"{}\" has no parameter \"{}\"{}", name, key,
                                     KnownNames(key, known)));
    if (value < parameter->minimum || value > parameter->maximum)
      throw Error(place, fmt::format("\"{}\" of preset \"{}\" is {}, expected {} to {}", key, name,
                                     value, parameter->minimum, parameter->maximum));
    values[key] = value;
  }
  try {
    MachineSpec machine = preset.describe(values);
    if (changes) ChangeMachine(*changes, &machine);
    return machine;
  } catch (const Error& error) {
    throw Error(place, error.what());
  }
}

std::unique_ptr<Cluster> BuildPreset(const std::string& name,
                                     const std::map<std::string, uint32_t>& parameters,
                                     const Place& place, const DeviceSpec* device,
                                     const std::optional<MachineChanges>& changes) {
  const MachineSpec machine = DescribePreset(name, parameters, place, changes);
  const DeviceSpec& built =
      device != nullptr ? *device : FindDevice(FindPreset(name, place).device);
  if (!changes) return BuildMachine(machine, built);
  try {
    return BuildMachine(machine, built);
  } catch (const Error& error) {
    throw Error(place, error.what());
  }
}

}  // namespace rehearse
