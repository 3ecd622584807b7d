// Numbered slots with a level each, and which has the lowest.
//
// A tree whose nodes hold the lowest level of the 32 below: raising or lowering a slot costs O(log
// slots), and a handful of slots is one node, searched with hardly a branch. Equal levels come out
// in the order of their slots. Plain value; allocates nothing once it has held as many slots.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace rehearse {

class LevelQueue {
 public:
  // The level of a slot that must not come out.
  static constexpr double kNever = std::numeric_limits<double>::infinity();
  struct Slot {
    double level = kNever;
    uint32_t slot = 0;
  };

  void Clear() {
    size_ = 0;
    depth_ = 1;
    for (std::vector<double>& levels : tree_) levels.clear();
  }

  // Adds slot size(), with level kNever.
  void Add() {
    size_t slot = size_++;
    for (size_t depth = 0; depth < depth_; ++depth) {
      if (slot % kFan != 0) return;  // its node is there
      tree_[depth].resize(slot + kFan, kNever);
      if (slot == 0) return;
      slot /= kFan;
    }
    if (depth_ == tree_.size()) tree_.emplace_back();
    tree_[depth_].resize(kFan, kNever);
    tree_[depth_][0] = LowestOf(depth_ - 1, 0).level;
    ++depth_;
  }

  void Set(size_t slot, double level) {
    tree_[0][slot] = level;
    for (size_t depth = 1; depth < depth_; ++depth) {
      slot /= kFan;
      const double lowest = LowestOf(depth - 1, slot).level;
      if (tree_[depth][slot] == lowest) return;
      tree_[depth][slot] = lowest;
    }
  }

  size_t size() const { return size_; }
  // The first slot with the lowest level, which is kNever if none may come out.
  Slot Lowest() const {
    Slot lowest;
    if (size_ == 0) return lowest;
    for (size_t depth = depth_; depth-- > 0;) lowest = LowestOf(depth, lowest.slot);
    return lowest;
  }

 private:
  static constexpr uint32_t kFan = 32;

  Slot LowestOf(size_t depth, uint32_t node) const {
    const double* const levels = tree_[depth].data();
    const uint32_t begin = node * kFan;
    const uint32_t end = depth_ == 1 ? static_cast<uint32_t>(size_) : begin + kFan;
    Slot lowest = {levels[begin], begin};
    for (uint32_t slot = begin + 1; slot < end; ++slot) {
      const bool lower = levels[slot] < lowest.level;
      lowest.slot = lower ? slot : lowest.slot;
      lowest.level = std::min(levels[slot], lowest.level);
    }
    return lowest;
  }

  std::vector<std::vector<double>> tree_{1};  // by depth, from the slots up; whole nodes
  size_t size_ = 0;
  size_t depth_ = 1;
};

}  // namespace rehearse
