#include "tools/foreign/traces/goal/goal.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "collectives/algorithms/ring.h"
#include "sim/base/error.h"
#include "sim/base/units.h"
#include "sim/schedule/done_ops.h"

namespace rehearse {
namespace {

// A message of a site, as its two ends see it; those of one part and step go side by side.
struct GoalMessage {
  uint32_t part = 0;
  uint32_t step = 0;
  uint32_t from = 0;  // ranks
  uint32_t to = 0;
  double bytes = 0;
};

class GoalWriter {
 public:
  GoalWriter(const Schedule& schedule, Router& router, uint32_t channels, const NcclSettings& nccl,
             const ComputeTimes& time)
      : schedule_(schedule),
        ways_(router.ways()),
        time_(time),
        table_(MakeTransfers(schedule, router, Fidelity::kStep, channels, nccl)) {
    transfers_of_rank_.resize(table_.sites.size());
  }

  GoalText Write() {
    Append("num_ranks {}\n", schedule_.ranks());
    for (uint32_t rank = 0; rank < schedule_.ranks(); ++rank) WriteRank(rank);
    return std::move(goal_);
  }

 private:
  template <typename... Values>
  void Append(fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(std::back_inserter(goal_.text), format, std::forward<Values>(values)...);
  }

  void Require(uint64_t label, const std::vector<uint64_t>& before) {
    for (const uint64_t one : before) Append("l{} requires l{}\n", label, one);
  }

  void WriteRank(uint32_t rank) {
    const uint32_t place = schedule_.role_of_rank[rank];
    const Role& role = schedule_.roles[place];
    const DoneOps all(role);
    std::vector<uint64_t> ends(all.size());  // labels, by position
    std::vector<uint64_t> latest(role.streams.size(), kNone);
    meetings_.clear();
    label_ = 0;
    Append("rank {} {{\n", rank);
    for (const DoneOp& done : all) {
      const Op& op = role.ops[done.place];
      std::vector<uint64_t> before;
      for (const OpId id : op.after) before.push_back(ends[all.PositionOf(id, done)]);
      uint64_t& previous = latest[op.stream.index()];
      if (previous != kNone) before.push_back(previous);
      std::sort(before.begin(), before.end());
      before.erase(std::unique(before.begin(), before.end()), before.end());
      cpu_ = op.stream.index();
      previous = WriteOp(rank, op, table_.slot_of_op[place][done.place], before);
      ends[done.position] = previous;
      if (goal_.text.size() > kLargestGoal) FailTooLarge(rank);
    }
    Append("}}\n");
  }

  [[noreturn]] void FailTooLarge(uint32_t rank) const {
    throw Error(
        fmt::format("as GOAL the schedule is a text of more than {}, reached at rank {} of {}; "
                    "fewer channels, layers or micro-batches make it smaller",
                    Print(Bytes(static_cast<double>(kLargestGoal))), rank, schedule_.ranks()));
  }

  // The label whose end is that of the op.
  uint64_t WriteOp(uint32_t rank, const Op& op, uint32_t slot,
                   const std::vector<uint64_t>& before) {
    constexpr double kNanosecond = 1e-9;
    if (std::holds_alternative<Compute>(op.work)) {
      ++goal_.computations;
      return Calculate(std::llround(time_(rank, op).value() / kNanosecond), before);
    }
    if (slot == kNoTransfer) return Calculate(0, before);  // a group of one
    const Site& site = table_.sites[table_.SiteOf(rank, slot)];
    if (IsHostCopy(op.work)) {  // GOAL knows no memory: it takes as long as it would alone
      const Transfer& way = table_.transfers[site.transfer_begin];
      const Seconds time = CommunicationBytes(op.work) / way.idle_rate + way.step_latency;
      return Calculate(std::llround(time.value() / kNanosecond), before);
    }
    return site.is_pair ? WritePair(rank, op, site, before)
                        : WriteCollective(rank, op, slot, before);
  }

  uint64_t Calculate(int64_t nanoseconds, const std::vector<uint64_t>& before) {
    Append("l{}: calc {} cpu {}\n", label_, nanoseconds, cpu_);
    Require(label_, before);
    return label_++;
  }

  uint64_t Message(bool sends, double bytes, uint32_t peer, uint32_t tag) {
    const auto whole = std::max<uint64_t>(1, static_cast<uint64_t>(std::llround(bytes)));
    Append("l{}: {} {}b {} {} tag {} cpu {}\n", label_, sends ? "send" : "recv", whole,
           sends ? "to" : "from", peer, tag, cpu_);
    goal_.messages += sends ? 1 : 0;
    return label_++;
  }

  // Messages with one tag between two ranks meet in order. The tag says which communicator it is
  // (each has two numbers, since sends and receives meet apart from collectives), which meeting
  // there, and which part of a collective, since parts may overtake one another.
  uint32_t TagOf(uint32_t kind, uint32_t meeting, uint32_t part) const {
    constexpr uint64_t kParts = 64;
    constexpr uint64_t kTags = uint64_t{1} << 31;
    const uint64_t kinds = 2 * schedule_.communicators.size();
    return static_cast<uint32_t>(((meeting * kinds + kind) * kParts + part % kParts) % kTags);
  }

