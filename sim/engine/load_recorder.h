// Records on request what the network does: the load of each link over time, and which link held
// each flow back for how long. Loads are exact sums (sim/engine/load_sum.h): a link on which
// nothing moves has load 0. Not thread-safe; refers to the program.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "sim/base/clock.h"
#include "sim/engine/load_sum.h"
#include "sim/engine/program.h"
#include "sim/engine/timeline.h"

namespace rehearse {

class LoadRecorder {
 public:
  explicit LoadRecorder(const Program& program);

  // The flow moves `speed` bytes per second over these links from now on; 0: it rests.
  void SetSpeed(uint32_t flow, std::span<const LinkUse> uses, double speed);
  // Call once at the end of each instant.
  void EndInstant(Time now);

  std::vector<LinkLoad> TakeLoads(uint32_t link) { return std::exchange(loads_[link], {}); }

 private:
  struct LinkState {
    LoadSum load;
    bool touched = false;
  };
  struct FlowState {
    std::span<const LinkUse> uses;
    double speed = 0;
  };

  const Program& program_;
  std::vector<LinkState> links_;
  std::vector<FlowState> flows_;
  std::vector<uint32_t> touched_;
  std::vector<std::vector<LinkLoad>> loads_;
};

// How long each flow was held back by which link while it moved.
class BottleneckRecorder {
 public:
  explicit BottleneckRecorder(const Program& program) : flows_(program.flows.size()) {}

  // From now on; no link when the flow rests.
  void SetHolder(uint32_t flow, LinkId link, Time now);

  struct Held {
    LinkId link;
    Time time;
  };
  // In the order in which they first held it back.
  std::span<const Held> HeldBy(uint32_t flow) const { return flows_[flow].held; }

 private:
  struct FlowState {
    LinkId holder;
    Time since;
    std::vector<Held> held;
  };

  std::vector<FlowState> flows_;
};

}  // namespace rehearse
