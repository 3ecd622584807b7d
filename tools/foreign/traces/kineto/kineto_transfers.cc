#include "tools/foreign/traces/kineto/kineto_transfers.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/visible_text.h"
#include "tools/foreign/traces/kernel_names.h"

namespace rehearse {
namespace {

struct ElementType {
  DType dtype = DType::kBf16;
  double bytes = 0;
};
constexpr uint32_t kMostKinetoRanks = 1u << 24;

std::optional<ElementType> ElementOf(const std::string& name) {
  static const std::map<std::string, ElementType> types = {
      {"Double", {DType::kFp64, 8}},       {"Float", {DType::kFp32, 4}},
      {"Half", {DType::kFp16, 2}},         {"BFloat16", {DType::kBf16, 2}},
      {"Long", {DType::kFp64, 8}},         {"Int", {DType::kFp32, 4}},
      {"Short", {DType::kFp16, 2}},        {"Byte", {DType::kFp8, 1}},
      {"Char", {DType::kFp8, 1}},          {"Bool", {DType::kFp8, 1}},
      {"Float8_e4m3fn", {DType::kFp8, 1}}, {"Float8_e5m2", {DType::kFp8, 1}}};
  const auto found = types.find(name);
  if (found == types.end()) return std::nullopt;
  return found->second;
}

[[noreturn]] void FailGroup(const KinetoTrace& trace, const std::string& group,
                            const std::string& what) {
  throw Error(fmt::format("{}: rank {}, group \"{}\": {}", trace.file, trace.rank.value_or(0),
                          VisibleText(group), what));
}

// Whether all that a simulation needs is known but for who takes part.
bool HasSize(const KinetoTransfer& transfer, const KinetoWork& work) {
  if (transfer.group.empty() || !(work.collective || work.is_send || work.is_receive)) return false;
  return work.collective == CollectiveKind::kBarrier ||
         (transfer.in_elements >= 0 && transfer.out_elements >= 0 && ElementOf(transfer.dtype));
}

// The groups of all ranks, put together from what each of them says.
class GroupFinder {
 public:
  explicit GroupFinder(KinetoRanksOfStep* ranks) : ranks_(*ranks) {
    for (uint32_t place = 0; place < ranks_.traces.size(); ++place) {
      const KinetoTrace& trace = ranks_.traces[place];
      place_of_rank_[*trace.rank] = place;
      for (const KinetoTransfer& transfer : trace.transfers) {
        if (!transfer.group.empty()) users_[{transfer.group, SizeOf(transfer)}].insert(*trace.rank);
      }
    }
  }

  // kNotGiven where a member has no trace.
  uint32_t Find(const KinetoTrace& trace, const KinetoTransfer& transfer) {
    const std::optional<std::vector<uint32_t>> members = MembersOf(trace, transfer);
    if (!members) return kNotGiven;
    const auto [place, is_new] = places_.emplace(std::pair(transfer.group, *members),
                                                 static_cast<uint32_t>(ranks_.groups.size()));
    if (!is_new) return place->second;
    KinetoGroup& group = ranks_.groups.emplace_back();
    group.name = transfer.group;
    const bool has_name = names_.insert(transfer.group).second;
    // Rehearse's own are called as its axes are.
    group.axis = (trace.is_own ? "" : "group ") + VisibleText(transfer.group) +
                 (has_name ? "" : fmt::format(" of rank {}", members->front()));
    for (const uint32_t rank : *members) group.members.push_back(place_of_rank_.at(rank));
    return place->second;
  }

 private:
  static size_t SizeOf(const KinetoTransfer& transfer) {
    if (transfer.group_size > 0) return static_cast<size_t>(transfer.group_size);
    return transfer.ranks.is_whole ? transfer.ranks.listed.size() : 0;
  }

