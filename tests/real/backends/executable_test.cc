#include "real/backends/executable.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "real/backends/rank_plan.h"
#include "real/execution/execute.h"
#include "real/transports/transport_threads.h"
#include "sim/base/error.h"
#include "sim/base/json_document.h"
#include "sim/schedule/schedule_json.h"

namespace rehearse {
namespace executable_test {

using ::testing::HasSubstr;

// Three ranks that do these ops, in the words of a schedule's file.
Schedule ThreeRanks(const std::string& ops) {
  const std::string text = R"({"schema": "rehearse.schedule.v1", "ranks": 3,
    "communicators": [{"name": "all", "ranks": "all"}], "ops": [)" +
                           ops + "]}";
  return ReadSchedule(JsonDocument::FromText(text, "s.json").Root());
}

Execution Executed(const Schedule& schedule, StreamUse streams) {
  ExecutionOptions options;
  options.warm_ups = 0;
  options.repeats = 1;
  options.streams = streams;
  Execution execution;
  RunAsThreads(schedule.ranks(), [&](Transport& transport) {
    Execution own = Execute(schedule, transport, options);
    if (transport.rank() == 0) execution = std::move(own);
  });
  return execution;
}

uint64_t ElementsOf(const Schedule& schedule, const std::vector<BufferId>& buffers) {
  return schedule.roles[0].buffers.at(buffers.at(0).index()).columns;
}

TEST(ExecutableTest, MessagesGetTheMemoryOfTheirBytes) {
  const Schedule schedule = Executable(ThreeRanks(R"(
    {"name": "sum", "collective": "all-reduce", "communicator": "all", "bytes": "120B"},
    {"name": "gather", "collective": "all-gather", "communicator": "all", "bytes": "120B"},
    {"name": "scatter", "collective": "reduce-scatter", "communicator": "all", "bytes": "118B"},
    {"name": "swap", "collective": "all-to-all", "communicator": "all", "bytes": "120B"},
    {"name": "meet", "collective": "barrier", "communicator": "all"})"));
  const std::vector<Op>& ops = schedule.roles[0].ops;
  // 120 bytes are 30 numbers of fp32, a third of them 10; 118 bytes need 30 as well.
  EXPECT_EQ(ElementsOf(schedule, ops[0].reads), 30u);
  EXPECT_EQ(ops[0].writes, ops[0].reads);
  EXPECT_EQ(ElementsOf(schedule, ops[1].reads), 10u);
  EXPECT_EQ(ElementsOf(schedule, ops[1].writes), 30u);
  EXPECT_EQ(ElementsOf(schedule, ops[2].reads), 30u);
  EXPECT_EQ(ElementsOf(schedule, ops[2].writes), 10u);
  EXPECT_EQ(ElementsOf(schedule, ops[3].writes), 30u);
  EXPECT_NE(ops[3].writes, ops[3].reads);
  EXPECT_EQ(ElementsOf(schedule, ops[4].reads), 1u);
  // All are on one stream: one memory for what is sent, one for what is received.
  const RankPlan plan = PlanRank(schedule, 0);
  ASSERT_EQ(plan.memories.size(), 2u);
  EXPECT_EQ(plan.memories[0].elements, 30u);
  EXPECT_EQ(plan.memories[1].elements, 30u);
}

TEST(ExecutableTest, WhatNamesItsBuffersIsLeftAlone) {
  Schedule schedule = ThreeRanks(R"({"name": "a", "duration": "1ms"})");
  EXPECT_TRUE(WaitsForOps(schedule));
  EXPECT_FALSE(MakesUpMessages(schedule));
  EXPECT_TRUE(Executable(schedule).roles[0].buffers.empty());
}

TEST(ExecutableTest, CopiesAreWrittenOut) {
  Schedule schedule = ThreeRanks(R"({"name": "a", "duration": "1ms"}], "repeats": [
    {"begin": 0, "end": 1, "times": 4})");
  EXPECT_EQ(Executable(schedule).roles[0].ops.size(), 5u);
  EXPECT_EQ(Executed(schedule, StreamUse::kBlocking).repeats[0].spans.size(), 15u);
}

TEST(ExecutableTest, SizesOfPairsNeedBuffers) {
  const Schedule schedule = ThreeRanks(
      R"({"name": "swap", "collective": "all-to-all", "communicator": "all", "bytes": "3B",
          "pair_bytes": [["1B", "1B", "1B"], ["0B", "0B", "0B"], ["0B", "0B", "0B"]]})");
  EXPECT_THAT([&] { Executable(schedule); },
              ::testing::ThrowsMessage<Error>(HasSubstr("op \"swap\" gives sizes of pairs")));
}

TEST(ExecutableTest, OpsOfAFixedDurationTakeAtLeastThat) {
  const Execution execution =
      Executed(ThreeRanks(R"({"name": "a", "duration": "3ms"}, {"name": "b", "duration": "50us"})"),
               StreamUse::kAuto);
  ASSERT_EQ(execution.repeats.size(), 1u);
  for (const Span& span : execution.repeats[0].spans) {
    const double duration = ToSeconds(span.end - span.begin).value();
    EXPECT_GE(duration, span.op == 0 ? 2.999e-3 : 49e-6);  // clocks of a run count nanoseconds
  }
}

// Every kind of message, on streams of their own: the test is that they all finish.
TEST(ExecutableTest, MadeUpMessagesOfEveryKindArrive) {
  const Schedule schedule = ThreeRanks(R"(
    {"name": "work", "duration": "100us"},
    {"name": "sum", "collective": "all-reduce", "communicator": "all", "bytes": "1MiB"},
    {"name": "gather", "collective": "all-gather", "communicator": "all", "bytes": "10B"},
    {"name": "scatter", "collective": "reduce-scatter", "communicator": "all", "bytes": "1kB"},
    {"name": "swap", "collective": "all-to-all", "communicator": "all", "bytes": "100B"},
    {"name": "shift", "collective": "send-receive", "communicator": "all", "bytes": "100B"},
    {"name": "tell", "collective": "broadcast", "communicator": "all", "bytes": "5B", "root": 2},
    {"name": "add", "collective": "reduce", "communicator": "all", "bytes": "5B", "root": 1},
    {"name": "meet", "collective": "barrier", "communicator": "all"})");
  for (const StreamUse streams : {StreamUse::kBlocking, StreamUse::kThreads})
    EXPECT_EQ(Executed(schedule, streams).repeats[0].spans.size(), 27u);
}

TEST(ExecutableTest, SendsMeetReceives) {
  const std::string text = R"({"schema": "rehearse.schedule.v1", "ranks": 2,
    "role_of_rank": [["a", 1], ["b", 1]], "communicators": [{"name": "pair", "ranks": "all"}],
    "roles": [{"name": "a", "ops": [
      {"name": "go", "send_to": 1, "communicator": "pair", "bytes": "9B"},
      {"name": "come", "receive_from": 1, "communicator": "pair", "bytes": "1MiB"}]},
      {"name": "b", "ops": [
      {"name": "come", "receive_from": 0, "communicator": "pair", "bytes": "9B"},
      {"name": "go", "send_to": 0, "communicator": "pair", "bytes": "1MiB"}]}]})";
  const Schedule schedule = ReadSchedule(JsonDocument::FromText(text, "s.json").Root());
  const Timeline step = Executed(schedule, StreamUse::kBlocking).repeats[0];
  EXPECT_LE(step.spans[0].begin, step.spans[1].begin);
}

}  // namespace executable_test
}  // namespace rehearse
