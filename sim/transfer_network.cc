#include "sim/transfer_network.h"

#include <algorithm>
#include <utility>

#include "sim/error.h"

namespace rehearse {

TransferNetwork::TransferNetwork(const Program& program, bool record_loads)
    : program_(program),
      flows_(program.flows.size()),
      links_(program.links.size()),
      record_loads_(record_loads),
      solved_load_(record_loads ? program.links.size() : 0),
      loads_(record_loads ? program.links.size() : 0) {
  capacity_.reserve(program.links.size());
  for (const ProgramLink& link : program.links) capacity_.push_back(link.capacity.value());
}

std::span<const LinkUse> TransferNetwork::UsesOf(uint32_t flow) const {
  const uint32_t set = program_.flows[flow].use_set;
  return std::span(program_.uses)
      .subspan(program_.use_set_begin[set],
               program_.use_set_begin[set + 1] - program_.use_set_begin[set]);
}

bool TransferNetwork::IsIntact(uint32_t component) const {
  return component != kNone && components_[component].intact;
}

void TransferNetwork::MarkChanged(uint32_t flow) {
  if (flows_[flow].changed) return;
  flows_[flow].changed = true;
  changed_.push_back(flow);
}

void TransferNetwork::Begin(uint32_t flow) {
  FlowState& state = flows_[flow];
  CHECK(!state.moving);
  state.moving = true;
  state.fresh = true;
  if (IsIntact(state.component)) ++components_[state.component].moving;
  MarkChanged(flow);
}

void TransferNetwork::End(uint32_t flow) {
  FlowState& state = flows_[flow];
  CHECK(state.moving && !state.fresh);
  state.moving = false;
  --components_[state.component].moving;
  MarkChanged(flow);
}

std::span<const TransferNetwork::FlowEnd> TransferNetwork::Settle(Time now) {
  ends_.clear();
  if (changed_.empty()) return ends_;
  ++visit_;
  CollectSeeds();
  for (const uint32_t seed : seeds_) {
    if (flows_[seed].moving) {
      if (flows_[seed].visit != visit_) SolveComponentOf(seed, now);
      continue;
    }
    // It has left: those that shared a link with it may go faster. All on one link are one
    // component.
    for (const LinkUse& use : UsesOf(seed)) {
      const uint32_t link = use.link.index();
      Prune(link);
      const std::vector<Listed>& listed = links_[link].listed;
      if (!listed.empty() && flows_[listed.front().flow].visit != visit_) {
        SolveComponentOf(listed.front().flow, now);
      }
    }
  }
  for (const uint32_t flow : changed_) {
    FlowState& state = flows_[flow];
    state.changed = false;
    if (state.fresh) Restart(flow, now);  // its component was not solved: the old rate holds
    if (record_loads_) RecordRest(flow, now);
  }
  changed_.clear();
  return ends_;
}

// Sorts out the components whose moving flows are what they were (or none), and lists new flows.
void TransferNetwork::CollectSeeds() {
  seeds_.clear();
  for (const uint32_t flow : changed_) {
    const FlowState& state = flows_[flow];
    if (IsIntact(state.component)) {
      const Component& component = components_[state.component];
      if (component.moving == component.flows || component.moving == 0) continue;
    } else if (state.component == kNone) {
      Enlist(flow);
    }
    seeds_.push_back(flow);
  }
}

void TransferNetwork::Enlist(uint32_t flow) {
  for (const LinkUse& use : UsesOf(flow)) {
    links_[use.link.index()].listed.push_back({flow, flows_[flow].listing});
  }
}

// Takes flows that do not move off the link's list, and thereby (their `listing` moves on) off all
// lists.
void TransferNetwork::Prune(uint32_t link) {
  std::vector<Listed>& listed = links_[link].listed;
  size_t kept = 0;
  for (const Listed entry : listed) {
    FlowState& state = flows_[entry.flow];
    if (state.listing != entry.listing) continue;
    if (state.moving) {
      listed[kept++] = entry;
    } else {
      LeaveComponent(entry.flow);
      ++state.listing;
    }
  }
  listed.resize(kept);
}

void TransferNetwork::LeaveComponent(uint32_t flow) {
  const uint32_t component = std::exchange(flows_[flow].component, kNone);
  if (component == kNone) return;
  components_[component].intact = false;
  if (--components_[component].flows == 0) free_components_.push_back(component);
}

void TransferNetwork::Visit(uint32_t flow) {
  if (flows_[flow].visit == visit_) return;
  flows_[flow].visit = visit_;
  members_.push_back(flow);
}

// Walks over all moving flows that are connected with `flow`, makes them one component and rates
// them.
void TransferNetwork::SolveComponentOf(uint32_t flow, Time now) {
  members_.clear();
  member_links_.clear();
  capacities_.clear();
  use_begin_.assign(1, 0);
  uses_.clear();
  Visit(flow);
  for (size_t i = 0; i < members_.size(); ++i) {
    for (const LinkUse& use : UsesOf(members_[i])) {
      LinkState& link = links_[use.link.index()];
      if (link.visit != visit_) {
        link.visit = visit_;
        link.local = static_cast<uint32_t>(member_links_.size());
        member_links_.push_back(use.link.index());
        capacities_.push_back(capacity_[use.link.index()]);
        Prune(use.link.index());
        for (const Listed entry : link.listed) Visit(entry.flow);
      }
      uses_.push_back({LinkId(link.local), use.multiplicity});
    }
    use_begin_.push_back(static_cast<uint32_t>(uses_.size()));
  }
  rates_.resize(members_.size());
  solver_.Solve(capacities_, use_begin_, uses_, rates_);
  ++solves_;

  for (const uint32_t member : members_) LeaveComponent(member);
  uint32_t id;
  if (free_components_.empty()) {
    id = static_cast<uint32_t>(components_.size());
    components_.emplace_back();
  } else {
    id = free_components_.back();
    free_components_.pop_back();
  }
  const uint32_t size = static_cast<uint32_t>(members_.size());
  components_[id] = {.flows = size, .moving = size, .intact = true};
  for (size_t i = 0; i < members_.size(); ++i) {
    flows_[members_[i]].component = id;
    ApplyRate(members_[i], rates_[i], now);
  }
  if (!record_loads_) return;
  for (size_t i = 0; i < member_links_.size(); ++i) {
    solved_load_[member_links_[i]] = solver_.loads()[i];
    Record(member_links_[i], now, solver_.loads()[i]);
  }
}

void TransferNetwork::ApplyRate(uint32_t flow, double rate, Time now) {
  FlowState& state = flows_[flow];
  if (rate != state.rate) {
    if (!state.fresh) {
      const double moved = state.rate * ToSeconds(now - state.since).value();
      state.left = std::max(0.0, state.left - moved);
      state.since = now;
      ends_.push_back({flow, now + Duration(flow, state.left, rate)});
    }
    state.rate = rate;
    state.full_duration = Duration(flow, program_.flows[flow].bytes, rate);
  }
  if (state.fresh) Restart(flow, now);
}

// Of `left` bytes at `rate`, on the clock. What is half a picosecond in real numbers is common
// (rates that are simple fractions of each other) and must be rounded up whatever rounding errors
// its history has left, so that flows which should end together do. The slack covers tens of such
// errors.
Time TransferNetwork::Duration(uint32_t flow, double left, double rate) const {
  const double slack = program_.flows[flow].bytes * kRelativeSlack;
  return ToTime(Seconds((left + slack) / rate));
}

// The flow moves all its bytes from now on, at the rate it has.
void TransferNetwork::Restart(uint32_t flow, Time now) {
  FlowState& state = flows_[flow];
  state.fresh = false;
  state.left = program_.flows[flow].bytes;
  state.since = now;
  ends_.push_back({flow, now + state.full_duration});
}

// The loads on the links of a flow that has begun or ended without its component being solved.
void TransferNetwork::RecordRest(uint32_t flow, Time now) {
  const bool moving = flows_[flow].moving;
  for (const LinkUse& use : UsesOf(flow)) {
    const uint32_t link = use.link.index();
    if (links_[link].visit == visit_) continue;
    Record(link, now, moving ? solved_load_[link] : 0.0);
  }
}

void TransferNetwork::Record(uint32_t link, Time now, double load) {
  std::vector<LinkLoad>& loads = loads_[link];
  if (!loads.empty() && loads.back().from == now) loads.pop_back();
  const double before = loads.empty() ? 0.0 : loads.back().bytes_per_second;
  if (load != before) loads.push_back({now, load});
}

std::vector<LinkLoad> TransferNetwork::TakeLoads(uint32_t link) {
  return record_loads_ ? std::exchange(loads_[link], {}) : std::vector<LinkLoad>();
}

}  // namespace rehearse