  // Ranks; nothing where some have no trace.
  std::optional<std::vector<uint32_t>> MembersOf(const KinetoTrace& trace,
                                                 const KinetoTransfer& transfer) const {
    KinetoRanks ranks = transfer.ranks;
    const auto told = trace.groups.find(transfer.group);
    if (!ranks.is_whole && told != trace.groups.end() && told->second.is_whole)
      ranks = told->second;
    const size_t size = SizeOf(transfer);
    const uint32_t world = ranks_.world;
    std::vector<uint32_t> members = ranks.listed;
    if (!ranks.is_whole && size == world) {
      members.clear();
      for (uint32_t rank = 0; rank < world; ++rank) members.push_back(rank);
    } else if (!ranks.is_whole) {
      // PyTorch cuts long lists off: ranks that use the group are its members.
      const std::set<uint32_t>& users = users_.at({transfer.group, size});
      members.assign(users.begin(), users.end());
      for (const uint32_t rank : ranks.listed) {
        if (users.contains(rank)) continue;
        if (!ranks_.is_whole()) return std::nullopt;
        FailGroup(trace, transfer.group, Absent(rank));
      }
    }
    std::sort(members.begin(), members.end());
    if (std::adjacent_find(members.begin(), members.end()) != members.end())
      FailGroup(trace, transfer.group, "lists a rank twice");
    const bool is_here = std::all_of(members.begin(), members.end(),
                                     [&](uint32_t rank) { return place_of_rank_.contains(rank); });
    if (!is_here || (size != 0 && members.size() != size)) {
      if (!ranks_.is_whole()) return std::nullopt;
      if (!is_here) FailGroup(trace, transfer.group, Absent(members.back()));
      FailGroup(trace, transfer.group,
                fmt::format("has {} ranks, but {} are known", size, members.size()));
    }
    if (!std::binary_search(members.begin(), members.end(), *trace.rank)) {
      if (!ranks_.is_whole()) return std::nullopt;
      FailGroup(trace, transfer.group, "is used by this rank, which is not a member of it");
    }
    return members;
  }
  static std::string Absent(uint32_t rank) {
    return fmt::format("lists rank {}, whose trace is missing", rank);
  }

  KinetoRanksOfStep& ranks_;
  std::map<uint32_t, uint32_t> place_of_rank_;
  std::set<std::string> names_;
  std::map<std::pair<std::string, size_t>, std::set<uint32_t>> users_;  // by name and size
  std::map<std::pair<std::string, std::vector<uint32_t>>, uint32_t> places_;
};

KinetoWork WorkOf(const KinetoTrace& trace, const KinetoTransfer& transfer,
                  const std::vector<KinetoGroup>& groups, GroupFinder* finder) {
  const KinetoWork alone = WorkInGroup(transfer, kNotGiven, 0);
  if (!HasSize(transfer, alone)) return alone;
  const uint32_t group = finder->Find(trace, transfer);
  if (group == kNotGiven) return alone;
  return WorkInGroup(transfer, group, static_cast<uint32_t>(groups[group].members.size()));
}

// What ranks must agree on for one event.
struct Posted {
  uint32_t event = 0;
  int64_t sequence = -1;
  const KinetoWork* work = nullptr;
};
using Posts = std::vector<Posted>;

void SortBySequence(Posts* posts) {
  for (const Posted& post : *posts) {
    if (post.sequence < 0) return;
  }
  std::stable_sort(posts->begin(), posts->end(),
                   [](const Posted& a, const Posted& b) { return a.sequence < b.sequence; });
}

const KinetoEvent& EventOf(const KinetoRanksOfStep& ranks, uint32_t rank, const Posted& post) {
  return ranks.traces[rank].events[post.event];
}

[[noreturn]] void FailMatch(const KinetoRanksOfStep& ranks, const KinetoGroup& group, size_t number,
                            std::pair<uint32_t, const Posts*> a,
                            std::pair<uint32_t, const Posts*> b) {
  if (number >= b.second->size()) std::swap(a, b);
  const Posted& found = (*b.second)[number];
  const auto say = [](const Posted& post) {
    return fmt::format("{} of {} bytes", Name(*post.work->collective), post.work->bytes.value());
  };
  const std::string other =
      number < a.second->size()
          ? fmt::format("{} on rank {} (before byte {} of {})", say((*a.second)[number]),
                        *ranks.traces[a.first].rank,
                        EventOf(ranks, a.first, (*a.second)[number]).offset,
                        ranks.traces[a.first].file)
          : fmt::format("rank {} has only {}", *ranks.traces[a.first].rank, a.second->size());
  throw Error(fmt::format("{}: collective {} of group \"{}\" is {} here, but {}",
                          KinetoPlace(ranks.traces[b.first], EventOf(ranks, b.first, found)),
                          number + 1, VisibleText(group.name), say(found), other));
}

void MatchGroup(const KinetoRanksOfStep& ranks, const KinetoGroup& group,
                const std::vector<Posts>& posts, std::vector<KinetoMeeting>* meetings) {
  const size_t first = meetings->size();
  for (size_t i = 0; i < posts.size(); ++i) {
    const Posts& own = posts[i];
    const size_t common = std::max(own.size(), posts[0].size());
    for (size_t k = 0; k < common; ++k) {
      const bool is_equal = k < own.size() && k < posts[0].size() &&
                            own[k].work->collective == posts[0][k].work->collective &&
                            (own[k].work->bytes == posts[0][k].work->bytes ||
                             own[k].work->collective == CollectiveKind::kAllToAll);
      if (!is_equal)
        FailMatch(ranks, group, k, {group.members[0], posts.data()}, {group.members[i], &own});
      if (i == 0) {
        const CollectiveKind kind = *own[k].work->collective;
        meetings->push_back({{},
                             kind != CollectiveKind::kBroadcast &&
                                 kind != CollectiveKind::kReduce && posts.size() > 1});
      }
      (*meetings)[first + k].events.emplace_back(group.members[i], own[k].event);
    }
  }
}

struct PairKey {
  uint32_t group = 0;
  uint32_t source = 0;  // ranks
  uint32_t target = 0;

