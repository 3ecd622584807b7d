// A first scenario for a newcomer who names a model and a cluster: the best configuration that a
// search without a strategy finds (scenarios/searching/wide_space.h).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "sim/base/progress.h"

namespace rehearse {

struct BestScenarioRequest {
  std::string cluster;       // a preset, with changes if wanted, or a file
  std::string model;         // a preset of a decoder
  uint64_t sequence = 4096;  // tokens
  std::optional<uint64_t> batch =
      {};  // sequences; else about 4 million tokens, so many for each GPU
  ProgressObserver* observer = &NoObserver();
  std::function<bool()> is_stopped = [] { return false; };
};

// The text of the file, with comments that say what was looked at and what came of it. Throws Error
// for unknown names and if nothing fits, Stopped if it is stopped before anything is simulated.
std::string BestScenario(const BestScenarioRequest& request);

}  // namespace rehearse
