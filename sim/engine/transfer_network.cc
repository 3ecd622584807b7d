#include "sim/engine/transfer_network.h"

#include <algorithm>
#include <utility>

#include "sim/base/error.h"

namespace rehearse {

TransferNetwork::TransferNetwork(const Program& program, const Recording& recording)
    : program_(program),
      relevance_(FindRelevantLinks(program)),
      flows_(program.flows.size()),
      links_(program.links.size()) {
  capacity_.reserve(program.links.size());
  for (const ProgramLink& link : program.links) capacity_.push_back(link.capacity.value());
  for (uint32_t flow = 0; flow < flows_.size(); ++flow) {
    flows_[flow].use_set = program.flows[flow].use_set;
  }
  full_.resize(links_.size());
  if (relevance_.has_lazy) {
    booked_load_.resize(links_.size());
    booked_.resize(flows_.size());
    for (uint32_t link = 0; link < links_.size(); ++link) {
      links_[link].left_out = relevance_.role[link] == LinkRole::kLazy;
    }
  }
  if (!program.alternatives.empty()) on_alternative_.resize(flows_.size());
  if (recording.loads) loads_.emplace(program);
  if (recording.bottlenecks) {
    bottlenecks_.emplace(program);
    holder_.resize(flows_.size());
  }
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
  CHECK(!state.moving && !state.stuck);
  state.moving = true;
  state.fresh = true;
  ++moving_;
  if (IsIntact(state.component)) ++components_[state.component].moving;
  MarkChanged(flow);
}

void TransferNetwork::End(uint32_t flow, Time now) {
  FlowState& state = flows_[flow];
  CHECK(state.moving && !state.fresh);
  if (!on_alternative_.empty()) CreditAlternative(flow, state.left);
  state.moving = false;
  state.ended = true;
  --moving_;
  if (IsIntact(state.component)) --components_[state.component].moving;
  if (bottlenecks_) bottlenecks_->SetHolder(flow, LinkId(), now);
  MarkChanged(flow);
}

void TransferNetwork::SetFactor(uint32_t flow, double factor) {
  CHECK_GT(factor, 0.0);
  if (factor_.empty()) factor_.assign(flows_.size(), 1.0);
  factor_[flow] = factor;
  refactored_.push_back(flow);
}

std::span<const TransferNetwork::FlowEnd> TransferNetwork::Settle(Time now) {
  ends_.clear();
  if (changed_.empty() && refactored_.empty() && dirty_links_.empty() && !routes_changed_) {
    return ends_;
  }
  first_visit_ = visit_ + 1;
  solved_.clear();
  if (!program_.link_changes.empty()) ChooseRoutes(now);
  CollectSeeds();
  SolveComponents();
  UpdateRates();
  if (relevance_.has_lazy) {
    for (const uint32_t flow : changed_) Book(flow, flows_[flow].moving ? flows_[flow].rate : 0.0);
    TakeInOverloadedLinks();
    LeaveOutSlackLinks();
  }

  for (const uint32_t flow : solved_) ApplySpeed(flow, now);
  for (const uint32_t flow : refactored_) {
    if (flows_[flow].moving) ApplySpeed(flow, now);
  }
  for (const uint32_t flow : changed_) {
    flows_[flow].changed = false;
    flows_[flow].ended = false;
    if (flows_[flow].fresh) ApplySpeed(flow, now);  // its component was not solved: its rate holds
  }
  if (loads_ || bottlenecks_) Record(now);
  CheckShares();
  changed_.clear();
  refactored_.clear();
  return ends_;
}

// Sets aside the flows whose rate, and with it that of others, is unchanged, and lists new ones.
void TransferNetwork::CollectSeeds() {
  begun_.clear();
  left_.clear();
  for (const uint32_t flow : changed_) {
    const FlowState& state = flows_[flow];
    if (IsIntact(state.component)) {
      const Component& component = components_[state.component];
      if (component.moving == component.flows || component.moving == 0) continue;
    } else if (state.moving && state.ended && state.listed) {
      continue;  // the next step at once
    }
    if (!state.moving) {
      left_.push_back(flow);
      continue;
    }
    if (!state.listed) Enlist(flow);
    begun_.push_back(flow);
  }
}

void TransferNetwork::Enlist(uint32_t flow) {
  for (const LinkUse& use : RelevantUses(flow)) {
    LinkState& link = links_[use.link.index()];
    if (link.left_out && link.listed.size() >= 2 * size_t{link.tidy_length}) Tidy(link);
    link.listed.push_back({flow, flows_[flow].listing, use.multiplicity});
  }
  flows_[flow].listed = true;
}

// No walk crosses a link that is left out, so nothing prunes its list. Removes void entries; called
// when the list has doubled.
void TransferNetwork::Tidy(LinkState& link) {
  std::erase_if(link.listed, [this](const Listed& entry) {
    return flows_[entry.flow].listing != entry.listing;
  });
  link.tidy_length = std::max(uint32_t{8}, static_cast<uint32_t>(link.listed.size()));
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
      Delist(entry.flow);
    }
  }
  listed.resize(kept);
}