  uint64_t WritePair(uint32_t rank, const Op& op, const Site& site,
                     const std::vector<uint64_t>& before) {
    const bool sends = std::holds_alternative<Send>(op.work);
    const uint32_t peer = site.ranks[sends ? 1 : 0];
    CHECK_EQ(site.ranks[sends ? 0 : 1], rank);
    const uint32_t kind = static_cast<uint32_t>(schedule_.communicators.size()) + site.communicator;
    const uint32_t meeting = meetings_[{kind, peer, sends}]++;
    const uint64_t label =
        Message(sends, CommunicationBytes(op.work).value(), peer, TagOf(kind, meeting, 0));
    Require(label, before);
    return label;
  }

  // Writes it between a begin and an end, so that dependencies do not multiply.
  uint64_t WriteCollective(uint32_t rank, const Op& op, uint32_t slot,
                           const std::vector<uint64_t>& before) {
    const auto& collective = std::get<Collective>(op.work);
    const uint32_t index = table_.SiteOf(rank, slot);
    const Site& site = table_.sites[index];
    const uint32_t meeting = meetings_[{site.communicator, 0, false}]++;
    const uint64_t begin = Calculate(0, before);
    std::vector<uint64_t> ends;
    std::vector<uint64_t> done = {begin};  // of the part, when its step begins
    std::vector<uint64_t> under_way;
    const GoalMessage* last = nullptr;
    const std::vector<GoalMessage> messages = MessagesOf(rank, collective, index);
    for (const GoalMessage& message : messages) {
      if (last != nullptr && last->part != message.part) {
        ends.insert(ends.end(), under_way.begin(), under_way.end());
        under_way.clear();
        done = {begin};
      } else if (last != nullptr && last->step != message.step) {
        done = std::exchange(under_way, {});
      }
      const bool sends = message.from == rank;
      const uint64_t label = Message(sends, message.bytes, sends ? message.to : message.from,
                                     TagOf(site.communicator, meeting, message.part));
      Require(label, done);
      under_way.push_back(label);
      last = &message;
    }
    ends.insert(ends.end(), under_way.begin(), under_way.end());
    if (ends.empty()) return begin;  // the rank takes no part in it
    return Calculate(0, ends);
  }

  // What the rank sends and receives, by part, then step.
  std::vector<GoalMessage> MessagesOf(uint32_t rank, const Collective& collective, uint32_t index) {
    const Site& site = table_.sites[index];
    const GroupPlan* plan = table_.PlanOf(site);
    const double bytes = collective.bytes.value();
    std::vector<GoalMessage> messages;
    for (const uint32_t i : TransfersOf(index, rank)) {
      const Transfer& transfer = table_.transfers[i];
      GoalMessage message;
      message.from = transfer.from;
      message.to = transfer.to;
      message.bytes = bytes * transfer.share * ways_;
      if (plan == nullptr || plan->parts.empty()) {  // a ring
        const auto members = static_cast<uint32_t>(site.ranks.size());
        message.bytes /= members;
        // Every ring has an edge from each member.
        message.part = (i - site.transfer_begin) / members;
        for (message.step = 0; message.step < RingSteps(collective.kind, members); ++message.step)
          messages.push_back(message);
        continue;
      }
      message.part = transfer.part;
      const uint32_t pieces = plan->IsPipeline() ? plan->pipeline.BestPieces(collective.bytes) : 1;
      message.bytes /= pieces;
      for (uint32_t k = 0; k < std::max(pieces, transfer.steps); ++k) {
        message.step = transfer.step + k;
        messages.push_back(message);
      }
    }
    std::stable_sort(messages.begin(), messages.end(),
                     [](const GoalMessage& a, const GoalMessage& b) {
                       return std::tie(a.part, a.step) < std::tie(b.part, b.step);
                     });
    return messages;
  }

  // Those of a site's transfers that a rank sends or receives.
  const std::vector<uint32_t>& TransfersOf(uint32_t index, uint32_t rank) {
    std::map<uint32_t, std::vector<uint32_t>>& by_rank = transfers_of_rank_[index];
    if (by_rank.empty()) {
      const Site& site = table_.sites[index];
      for (uint32_t i = site.transfer_begin; i < site.transfer_end; ++i) {
        const Transfer& transfer = table_.transfers[i];
        if (transfer.from >= schedule_.ranks() || transfer.to >= schedule_.ranks())
          FailWithSwitches(site);
        by_rank[transfer.from].push_back(i);
        by_rank[transfer.to].push_back(i);
      }
    }
    return by_rank[rank];
  }

  [[noreturn]] void FailWithSwitches(const Site& site) const {
    const GroupPlan* plan = table_.PlanOf(site);
    throw Error(fmt::format(
        "GOAL has no word for switches that add: found the algorithm \"{}\" on \"{}\", expected "
        "another one (\"collectives\" in the scenario, such as {{\"algorithm\": \"ring\"}})",
        plan == nullptr ? "?" : plan->choice.algorithm->name(),
        schedule_.communicators[site.communicator].name()));
  }

  static constexpr uint64_t kNone = ~uint64_t{0};

  const Schedule& schedule_;
  const uint32_t ways_;
  const ComputeTimes& time_;
  const TransferTable table_;
  std::vector<std::map<uint32_t, std::vector<uint32_t>>> transfers_of_rank_;  // by site

  GoalText goal_;
  uint64_t label_ = 0;  // the next of the rank
  uint32_t cpu_ = 0;
  // By kind of tag; for sends and receives also by peer and direction.
  std::map<std::tuple<uint32_t, uint32_t, bool>, uint32_t> meetings_;
};

}  // namespace

GoalText WriteGoal(const Schedule& schedule, Router& router, uint32_t channels,
                   const NcclSettings& nccl, const ComputeTimes& time) {
  return GoalWriter(schedule, router, channels, nccl, time).Write();
}

}  // namespace rehearse
