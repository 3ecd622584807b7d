#include "tools/foreign/traces/kineto/kineto_schedule.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/schedule/op_error.h"
#include "sim/schedule/schedule_check.h"

namespace rehearse {
namespace {

struct KinetoCounts {
  uint64_t kernels = 0;
  uint64_t played = 0;
  uint64_t dependencies = 0;
  int64_t gaps = 0;  // picoseconds
  std::map<std::string, uint64_t> unknown;
  std::map<std::string, uint64_t> apart;  // with ranks whose traces are missing
};

// The latest ops of a stream.
struct StreamState {
  uint64_t key = 0;
  std::vector<std::pair<OpId, int64_t>> ended{};  // in order, with their ends
};

Compute FixedFor(int64_t picoseconds, uint32_t kernels) {
  Compute compute;
  compute.kind = ComputeKind::kFixed;
  compute.duration = ToSeconds(Time(picoseconds));
  compute.kernels = kernels;
  return compute;
}

class RoleMaker {
 public:
  RoleMaker(const KinetoRanksOfStep& ranks, const std::vector<KinetoWork>& works, uint32_t rank,
            Role* role, KinetoCounts* counts)
      : ranks_(ranks),
        trace_(ranks.traces[rank]),
        works_(works),
        rank_(rank),
        role_(*role),
        counts_(*counts) {}

  // `start`: of the step, in the time of this rank's trace. With a period, the next step begins
  // that much later.
  void Add(const std::vector<uint32_t>& events, int64_t start, int64_t period) {
    std::vector<uint32_t> in_time = events;
    std::stable_sort(in_time.begin(), in_time.end(), [&](uint32_t a, uint32_t b) {
      return ReadyOf(trace_.events[a]) < ReadyOf(trace_.events[b]);
    });
    for (const uint32_t place : in_time) Add(trace_.events[place], start);
    if (period > 0 && !in_time.empty()) WaitUntil(start + period);
  }
  // For each op, its event.
  const std::vector<const KinetoEvent*>& events() const { return events_; }

 private:
  int64_t ReadyOf(const KinetoEvent& event) const {
    return event.own == kNotGiven ? event.begin : trace_.owns[event.own].ready.picoseconds();
  }

  size_t StreamOf(const KinetoEvent& event) {
    for (size_t i = 0; i < states_.size(); ++i) {
      if (states_[i].key == event.stream) return i;
    }
    constexpr uint32_t kBits = 32;
    const uint64_t device = event.stream >> kBits;
    const auto number = static_cast<uint32_t>(event.stream);
    const std::string name = device == 0 ? fmt::format("stream {}", number)
                                         : fmt::format("stream {} of device {}", number, device);
    const StreamKind kind =
        event.transfer == kNotGiven ? StreamKind::kCompute : StreamKind::kCommunication;
    // Beside each stream, one for its gaps, so that it holds only work.
    role_.streams.push_back({name, kind});
    role_.streams.push_back({"before " + name, StreamKind::kCompute});
    states_.push_back({event.stream});
    return states_.size() - 1;
  }

  static StreamId Own(size_t state) { return StreamId(static_cast<uint32_t>(2 * state)); }
  static StreamId Gaps(size_t state) { return StreamId(static_cast<uint32_t>(2 * state + 1)); }

  OpId Append(Op op, const KinetoEvent& event) {
    role_.ops.push_back(std::move(op));
    events_.push_back(&event);
    return OpId(static_cast<uint32_t>(role_.ops.size() - 1));
  }

  void Add(const KinetoEvent& event, int64_t start) {
    const size_t own = StreamOf(event);
    const int64_t begin = ReadyOf(event);
    int64_t since = start;
    std::vector<OpId> after;
    if (!states_[own].ended.empty()) since = std::max(since, states_[own].ended.back().second);
    // The last one on another stream that had ended before it, unless the host launched it later
    // than that.
    const auto launch = trace_.launches.find(event.correlation);
    const bool has_launch = launch != trace_.launches.end();
    std::optional<OpId> cause;
    int64_t cause_end = since;
    for (size_t i = 0; i < states_.size(); ++i) {
      if (i == own) continue;
      const auto& ended = states_[i].ended;
      for (auto it = ended.rbegin(); it != ended.rend(); ++it) {
        if (it->second > begin) continue;
        if (it->second > cause_end && !(has_launch && launch->second.at >= it->second)) {
          cause = it->first;
          cause_end = it->second;
        }
        break;
      }
    }
    if (cause) {
      after.push_back(*cause);
      since = cause_end;
      ++counts_.dependencies;
    }
    if (begin > since) {
      Op gap;
      gap.name = "gap";
      gap.stream = Gaps(own);
      gap.work = FixedFor(begin - since, 0);
      gap.after = after;
      if (!states_[own].ended.empty() && states_[own].ended.back().second == since)
        gap.after = {states_[own].ended.back().first};
      counts_.gaps += begin - since;
      after.push_back(Append(std::move(gap), event));
    }
    Op op;
    const RecordedOp told = OpOfEvent(ranks_, rank_, event);
    op.name = told.name;
    op.tag = {told.phase, told.layer, told.micro_batch};
    op.stream = Own(own);
    op.work = WorkOf(event);
    op.after = std::move(after);
    const OpId id = Append(std::move(op), event);
    states_[own].ended.emplace_back(id, event.end);
  }