void TransferNetwork::Delist(uint32_t flow) {
  LeaveComponent(flow);
  ++flows_[flow].listing;
  flows_[flow].listed = false;
}

void TransferNetwork::LeaveComponent(uint32_t flow) {
  const uint32_t component = std::exchange(flows_[flow].component, kNone);
  if (component == kNone) return;
  components_[component].intact = false;
  if (--components_[component].flows == 0) free_components_.push_back(component);
}

// Flows that began together and are connected with no others may do so again and again; those
// connected with others are left to UpdateRates, unless most flows began just now.
void TransferNetwork::SolveComponents() {
  const size_t most = 2 * begun_.size() >= moving_ ? flows_.size() : begun_.size();
  size_t patience = 2 * begun_.size() + 8;  // flows that a walk may visit for nothing
  for (const uint32_t flow : begun_) {
    if (flows_[flow].visit >= first_visit_) continue;
    if (WalkFrom(flow, most)) {
      SolveComponent();
      continue;
    }
    for (const uint32_t link : member_links_) links_[link].visit = 0;
    if (members_.size() >= patience) return;
    patience -= members_.size();
  }
}

// False when an earlier walk of this instant has been there, and given up.
bool TransferNetwork::Visit(uint32_t flow) {
  if (flows_[flow].visit == visit_) return true;
  if (flows_[flow].visit >= first_visit_) return false;
  flows_[flow].visit = visit_;
  members_.push_back(flow);
  return true;
}

// Solves the flows that WalkFrom has found as one component.
void TransferNetwork::SolveComponent() {
  SolveMembers();
  ++solves_;
  MakeComponent();
  for (size_t i = 0; i < members_.size(); ++i) {
    flows_[members_[i]].rate = rates_[i];
    if (relevance_.has_lazy) Book(members_[i], rates_[i]);
    if (bottlenecks_) NoteHolder(members_[i]);
  }
  solved_.insert(solved_.end(), members_.begin(), members_.end());
}

// Finds all moving flows that are connected with `flow`; false when there are more than `most`.
bool TransferNetwork::WalkFrom(uint32_t flow, size_t most) {
  ++visit_;
  members_.clear();
  member_links_.clear();
  capacities_.clear();
  use_begin_.assign(1, 0);
  uses_.clear();
  Visit(flow);
  for (size_t i = 0; i < members_.size(); ++i) {
    for (const LinkUse& use : RelevantUses(members_[i])) {
      if (!links_[use.link.index()].left_out && !AddUse(use, most)) return false;
    }
    use_begin_.push_back(static_cast<uint32_t>(uses_.size()));
  }
  return true;
}

bool TransferNetwork::AddUse(const LinkUse& use, size_t most) {
  LinkState& link = links_[use.link.index()];
  if (link.visit != visit_) {
    if (link.listed.size() / 4 > most) return false;  // almost certain, and costs nothing
    link.visit = visit_;
    link.local = static_cast<uint32_t>(member_links_.size());
    member_links_.push_back(use.link.index());
    capacities_.push_back(capacity_[use.link.index()]);
    Prune(use.link.index());
    for (const Listed& entry : link.listed) {
      if (!Visit(entry.flow) || members_.size() > most) return false;
    }
  }
  uses_.push_back({LinkId(link.local), use.multiplicity});
  return true;
}

void TransferNetwork::SolveMembers() {
  rates_.resize(members_.size());
  solver_.Solve(capacities_, use_begin_, uses_, rates_);
  for (size_t i = 0; i < member_links_.size(); ++i) {
    const uint32_t link = member_links_[i];
    full_[link] = solver_.full_levels()[i];
    if (relevance_.role[link] == LinkRole::kLazy) Watch(link);
  }
}

// A flow is held back by a link that is full at its rate; of several, by the first in the program.
void TransferNetwork::NoteHolder(uint32_t flow) {
  LinkId holder;
  for (const LinkUse& use : RelevantUses(flow)) {
    const uint32_t link = use.link.index();
    if (links_[link].left_out || full_[link] != flows_[flow].rate) continue;
    holder = std::min(holder, use.link);  // an unset link compares as the largest
  }
  holder_[flow] = holder;
}

void TransferNetwork::MakeComponent() {
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
  for (const uint32_t member : members_) flows_[member].component = id;
}

// The load of links that are left out counts a flow at its full rate, whatever its factor.
void TransferNetwork::Book(uint32_t flow, double rate) {
  const double before = std::exchange(booked_[flow], rate);
  if (before == rate) return;
  for (const LinkUse& use : relevance_.Lazy(flows_[flow].use_set)) {
    const uint32_t link = use.link.index();
    if (!links_[link].left_out) continue;
    const double share = ShareOf(link, use.multiplicity);
    booked_load_[link].Remove(share * before);
    booked_load_[link].Add(share * rate);
    Watch(link);
  }
}

