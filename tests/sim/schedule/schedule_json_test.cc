#include "sim/schedule/schedule_json.h"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <rapidcheck/gtest.h>

#include "sim/base/error.h"
#include "sim/base/gzip.h"
#include "sim/base/json_document.h"
#include "sim/base/version.h"
#include "sim/schedule/schedule_check.h"
#include "tests/sim/same_schedule.h"
#include "tests/support/places.h"
#include "tests/support/temporary_folder.h"

namespace rehearse {
namespace schedule_json_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StrEq;
using ::testing::ThrowsMessage;

Schedule Read(const std::string& text) {
  const JsonDocument document = JsonDocument::FromText(text, "s.json");
  return ReadSchedule(document.Root());
}

// Reads what was written, finds it the same, and finds the same bytes when it is written again.
void ExpectRoundTrip(const Schedule& schedule) {
  const std::string text = WriteSchedule(schedule);
  const Schedule again = Read(text);
  ExpectSame(schedule, again);
  EXPECT_EQ(WriteSchedule(again), text);
  Schedule taken = again;
  EXPECT_EQ(WriteSchedule(std::move(taken)), text);
}

// A schedule of two ranks in a row with these ops, as a person would write it.
std::string WithOps(const std::string& ops) {
  return R"({
"schema": "rehearse.schedule.v1",
"ranks": 2,
"communicators": [{"name": "pair", "ranks": [0, 1]}],
"buffers": [{"name": "x", "kind": "buffer", "bytes": "8B"}],
"ops": [
)" + ops +
         "\n]}";
}

void ExpectMistake(const std::string& text, const std::string& message) {
  EXPECT_THAT([&] { Read(text); }, ThrowsMessage<Error>(StrEq(message)));
}

Op OpOf(const std::string& name, uint32_t stream, Work work, std::vector<OpId> after = {}) {
  Op op;
  op.name = name;
  op.stream = StreamId(stream);
  op.work = std::move(work);
  op.after = std::move(after);
  return op;
}

Compute Fixed(double seconds) {
  Compute compute;
  compute.kind = ComputeKind::kFixed;
  compute.duration = Seconds(seconds);
  return compute;
}

// Everything that sim/schedule/schedule.h has, each with a value other than the default.
Schedule Everything() {
  Schedule schedule;
  schedule.communicators = {Communicator::Strided("row", {{2, 2}}, {{2, 1}}),
                            Communicator::Explicit("odd", {{3, 1}, {0, 2}}),
                            Communicator::Explicit("odd", {{0, 1, 2, 3}}),  // a name twice
                            Communicator::Strided("alone", {}, {{4, 1}})};
  Role first;
  first.name = "first";
  first.streams = {{"compute", StreamKind::kCompute},
                   {"unused", StreamKind::kCommunication},
                   {"side", StreamKind::kCommunication}};
  first.regions = {
      {{8, {CommunicatorId(0)}}, {6, {CommunicatorId(1), CommunicatorId(3)}}, {}, {4, 2, 8, true}},
      {{8, {}}, {6, {}}, {CommunicatorId(0), CommunicatorId(2)}}};
  first.buffers = {{.name = "view of a later one",
                    .kind = BufferKind::kGradient,
                    .bytes = Bytes(0),
                    .dtype = DType::kFp32,
                    .rows = 1,
                    .columns = 2,
                    .region = 1,
                    .view = View{BufferId(1), 0, 4, {CommunicatorId(0)}, {CommunicatorId(1)}}},
                   {.name = "weight",
                    .kind = BufferKind::kParameter,
                    .bytes = Bytes(96),
                    .rows = 8,
                    .columns = 6,
                    .region = 0},
                   {.name = "padded",
                    .kind = BufferKind::kOptimizer,
                    .bytes = Bytes(100.25),
                    .dtype = DType::kFp64,
                    .rows = 4,
                    .columns = 3},
                   {.name = "only timed", .kind = BufferKind::kActivation, .bytes = Bytes(3e9)},
                   {.name = "only timed", .kind = BufferKind::kBuffer, .bytes = Bytes(1 << 20)}};

  Compute gemm;
  gemm.kind = ComputeKind::kGemm;
  gemm.kernel = Kernel::kGemm;
  gemm.dtype = DType::kTf32;
  gemm.gemm = {3, 5, 7, GemmMode::kTN, 11};
  gemm.flops = FlopsOf(gemm.gemm);
  gemm.bytes = BytesOf(gemm.gemm, gemm.dtype);
  gemm.tuned = GemmMode::kNT;
  Compute odd_gemm = gemm;  // counts differently from its sizes
  odd_gemm.flops = Flops(0);
  odd_gemm.bytes = Bytes(1.0 / 3);
  Compute attention;
  attention.kind = ComputeKind::kAttention;
  attention.kernel = Kernel::kAttention;
  attention.flops = Flops(1.25e13);
  attention.bytes = Bytes(77);
  attention.attributes = {128, -0.1, 1e-300, 2.5e17};
  Compute memory;
  memory.kind = ComputeKind::kMemory;
  memory.bytes = Bytes(1e15 + 0.125);
  memory.flops = Flops(12);
  memory.kernels = 3;
  memory.strided = 1e9 / 3;
  memory.strided_bytes = Bytes(2e9 / 3);
  Compute host;
  host.kind = ComputeKind::kHost;
  host.bytes = Bytes(12345.5);
  host.kernels = 0;
  first.ops = {OpOf("gemm", 0, gemm),
               OpOf("gemm", 0, odd_gemm),
               OpOf("attention", 0, attention, {OpId(0)}),
               OpOf("memory", 0, memory, {OpId(1), OpId(2)}),
               OpOf("host", 0, host),
               OpOf("", 0, Fixed(3e-3)),
               OpOf("fixed", 0, Fixed(1.0 / 3), {OpId(5)})};
  first.ops[0].reads = {BufferId(0), BufferId(2)};
  first.ops[1].writes = {BufferId(3), BufferId(4)};
  first.ops[2].tag = {Phase::kRecompute, 7, 2};

  Collective collective;
  collective.communicator = CommunicatorId(0);
  collective.bytes = Bytes(1000);
  collective.dtype = DType::kFp16;
  collective.reduction = Reduction::kMaximum;
  collective.algorithm = AlgorithmId::kTree;
  collective.protocol = Protocol::kLL128;
  first.ops.push_back(OpOf("collective", 2, collective));
  collective.kind = CollectiveKind::kBroadcast;
  collective.root = 1;
  first.ops.push_back(OpOf("collective", 0, collective));
  collective = {};
  collective.kind = CollectiveKind::kAllToAll;
  collective.communicator = CommunicatorId(1);
  collective.bytes = Bytes(1 << 20);
  collective.pair_bytes = {Bytes(0), Bytes(1 << 20), Bytes(0.5), Bytes(3)};
  first.ops.push_back(OpOf("collective", 2, collective));
  collective = {};
  collective.kind = CollectiveKind::kBarrier;
  collective.communicator = CommunicatorId(2);
  first.ops.push_back(OpOf("barrier", 2, collective));

  Role last = first;  // meets all collectives of the first
  last.name = "last";
  first.ops.push_back(OpOf("message", 2, Send{CommunicatorId(1), 1, Bytes(0)}));
  first.ops.push_back(OpOf("message", 2, Receive{CommunicatorId(1), 1, Bytes(12345)}));
  last.ops.push_back(OpOf("message", 2, Receive{CommunicatorId(1), 0, Bytes(0)}));
  last.ops.push_back(OpOf("message", 2, Send{CommunicatorId(1), 0, Bytes(12345)}));
  schedule.roles = {first, last};
  schedule.role_of_rank = {0, 1, 1, 0};  // groups of "odd" are (3, 1) and (0, 2)
  schedule.model_flops = Flops(1e18 / 3);
  schedule.hardware_flops = Flops(4e17);
  schedule.tokens = 4096.5;
  schedule.token_name = "images";
  return schedule;
}

TEST(ScheduleJsonTest, EverythingIsReadAsItWasWritten) { ExpectRoundTrip(Everything()); }

TEST(ScheduleJsonTest, RepeatsAreKept) {
  Schedule schedule;
  Role role;
  role.name = "all";
  role.streams = {{"compute", StreamKind::kCompute}};
  for (uint32_t i = 0; i < 6; ++i) {
    role.ops.push_back(OpOf("op", 0, Fixed(1e-3)));
    role.buffers.push_back({.name = "b", .kind = BufferKind::kBuffer, .bytes = Bytes(8)});
  }
  role.ops[2].reads = {BufferId(1)};
  role.repeats = {{1, 3, 4, 1, 2, 1}, {3, 5, 2, 2, 4, 2, 2}};
  schedule.roles = {role};
  schedule.role_of_rank = {0};
  ExpectRoundTrip(schedule);
  EXPECT_THAT(
      WriteSchedule(schedule),
      HasSubstr(R"({"begin": 1, "end": 3, "times": 4, "first_buffer": 1, "end_buffer": 2})"));
}

TEST(ScheduleJsonTest, TheTitleIsKept) {
  const Schedule schedule = Everything();
  const std::string text = WriteSchedule(schedule, {"a \"name\"", "für alle"});
  const JsonDocument document = JsonDocument::FromText(text, "s.json");
  const ScheduleTitle title = ReadScheduleTitle(document.Root());
  EXPECT_EQ(title.name, "a \"name\"");
  EXPECT_EQ(title.description, "für alle");
  EXPECT_TRUE(IsSchedule(document.value()));
}

TEST(ScheduleJsonTest, ManyRanksStaySmall) {
  Schedule schedule;
  Role role;
  role.streams = {{"compute", StreamKind::kCompute}};
  role.ops = {OpOf("op", 0, Fixed(1))};
  for (const char* name : {"a", "b", "c"}) {
    role.name = name;
    schedule.roles.push_back(role);
  }
  // Stages of 8 neighbours, 3 of them in turn, and then again: 4,200 times.
  constexpr uint32_t kRanks = 24 * 4200;
  for (uint32_t rank = 0; rank < kRanks; ++rank) schedule.role_of_rank.push_back(rank / 8 % 3);
  std::vector<uint32_t> even;
  for (uint32_t rank = 0; rank < kRanks; rank += 2) even.push_back(rank);
  schedule.communicators = {Communicator::Explicit("even", {even}),
                            Communicator::Strided("all", {{kRanks, 1}}, {})};
  const std::string text = WriteSchedule(schedule);
  EXPECT_LT(text.size(), 1000u);
  EXPECT_THAT(text, AllOf(HasSubstr(R"("role_of_rank": [["a", 8], ["b", 8], ["c", 8]])"),
                          HasSubstr(R"("groups": ["0-100798:2"])")));
  ExpectSame(schedule, Read(text));
}

TEST(ScheduleJsonTest, RolesThatDoNotTakeTurnsAreRuns) {
  Schedule schedule = Everything();
  schedule.communicators = {};
  for (Role& role : schedule.roles) {
    role.ops = {OpOf("op", 0, Fixed(1))};
    role.buffers = {};
    role.regions = {};
  }
  schedule.role_of_rank = {0, 0, 1, 0, 0};  // "0 0 1" fits into itself, but does not divide five
  EXPECT_THAT(WriteSchedule(schedule), HasSubstr(R"([["first", 2], ["last", 1], ["first", 2]])"));
  ExpectRoundTrip(schedule);
}

// Names that are empty, that others have, or that look like numbers; numbers with many digits.
RC_GTEST_PROP(ScheduleJsonTest, RandomSchedulesAreReadAsTheyWereWritten, ()) {
  const auto below = [](uint32_t n) { return *rc::gen::inRange<uint32_t>(0, n); };
  const auto name = [&] {
    return *rc::gen::element<std::string>("", "a", "b", "1", "compute", "x y", "\"", "\\", "\n",
                                          "\x7f", "\u00e9");
  };
  const auto number = [&] {
    const double value = *rc::gen::inRange<int64_t>(0, int64_t{1} << 52);
    return below(2) == 0 ? value / 1024 / 3 : value;
  };
  Schedule schedule;
  const uint32_t pairs = 1 + below(4);
  schedule.communicators = {Communicator::Strided(name(), {{2, 1}}, {{pairs, 2}}),
                            Communicator::Strided(name(), {{pairs, 2}}, {{2, 1}})};
  const uint32_t copies = 1 + below(2);
  Role role;
  for (uint32_t stream = 0; stream < 1 + below(3); ++stream)
    role.streams.push_back({name(), static_cast<StreamKind>(below(2))});
  for (uint32_t buffer = 0; buffer < below(4); ++buffer) {
    role.buffers.push_back({.name = name(),
                            .kind = static_cast<BufferKind>(below(5)),
                            .bytes = Bytes(number()),
                            .dtype = static_cast<DType>(below(5)),
                            .rows = below(3),
                            .columns = below(3)});
  }
  const auto streams = static_cast<uint32_t>(role.streams.size());
  for (uint32_t i = 0; i < below(12); ++i) {
    Work work;
    if (below(2) == 0) {
      Collective collective;
      collective.kind = static_cast<CollectiveKind>(below(7));
      collective.communicator = CommunicatorId(below(2));
      collective.bytes = Bytes(number());
      work = collective;
    } else {
      Compute compute;
      compute.kind = static_cast<ComputeKind>(below(4));
      compute.kernel = static_cast<Kernel>(below(20));
      if (compute.kind == ComputeKind::kGemm) compute.gemm = {below(9), below(9), below(9)};
      if (compute.kind == ComputeKind::kFixed) compute.duration = Seconds(number() * 1e-12);
      compute.flops = Flops(number());
      compute.bytes = Bytes(number());
      work = compute;
    }
    // After the one before, so that nothing races.
    std::vector<OpId> after;
    if (i > 0) after = {OpId(i - 1), OpId(below(i))};
    role.ops.push_back(OpOf(name(), below(streams), work, after));
    if (!role.buffers.empty())
      role.ops.back().writes = {BufferId(below(static_cast<uint32_t>(role.buffers.size())))};
  }
  for (uint32_t copy = 0; copy < copies; ++copy) schedule.roles.push_back(role);
  for (uint32_t rank = 0; rank < 2 * pairs; ++rank) schedule.role_of_rank.push_back(below(copies));
  ExpectRoundTrip(schedule);
  RC_ASSERT(!testing::Test::HasFailure());
}

// ---- by hand
// ---------------------------------------------------------------------------------------

TEST(ScheduleJsonTest, WhatAHandWriterLeavesOutIsImplied) {
  const Schedule schedule = Read(WithOps(R"(
    {"name": "a", "duration": "3ms"},
    {"name": "sum", "collective": "all-reduce", "communicator": "pair", "bytes": "64MiB",
     "after": "a"},
    {"name": "a", "duration": "2us"},
    {"name": "b", "gemm": {"m": 2, "n": 3, "k": 4}, "after": ["sum", "a", 0], "writes": "x"})"));
  ASSERT_EQ(schedule.roles.size(), 1u);
  const Role& role = schedule.roles[0];
  EXPECT_EQ(role.name, "all");
  EXPECT_EQ(schedule.role_of_rank, (std::vector<uint32_t>{0, 0}));
  ASSERT_EQ(role.streams.size(), 2u);
  EXPECT_EQ(role.streams[0].name, "compute");
  EXPECT_EQ(role.streams[1].name, "pair");
  EXPECT_EQ(role.streams[1].kind, StreamKind::kCommunication);
  EXPECT_EQ(role.ops[1].stream, StreamId(1));
  EXPECT_EQ(CommunicationBytes(role.ops[1].work), Bytes(64 << 20));
  // The nearest earlier "a" is op 2.
  EXPECT_EQ(role.ops[3].after, (std::vector<OpId>{OpId(1), OpId(2), OpId(0)}));
  const auto& gemm = std::get<Compute>(role.ops[3].work);
  EXPECT_EQ(gemm.flops, Flops(48));                // 2·2·3·4
  EXPECT_EQ(gemm.bytes, Bytes(2 * (8 + 12 + 6)));  // bf16: A 2×4, B 4×3, C 2×3
  ExpectRoundTrip(schedule);
}

TEST(ScheduleJsonTest, CommunicatorsAreGivenInThreeWays) {
  const Schedule schedule = Read(R"({"schema": "rehearse.schedule.v1", "ranks": 8, "ops": [],
    "communicators": [{"name": "all", "ranks": "all"}, {"name": "some", "ranks": "0-2,6"},
                      {"name": "halves", "groups": [[0, 1, 2, 3], "7,4-6"]},
                      {"name": "mesh", "mesh": {"members": [[2, 4]], "groups": [[4, 1]]}},
                      {"name": "far", "ranks": "1-7:3"},
                      {"name": "one", "mesh": {"members": [[1, 1]], "groups": [[8, 1]]}},
                      {"name": "last", "mesh": {"members": [[8, 1]], "groups": [[1, 8]]}}]})");
  const auto group = [&](size_t communicator, uint32_t which) {
    std::vector<uint32_t> ranks;
    const Communicator& of = schedule.communicators[communicator];
    for (uint32_t member = 0; member < of.size(); ++member) ranks.push_back(of.Rank(which, member));
    return ranks;
  };
  EXPECT_EQ(group(0, 0), (std::vector<uint32_t>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(group(1, 0), (std::vector<uint32_t>{0, 1, 2, 6}));
  EXPECT_EQ(group(2, 1), (std::vector<uint32_t>{7, 4, 5, 6}));
  EXPECT_EQ(group(3, 1), (std::vector<uint32_t>{1, 5}));
  EXPECT_EQ(group(4, 0), (std::vector<uint32_t>{1, 4, 7}));
  EXPECT_EQ(group(5, 6), (std::vector<uint32_t>{6}));
  EXPECT_EQ(group(6, 0).size(), 8u);
}

TEST(ScheduleJsonTest, EveryShippedScheduleIsValid) {
  size_t count = 0;
  const std::filesystem::path folder =
      std::filesystem::path(SourceDir()) / "scenarios" / "schedules";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".json") continue;
    SCOPED_TRACE(entry.path());
    const JsonDocument document = JsonDocument::FromFile(entry.path().string());
    EXPECT_EQ(ReadScheduleTitle(document.Root()).name, entry.path().stem().string());
    ExpectRoundTrip(ReadSchedule(document.Root()));
    ++count;
  }
  EXPECT_GE(count, 2u);
}

// The example of the README is the shipped file, of at most 25 lines.
TEST(ScheduleJsonTest, TheExampleOfTheReadmeIsShipped) {
  const auto text_of = [](const std::string& path) {
    std::ifstream file(SourceDir() + path);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  };
  const std::string example = text_of("/scenarios/schedules/two-ranks.json");
  EXPECT_LE(std::count(example.begin(), example.end(), '\n'), 25);
  EXPECT_THAT(text_of("/sim/schedule/README.md"), HasSubstr("```json\n" + example + "```"));
  EXPECT_EQ(Read(example).roles[0].ops.size(), 6u);
}

TEST(ScheduleJsonTest, GzippedFilesAreRead) {
  const Schedule schedule = Everything();
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "step.schedule.json.gz";
  const std::string bytes = Gzip(WriteSchedule(schedule));
  std::ofstream(path, std::ios::binary) << bytes;
  ExpectSame(schedule, ReadSchedule(JsonDocument::FromFile(path.string()).Root()));

  std::ofstream(path, std::ios::binary) << bytes.substr(0, bytes.size() / 2);
  EXPECT_THAT([&] { JsonDocument::FromFile(path.string()); },
              ThrowsMessage<Error>(AllOf(HasSubstr(path.string()), HasSubstr("truncated"))));
}

// ---- mistakes
// --------------------------------------------------------------------------------------

TEST(ScheduleJsonMistakeTest, AnotherVersionIsRefusedByName) {
  const std::string text = R"({"schema": "rehearse.schedule.v2", "ranks": 1, "ops": []})";
  EXPECT_TRUE(IsSchedule(JsonDocument::FromText(text, "s.json").value()));
  ExpectMistake(text,
                fmt::format("s.json:1: /schema: found \"rehearse.schedule.v2\", which a newer "
                            "rehearse wrote; this one ({}) reads rehearse.schedule.v1",
                            Version()));
  EXPECT_FALSE(IsSchedule(JsonDocument::FromText(R"({"name": "x"})", "s.json").value()));
  EXPECT_FALSE(IsSchedule(JsonDocument::FromText("[]", "s.json").value()));
}

TEST(ScheduleJsonMistakeTest, OfStridedOperands) {
  const auto op = [](const std::string& keys) {
    return WithOps(R"({"name": "a", "compute": "memory", "bytes": "4KiB", )" + keys + "}");
  };
  ExpectMistake(op(R"("strided_bytes": "1KiB")"),
                "s.json:7: /ops/0/strided_bytes: only beside \"strided\", whose bytes they are");
  ExpectMistake(op(R"("strided": 8, "strided_bytes": "5KiB")"),
                "s.json:7: /ops/0/strided_bytes: found \"5KiB\", expected at most the kernel's "
                "bytes, 4KiB");
  EXPECT_NO_THROW(Read(op(R"("strided": 8, "strided_bytes": "4KiB")")));
}

TEST(ScheduleJsonMistakeTest, OfAnOrderOfNothing) {
  for (const char* key : {"sequence", "parts", "block"}) {
    nlohmann::json schedule = {{"schema", "rehearse.schedule.v1"}, {"ranks", 2}};
    schedule["ops"] = {{{"name", "a"}, {"duration", "4ms"}}};
    nlohmann::json& region = schedule["regions"].emplace_back();
    region = {{"rows", 8}, {"columns", 8}};
    region["order"] = {{"sequence", 8}, {"parts", 2}, {"block", 8}};
    EXPECT_NO_THROW(Read(schedule.dump()));
    region["order"][key] = 0;
    EXPECT_THAT([&] { Read(schedule.dump()); },
                ThrowsMessage<Error>(HasSubstr(fmt::format("/regions/0/order/{}: found 0", key))));
  }
}

TEST(ScheduleJsonMistakeTest, OfKeys) {
  ExpectMistake(WithOps(R"({"name": "a", "durration": "3ms"})"),
                "s.json:7: /ops/0: unknown key \"durration\"; did you mean \"duration\"?");
  ExpectMistake(WithOps(R"({"name": "a"})"),
                "s.json:7: /ops/0: does nothing: found none of the keys \"duration\", \"gemm\", "
                "\"compute\", \"collective\", \"send_to\" and \"receive_from\", expected one");
  ExpectMistake(WithOps(R"({"name": "a", "duration": "3ms", "send_to": 1})"),
                "s.json:7: /ops/0: found \"duration\" and \"send_to\", expected one thing that the "
                "op does");
  EXPECT_THAT([&] { Read(WithOps(R"({"name": "a", "duration": "3ms", "root": 1})")); },
              ThrowsMessage<Error>(HasSubstr("s.json:7: /ops/0: unknown key \"root\"")));
  ExpectMistake(WithOps(R"({"duration": "3ms"})"), "s.json:7: /ops/0: missing key \"name\"");
  ExpectMistake(R"({"schema": "rehearse.schedule.v1", "ranks": 1})",
                "s.json:1: missing key \"ops\"");
  ExpectMistake(R"({"schema": "rehearse.schedule.v1", "ranks": 1, "ops": [], "roles": []})",
                "s.json:1: /ops: found \"ops\" beside \"roles\", expected it in one of the roles");
  EXPECT_THAT([] { Read(R"({"schema": "rehearse.schedule.v1", "rank": 1})"); },
              ThrowsMessage<Error>(HasSubstr("unknown key \"rank\"; did you mean \"ranks\"?")));
}

TEST(ScheduleJsonMistakeTest, OfHowACollectiveRuns) {
  const auto op = [](const std::string& how) {
    return WithOps(R"({"name": "sum", "collective": "all-reduce", "communicator": "pair",
                       "bytes": "8B", )" +
                   how + "}");
  };
  EXPECT_THAT([&] { Read(op(R"("algorithm": "rign")")); },
              ThrowsMessage<Error>(HasSubstr(
                  "/ops/0/algorithm: unknown algorithm \"rign\"; did you mean \"ring\"?")));
  EXPECT_THAT([&] { Read(op(R"("protocol": "ll12")")); },
              ThrowsMessage<Error>(HasSubstr("/ops/0/protocol: unknown protocol \"ll12\"")));
}