  friend auto operator<=>(const PairKey&, const PairKey&) = default;
};

void MatchPair(const KinetoRanksOfStep& ranks, const PairKey& pair, const Posts& sends,
               const Posts& receives, std::vector<KinetoMeeting>* meetings) {
  for (size_t k = 0; k < std::max(sends.size(), receives.size()); ++k) {
    const bool is_sent = k < sends.size();
    const bool is_received = k < receives.size();
    if (is_sent && is_received && sends[k].work->bytes == receives[k].work->bytes) {
      meetings->push_back({{{pair.source, sends[k].event}, {pair.target, receives[k].event}}});
      continue;
    }
    const uint32_t blamed = is_sent ? pair.source : pair.target;
    const uint32_t source = *ranks.traces[pair.source].rank;
    const uint32_t target = *ranks.traces[pair.target].rank;
    const Posted& post = is_sent ? sends[k] : receives[k];
    const std::string other = !is_received ? fmt::format("rank {} does not receive it", target)
                              : !is_sent   ? fmt::format("rank {} does not send it", source)
                                           : fmt::format("rank {} receives {} bytes", target,
                                                         receives[k].work->bytes.value());
    throw Error(fmt::format("{}: message {} from rank {} to {} has {} bytes, but {}",
                            KinetoPlace(ranks.traces[blamed], EventOf(ranks, blamed, post)), k + 1,
                            source, target, post.work->bytes.value(), other));
  }
}

int64_t MedianOf(std::vector<int64_t>* values) {
  const auto middle = values->begin() + static_cast<std::ptrdiff_t>(values->size() / 2);
  std::nth_element(values->begin(), middle, values->end());
  return *middle;
}

}  // namespace

KinetoWork WorkInGroup(const KinetoTransfer& transfer, uint32_t group, uint32_t members) {
  KinetoWork work;
  // What it is may be known where neither its size nor its partners are.
  work.collective = CollectiveOfWord(transfer.collective);
  // "send", and "nccl:send 0->1" of a range around the kernel.
  const auto begins = [&](const char* word) {
    return transfer.collective == word || transfer.collective.starts_with(fmt::format("{} ", word));
  };
  work.is_send = begins("send") || begins("isend");
  work.is_receive = begins("recv") || begins("irecv");
  if (group == kNotGiven || !HasSize(transfer, work)) return work;
  const std::optional<ElementType> element = ElementOf(transfer.dtype);
  if (element) work.dtype = element->dtype;
  const double size = element ? element->bytes : 0;
  const auto in = Bytes(static_cast<double>(transfer.in_elements) * size);
  const auto out = Bytes(static_cast<double>(transfer.out_elements) * size);
  if (work.is_send || work.is_receive) {
    const int64_t peer = work.is_send ? transfer.target : transfer.source;
    if (peer < 0 || static_cast<uint64_t>(peer) >= members) return work;
    work.peer = static_cast<uint32_t>(peer);
    work.bytes = work.is_send ? in : out;
  } else if (work.collective == CollectiveKind::kAllGather) {
    work.bytes = out;
  } else if (work.collective != CollectiveKind::kBarrier) {
    work.bytes = in;
  }
  work.group = group;
  return work;
}

KinetoRanksOfStep GatherRanks(std::vector<KinetoTrace> traces) {
  KinetoRanksOfStep ranks;
  if (traces.size() == 1 && !traces[0].rank) traces[0].rank = 0;
  std::map<uint32_t, const KinetoTrace*> known;
  uint32_t world = 0;
  for (const KinetoTrace& trace : traces) {
    if (!trace.rank)
      throw Error(fmt::format("{}: found no rank in its distributedInfo", trace.file));
    const auto [other, is_new] = known.emplace(*trace.rank, &trace);
    if (!is_new) {
      throw Error(fmt::format("found {} and {}, both of rank {}", other->second->file, trace.file,
                              *trace.rank));
    }
    if (trace.world) world = std::max(world, *trace.world);
  }
  if (world == 0) {
    // Nobody says how many ranks there were, but what their groups list were some.
    for (const KinetoTrace& trace : traces) {
      for (const KinetoTransfer& transfer : trace.transfers) {
        for (const uint32_t rank : transfer.ranks.listed)
          world = std::max(world, std::min(rank, kMostKinetoRanks - 1) + 1);
        const auto size = std::clamp<int64_t>(transfer.group_size, 0, kMostKinetoRanks);
        world = std::max(world, static_cast<uint32_t>(size));
      }
    }
  }
  ranks.world = std::max(world, known.rbegin()->first + 1);
  std::sort(traces.begin(), traces.end(),
            [](const KinetoTrace& a, const KinetoTrace& b) { return *a.rank < *b.rank; });
  ranks.traces = std::move(traces);
  GroupFinder finder(&ranks);
  for (const KinetoTrace& trace : ranks.traces) {
    std::vector<KinetoWork>& works = ranks.works.emplace_back();
    for (const KinetoTransfer& transfer : trace.transfers)
      works.push_back(WorkOf(trace, transfer, ranks.groups, &finder));
  }
  return ranks;
}

std::string RanksPresent(const KinetoRanksOfStep& ranks) {
  constexpr size_t kMost = 4;
  const size_t count = ranks.traces.size();
  std::vector<uint32_t> shown;
  for (size_t i = 0; i < (count > kMost ? kMost : count); ++i)
    shown.push_back(*ranks.traces[i].rank);
  return fmt::format("rank{} {}{} of {}", count == 1 ? "" : "s", fmt::join(shown, ", "),
                     count > kMost ? fmt::format(" and {} more", count - kMost) : "", ranks.world);
}

std::vector<KinetoMeeting> MatchEvents(const KinetoRanksOfStep& ranks,
                                       const std::vector<std::vector<uint32_t>>& events) {
  std::vector<std::vector<Posts>> posts;  // by group, member
  for (const KinetoGroup& group : ranks.groups) posts.emplace_back(group.members.size());
  std::map<PairKey, std::pair<Posts, Posts>> messages;
  for (uint32_t rank = 0; rank < events.size(); ++rank) {
    for (const uint32_t place : events[rank]) {
      const KinetoEvent& event = ranks.traces[rank].events[place];
      if (event.transfer == kNotGiven) continue;
      const KinetoWork& work = ranks.works[rank][event.transfer];
      if (!work.is_understood()) continue;
      const Posted post = {place, ranks.traces[rank].transfers[event.transfer].sequence, &work};
      const std::vector<uint32_t>& members = ranks.groups[work.group].members;
      if (work.collective) {
        const auto member = std::lower_bound(members.begin(), members.end(), rank);
        posts[work.group][static_cast<size_t>(member - members.begin())].push_back(post);
      } else if (work.is_send) {
        messages[{work.group, rank, members[work.peer]}].first.push_back(post);
      } else {
        messages[{work.group, members[work.peer], rank}].second.push_back(post);
      }
    }
  }
  std::vector<KinetoMeeting> meetings;
  for (size_t group = 0; group < posts.size(); ++group) {
    for (Posts& own : posts[group]) SortBySequence(&own);
    MatchGroup(ranks, ranks.groups[group], posts[group], &meetings);
  }
  for (const auto& entry : messages)
    MatchPair(ranks, entry.first, entry.second.first, entry.second.second, &meetings);
  return meetings;
}

KinetoClocks AlignClocks(const KinetoRanksOfStep& ranks,
                         const std::vector<KinetoMeeting>& meetings) {
  const size_t count = ranks.traces.size();
  KinetoClocks clocks;
  clocks.later.assign(count, 0);
  if (ranks.traces[0].is_own || count == 1) return clocks;
  const auto event_of = [&](const std::pair<uint32_t, uint32_t>& one) -> const KinetoEvent& {
    return ranks.traces[one.first].events[one.second];
  };
  // How much later each rank ends than another that it meets.
  std::map<std::pair<uint32_t, uint32_t>, std::vector<int64_t>> differences;
  for (const KinetoMeeting& meeting : meetings) {
    if (!meeting.ends_together) continue;
    const auto& first = meeting.events.front();
    for (const auto& other : meeting.events) {
      if (other.first == first.first) continue;
      const int64_t difference = event_of(other).end - event_of(first).end;
      differences[{first.first, other.first}].push_back(difference);
      differences[{other.first, first.first}].push_back(-difference);
    }
  }
  std::vector<bool> is_known(count);
  constexpr int64_t kMostMicroseconds = int64_t{1} << 40;
  for (uint32_t root = 0; root < count; ++root) {
    if (is_known[root]) continue;
    // A rank that meets no known one is trusted with its own clock.
    const int64_t apart = ranks.traces[root].base - ranks.traces[0].base;
    clocks.later[root] = std::clamp(apart, -kMostMicroseconds, kMostMicroseconds) * 1'000'000;
    is_known[root] = true;
    std::vector<uint32_t> next = {root};
    for (size_t i = 0; i < next.size(); ++i) {
      const uint32_t rank = next[i];
      for (auto entry = differences.lower_bound({rank, 0});
           entry != differences.end() && entry->first.first == rank; ++entry) {
        const uint32_t other = entry->first.second;
        if (is_known[other]) continue;
        clocks.later[other] = clocks.later[rank] - MedianOf(&entry->second);
        is_known[other] = true;
        next.push_back(other);
      }
    }
  }
  constexpr int64_t kTolerance = 1'000'000'000;  // a millisecond, of clocks that drift
  std::vector<int64_t> apart;
  for (const KinetoMeeting& meeting : meetings) {
    if (!meeting.ends_together) continue;
    auto last_begin = meeting.events.front();
    auto first_end = last_begin;
    int64_t earliest = std::numeric_limits<int64_t>::max();
    int64_t begin = std::numeric_limits<int64_t>::min();
    int64_t latest = begin;
    for (const auto& one : meeting.events) {
      const int64_t end = event_of(one).end + clocks.later[one.first];
      if (end < earliest) first_end = one;
      earliest = std::min(earliest, end);
      latest = std::max(latest, end);
      const int64_t own = event_of(one).begin + clocks.later[one.first];
      if (own > begin) last_begin = one;
      begin = std::max(begin, own);
    }
    if (earliest + kTolerance < begin) {
      throw Error(fmt::format(
          "{}: ends {:.3f} ms before rank {} begins it ({}): their clocks jump or run backwards",
          KinetoPlace(ranks.traces[first_end.first], event_of(first_end)),
          static_cast<double>(begin - earliest) / 1e9, *ranks.traces[last_begin.first].rank,
          ranks.traces[last_begin.first].file));
    }
    apart.push_back(latest - earliest);
  }
  if (apart.empty()) return clocks;
  const int64_t most = *std::max_element(apart.begin(), apart.end());
  clocks.remark = fmt::format(
      "clocks were aligned on {} collectives: their ends on all ranks are {:.1f} us apart in the "
      "median, {:.1f} us at most",
      apart.size(), static_cast<double>(MedianOf(&apart)) / 1e6, static_cast<double>(most) / 1e6);
  return clocks;
}

}  // namespace rehearse
