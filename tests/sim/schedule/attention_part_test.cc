// How sequences are shared among ranks, and how much of attention falls to each.
#include "sim/schedule/attention_part.h"

#include <set>

#include <gtest/gtest.h>

namespace rehearse {
namespace attention_part_test {

TEST(SequenceOrderTest, RowsOfAllRanksAreAllRowsOnce) {
  for (const bool balanced : {false, true}) {
    for (const uint64_t parts : {1u, 2u, 3u, 4u}) {
      // Three blocks of two sequences of 24 tokens.
      const SequenceOrder order{24, parts, 48, balanced};
      std::set<uint64_t> rows;
      for (uint64_t row = 0; row < 144; ++row) {
        rows.insert(order.InSequences(row));
        EXPECT_EQ(order.InSequences(row) / 48, row / 48) << "blocks stay";
      }
      EXPECT_EQ(rows.size(), 144u);
      EXPECT_EQ(*rows.rbegin(), 143u);
    }
  }
}

TEST(SequenceOrderTest, ABalancedRankHasARunFromEachEnd) {
  // Runs of 3 tokens; the second of four ranks has the second and the last but one.
  const SequenceOrder order{24, 4, 24, true};
  std::vector<uint64_t> tokens;
  for (uint64_t i = 0; i < 6; ++i) tokens.push_back(order.InSequences(6 + i));
  EXPECT_EQ(tokens, (std::vector<uint64_t>{3, 4, 5, 18, 19, 20}));
  // Unbalanced, it has one run of 6.
  EXPECT_EQ((SequenceOrder{24, 4, 24, false}.InSequences(6)), 6u);
}

TEST(SequenceOrderTest, ARankHasItsPartOfOneSequenceAfterTheOther) {
  // Two sequences of 8 tokens over two ranks: the first has tokens 0 to 3 of both.
  const SequenceOrder order{8, 2, 16, false};
  EXPECT_EQ(order.InSequences(3), 3u);
  EXPECT_EQ(order.InSequences(4), 8u);
  EXPECT_EQ(order.InSequences(8), 4u);
}

AttentionPart Part(uint64_t parts, bool balanced, int64_t step, double window = 0) {
  AttentionPart part;
  part.sequence = 48;
  part.causal = true;
  part.window = window;
  part.parts = parts;
  part.balanced = balanced;
  part.step = step;
  return part;
}

TEST(AttentionPairsTest, AMaskLeavesHalfAndAWindowItsWidth) {
  EXPECT_EQ(MostPairs(Part(1, false, -1)), 48 * 48 / 2);
  EXPECT_EQ(MostPairs(Part(1, false, -1, 10)), 48 * 10 - 10 * 10 / 2);
  EXPECT_EQ(MostPairs(Part(1, false, -1, 48)), 48 * 48 / 2);
  AttentionPart whole = Part(4, true, -1);
  whole.causal = false;
  EXPECT_EQ(MostPairs(whole), 12 * 48);
}

TEST(AttentionPairsTest, BalancedRanksHaveAnEqualPartInEveryStep) {
  // 12 tokens per rank: s²/2/4 in all, in four equal steps.
  for (const int64_t step : {0, 1, 2, 3}) EXPECT_EQ(MostPairs(Part(4, true, step)), 12 * 12 / 2);
  EXPECT_EQ(MostPairs(Part(4, true, -1)), 48 * 48 / 2 / 4);
}

TEST(AttentionPairsTest, TheLastOfContiguousRanksWaitsForNobody) {
  // It sees everything before it: 12·48 less the half of its own square that the mask hides.
  EXPECT_EQ(MostPairs(Part(4, false, -1)), 12 * 48 - 12 * 12 / 2);
  EXPECT_EQ(MostPairs(Part(4, false, 0)), 12 * 12 / 2);
  EXPECT_EQ(MostPairs(Part(4, false, 3)), 12 * 12);
}

TEST(AttentionPairsTest, WhatAWindowDoesNotReachIsNoWork) {
  // 12 tokens per rank and a window of 12: the rank before has the other half of the band.
  EXPECT_EQ(MostPairs(Part(4, false, 1, 12)), 12 * 12 / 2);
  EXPECT_EQ(MostPairs(Part(4, false, 2, 12)), 0);
  // Steps, summed over ranks, are the whole band where ranks are equal: 4·(48·12 - 72)/4 over all.
  EXPECT_EQ(MostPairs(Part(4, false, -1, 12)), 12 * 12);
}

TEST(AttentionPairsTest, AWindowOfOneIsAWindow) {
  EXPECT_EQ(MostPairs(Part(1, false, -1, 1)), 48 - 0.5);
}

TEST(AttentionPairsTest, PartsAreThoseOfTheAttributes) {
  std::vector<double> attributes(kAttentionStep + 1, 0);
  attributes[kAttentionSequence] = 48;
  attributes[kAttentionParts] = 4;
  attributes[kAttentionStep] = 2;
  const AttentionPart part = PartOf(attributes);
  EXPECT_EQ(part.parts, 4u);
  EXPECT_EQ(part.step, 2);
  attributes[kAttentionParts] = 0;  // all on one rank
  EXPECT_EQ(PartOf(attributes).parts, 1u);
}

}  // namespace attention_part_test
}  // namespace rehearse