TEST(ScheduleJsonMistakeTest, OfUnits) {
  ExpectMistake(
      WithOps(R"({"name": "a", "duration": 3})"),
      "s.json:7: /ops/0/duration: found 3, expected a time with its unit such as \"1.5us\"");
  ExpectMistake(WithOps(R"({"name": "a", "collective": "all-reduce", "communicator": "pair",
                            "bytes": 5})"),
                "s.json:8: /ops/0/bytes: found 5, expected a size with its unit such as \"40GiB\"");
  ExpectMistake(
      WithOps(R"({"name": "a", "compute": "attention", "flops": "5TFLOPS"})"),
      "s.json:7: /ops/0/flops: found \"5TFLOPS\", expected a number of operations with its "
      "unit such as \"1.5TFLOP\"; did you mean \"TFLOP\"?");
  EXPECT_THAT([&] { Read(WithOps(R"({"name": "a", "compute": "memory"})")); },
              ThrowsMessage<Error>(StrEq("s.json:7: /ops/0: missing key \"bytes\"")));
}

TEST(ScheduleJsonMistakeTest, OfNames) {
  ExpectMistake(
      WithOps(R"({"name": "forward", "duration": "3ms"},
                           {"name": "b", "duration": "3ms", "after": "forwrad"})"),
      "s.json:8: /ops/1/after: found \"forwrad\", expected the name of an earlier op; did "
      "you mean \"forward\"?");
  ExpectMistake(WithOps(R"({"name": "a", "duration": "3ms", "after": ["b"]},
                           {"name": "b", "duration": "3ms"})"),
                "s.json:7: /ops/0/after/0: nothing can be named here: there is no earlier op");
  ExpectMistake(WithOps(R"({"name": "a", "duration": "3ms"},
                           {"name": "b", "duration": "3ms", "after": 1})"),
                "s.json:8: /ops/1/after: found 1, expected a whole number from 0 to 0");
  ExpectMistake(
      WithOps(R"({"name": "a", "collective": "barrier", "communicator": "pear"})"),
      "s.json:7: /ops/0/communicator: found \"pear\", expected the name of a communicator; "
      "known is pair");
  ExpectMistake(WithOps(R"({"name": "a", "duration": "1s", "reads": [true]})"),
                "s.json:7: /ops/0/reads/0: found true, expected the name of a buffer, or its place "
                "in the list");
  ExpectMistake(WithOps(R"({"name": "a", "collective": "allreduce", "communicator": "pair"})"),
                "s.json:7: /ops/0/collective: found \"allreduce\"; did you mean \"all-reduce\"? "
                "Expected \"all-reduce\", \"all-gather\", \"reduce-scatter\", \"all-to-all\", "
                "\"broadcast\", \"reduce\", \"send-receive\", \"barrier\", \"to-host\" or "
                "\"from-host\"");
  ExpectMistake(R"({"schema": "rehearse.schedule.v1", "ranks": 1,
    "streams": [{"name": "a", "kind": "compute"}, {"name": "a", "kind": "compute"}],
    "ops": [{"name": "x", "duration": "1s", "stream": "a"}]})",
                "s.json:3: /ops/0/stream: found \"a\", but 2 streams have this name; expected the "
                "place in the list: 0 or 1");
}

