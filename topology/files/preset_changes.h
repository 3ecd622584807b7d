// The keys by which the machines and the fabric of any preset are changed
// (topology/presets/machine_changes.h), beside its parameters:
//
//   {"preset": "dgx-h100", "nodes": 8, "nics": 4, "nic": "200Gbps",
//    "fabric": "rails", "radix": 64, "oversubscription": 2}
//
// The first three may stand in a "node", and the others in the "fabric", as in the compact form
// (topology/files/compact_form.h): {"node": {"nics": 4}, "fabric": {"oversubscription": 2}}. A
// "fabric" with a "kind" replaces the preset's.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/base/json_reader.h"
#include "topology/presets/machine_changes.h"

namespace rehearse {

std::vector<JsonKey> PresetChangeKeys();

// Whether it is one of these keys, or one inside "node" or "fabric": "node.nics".
bool IsPresetChange(const std::string& key);

// Of an object that has these keys among others; nothing if none is there.
std::optional<MachineChanges> ReadPresetChanges(const JsonReader& object);

}  // namespace rehearse
