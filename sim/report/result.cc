#include "sim/report/result.h"

#include <algorithm>
#include <exception>
#include <map>
#include <numeric>
#include <span>

#include "sim/base/error.h"
#include "sim/base/threads.h"
#include "sim/schedule/written_out.h"

namespace rehearse {
namespace {

// 64 bits hold 106 days of picoseconds: enough for one rank, not for the sum over 100,000 of them.
__extension__ using WideTime = __int128;

Seconds MeanOver(uint32_t ranks, WideTime picoseconds) {
  return Seconds(static_cast<double>(picoseconds) / kPicosecondsPerSecond / ranks);
}

constexpr uint32_t kCompute = Id<CommunicatorTag>::kNone;

// From so many spans on, a thread of its own hashes them.
constexpr size_t kManySpans = size_t{1} << 16;

// From `at` on, one op more (or less) is active on `lane`: an axis, or kCompute.
struct Edge {
  int64_t at;
  uint32_t lane;
  int32_t change;
};

// What each op of each role does to the sums: the lane it is active on, or nothing when it cannot
// be active at all (a communicator of one rank).
struct OpLane {
  bool counts = false;
  uint32_t lane = kCompute;
};

std::vector<std::vector<OpLane>> LanesOf(const Schedule& schedule) {
  std::vector<std::vector<OpLane>> lanes(schedule.roles.size());
  for (size_t role = 0; role < lanes.size(); ++role) {
    for (const Op& op : schedule.roles[role].ops) {
      const CommunicatorId communicator = CommunicatorOf(op.work);
      if (!communicator.IsSet()) {
        lanes[role].push_back({!IsWait(std::get<Compute>(op.work)), kCompute});
        continue;
      }
      CHECK_LT(communicator.index(), schedule.communicators.size());
      lanes[role].push_back({!MovesNothing(schedule, op.work), communicator.index()});
    }
  }
  return lanes;
}

// A piece of a rank's time that stands for several.
struct Window {
  int64_t begin = 0;
  int64_t end = 0;
  uint32_t times = 1;
};

// Times summed over ranks, in picoseconds.
class ActivitySums {
 public:
  explicit ActivitySums(size_t axes)
      : active_(axes, 0), communication_on_(axes, 0), exposed_on_(axes * (axes + 1), 0) {}

  // Adds one rank, `weight` times. `edges` are ordered by time; they end up as they began, with
  // nothing active. Windows are disjoint and in order.
  void AddRank(const std::vector<Edge>& edges, uint32_t weight,
               const std::vector<Window>& windows) {
    weight_ = weight;
    auto window = windows.begin();
    size_t axes_active = 0;
    int32_t computing = 0;
    int64_t now = 0;
    for (const Edge& edge : edges) {
      // Edges of one instant come in any order, so a count may dip below zero within the instant,
      // but never for longer.
      while (window != windows.end() && window->end <= now) ++window;
      while (window != windows.end() && window->begin < edge.at) {
        const int64_t begin = std::max(now, window->begin);
        const int64_t end = std::min(edge.at, window->end);
        AddInterval(begin - now, computing > 0, axes_active);
        AddInterval(WideTime(end - begin) * window->times, computing > 0, axes_active);
        now = end;
        if (end < window->end) break;
        ++window;
      }
      if (edge.at != now) {
        AddInterval(edge.at - now, computing > 0, axes_active);
        now = edge.at;
      }
      if (edge.lane == kCompute) {
        computing += edge.change;
        continue;
      }
      const bool was_active = active_[edge.lane] > 0;
      active_[edge.lane] += edge.change;
      const bool is_active = active_[edge.lane] > 0;
      axes_active += static_cast<size_t>(is_active);
      axes_active -= static_cast<size_t>(was_active);
    }
    CHECK_EQ(computing, 0);
    CHECK_EQ(axes_active, 0u);
  }

  WideTime compute() const { return compute_; }
  WideTime communication() const { return communication_; }
  WideTime exposed() const { return exposed_; }
  WideTime communication_on(size_t axis) const { return communication_on_[axis]; }

  // The axis's share of the exposed time. What was exposed together with n-1 others is kept apart
  // for each n, so that nothing is rounded before this division.
  double exposed_on(size_t axis) const {
    double share = 0;
    for (size_t together = 1; together <= active_.size(); ++together) {
      share += static_cast<double>(exposed_on_[axis * (active_.size() + 1) + together]) /
               static_cast<double>(together);
    }
    return share;
  }