std::string WithCommunicator(const std::string& communicator) {
  return R"({"schema": "rehearse.schedule.v1", "ranks": 4, "ops": [], "communicators": [)" +
         communicator + "]}";
}

TEST(ScheduleJsonMistakeTest, OfCommunicators) {
  ExpectMistake(WithCommunicator(R"({"name": "a"})"),
                "s.json:1: /communicators/0: found none of the keys \"ranks\", \"groups\" and "
                "\"mesh\", expected one");
  ExpectMistake(
      WithCommunicator(R"({"name": "a", "ranks": "0-4"})"),
      "s.json:1: /communicators/0/ranks: found \"0-4\", expected ranks from 0 to 3 such as "
      "\"0-3,8,16-64:8\"");
  ExpectMistake(WithCommunicator(R"({"name": "a", "ranks": [0, 4]})"),
                "s.json:1: /communicators/0/ranks/1: found 4, expected a whole number from 0 to 3");
  ExpectMistake(WithCommunicator(R"({"name": "a", "groups": ["0-1", "1-2"]})"),
                "s.json:1: /communicators/0/groups/1: found rank 1 for the second time");
  ExpectMistake(
      WithCommunicator(R"({"name": "a", "groups": ["0-1", [2]]})"),
      "s.json:1: /communicators/0/groups/1: found a group of 1 ranks, expected 2 as in the "
      "first group");
  ExpectMistake(WithCommunicator(R"({"name": "a", "mesh": {"members": [[2, 3]], "groups": []}})"),
                "s.json:1: /communicators/0/mesh: the axes do not form a mesh: found a stride of "
                "3, expected 1, the product of the extents of smaller strides");
  ExpectMistake(WithCommunicator(R"({"name": "a", "mesh": {"members": [[8, 1]], "groups": []}})"),
                "s.json:1: /communicators/0/mesh: the mesh has at least 8 ranks, but there are 4");
}

