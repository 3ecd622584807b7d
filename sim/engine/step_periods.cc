#include "sim/engine/step_periods.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "sim/base/error.h"

namespace rehearse {

StepPeriods::StepPeriods(const Program& program, std::vector<FlowRun>& flows,
                         TransferNetwork& network, EventQueue& queue, bool enabled)
    : program_(program), flows_(flows), network_(network), queue_(queue), steady_queue_(0) {
  const bool worthwhile = std::any_of(program.flows.begin(), program.flows.end(),
                                      [](const Flow& flow) { return flow.steps >= kFewestSteps; });
  if (!enabled || !worthwhile) return;
  steady_queue_ = EventQueue(program.tasks.size());
  group_of_flow_.assign(flows.size(), kNone);
  group_of_link_.assign(program.links.size(), kNone);
  under_way_.resize(program.links.size());
  look_at_step_.assign(flows.size(), 1);
  failures_.assign(flows.size(), 0);
  MarkLeaders();
}

// The leader of a chain is its first flow in the program.
void StepPeriods::MarkLeaders() {
  std::vector<bool> seen(flows_.size(), false);
  for (uint32_t flow = 0; flow < flows_.size(); ++flow) {
    if (seen[flow] || program_.flows[flow].steps < kFewestSteps) continue;
    flows_[flow].watched = true;
    for (uint32_t i = flow; i != kNone && !seen[i]; i = flows_[i].downstream) seen[i] = true;
    for (uint32_t i = flows_[flow].upstream; i != kNone && !seen[i]; i = flows_[i].upstream) {
      seen[i] = true;
    }
  }
}

// The links that the flow may come to use.
template <typename Visit>
void StepPeriods::ForEachLink(uint32_t flow, const Visit& visit) const {
  const LinkRelevance& relevance = network_.relevance();
  for (const LinkUse& use : relevance.All(program_.flows[flow].use_set)) visit(use.link.index());
  if (program_.alternatives.empty() || program_.alternatives[flow] == kNone) return;
  for (const LinkUse& use : relevance.All(program_.alternatives[flow])) visit(use.link.index());
}

void StepPeriods::Start(uint32_t flow, Time now) {
  if (group_of_flow_.empty()) return;
  for (const uint32_t neighbour : {flows_[flow].upstream, flows_[flow].downstream}) {
    if (neighbour != kNone) Touch(neighbour, now);
  }
  if (program_.flows[flow].steps < kFewestSteps) return;
  ForEachLink(flow, [&](uint32_t link) { under_way_[link].push_back(flow); });
}

void StepPeriods::EndStep(uint32_t flow, Time now) {
  const FlowRun& run = flows_[flow];
  if (HasGroups() && run.steps_done == program_.flows[flow].steps) Touch(flow, now);
  if (run.watched && run.steps_done >= look_at_step_[flow]) stepped_.push_back(flow);
}

void StepPeriods::Touch(uint32_t flow, Time now) {
  if (group_of_flow_[flow] != kNone) Dissolve(group_of_flow_[flow], now);
}

void StepPeriods::TouchLinks(uint32_t flow, Time now) {
  for (const LinkUse& use : network_.RelevantUses(flow)) {
    const uint32_t group = group_of_link_[use.link.index()];
    if (group != kNone) Dissolve(group, now);
  }
}

void StepPeriods::TouchAll(Time now) {
  for (uint32_t id = 0; id < groups_.size(); ++id) {
    if (groups_[id].leader != kNone) Dissolve(id, now);
  }
}

void StepPeriods::EndInstant(Time now) {
  for (const uint32_t leader : stepped_) {
    if (flows_[leader].IsUnderWay()) Look(leader, now);
  }
  stepped_.clear();
}

void StepPeriods::Look(uint32_t leader, Time now) {
  const uint32_t id = group_of_flow_[leader];
  if (id == kNone) {
    MakeGroup(leader, now);
    return;
  }
  Group& group = groups_[id];
  if (group.leader != leader) return;
  if (group.steady) {
    Jump(group, now);
  } else if (now > group.kept_at && IsBack(group, now)) {
    MakeSteady(group, now);
    if (group.steady) Jump(group, now);
  } else if (flows_[leader].steps_done - group.kept[0].steps_done >= group.patience) {
    group.patience *= 2;
    KeepState(group, now);
  }
}

void StepPeriods::MakeGroup(uint32_t leader, Time now) {
  if (free_groups_.empty()) {
    free_groups_.push_back(static_cast<uint32_t>(groups_.size()));
    groups_.emplace_back();
  }
  const uint32_t id = free_groups_.back();
  free_groups_.pop_back();
  ++group_count_;
  Group group;
  group.leader = leader;
  Join(group, id, leader, now);
  for (size_t i = 0; i < group.members.size(); ++i) {
    const uint32_t flow = group.members[i];
    for (const uint32_t neighbour : {flows_[flow].upstream, flows_[flow].downstream}) {
      if (neighbour != kNone && flows_[neighbour].IsUnderWay()) Join(group, id, neighbour, now);
    }
    ForEachLink(flow, [&](uint32_t link) { JoinLink(group, id, link, now); });
  }
  KeepState(group, now);
  groups_[id] = std::move(group);
}

void StepPeriods::KeepState(Group& group, Time now) {
  group.kept.clear();
  for (const uint32_t flow : group.members) group.kept.push_back(StateOf(flow, now));
  group.kept_at = now;
}

void StepPeriods::Join(Group& group, uint32_t id, uint32_t flow, Time now) {
  if (group_of_flow_[flow] == id) return;
  Touch(flow, now);
  group_of_flow_[flow] = id;
  group.members.push_back(flow);
}

void StepPeriods::JoinLink(Group& group, uint32_t id, uint32_t link, Time now) {
  if (group_of_link_[link] == id) return;
  if (group_of_link_[link] != kNone) Dissolve(group_of_link_[link], now);
  group_of_link_[link] = id;
  group.links.push_back(link);
  std::erase_if(under_way_[link], [this](uint32_t flow) { return !flows_[flow].IsUnderWay(); });
  for (const uint32_t flow : under_way_[link]) Join(group, id, flow, now);
}

void StepPeriods::Dissolve(uint32_t id, Time now) {
  Group& group = groups_[id];
  CHECK_LE(group.jumped_to.picoseconds(), now.picoseconds());
  for (const uint32_t flow : group.members) {
    group_of_flow_[flow] = kNone;
    if (!group.steady) continue;
    FlowRun& run = flows_[flow];
    run.set_aside = false;
    if (!steady_queue_.Has(run.task)) continue;
    queue_.Schedule(run.task, steady_queue_.TimeOf(run.task));
    steady_queue_.Cancel(run.task);
  }
  for (const uint32_t link : group.links) group_of_link_[link] = kNone;
  // If groups keep coming to nothing, look less and less often.
  uint8_t& failures = failures_[group.leader];
  const bool was_steady = group.steady;
  failures = was_steady ? 0 : static_cast<uint8_t>(std::min(failures + 1, 10));
  look_at_step_[group.leader] = flows_[group.leader].steps_done + (1u << failures);
  group = Group();
  free_groups_.push_back(id);
  --group_count_;
  if (was_steady) FindEarliestLimit();
}

StepPeriods::Snapshot StepPeriods::StateOf(uint32_t flow, Time now) const {
  const FlowRun& run = flows_[flow];
  const EventQueue& queue = run.set_aside ? steady_queue_ : queue_;
  Snapshot state{run.phase, run.steps_done, Time(-1), {}};
  if (queue.Has(run.task)) state.due_in = queue.TimeOf(run.task) - now;
  if (run.phase == FlowPhase::kMoving) {
    state.motion = network_.MotionOf(flow);
    state.motion.since = now - state.motion.since;
  }
  return state;
}

// Whether the kept state has recurred, with neighbours equally many steps ahead.
bool StepPeriods::IsBack(Group& group, Time now) const {
  const auto steps_since = [&](size_t i) {
    return flows_[group.members[i]].steps_done - group.kept[i].steps_done;
  };
  const auto is_back = [&](size_t i) {
    const Snapshot state = StateOf(group.members[i], now);
    const Snapshot& kept = group.kept[i];
    return state.phase == kept.phase && state.due_in == kept.due_in &&
           (state.phase != FlowPhase::kMoving || state.motion == kept.motion);
  };
  if (!is_back(group.suspect)) return false;
  for (size_t i = 0; i < group.members.size(); ++i) {
    if (is_back(i)) continue;
    group.suspect = i;
    return false;
  }
  group.steps.resize(group.members.size());
  for (size_t i = 0; i < group.members.size(); ++i) group.steps[i] = steps_since(i);
  // Neighbours lie next to each other except at the ring's ends, so look them up.
  std::vector<std::pair<uint32_t, uint32_t>> steps_of;
  for (size_t i = 0; i < group.members.size(); ++i) {
    steps_of.emplace_back(group.members[i], group.steps[i]);
  }
  std::sort(steps_of.begin(), steps_of.end());
  for (const auto& [flow, steps] : steps_of) {
    const uint32_t upstream = flows_[flow].upstream;
    if (upstream == kNone || !flows_[upstream].IsUnderWay()) continue;
    const auto found = std::lower_bound(steps_of.begin(), steps_of.end(),
                                        std::pair<uint32_t, uint32_t>(upstream, 0));
    if (found == steps_of.end() || found->first != upstream || found->second != steps) return false;
  }
  return true;
}

void StepPeriods::MakeSteady(Group& group, Time now) {
  const uint64_t periods = PeriodsLeft(group);
  if (periods < 2) return;
  group.period = now - group.kept_at;
  group.limit = now + static_cast<int64_t>(periods) * group.period;
  group.steady = true;
  FindEarliestLimit();
  for (const uint32_t flow : group.members) {
    FlowRun& run = flows_[flow];
    run.set_aside = true;
    if (!queue_.Has(run.task)) continue;
    steady_queue_.Schedule(run.task, queue_.TimeOf(run.task));
    queue_.Cancel(run.task);
  }
}

void StepPeriods::FindEarliestLimit() {
  earliest_limit_ = TransferNetwork::kNever;
  for (const Group& group : groups_) {
    if (group.steady) earliest_limit_ = std::min(earliest_limit_, group.limit);
  }
}

// For how many periods no flow comes to its end.
uint64_t StepPeriods::PeriodsLeft(const Group& group) const {
  uint64_t periods = std::numeric_limits<uint32_t>::max();
  for (size_t i = 0; i < group.members.size(); ++i) {
    if (group.steps[i] == 0) continue;
    const uint32_t flow = group.members[i];
    const uint32_t left = program_.flows[flow].steps - 1 - flows_[flow].steps_done;
    periods = std::min<uint64_t>(periods, left / group.steps[i]);
  }
  return periods;
}

void StepPeriods::Jump(Group& group, Time now) {
  Time horizon = earliest_limit_;
  if (!queue_.IsEmpty()) horizon = std::min(horizon, queue_.NextTime());
  const int64_t room = (horizon - now).picoseconds() - 1;
  if (room < group.period.picoseconds()) return;
  const int64_t periods =
      std::min(static_cast<int64_t>(PeriodsLeft(group)), room / group.period.picoseconds());
  if (periods == 0) return;
  const Time shift = periods * group.period;
  for (size_t i = 0; i < group.members.size(); ++i) {
    const uint32_t flow = group.members[i];
    FlowRun& run = flows_[flow];
    const uint64_t steps = static_cast<uint64_t>(periods) * group.steps[i];
    run.steps_done += static_cast<uint32_t>(steps);
    if (program_.flows[flow].bytes > 0) jumped_transfers_ += steps;
    if (steady_queue_.Has(run.task)) {
      steady_queue_.Schedule(run.task, steady_queue_.TimeOf(run.task) + shift);
    }
    network_.Jump(flow, shift, steps);
  }
  group.jumped_to = now + shift;
}

}  // namespace rehearse
