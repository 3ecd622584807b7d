// Steps that are measured: order, provenance, streams, logs, failures. No test depends on how long
// they took.
#include "real/execution/execute.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "real/execution/measured_timeline.h"
#include "real/execution/step_log.h"
#include "real/transports/transport_threads.h"
#include "sim/base/error.h"
#include "sim/base/interruption.h"
#include "sim/schedule/schedule_check.h"

namespace rehearse {
namespace execute_test {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

Buffer MatrixBuffer(const std::string& name, uint64_t rows, uint64_t columns) {
  Buffer buffer;
  buffer.name = name;
  buffer.rows = rows;
  buffer.columns = columns;
  return buffer;
}

// Two ranks; each multiplies twice, and beside the second product the first result is all-reduced.
Schedule TwoRanks() {
  Schedule schedule;
  schedule.communicators.push_back(Communicator::Strided("data", {{2, 1}}, {}));
  Role role;
  role.name = "all";
  role.streams = {{"compute", StreamKind::kCompute}, {"data", StreamKind::kCommunication}};
  role.regions = {{{32, {}}, {32, {}}, {}}};
  for (const char* name : {"x", "y", "z"}) {
    role.buffers.push_back(MatrixBuffer(name, 32, 32));
    role.buffers.back().region = 0;
  }
  Compute product;
  product.kind = ComputeKind::kGemm;
  product.kernel = Kernel::kGemm;
  product.gemm = {.m = 32, .n = 32, .k = 32};
  Collective sum;
  sum.communicator = CommunicatorId(0);
  sum.bytes = Bytes(32 * 32 * 4);
  const BufferId x(0);
  const BufferId y(1);
  const BufferId z(2);
  const auto add = [&](const char* name, uint32_t stream, const Work& work,
                       const std::vector<BufferId>& reads, const std::vector<BufferId>& writes,
                       const std::vector<OpId>& after) {
    Op op;
    op.name = name;
    op.stream = StreamId(stream);
    op.work = work;
    op.reads = reads;
    op.writes = writes;
    op.after = after;
    role.ops.push_back(op);
  };
  add("first", 0, product, {x, x}, {y}, {});
  add("all-reduce", 1, sum, {y}, {y}, {OpId(0)});
  add("second", 0, product, {x, x}, {z}, {});
  add("third", 0, product, {y, z}, {z}, {OpId(1)});
  schedule.roles.push_back(role);
  schedule.role_of_rank = {0, 0};
  schedule.tokens = 1;
  return schedule;
}

Execution RunTwoRanks(const ExecutionOptions& options, const Schedule& schedule) {
  Execution execution;
  RunAsThreads(2, [&](Transport& transport) {
    Execution own = Execute(schedule, transport, options);
    if (transport.rank() == 0) execution = std::move(own);
  });
  return execution;
}

TEST(ExecuteTest, EveryStepHasAMeasuredSpanOfEveryOpOfEveryRank) {
  ExecutionOptions options;
  options.warm_ups = 1;
  options.repeats = 3;
  options.streams = StreamUse::kThreads;
  const Execution execution = RunTwoRanks(options, TwoRanks());
  EXPECT_EQ(execution.warm_ups.size(), 1u);
  ASSERT_EQ(execution.repeats.size(), 3u);
  for (const Timeline& step : execution.repeats) {
    EXPECT_EQ(step.provenance, Provenance::kMeasured);
    ASSERT_EQ(step.spans.size(), 8u);
    for (uint32_t i = 0; i < 8; ++i) {
      const Span& span = step.spans[i];
      EXPECT_EQ(span.rank, i / 4);
      EXPECT_EQ(span.op, i % 4);
      EXPECT_LE(Time(0), span.ready);
      EXPECT_LE(span.ready, span.begin);
      EXPECT_LE(span.begin, span.end);
      EXPECT_LE(span.end, step.step);
    }
    // Dependencies: the all-reduce after the first product, the third after the all-reduce.
    for (const size_t rank : {0u, 4u}) {
      EXPECT_LE(step.spans[rank].end, step.spans[rank + 1].ready);
      EXPECT_LE(step.spans[rank + 1].end, step.spans[rank + 3].ready);
    }
    // Rendezvous: the transfer begins for both when the second arrives.
    EXPECT_EQ(step.spans[1].begin, step.spans[5].begin);
    EXPECT_EQ(step.spans[1].begin, std::max(step.spans[1].ready, step.spans[5].ready));
  }
}

TEST(ExecuteTest, BlockingRanksDoOneOpAfterTheOtherInListOrder) {
  ExecutionOptions options;
  options.streams = StreamUse::kBlocking;
  const Execution execution = RunTwoRanks(options, TwoRanks());
  EXPECT_TRUE(execution.blocking);
  EXPECT_EQ(execution.schedule.roles[0].streams.size(), 1u);
  for (const Timeline& step : execution.repeats) {
    for (size_t i = 1; i < step.spans.size(); ++i) {
      if (step.spans[i].rank != step.spans[i - 1].rank) continue;
      EXPECT_LE(step.spans[i - 1].end, step.spans[i].ready);
    }
  }
}

TEST(ExecuteTest, RanksThatSendAndReceiveAtTheSameTimeNeedStreams) {
  Schedule schedule = TwoRanks();
  Role& role = schedule.roles[0];
  role.ops.clear();
  role.streams.push_back({"back", StreamKind::kCommunication});
  schedule.roles.push_back(role);
  schedule.role_of_rank = {0, 1};
  // Each sends to the other and receives from it: list order would wait forever.
  for (const uint32_t rank : {0u, 1u}) {
    Role& own = schedule.roles[rank];
    Op send;
    send.name = "send";
    send.stream = StreamId(1);
    send.work = Send{CommunicatorId(0), 1 - rank, Bytes(32 * 32 * 4)};
    send.reads = {BufferId(0)};
    Op receive = send;
    receive.name = "receive";
    receive.stream = StreamId(2);
    receive.work = Receive{CommunicatorId(0), 1 - rank, Bytes(32 * 32 * 4)};
    receive.reads = {};
    receive.writes = {BufferId(1)};
    own.ops = {send, receive};
  }
  CheckSchedule(schedule);
  ExecutionOptions options;
  options.repeats = 2;
  EXPECT_FALSE(RunTwoRanks(options, schedule).blocking);
  options.streams = StreamUse::kBlocking;
  EXPECT_THROW(RunTwoRanks(options, schedule), Error);
}

TEST(ExecuteTest, AnOpThatFailsIsNamedWithItsRank) {
  Schedule schedule = TwoRanks();
  std::get<Compute>(schedule.roles[0].ops[2].work).gemm.k = 31;  // does not fit its operands
  try {
    RunTwoRanks({}, schedule);
    FAIL();
  } catch (const InternalError& error) {
    EXPECT_THAT(error.what(), HasSubstr("op 2 \"second\""));
    EXPECT_THAT(error.what(), HasSubstr("rank "));
  }
}

// Counts what is reported to it.
struct StepCounter : ProgressObserver {
  void Begin(std::string_view /*what*/, std::string_view parts, uint64_t all) override {
    EXPECT_EQ(parts, "steps");
    wanted = all;
  }
  void Done(double parts) override { done = parts; }
  void Note(std::string_view text) override { note = text; }

