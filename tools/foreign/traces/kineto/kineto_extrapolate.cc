#include "tools/foreign/traces/kineto/kineto_extrapolate.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/visible_text.h"

namespace rehearse {
namespace {

// Digits of a rank's number that run within a group, the smallest stride first.
using Digits = std::vector<StridedAxis>;

uint64_t SizeOf(const Digits& digits) {
  uint64_t size = 1;
  for (const StridedAxis& digit : digits) size *= digit.extent;
  return size;
}

// The digits in which the ascending ranks differ: {0, 1, 8, 9} are 2 of stride 1 and 2 of stride 8.
// Nothing where they are no such grid, or where it begins in the middle of a digit.
std::optional<Digits> DigitsOf(const std::vector<uint32_t>& members) {
  Digits digits;
  std::vector<uint32_t> left = members;
  while (left.size() > 1) {
    const uint32_t stride = left[1] - left[0];
    uint32_t count = 1;
    while (count < left.size() && left[count] == left[0] + uint64_t{count} * stride) ++count;
    if (left.size() % count != 0) return std::nullopt;
    std::vector<uint32_t> firsts;
    for (size_t i = 0; i < left.size(); i += count) {
      for (uint32_t k = 0; k < count; ++k)
        if (left[i + k] != left[i] + uint64_t{k} * stride) return std::nullopt;
      firsts.push_back(left[i]);
    }
    if (!digits.empty() && stride < digits.back().stride * digits.back().extent)
      return std::nullopt;
    if (left[0] / stride % count != 0) return std::nullopt;
    digits.push_back({count, stride});
    left = std::move(firsts);
  }
  return digits;
}

struct GroupOfFamily {
  std::string name;
  uint32_t base = 0;   // the first of its ranks
  uint32_t trace = 0;  // that has it
};

// A group of each rank of the job.
struct Family {
  std::string axis;
  Digits digits;
  std::vector<GroupOfFamily> groups;
};

// What ranks must agree on for their collectives to meet.
using Meeting = std::tuple<CollectiveKind, double, DType>;

class Extrapolation {
 public:
  Extrapolation(const KinetoRanksOfStep& ranks, const std::vector<std::vector<uint32_t>>& events,
                uint32_t world)
      : ranks_(ranks), events_(events), world_(world) {}

  KinetoJob Make(std::vector<std::string>* remarks) {
    FindFamilies();
    Stretch();
    MakeWorks();
    job_.role_of_rank = RolesOf(true);
    if (job_.role_of_rank.empty()) {
      ForgetMessages("of stages of which no rank was traced");
      job_.role_of_rank = RolesOf(false);
    }
    for (uint32_t family = 0; family < families_.size(); ++family) {
      if (!MessagesAgree(family)) Forget(family, true, "that the other rank's trace does not have");
      if (!CollectivesAgree(family)) Forget(family, false, "on which the ranks do not agree");
    }
    Remark(remarks);
    return std::move(job_);
  }

 private:
  // What is known of a group: who they are, or only how many.
  struct Known {
    Digits digits;
    uint64_t size = 0;
    bool is_grid = false;
  };

  Known KnownOf(const KinetoTrace& trace, const KinetoTransfer& transfer) const {
    KinetoRanks listed = transfer.ranks;
    const auto told = trace.groups.find(transfer.group);
    if (!listed.is_whole && told != trace.groups.end()) listed = told->second;
    Known known;
    known.size = transfer.group_size > 0 ? static_cast<uint64_t>(transfer.group_size)
                 : listed.is_whole       ? listed.listed.size()
                                         : 0;
    std::vector<uint32_t>& members = listed.listed;
    std::sort(members.begin(), members.end());
    if (!listed.is_whole && known.size == ranks_.world) {
      known.digits = {{ranks_.world, 1}};
      known.is_grid = true;
    } else if (!listed.is_whole && members.size() > 1 && known.size > members.size()) {
      // Cut off in the middle, as PyTorch does: the stride is that of the first two.
      const uint32_t stride = members[1] - members[0];
      const bool is_even = stride > 0 && members.back() == members[0] + (known.size - 1) * stride &&
                           members[0] / stride % known.size == 0;
      if (is_even) known.digits = {{static_cast<uint32_t>(known.size), stride}};
      known.is_grid = is_even;
    } else if (listed.is_whole && members.size() == known.size) {
      const std::optional<Digits> digits = DigitsOf(members);
      known.is_grid = digits.has_value();
      if (digits) known.digits = *digits;
    }
    return known;
  }

