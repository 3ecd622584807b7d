// NSCC: the sender-based control of Ultra Ethernet 1.0 (section 3.6.13 of its specification), with
// the figures that its simulator has (htsim, uec.cpp, initNsccParams).
//
// Each acknowledgement tells the delay in queues (its round trip beyond the base) and a mark:
//
//   not marked, below target   proportional increase   window += prop·(target - delay)/target
//   not marked, above target   fair increase           window += fair
//   marked, below target       nothing: another way is what it takes
//   marked, above target       decrease, once a round trip, by gamma·(mean - target)/mean
//
// each for a window's worth of acknowledged bytes; increases are kept for eight packets or a round
// trip, which adds a small step eta. A trimmed packet takes its bytes off the window. Quick adapt:
// when a round trip and the target have passed, with a packet trimmed or a delay of four targets in
// them, and less than an eighth of the largest window was acknowledged, the window becomes what was
// acknowledged, and as many bytes as were in flight tell nothing new. Where delay has been next to
// nothing for a whole window, it grows fast, by fast times what is acknowledged.
#include <algorithm>
#include <vector>

#include "sim/packets/rate_controller.h"

namespace rehearse {
namespace {

class Nscc : public RateController {
 public:
  Nscc(const NsccFigures& figures, bool trims, uint32_t flows)
      : figures_(figures), trims_(trims), flows_(flows) {}

  SendingLimits Begin(uint32_t flow, const SenderPath& path) override {
    Flow& state = flows_[flow];
    state = {};
    state.path = path;
    const auto base = static_cast<double>(path.base_rtt);
    state.target = figures_.target_delay > Time()
                       ? static_cast<double>(figures_.target_delay.picoseconds())
                       : base * (trims_ ? figures_.target_share_trimming : figures_.target_share);
    state.scale = path.Product() / figures_.reference_product;
    state.most =
        std::max(figures_.most_products * path.Product(), static_cast<double>(path.packet));
    state.window = state.most;
    return Limits(state);
  }

  SendingLimits Acknowledged(uint32_t flow, const Acknowledgement& what) override {
    Flow& state = flows_[flow];
    const auto base = static_cast<double>(state.path.base_rtt);
    const double delay = std::max(static_cast<double>(what.Rtt()) - base, 0.0);
    if (state.ignored < state.to_ignore) state.ignored += what.bytes;
    if (what.trimmed) {
      state.trimmed = true;
      if (!QuicklyAdapts(what, delay, &state)) state.window -= what.bytes;
      Bound(&state);
      return Limits(state);
    }
    state.achieved += what.bytes;
    state.received += what.bytes;
    Smooth(delay, what.marked, &state);
    if (QuicklyAdapts(what, delay, &state)) return Limits(state);
    const double bytes = what.bytes;
    if (what.marked) {
      if (delay >= state.target) Decrease(what.now, &state);
    } else if (delay >= state.target) {
      state.increase += figures_.fair_packets * state.scale * state.path.packet * bytes;
    } else if (!GrowsFast(bytes, delay, &state)) {
      const double prop = figures_.proportional_packets * state.scale * state.path.packet *
                          (state.target / figures_.reference_rtt);
      state.increase += prop * (1 - delay / state.target) * bytes;
    }
    Bound(&state);
    if (state.received > figures_.adjust_packets * state.path.packet ||
        what.now - state.adjusted > state.path.base_rtt) {
      state.window += state.increase / state.window;
      if (what.now - state.adjusted >= state.path.base_rtt) {
        state.window += figures_.eta_packets * state.scale * state.path.packet;
        state.adjusted = what.now;
      }
      state.increase = state.received = 0;
      Bound(&state);
    }
    return Limits(state);
  }

  SendingLimits TimedOut(uint32_t flow, int64_t /*now*/) override {
    Flow& state = flows_[flow];
    state.trimmed = true;
    state.window -= state.path.packet;
    Bound(&state);
    return Limits(state);
  }

 private:
  struct Flow {
    SenderPath path;
    double target = 0;
    double scale = 1;  // product over that of the figures
    double most = 0;
    double window = 0;
    double increase = 0;
    double received = 0;  // bytes since the last adjustment
    double achieved = 0;  // bytes since the last look of quick adapt
    double mean = 0;      // delay
    double quiet = 0;     // bytes without delay
    double ignored = 0;   // bytes that tell nothing new
    double to_ignore = 0;
    bool trimmed = false;  // since quick adapt
    bool fast = false;
    int64_t adjusted = 0;
    int64_t decreased = 0;
    int64_t adapts_at = 0;
  };

  static void Bound(Flow* state) {
    state->window = std::clamp(state->window, static_cast<double>(state->path.packet), state->most);
  }

  static SendingLimits Limits(const Flow& state) { return {state.window, 0}; }

  void Smooth(double delay, bool marked, Flow* state) const {
    const auto base = static_cast<double>(state->path.base_rtt);
    // Late and not marked: one way of many was, and the queue is gone.
    const double sample = !marked && delay > state->target ? figures_.late_share * base : delay;
    state->mean += figures_.mean_weight * (sample - state->mean);
  }

  void Decrease(int64_t now, Flow* state) const {
    state->fast = false;
    state->quiet = 0;
    if (state->mean <= state->target || now - state->decreased <= state->path.base_rtt) return;
    const double cut = figures_.gamma * (state->mean - state->target) / state->mean;
    state->window *= 1 - std::min(cut, figures_.most_cut);
    state->decreased = now;
  }

  bool GrowsFast(double bytes, double delay, Flow* state) const {
    if (delay >= figures_.quiet_delay.picoseconds()) {
      state->quiet = 0;
      state->fast = false;
      return false;
    }
    state->quiet += bytes;
    state->fast = state->fast || state->quiet > state->window;
    if (state->fast) state->window += bytes * figures_.fast * state->scale;
    return state->fast;
  }

  bool QuicklyAdapts(const Acknowledgement& what, double delay, Flow* state) const {
    bool result = what.marked && state->ignored < state->to_ignore;
    if (!result && what.now > state->adapts_at) {
      if (state->adapts_at > 0 &&
          (state->trimmed || delay > figures_.adapt_targets * state->target) &&
          state->achieved < state->most * figures_.adapt_share) {
        state->window = state->achieved;
        Bound(state);
        state->to_ignore = static_cast<double>(what.in_flight);
        state->ignored = 0;
        state->trimmed = false;
        result = true;
      }
      state->achieved = 0;
      state->adapts_at = what.now + state->path.base_rtt + static_cast<int64_t>(state->target);
    }
    if (result) state->increase = state->received = 0;
    return result;
  }

  const NsccFigures figures_;
  const bool trims_;
  std::vector<Flow> flows_;
};

}  // namespace

std::unique_ptr<RateController> MakeNscc(const NsccFigures& figures, bool trims, uint32_t flows) {
  return std::make_unique<Nscc>(figures, trims, flows);
}

}  // namespace rehearse
