// The part of TransferNetwork that brings rates up to date after a few flows have come or gone.
//
// The filling of max_min.h is replayed, all rates growing together, but only for the links that the
// change reaches. At first these are the links of the changed flows. Such a link takes from the old
// solution the levels at which its flows freeze elsewhere, until the replay reaches them: up to
// there nothing can change any more. A link that is full
//   - at its old level: changes nothing;
//   - before: its flows are slowed down, and the other links of each are filled again;
//   - not where it was: flows that no other full link holds back at this level grow on, and the
//     other links of each are filled again.
// A link that is not reached keeps its flows and their rates. Each link adds up what freezes on it
// in the same steps as MaxMinSolver, and so arrives at the same bits.
#include <algorithm>
#include <array>

#include "sim/base/error.h"
#include "sim/engine/transfer_network.h"

namespace rehearse {
namespace {

constexpr double kGrowing = LevelQueue::kNever;
// A link with few flows is looked at when it is really full; one with many when it would be if none
// of its flows froze before, since looking ahead costs more than looking twice.
constexpr uint32_t kFewFlows = 8;

}  // namespace

// Updates the rates of the flows in instant_.begun that are in no component, and of those that
// instant_.left and pending_.links concern.
void TransferNetwork::UpdateRates() {
  if (instant_.begun.empty() && instant_.left.empty() && pending_.links.empty()) return;
  replay_.count = 0;
  replay_.halts.Clear();
  replay_.moved.clear();
  replay_.old_rates.clear();
  ++visits_.last;
  for (const uint32_t flow : instant_.begun) {
    if (components_.IsIntact(flows_[flow].component) && flows_[flow].visit >= visits_.first)
      continue;
    replay_.old_rates.push_back({flow, flows_[flow].rate});
    flows_[flow].rate = kGrowing;
  }
  // Links of components that were just solved are up to date.
  const auto refill = [this](uint32_t link) {
    if (!links_[link].left_out && links_[link].visit < visits_.first) Refill(link);
  };
  for (const OldRate& old : replay_.old_rates) {
    for (const LinkUse& use : RelevantUses(old.flow)) refill(use.link.index());
  }
  for (const uint32_t flow : instant_.left) {
    for (const LinkUse& use : RelevantUses(flow)) {
      if (full_[use.link.index()] > 0) refill(use.link.index());
    }
  }
  for (const uint32_t link : pending_.links) refill(link);
  pending_.links.clear();
  if (replay_.count == 0) return;
  ++solves_;
  FillAgain();
  KeepNewRates();
}

void TransferNetwork::FillAgain() {
  HaltWhereMoved(0);
  for (LevelQueue::Slot next = replay_.halts.Lowest(); next.level != LevelQueue::kNever;) {
    const double level = next.level;
    replay_.set_free.clear();
    do {
      Halt(next.slot, level);
      next = replay_.halts.Lowest();
    } while (next.level == level);
    // Now it is known which links are full at this level.
    for (const uint32_t index : replay_.set_free) SetFree(index, level);
    if (replay_.moved.empty()) continue;
    HaltWhereMoved(level);
    next = replay_.halts.Lowest();
  }
}

// All rates have reached the level at which the link may be full or was full.
void TransferNetwork::Halt(uint32_t index, double level) {
  Filling& filling = replay_.fillings[index];
  if (!filling.few) Freeze(filling, level);
  if (filling.level == level) {
    replay_.halts.Set(index, LevelQueue::kNever);
    SlowDown(index, level);
  } else if (filling.old_full == level) {
    replay_.halts.Set(index, LevelQueue::kNever);
    full_[filling.link] = 0;
    replay_.set_free.push_back(index);
  } else {
    HaltNext(index, level);
  }
}

// Halts where the link may be full or was full, whichever comes first after `level`.
void TransferNetwork::HaltNext(uint32_t index, double level) {
  const Filling& filling = replay_.fillings[index];
  const double old_full = filling.old_full > level ? filling.old_full : LevelQueue::kNever;
  replay_.halts.Set(index, std::min(filling.level, old_full));
}

// Begins to replay the link's filling.
void TransferNetwork::Refill(uint32_t link) {
  LinkState& state = links_[link];
  if (replay_.count == replay_.fillings.size()) replay_.fillings.resize(2 * replay_.count + 16);
  state.visit = visits_.last;
  state.local = replay_.count;
  replay_.moved.push_back(replay_.count);
  Filling& filling = replay_.fillings[replay_.count++];
  replay_.halts.Add();
  Listed* const listed = state.listed.data();
  Listed* const end = listed + state.listed.size();
  Listed* kept = listed;
  uint64_t multiplicity = 0;
  for (const Listed* i = listed; i != end; ++i) {
    const Listed entry = *i;
    const FlowState& flow = flows_[entry.flow];
    if (flow.listing != entry.listing) continue;
    if (!flow.moving) {
      Delist(entry.flow);
      continue;
    }
    if (flow.component != kNone) LeaveComponent(entry.flow);
    *kept++ = entry;
    multiplicity += entry.multiplicity;
  }
  filling.link = link;
  filling.count = static_cast<uint32_t>(kept - listed);
  if (kept != end) state.listed.resize(filling.count);
  filling.flows = listed;
  filling.few = filling.count <= kFewFlows;
  filling.moved = true;
  filling.unfrozen = multiplicity;
  filling.load = 0;
  if (filling.count == 0) {
    full_[link] = 0;
    filling.first_level = LevelQueue::kNever;
  } else {
    filling.first_level = capacity_[link] / static_cast<double>(multiplicity);
  }
  filling.level = filling.first_level;
  filling.old_full = full_[link];
}

// Halts next at each link where some flows got another rate at `level`.
void TransferNetwork::HaltWhereMoved(double level) {
  for (const uint32_t index : replay_.moved) {
    Filling& filling = replay_.fillings[index];
    filling.moved = false;
    if (filling.few) filling.level = FullLevel(filling);
    HaltNext(index, level);
  }
  replay_.moved.clear();
}

// Where a link with few flows will be full if their rates stay as they are; kGrowing: nowhere. Most
// of the time goes here: the levels at which flows freeze are as good as random, and so is each
// branch on them.
double TransferNetwork::FullLevel(const Filling& filling) const {
  const Listed* const flows = filling.flows;
  const uint32_t count = filling.count;
  const double first_level = filling.first_level;
  if (count <= 1) {
    return count == 0 || flows_[flows[0].flow].rate < first_level ? kGrowing : first_level;
  }
  const double capacity = capacity_[filling.link];
  if (count == 2) {
    const double a = flows_[flows[0].flow].rate;
    const double b = flows_[flows[1].flow].rate;
    const double low = std::min(a, b);
    if (low >= first_level) return first_level;
    const uint32_t with_low = flows[a > b].multiplicity;
    const uint32_t with_high = flows[a <= b].multiplicity;
    const double left = capacity - low * static_cast<double>(with_low);
    const double level =
        std::max(first_level, with_high == 1 ? left : left / static_cast<double>(with_high));
    return std::max(a, b) >= level ? level : kGrowing;
  }

  std::array<double, kFewFlows> rates = {};
  std::array<uint32_t, kFewFlows> multiplicity = {};
  if (filling.unfrozen == count) {
    for (uint32_t i = 0; i < count; ++i) {
      double rate = flows_[flows[i].flow].rate;
      for (uint32_t j = 0; j < i; ++j) {
        const double low = std::min(rates[j], rate);
        rate = std::max(rates[j], rate);
        rates[j] = low;
      }
      rates[i] = rate;
      multiplicity[i] = 1;
    }
  } else {
    for (uint32_t i = 0; i < count; ++i) {
      const double rate = flows_[flows[i].flow].rate;
      uint32_t place = i;
      for (; place > 0 && rates[place - 1] > rate; --place) {
        rates[place] = rates[place - 1];
        multiplicity[place] = multiplicity[place - 1];
      }
      rates[place] = rate;
      multiplicity[place] = flows[i].multiplicity;
    }
  }

  double level = first_level;
  double load = 0;
  uint64_t unfrozen = filling.unfrozen;
  for (uint32_t i = 0; i < count;) {
    const double rate = rates[i];
    if (rate >= level) return level;
    uint64_t together = multiplicity[i++];
    for (; i < count && rates[i] == rate; ++i) together += multiplicity[i];
    load += rate * static_cast<double>(together);
    unfrozen -= together;
    if (unfrozen > 0) level = std::max(level, (capacity - load) / static_cast<double>(unfrozen));
  }
  return kGrowing;
}

// Takes account of the flows that have frozen below that level: all that ever will.
void TransferNetwork::Freeze(Filling& filling, double below) {
  replay_.freezing.clear();
  for (uint32_t i = 0; i < filling.count;) {
    const double rate = flows_[filling.flows[i].flow].rate;
    if (rate < below) {
      replay_.freezing.emplace_back(rate, filling.flows[i].multiplicity);
      std::swap(filling.flows[i], filling.flows[--filling.count]);
    } else {
      ++i;
    }
  }
  std::sort(replay_.freezing.begin(), replay_.freezing.end());
  for (size_t i = 0; i < replay_.freezing.size();) {
    const double rate = replay_.freezing[i].first;
    uint64_t together = 0;
    for (; i < replay_.freezing.size() && replay_.freezing[i].first == rate; ++i)
      together += replay_.freezing[i].second;
    filling.load += rate * static_cast<double>(together);
    filling.unfrozen -= together;
    if (filling.unfrozen == 0) {
      filling.level = kGrowing;
      full_[filling.link] = 0;
      return;
    }
    const double left = capacity_[filling.link] - filling.load;
    filling.level = std::max(filling.level, left / static_cast<double>(filling.unfrozen));
  }
}

// The link is full: what still grows on it stops growing.
void TransferNetwork::SlowDown(uint32_t index, double level) {
  full_[replay_.fillings[index].link] = level;
  links_[replay_.fillings[index].link].slack = 0;
  replay_.fillings[index].moved = true;  // it will not be looked at again
  const Listed* const end = replay_.fillings[index].flows + replay_.fillings[index].count;
  for (const Listed* entry = replay_.fillings[index].flows; entry != end; ++entry) {
    const uint32_t flow = entry->flow;
    if (flows_[flow].rate > level) SetRate(flow, level);
  }
}

// The link is not full here any more.
void TransferNetwork::SetFree(uint32_t index, double level) {
  const Listed* const end = replay_.fillings[index].flows + replay_.fillings[index].count;
  for (const Listed* entry = replay_.fillings[index].flows; entry != end; ++entry) {
    const uint32_t flow = entry->flow;
    if (flows_[flow].rate != level) continue;
    const std::span<const LinkUse> uses = RelevantUses(flow);
    const bool held = std::any_of(uses.begin(), uses.end(), [&](const LinkUse& use) {
      return full_[use.link.index()] == level && !links_[use.link.index()].left_out;
    });
    if (!held) SetRate(flow, kGrowing);
  }
  if (replay_.fillings[index].moved) return;
  replay_.fillings[index].moved = true;
  replay_.moved.push_back(index);
}

void TransferNetwork::SetRate(uint32_t flow, double rate) {
  if (flows_[flow].rate != kGrowing) replay_.old_rates.push_back({flow, flows_[flow].rate});
  flows_[flow].rate = rate;
  for (const LinkUse& use : RelevantUses(flow)) {
    const LinkState& link = links_[use.link.index()];
    if (link.left_out) continue;
    if (link.visit != visits_.last) {
      Refill(use.link.index());
      continue;
    }
    Filling& filling = replay_.fillings[link.local];
    if (filling.moved || !filling.few) continue;
    filling.moved = true;
    replay_.moved.push_back(link.local);
  }
}

void TransferNetwork::KeepNewRates() {
  for (const auto [flow, old_rate] : replay_.old_rates) {
    const double rate = flows_[flow].rate;
    CHECK(rate != kGrowing);
    if (records_.bottlenecks) NoteHolder(flow);
    if (rate == old_rate) continue;
    if (relevance_.has_lazy) Book(flow, rate);
    instant_.solved.push_back(flow);
  }
  for (uint32_t i = 0; i < replay_.count; ++i) {
    const Filling& filling = replay_.fillings[i];
    if (full_[filling.link] == 0 && relevance_.role[filling.link] == LinkRole::kLazy) {
      Watch(filling.link);
    }
    if (!records_.bottlenecks) continue;
    for (const Listed& entry : links_[filling.link].listed) {
      NoteHolder(entry.flow);
      instant_.solved.push_back(entry.flow);
    }
  }
}

}  // namespace rehearse
