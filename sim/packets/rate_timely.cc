// TIMELY: Mittal et al., TIMELY: RTT-based Congestion Control for the Datacenter, SIGCOMM 2015,
// algorithm 1.
//
// For each segment that is acknowledged, the difference of its round trip to the last is smoothed
// and divided by the least round trip: the gradient. Below rtt_low the rate grows by a step; above
// rtt_high it shrinks by beta·(1 - rtt_high/rtt); between them it grows while the gradient is not
// positive, by five steps after five such segments (hyperactive increase, section 4.3), and shrinks
// by beta times the gradient otherwise. A sender has a rate, no window, and begins at its port's.
//
// The paper's thresholds and step are for 10 Gb/s: 50 us, what a segment of 64 KB takes there, ten
// times that, and 10 Mb/s. Here they follow the port (section 4.4 says what they are for): the base
// round trip and a segment's time; that and nine segments more; a thousandth of the rate.
#include <algorithm>
#include <vector>

#include "sim/packets/rate_controller.h"

namespace rehearse {
namespace {

class Timely : public RateController {
 public:
  Timely(const TimelyFigures& figures, uint32_t flows) : figures_(figures), flows_(flows) {}

  SendingLimits Begin(uint32_t flow, const SenderPath& path) override {
    Flow& state = flows_[flow];
    state = {};
    state.path = path;
    const double segment = path.time_per_byte * figures_.segment;
    const auto base = static_cast<double>(path.base_rtt);
    state.low = figures_.rtt_low > Time() ? static_cast<double>(figures_.rtt_low.picoseconds())
                                          : base + segment;
    state.high = figures_.rtt_high > Time() ? static_cast<double>(figures_.rtt_high.picoseconds())
                                            : base + figures_.high_segments * segment;
    state.high = std::max(state.high, state.low);
    return Limits(state);
  }

  SendingLimits Acknowledged(uint32_t flow, const Acknowledgement& what) override {
    Flow& state = flows_[flow];
    state.bytes += what.bytes;
    if (what.trimmed || state.bytes < figures_.segment) return Limits(state);
    state.bytes = 0;
    const auto rtt = static_cast<double>(what.Rtt());
    if (state.last_rtt == 0) state.last_rtt = rtt;
    const double weight = figures_.gradient_weight;
    state.difference = (1 - weight) * state.difference + weight * (rtt - state.last_rtt);
    state.last_rtt = rtt;
    const double gradient = state.difference / static_cast<double>(state.path.base_rtt);
    if (rtt < state.low) {
      state.rate += figures_.step;
    } else if (rtt > state.high) {
      state.rate *= 1 - figures_.beta * (1 - state.high / rtt);
    } else if (gradient <= 0) {
      ++state.falls;
      state.rate +=
          figures_.step * (state.falls >= figures_.hyper_after ? figures_.hyper_steps : 1);
    } else {
      state.rate *= 1 - std::min(figures_.beta * gradient, figures_.most_cut);
    }
    if (rtt < state.low || rtt > state.high || gradient > 0) state.falls = 0;
    state.rate = std::clamp(state.rate, figures_.least_rate, 1.0);
    return Limits(state);
  }

  // Losses are not what it learns from.
  SendingLimits TimedOut(uint32_t flow, int64_t /*now*/) override { return Limits(flows_[flow]); }

 private:
  struct Flow {
    SenderPath path;
    double low = 0;
    double high = 0;
    double rate = 1;  // share of the port's
    double last_rtt = 0;
    double difference = 0;
    uint32_t bytes = 0;
    uint32_t falls = 0;
  };

  static SendingLimits Limits(const Flow& state) {
    return {SendingLimits().window, state.rate < 1 ? state.path.time_per_byte / state.rate : 0};
  }

  const TimelyFigures figures_;
  std::vector<Flow> flows_;
};

}  // namespace

std::unique_ptr<RateController> MakeTimely(const TimelyFigures& figures, uint32_t flows) {
  return std::make_unique<Timely>(figures, flows);
}

}  // namespace rehearse
