#include "collectives/algorithms/ring_cover.h"

#include "sim/base/error.h"

namespace rehearse {
namespace {

class CoverSearch {
 public:
  explicit CoverSearch(uint32_t size) : size_(size), used_(size_t{size} * size, false) {}

  std::vector<std::vector<uint32_t>> Run() {
    if (!AddRing()) rings_.clear();
    return rings_;
  }

 private:
  // The next ring leaves rank 0 along the first free pair.
  bool AddRing() {
    if (rings_.size() + 1 == size_) return true;
    uint32_t to = 1;
    while (used_[to]) ++to;
    rings_.push_back({0});
    std::vector<bool> visited(size_, false);
    visited[0] = true;
    if (Visit(to, &visited)) return true;
    rings_.pop_back();
    return false;
  }

  bool Visit(uint32_t to, std::vector<bool>* visited) {
    const size_t ring = rings_.size() - 1;
    const uint32_t from = rings_[ring].back();
    used_[PairOf(from, to)] = true;
    rings_[ring].push_back(to);
    (*visited)[to] = true;
    if (Continue(ring, to, visited)) return true;
    (*visited)[to] = false;
    rings_[ring].pop_back();
    used_[PairOf(from, to)] = false;
    return false;
  }

  bool Continue(size_t ring, uint32_t last, std::vector<bool>* visited) {
    if (rings_[ring].size() == size_) {
      if (used_[PairOf(last, 0)]) return false;
      used_[PairOf(last, 0)] = true;
      if (AddRing()) return true;
      used_[PairOf(last, 0)] = false;
      return false;
    }
    for (uint32_t next = 1; next < size_; ++next) {
      if ((*visited)[next] || used_[PairOf(last, next)]) continue;
      if (Visit(next, visited)) return true;
    }
    return false;
  }

  size_t PairOf(uint32_t from, uint32_t to) const { return size_t{from} * size_ + to; }

  uint32_t size_;
  std::vector<bool> used_;  // from · size + to
  std::vector<std::vector<uint32_t>> rings_;
};

}  // namespace

std::vector<std::vector<uint32_t>> RingsOfAllPairs(uint32_t size) {
  CHECK_GE(size, 2u);
  CHECK_LE(size, kMostCovered);
  return CoverSearch(size).Run();
}

}  // namespace rehearse