TEST(ScheduleJsonMistakeTest, OfRoles) {
  const auto with = [](const std::string& runs) {
    return R"({"schema": "rehearse.schedule.v1", "ranks": 4, )" + runs +
           R"("roles": [{"name": "a", "ops": []}, {"name": "b", "ops": []}]})";
  };
  ExpectMistake(with(""), "s.json:1: missing key \"role_of_rank\": there is more than one role");
  ExpectMistake(
      with(R"("role_of_rank": [["a", 2], ["last", 2]], )"),
      "s.json:1: /role_of_rank/1/0: found \"last\", expected the name of a role; known are "
      "a and b");
  ExpectMistake(with(R"("role_of_rank": [["a", 2], ["b", 1]], )"),
                "s.json:1: /role_of_rank: found runs of 3 ranks, expected all 4 ranks or a divisor "
                "of them");
}

// What the checks find is reported with the file, the line and the op.
TEST(ScheduleJsonMistakeTest, OfTheScheduleAsAWhole) {
  ExpectMistake(
      WithOps(R"({"name": "a", "collective": "broadcast", "communicator": "pair",
                            "bytes": "5B", "root": 2})"),
      "s.json:7: /ops/0: role \"all\": op 0 \"a\" has member 2 as its root, but there are "
      "2");
  ExpectMistake(WithOps(R"({"name": "a", "duration": "1s", "writes": "x"},
                           {"name": "b", "duration": "1s", "stream": "side", "reads": "x"})"),
                "s.json:8: /ops/1: role \"all\": race on buffer \"x\": op 0 \"a\" (stream "
                "\"compute\") writes it and op 1 \"b\" (stream \"side\") reads it, and neither is "
                "ordered before the other");
  const std::string two_roles = R"({"schema": "rehearse.schedule.v1", "ranks": 2,
    "role_of_rank": [["a", 1], ["b", 1]], "communicators": [{"name": "pair", "ranks": "all"}],
    "roles": [{"name": "a", "ops": [
      {"name": "go", "send_to": 1, "communicator": "pair", "bytes": "5B"}]},
      {"name": "b", "ops": [
      {"name": "come", "receive_from": 0, "communicator": "pair", "bytes": "6B"}]}]})";
  ExpectMistake(two_roles,
                "s.json:4: /roles/0/ops/0: ranks 0 and 1 disagree on communicator \"pair\": op 0 "
                "\"go\" (send of 5 B) meets op 0 \"come\" (receive of 6 B)");
}

