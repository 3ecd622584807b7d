#include "collectives/lowering/pipeline.h"

#include <gtest/gtest.h>

namespace rehearse {
namespace pipeline_test {

// A chain of members: each hop shares one with the hop before and one with the hop after.
Pipeline Chain(const std::vector<double>& microseconds) {
  std::vector<Pipeline::Hop> hops;
  for (uint32_t i = 0; i < microseconds.size(); ++i) {
    Pipeline::Hop hop;
    hop.latency = Seconds(microseconds[i] * 1e-6);
    hop.loads = {{i, 0}};
    if (i > 0) hop.neighbours.push_back(i - 1);
    hop.neighbours.push_back(i);
    if (i + 1 < microseconds.size()) hop.neighbours.push_back(i + 1);
    hops.push_back(hop);
  }
  return Pipeline(std::move(hops));
}

double Microseconds(const Pipeline& pipeline, uint32_t pieces) {
  return pipeline.Time(Bytes(1), pieces).value() * 1e6;
}

// Pieces pass the slow hop one after another; the quick ones are passed once, before and after.
TEST(PipelineTest, ASlowHopAloneIsWaitedForByEveryPiece) {
  EXPECT_NEAR(Microseconds(Chain({1, 5, 1}), 4), 1 + 4 * 5 + 1, 1e-9);
  EXPECT_NEAR(Microseconds(Chain({5, 1, 1}), 4), 4 * 5 + 1 + 1, 1e-9);
  EXPECT_NEAR(Microseconds(Chain({2, 2, 2}), 4), 6 * 2, 1e-9);
}

// Two pieces: the second leaves the first hop at 10, is through the quick ones at 12 and through
// the last at 17, which the first left at 12. Steps that all took as long as their slowest hop
// would take 5 + 5 + 1 + 5 + 5 = 21.
TEST(PipelineTest, SlowHopsThatShareNoMemberDoNotWaitForEachOther) {
  EXPECT_NEAR(Microseconds(Chain({5, 1, 1, 5}), 2), 17, 1e-9);
}

// All hops share members: whoever has finished a quick message still has a slow one to wait for.
TEST(PipelineTest, HopsThatShareAMemberDo) {
  std::vector<Pipeline::Hop> hops(4);
  for (uint32_t i = 0; i < 4; ++i) {
    hops[i].latency = Seconds(i % 3 == 0 ? 5e-6 : 1e-6);
    hops[i].loads = {{i, 0}};
    for (uint32_t other = 0; other < 4; ++other) hops[i].neighbours.push_back(other);
  }
  EXPECT_NEAR(Microseconds(Pipeline(hops), 2), 21, 1e-9);
}

TEST(PipelineTest, WhereFillingIsCountedElsewhereOnlyBytesTakeTime) {
  const Pipeline pipeline(2e-9);
  for (const uint32_t pieces : {1u, 4u, kMostPieces})
    EXPECT_NEAR(pipeline.Time(Bytes(1e6), pieces).value(), 2e-3, 1e-12);
  EXPECT_EQ(pipeline.BestPieces(Bytes(1e6)), kMostPieces);
}

}  // namespace pipeline_test
}  // namespace rehearse
