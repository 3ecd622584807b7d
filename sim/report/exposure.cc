#include "sim/report/exposure.h"

#include <algorithm>
#include <map>

#include "sim/base/error.h"

namespace rehearse {
namespace {

struct Edge {
  Time at;
  uint32_t op = 0;  // its position
  bool begins = false;
};

// One rank's activity, swept over time.
class Sweep {
 public:
  Sweep(const Role& role, std::vector<OpExposure>& sums, double weight)
      : role_(role), sums_(sums), weight_(weight) {}

  void Run(std::vector<Edge>& edges) {
    // Within an instant, ends come before begins: no op is in two states at once.
    std::stable_sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) {
      return a.at != b.at ? a.at < b.at : a.begins < b.begins;
    });
    Time now;
    for (const Edge& edge : edges) {
      Pass(ToSeconds(edge.at - now));
      now = edge.at;
      const CommunicatorId axis = CommunicatorOf(role_.At(edge.op).work);
      if (!axis.IsSet()) {
        computing_ += edge.begins ? 1 : -1;
      } else if (edge.begins) {
        active_[axis.index()].push_back(edge.op);
        sums_[role_.PlaceAt(edge.op)].operations += weight_;
      } else {
        const auto it = active_.find(axis.index());
        CHECK(it != active_.end());
        std::erase(it->second, edge.op);
        if (it->second.empty()) active_.erase(it);
      }
    }
    CHECK(active_.empty());
  }

 private:
  void Pass(Seconds time) {
    if (time == Seconds(0)) return;
    for (const auto& [axis, ops] : active_) {
      const double share = 1.0 / static_cast<double>(active_.size() * ops.size());
      for (const uint32_t op : ops) {
        OpExposure& sum = sums_[role_.PlaceAt(op)];
        sum.seconds += weight_ * time;
        if (computing_ == 0) sum.exposed += weight_ * share * time;
      }
    }
  }

  const Role& role_;
  std::vector<OpExposure>& sums_;
  const double weight_;
  int computing_ = 0;
  std::map<uint32_t, std::vector<uint32_t>> active_;  // by axis: positions
};

}  // namespace

std::vector<std::vector<OpExposure>> ExposureOfOps(const Schedule& schedule,
                                                   const Timeline& timeline) {
  std::vector<std::vector<OpExposure>> sums;
  for (const Role& role : schedule.roles) sums.emplace_back(role.ops.size());
  std::vector<uint32_t> ranks_like(timeline.ranks, 0);
  for (uint32_t rank = 0; rank < timeline.ranks; ++rank) {
    ++ranks_like[timeline.RepresentativeOf(rank)];
  }
  std::vector<Edge> edges;
  for (auto span = timeline.spans.begin(); span != timeline.spans.end();) {
    const uint32_t rank = span->rank;
    const uint32_t role_index = schedule.role_of_rank[rank];
    const Role& role = schedule.roles[role_index];
    edges.clear();
    for (; span != timeline.spans.end() && span->rank == rank; ++span) {
      const Work& work = role.At(span->op).work;
      if (MovesNothing(schedule, work) || span->begin == span->end) continue;
      const auto* compute = std::get_if<Compute>(&work);
      if (compute != nullptr && IsWait(*compute)) continue;
      edges.push_back({span->begin, span->op, true});
      edges.push_back({span->end, span->op, false});
    }
    const double weight = static_cast<double>(ranks_like[rank]) / timeline.ranks;
    Sweep(role, sums[role_index], weight).Run(edges);
  }
  return sums;
}

}  // namespace rehearse
