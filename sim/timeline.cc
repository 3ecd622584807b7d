#include "sim/timeline.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "sim/fnv.h"

namespace rehearse {

std::pair<size_t, size_t> Timeline::SpansOf(uint32_t rank) const {
  const auto [first, last] = std::equal_range(
      spans.begin(), spans.end(),
      Span{.rank = RepresentativeOf(rank), .op = 0, .ready = {}, .begin = {}, .end = {}},
      [](const Span& a, const Span& b) { return a.rank < b.rank; });
  return {static_cast<size_t>(first - spans.begin()), static_cast<size_t>(last - spans.begin())};
}

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
