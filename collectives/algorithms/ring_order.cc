#include "collectives/algorithms/ring_order.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "collectives/algorithms/torus_box.h"
#include "sim/base/error.h"

namespace rehearse {
namespace {

using Order = std::vector<uint32_t>;  // positions in the group

// Seconds; below any latency that counts, and above what is rounded where some are added.
constexpr double kRoundedLatency = 1e-12;

bool CrossesALinkTwice(Router& router, const std::vector<uint32_t>& ranks, uint64_t phase) {
  std::vector<uint32_t> links;
  for (size_t i = 0; i < ranks.size(); ++i) {
    const Route& route = router.Between(ranks[i], ranks[(i + 1) % ranks.size()], phase);
    for (const uint32_t link : route.links)  // a trunk is many cables, so it may recur
      if (!router.cluster().IsTrunk(link)) links.push_back(link);
  }
  std::sort(links.begin(), links.end());
  return std::adjacent_find(links.begin(), links.end()) != links.end();
}

// Path latencies between all pairs, the same both ways (the larger, where they differ).
class Distances {
 public:
  Distances(Router& router, const std::vector<uint32_t>& ranks, uint64_t phase)
      : size_(ranks.size()) {
    values_.resize(size_ * size_, 0);
    for (size_t a = 0; a < size_; ++a) {
      for (size_t b = 0; b < a; ++b) {
        const double there = router.Between(ranks[a], ranks[b], phase).latency.value();
        const double back = router.Between(ranks[b], ranks[a], phase).latency.value();
        values_[a * size_ + b] = values_[b * size_ + a] = std::max(there, back);
      }
    }
  }
  double operator()(uint32_t a, uint32_t b) const { return values_[a * size_ + b]; }

  double Around(const Order& order) const {
    double sum = 0;
    for (size_t i = 0; i < order.size(); ++i) {
      sum += (*this)(order[i], order[(i + 1) % order.size()]);
    }
    return sum;
  }

 private:
  size_t size_;
  std::vector<double> values_;
};

Order NearestNeighbours(const Distances& distance, uint32_t size) {
  Order order = {0};
  std::vector<bool> used(size, false);
  used[0] = true;
  while (order.size() < size) {
    uint32_t best = size;
    for (uint32_t next = 0; next < size; ++next) {
      if (used[next]) continue;
      if (best == size ||
          distance(order.back(), next) < distance(order.back(), best) - kRoundedLatency)
        best = next;
    }
    used[best] = true;
    order.push_back(best);
  }
  return order;
}

// Reverses stretches of the tour as long as that makes it shorter.
void ImproveByTwoOpt(const Distances& distance, Order& order) {
  const size_t size = order.size();
  for (uint32_t round = 0; round < kMostRounds; ++round) {
    bool improved = false;
    for (size_t i = 0; i + 2 < size; ++i) {
      for (size_t j = i + 2; j < size; ++j) {
        if (i == 0 && j + 1 == size) continue;
        const uint32_t a = order[i];
        const uint32_t b = order[i + 1];
        const uint32_t c = order[j];
        const uint32_t d = order[(j + 1) % size];
        const double gain = distance(a, b) + distance(c, d) - distance(a, c) - distance(b, d);
        if (gain > kRoundedLatency) {
          std::reverse(order.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                       order.begin() + static_cast<std::ptrdiff_t>(j) + 1);
          improved = true;
        }
      }
    }
    if (!improved) return;
  }
}

}  // namespace

std::vector<uint32_t> OrderRing(Router& router, const std::vector<uint32_t>& ranks,
                                uint64_t phase) {
  const uint32_t size = static_cast<uint32_t>(ranks.size());
  CHECK_GE(size, 2u);
  if (std::optional<std::vector<uint32_t>> ring = RingOfNeighbours(router.cluster(), ranks))
    return *ring;
  if (size > kMostOrdered || !CrossesALinkTwice(router, ranks, phase)) return ranks;
  const Distances distance(router, ranks, phase);
  Order given(size);
  std::iota(given.begin(), given.end(), 0u);
  Order order = NearestNeighbours(distance, size);
  if (distance.Around(given) <= distance.Around(order) + kRoundedLatency) order = given;
  ImproveByTwoOpt(distance, order);
  std::vector<uint32_t> result;
  for (const uint32_t position : order) result.push_back(ranks[position]);
  return result;
}

}  // namespace rehearse
