// Links, numbered densely and counted, for loops over the links of many routes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "sim/engine/program.h"

namespace rehearse {

// Numbers links 0, 1, ... as they are met.
class DenseLinks {
 public:
  uint32_t Of(uint32_t link) {
    if (link >= number_.size()) number_.resize(link + 1, kNone);
    if (number_[link] == kNone) number_[link] = count_++;
    return number_[link];
  }
  uint32_t count() const { return count_; }

 private:
  static constexpr uint32_t kNone = 0xffffffffu;
  std::vector<uint32_t> number_;
  uint32_t count_ = 0;
};

// Crossings of links, summed up. A large cluster has millions of links and a group crosses few, so
// a thread's counts are kept, all zero, from one counter to the next.
class LinkCounter {
 public:
  explicit LinkCounter(uint32_t links) : count_(std::move(Kept())) {
    if (count_.size() < links) count_.resize(links, 0);
  }
  ~LinkCounter() {
    for (const uint32_t link : touched_) count_[link] = 0;
    Kept() = std::move(count_);
  }
  LinkCounter(const LinkCounter&) = delete;
  LinkCounter& operator=(const LinkCounter&) = delete;

  void Add(uint32_t link, uint32_t times) {
    if (count_[link] == 0) touched_.push_back(link);
    count_[link] += times;
  }
  // By link.
  std::vector<LinkUse> Take() {
    if (8 * touched_.size() > count_.size()) {  // looking at all is quicker than sorting
      touched_.clear();
      for (uint32_t link = 0; link < count_.size(); ++link) {
        if (count_[link] != 0) touched_.push_back(link);
      }
    } else {
      std::sort(touched_.begin(), touched_.end());
    }
    std::vector<LinkUse> uses;
    uses.reserve(touched_.size());
    for (const uint32_t link : touched_) {
      uses.push_back({LinkId(link), count_[link]});
      count_[link] = 0;
    }
    touched_.clear();
    return uses;
  }

 private:
  static std::vector<uint32_t>& Kept() {
    thread_local std::vector<uint32_t> kept;
    return kept;
  }

  std::vector<uint32_t> count_;
  std::vector<uint32_t> touched_;
};

}  // namespace rehearse
