#include "sim/engine/program.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/error.h"

namespace rehearse {
namespace program_test {

using ::testing::ElementsAre;

Flow FlowOver(uint32_t use_set, uint32_t steps = 1) {
  Flow flow;
  flow.bytes = 1;
  flow.use_set = use_set;
  flow.steps = steps;
  return flow;
}

TEST(ProgramBuilderTest, IdsAreGivenInCallOrder) {
  ProgramBuilder builder;
  EXPECT_EQ(builder.AddLink({"a", "test", BytesPerSecond(1)}).index(), 0u);
  EXPECT_EQ(builder.AddLink({"b", "test", BytesPerSecond(1)}).index(), 1u);
  EXPECT_EQ(builder.AddUseSet({}), 0u);
  EXPECT_EQ(builder.AddUseSet({{LinkId(1), 2}}), 1u);
  EXPECT_EQ(builder.AddJoin().index(), 0u);
  EXPECT_EQ(builder.AddDelay(Time(5)).index(), 1u);
  EXPECT_EQ(builder.AddFlow(FlowOver(1)).index(), 2u);
}

TEST(ProgramBuilderTest, UseSetsLieOneBehindTheOther) {
  ProgramBuilder builder;
  const LinkId a = builder.AddLink({"a", "test", BytesPerSecond(1)});
  const LinkId b = builder.AddLink({"b", "test", BytesPerSecond(1)});
  builder.AddUseSet({{b, 3}, {a, 1}});
  builder.AddUseSet({});
  builder.AddUseSet({{a, 2}});
  const Program program = builder.Build();
  EXPECT_THAT(program.use_set_begin, ElementsAre(0u, 2u, 2u, 3u));
  EXPECT_EQ(program.uses[0].link, b);
  EXPECT_EQ(program.uses[0].multiplicity, 3u);
  EXPECT_EQ(program.uses[2].multiplicity, 2u);
}

TEST(ProgramBuilderTest, SuccessorsKeepTheOrderOfTheirEdges) {
  ProgramBuilder builder;
  const TaskId a = builder.AddJoin();
  const TaskId b = builder.AddJoin();
  const TaskId c = builder.AddJoin();
  builder.AddEdge(a, c);
  builder.AddEdge(b, c);
  builder.AddEdge(a, b);
  const Program program = builder.Build();
  EXPECT_THAT(program.successor_begin, ElementsAre(0u, 2u, 3u, 3u));
  EXPECT_THAT(program.successors, ElementsAre(c, b, c));
  EXPECT_THAT(program.predecessor_count, ElementsAre(0u, 1u, 2u));
}

TEST(ProgramBuilderTest, SpansAreSortedByRankThenOp) {
  ProgramBuilder builder;
  const TaskId task = builder.AddJoin();
  for (const auto& [rank, op] : {std::pair(1u, 0u), std::pair(0u, 2u), std::pair(0u, 1u)}) {
    builder.AddSpan({.rank = rank, .op = op, .ready = TaskId(), .begin = task, .end = task});
  }
  const Program program = builder.Build();
  ASSERT_EQ(program.spans.size(), 3u);
  EXPECT_EQ(program.spans[0].op, 1u);
  EXPECT_EQ(program.spans[1].op, 2u);
  EXPECT_EQ(program.spans[2].rank, 1u);
}

TEST(ProgramBuilderTest, ChainingNamesBothNeighbours) {
  ProgramBuilder builder;
  builder.AddUseSet({});
  const TaskId a = builder.AddFlow(FlowOver(0, 3));
  const TaskId b = builder.AddFlow(FlowOver(0, 3));
  builder.Chain(a, b);
  const Program program = builder.Build();
  EXPECT_EQ(program.flows[0].downstream, b);
  EXPECT_EQ(program.flows[1].upstream, a);
  EXPECT_FALSE(program.flows[0].upstream.IsSet());
}

TEST(ProgramBuilderTest, BuildFillsInTheDirectionThatWasNotGiven) {
  ProgramBuilder builder;
  builder.AddUseSet({});
  Flow late = FlowOver(0);
  late.upstream = TaskId(1);  // not there yet
  const TaskId a = builder.AddFlow(late);
  const TaskId b = builder.AddFlow(FlowOver(0));
  const Program program = builder.Build();
  EXPECT_EQ(program.flows[1].downstream, a);
  EXPECT_EQ(program.flows[0].upstream, b);
}

TEST(ProgramBuilderTest, ABuilderIsEmptyAfterBuild) {
  ProgramBuilder builder;
  builder.AddUseSet({});
  builder.AddEdge(builder.AddJoin(), builder.AddJoin());
  builder.Build();
  const Program program = builder.Build();
  EXPECT_TRUE(program.tasks.empty());
  EXPECT_TRUE(program.successors.empty());
  EXPECT_THAT(program.use_set_begin, ElementsAre(0u));
  EXPECT_THAT(program.successor_begin, ElementsAre(0u));
}

TEST(ProgramBuilderTest, RefusesWhatHasNoMeaning) {
  ProgramBuilder builder;
  EXPECT_THROW(builder.AddLink({"dead", "test", BytesPerSecond(0)}), InternalError);
  EXPECT_THROW(
      builder.AddLink({"fast", "test", BytesPerSecond(std::numeric_limits<double>::infinity())}),
      InternalError);
  const LinkId link = builder.AddLink({"a", "test", BytesPerSecond(1)});
  EXPECT_THROW(builder.AddUseSet({{LinkId(1), 1}}), InternalError);
  EXPECT_THROW(builder.AddUseSet({{link, 1}, {link, 1}}), InternalError);
  EXPECT_THROW(builder.AddUseSet({{link, 0}}), InternalError);
  EXPECT_THROW(builder.AddFlow(FlowOver(0)), InternalError) << "no use set yet";
  const uint32_t set = builder.AddUseSet({{link, 1}});
  EXPECT_THROW(builder.AddDelay(Time(-1)), InternalError);
  Flow flow = FlowOver(set);
  flow.bytes = -1;
  EXPECT_THROW(builder.AddFlow(flow), InternalError);
  flow.bytes = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(builder.AddFlow(flow), InternalError);
  EXPECT_THROW(builder.AddFlow(FlowOver(set, 0)), InternalError);
  EXPECT_THROW(builder.AddEdge(TaskId(0), TaskId(0)), InternalError) << "no task yet";
}

TEST(ProgramBuilderTest, RefusesChainsThatBranchOrDoNotMatch) {
  ProgramBuilder builder;
  builder.AddUseSet({});
  const TaskId a = builder.AddFlow(FlowOver(0, 2));
  const TaskId b = builder.AddFlow(FlowOver(0, 2));
  const TaskId c = builder.AddFlow(FlowOver(0, 2));
  const TaskId other = builder.AddFlow(FlowOver(0, 3));
  EXPECT_THROW(builder.Chain(a, other), InternalError) << "2 steps against 3";
  EXPECT_THROW(builder.Chain(a, builder.AddJoin()), InternalError) << "not a flow";
  builder.Chain(a, b);
  EXPECT_THROW(builder.Chain(a, c), InternalError) << "two downstreams";
  EXPECT_THROW(builder.Chain(c, b), InternalError) << "two upstreams";
}

TEST(ProgramBuilderTest, RefusesSpansOfTasksThatDoNotExist) {
  ProgramBuilder builder;
  builder.AddSpan({.rank = 0, .op = 0, .ready = TaskId(), .begin = TaskId(0), .end = TaskId(0)});
  EXPECT_THROW(builder.Build(), InternalError);
}

}  // namespace program_test
}  // namespace rehearse