  uint64_t wanted = 0;
  double done = 0;
  std::string note;
};

TEST(ExecuteTest, RankZeroTellsHowManyStepsAreDone) {
  StepCounter counter;
  ExecutionOptions options;
  options.warm_ups = 1;
  options.repeats = 3;
  options.observer = &counter;
  RunTwoRanks(options, TwoRanks());
  EXPECT_EQ(counter.wanted, 4u);
  EXPECT_EQ(counter.done, 4);
  EXPECT_THAT(counter.note, HasSubstr("quickest "));
}

TEST(ExecuteTest, AStoppedRunHasTheStepsThatWereMeasured) {
  StepCounter counter;
  ExecutionOptions options;
  options.warm_ups = 1;
  options.repeats = 1000;
  options.observer = &counter;
  options.is_stopped = [&] { return counter.done >= 3; };
  const Execution execution = RunTwoRanks(options, TwoRanks());
  EXPECT_EQ(execution.warm_ups.size(), 1u);
  EXPECT_EQ(execution.repeats.size(), 2u);
  EXPECT_EQ(execution.walls.size(), 2u);
}

TEST(ExecuteTest, ARunThatIsStoppedWhileItWarmsUpIsNone) {
  ExecutionOptions options;
  options.is_stopped = [] { return true; };
  EXPECT_THROW(RunTwoRanks(options, TwoRanks()), Stopped);
}

TEST(MeasuredTimelineTest, WaitingIsFromReadyToTheLastArrival) {
  // Rank 0 arrives at 10 and is through at 30, rank 1 arrives at 25 and is through at 32: the
  // all-reduce lasts from 25 to 32. The first product of rank 1 never ended.
  const Schedule schedule = TwoRanks();
  std::vector<std::vector<OpTime>> times(2, std::vector<OpTime>(4));
  times[0][1] = {10, 30};
  times[1][1] = {25, 32};
  times[0][0] = {5, 10};
  times[1][0].ready = 6;
  const Timeline timeline = MakeMeasuredTimeline(schedule, times);
  ASSERT_EQ(timeline.spans.size(), 3u);
  // Times are picoseconds from the first readiness at 5.
  EXPECT_EQ(timeline.spans[1].ready, Time(5000));
  EXPECT_EQ(timeline.spans[1].begin, Time(20000));
  EXPECT_EQ(timeline.spans[1].end, Time(25000));
  EXPECT_EQ(timeline.spans[2].begin, Time(20000));
  EXPECT_EQ(timeline.step, Time(27000));
}

class StepLogTest : public ::testing::Test {
 protected:
  StepLogTest()
      : folder_(fs::temp_directory_path() / ("rehearse-log-" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
  }
  ~StepLogTest() override { fs::remove_all(folder_); }
  fs::path folder_;
};

TEST_F(StepLogTest, EveryLineIsAnObjectAndAFailedStepKeepsTheOpsThatEnded) {
  const std::string path = folder_ / "rank-1.jsonl";
  std::vector<OpTime> times(2);
  times[0] = {100, 200};
  times[1].ready = 200;
  {
    StepLog log(path, "a", 1, 2);
    log.Write({0, true, times, ""});
    log.Write({1, false, times, "rank 0 is gone"});
  }
  std::ifstream file(path);
  std::vector<nlohmann::json> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(nlohmann::json::parse(line));
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0]["schema"], "rehearse.steps.v1");
  EXPECT_EQ(lines[1]["ops"], nlohmann::json::parse("[[0, 100, 200]]"));
  EXPECT_EQ(lines[2]["failure"], "rank 0 is gone");
}

TEST_F(StepLogTest, AFullDiskIsAnErrorThatNamesTheFile) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full on this system";
  const fs::path path = folder_ / "rank-0.jsonl";
  fs::create_symlink("/dev/full", path);
  try {
    StepLog log(path, "a", 0, 1);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("cannot write"));
    EXPECT_THAT(error.what(), HasSubstr("rank-0.jsonl"));
  }
}

}  // namespace execute_test
}  // namespace rehearse
