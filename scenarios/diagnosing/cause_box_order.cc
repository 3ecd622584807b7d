// Machines in an order in which neighbours of the ring are far apart.
#include <algorithm>
#include <map>

#include "scenarios/diagnosing/cause_rows.h"

namespace rehearse {
namespace {

// Machines of the group in the order 0, n/2, 1, n/2 + 1, ...; those of one machine stay together.
std::vector<uint32_t> Zigzag(const Cluster& cluster, const std::vector<uint32_t>& ranks) {
  std::vector<std::vector<uint32_t>> boxes;
  std::map<uint32_t, size_t> box_of;
  for (const uint32_t rank : ranks) {
    const auto [at, is_new] = box_of.emplace(cluster.NodeIndexOf(rank), boxes.size());
    if (is_new) boxes.emplace_back();
    boxes[at->second].push_back(rank);
  }
  const size_t half = (boxes.size() + 1) / 2;
  std::vector<uint32_t> order;
  for (size_t i = 0; i < half; ++i) {
    order.insert(order.end(), boxes[i].begin(), boxes[i].end());
    if (half + i < boxes.size())
      order.insert(order.end(), boxes[half + i].begin(), boxes[half + i].end());
  }
  return order;
}

}  // namespace

CollectiveCause BoxOrderRow() {
  return {"box-order",
          "ranks are given to boxes in an order that crosses the spine at every step",
          "the host list in the order of racks (Slurm: topology/tree, --distribution=block)",
          {1},
          false,
          [](double) { return std::string(); },
          [](const CollectiveRun& run, double) -> std::optional<CollectiveRun> {
            if (!HasEqualWays(run)) return std::nullopt;
            CollectiveRun changed = run;
            for (Trial& trial : changed.trials)
              for (std::vector<uint32_t>& group : trial.groups) group = Zigzag(*run.cluster, group);
            return changed;
          }};
}

}  // namespace rehearse