TEST(ScheduleJsonMistakeTest, OfAWaitForEver) {
  EXPECT_THAT(
      [] {
        Read(R"({"schema": "rehearse.schedule.v1", "ranks": 2, "role_of_rank": [["a", 1], ["b", 1]],
      "communicators": [{"name": "x", "ranks": "all"}, {"name": "y", "ranks": "all"}],
      "roles": [{"name": "a", "ops": [
        {"name": "one", "collective": "barrier", "communicator": "x", "stream": "s"},
        {"name": "two", "collective": "barrier", "communicator": "y", "stream": "s"}]},
                {"name": "b", "ops": [
        {"name": "one", "collective": "barrier", "communicator": "y", "stream": "s"},
        {"name": "two", "collective": "barrier", "communicator": "x", "stream": "s"}]}]})");
      },
      ThrowsMessage<Error>(
          AllOf(HasSubstr("s.json:4: /roles/0/ops/0: "), HasSubstr("never finishes"))));
}

// Ranks that are no run of three stand one by one.
TEST(ScheduleJsonTest, RanksInARowAreRunsFromThreeOn) {
  Schedule schedule = Everything();
  schedule.communicators[1] = Communicator::Explicit("odd", {{0, 2}, {3, 1}});
  EXPECT_THAT(WriteSchedule(schedule), HasSubstr(R"(["0,2", "3,1"])"));
  schedule.communicators[1] = Communicator::Explicit("odd", {{0, 1, 2, 3}});
  EXPECT_THAT(WriteSchedule(schedule), HasSubstr(R"("0-3")"));
}

