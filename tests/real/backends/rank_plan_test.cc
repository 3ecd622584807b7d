// Which piece of an array a rank holds, where views lie, what a schedule must say to be executed.
#include "real/backends/rank_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/error.h"

namespace rehearse {
namespace rank_plan_test {

using ::testing::HasSubstr;

// Six ranks: rows over 2 (stride 1), columns over 3 (stride 2).
Schedule SixRanks() {
  Schedule schedule;
  schedule.communicators.push_back(Communicator::Strided("row", {{2, 1}}, {{3, 2}}));
  schedule.communicators.push_back(Communicator::Strided("column", {{3, 2}}, {{2, 1}}));
  schedule.roles.push_back({.name = "all",
                            .streams = {{"compute", StreamKind::kCompute}},
                            .buffers = {},
                            .regions = {},
                            .ops = {}});
  schedule.role_of_rank.assign(6, 0);
  return schedule;
}
constexpr CommunicatorId kRow(0);
constexpr CommunicatorId kColumn(1);

TEST(ArrayPieceTest, BlocksGoByTheRanksPosition) {
  const Schedule schedule = SixRanks();
  const Region region{{8, {kRow}}, {9, {kColumn}}, {}};
  // Rank 3 = (row 1, column 1): rows 4-7, columns 3-5.
  const ArrayPiece piece = PlaceRegion(schedule, region, 3);
  EXPECT_EQ(piece.row, 4u);
  EXPECT_EQ(piece.column, 3u);
  EXPECT_EQ(piece.rows, 4u);
  EXPECT_EQ(piece.columns, 3u);
  EXPECT_EQ(piece.PositionOf(4)->row, 5u);  // element 4 of rows of 3: (1, 1) of the block
  EXPECT_EQ(piece.PositionOf(4)->column, 4u);
  EXPECT_FALSE(piece.PositionOf(12).has_value());
}

TEST(ArrayPieceTest, CutsNestOutermostFirst) {
  // 12 rows by row, then by column: rank 3 has half 1 (rows 6-11) and its third 1: rows 8-9.
  const ArrayPiece piece = PlaceRegion(SixRanks(), {{12, {kRow, kColumn}}, {2, {}}, {}}, 3);
  EXPECT_EQ(piece.row, 8u);
  EXPECT_EQ(piece.rows, 2u);
}

TEST(ArrayPieceTest, FlatSharesArePaddedAtTheEnd) {
  // A block of 4 × 4 over 3: runs of 6, 6 and 4 elements.
  const Region region{{8, {kRow}}, {4, {}}, {kColumn}};
  const ArrayPiece last = PlaceRegion(SixRanks(), region, 5);  // row 1, column 2
  EXPECT_TRUE(last.flat);
  EXPECT_EQ(last.first, 12u);
  EXPECT_EQ(last.count, 4u);
  EXPECT_EQ(last.PositionOf(0)->row, 4u + 3u);
  EXPECT_EQ(last.PositionOf(3)->column, 3u);
  EXPECT_FALSE(last.PositionOf(4).has_value());
}

TEST(ArrayPieceTest, UnevenCutsAreRefused) {
  EXPECT_THROW(PlaceRegion(SixRanks(), {{8, {}}, {10, {kColumn}}, {}}, 0), Error);
}

Buffer MatrixBuffer(const std::string& name, uint64_t rows, uint64_t columns) {
  Buffer buffer;
  buffer.name = name;
  buffer.rows = rows;
  buffer.columns = columns;
  return buffer;
}

TEST(RankPlanTest, AViewIsAPartOfItsBuffersMemory) {
  Schedule schedule = SixRanks();
  Role& role = schedule.roles[0];
  role.regions.push_back({{4, {}}, {12, {}}, {}});
  role.buffers.push_back(MatrixBuffer("whole", 4, 12));
  role.buffers[0].region = 0;
  role.buffers.push_back(MatrixBuffer("part", 2, 4));
  role.buffers[1].view = View{BufferId(0), 1, 0, {}, {kColumn}};
  const RankPlan plan = PlanRank(schedule, 4);  // column 2: columns 8-11
  const BufferPlan& part = plan.buffers[1];
  EXPECT_EQ(part.memory, plan.buffers[0].memory);
  EXPECT_EQ(part.offset, 1u * 12 + 8);
  EXPECT_EQ(part.stride, 12u);
  ASSERT_TRUE(part.place.has_value());
  EXPECT_EQ(part.place->row, 1u);
  EXPECT_EQ(part.place->column, 8u);
}

TEST(RankPlanTest, AMatrixMayLieInAFlatBuffer) {
  Schedule schedule = SixRanks();
  Role& role = schedule.roles[0];
  role.buffers.push_back(MatrixBuffer("flat", 1, 20));
  role.buffers.push_back(MatrixBuffer("matrix", 3, 4));
  role.buffers[1].view = View{BufferId(0), 0, 5, {}, {}};
  const RankPlan plan = PlanRank(schedule, 0);
  EXPECT_EQ(plan.buffers[1].offset, 5u);
  EXPECT_EQ(plan.buffers[1].stride, 4u);
  role.buffers[1].view->column = 9;  // 9 + 12 > 20
  EXPECT_THROW(PlanRank(schedule, 0), Error);
}

void ExpectRefused(const Schedule& schedule, const char* part) {
  try {
    PlanRank(schedule, 0);
    FAIL() << part;
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr(part));
    EXPECT_THAT(error.what(), HasSubstr("op 0 \"work\""));
  }
}

TEST(RankPlanTest, OpsThatDoNotSayWhatTheyComputeAreRefused) {
  Schedule schedule = SixRanks();
  Role& role = schedule.roles[0];
  role.buffers.push_back(MatrixBuffer("x", 0, 0));
  Op op;
  op.name = "work";
  op.stream = StreamId(0);
  op.work = Compute{};
  role.ops.push_back(op);
  ExpectRefused(schedule, "no kernel");
  std::get<Compute>(role.ops[0].work).kernel = Kernel::kCopy;
  role.ops[0].reads = role.ops[0].writes = {BufferId(0)};
  ExpectRefused(schedule, "no rows and columns");
  Collective collective;
  collective.communicator = kRow;
  role.ops[0].work = collective;
  role.ops[0].reads.clear();
  ExpectRefused(schedule, "which buffers");
}

TEST(OnOneStreamTest, OpsKeepTheirOrder) {
  Schedule schedule = SixRanks();
  Role& role = schedule.roles[0];
  role.streams.push_back({"row", StreamKind::kCommunication});
  for (const uint32_t stream : {0u, 1u, 0u}) {
    Op op;
    op.name = std::to_string(role.ops.size());
    op.stream = StreamId(stream);
    role.ops.push_back(op);
  }
  role.ops[2].after = {OpId(1)};
  const Schedule one = OnOneStream(schedule);
  ASSERT_EQ(one.roles[0].streams.size(), 1u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(one.roles[0].ops[i].name, std::to_string(i));
    EXPECT_EQ(one.roles[0].ops[i].stream, StreamId(0));
    EXPECT_TRUE(one.roles[0].ops[i].after.empty());
  }
}

}  // namespace rank_plan_test
}  // namespace rehearse
