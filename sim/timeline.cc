#include "sim/timeline.h"

#include <algorithm>

#include <fmt/format.h>

namespace rehearse {

std::pair<size_t, size_t> Timeline::SpansOf(uint32_t rank) const {
  const auto [first, last] = std::equal_range(
      spans.begin(), spans.end(), Span{.rank = rank, .op = 0, .ready = {}, .begin = {}, .end = {}},
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

std::string HashOf(const Timeline& timeline) {
  Fnv1a fnv;
  fnv.Add(timeline.ranks);
  fnv.Add(timeline.step);
  for (const Span& span : timeline.spans) {
    fnv.Add(span.rank);
    fnv.Add(span.op);
    fnv.Add(span.ready);
    fnv.Add(span.begin);
    fnv.Add(span.end);
  }
  return fmt::format("{:016x}", fnv.hash());
}

}  // namespace rehearse
