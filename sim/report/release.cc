#include "sim/report/release.h"

#include <algorithm>
#include <set>

#include "sim/base/error.h"
#include "sim/schedule/done_ops.h"

namespace rehearse {

Releases::Channel Releases::ChannelOf(const Work& work) {
  Channel channel;
  channel.communicator = CommunicatorOf(work);
  if (const auto* send = std::get_if<Send>(&work)) {
    channel.peer = send->peer;
    channel.sends = true;
  } else if (const auto* receive = std::get_if<Receive>(&work)) {
    channel.peer = receive->peer;
  }
  return channel;
}

Releases::RoleFacts Releases::FactsOf(const Role& role) {
  RoleFacts facts;
  std::vector<uint32_t> last(role.streams.size(), kNoOp);
  for (const DoneOp& done : DoneOps(role)) {
    const Op& op = role.ops[done.place];
    const Channel channel = ChannelOf(op.work);
    uint32_t ordinal = 0;
    if (channel.communicator.IsSet()) {
      std::vector<uint32_t>& others = facts.of_channel[channel];
      ordinal = static_cast<uint32_t>(others.size());
      others.push_back(done.position);
    }
    facts.ordinal.push_back(ordinal);
    uint32_t& previous = last.at(op.stream.index());
    facts.previous_on_stream.push_back(previous);
    previous = done.position;
  }
  return facts;
}

Releases::Releases(const Schedule& schedule, const Timeline& timeline)
    : schedule_(schedule), timeline_(timeline) {
  for (const Role& role : schedule.roles) facts_.push_back(FactsOf(role));
}

const Releases::RoleFacts& Releases::FactsOfRank(uint32_t rank) const {
  return facts_.at(schedule_.role_of_rank.at(rank));
}

std::optional<OpOfRank> Releases::Of(OpOfRank op) {
  const Role& role = schedule_.roles.at(schedule_.role_of_rank.at(op.rank));
  const Channel channel = ChannelOf(role.At(op.op).work);
  const Span* span = SpanOf(op);
  if (span == nullptr || !channel.communicator.IsSet()) return std::nullopt;
  if (schedule_.communicators.at(channel.communicator.index()).size() == 1) return std::nullopt;
  const std::optional<OpOfRank> last = LastReady(op, channel);
  CHECK(last.has_value());
  return LastPredecessor(span->ready == SpanOf(*last)->ready ? op : *last);
}

// Of several that were ready last, the one of the lowest rank.
std::optional<OpOfRank> Releases::LastReady(OpOfRank op, const Channel& channel) {
  const Communicator& communicator = schedule_.communicators[channel.communicator.index()];
  const auto position = communicator.PositionOf(op.rank);
  CHECK(position.has_value());
  const uint32_t ordinal = FactsOfRank(op.rank).ordinal.at(op.op);
  const auto latest_of = [&](std::vector<uint32_t> ranks, const auto& channel_of) {
    std::optional<OpOfRank> last;
    std::sort(ranks.begin(), ranks.end());
    for (const uint32_t rank : ranks) {
      const auto& of_channel = FactsOfRank(rank).of_channel;
      const auto posts = of_channel.find(channel_of(rank));
      if (posts == of_channel.end() || ordinal >= posts->second.size()) continue;
      const OpOfRank arrival{rank, posts->second[ordinal]};
      const Span* span = SpanOf(arrival);
      if (span != nullptr && (!last || span->ready > SpanOf(*last)->ready)) last = arrival;
    }
    return last;
  };
  if (channel.peer != kEverybody) {
    const uint32_t other = communicator.Rank(position->group, channel.peer);
    const Channel back{channel.communicator, position->member, !channel.sends};
    return latest_of({op.rank, other},
                     [&](uint32_t rank) { return rank == op.rank ? channel : back; });
  }
  const auto [entry, is_new] = last_ready_.try_emplace(
      {channel.communicator.index(), position->group, ordinal}, std::nullopt);
  if (is_new) {
    entry->second = latest_of(MembersOf(channel.communicator, position->group),
                              [&](uint32_t) { return channel; });
  }
  return entry->second;
}

const std::vector<uint32_t>& Releases::MembersOf(CommunicatorId communicator, uint32_t group) {
  const auto [entry, is_new] = members_.try_emplace({communicator.index(), group});
  if (is_new) {
    const Communicator& what = schedule_.communicators[communicator.index()];
    std::vector<uint32_t> ranks;
    for (uint32_t member = 0; member < what.size(); ++member)
      ranks.push_back(what.Rank(group, member));
    std::sort(ranks.begin(), ranks.end());
    std::set<uint32_t> known;
    for (const uint32_t rank : ranks) {
      if (known.insert(timeline_.RepresentativeOf(rank)).second) entry->second.push_back(rank);
    }
  }
  return entry->second;
}

// The last to end of the ops that this one comes after; of several, a dependency rather than the op
// before it on its stream.
std::optional<OpOfRank> Releases::LastPredecessor(OpOfRank op) const {
  const uint32_t role = schedule_.role_of_rank[op.rank];
  std::optional<OpOfRank> last;
  Time end;
  const auto consider = [&](uint32_t position) {
    const OpOfRank candidate{op.rank, position};
    const Span* span = SpanOf(candidate);
    if (span == nullptr || (last && span->end <= end)) return;
    last = candidate;
    end = span->end;
  };
  for (const uint32_t before : schedule_.roles[role].AfterAt(op.op)) consider(before);
  const uint32_t previous = facts_[role].previous_on_stream[op.op];
  if (previous != kNoOp) consider(previous);
  return last;
}

const Span* Releases::SpanOf(OpOfRank op) const {
  const auto [first, last] = timeline_.SpansOf(op.rank);
  // As a rule the rank has a span for each op.
  if (last - first > op.op && timeline_.spans[first + op.op].op == op.op)
    return &timeline_.spans[first + op.op];
  const auto begin = timeline_.spans.begin();
  const auto end = begin + static_cast<std::ptrdiff_t>(last);
  const auto at =
      std::lower_bound(begin + static_cast<std::ptrdiff_t>(first), end, op.op,
                       [](const Span& span, uint32_t wanted) { return span.op < wanted; });
  return at != end && at->op == op.op ? &*at : nullptr;
}

}  // namespace rehearse
