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
    lazy_.load.resize(links_.size());
    lazy_.rate.resize(flows_.size());
    for (uint32_t link = 0; link < links_.size(); ++link) {
      links_[link].left_out = relevance_.role[link] == LinkRole::kLazy;
    }
  }
  if (!program.alternatives.empty()) on_alternative_.resize(flows_.size());
  if (recording.loads) records_.loads.emplace(program);
  if (recording.bottlenecks) {
    records_.bottlenecks.emplace(program);
    records_.holder.resize(flows_.size());
  }
}

void TransferNetwork::MarkChanged(uint32_t flow) {
  if (flows_[flow].changed) return;
  flows_[flow].changed = true;
  pending_.flows.push_back(flow);
}

void TransferNetwork::Begin(uint32_t flow) {
  FlowState& state = flows_[flow];
  CHECK(!state.moving && !state.stuck);
  state.moving = true;
  state.fresh = true;
  ++moving_;
  if (components_.IsIntact(state.component)) ++components_[state.component].moving;
  MarkChanged(flow);
}

void TransferNetwork::End(uint32_t flow, Time now) {
  FlowState& state = flows_[flow];
  CHECK(state.moving && !state.fresh);
  if (!on_alternative_.empty()) CreditAlternative(flow, state.left);
  state.moving = false;
  state.ended = true;
  --moving_;
  if (components_.IsIntact(state.component)) --components_[state.component].moving;
  if (records_.bottlenecks) records_.bottlenecks->SetHolder(flow, LinkId(), now);
  MarkChanged(flow);
}

void TransferNetwork::SetFactor(uint32_t flow, double factor) {
  CHECK_GT(factor, 0.0);
  if (factor_.empty()) factor_.assign(flows_.size(), 1.0);
  factor_[flow] = factor;
  pending_.factors.push_back(flow);
}

std::span<const TransferNetwork::FlowEnd> TransferNetwork::Settle(Time now) {
  instant_.ends.clear();
  if (pending_.IsEmpty()) return instant_.ends;
  visits_.first = visits_.last + 1;
  instant_.solved.clear();
  if (!program_.link_changes.empty()) ChooseRoutes(now);
  CollectSeeds();
  SolveComponents();
  UpdateRates();
  if (relevance_.has_lazy) {
    for (const uint32_t flow : pending_.flows)
      Book(flow, flows_[flow].moving ? flows_[flow].rate : 0.0);
    TakeInOverloadedLinks();
    LeaveOutSlackLinks();
  }

  for (const uint32_t flow : instant_.solved) ApplySpeed(flow, now);
  for (const uint32_t flow : pending_.factors) {
    if (flows_[flow].moving) ApplySpeed(flow, now);
  }
  for (const uint32_t flow : pending_.flows) {
    flows_[flow].changed = false;
    flows_[flow].ended = false;
    if (flows_[flow].fresh) ApplySpeed(flow, now);  // its component was not solved: its rate holds
  }
  if (records_.loads || records_.bottlenecks) Record(now);
  CheckShares();
  pending_.flows.clear();
  pending_.factors.clear();
  return instant_.ends;
}

