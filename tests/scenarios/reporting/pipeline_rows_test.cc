// Pipelines as papers draw them: pieces, chunks, directions, bubbles.
#include "scenarios/reporting/pipeline_rows.h"

#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/reporting/reported_run.h"
#include "sim/base/json_document.h"
#include "tests/support/places.h"

namespace rehearse {
namespace pipeline_rows_test {

// Four ranks of two equal layers, eight micro-batches: a pass of a rank takes 2 ms.
PipelineRows RowsUnder(const std::vector<std::string>& changes) {
  JsonDocument document =
      JsonDocument::FromFile(std::string(SourceDir()) + "/scenarios/lessons/zero-bubble.json");
  for (const std::string& change : changes) document.Set(change);
  return ReportScenario(ReadScenario(document), {}).pipeline;
}

std::map<PipelineWork, size_t> CountsOf(const PipelineRow& row) {
  std::map<PipelineWork, size_t> counts;
  for (const PipelinePiece& piece : row.pieces) ++counts[piece.work];
  return counts;
}

TEST(PipelineRowsTest, EachMicroBatchGoesForwardAndBackOnce) {
  const PipelineRows rows = RowsUnder({"pipeline.schedule=1f1b"});
  ASSERT_EQ(rows.rows.size(), 4u);
  for (const PipelineRow& row : rows.rows) {
    const auto counts = CountsOf(row);
    EXPECT_EQ(counts.size(), 2u);
    EXPECT_EQ(counts.at(PipelineWork::kForward), 8u);
    EXPECT_EQ(counts.at(PipelineWork::kBackward), 8u);
    for (size_t i = 1; i < row.pieces.size(); ++i)
      EXPECT_LE(row.pieces[i - 1].end, row.pieces[i].begin);
  }
}

TEST(PipelineRowsTest, SeparateGradientsAreTold) {
  for (const PipelineRow& row : RowsUnder({"pipeline.schedule=zb-h1"}).rows) {
    const auto counts = CountsOf(row);
    EXPECT_EQ(counts.at(PipelineWork::kInputGradient), 8u) << row.name;
    EXPECT_EQ(counts.at(PipelineWork::kWeightGradient), 8u) << row.name;
  }
}

TEST(PipelineRowsTest, ChunksAndDirectionsAreTold) {
  for (const PipelineRow& row : RowsUnder({"pipeline.schedule=interleaved"}).rows) {
    std::map<uint32_t, size_t> forward;
    for (const PipelinePiece& piece : row.pieces)
      if (piece.work == PipelineWork::kForward) ++forward[piece.chunk];
    EXPECT_EQ(forward, (std::map<uint32_t, size_t>{{0, 8}, {1, 8}})) << row.name;
  }
  // Down the ranks and up again: the last rank has two neighbouring stages, which are two chunks.
  const PipelineRows down_and_up = RowsUnder({"pipeline.schedule=zb-v"});
  std::set<uint32_t> chunks;
  for (const PipelinePiece& piece : down_and_up.rows.back().pieces) chunks.insert(piece.chunk);
  EXPECT_EQ(chunks.size(), 2u);
  for (const PipelineRow& row : RowsUnder({"pipeline.schedule=dualpipe"}).rows) {
    size_t from_end = 0;
    for (const PipelinePiece& piece : row.pieces) {
      EXPECT_EQ(piece.from_end, piece.micro_batch >= 4);
      if (piece.from_end && piece.work == PipelineWork::kForward) ++from_end;
    }
    EXPECT_GE(from_end, 4u);
  }
}

TEST(PipelineRowsTest, NoBubbleIsLeftWhereStepsFollowEachOtherRankByRank) {
  const PipelineRows waits = RowsUnder({"pipeline.schedule=zb-h2"});
  const PipelineRows follows =
      RowsUnder({"pipeline.schedule=zb-h2", "pipeline.validation=after-update"});
  EXPECT_GT(waits.Bubble(), 0.1);
  // The first rank has no gradient of its input to make.
  for (size_t i = 1; i < follows.rows.size(); ++i) EXPECT_NEAR(follows.rows[i].Bubble(), 0, 0.01);
  EXPECT_GT(follows.rows.back().from, Time());
}

TEST(PipelineRowsTest, WithoutStagesOrMicroBatchesThereAreNone) {
  JsonDocument document =
      JsonDocument::FromFile(std::string(SourceDir()) + "/scenarios/lessons/ring.json");
  EXPECT_TRUE(ReportScenario(ReadScenario(document), {}).pipeline.rows.empty());
  EXPECT_TRUE(RowsUnder({"training.micro_batches=1", "pipeline.schedule=gpipe"}).rows.empty());
}

}  // namespace pipeline_rows_test
}  // namespace rehearse
