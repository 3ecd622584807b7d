// The part of TransferNetwork that deals with links that change, and its debug check.
#include <algorithm>

#include "sim/base/error.h"
#include "sim/engine/transfer_network.h"

namespace rehearse {

std::span<const LinkUse> TransferNetwork::UsesOf(uint32_t use_set) const {
  return {program_.uses.data() + program_.use_set_begin[use_set],
          program_.uses.data() + program_.use_set_begin[use_set + 1]};
}

void TransferNetwork::SetCapacity(uint32_t link, double capacity) {
  CHECK_GE(capacity, 0.0);
  if (capacity_[link] == capacity) return;
  if (capacity_[link] == 0 || capacity == 0) pending_.routes = true;
  capacity_[link] = capacity;
  pending_.links.push_back(link);
  if (relevance_.role[link] == LinkRole::kLazy) Watch(link);
}

LinkId TransferNetwork::FailedLinkOf(uint32_t use_set) const {
  for (const LinkUse& use : UsesOf(use_set)) {
    if (capacity_[use.link.index()] == 0) return use.link;
  }
  return LinkId();
}

LinkId TransferNetwork::StuckOn(uint32_t flow) const {
  return flows_[flow].stuck ? FailedLinkOf(flows_[flow].use_set) : LinkId();
}

// Chooses for the flows that have begun and, when a link has failed or recovered, for all that move
// or would.
void TransferNetwork::ChooseRoutes(Time now) {
  if (pending_.routes) {
    for (uint32_t flow = 0; flow < flows_.size(); ++flow) {
      if (flows_[flow].moving || flows_[flow].stuck) ChooseRoute(flow, now);
    }
    pending_.routes = false;
    return;
  }
  for (size_t i = 0; i < pending_.flows.size(); ++i) {
    if (flows_[pending_.flows[i]].fresh) ChooseRoute(pending_.flows[i], now);
  }
}

void TransferNetwork::ChooseRoute(uint32_t flow, Time now) {
  FlowState& state = flows_[flow];
  const uint32_t own = program_.flows[flow].use_set;
  const uint32_t alternative = program_.alternatives.empty() ? kNone : program_.alternatives[flow];
  uint32_t choice = kNone;
  if (!FailedLinkOf(own).IsSet()) {
    choice = own;
  } else if (alternative != kNone && !FailedLinkOf(alternative).IsSet()) {
    choice = alternative;
  }
  if (choice == kNone ? state.stuck : state.moving && choice == state.use_set) return;

  if (state.moving) LeaveRoute(flow, now);
  if (choice == kNone) {
    state.stuck = true;
    if (state.moving) --moving_;
    state.moving = false;
    instant_.ends.push_back({flow, kNever});
  } else {
    state.stuck = false;
    if (!state.moving) ++moving_;
    state.moving = true;
    state.use_set = choice;
    MarkChanged(flow);
  }
}

// The flow stands still from now on and is off all lists.
void TransferNetwork::LeaveRoute(uint32_t flow, Time now) {
  FlowState& state = flows_[flow];
  if (state.fresh) {
    state.fresh = false;
    state.left = program_.flows[flow].bytes;
    state.since = now;
  } else {
    AccountFor(flow, now);
  }
  state.rate = 0;
  state.speed = 0;
  if (relevance_.has_lazy) Book(flow, 0);
  for (const LinkUse& use : RelevantUses(flow)) pending_.links.push_back(use.link.index());
  Delist(flow);
  MarkChanged(flow);
}

// In programs with alternatives.
void TransferNetwork::CreditAlternative(uint32_t flow, double bytes) {
  if (flows_[flow].use_set == program_.alternatives[flow]) on_alternative_[flow] += bytes;
}

// Checks that every link is within its capacity and every flow is held back by a full link on which
// none is faster. This looks at all flows; if there are many, only now and then.
void TransferNetwork::CheckShares() const {
#ifndef NDEBUG
  if (flows_.size() > 512 && solves_ % 64 != 0) return;
  constexpr double kTolerance = 1e-9;
  std::vector<double> load(links_.size(), 0);
  std::vector<double> fastest(links_.size(), 0);
  const auto visit_moving = [this](const auto& visit) {
    for (const FlowState& flow : flows_) {
      if (flow.moving) visit(flow, UsesOf(flow.use_set));
    }
  };
  visit_moving([&](const FlowState& flow, std::span<const LinkUse> uses) {
    for (const LinkUse& use : uses) {
      load[use.link.index()] += flow.rate * use.multiplicity;
      fastest[use.link.index()] = std::max(fastest[use.link.index()], flow.rate);
    }
  });
  visit_moving([&](const FlowState& flow, std::span<const LinkUse> uses) {
    bool held_back = false;
    for (const LinkUse& use : uses) {
      const uint32_t link = use.link.index();
      CHECK_LE(load[link], capacity_[link] * (1 + kTolerance));
      held_back = held_back || (load[link] >= capacity_[link] * (1 - kTolerance) &&
                                flow.rate >= fastest[link] * (1 - kTolerance));
    }
    CHECK(held_back);
  });
#endif
}

}  // namespace rehearse
