// Swift: Kumar et al., Delay is Simple and Effective for Congestion Control in the Datacenter,
// SIGCOMM 2020, algorithm 1, the part for the fabric.
//
// Below the target delay the window grows by `increase` packets a round trip; above it falls, once
// a round trip at most, by beta·(delay - target)/delay, and by most_cut at most; a packet that was
// lost cuts by most_cut. Below one packet, packets are spaced by a round trip over the window.
//
//   target = hops + base + clamp(a/sqrt(w) - a/sqrt(w_most), 0, range),
//   a = range/(1/sqrt(w_least) - 1/sqrt(w_most))                      (section 3.5)
//
// The paper scales by a constant for each hop, so that long ways may take longer; here that part is
// what the hops take when nothing waits, the flow's own round trip.
#include <algorithm>
#include <cmath>
#include <vector>

#include "sim/packets/rate_controller.h"

namespace rehearse {
namespace {

class Swift : public RateController {
 public:
  Swift(const SwiftFigures& figures, uint32_t flows) : figures_(figures), flows_(flows) {}

  SendingLimits Begin(uint32_t flow, const SenderPath& path) override {
    Flow& state = flows_[flow];
    state.path = path;
    state.window = std::max(1.0, path.Product() / path.packet);
    state.most = figures_.most_products * state.window;
    state.decreased = -path.base_rtt;
    state.rtt = path.base_rtt;
    return Limits(state);
  }

  SendingLimits Acknowledged(uint32_t flow, const Acknowledgement& what) override {
    Flow& state = flows_[flow];
    state.rtt = std::max<int64_t>(what.Rtt(), 1);
    const bool may_decrease = what.now - state.decreased >= state.rtt;
    if (what.trimmed) {
      if (may_decrease) Decrease(1 - figures_.most_cut, what.now, &state);
      return Limits(state);
    }
    const auto delay = static_cast<double>(what.Rtt());
    const double target = Target(state);
    const double packets = static_cast<double>(what.bytes) / state.path.packet;
    if (delay < target) {
      state.window += figures_.increase * packets / std::max(state.window, 1.0);
      state.window = std::min(state.window, state.most);
    } else if (may_decrease) {
      const double cut = figures_.beta * (delay - target) / delay;
      Decrease(1 - std::min(cut, figures_.most_cut), what.now, &state);
    }
    return Limits(state);
  }

  SendingLimits TimedOut(uint32_t flow, int64_t now) override {
    Flow& state = flows_[flow];
    Decrease(1 - figures_.most_cut, now, &state);
    return Limits(state);
  }

 private:
  struct Flow {
    SenderPath path;
    double window = 0;  // packets
    double most = 0;
    int64_t decreased = 0;
    int64_t rtt = 0;  // the last
  };

  double Target(const Flow& state) const {
    const auto base = static_cast<double>(state.path.base_rtt);
    const double target = figures_.target_delay > Time()
                              ? static_cast<double>(figures_.target_delay.picoseconds())
                              : figures_.target_share * base;
    const double range = figures_.range_share * target;
    const double least = 1 / std::sqrt(figures_.scales_from);
    const double most = 1 / std::sqrt(figures_.scales_to);
    const double scale = range / (least - most);
    return base + target + std::clamp(scale * (1 / std::sqrt(state.window) - most), 0.0, range);
  }

  void Decrease(double factor, int64_t now, Flow* state) const {
    state->window = std::max(factor * state->window, figures_.least_window);
    state->decreased = now;
  }

  static SendingLimits Limits(const Flow& state) {
    if (state.window >= 1) return {state.window * state.path.packet, 0};
    return {static_cast<double>(state.path.packet),
            static_cast<double>(state.rtt) / state.window / state.path.packet};
  }

  const SwiftFigures figures_;
  std::vector<Flow> flows_;
};

}  // namespace

std::unique_ptr<RateController> MakeSwift(const SwiftFigures& figures, uint32_t flows) {
  return std::make_unique<Swift>(figures, flows);
}

}  // namespace rehearse
