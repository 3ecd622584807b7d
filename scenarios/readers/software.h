// Software stacks by name: the switches that a framework of a certain year sets, so that a scenario
// need not give them.
//
//   "software": "fsdp-eager"
//
// A stack sets what its documentation says its defaults are, never what would fit a measurement;
// each switch has its source. It gives a path of the scenario its value only if the scenario itself
// does not. Switches of a strategy are only for its kind.
#pragma once

#include <string>
#include <vector>

#include "sim/base/json_document.h"
#include "sim/base/json_shape.h"
#include "sim/report/result.h"

namespace rehearse {

struct SoftwareSwitch {
  std::string path;                // "training.kernels"
  std::string value;               // as JSON
  std::vector<std::string> kinds;  // of strategies (or pipeline schedules) that have it; none: all
  std::string source;
  uint32_t least_capability =
      0;  // of the device (DeviceSpec::compute_capability); the last one counts
  std::vector<std::string> products = {};  // of the training; empty: any
  bool of_stages = false;                  // only where there are several stages
};

struct SoftwareStack {
  std::string name;
  std::string summary;  // what it is, and its year
  std::vector<SoftwareSwitch> switches;
};
const std::vector<SoftwareStack>& SoftwareStacks();  // sorted by name
JsonShape SoftwareShape();                           // of the scenario's key

// Gives the scenario in the document what its "software" sets on devices of this compute
// capability; does nothing if it names none. Throws Error for an unknown one.
void ApplySoftware(JsonDocument* scenario, uint32_t capability);

// The value of each switch that applies to a scenario whose software has been applied.
SoftwareUse SoftwareOf(const nlohmann::json& scenario, uint32_t capability);

}  // namespace rehearse
