#include "sim/timeline.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

namespace rehearse {

std::pair<size_t, size_t> Timeline::SpansOf(uint32_t rank) const {
  const auto [first, last] = std::equal_range(
      spans.begin(), spans.end(),
      Span{.rank = RepresentativeOf(rank), .op = 0, .ready = {}, .begin = {}, .end = {}},
      [](const Span& a, const Span& b) { return a.rank < b.rank; });
  return {static_cast<size_t>(first - spans.begin()), static_cast<size_t>(last - spans.begin())};
}

namespace {

// FNV-1a, 64 bits (http://www.isthe.com/chongo/tech/comp/fnv), over little-endian 64-bit integers.
class Fnv1a {
 public:
  void Add(uint64_t value) {
    for (int byte = 0; byte < 8; ++byte) {
      hash_ = (hash_ ^ (value & 0xff)) * 0x100000001b3u;
      value >>= 8;
    }
  }
  void Add(Time time) { Add(static_cast<uint64_t>(time.picoseconds())); }
  uint64_t hash() const { return hash_; }

 private:
  uint64_t hash_ = 0xcbf29ce484222325u;
};

}  // namespace

Timeline Unfolded(const Timeline& timeline) {
  if (timeline.representative.empty()) return timeline;
  Timeline result = timeline;
  result.representative.clear();
  result.spans.clear();
  for (uint32_t rank = 0; rank < timeline.ranks; ++rank) {
    const auto [first, last] = timeline.SpansOf(rank);
    for (size_t i = first; i < last; ++i) {
      result.spans.push_back(timeline.spans[i]);
      result.spans.back().rank = rank;
    }
  }
  return result;
}

std::string HashOf(const Timeline& timeline) {
  // By representative, so that each class is hashed once.
  std::map<uint32_t, uint64_t> hashes;
  for (auto span = timeline.spans.begin(); span != timeline.spans.end();) {
    const uint32_t rank = span->rank;
    Fnv1a fnv;
    for (; span != timeline.spans.end() && span->rank == rank; ++span) {
      fnv.Add(span->op);
      fnv.Add(span->ready);
      fnv.Add(span->begin);
      fnv.Add(span->end);
    }
    hashes.emplace(rank, fnv.hash());
  }
  Fnv1a fnv;
  fnv.Add(timeline.ranks);
  fnv.Add(timeline.step);
  const auto add = [&](uint32_t rank, uint64_t hash) {
    fnv.Add(rank);
    fnv.Add(hash);
  };
  for (uint32_t rank = 0; rank < timeline.ranks; ++rank) {
    const auto it = hashes.find(timeline.RepresentativeOf(rank));
    if (it != hashes.end()) add(rank, it->second);
  }
  // Engine tests number their spans as they like.
  for (auto it = hashes.lower_bound(timeline.ranks); it != hashes.end(); ++it) {
    add(it->first, it->second);
  }
  return fmt::format("{:016x}", fnv.hash());
}

}  // namespace rehearse
