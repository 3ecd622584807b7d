// HPCC: Li et al., High Precision Congestion Control, SIGCOMM 2019, algorithm 1.
//
// Each port writes its queue, the bytes it has sent and the time into packets. Of two
// acknowledgements the sender derives how full each link is, u = queue/(B·T) + rate/B, takes the
// fullest, and smooths it over a round trip T. Above `utilisation`, or after `most_stages` round
// trips of additive increase, the window becomes W = Wc/(U/utilisation) + W_AI; else Wc + W_AI. Wc
// is the window of the last round trip. Packets go at W/T. W_AI = W_init·(1 - utilisation)/N
// (section 3.3): for N flows that begin at once the additive part fills what utilisation leaves.
//
// T is the flow's own round trip, where the paper has one for the whole network. A port that is not
// the one that the last acknowledgement told of is learnt anew.
#include <algorithm>
#include <vector>

#include "sim/packets/rate_controller.h"

namespace rehearse {
namespace {

class Hpcc : public RateController {
 public:
  Hpcc(const HpccFigures& figures, uint32_t flows) : figures_(figures), flows_(flows) {}

  SendingLimits Begin(uint32_t flow, const SenderPath& path) override {
    Flow& state = flows_[flow];
    state.path = path;
    state.window = state.reference = path.Product();
    state.load = 1;
    state.stage = 0;
    state.updated = -1;
    state.hops.clear();
    return Limits(state);
  }

  SendingLimits Acknowledged(uint32_t flow, const Acknowledgement& what) override {
    Flow& state = flows_[flow];
    if (what.trimmed) return Limits(state);
    if (!Measure(what, &state)) return Limits(state);
    const double initial = state.path.Product();
    const double increase = initial * (1 - figures_.utilisation) / figures_.flows;
    // Once a round trip: by a packet that left after the last time.
    const bool is_new_round = what.sent >= state.updated;
    const double overload = state.load / figures_.utilisation;
    if (overload >= 1 || state.stage >= figures_.most_stages) {
      state.window = state.reference / overload + increase;
      if (is_new_round) state.stage = 0;
    } else {
      state.window = state.reference + increase;
      if (is_new_round) ++state.stage;
    }
    state.window = std::clamp(state.window, figures_.least_share * initial, initial);
    if (is_new_round) {
      state.reference = state.window;
      state.updated = what.now;
    }
    return Limits(state);
  }

  // Losses are not what it learns from.
  SendingLimits TimedOut(uint32_t flow, int64_t /*now*/) override { return Limits(flows_[flow]); }

 private:
  struct Flow {
    SenderPath path;
    double window = 0;
    double reference = 0;
    double load = 1;
    uint32_t stage = 0;
    int64_t updated = -1;
    std::vector<HopTelemetry> hops;  // of the last acknowledgement
  };

  static SendingLimits Limits(const Flow& state) {
    return {state.window, static_cast<double>(state.path.base_rtt) / state.window};
  }

  // Returns whether there was something to compare with.
  static bool Measure(const Acknowledgement& what, Flow* state) {
    const auto base = static_cast<double>(state->path.base_rtt);
    if (state->hops.size() != what.hops.size()) {
      state->hops.assign(what.hops.begin(), what.hops.end());
      return what.hops.empty();  // a cable between two hosts has no queue
    }
    double most = -1;
    double past = 0;
    for (size_t i = 0; i < what.hops.size(); ++i) {
      HopTelemetry& last = state->hops[i];
      const HopTelemetry& next = what.hops[i];
      const auto passed = static_cast<double>(next.time - last.time);
      if (next.port == last.port && passed > 0) {
        const double rate = static_cast<double>(next.sent - last.sent) / passed;
        const double queue = std::min(next.queued, last.queued) / base;
        const double load = (queue + rate) * next.time_per_byte;
        if (load > most) {
          most = load;
          past = passed;
        }
      }
      last = next;
    }
    if (most < 0) return false;
    const double share = std::min(past, base) / base;
    state->load = (1 - share) * state->load + share * most;
    return true;
  }

  const HpccFigures figures_;
  std::vector<Flow> flows_;
};

}  // namespace

std::unique_ptr<RateController> MakeHpcc(const HpccFigures& figures, uint32_t flows) {
  return std::make_unique<Hpcc>(figures, flows);
}

}  // namespace rehearse
