// A first scenario for a newcomer: any known model, any strategy, any cluster, with comments.
//
// The mesh is one that the model's shapes allow and that fits the devices' memory: the first such
// way to divide the ranks among the strategy's axes, beginning with those that split the model
// least, and within machines before across them.
#pragma once

#include <string>

namespace rehearse {

struct FirstScenarioRequest {
  std::string cluster = "dgx-a100";  // a preset, with changes if wanted, or a file
  std::string model = "gpt-5b";      // a preset
  std::string strategy = "4d";       // a kind
};

// The text of the file, which ReadScenario accepts and Prepare plans. Throws Error for unknown
// names and if no mesh fits.
std::string FirstScenario(const FirstScenarioRequest& request);

}  // namespace rehearse