// A view that begins at the second column does so when it is read again.
TEST(ScheduleJsonTest, AViewOfTheSecondColumnIsKept) {
  for (const uint64_t column : {0u, 1u, 2u}) {
    Schedule schedule;
    Role role;
    role.name = "rank";
    role.streams = {{"compute", StreamKind::kCompute}};
    Buffer whole;
    whole.name = "whole";
    whole.kind = BufferKind::kActivation;
    whole.rows = 4;
    whole.columns = 4;
    whole.bytes = Bytes(4 * 4 * 2);
    Buffer part = whole;
    part.name = "part";
    part.columns = 1;
    part.bytes = Bytes(4 * 2);
    part.view = View{.of = BufferId(0), .row = 0, .column = column};
    role.buffers = {whole, part};
    role.ops = {OpOf("work", 0, Fixed(1))};
    schedule.roles = {role};
    schedule.role_of_rank = {0};
    ExpectRoundTrip(schedule);
  }
}

// The part of a buffer that a view is: of activations its own rows and columns, since they come and
// go; of what lives all step long the whole.
TEST(FootprintTest, AViewOfAnActivationIsItsPartAndOfAParameterTheWhole) {
  for (const BufferKind kind : {BufferKind::kActivation, BufferKind::kParameter}) {
    Buffer whole;
    whole.kind = kind;
    whole.rows = 8;
    whole.columns = 6;
    Buffer part = whole;
    part.rows = 2;
    part.columns = 3;
    part.view = View{.of = BufferId(0), .row = 4, .column = 1};
    const Footprint footprint = FootprintOf({whole, part}, BufferId(1));
    const bool is_part = kind == BufferKind::kActivation;
    EXPECT_EQ(footprint.row_begin, is_part ? 4u : 0u);
    EXPECT_EQ(footprint.row_end, is_part ? 6u : 8u);
    EXPECT_EQ(footprint.column_begin, is_part ? 1u : 0u);
    EXPECT_EQ(footprint.column_end, is_part ? 4u : 6u);
  }
}