double TransferNetwork::ShareOf(uint32_t link, uint32_t multiplicity) const {
  return multiplicity / program_.links[link].capacity.value();
}

void TransferNetwork::Watch(uint32_t link) {
  if (!std::exchange(links_[link].watched, true)) watched_.push_back(link);
}

void TransferNetwork::TakeInOverloadedLinks() {
  // Rates are exact to about 2^-50; a link that is just full may seem to carry that much more.
  constexpr double kJustFull = 1 + 0x1p-46;
  for (;;) {
    for (const uint32_t index : watched_) {
      LinkState& link = links_[index];
      const double limit = capacity_[index] / program_.links[index].capacity.value() * kJustFull;
      if (!link.left_out || booked_load_[index].share() <= limit) continue;
      link.left_out = false;
      link.slack = 0;
      booked_load_[index] = LoadSum();
      full_[index] = 0;
      dirty_links_.push_back(index);
    }
    if (dirty_links_.empty()) return;
    begun_.clear();
    left_.clear();
    first_visit_ = visit_ + 1;  // what was solved before was solved without these links
    UpdateRates();
  }
}

// Links that hold nobody back can be left out, all at once, without changing rates. A link that
// does hold flows back often stays for a while, the longer the fewer flows it has.
void TransferNetwork::LeaveOutSlackLinks() {
  constexpr size_t kPatience = 1024;
  for (const uint32_t index : watched_) {
    LinkState& link = links_[index];
    link.watched = false;
    if (link.left_out) continue;
    const size_t slack = full_[index] > 0 ? 0 : link.slack + link.listed.size() + 1;
    link.slack = static_cast<uint16_t>(std::min(slack, kPatience));
    if (slack <= kPatience) continue;
    link.left_out = true;
    for (const Listed& entry : link.listed) {
      if (flows_[entry.flow].listing != entry.listing) continue;
      booked_load_[index].Add(ShareOf(index, entry.multiplicity) * booked_[entry.flow]);
    }
  }
  watched_.clear();
}

// What the flow has moved since `since`.
void TransferNetwork::AccountFor(uint32_t flow, Time now) {
  FlowState& state = flows_[flow];
  const double moved = std::min(state.left, state.speed * ToSeconds(now - state.since).value());
  if (!on_alternative_.empty()) CreditAlternative(flow, moved);
  state.left -= moved;
  state.since = now;
}

void TransferNetwork::ApplySpeed(uint32_t flow, Time now) {
  FlowState& state = flows_[flow];
  const double speed = state.rate * FactorOf(flow);
  if (speed != state.speed) {
    if (!state.fresh) {
      AccountFor(flow, now);
      ends_.push_back({flow, now + Duration(flow, state.left, speed)});
    }
    state.speed = speed;
    state.full_duration = kUnknown;
  }
  if (state.fresh) {
    if (state.full_duration == kUnknown) {
      state.full_duration = Duration(flow, program_.flows[flow].bytes, speed);
    }
    state.fresh = false;
    state.left = program_.flows[flow].bytes;
    state.since = now;
    ends_.push_back({flow, now + state.full_duration});
  }
}

// How long `left` bytes take at `speed`, on the clock. Exact halves of a picosecond are common
// (rates that are simple fractions of each other) and must be rounded up whatever rounding errors
// have built up, so that flows that should end together do. The slack covers tens of such errors.
Time TransferNetwork::Duration(uint32_t flow, double left, double speed) const {
  const double slack = program_.flows[flow].bytes * kRelativeSlack;
  return ToTime(Seconds((left + slack) / speed));
}

TransferNetwork::Motion TransferNetwork::MotionOf(uint32_t flow) const {
  const FlowState& state = flows_[flow];
  return {state.speed, state.left, state.since, state.use_set};
}

void TransferNetwork::Jump(uint32_t flow, Time by, uint64_t steps) {
  flows_[flow].since += by;
  if (!on_alternative_.empty()) {
    CreditAlternative(flow, static_cast<double>(steps) * program_.flows[flow].bytes);
  }
}

void TransferNetwork::Record(Time now) {
  const auto record = [&](uint32_t flow) {
    const FlowState& state = flows_[flow];
    if (loads_) loads_->SetSpeed(flow, UsesOf(state.use_set), state.moving ? state.speed : 0.0);
    if (!bottlenecks_) return;
    LinkId holder;
    if (state.moving) holder = holder_[flow];
    if (state.stuck) holder = FailedLinkOf(state.use_set);
    bottlenecks_->SetHolder(flow, holder, now);
  };
  for (const uint32_t flow : solved_) record(flow);
  for (const uint32_t flow : refactored_) record(flow);
  for (const uint32_t flow : changed_) record(flow);
  for (const FlowEnd& end : ends_) record(end.flow);
  if (loads_) loads_->EndInstant(now);
}

std::vector<LinkLoad> TransferNetwork::TakeLoads(uint32_t link) {
  return loads_ ? loads_->TakeLoads(link) : std::vector<LinkLoad>();
}

}  // namespace rehearse