 private:
  void AddInterval(WideTime length, bool computing, size_t axes_active) {
    length *= weight_;
    if (computing) compute_ += length;
    if (axes_active == 0) return;
    communication_ += length;
    if (!computing) exposed_ += length;
    for (size_t axis = 0; axis < active_.size(); ++axis) {
      if (active_[axis] <= 0) continue;
      communication_on_[axis] += length;
      if (!computing) exposed_on_[axis * (active_.size() + 1) + axes_active] += length;
    }
  }

  uint32_t weight_ = 1;          // of the rank that is being added
  std::vector<int32_t> active_;  // ops active on each axis
  WideTime compute_ = 0;
  WideTime communication_ = 0;
  WideTime exposed_ = 0;
  std::vector<WideTime> communication_on_;
  std::vector<WideTime> exposed_on_;  // [axis][axes active at the same time]
};

// Times of one role's ranks.
struct RoleSums {
  uint32_t ranks = 0;
  WideTime compute = 0;
  WideTime exposed = 0;
};

std::vector<RoleUse> UsesOf(const Schedule& schedule, const std::vector<RoleSums>& sums,
                            WideTime step) {
  std::vector<RoleUse> uses;
  if (sums.size() < 2) return uses;
  for (size_t role = 0; role < sums.size(); ++role) {
    const RoleSums& own = sums[role];
    if (own.ranks == 0) continue;
    const WideTime idle = step * own.ranks - own.compute - own.exposed;
    uses.push_back({schedule.roles[role].name,
                    own.ranks,
                    {MeanOver(own.ranks, own.compute), MeanOver(own.ranks, own.exposed),
                     MeanOver(own.ranks, idle)}});
  }
  return uses;
}

// The edges of all streams by time; the longest comes last, so that most edges are moved once.
std::vector<Edge> Merged(const std::vector<std::vector<Edge>>& streams) {
  std::vector<Edge> edges;
  std::vector<Edge> both;
  std::vector<const std::vector<Edge>*> order;
  for (const std::vector<Edge>& stream : streams) order.push_back(&stream);
  std::stable_sort(order.begin(), order.end(),
                   [](const auto* a, const auto* b) { return a->size() < b->size(); });
  for (const std::vector<Edge>* stream : order) {
    both.resize(edges.size() + stream->size());
    std::merge(edges.begin(), edges.end(), stream->begin(), stream->end(), both.begin(),
               [](const Edge& a, const Edge& b) { return a.at < b.at; });
    edges.swap(both);
  }
  return edges;
}

std::vector<LinkSummary> BusiestFirst(const Timeline& timeline) {
  std::vector<LinkSummary> links;
  const Seconds step = ToSeconds(timeline.step);
  for (const LinkRecord& link : timeline.links) {
    if (link.bytes <= Bytes(0)) continue;
    const Bytes could = link.capacity * step;
    links.push_back({link.name, link.kind, link.bytes, link.capacity,
                     could > Bytes(0) ? link.bytes / could : 0, link.count});
  }
  std::stable_sort(links.begin(), links.end(), [](const LinkSummary& a, const LinkSummary& b) {
    return a.utilization > b.utilization;
  });
  return links;
}

}  // namespace

std::optional<DType> MainDType(const Schedule& schedule) {
  std::map<DType, Flops> flops_of_type;
  for (const Role& role : schedule.roles) {
    auto repeat = role.repeats.begin();
    for (uint32_t place = 0; place < role.ops.size(); ++place) {
      while (repeat != role.repeats.end() && repeat->end <= place) ++repeat;
      const bool is_repeated = repeat != role.repeats.end() && repeat->begin <= place;
      if (const auto* compute = std::get_if<Compute>(&role.ops[place].work)) {
        flops_of_type[compute->dtype] += (is_repeated ? 1.0 + repeat->times : 1.0) * compute->flops;
      }
    }
  }
  const auto most =
      std::max_element(flops_of_type.begin(), flops_of_type.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == flops_of_type.end() || most->second <= Flops(0)) return std::nullopt;
  return most->first;
}

namespace {

constexpr uint32_t kNoOp = static_cast<uint32_t>(-1);

// By role: the last op of its step, the others being those that validate its update; empty if
// there are none of these.
std::vector<uint32_t> UpdatesValidatedLater(const Schedule& schedule) {
  std::vector<uint32_t> last(schedule.roles.size(), kNoOp);
  bool are_validated = false;
  for (size_t role = 0; role < schedule.roles.size(); ++role) {
    const std::vector<Op>& ops = schedule.roles[role].ops;
    for (uint32_t op = 0; op < ops.size(); ++op) {
      const auto* compute = std::get_if<Compute>(&ops[op].work);
      if (compute == nullptr || compute->kernel != Kernel::kAdam) continue;
      if (compute->attributes.size() <= 1) {
        last[role] = op;
      } else {
        are_validated |= compute->attributes[1] == double{kAdamIfClipped};
      }
    }
  }
  if (!are_validated) last.clear();
  return last;
}

int64_t LongestRank(const Schedule& schedule, const Timeline& timeline,
                    const std::vector<uint32_t>& last) {
  int64_t longest = 0;
  for (size_t i = 0; i < timeline.spans.size();) {
    const uint32_t rank = timeline.spans[i].rank;
    const uint32_t role_index = schedule.role_of_rank[rank];
    int64_t begin = timeline.step.picoseconds();
    int64_t end = 0;
    for (; i < timeline.spans.size() && timeline.spans[i].rank == rank; ++i) {
      const Span& span = timeline.spans[i];
      const uint32_t op = schedule.roles[role_index].PlaceAt(span.op);
      if (op <= last[role_index]) begin = std::min(begin, span.begin.picoseconds());
      // What has been sent before may still wait for its receiver.
      if (op == last[role_index]) end = span.end.picoseconds();
    }
    longest = std::max(longest, end - begin);
  }
  return longest;
}

}  // namespace

bool ValidatesUpdatesLater(const Schedule& schedule) {
  return !UpdatesValidatedLater(schedule).empty();
}

Seconds StepOf(const Schedule& schedule, const Timeline& timeline) {
  const std::vector<uint32_t> last = UpdatesValidatedLater(schedule);
  if (last.empty()) return ToSeconds(timeline.step);
  return ToSeconds(Time(LongestRank(schedule, timeline, last)));
}

Result Summarize(const Schedule& schedule, const Timeline& timeline, FlopsPerSecond peak) {
  return Summarize(schedule, timeline, peak, MemoryOfFullestRank(schedule));
}

Result Summarize(const Schedule& schedule, const Timeline& timeline, FlopsPerSecond peak,
                 const MemoryUse& memory, const SummaryOptions& options) {
  CHECK_EQ(schedule.ranks(), timeline.ranks);
  const uint32_t ranks = timeline.ranks;
  const size_t axes = schedule.communicators.size();

  Result result;
  result.ranks = ranks;
  const std::vector<uint32_t> last_ops = UpdatesValidatedLater(schedule);
  const int64_t whole_step =
      last_ops.empty() ? timeline.step.picoseconds() : LongestRank(schedule, timeline, last_ops);
  result.step = ToSeconds(Time(whole_step));
  result.peak = peak;
  if (const auto dtype = MainDType(schedule)) result.peak_dtype = Name(*dtype);
  result.memory = memory;
  result.links = BusiestFirst(timeline);
  const KeptSpans kept(timeline);
  const SpansByRank& all_spans = options.spans == nullptr ? kept : *options.spans;
  CHECK(options.spans == nullptr || last_ops.empty());
  std::exception_ptr fault;  // of the hash
  Threads beside;
  const auto hash = [&] {
    try {
      result.timeline_hash = HashOf(timeline, all_spans);
    } catch (...) {
      fault = std::current_exception();
    }
  };
  if (options.hash && (timeline.spans.size() < kManySpans || !beside.TryAdd(hash)))
    result.timeline_hash = HashOf(timeline, all_spans);
  const bool shows_all = options.periods.empty();
  CHECK(shows_all || (!options.hash && last_ops.empty()));
  if (ranks == 0) return result;

  const std::vector<std::vector<OpLane>> lanes = LanesOf(schedule);
  // [role][op as kept]: how often, over all ranks
  std::vector<std::vector<uint64_t>> runs(lanes.size());
  for (size_t role = 0; role < lanes.size(); ++role) runs[role].resize(lanes[role].size());

  // How many ranks each representative stands for.
  std::vector<uint32_t> weight(ranks, 0);
  for (uint32_t rank = 0; rank < ranks; ++rank) ++weight[timeline.RepresentativeOf(rank)];

  ActivitySums sums(axes);
  std::vector<RoleSums> of_role(schedule.roles.size());
  std::vector<std::vector<Edge>> streams;
  std::vector<Window> windows;
  std::vector<uint32_t> places;  // by position, of the role of the last rank
  uint32_t role_of_places = 0xffffffffu;
  std::vector<Span> room;
  size_t next = 0;  // in all_spans
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    if (weight[rank] == 0) continue;
    std::span<const Span> spans;
    if (next < all_spans.count() && all_spans.RankAt(next) == rank)
      spans = all_spans.At(next++, &room);
    const uint32_t role_index = schedule.role_of_rank[rank];
    CHECK_LT(role_index, lanes.size());
    const Role& role = schedule.roles[role_index];
    streams.resize(role.streams.size());
    for (std::vector<Edge>& edges : streams) edges.clear();
    if (role_index != role_of_places) {
      role_of_places = role_index;
      places.clear();
      if (shows_all) {
        WrittenOut(role).ForEachOp(
            [&](uint32_t place, const WrittenOut::Copy&) { places.push_back(place); });
      } else {
        places.resize(role.ops.size());
        std::iota(places.begin(), places.end(), 0u);
      }
    }
    windows.clear();
    if (!shows_all) {
      for (size_t i = 0; i < role.repeats.size(); ++i) {
        const Repeat& repeat = role.repeats[i];
        Time first = spans[repeat.begin].ready;
        for (uint32_t op = repeat.begin; op < repeat.end; ++op)
          first = std::min(first, spans[op].ready);
        const Time period = options.periods[role_index][i];
        windows.push_back({first.picoseconds(), (first + period).picoseconds(), repeat.times + 1});
      }
    }
    auto repeat = role.repeats.begin();
    for (const Span& span : spans) {
      CHECK_LT(span.op, places.size());
      const uint32_t op = places[span.op];
      const OpLane lane = lanes[role_index][op];
      const int64_t begin = span.begin.picoseconds();
      const int64_t end = span.end.picoseconds();
      CHECK_LE(0, begin);
      CHECK_LE(begin, end);
      CHECK_LE(end, timeline.step.picoseconds());
      if (!lane.counts || begin == end) continue;
      if (!last_ops.empty() && op > last_ops[role_index]) continue;
      while (!shows_all && repeat != role.repeats.end() && repeat->end <= op) ++repeat;
      const bool is_repeated = !shows_all && repeat != role.repeats.end() && repeat->begin <= op;
      runs[role_index][op] +=
          is_repeated ? weight[rank] * (repeat->times + uint64_t{1}) : uint64_t{weight[rank]};
      std::vector<Edge>& edges = streams[role.ops[op].stream.index()];
      CHECK(edges.empty() || edges.back().at <= begin);  // a stream runs its ops one after another
      if (!edges.empty() && edges.back().at == begin && edges.back().lane == lane.lane) {
        edges.back().at = end;  // goes on without a break
        continue;
      }
      edges.push_back({begin, lane.lane, +1});
      edges.push_back({end, lane.lane, -1});
    }
    RoleSums& own = of_role[role_index];
    own.ranks += weight[rank];
    own.compute -= sums.compute();
    own.exposed -= sums.exposed();
    sums.AddRank(Merged(streams), weight[rank], windows);
    own.compute += sums.compute();
    own.exposed += sums.exposed();
  }
  CHECK_EQ(next, all_spans.count());  // else not sorted by rank

