#include "sim/engine/timeline.h"

#include <gtest/gtest.h>

namespace rehearse {
namespace timeline_test {

Span SpanOf(uint32_t rank, uint32_t op, int64_t ready, int64_t begin, int64_t end) {
  return {.rank = rank, .op = op, .ready = Time(ready), .begin = Time(begin), .end = Time(end)};
}

TEST(TimelineTest, SpansOfARankAreARange) {
  Timeline timeline;
  timeline.spans = {SpanOf(0, 0, 0, 0, 1), SpanOf(0, 1, 0, 0, 1), SpanOf(2, 0, 0, 0, 1)};
  EXPECT_EQ(timeline.SpansOf(0), (std::pair<size_t, size_t>(0, 2)));
  EXPECT_EQ(timeline.SpansOf(1), (std::pair<size_t, size_t>(2, 2)));
  EXPECT_EQ(timeline.SpansOf(2), (std::pair<size_t, size_t>(2, 3)));
  EXPECT_EQ(timeline.SpansOf(3), (std::pair<size_t, size_t>(3, 3)));
}

// FNV-1a by the book: start at 0xcbf29ce484222325, for each byte hash = (hash ^ byte) ·
// 0x100000001b3. Computed with Python over struct.pack("<2q", ranks, step) and struct.pack("<5q",
// ...) per span.
TEST(TimelineTest, TheHashIsFnv1aOverLittleEndianIntegers) {
  Timeline timeline;
  EXPECT_EQ(HashOf(timeline), "88201fb960ff6465");  // 16 zero bytes
  timeline.ranks = 2;
  timeline.step = Time(300);
  timeline.spans = {SpanOf(0, 1, 2, 3, 4), SpanOf(1, 0, 5, 256, 300)};
  EXPECT_EQ(HashOf(timeline), "616867d765a11a5a");
}

TEST(TimelineTest, TheHashSeesEveryNumberOfASpanButNoLinks) {
  Timeline timeline;
  timeline.ranks = 1;
  timeline.step = Time(9);
  timeline.spans = {SpanOf(0, 1, 2, 3, 4)};
  const std::string hash = HashOf(timeline);
  for (const Span& other : {SpanOf(1, 1, 2, 3, 4), SpanOf(0, 2, 2, 3, 4), SpanOf(0, 1, 3, 3, 4),
                            SpanOf(0, 1, 2, 4, 4), SpanOf(0, 1, 2, 3, 5)}) {
    Timeline changed = timeline;
    changed.spans = {other};
    EXPECT_NE(HashOf(changed), hash);
  }
  timeline.links.resize(1);
  timeline.provenance = Provenance::kMeasured;
  EXPECT_EQ(HashOf(timeline), hash);
}

}  // namespace timeline_test
}  // namespace rehearse
