#include "sim/engine/load_recorder.h"

#include <algorithm>

namespace rehearse {

LoadRecorder::LoadRecorder(const Program& program)
    : program_(program),
      links_(program.links.size()),
      flows_(program.flows.size()),
      loads_(program.links.size()) {}

void LoadRecorder::SetSpeed(uint32_t flow, std::span<const LinkUse> uses, double speed) {
  FlowState& state = flows_[flow];
  if (state.speed == speed && state.uses.data() == uses.data()) return;
  const auto touch = [this](const LinkUse& use) -> LinkState& {
    LinkState& link = links_[use.link.index()];
    if (!link.touched) touched_.push_back(use.link.index());
    link.touched = true;
    return link;
  };
  const auto share = [this](const LinkUse& use, double rate) {
    return use.multiplicity * rate / program_.links[use.link.index()].capacity.value();
  };
  for (const LinkUse& use : state.uses) touch(use).load.Remove(share(use, state.speed));
  for (const LinkUse& use : uses) touch(use).load.Add(share(use, speed));
  state = {uses, speed};
}

void LoadRecorder::EndInstant(Time now) {
  for (const uint32_t link : touched_) {
    links_[link].touched = false;
    const double load = links_[link].load.share() * program_.links[link].capacity.value();
    std::vector<LinkLoad>& loads = loads_[link];
    if (!loads.empty() && loads.back().from == now) loads.pop_back();
    const double before = loads.empty() ? 0.0 : loads.back().bytes_per_second;
    if (load != before) loads.push_back({now, load});
  }
  touched_.clear();
}

void BottleneckRecorder::SetHolder(uint32_t flow, LinkId link, Time now) {
  FlowState& state = flows_[flow];
  if (state.holder == link) return;
  if (state.holder.IsSet() && state.since < now) {
    const auto held = std::find_if(state.held.begin(), state.held.end(),
                                   [&](const Held& other) { return other.link == state.holder; });
    if (held == state.held.end()) {
      state.held.push_back({state.holder, now - state.since});
    } else {
      held->time += now - state.since;
    }
  }
  state.holder = link;
  state.since = now;
}

}  // namespace rehearse
