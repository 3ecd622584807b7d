#include "real/execution/measured_timeline.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include "sim/base/error.h"

namespace rehearse {
namespace {

constexpr int64_t kPicosecondsPerNanosecond = 1000;

// What meets: the k-th collective of a group (group in `a`, nothing in `b`), or the k-th message
// from rank a to rank b.
struct Meeting {
  uint32_t communicator;
  bool is_collective;
  uint32_t a;
  uint32_t b;
  uint32_t number;

  auto operator<=>(const Meeting&) const = default;
};

// The meetings of one rank's communication ops, by op; compute ops have none.
class MeetingsOfRank {
 public:
  MeetingsOfRank(const Schedule& schedule, uint32_t rank) : schedule_(schedule), rank_(rank) {}

  // What the next op in list order meets.
  std::optional<Meeting> Next(const Op& op) {
    const CommunicatorId id = CommunicatorOf(op.work);
    if (!id.IsSet()) return std::nullopt;
    const Communicator& communicator = schedule_.communicators[id.index()];
    const auto position = communicator.PositionOf(rank_);
    CHECK(position.has_value());
    Meeting meeting{id.index(), false, 0, 0, 0};
    if (const auto* send = std::get_if<Send>(&op.work)) {
      meeting.a = rank_;
      meeting.b = communicator.Rank(position->group, send->peer);
    } else if (const auto* receive = std::get_if<Receive>(&op.work)) {
      meeting.a = communicator.Rank(position->group, receive->peer);
      meeting.b = rank_;
    } else {
      meeting.is_collective = true;
      meeting.a = position->group;
    }
    meeting.number = counts_[meeting]++;
    return meeting;
  }

 private:
  const Schedule& schedule_;
  uint32_t rank_;
  std::map<Meeting, uint32_t> counts_;  // so far, by meeting number 0
};

}  // namespace

Timeline MakeMeasuredTimeline(const Schedule& schedule,
                              const std::vector<std::vector<OpTime>>& times) {
  CHECK_EQ(times.size(), schedule.ranks());
  int64_t origin = std::numeric_limits<int64_t>::max();
  std::map<Meeting, int64_t> begins;
  std::vector<std::vector<std::optional<Meeting>>> meetings(times.size());
  for (uint32_t rank = 0; rank < times.size(); ++rank) {
    const std::vector<Op>& ops = schedule.roles[schedule.role_of_rank[rank]].ops;
    CHECK_EQ(times[rank].size(), ops.size());
    MeetingsOfRank of_rank(schedule, rank);
    for (size_t op = 0; op < ops.size(); ++op) {
      meetings[rank].push_back(of_rank.Next(ops[op]));
      const int64_t ready = times[rank][op].ready;
      if (ready == OpTime::kNever) continue;
      origin = std::min(origin, ready);
      if (!meetings[rank][op]) continue;
      int64_t& begin = begins.emplace(*meetings[rank][op], ready).first->second;
      begin = std::max(begin, ready);
    }
  }

  Timeline timeline;
  timeline.provenance = Provenance::kMeasured;
  timeline.ranks = schedule.ranks();
  for (uint32_t rank = 0; rank < times.size(); ++rank) {
    for (uint32_t op = 0; op < times[rank].size(); ++op) {
      const OpTime& time = times[rank][op];
      if (time.end == OpTime::kNever) continue;
      int64_t begin = time.ready;
      if (meetings[rank][op]) {
        begin = std::clamp(begins.at(*meetings[rank][op]), time.ready, time.end);
      }
      const auto since_origin = [&](int64_t nanoseconds) {
        return Time((nanoseconds - origin) * kPicosecondsPerNanosecond);
      };
      timeline.spans.push_back(
          {rank, op, since_origin(time.ready), since_origin(begin), since_origin(time.end)});
      timeline.step = std::max(timeline.step, timeline.spans.back().end);
    }
  }
  return timeline;
}

}  // namespace rehearse