// Sets aside the flows whose rate, and with it that of others, is unchanged, and lists new ones.
void TransferNetwork::CollectSeeds() {
  instant_.begun.clear();
  instant_.left.clear();
  for (const uint32_t flow : pending_.flows) {
    const FlowState& state = flows_[flow];
    if (components_.IsIntact(state.component)) {
      const Component& component = components_[state.component];
      if (component.moving == component.flows || component.moving == 0) continue;
    } else if (state.moving && state.ended && state.listed) {
      continue;  // the next step at once
    }
    if (!state.moving) {
      instant_.left.push_back(flow);
      continue;
    }
    if (!state.listed) Enlist(flow);
    instant_.begun.push_back(flow);
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
  if (component != kNone) components_.Leave(component);
}

// Flows that began together and are connected with no others may do so again and again; those
// connected with others are left to UpdateRates, unless most flows began just now.
void TransferNetwork::SolveComponents() {
  const size_t most = 2 * instant_.begun.size() >= moving_ ? flows_.size() : instant_.begun.size();
  size_t patience = 2 * instant_.begun.size() + 8;  // flows that a walk may visit for nothing
  for (const uint32_t flow : instant_.begun) {
    if (flows_[flow].visit >= visits_.first) continue;
    if (WalkFrom(flow, most)) {
      SolveComponent();
      continue;
    }
    for (const uint32_t link : walk_.links) links_[link].visit = 0;
    if (walk_.flows.size() >= patience) return;
    patience -= walk_.flows.size();
  }
}

// False when an earlier walk of this instant has been there, and given up.
bool TransferNetwork::Visit(uint32_t flow) {
  if (flows_[flow].visit == visits_.last) return true;
  if (flows_[flow].visit >= visits_.first) return false;
  flows_[flow].visit = visits_.last;
  walk_.flows.push_back(flow);
  return true;
}

// Solves the flows that WalkFrom has found as one component.
void TransferNetwork::SolveComponent() {
  SolveMembers();
  ++solves_;
  MakeComponent();
  for (size_t i = 0; i < walk_.flows.size(); ++i) {
    flows_[walk_.flows[i]].rate = walk_.rates[i];
    if (relevance_.has_lazy) Book(walk_.flows[i], walk_.rates[i]);
    if (records_.bottlenecks) NoteHolder(walk_.flows[i]);
  }
  instant_.solved.insert(instant_.solved.end(), walk_.flows.begin(), walk_.flows.end());
}

// Finds all moving flows that are connected with `flow`; false when there are more than `most`.
bool TransferNetwork::WalkFrom(uint32_t flow, size_t most) {
  ++visits_.last;
  walk_.flows.clear();
  walk_.links.clear();
  walk_.capacities.clear();
  walk_.use_begin.assign(1, 0);
  walk_.uses.clear();
  Visit(flow);
  for (size_t i = 0; i < walk_.flows.size(); ++i) {
    for (const LinkUse& use : RelevantUses(walk_.flows[i])) {
      if (!links_[use.link.index()].left_out && !AddUse(use, most)) return false;
    }
    walk_.use_begin.push_back(static_cast<uint32_t>(walk_.uses.size()));
  }
  return true;
}

bool TransferNetwork::AddUse(const LinkUse& use, size_t most) {
  LinkState& link = links_[use.link.index()];
  if (link.visit != visits_.last) {
    if (link.listed.size() / 4 > most) return false;  // almost certain, and costs nothing
    link.visit = visits_.last;
    link.local = static_cast<uint32_t>(walk_.links.size());
    walk_.links.push_back(use.link.index());
    walk_.capacities.push_back(capacity_[use.link.index()]);
    Prune(use.link.index());
    for (const Listed& entry : link.listed) {
      if (!Visit(entry.flow) || walk_.flows.size() > most) return false;
    }
  }
  walk_.uses.push_back({LinkId(link.local), use.multiplicity});
  return true;
}

void TransferNetwork::SolveMembers() {
  walk_.rates.resize(walk_.flows.size());
  walk_.solver.Solve(walk_.capacities, walk_.use_begin, walk_.uses, walk_.rates);
  for (size_t i = 0; i < walk_.links.size(); ++i) {
    const uint32_t link = walk_.links[i];
    full_[link] = walk_.solver.full_levels()[i];
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
  records_.holder[flow] = holder;
}

void TransferNetwork::MakeComponent() {
  for (const uint32_t flow : walk_.flows) LeaveComponent(flow);
  const uint32_t id = components_.Make(static_cast<uint32_t>(walk_.flows.size()));
  for (const uint32_t flow : walk_.flows) flows_[flow].component = id;
}

// The load of links that are left out counts a flow at its full rate, whatever its factor.
void TransferNetwork::Book(uint32_t flow, double rate) {
  const double before = std::exchange(lazy_.rate[flow], rate);
  if (before == rate) return;
  for (const LinkUse& use : relevance_.Lazy(flows_[flow].use_set)) {
    const uint32_t link = use.link.index();
    if (!links_[link].left_out) continue;
    const double share = ShareOf(link, use.multiplicity);
    lazy_.load[link].Remove(share * before);
    lazy_.load[link].Add(share * rate);
    Watch(link);
  }
}

double TransferNetwork::ShareOf(uint32_t link, uint32_t multiplicity) const {
  return multiplicity / program_.links[link].capacity.value();
}

void TransferNetwork::Watch(uint32_t link) {
  if (!std::exchange(links_[link].watched, true)) lazy_.watched.push_back(link);
}

void TransferNetwork::TakeInOverloadedLinks() {
  // Rates are exact to about 2^-50; a link that is just full may seem to carry that much more.
  constexpr double kJustFull = 1 + 0x1p-46;
  for (;;) {
    for (const uint32_t index : lazy_.watched) {
      LinkState& link = links_[index];
      const double limit = capacity_[index] / program_.links[index].capacity.value() * kJustFull;
      if (!link.left_out || lazy_.load[index].share() <= limit) continue;
      link.left_out = false;
      link.slack = 0;
      lazy_.load[index] = LoadSum();
      full_[index] = 0;
      pending_.links.push_back(index);
    }
    if (pending_.links.empty()) return;
    instant_.begun.clear();
    instant_.left.clear();
    visits_.first = visits_.last + 1;  // what was solved before was solved without these links
    UpdateRates();
  }
}

// Links that hold nobody back can be left out, all at once, without changing rates. A link that
// does hold flows back often stays for a while, the longer the fewer flows it has.
void TransferNetwork::LeaveOutSlackLinks() {
  constexpr size_t kPatience = 1024;
  for (const uint32_t index : lazy_.watched) {
    LinkState& link = links_[index];
    link.watched = false;
    if (link.left_out) continue;
    const size_t slack = full_[index] > 0 ? 0 : link.slack + link.listed.size() + 1;
    link.slack = static_cast<uint16_t>(std::min(slack, kPatience));
    if (slack <= kPatience) continue;
    link.left_out = true;
    for (const Listed& entry : link.listed) {
      if (flows_[entry.flow].listing != entry.listing) continue;
      lazy_.load[index].Add(ShareOf(index, entry.multiplicity) * lazy_.rate[entry.flow]);
    }
  }
  lazy_.watched.clear();
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
      instant_.ends.push_back({flow, now + Duration(flow, state.left, speed)});
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
    instant_.ends.push_back({flow, now + state.full_duration});
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
    if (records_.loads)
      records_.loads->SetSpeed(flow, UsesOf(state.use_set), state.moving ? state.speed : 0.0);
    if (!records_.bottlenecks) return;
    LinkId holder;
    if (state.moving) holder = records_.holder[flow];
    if (state.stuck) holder = FailedLinkOf(state.use_set);
    records_.bottlenecks->SetHolder(flow, holder, now);
  };
  for (const uint32_t flow : instant_.solved) record(flow);
  for (const uint32_t flow : pending_.factors) record(flow);
  for (const uint32_t flow : pending_.flows) record(flow);
  for (const FlowEnd& end : instant_.ends) record(end.flow);
  if (records_.loads) records_.loads->EndInstant(now);
}

std::vector<LinkLoad> TransferNetwork::TakeLoads(uint32_t link) {
  return records_.loads ? records_.loads->TakeLoads(link) : std::vector<LinkLoad>();
}

}  // namespace rehearse