// Pieces that reach a rank round a ring are told apart by how far they are turned, on any rank; but
// where rows that are counted from the first one lie among them depends on the rank.
TEST(FootprintTest, PiecesOfARingAreToldApart) {
  Buffer whole;
  whole.rows = 8;
  whole.columns = 6;
  const auto piece = [&](uint32_t turned, CommunicatorId ring) {
    Buffer part = whole;
    part.rows = 2;
    part.view = View{.of = BufferId(0), .rows_cut_by = {ring}, .rows_turned = turned};
    return FootprintOf({whole, part}, BufferId(1));
  };
  Buffer half = whole;
  half.rows = 4;
  half.view = View{.of = BufferId(0)};
  const Footprint all = FootprintOf({whole, half}, BufferId(0));
  const Footprint first_half = FootprintOf({whole, half}, BufferId(1));
  const CommunicatorId ring(0);
  for (uint32_t i = 0; i < 4; ++i) {
    EXPECT_TRUE(all.Covers(piece(i, ring)));
    EXPECT_FALSE(piece(i, ring).Covers(all));
    EXPECT_TRUE(piece(i, ring).Overlaps(first_half));
    EXPECT_FALSE(first_half.Covers(piece(i, ring)));
    EXPECT_FALSE(piece(i, ring).Covers(first_half));
    EXPECT_TRUE(piece(i, ring).Overlaps(piece(i, CommunicatorId(1))));
    EXPECT_FALSE(piece(i, ring).Covers(piece(i, CommunicatorId(1))));
    for (uint32_t j = 0; j < 4; ++j) {
      EXPECT_EQ(piece(i, ring).Overlaps(piece(j, ring)), i == j);
      EXPECT_EQ(piece(i, ring).Covers(piece(j, ring)), i == j);
    }
  }
}