  // What the device does last is followed by a gap until then.
  void WaitUntil(int64_t time) {
    size_t last = 0;
    for (size_t i = 1; i < states_.size(); ++i) {
      if (states_[i].ended.back().second > states_[last].ended.back().second) last = i;
    }
    const auto [op, end] = states_[last].ended.back();
    if (end >= time) return;
    Op gap;
    gap.name = "gap";
    gap.stream = Gaps(last);
    gap.work = FixedFor(time - end, 0);
    gap.after = {op};
    counts_.gaps += time - end;
    Append(std::move(gap), *events_.back());
  }

  Work WorkOf(const KinetoEvent& event) {
    const int64_t time = event.end - event.begin;
    if (event.transfer == kNotGiven) {
      ++counts_.kernels;
      return FixedFor(time, 1);
    }
    const KinetoWork& work = works_[event.transfer];
    if (!work.is_understood()) {
      const KinetoTransfer& transfer = trace_.transfers[event.transfer];
      const std::string& name = transfer.collective;
      const bool is_apart = !transfer.group.empty() && transfer.in_elements >= 0 &&
                            (work.collective || work.is_send || work.is_receive);
      ++(is_apart ? counts_.apart
                  : counts_.unknown)[name.empty() ? trace_.names[event.name] : name];
      return FixedFor(time, 0);
    }
    ++counts_.played;
    const CommunicatorId communicator(work.group);
    if (work.is_send) return Send{communicator, work.peer, work.bytes};
    if (work.is_receive) return Receive{communicator, work.peer, work.bytes};
    Collective collective;
    collective.kind = *work.collective;
    collective.communicator = communicator;
    collective.bytes = work.bytes;
    collective.dtype = work.dtype;
    collective.algorithm = UsualAlgorithm(collective.kind);
    // NCCL chooses these by size; for the others it has one way.
    if (collective.kind == CollectiveKind::kAllReduce ||
        collective.kind == CollectiveKind::kAllGather ||
        collective.kind == CollectiveKind::kReduceScatter) {
      collective.algorithm = AlgorithmId::kAuto;
      collective.protocol = Protocol::kAuto;
    }
    return collective;
  }

  const KinetoRanksOfStep& ranks_;
  const KinetoTrace& trace_;
  const std::vector<KinetoWork>& works_;
  uint32_t rank_;
  Role& role_;
  KinetoCounts& counts_;
  std::vector<StreamState> states_;
  std::vector<const KinetoEvent*> events_;
};

}  // namespace

Schedule ScheduleOfKineto(const KinetoRanksOfStep& ranks, const KinetoJob& job,
                          const KinetoStep& step, const std::vector<int64_t>& later,
                          std::vector<std::string>* remarks) {
  Schedule schedule;
  schedule.communicators = job.communicators;
  schedule.role_of_rank = job.role_of_rank;
  int64_t start = std::numeric_limits<int64_t>::max();
  for (uint32_t rank = 0; rank < ranks.traces.size(); ++rank) {
    for (const uint32_t place : step.events[rank])
      start = std::min(start, ranks.traces[rank].events[place].begin + later[rank]);
  }
  KinetoCounts counts;
  std::vector<std::vector<const KinetoEvent*>> events;
  for (uint32_t rank = 0; rank < ranks.traces.size(); ++rank) {
    Role& role = schedule.roles.emplace_back();
    role.name = fmt::format("rank {}", *ranks.traces[rank].rank);
    RoleMaker maker(ranks, job.works[rank], rank, &role, &counts);
    maker.Add(step.events[rank], start - later[rank], step.period);
    events.push_back(maker.events());
  }
  try {
    CheckSchedule(schedule);
  } catch (const OpError& error) {
    throw Error(fmt::format(
        "{}: {}", KinetoPlace(ranks.traces[error.role()], *events[error.role()][error.op()]),
        error.what()));
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", ranks.traces[0].file, error.what()));
  }
  remarks->push_back(
      fmt::format("{} kernels and copies take as long as measured, on any device; {} collectives "
                  "and messages are simulated",
                  counts.kernels, counts.played));
  remarks->push_back(
      fmt::format("{} dependencies between streams were inferred from times; other gaps stay as "
                  "they were: {:.3f} ms per rank",
                  counts.dependencies,
                  static_cast<double>(counts.gaps) / 1e9 / static_cast<double>(events.size())));
  for (const auto& [name, count] : counts.unknown) {
    remarks->push_back(
        fmt::format("{} of \"{}\" not understood: waits, as long as measured", count, name));
  }
  for (const auto& [name, count] : counts.apart) {
    remarks->push_back(
        fmt::format("{} of \"{}\" with ranks whose traces are missing: waits, as long as measured",
                    count, name));
  }
  return schedule;
}

}  // namespace rehearse
