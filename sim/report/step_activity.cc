#include "sim/report/step_activity.h"

#include <algorithm>

#include "sim/base/error.h"
#include "sim/schedule/done_ops.h"

namespace rehearse {
namespace {

using LaneEdge = ActivitySums::Edge;

// The edges of all streams by time; the longest comes last, so that most edges are moved once.
std::vector<LaneEdge> Merged(const std::vector<std::vector<LaneEdge>>& streams) {
  std::vector<LaneEdge> edges;
  std::vector<LaneEdge> both;
  std::vector<const std::vector<LaneEdge>*> order;
  for (const std::vector<LaneEdge>& stream : streams) order.push_back(&stream);
  std::stable_sort(order.begin(), order.end(),
                   [](const auto* a, const auto* b) { return a->size() < b->size(); });
  for (const std::vector<LaneEdge>* stream : order) {
    both.resize(edges.size() + stream->size());
    std::merge(edges.begin(), edges.end(), stream->begin(), stream->end(), both.begin(),
               [](const LaneEdge& a, const LaneEdge& b) { return a.at < b.at; });
    edges.swap(both);
  }
  return edges;
}

}  // namespace

void ActivitySums::AddRank(const std::vector<LaneEdge>& edges, uint32_t weight,
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
    if (edge.lane == kComputeLane) {
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

double ActivitySums::exposed_on(size_t axis) const {
  double share = 0;
  for (size_t together = 1; together <= active_.size(); ++together) {
    share += static_cast<double>(exposed_on_[axis * (active_.size() + 1) + together]) /
             static_cast<double>(together);
  }
  return share;
}

void ActivitySums::AddInterval(WideTime length, bool computing, size_t axes_active) {
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

StepActivity::StepActivity(const Schedule& schedule, const Timeline& timeline,
                           const SummaryOptions& options, const std::vector<uint32_t>& last_ops)
    : schedule_(schedule),
      timeline_(timeline),
      periods_(options.periods),
      last_ops_(last_ops),
      lanes_(LanesOf(schedule)),
      sums_(schedule.communicators.size()),
      of_role_(schedule.roles.size()) {
  for (const std::vector<OpLane>& lanes : lanes_) runs_.emplace_back(lanes.size());
}

std::vector<std::vector<StepActivity::OpLane>> StepActivity::LanesOf(const Schedule& schedule) {
  std::vector<std::vector<OpLane>> lanes(schedule.roles.size());
  for (size_t role = 0; role < lanes.size(); ++role) {
    for (const Op& op : schedule.roles[role].ops) {
      const CommunicatorId communicator = CommunicatorOf(op.work);
      if (!communicator.IsSet()) {
        lanes[role].push_back({!IsWait(std::get<Compute>(op.work)), kComputeLane});
        continue;
      }
      CHECK_LT(communicator.index(), schedule.communicators.size());
      lanes[role].push_back({!MovesNothing(schedule, op.work), communicator.index()});
    }
  }
  return lanes;
}

void StepActivity::AddRanks(const SpansByRank& spans) {
  // How many ranks each representative stands for.
  std::vector<uint32_t> weight(timeline_.ranks, 0);
  for (uint32_t rank = 0; rank < timeline_.ranks; ++rank)
    ++weight[timeline_.RepresentativeOf(rank)];
  std::vector<Span> room;
  size_t next = 0;
  for (uint32_t rank = 0; rank < timeline_.ranks; ++rank) {
    if (weight[rank] == 0) continue;
    std::span<const Span> of_rank;
    if (next < spans.count() && spans.RankAt(next) == rank) of_rank = spans.At(next++, &room);
    AddRank(schedule_.role_of_rank[rank], of_rank, weight[rank]);
  }
  CHECK_EQ(next, spans.count());  // else not sorted by rank
}

void StepActivity::AddRank(uint32_t role_index, std::span<const Span> spans, uint32_t weight) {
  CHECK_LT(role_index, lanes_.size());
  if (role_index != role_) ShowRole(role_index);
  FindWindows(role_index, spans);
  FindEdges(role_index, spans, weight);
  RoleSums& own = of_role_[role_index];
  own.ranks += weight;
  own.compute -= sums_.compute();
  own.exposed -= sums_.exposed();
  sums_.AddRank(Merged(streams_), weight, windows_);
  own.compute += sums_.compute();
  own.exposed += sums_.exposed();
}

// From now on, spans are those of ranks of this role.
void StepActivity::ShowRole(uint32_t role_index) {
  const Role& role = schedule_.roles[role_index];
  role_ = role_index;
  shown_.clear();
  const DoneOps all(role);
  if (periods_.empty()) {
    for (const DoneOp& done : all) shown_.push_back({done.place, 1});
    return;
  }
  for (uint32_t op = 0; op < role.ops.size(); ++op) shown_.push_back({op, all.TimesOf(op)});
}

// The pieces of the rank's time that stand for several: nothing else is under way meanwhile.
void StepActivity::FindWindows(uint32_t role_index, std::span<const Span> spans) {
  windows_.clear();
  if (periods_.empty()) return;
  const std::vector<Repeat>& repeats = schedule_.roles[role_index].repeats;
  for (size_t i = 0; i < repeats.size(); ++i) {
    Time first = spans[repeats[i].begin].ready;
    for (uint32_t op = repeats[i].begin; op < repeats[i].end; ++op)
      first = std::min(first, spans[op].ready);
    const Time period = periods_[role_index][i];
    windows_.push_back({first.picoseconds(), (first + period).picoseconds(), repeats[i].times + 1});
  }
}

// When ops begin and end to be active, by stream, and how often they run.
void StepActivity::FindEdges(uint32_t role_index, std::span<const Span> spans, uint32_t weight) {
  const Role& role = schedule_.roles[role_index];
  streams_.resize(role.streams.size());
  for (std::vector<LaneEdge>& edges : streams_) edges.clear();
  for (const Span& span : spans) {
    CHECK_LT(span.op, shown_.size());
    const auto [op, times] = shown_[span.op];
    const OpLane lane = lanes_[role_index][op];
    const int64_t begin = span.begin.picoseconds();
    const int64_t end = span.end.picoseconds();
    CHECK_LE(0, begin);
    CHECK_LE(begin, end);
    CHECK_LE(end, timeline_.step.picoseconds());
    if (!lane.counts || begin == end) continue;
    if (!last_ops_.empty() && op > last_ops_[role_index]) continue;
    runs_[role_index][op] += uint64_t{weight} * times;
    std::vector<LaneEdge>& edges = streams_[role.ops[op].stream.index()];
    CHECK(edges.empty() || edges.back().at <= begin);  // a stream runs its ops one after another
    if (!edges.empty() && edges.back().at == begin && edges.back().lane == lane.lane) {
      edges.back().at = end;  // goes on without a break
      continue;
    }
    edges.push_back({begin, lane.lane, +1});
    edges.push_back({end, lane.lane, -1});
  }
}

}  // namespace rehearse