  void FindFamilies() {
    family_of_.resize(ranks_.traces.size());
    std::map<std::string, uint64_t> uses;  // of groups of which only the size is known
    std::map<std::string, uint64_t> sizes;
    for (uint32_t i = 0; i < ranks_.traces.size(); ++i) {
      const KinetoTrace& trace = ranks_.traces[i];
      family_of_[i].assign(trace.transfers.size(), kNotGiven);
      std::vector<uint64_t> count(trace.transfers.size());
      for (const uint32_t place : events_[i]) {
        const uint32_t transfer = trace.events[place].transfer;
        if (transfer != kNotGiven) ++count[transfer];
      }
      for (size_t k = 0; k < trace.transfers.size(); ++k) {
        const KinetoTransfer& transfer = trace.transfers[k];
        if (transfer.group.empty() || count[k] == 0) continue;
        const Known known = KnownOf(trace, transfer);
        if (known.is_grid) {
          family_of_[i][k] = FamilyOf(i, transfer.group, known.digits);
        } else if (known.size > 1 && transfer.ranks.listed.empty()) {
          uses[transfer.group] += count[k];
          sizes[transfer.group] = known.size;
        }
      }
    }
    GuessFamilies(uses, sizes);
  }

  // Groups of other ranks have other names: one that this trace has beside others of its digits is
  // the family in which it has no group yet.
  uint32_t FamilyOf(uint32_t trace, const std::string& group, const Digits& digits) {
    uint32_t base = *ranks_.traces[trace].rank;  // of its ranks the first
    for (const StridedAxis& digit : digits)
      base -= base / digit.stride % digit.extent * digit.stride;
    for (uint32_t i = 0; i < families_.size(); ++i) {
      if (!IsEqual(families_[i].digits, digits)) continue;
      for (const GroupOfFamily& known : families_[i].groups) {
        if (known.name != group) continue;
        families_[i].groups.push_back({group, base, trace});
        return i;
      }
    }
    for (uint32_t i = 0; i < families_.size(); ++i) {
      const std::vector<GroupOfFamily>& known = families_[i].groups;
      const bool is_free = std::none_of(known.begin(), known.end(), [&](const GroupOfFamily& one) {
        return one.trace == trace || one.base == base;
      });
      if (!is_free || !IsEqual(families_[i].digits, digits)) continue;
      families_[i].groups.push_back({group, base, trace});
      return i;
    }
    std::string axis = (ranks_.traces[trace].is_own ? "" : "group ") + VisibleText(group);
    if (axes_.contains(axis)) axis += fmt::format(" of {}", SizeOf(digits));
    while (!axes_.insert(axis).second) axis += "'";
    families_.push_back({axis, digits, {{group, base, trace}}});
    return static_cast<uint32_t>(families_.size() - 1);
  }
  static bool IsEqual(const Digits& a, const Digits& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](const StridedAxis& one, const StridedAxis& other) {
                        return one.extent == other.extent && one.stride == other.stride;
                      });
  }

