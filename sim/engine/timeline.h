// The Timeline: when every op of every rank was ready, began and ended, and how loaded the links
// were. Simulated and measured runs both end here; reports, traces and comparison start from it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/clock.h"
#include "sim/base/quantity.h"

namespace rehearse {

enum class Provenance : uint8_t { kSimulated, kMeasured };

// Op `op` of the rank's role. For a collective, ready..begin is waiting for the other ranks of the
// group and begin..end the transfer. Spans of one stream of a rank never overlap.
struct Span {
  uint32_t rank = 0;
  uint32_t op = 0;
  Time ready;
  Time begin;
  Time end;
};

struct LinkLoad {
  Time from;
  double bytes_per_second = 0;  // until the next entry's `from`; the last entry is 0
};

struct LinkRecord {
  std::string name;
  std::string kind;
  BytesPerSecond capacity;
  Bytes bytes;                  // carried in all, by each of `count`
  std::vector<LinkLoad> loads;  // empty unless asked for
  uint32_t count = 1;  // links that did the same, this one included; above 1 only in folded runs
};

class SpansByRank;

struct Timeline {
  Provenance provenance = Provenance::kSimulated;
  uint32_t ranks = 0;
  Time step;                      // the end of the last span
  std::vector<Span> spans;        // sorted by rank, then op
  std::vector<LinkRecord> links;  // in the program's order; those that carried nothing included
  // Folded runs keep the spans of one rank of each class: for each rank, the rank whose spans it
  // shares. Empty: every rank has its own.
  std::vector<uint32_t> representative;
  // Where nobody needs all spans at once, they may be here instead of in `spans`: made rank by rank
  // when they are gone over (sim/engine/task_spans.h). Null: `spans` has them.
  std::shared_ptr<const SpansByRank> played;

  uint32_t RepresentativeOf(uint32_t rank) const {
    return representative.empty() ? rank : representative[rank];
  }
  // The positions of one rank's (or its representative's) spans: [first, last).
  std::pair<size_t, size_t> SpansOf(uint32_t rank) const;
};

// The spans of a timeline rank by rank, for what goes once over all of them: they need not lie
// there all at once (sim/engine/recurrence.h).
class SpansByRank {
 public:
  virtual ~SpansByRank() = default;
  // How many ranks have spans of their own, and which is the i-th of them, in order.
  virtual size_t count() const = 0;
  virtual uint32_t RankAt(size_t i) const = 0;
  // The spans of that rank. May write them into `room`; valid until that changes.
  virtual std::span<const Span> At(size_t i, std::vector<Span>* room) const = 0;
};

// Those that lie in a timeline. Refers to it.
class KeptSpans : public SpansByRank {
 public:
  explicit KeptSpans(const Timeline& timeline);

  size_t count() const override { return begin_.size() - 1; }
  uint32_t RankAt(size_t i) const override { return spans_[begin_[i]].rank; }
  std::span<const Span> At(size_t i, std::vector<Span>* room) const override;

 private:
  const std::vector<Span>& spans_;
  std::vector<size_t> begin_;  // of each rank's, and the end of the last's
};

// The timeline's, wherever they are. Refers to it.
std::shared_ptr<const SpansByRank> SpansByRankOf(const Timeline& timeline);

// The same timeline with spans of every rank. Links stay one per class.
Timeline Unfolded(const Timeline& timeline);

// FNV-1a over ranks, step and, for every rank with spans, its number and the FNV-1a of its
// spans, as 16 hexadecimal digits: the same on any machine and compiler, folded or not. Links
// and names do not count.
std::string HashOf(const Timeline& timeline);
// With these spans instead of the timeline's own.
std::string HashOf(const Timeline& timeline, const SpansByRank& spans);

}  // namespace rehearse
