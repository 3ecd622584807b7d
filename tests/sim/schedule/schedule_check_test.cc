#include "sim/schedule/schedule_check.h"

#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "sim/base/error.h"

namespace rehearse {
namespace schedule_check_test {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StrEq;
using ::testing::ThrowsMessage;

// Two streams are enough for every rule.
constexpr StreamId kMain(0);
constexpr StreamId kSide(1);

uint32_t AddRole(Schedule& schedule, const std::string& name) {
  Role role;
  role.name = name;
  role.streams = {{"main", StreamKind::kCompute}, {"side", StreamKind::kCommunication}};
  schedule.roles.push_back(std::move(role));
  return static_cast<uint32_t>(schedule.roles.size() - 1);
}

OpId AddOp(Role& role, const std::string& name, StreamId stream, Work work,
           std::vector<OpId> after = {}) {
  Op op;
  op.name = name;
  op.stream = stream;
  op.work = std::move(work);
  op.after = std::move(after);
  role.ops.push_back(std::move(op));
  return OpId(static_cast<uint32_t>(role.ops.size() - 1));
}

Collective AllReduce(uint32_t communicator, double bytes = 1024) {
  Collective collective;
  collective.communicator = CommunicatorId(communicator);
  collective.bytes = Bytes(bytes);
  return collective;
}

Collective AllGather(uint32_t communicator, double bytes = 1024) {
  Collective collective = AllReduce(communicator, bytes);
  collective.kind = CollectiveKind::kAllGather;
  return collective;
}

Send SendTo(uint32_t peer, double bytes = 1024) { return {CommunicatorId(0), peer, Bytes(bytes)}; }
Receive ReceiveFrom(uint32_t peer, double bytes = 1024) {
  return {CommunicatorId(0), peer, Bytes(bytes)};
}

// Ranks 0 and 1 with a role each, joined by the communicators "row" (0) and "depth" (1).
Schedule TwoRanks() {
  Schedule schedule;
  schedule.communicators.push_back(Communicator::Strided("row", {{2, 1}}, {}));
  schedule.communicators.push_back(Communicator::Strided("depth", {{2, 1}}, {}));
  AddRole(schedule, "first");
  AddRole(schedule, "second");
  schedule.role_of_rank = {0, 1};
  return schedule;
}

// ---- What ops say of themselves -----------------------------------------------------------------

TEST(ScheduleTest, AGemmCountsTwoFlopsForEachProduct) {
  const Gemm gemm{.m = 2, .n = 3, .k = 5, .mode = GemmMode::kNT, .batch = 7};
  EXPECT_EQ(FlopsOf(gemm), Flops(420));  // 2·2·3·5·7
  // (2·5 + 5·3 + 2·3)·7 = 217 elements.
  EXPECT_EQ(BytesOf(gemm, DType::kBf16), Bytes(434));
  EXPECT_EQ(BytesOf(gemm, DType::kFp64), Bytes(1736));
}

TEST(ScheduleTest, EveryNameIsWritten) {
  EXPECT_STREQ(Name(DType::kFp64), "fp64");
  EXPECT_STREQ(Name(DType::kFp16), "fp16");
  EXPECT_STREQ(Name(GemmMode::kTN), "TN");
  EXPECT_STREQ(Name(CollectiveKind::kAllReduce), "all-reduce");
  EXPECT_STREQ(Name(CollectiveKind::kReduce), "reduce");
  EXPECT_STREQ(Name(Phase::kForward), "forward");
  EXPECT_STREQ(Name(Phase::kUpdate), "update");
  EXPECT_THROW(Name(static_cast<DType>(99)), InternalError);
}

TEST(ScheduleTest, WorkDescribesItself) {
  const Schedule schedule = TwoRanks();
  Compute gemm;
  gemm.kind = ComputeKind::kGemm;
  gemm.gemm = {.m = 8192, .n = 7168, .k = 3584};
  EXPECT_EQ(Describe(schedule, gemm), "GEMM 8192x7168x3584 NN");
  gemm.gemm.batch = 4;
  EXPECT_EQ(Describe(schedule, gemm), "GEMM 8192x7168x3584 NN, batch of 4");
  Compute attention;
  attention.kind = ComputeKind::kAttention;
  attention.flops = Flops(1.5e12);
  EXPECT_EQ(Describe(schedule, attention), "attention of 1.5 TFLOP");
  Compute norm;
  norm.bytes = Bytes(2048);
  EXPECT_EQ(Describe(schedule, norm), "memory-bound work on 2 KiB");
  EXPECT_EQ(Describe(schedule, AllReduce(0, 176'160'768)), "all-reduce of 168 MiB on \"row\"");
  EXPECT_EQ(Describe(schedule, SendTo(1)), "send of 1 KiB to member 1 on \"row\"");
  EXPECT_EQ(Describe(schedule, ReceiveFrom(0)), "receive of 1 KiB from member 0 on \"row\"");
}

TEST(ScheduleTest, OnlyCommunicationHasACommunicatorAndBytes) {
  EXPECT_EQ(CommunicatorOf(AllReduce(1)), CommunicatorId(1));
  EXPECT_EQ(CommunicatorOf(SendTo(1)), CommunicatorId(0));
  EXPECT_FALSE(CommunicatorOf(Compute{}).IsSet());
  EXPECT_EQ(CommunicationBytes(ReceiveFrom(0, 7)), Bytes(7));
  Compute compute;
  compute.bytes = Bytes(7);
  EXPECT_EQ(CommunicationBytes(compute), Bytes(0));
}

// ---- Valid schedules ----------------------------------------------------------------------------

TEST(ScheduleCheckTest, RanksOfOneRoleAgree) {
  Schedule schedule;
  schedule.communicators.push_back(Communicator::Strided("row", {{2, 1}}, {{4, 2}}));
  schedule.communicators.push_back(Communicator::Strided("depth", {{4, 2}}, {{2, 1}}));
  AddRole(schedule, "gpu");
  schedule.role_of_rank.assign(8, 0);
  Role& role = schedule.roles[0];
  const OpId gather = AddOp(role, "all-gather w", kSide, AllGather(1));
  const OpId gemm = AddOp(role, "qkv", kMain, Compute{}, {gather});
  AddOp(role, "all-reduce y", kSide, AllReduce(0), {gemm});
  EXPECT_NO_THROW(CheckSchedule(schedule));
}

TEST(ScheduleCheckTest, AScheduleWithoutOpsOrRanksIsFine) {
  EXPECT_NO_THROW(CheckSchedule(Schedule{}));
  EXPECT_NO_THROW(CheckSchedule(TwoRanks()));
}

TEST(ScheduleCheckTest, AGroupOfOneNeedsNobody) {
  Schedule schedule;
  schedule.communicators.push_back(Communicator::Strided("data", {{1, 1}}, {{2, 1}}));
  AddRole(schedule, "a");
  AddRole(schedule, "b");
  schedule.role_of_rank = {0, 1};
  AddOp(schedule.roles[0], "all-reduce dw", kMain, AllReduce(0));  // b posts nothing
  EXPECT_NO_THROW(CheckSchedule(schedule));
}

Schedule OneHostCopy(CollectiveKind kind) {
  Schedule schedule;
  schedule.communicators.push_back(Communicator::Strided("host", {}, {{2, 1}}));
  AddRole(schedule, "gpu");
  schedule.role_of_rank = {0, 0};
  Role& role = schedule.roles[0];
  role.buffers = {{.name = "x"}, {.name = "x on the host", .on_host = true}};
  Collective copy;
  copy.kind = kind;
  copy.communicator = CommunicatorId(0);
  copy.bytes = Bytes(8);
  AddOp(role, "copy", kSide, copy);
  const bool stores = kind == CollectiveKind::kToHost;
  role.ops[0].reads = {BufferId(stores ? 0 : 1)};
  role.ops[0].writes = {BufferId(stores ? 1 : 0)};
  return schedule;
}

TEST(ScheduleCheckTest, HostCopiesGoBetweenADeviceAndItsHost) {
  for (const CollectiveKind kind : {CollectiveKind::kToHost, CollectiveKind::kFromHost}) {
    EXPECT_NO_THROW(CheckSchedule(OneHostCopy(kind)));
    Schedule wrong_way = OneHostCopy(kind);
    std::swap(wrong_way.roles[0].ops[0].reads, wrong_way.roles[0].ops[0].writes);
    EXPECT_THAT(
        [&] { CheckSchedule(wrong_way); },
        ThrowsMessage<Error>(HasSubstr(kind == CollectiveKind::kToHost
                                           ? "reads buffer \"x on the host\", expected one "
                                             "on the device"
                                           : "reads buffer \"x\", expected one on the host")));
    Schedule pair = OneHostCopy(kind);
    pair.communicators[0] = Communicator::Strided("pair", {{2, 1}}, {});
    EXPECT_THAT([&] { CheckSchedule(pair); },
                ThrowsMessage<Error>(HasSubstr("in groups of 2, expected of one")));
  }
  Schedule computes = OneHostCopy(CollectiveKind::kToHost);
  AddOp(computes.roles[0], "kernel", kMain, Compute{});
  computes.roles[0].ops.back().reads = {BufferId(1)};
  EXPECT_THAT(
      [&] { CheckSchedule(computes); },
      ThrowsMessage<Error>(HasSubstr("which is on the host: only host copies and work reach it")));
  auto& work = std::get<Compute>(computes.roles[0].ops.back().work);
  work.kind = ComputeKind::kHost;
  CheckSchedule(computes);
  computes.roles[0].ops.back().writes = {BufferId(0)};
  EXPECT_THAT([&] { CheckSchedule(computes); },
              ThrowsMessage<Error>(HasSubstr("writes buffer \"x\", expected one on the host")));
}

TEST(ScheduleCheckTest, APipelineOfSendsAndReceivesFinishes) {
  Schedule schedule = TwoRanks();
  for (int micro_batch = 0; micro_batch < 3; ++micro_batch) {
    AddOp(schedule.roles[0], "send y", kSide, SendTo(1));
    AddOp(schedule.roles[0], "receive dy", kMain, ReceiveFrom(1));
    AddOp(schedule.roles[1], "receive y", kMain, ReceiveFrom(0));
    AddOp(schedule.roles[1], "send dy", kMain, SendTo(0));
  }
  EXPECT_NO_THROW(CheckSchedule(schedule));
}

TEST(ScheduleCheckTest, StreamsLetRanksPostInDifferentOrder) {
  // On one stream each, these would wait for each other (see below).
  Schedule schedule = TwoRanks();
  AddOp(schedule.roles[0], "a", kMain, AllReduce(0));
  AddOp(schedule.roles[0], "b", kSide, AllReduce(1));
  AddOp(schedule.roles[1], "b", kMain, AllReduce(1));
  AddOp(schedule.roles[1], "a", kMain, AllReduce(0));
  EXPECT_NO_THROW(CheckSchedule(schedule));
}

TEST(ScheduleCheckTest, ACycleOfRolesThatIsNoneOfRanksFinishes) {
  // Roles A, B, B, C on ranks 0 to 3. Collective x joins {0,1} and {2,3}, so that x of A, B and C
  // are one node of the quotient; y joins {0,3}. A posts x, y and C posts y, x: x before y before x
  // in the quotient. But x of A meets another B than x of C: rank 0 does x with rank 1, then y with
  // rank 3, which then does x with rank 2.
  Schedule schedule;
  schedule.communicators.push_back(Communicator::Explicit("x", {{0, 1}, {2, 3}}));
  schedule.communicators.push_back(Communicator::Explicit("y", {{0, 3}}));
  for (const char* name : {"A", "B", "C"}) AddRole(schedule, name);
  schedule.role_of_rank = {0, 1, 1, 2};
  AddOp(schedule.roles[0], "x", kMain, AllReduce(0));
  AddOp(schedule.roles[0], "y", kMain, AllReduce(1));
  AddOp(schedule.roles[1], "x", kMain, AllReduce(0));
  AddOp(schedule.roles[2], "y", kMain, AllReduce(1));
  AddOp(schedule.roles[2], "x", kMain, AllReduce(0));
  EXPECT_NO_THROW(CheckSchedule(schedule));
}

TEST(ScheduleCheckTest, AHundredThousandRanksOfOneRoleCostLittle) {
  // 131,072 ranks as 8 x 16 x 1,024, 3,000 ops: ranks x ops would be 4e8 steps of work.
  Schedule schedule;
  schedule.communicators.push_back(Communicator::Strided("row", {{8, 1}}, {{16, 8}, {1024, 128}}));
  schedule.communicators.push_back(Communicator::Strided("data", {{1024, 128}}, {{8, 1}, {16, 8}}));
  AddRole(schedule, "gpu");
  schedule.role_of_rank.assign(131'072, 0);
  for (int i = 0; i < 1000; ++i) {
    AddOp(schedule.roles[0], "gemm", kMain, Compute{});
    AddOp(schedule.roles[0], "all-reduce", kSide, AllReduce(0));
    AddOp(schedule.roles[0], "all-gather", kMain, AllGather(1));
  }
  EXPECT_NO_THROW(CheckSchedule(schedule));
}

// ---- Names that do not exist --------------------------------------------------------------------

TEST(ScheduleCheckTest, ARoleThatDoesNotExistIsAnError) {
  Schedule schedule = TwoRanks();
  schedule.role_of_rank = {0, 2};
  EXPECT_THAT([&] { CheckSchedule(schedule); },
              ThrowsMessage<Error>(StrEq("rank 1 has role 2, but there are 2")));
}

TEST(ScheduleCheckTest, AStreamThatDoesNotExistIsAnError) {
  Schedule schedule = TwoRanks();
  AddOp(schedule.roles[0], "qkv", StreamId(7), Compute{});
  EXPECT_THAT(
      [&] { CheckSchedule(schedule); },
      ThrowsMessage<Error>(StrEq("role \"first\": op 0 \"qkv\" is on stream 7, but there are 2")));
  schedule.roles[0].ops[0].stream = StreamId();
  EXPECT_THAT([&] { CheckSchedule(schedule); },
              ThrowsMessage<Error>(HasSubstr("is on stream that is not set")));
}

TEST(ScheduleCheckTest, ABufferThatDoesNotExistIsAnError) {
  Schedule schedule = TwoRanks();
  AddOp(schedule.roles[0], "qkv", kMain, Compute{});
  schedule.roles[0].ops[0].reads = {BufferId(0)};
  EXPECT_THAT([&] { CheckSchedule(schedule); }, ThrowsMessage<Error>(HasSubstr("reads buffer 0")));
  schedule.roles[0].ops[0].reads.clear();
  schedule.roles[0].ops[0].writes = {BufferId(3)};
  EXPECT_THAT([&] { CheckSchedule(schedule); }, ThrowsMessage<Error>(HasSubstr("writes buffer 3")));
}

TEST(ScheduleCheckTest, ACommunicatorThatDoesNotExistIsAnError) {
  Schedule schedule = TwoRanks();
  AddOp(schedule.roles[0], "all-reduce y", kMain, AllReduce(2));
  EXPECT_THAT([&] { CheckSchedule(schedule); },
              ThrowsMessage<Error>(HasSubstr("is on communicator 2, but there are 2")));
}

TEST(ScheduleCheckTest, AfterNamesEarlierOpsOnly) {
  Schedule schedule = TwoRanks();
  AddOp(schedule.roles[0], "a", kMain, Compute{}, {OpId(1)});
  AddOp(schedule.roles[0], "b", kMain, Compute{});
  EXPECT_THAT(
      [&] { CheckSchedule(schedule); },
      ThrowsMessage<Error>(StrEq(
          "role \"first\": op 0 \"a\" is after op 1 \"b\", which is not earlier in the list")));
  schedule.roles[0].ops[0].after = {OpId(0)};
  EXPECT_THROW(CheckSchedule(schedule), Error);
  schedule.roles[0].ops[0].after = {OpId(2)};
  EXPECT_THAT([&] { CheckSchedule(schedule); },
              ThrowsMessage<Error>(HasSubstr("is after op 2, but there are 2")));
}

TEST(ScheduleCheckTest, APeerThatDoesNotExistIsAnError) {
  Schedule schedule = TwoRanks();
  AddOp(schedule.roles[0], "send y", kMain, SendTo(2));
  EXPECT_THAT([&] { CheckSchedule(schedule); },
              ThrowsMessage<Error>(HasSubstr("sends to member 2, but there are 2")));
}

TEST(ScheduleCheckTest, BytesAreANumber) {
  for (const double bytes :
       {-1.0, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    Schedule schedule = TwoRanks();
    AddOp(schedule.roles[0], "all-reduce y", kMain, AllReduce(0, bytes));
    EXPECT_THAT([&] { CheckSchedule(schedule); }, ThrowsMessage<Error>(HasSubstr("communicates")));
  }
}

TEST(ScheduleCheckTest, ARankInNoGroupMayNotPost) {
  Schedule schedule;
  schedule.communicators.push_back(Communicator::Explicit("pair", {{0, 1}}));
  AddRole(schedule, "gpu");
  schedule.role_of_rank = {0, 0, 0};
  AddOp(schedule.roles[0], "all-reduce y", kMain, AllReduce(0));
  EXPECT_THAT([&] { CheckSchedule(schedule); },
              ThrowsMessage<Error>(StrEq("rank 2 posts op 0 \"all-reduce y\" on communicator "
                                         "\"pair\", but is in none of its groups")));
}

TEST(ScheduleCheckTest, AMemberMustBeARankOfTheSchedule) {
  Schedule schedule = TwoRanks();
  schedule.communicators[0] = Communicator::Strided("row", {{4, 1}}, {});
  AddOp(schedule.roles[0], "all-reduce y", kMain, AllReduce(0));
  EXPECT_THAT(
      [&] { CheckSchedule(schedule); },
      ThrowsMessage<Error>(StrEq("communicator \"row\" has rank 2, but there are 2 ranks")));
}

// ---- Collectives that do not match --------------------------------------------------------------

TEST(ScheduleCheckTest, RanksThatDisagreeOnTheKindAreNamed) {
  Schedule schedule = TwoRanks();
  AddOp(schedule.roles[0], "qkv", kMain, Compute{});
  AddOp(schedule.roles[0], "all-reduce y", kMain, AllReduce(0, 16'777'216));
  AddOp(schedule.roles[1], "all-gather w", kMain, AllGather(0, 16'777'216));
  EXPECT_THAT(
      [&] { CheckSchedule(schedule); },
      ThrowsMessage<Error>(
          StrEq("ranks 0 and 1 disagree on communicator \"row\": op 1 \"all-reduce y\" (all-reduce "
                "of 16 MiB) meets op 0 \"all-gather w\" (all-gather of 16 MiB)")));
}

TEST(ScheduleCheckTest, RanksThatDisagreeOnTheSizeAreNamed) {
  Schedule schedule = TwoRanks();
  AddOp(schedule.roles[0], "all-reduce y", kMain, AllReduce(0, 16'777'216));
  AddOp(schedule.roles[1], "all-reduce y", kMain, AllReduce(0, 16'777'217));
  // Rounded, both are 16 MiB.
  EXPECT_THAT([&] { CheckSchedule(schedule); },
              ThrowsMessage<Error>(AllOf(HasSubstr("(all-reduce of 16777216 B)"),
                                         HasSubstr("(all-reduce of 16777217 B)"))));
}

TEST(ScheduleCheckTest, RanksThatDisagreeOnTheAlgorithmAreNamed) {
  Schedule schedule = TwoRanks();
  Collective tree = AllReduce(0);
  tree.algorithm = AlgorithmId::kTree;
  AddOp(schedule.roles[0], "all-reduce y", kMain, AllReduce(0));
  AddOp(schedule.roles[1], "all-reduce y", kMain, tree);
  EXPECT_THAT([&] { CheckSchedule(schedule); },
              ThrowsMessage<Error>(AllOf(HasSubstr("1 KiB by ring"), HasSubstr("1 KiB by tree"))));
}

TEST(ScheduleCheckTest, RanksThatDisagreeOnTheRootAreNamed) {
  Schedule schedule = TwoRanks();
  Collective broadcast = AllReduce(0);
  broadcast.kind = CollectiveKind::kBroadcast;
  AddOp(schedule.roles[0], "broadcast x", kMain, broadcast);
  broadcast.root = 1;
  AddOp(schedule.roles[1], "broadcast x", kMain, broadcast);
  EXPECT_THAT([&] { CheckSchedule(schedule); },
              ThrowsMessage<Error>(AllOf(HasSubstr("with root 0"), HasSubstr("with root 1"))));
}

// What CheckSchedule says when both ranks post this.
std::string MistakeOf(const Collective& collective) {
  Schedule schedule = TwoRanks();
  AddOp(schedule.roles[0], "op", kMain, collective);
  AddOp(schedule.roles[1], "op", kMain, collective);
  try {
    CheckSchedule(schedule);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(ScheduleCheckTest, ARootIsAMember) {
  Collective reduce = AllReduce(0);
  reduce.kind = CollectiveKind::kReduce;
  reduce.root = 1;
  EXPECT_EQ(MistakeOf(reduce), "");
  reduce.root = 2;
  EXPECT_THAT(MistakeOf(reduce), HasSubstr("has member 2 as its root, but there are 2"));
}

TEST(ScheduleCheckTest, ABarrierHasNoBytes) {
  Collective barrier = AllReduce(0, 0);
  barrier.kind = CollectiveKind::kBarrier;
  EXPECT_EQ(MistakeOf(barrier), "");
  barrier.bytes = Bytes(8);
  EXPECT_THAT(MistakeOf(barrier), HasSubstr("expected no bytes"));
}

TEST(ScheduleCheckTest, SizesOfPairsAreOneForEachAndAgreeWithTheBytes) {
  Collective exchange = AllReduce(0, 5);
  exchange.kind = CollectiveKind::kAllToAll;
  exchange.pair_bytes = {Bytes(1), Bytes(4), Bytes(2), Bytes(0)};  // rows of 5 and 2
  EXPECT_EQ(MistakeOf(exchange), "");
  exchange.bytes = Bytes(7);
  EXPECT_THAT(MistakeOf(exchange), HasSubstr("its largest send buffer has 5"));
  exchange.pair_bytes[1] = Bytes(-4);
  EXPECT_THAT(MistakeOf(exchange), HasSubstr("sends -4 bytes from member 0 to 1"));
  exchange.pair_bytes.pop_back();
  EXPECT_THAT(MistakeOf(exchange), HasSubstr("sizes for 3 pairs, expected 4"));
  exchange.kind = CollectiveKind::kAllReduce;
  EXPECT_THAT(MistakeOf(exchange), HasSubstr("only all-to-alls"));
}

TEST(ScheduleCheckTest, RanksThatDisagreeOnTheOrderAreNamed) {
  Schedule schedule = TwoRanks();
  AddOp(schedule.roles[0], "one", kMain, AllReduce(0, 1024));
  AddOp(schedule.roles[0], "two", kMain, AllReduce(0, 2048));
  AddOp(schedule.roles[1], "two", kMain, AllReduce(0, 2048));
  AddOp(schedule.roles[1], "one", kMain, AllReduce(0, 1024));
  EXPECT_THAT(
      [&] { CheckSchedule(schedule); },
      ThrowsMessage<Error>(HasSubstr("op 0 \"one\" (all-reduce of 1 KiB) meets op 0 \"two\"")));
}

TEST(ScheduleCheckTest, ARankThatPostsMoreIsNamed) {
  Schedule schedule = TwoRanks();
  AddOp(schedule.roles[0], "all-reduce y", kMain, AllReduce(0));
  AddOp(schedule.roles[1], "all-reduce y", kMain, AllReduce(0));
  AddOp(schedule.roles[1], "all-reduce z", kMain, AllReduce(0));
  EXPECT_THAT(
      [&] { CheckSchedule(schedule); },
      ThrowsMessage<Error>(StrEq(
          "ranks 0 and 1 disagree on communicator \"row\": op 1 \"all-reduce z\" (all-reduce "
          "of 1 KiB) of rank 1 meets nothing, because rank 0 posts only 1 collectives there")));
}

TEST(ScheduleCheckTest, AMismatchInALaterGroupIsFound) {
  // Groups {0,1} and {2,3}; only rank 3 has the deviating role.
  Schedule schedule;
  schedule.communicators.push_back(Communicator::Strided("row", {{2, 1}}, {{2, 2}}));
  AddRole(schedule, "most");
  AddRole(schedule, "odd");
  schedule.role_of_rank = {0, 0, 0, 1};
  AddOp(schedule.roles[0], "y", kMain, AllReduce(0, 1024));
  AddOp(schedule.roles[1], "y", kMain, AllReduce(0, 4096));
  EXPECT_THAT([&] { CheckSchedule(schedule); },
              ThrowsMessage<Error>(HasSubstr("ranks 2 and 3 disagree")));
}

// ---- Sends and receives that do not pair --------------------------------------------------------

TEST(ScheduleCheckTest, ASendWithoutReceiveIsNamed) {
  Schedule schedule = TwoRanks();
  AddOp(schedule.roles[0], "send y", kMain, SendTo(1));
  EXPECT_THAT(
      [&] { CheckSchedule(schedule); },
      ThrowsMessage<Error>(StrEq("ranks 0 and 1 disagree on communicator \"row\": op 0 \"send "
                                 "y\" (send of 1 KiB) of rank 0 meets no receive")));
}

TEST(ScheduleCheckTest, AReceiveWithoutSendIsNamed) {
  Schedule schedule = TwoRanks();
  AddOp(schedule.roles[0], "receive y", kMain, ReceiveFrom(1));
  EXPECT_THAT([&] { CheckSchedule(schedule); },
              ThrowsMessage<Error>(
                  EndsWith("op 0 \"receive y\" (receive of 1 KiB) of rank 0 meets no send")));
}

TEST(ScheduleCheckTest, ASendAndReceiveOfDifferentSizeAreNamed) {
  Schedule schedule = TwoRanks();
  AddOp(schedule.roles[0], "send y", kMain, SendTo(1, 1024));
  AddOp(schedule.roles[1], "receive y", kMain, ReceiveFrom(0, 2048));
  EXPECT_THAT(
      [&] { CheckSchedule(schedule); },
      ThrowsMessage<Error>(EndsWith("op 0 \"send y\" (send of 1 KiB) meets op 0 \"receive y\" "
                                    "(receive of 2 KiB)")));
}

// ---- Schedules that never finish ----------------------------------------------------------------

TEST(ScheduleCheckTest, TwoRanksThatWaitForEachOtherAreNamed) {
  Schedule schedule = TwoRanks();
  AddOp(schedule.roles[0], "all-reduce qkv", kMain, AllReduce(0));
  AddOp(schedule.roles[0], "all-gather up", kMain, AllGather(1));
  AddOp(schedule.roles[1], "all-gather up", kMain, AllGather(1));
  AddOp(schedule.roles[1], "all-reduce qkv", kMain, AllReduce(0));
  EXPECT_THAT([&] { CheckSchedule(schedule); },
              ThrowsMessage<Error>(
                  StrEq("schedule never finishes: rank 0 (role \"first\") waits in "
                        "\"all-reduce qkv\" (row) for rank 1 (role \"second\"), which waits "
                        "in \"all-gather up\" (depth) for rank 0")));
}

TEST(ScheduleCheckTest, ACycleThroughAfterIsFound) {
  // Rank 0: b on the side stream waits for a. Rank 1: a (main) waits for b (side).
  Schedule schedule = TwoRanks();
  const OpId a = AddOp(schedule.roles[0], "a", kMain, AllReduce(0));
  AddOp(schedule.roles[0], "b", kSide, AllReduce(1), {a});
  const OpId b = AddOp(schedule.roles[1], "b", kSide, AllReduce(1));
  AddOp(schedule.roles[1], "a", kMain, AllReduce(0), {b});
  EXPECT_THAT([&] { CheckSchedule(schedule); },
              ThrowsMessage<Error>(
                  AllOf(HasSubstr("waits in \"a\" (row)"), HasSubstr("waits in \"b\" (depth)"))));
}

TEST(ScheduleCheckTest, TwoSendsThatMeetHeadOnNeverFinish) {
  Schedule schedule = TwoRanks();
  AddOp(schedule.roles[0], "send right", kMain, SendTo(1));
  AddOp(schedule.roles[0], "receive left", kMain, ReceiveFrom(1));
  AddOp(schedule.roles[1], "send left", kMain, SendTo(0));
  AddOp(schedule.roles[1], "receive right", kMain, ReceiveFrom(0));
  EXPECT_THAT([&] { CheckSchedule(schedule); },
              ThrowsMessage<Error>(AllOf(HasSubstr("\"send right\""), HasSubstr("\"send left\""))));
}

TEST(ScheduleCheckTest, ASendToOneselfNeedsASecondStream) {
  Schedule schedule;
  schedule.communicators.push_back(Communicator::Strided("self", {{1, 1}}, {}));
  AddRole(schedule, "gpu");
  schedule.role_of_rank = {0};
  AddOp(schedule.roles[0], "send", kMain, SendTo(0));
  AddOp(schedule.roles[0], "receive", kMain, ReceiveFrom(0));
  EXPECT_THAT([&] { CheckSchedule(schedule); },
              ThrowsMessage<Error>(
                  StrEq("schedule never finishes: rank 0 waits in \"send\" (self) for rank 0")));
  schedule.roles[0].ops[1].stream = kSide;
  EXPECT_NO_THROW(CheckSchedule(schedule));
}

TEST(ScheduleCheckTest, ALongCycleIsCutShort) {
  // Eight ranks in a ring, each sends to the right before it receives from the left.
  Schedule schedule;
  schedule.communicators.push_back(Communicator::Strided("ring", {{8, 1}}, {}));
  for (uint32_t rank = 0; rank < 8; ++rank) {
    Role& role = schedule.roles[AddRole(schedule, "r" + std::to_string(rank))];
    AddOp(role, "send", kMain, SendTo((rank + 1) % 8));
    AddOp(role, "receive", kMain, ReceiveFrom((rank + 7) % 8));
    schedule.role_of_rank.push_back(rank);
  }
  EXPECT_THAT([&] { CheckSchedule(schedule); },
              ThrowsMessage<Error>(EndsWith("and so on through 8 waits back to rank 0")));
}

// The rule itself, without any cleverness: repeat until nothing changes.
bool FinishesByTheRule(const Schedule& schedule) {
  struct Post {
    uint32_t op;
    bool done = false;
  };
  std::vector<std::vector<Post>> ranks;
  for (const uint32_t role : schedule.role_of_rank) {
    ranks.emplace_back();
    for (uint32_t op = 0; op < schedule.roles[role].ops.size(); ++op) ranks.back().push_back({op});
  }
  const auto op_of = [&](uint32_t rank, uint32_t op) -> const Op& {
    return schedule.roles[schedule.role_of_rank[rank]].ops[op];
  };
  const auto is_ready = [&](uint32_t rank, uint32_t op) {
    for (uint32_t i = 0; i < op; ++i) {
      if (op_of(rank, i).stream == op_of(rank, op).stream && !ranks[rank][i].done) return false;
    }
    for (const OpId before : op_of(rank, op).after) {
      if (!ranks[rank][before.index()].done) return false;
    }
    return true;
  };
  // The k-th collective of a rank on a communicator.
  const auto kth = [&](uint32_t rank, CommunicatorId communicator, size_t k) {
    for (uint32_t op = 0;; ++op) {
      if (CommunicatorOf(op_of(rank, op).work) == communicator && k-- == 0) return op;
    }
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t rank = 0; rank < ranks.size(); ++rank) {
      std::map<CommunicatorId, size_t> counts;
      for (uint32_t op = 0; op < ranks[rank].size(); ++op) {
        const CommunicatorId id = CommunicatorOf(op_of(rank, op).work);
        const size_t k = id.IsSet() ? counts[id]++ : 0;
        if (ranks[rank][op].done || !is_ready(rank, op)) continue;
        bool all_ready = true;
        if (id.IsSet()) {
          const Communicator& communicator = schedule.communicators[id.index()];
          const uint32_t group = communicator.PositionOf(rank)->group;
          for (uint32_t member = 0; member < communicator.size(); ++member) {
            const uint32_t other = communicator.Rank(group, member);
            all_ready = all_ready && is_ready(other, kth(other, id, k));
          }
          for (uint32_t member = 0; all_ready && member < communicator.size(); ++member) {
            const uint32_t other = communicator.Rank(group, member);
            ranks[other][kth(other, id, k)].done = true;
          }
        } else {
          ranks[rank][op].done = true;
        }
        changed = changed || all_ready;
      }
    }
  }
  for (const auto& rank : ranks) {
    for (const Post& post : rank) {
      if (!post.done) return false;
    }
  }
  return true;
}

// Below `count`, evenly; RapidCheck's own ranges begin small.
uint32_t Below(size_t count) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(0u, static_cast<uint32_t>(count)));
}

RC_GTEST_PROP(ScheduleCheckTest, ScheduleIsRefusedExactlyWhenItNeverFinishes, ()) {
  // A 2 x 2 mesh with rows, columns and all; each role posts two collectives on each, in its own
  // order, on its own choice of streams, with its own `after`.
  Schedule schedule;
  schedule.communicators.push_back(Communicator::Strided("row", {{2, 1}}, {{2, 2}}));
  schedule.communicators.push_back(Communicator::Strided("column", {{2, 2}}, {{2, 1}}));
  schedule.communicators.push_back(Communicator::Explicit("cross", {{0, 3}, {1, 2}}));
  const uint32_t roles = 1 + Below(3);
  for (uint32_t r = 0; r < roles; ++r) {
    Role& role = schedule.roles[AddRole(schedule, "r" + std::to_string(r))];
    std::vector<uint32_t> order = {0, 0, 1, 1, 2, 2};
    while (!order.empty()) {
      const uint32_t next = Below(order.size());
      std::vector<OpId> after;
      if (!role.ops.empty() && Below(4) == 0) after.emplace_back(Below(role.ops.size()));
      AddOp(role, "c", Below(2) == 0 ? kMain : kSide, AllReduce(order[next]), after);
      order.erase(order.begin() + next);
    }
  }
  for (int rank = 0; rank < 4; ++rank) schedule.role_of_rank.push_back(Below(roles));

  bool accepted = true;
  std::string message;
  try {
    CheckSchedule(schedule);
  } catch (const Error& error) {
    accepted = false;
    message = error.what();
  }
  RC_CLASSIFY(accepted);
  RC_ASSERT(accepted == FinishesByTheRule(schedule));
  RC_ASSERT(accepted || message.find("never finishes") != std::string::npos);
}

}  // namespace schedule_check_test
}  // namespace rehearse
