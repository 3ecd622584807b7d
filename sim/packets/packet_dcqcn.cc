// The rate control of DCQCN.
#include <algorithm>

#include "sim/packets/packet_network.h"
#include "sim/packets/packet_numbers.h"

namespace rehearse {

// DCQCN. A notification cuts the rate; a timer and a byte counter raise it: first halfway back
// to where it was, then further.
void PacketNetwork::CutRate(uint32_t flow) {
  FlowState& state = flows_[flow];
  const DcqcnFigures& figures = options_.dcqcn;
  const double line = kPicosecondsPerSecond / ports_[state.first_port].time_per_byte;
  // Cuts in a row have one target: the rate before the first.
  if (state.raised) state.target = state.rate;
  state.raised = false;
  state.rate = std::max(state.rate * (1 - state.alpha / 2), figures.least_rate / line);
  state.alpha = (1 - figures.gain) * state.alpha + figures.gain;
  state.notified = true;
  state.timer_steps = state.byte_steps = 0;
  state.bytes_since = 0;
  StartRateTimer(flow);
}

void PacketNetwork::StartRateTimer(uint32_t flow) {
  events_.Add(now_ + options_.dcqcn.timer.picoseconds(), kRateTimer, flow, ++flows_[flow].epoch);
}

void PacketNetwork::RateTimer(uint32_t flow) {
  FlowState& state = flows_[flow];
  if (!state.notified) state.alpha *= 1 - options_.dcqcn.gain;
  state.notified = false;
  ++state.timer_steps;
  RaiseRate(flow);
  if (state.rate < 1) StartRateTimer(flow);
}

void PacketNetwork::RaiseRate(uint32_t flow) {
  FlowState& state = flows_[flow];
  const DcqcnFigures& figures = options_.dcqcn;
  const uint32_t most = std::max(state.timer_steps, state.byte_steps);
  const uint32_t least = std::min(state.timer_steps, state.byte_steps);
  if (least > figures.fast_steps) {
    state.target += figures.hyper_increase / kReferenceRate;
  } else if (most > figures.fast_steps) {
    state.target += figures.additive_increase / kReferenceRate;
  }
  state.target = std::min(state.target, 1.0);
  state.rate = (state.target + state.rate) / 2;
  state.raised = true;
  constexpr double kAsGoodAsLine = 0.999;
  if (state.rate < kAsGoodAsLine) return;
  state.rate = 1;
  ++state.epoch;
}

}  // namespace rehearse
