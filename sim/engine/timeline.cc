#include "sim/engine/timeline.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "sim/base/fnv.h"

namespace rehearse {

std::pair<size_t, size_t> Timeline::SpansOf(uint32_t rank) const {
  const auto [first, last] = std::equal_range(
      spans.begin(), spans.end(),
      Span{.rank = RepresentativeOf(rank), .op = 0, .ready = {}, .begin = {}, .end = {}},
      [](const Span& a, const Span& b) { return a.rank < b.rank; });
  return {static_cast<size_t>(first - spans.begin()), static_cast<size_t>(last - spans.begin())};
}

KeptSpans::KeptSpans(const Timeline& timeline) : spans_(timeline.spans) {
  for (size_t i = 0; i < spans_.size(); ++i) {
    if (i == 0 || spans_[i].rank != spans_[i - 1].rank) begin_.push_back(i);
  }
  begin_.push_back(spans_.size());
}

std::span<const Span> KeptSpans::At(size_t i, std::vector<Span>* /*room*/) const {
  return std::span(spans_).subspan(begin_[i], begin_[i + 1] - begin_[i]);
}

std::shared_ptr<const SpansByRank> SpansByRankOf(const Timeline& timeline) {
  return timeline.played ? timeline.played : std::make_shared<const KeptSpans>(timeline);
}

namespace {

struct RankHash {
  uint32_t rank = 0;
  uint64_t hash = 0;
};

// The hash of each rank that has spans, in order. Each byte of a hash waits for the one before, so
// several ranks are hashed in turns.
std::vector<RankHash> HashesByRank(const SpansByRank& all) {
  std::vector<RankHash> hashes;
  hashes.reserve(all.count());
  constexpr size_t kAtOnce = 4;
  std::array<std::vector<Span>, kAtOnce> rooms;
  for (size_t first = 0; first < all.count(); first += kAtOnce) {
    const size_t count = std::min(kAtOnce, all.count() - first);
    std::array<std::span<const Span>, kAtOnce> spans;
    std::array<Fnv1a, kAtOnce> fnv;
    size_t longest = 0;
    for (size_t i = 0; i < count; ++i) {
      spans[i] = all.At(first + i, &rooms[i]);
      longest = std::max(longest, spans[i].size());
    }
    const auto add = [&](size_t j, const auto& part) {
      for (size_t i = 0; i < count; ++i) {
        if (j < spans[i].size()) fnv[i].Add(part(spans[i][j]));
      }
    };
    for (size_t j = 0; j < longest; ++j) {
      add(j, [](const Span& span) { return uint64_t{span.op}; });
      add(j, [](const Span& span) { return span.ready; });
      add(j, [](const Span& span) { return span.begin; });
      add(j, [](const Span& span) { return span.end; });
    }
    for (size_t i = 0; i < count; ++i) hashes.push_back({all.RankAt(first + i), fnv[i].hash()});
  }
  return hashes;
}

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

std::string HashOf(const Timeline& timeline) { return HashOf(timeline, KeptSpans(timeline)); }

std::string HashOf(const Timeline& timeline, const SpansByRank& spans) {
  // By representative, so that each class is hashed once.
  const std::vector<RankHash> hashes = HashesByRank(spans);
  const auto from = [&](uint32_t rank) {
    return std::lower_bound(hashes.begin(), hashes.end(), rank,
                            [](const RankHash& a, uint32_t b) { return a.rank < b; });
  };
  Fnv1a fnv;
  fnv.Add(timeline.ranks);
  fnv.Add(timeline.step);
  const auto add = [&](uint32_t rank, uint64_t hash) {
    fnv.Add(rank);
    fnv.Add(hash);
  };
  for (uint32_t rank = 0; rank < timeline.ranks; ++rank) {
    const auto it = from(timeline.RepresentativeOf(rank));
    if (it != hashes.end() && it->rank == timeline.RepresentativeOf(rank)) add(rank, it->hash);
  }
  // Engine tests number their spans as they like.
  for (auto it = from(timeline.ranks); it != hashes.end(); ++it) add(it->rank, it->hash);
  return fmt::format("{:016x}", fnv.hash());
}

}  // namespace rehearse