TEST(ScheduleJsonTest, ATurnedViewNeedsACommunicator) {
  const auto with = [](const std::string& cut) {
    return R"({"schema": "rehearse.schedule.v1", "ranks": 2,
      "communicators": [{"name": "pair", "groups": [[0, 1]]}],
      "roles": [{"name": "r", "buffers": [
        {"name": "x", "kind": "buffer", "shape": [4, 2]},
        {"name": "y", "kind": "buffer", "shape": [2, 2],
         "view": {"of": "x", "rows_turned": 1)" +
           cut + R"(}}],
      "ops": [{"name": "a", "compute": "memory", "bytes": "8B", "writes": "y"}]}],
      "role_of_rank": [["r", 2]]})";
  };
  const Schedule schedule = Read(with(R"(, "rows_cut_by": "pair")"));
  EXPECT_EQ(schedule.roles[0].buffers[1].view->rows_turned, 1u);
  ExpectRoundTrip(schedule);
  CheckSchedule(schedule);
  EXPECT_THAT([&] { Read(with("")); }, ThrowsMessage<Error>(HasSubstr("rows_turned")));
  Schedule turned = schedule;
  turned.roles[0].buffers[1].view->rows_turned = 2;
  EXPECT_THAT([&] { CheckSchedule(turned); },
              ThrowsMessage<Error>(HasSubstr("turned by 2 of 2 pieces")));
}

TEST(ScheduleJsonTest, PartsOfAKernelThatNobodyCouldCountAreRefused) {
  Schedule schedule;
  schedule.role_of_rank = {0};
  schedule.roles.resize(1);
  Op op = OpOf("product", 0, Fixed(1));
  Compute part;
  part.kind = ComputeKind::kGemm;
  part.gemm = {uint64_t{1} << 40, 8, 8, GemmMode::kNN, 1};
  part.row_parts = 1u << 20;
  op.work = part;
  schedule.roles[0].streams = {{"compute", StreamKind::kCompute}};
  schedule.roles[0].ops = {op};
  CheckSchedule(schedule);
  std::get<Compute>(schedule.roles[0].ops[0].work).row_parts = 1u << 30;
  EXPECT_THAT([&] { CheckSchedule(schedule); }, ThrowsMessage<Error>(HasSubstr("be counted")));
}

// Buffers that are new each time have a first and a last one.
TEST(ScheduleJsonTest, BuffersOfARepeatNeedBothEnds) {
  const auto with = [](const std::string& buffers) {
    return R"({"schema": "rehearse.schedule.v1", "ranks": 1, "roles": [{"name": "r",
      "buffers": [{"name": "x", "kind": "buffer", "bytes": "8B"}],
      "repeats": [{"begin": 0, "end": 1, "times": 2)" +
           buffers + R"(}],
      "ops": [{"name": "a", "compute": "memory", "bytes": "8B", "writes": "x"}]}],
      "role_of_rank": [["r", 1]]})";
  };
  const Schedule schedule = Read(with(R"(, "first_buffer": 0, "end_buffer": 1)"));
  EXPECT_EQ(schedule.roles[0].repeats[0].end_buffer, 1u);
  EXPECT_EQ(Read(with("")).roles[0].repeats[0].end_buffer, 0u);
  EXPECT_THAT([&] { Read(with(R"(, "end_buffer": 1)")); },
              ThrowsMessage<Error>(HasSubstr("first_buffer")));
  EXPECT_THAT([&] { Read(with(R"(, "first_buffer": 0)")); },
              ThrowsMessage<Error>(HasSubstr("end_buffer")));
}

}  // namespace schedule_json_test
}  // namespace rehearse
