// Software stacks by name: the switches that a framework of some year sets, so that a scenario need
// not give them.
//
//   "software": "fsdp-eager"
//
// A stack sets what its documents say its defaults are, never what a measurement would want; each
// switch has its source. It is the value of a path of the scenario where the scenario itself says
// nothing; what the scenario says counts. Switches of a strategy are those of its kind only.
#pragma once

#include <string>
#include <vector>

#include "sim/base/json_document.h"
#include "sim/base/json_shape.h"
#include "sim/report/result.h"

namespace rehearse {

struct SoftwareSwitch {
  std::string path;   // "training.kernels"
  std::string value;  // as JSON
  std::string kind;   // of strategy (or schedule of a pipeline) that has it; "" for all
  std::string source;
  uint32_t least_capability = 0;  // of the device (DeviceSpec::compute_capability); the last counts
  std::vector<std::string> products = {};  // of the training; empty: any
};

struct SoftwareStack {
  std::string name;
  std::string summary;  // what it is, and of which year
  std::vector<SoftwareSwitch> switches;
};
const std::vector<SoftwareStack>& SoftwareStacks();  // sorted by name
JsonShape SoftwareShape();                           // of the scenario's key

// Gives the scenario in the document what its "software" sets, on devices of that compute
// capability; nothing where it names none. Throws Error for an unknown one.
void ApplySoftware(JsonDocument* scenario, uint32_t capability);

// What a scenario that has been given its software says: of each switch that applies to it.
SoftwareUse SoftwareOf(const nlohmann::json& scenario, uint32_t capability);

}  // namespace rehearse