  // The most used one innermost, as long as the job has room for another.
  void GuessFamilies(const std::map<std::string, uint64_t>& uses,
                     const std::map<std::string, uint64_t>& sizes) {
    std::vector<std::pair<uint64_t, std::string>> by_use;
    for (const auto& [group, count] : uses) by_use.emplace_back(count, group);
    std::stable_sort(by_use.begin(), by_use.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    uint64_t stride = 1;
    std::map<std::string, Digits> guessed;
    for (const auto& [count, group] : by_use) {
      const uint64_t size = sizes.at(group);
      if (ranks_.world % size != 0) continue;
      if (stride * size > ranks_.world || ranks_.world % (stride * size) != 0) stride = 1;
      guessed[group] = {{static_cast<uint32_t>(size), static_cast<uint32_t>(stride)}};
      stride *= size;
      assumed_.push_back(fmt::format("\"{}\" of {}", VisibleText(group), size));
    }
    for (uint32_t i = 0; i < ranks_.traces.size(); ++i) {
      const KinetoTrace& trace = ranks_.traces[i];
      for (size_t k = 0; k < trace.transfers.size(); ++k) {
        const auto found = guessed.find(trace.transfers[k].group);
        if (found != guessed.end() && family_of_[i][k] == kNotGiven)
          family_of_[i][k] = FamilyOf(i, found->first, found->second);
      }
    }
  }

  // Groups that reach across the whole job reach across the other one.
  void Stretch() {
    for (Family& family : families_) {
      if (family.digits.empty()) continue;
      StridedAxis& last = family.digits.back();
      const uint64_t reach = uint64_t{last.extent} * last.stride;
      if (reach == ranks_.world && world_ != ranks_.world) {
        const uint64_t scaled = uint64_t{last.extent} * world_;
        if (scaled % ranks_.world != 0) Fail(family);
        last.extent = static_cast<uint32_t>(scaled / ranks_.world);
        ++stretched_;
      } else if (world_ % reach != 0) {
        Fail(family);
      }
    }
    for (const Family& family : families_)
      job_.communicators.push_back(
          Communicator::Strided(family.axis, AxesOf(family.digits), OthersOf(family.digits)));
  }
  [[noreturn]] void Fail(const Family& family) const {
    throw Error(
        fmt::format("--extrapolate: found {}, but ranks of {} do not divide them: the job "
                    "had {} ranks, so give these, or a multiple of them",
                    world_, family.axis, ranks_.world));
  }
  static Digits AxesOf(const Digits& digits) {
    Digits axes;
    for (const StridedAxis& digit : digits) {
      if (digit.extent > 1) axes.push_back(digit);
    }
    return axes;
  }
  // What lies between a group's digits, and beyond them.
  Digits OthersOf(const Digits& digits) const {
    Digits others;
    uint32_t next = 1;
    for (const StridedAxis& digit : AxesOf(digits)) {
      if (digit.stride > next) others.push_back({digit.stride / next, next});
      next = digit.stride * digit.extent;
    }
    if (world_ > next) others.push_back({world_ / next, next});
    return others;
  }

  // Every transfer whose kind and size are known, on its family.
  void MakeWorks() {
    for (size_t i = 0; i < ranks_.traces.size(); ++i) {
      std::vector<KinetoWork>& works = job_.works.emplace_back();
      for (size_t k = 0; k < ranks_.traces[i].transfers.size(); ++k) {
        const uint32_t family = family_of_[i][k];
        KinetoWork work;
        if (family != kNotGiven) {
          work =
              WorkInGroup(ranks_.traces[i].transfers[k], family, job_.communicators[family].size());
        } else {
          work = ranks_.works[i][k];
          work.group = kNotGiven;
        }
        works.push_back(work);
      }
    }
  }

  // Where messages pass, a rank does what was done at its place of the group. Nothing where no
  // trace is of that place.
  std::vector<uint32_t> RolesOf(bool keeps_places) const {
    std::set<uint32_t> of_messages;
    for (const std::vector<KinetoWork>& works : job_.works) {
      for (const KinetoWork& work : works) {
        if (keeps_places && work.group != kNotGiven && !work.collective)
          of_messages.insert(work.group);
      }
    }
    const auto places_of = [&](uint32_t rank) {
      std::vector<uint32_t> places;
      for (const uint32_t family : of_messages)
        places.push_back(job_.communicators[family].PositionOf(rank)->member);
      return places;
    };
    std::map<std::vector<uint32_t>, std::vector<uint32_t>> traces;  // by place, ascending
    for (uint32_t i = 0; i < ranks_.traces.size(); ++i) {
      if (*ranks_.traces[i].rank < world_) traces[places_of(*ranks_.traces[i].rank)].push_back(i);
    }
    if (traces.empty()) traces[places_of(0)].push_back(0);
    std::vector<uint32_t> roles;
    for (uint32_t rank = 0; rank < world_; ++rank) {
      const auto found = traces.find(places_of(rank));
      if (found == traces.end()) return {};
      uint32_t nearest = found->second.front();
      for (const uint32_t one : found->second) {
        if (*ranks_.traces[one].rank <= rank) nearest = one;
      }
      roles.push_back(nearest);
    }
    return roles;
  }

  // In the order in which the trace's device began them.
  template <typename Take>
  void ForWorks(uint32_t trace, uint32_t family, const Take& take) const {
    for (const uint32_t place : events_[trace]) {
      const uint32_t transfer = ranks_.traces[trace].events[place].transfer;
      if (transfer == kNotGiven) continue;
      const KinetoWork& work = job_.works[trace][transfer];
      if (work.is_understood() && work.group == family) take(work);
    }
  }

  bool CollectivesAgree(uint32_t family) const {
    std::vector<std::vector<Meeting>> meetings(ranks_.traces.size());
    for (uint32_t trace = 0; trace < meetings.size(); ++trace) {
      ForWorks(trace, family, [&](const KinetoWork& work) {
        if (!work.collective) return;
        // What a rank sends to all may differ.
        const bool differs = work.collective == CollectiveKind::kAllToAll;
        meetings[trace].emplace_back(*work.collective, differs ? 0 : work.bytes.value(),
                                     work.dtype);
      });
    }
    const Communicator& communicator = job_.communicators[family];
    for (uint32_t group = 0; group < communicator.group_count(); ++group) {
      const uint32_t first = job_.role_of_rank[communicator.Rank(group, 0)];
      for (uint32_t member = 1; member < communicator.size(); ++member) {
        const uint32_t role = job_.role_of_rank[communicator.Rank(group, member)];
        if (role != first && meetings[role] != meetings[first]) return false;
      }
    }
    return true;
  }

  bool MessagesAgree(uint32_t family) const {
    // By trace, then peer: what is sent to it, and what is received from it.
    using Sizes = std::map<uint32_t, std::vector<double>>;
    std::vector<Sizes> sent(ranks_.traces.size());
    std::vector<Sizes> received(ranks_.traces.size());
    bool has_any = false;
    for (uint32_t trace = 0; trace < sent.size(); ++trace) {
      ForWorks(trace, family, [&](const KinetoWork& work) {
        if (work.collective) return;
        has_any = true;
        (work.is_send ? sent : received)[trace][work.peer].push_back(work.bytes.value());
      });
    }
    if (!has_any) return true;
    static const std::vector<double> kNone;
    const auto of = [](const Sizes& sizes, uint32_t peer) -> const std::vector<double>& {
      const auto found = sizes.find(peer);
      return found == sizes.end() ? kNone : found->second;
    };
    const Communicator& communicator = job_.communicators[family];
    for (uint32_t rank = 0; rank < world_; ++rank) {
      const Communicator::Position own = *communicator.PositionOf(rank);
      const uint32_t role = job_.role_of_rank[rank];
      std::set<uint32_t> peers;
      for (const auto& entry : sent[role]) peers.insert(entry.first);
      for (const auto& entry : received[role]) peers.insert(entry.first);
      for (const uint32_t peer : peers) {
        if (peer == own.member || peer >= communicator.size()) return false;
        const uint32_t other = job_.role_of_rank[communicator.Rank(own.group, peer)];
        if (of(sent[role], peer) != of(received[other], own.member) ||
            of(received[role], peer) != of(sent[other], own.member))
          return false;
      }
    }
    return true;
  }

  void ForgetMessages(const char* why) {
    for (uint32_t family = 0; family < families_.size(); ++family) Forget(family, true, why);
  }

  // What stays as long as it was measured.
  void Forget(uint32_t family, bool messages, const char* why) {
    uint64_t count = 0;
    for (uint32_t trace = 0; trace < events_.size(); ++trace)
      ForWorks(trace, family, [&](const KinetoWork& work) {
        count += work.collective.has_value() != messages ? 1 : 0;
      });
    for (std::vector<KinetoWork>& works : job_.works) {
      for (KinetoWork& work : works) {
        if (work.group == family && work.collective.has_value() != messages) work.group = kNotGiven;
      }
    }
    if (count == 0) return;
    forgotten_.push_back(fmt::format("{} {}{} of {} {}: as long as measured", count,
                                     messages ? "message" : "collective", count == 1 ? "" : "s",
                                     families_[family].axis, why));
  }

  void Remark(std::vector<std::string>* remarks) const {
    std::vector<std::string> groups;
    for (size_t i = 0; i < families_.size(); ++i) {
      std::vector<std::string> digits;
      for (const StridedAxis& digit : families_[i].digits)
        digits.push_back(fmt::format("{} of stride {}", digit.extent, digit.stride));
      if (!digits.empty())
        groups.push_back(fmt::format("{}: {}", families_[i].axis, fmt::join(digits, " times ")));
    }
    const size_t traces = ranks_.traces.size();
    remarks->push_back(fmt::format(
        "all {} ranks do what the {} did{}", world_,
        traces == 1 ? "traced one" : fmt::format("nearest of the {} traced ones", traces),
        groups.empty() ? "" : fmt::format("; ranks meet in {}", fmt::join(groups, ", "))));
    if (stretched_ > 0) {
      remarks->push_back(fmt::format(
          "{} group{} of ranks across the whole job reach{} across {} instead of {}; sizes are "
          "those of the trace",
          stretched_, stretched_ == 1 ? "" : "s", stretched_ == 1 ? "es" : "", world_,
          ranks_.world));
    }
    if (!assumed_.empty()) {
      remarks->push_back(
          fmt::format("of {} only the size is known: taken to lie next to each other, the most "
                      "used one innermost",
                      fmt::join(assumed_, ", ")));
    }
    remarks->insert(remarks->end(), forgotten_.begin(), forgotten_.end());
  }

  const KinetoRanksOfStep& ranks_;
  const std::vector<std::vector<uint32_t>>& events_;
  const uint32_t world_;
  KinetoJob job_;
  std::vector<Family> families_;
  std::set<std::string> axes_;
  std::vector<std::vector<uint32_t>> family_of_;  // by trace, transfer
  std::vector<std::string> assumed_;
  std::vector<std::string> forgotten_;
  uint32_t stretched_ = 0;
};

}  // namespace

KinetoJob TracedJob(const KinetoRanksOfStep& ranks) {
  KinetoJob job;
  for (const KinetoGroup& group : ranks.groups)
    job.communicators.push_back(Communicator::Explicit(group.axis, {group.members}));
  job.works = ranks.works;
  for (uint32_t rank = 0; rank < ranks.traces.size(); ++rank) job.role_of_rank.push_back(rank);
  return job;
}

KinetoJob ExtrapolatedJob(const KinetoRanksOfStep& ranks,
                          const std::vector<std::vector<uint32_t>>& events, uint32_t world,
                          std::vector<std::string>* remarks) {
  return Extrapolation(ranks, events, world).Make(remarks);
}

}  // namespace rehearse