  const WideTime whole = WideTime(whole_step) * ranks;
  result.breakdown.compute = MeanOver(ranks, sums.compute());
  result.breakdown.exposed_communication = MeanOver(ranks, sums.exposed());
  result.breakdown.idle = MeanOver(ranks, whole - sums.compute() - sums.exposed());
  result.roles = UsesOf(schedule, of_role, whole_step);
  result.communication = MeanOver(ranks, sums.communication());
  if (sums.communication() > 0) {
    result.overlap_fraction = static_cast<double>(sums.communication() - sums.exposed()) /
                              static_cast<double>(sums.communication());
  }

  for (size_t axis = 0; axis < axes; ++axis) {
    AxisUse use;
    use.name = schedule.communicators[axis].name();
    use.seconds = MeanOver(ranks, sums.communication_on(axis));
    use.exposed = Seconds(sums.exposed_on(axis) / kPicosecondsPerSecond / ranks);
    result.axes.push_back(use);
  }
  for (size_t role = 0; role < lanes.size(); ++role) {
    for (size_t op = 0; op < lanes[role].size(); ++op) {
      if (runs[role][op] == 0 || lanes[role][op].lane == kCompute) continue;
      const double mean_runs = static_cast<double>(runs[role][op]) / ranks;
      AxisUse& use = result.axes[lanes[role][op].lane];
      use.operations += mean_runs;
      use.bytes += mean_runs * CommunicationBytes(schedule.roles[role].ops[op].work);
    }
  }

  const Flops possible = result.step * (ranks * peak);
  if (possible > Flops(0)) {
    result.model_flops_utilization = schedule.model_flops / possible;
    result.hardware_flops_utilization = schedule.hardware_flops / possible;
  }
  result.token_name = schedule.token_name;
  if (result.step > Seconds(0)) result.tokens_per_second = schedule.tokens / result.step.value();
  beside.Join();
  if (fault) std::rethrow_exception(fault);
  return result;
}

}  // namespace rehearse
