// Exports of Nsight Systems, as it could have written them, whole and wrong.
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "sim/base/error.h"
#include "sim/base/json_document.h"
#include "sim/base/json_reader.h"
#include "sim/base/sqlite_connection.h"
#include "sim/report/timeline_record.h"
#include "sim/schedule/schedule_json.h"
#include "tools/foreign/traces/kineto/kineto_read.h"
#include "tools/foreign/traces/nsys/nsys_file.h"

namespace rehearse {
namespace nsys_test {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::HasSubstr;

constexpr int64_t kProcess = 0x1000000;  // a global thread id is its process's number times this

void Kernel(SqliteConnection& file, int64_t name, int64_t stream, int64_t begin, int64_t end,
            int64_t correlation = 0, int64_t device = 0, int64_t process = kProcess) {
  file.Do(
      fmt::format("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ({}, {}, {}, 1, {}, {}, {}, "
                  "{}, 0)",
                  begin, end, device, stream, correlation, process, name));
}

class NsysTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!HasSqlite()) GTEST_SKIP() << "this build has no SQLite";
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::temp_directory_path() /
              (std::string("nsys-") + info->name() + "-" + std::to_string(getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override {
    if (!folder_.empty()) fs::remove_all(folder_);
  }

  SqliteConnection Make(const std::string& name) const {
    const std::string path = folder_ / name;
    SqliteConnection file(path, path, SqliteConnection::Access::kChange);
    file.Do(
        "CREATE TABLE StringIds (id INTEGER, value TEXT);"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, \"end\" INTEGER, deviceId "
        "INTEGER, contextId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, "
        "demangledName INTEGER, shortName INTEGER);"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, \"end\" INTEGER, deviceId "
        "INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, bytes INTEGER, "
        "copyKind INTEGER);"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, \"end\" INTEGER, globalTid "
        "INTEGER, correlationId INTEGER, nameId INTEGER);"
        "CREATE TABLE NVTX_EVENTS (start INTEGER, \"end\" INTEGER, eventType INTEGER, text TEXT, "
        "globalTid INTEGER, textId INTEGER);"
        "INSERT INTO StringIds VALUES (1, 'ampere_bf16_gemm'), "
        "(2, 'ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage)'), "
        "(3, 'step 2');");
    return file;
  }
  // A product and an all-reduce beside a copy, on each of two devices of one process.
  void WriteTwoDevices() const {
    SqliteConnection file = Make("node0.sqlite");
    for (int64_t device = 0; device < 2; ++device) {
      Kernel(file, 1, 7, 1000, 3000 + 500 * device, 0, device);
      Kernel(file, 2, 20, 3500, 9000, 0, device);
      file.Do(fmt::format(
          "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (4000, 5000, {}, 8, 0, {}, 64, 8)", device,
          kProcess));
    }
  }
  TimelineRecord Imported(std::vector<std::string>* remarks = nullptr) const {
    const ImportedKineto imported = ImportNsys({folder_.string()}, KinetoResult::kTimeline);
    if (remarks != nullptr) *remarks = imported.remarks;
    const JsonDocument document = JsonDocument::FromText(imported.text, "imported");
    return ReadTimelineRecord(document.Root());
  }
  void ExpectMistake(const std::string& file, const std::string& part) const {
    try {
      ReadNsys(folder_ / file);
      ADD_FAILURE() << "expected a mistake with " << part;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(file));
      EXPECT_THAT(error.what(), HasSubstr(part));
    }
  }

  fs::path folder_;
};

TEST_F(NsysTest, EachDeviceIsARankAndKernelsAreSpans) {
  WriteTwoDevices();
  std::vector<std::string> remarks;
  const TimelineRecord record = Imported(&remarks);
  ASSERT_EQ(record.steps.size(), 1u);
  const Timeline& timeline = record.steps[0].timeline;
  EXPECT_EQ(timeline.ranks, 2u);
  ASSERT_EQ(timeline.spans.size(), 6u);
  // From the first kernel on, in picoseconds.
  EXPECT_EQ(timeline.spans[0].begin, Time(0));
  EXPECT_EQ(timeline.spans[0].end, Time(2'000'000));
  EXPECT_EQ(timeline.spans[3].end, Time(2'500'000));
  EXPECT_EQ(timeline.step, Time(8'000'000));
  std::vector<std::string> kinds;
  for (const RecordedOp& op : record.roles[0].ops) kinds.push_back(op.kind);
  EXPECT_THAT(kinds, ::testing::ElementsAre("gemm", "all-reduce", "memory"));
  EXPECT_EQ(record.roles[0].ops[2].name, "Memcpy DtoD");
  EXPECT_THAT(remarks, Contains(HasSubstr("ranks are numbered in the order of the files")));
}

TEST_F(NsysTest, RangesOfStepsCutTheRunByWhatWasLaunchedInThem) {
  {
    SqliteConnection file = Make("run.sqlite");
    for (int64_t step = 0; step < 3; ++step) {
      const int64_t at = 100'000 * step;
      file.Do(fmt::format("INSERT INTO NVTX_EVENTS VALUES ({}, {}, 59, {}, {}, {})", at,
                          at + 50'000, step == 2 ? "NULL" : fmt::format("'step {}'", step),
                          kProcess + 5, step == 2 ? "3" : "NULL"));
      file.Do(fmt::format("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES ({}, {}, {}, {}, 0)",
                          at + 10, at + 20, kProcess + 5, step + 1));
      // It runs after the range of the host has ended.
      Kernel(file, 1, 7, at + 60'000, at + 61'000 + step, step + 1);
    }
    file.Do(
        fmt::format("INSERT INTO NVTX_EVENTS VALUES (0, 9, 59, 'forward', {}, NULL)", kProcess));
    for (const char* name : {"step", "12", "", "step of 3 things", "lockstep 4"}) {
      file.Do(
          fmt::format("INSERT INTO NVTX_EVENTS VALUES (0, 9, 59, '{}', {}, NULL)", name, kProcess));
    }
    Kernel(file, 1, 7, 900'000, 901'000, 77);  // nobody's
  }
  std::vector<std::string> remarks;
  const TimelineRecord record = Imported(&remarks);
  ASSERT_EQ(record.steps.size(), 3u);
  for (size_t i = 0; i < 3; ++i)
    EXPECT_EQ(record.steps[i].timeline.step, Time(1'000'000 + 1000 * static_cast<int64_t>(i)));
  EXPECT_THAT(remarks, Contains(HasSubstr("1 kernels and copies left out: outside of all steps")));
  EXPECT_THAT(remarks, Contains(HasSubstr("6 of NVTX range")));
}

// A word for steps and a number, however they are joined.
TEST_F(NsysTest, RangesWithAWordAndANumberAreSteps) {
  {
    SqliteConnection file = Make("run.sqlite");
    int64_t at = 0;
    for (const char* name :
         {"step 7", "Iteration_8", "train_step=9", "ProfilerStep#10", "ITER: 11"}) {
      file.Do(fmt::format("INSERT INTO NVTX_EVENTS VALUES ({}, {}, 59, '{}', {}, NULL)", at,
                          at + 50'000, name, kProcess));
      file.Do(fmt::format("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES ({}, {}, {}, {}, 0)",
                          at + 10, at + 20, kProcess, at + 1));
      Kernel(file, 1, 7, at + 100, at + 200, at + 1);
      at += 100'000;
    }
  }
  EXPECT_EQ(Imported().steps.size(), 5u);
}

// A file that traced nothing but kernels, and one with copies and sets of memory but no ranges.
TEST_F(NsysTest, OnlyTheTablesThatAreThereAreRead) {
  {
    SqliteConnection file = Make("run.sqlite");
    Kernel(file, 1, 7, 1000, 3000);
    for (const char* table :
         {"CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS"})
      file.Do(fmt::format("DROP TABLE {}", table));
    file.Do(
        "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INTEGER, \"end\" INTEGER, deviceId "
        "INTEGER, "
        "streamId INTEGER, correlationId INTEGER, globalPid INTEGER)");
    file.Do(fmt::format("INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (3000, 3500, 0, 7, 0, {})",
                        kProcess));
  }
  const TimelineRecord record = Imported();
  ASSERT_EQ(record.roles[0].ops.size(), 2u);
  EXPECT_EQ(record.roles[0].ops[0].name, "ampere_bf16_gemm");
  EXPECT_EQ(record.roles[0].ops[1].name, "Memset");
  EXPECT_EQ(record.steps[0].timeline.step, Time(2'500'000));
}

TEST_F(NsysTest, AsAScheduleCollectivesOfUnknownSizeTakeAsLongAsTheyDid) {
  WriteTwoDevices();
  const ImportedKineto imported = ImportNsys({folder_.string()}, KinetoResult::kSchedule);
  EXPECT_THAT(imported.text, HasSubstr("rehearse.schedule.v1"));
  EXPECT_THAT(imported.remarks, Contains(HasSubstr("not understood: waits, as long as measured")));
}

// NCCL's ranges of NVTX, as its payload schemas lay them out: 64 bits each for domain, schema, size
// and one more, then the payload.
class NcclRanges {
 public:
  explicit NcclRanges(SqliteConnection* file) : file_(*file) {
    file_.Do(fmt::format(
        "ALTER TABLE NVTX_EVENTS ADD COLUMN jsonText TEXT;"
        "ALTER TABLE NVTX_EVENTS ADD COLUMN binaryData BLOB;"
        "CREATE TABLE NVTX_PAYLOAD_SCHEMA_ENTRIES (domainId INTEGER, schemaId INTEGER, idx "
        "INTEGER, flags INTEGER, type INTEGER, name TEXT, description TEXT, arrayOrUnionDetail "
        "INTEGER, offset INTEGER);"
        "INSERT INTO NVTX_PAYLOAD_SCHEMA_ENTRIES VALUES "
        "(1, {0}, 0, NULL, 18, 'NCCL communicator ID', NULL, NULL, NULL), "
        "(1, {0}, 1, NULL, 5, 'No. of ranks', NULL, NULL, 8), "
        "(1, {0}, 2, NULL, 5, 'Rank', NULL, NULL, 12), "
        "(1, {1}, 0, NULL, 18, 'NCCL communicator ID', NULL, NULL, NULL), "
        "(1, {1}, 1, NULL, 22, 'Message size [bytes]', NULL, NULL, 8), "
        "(1, {1}, 2, NULL, 5, 'Peer rank', NULL, NULL, 16);"
        "INSERT INTO StringIds VALUES "
        "(10, 'ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage)'), "
        "(11, 'ncclDevKernel_SendRecv(ncclDevKernelArgsStorage)');",
        kInit, kTransfer));
  }

  void Begins(uint64_t communicator, uint32_t ranks, uint32_t rank) {
    Range(0, 1, "ncclCommInitRank", Word(communicator) + Word(ranks | uint64_t{rank} << 32), kInit);
  }
  // From `at` to `at` + 10; the peer does not matter to collectives.
  void Call(int64_t at, const char* name, uint64_t communicator, uint64_t bytes,
            uint32_t peer = 0) {
    Range(at, at + 10, name, Word(communicator) + Word(bytes) + Word(peer), kTransfer);
  }
  void CallInJson(int64_t at, const char* name, const char* payload) {
    file_.Do(fmt::format("INSERT INTO NVTX_EVENTS VALUES ({}, {}, 59, '{}', {}, NULL, '{}', NULL)",
                         at, at + 10, name, kProcess, payload));
  }
  // Launched at `at` by the thread that calls.
  void Kernel(int64_t at, int64_t name) {
    file_.Do(fmt::format("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES ({}, {}, {}, {}, 0)", at,
                         at + 1, kProcess, ++correlation_));
    nsys_test::Kernel(file_, name, 20, at + 100, at + 200, correlation_);
  }

 private:
  static constexpr uint64_t kInit = 16777300;
  static constexpr uint64_t kTransfer = 16777301;

  static std::string Word(uint64_t value) {
    std::string hex;
    for (int byte = 0; byte < 8; ++byte) hex += fmt::format("{:02X}", value >> 8 * byte & 0xff);
    return hex;
  }
  void Range(int64_t begin, int64_t end, const char* name, const std::string& payload,
             uint64_t schema) {
    file_.Do(fmt::format("INSERT INTO NVTX_EVENTS VALUES ({}, {}, 59, '{}', {}, NULL, NULL, X'{}')",
                         begin, end, name, kProcess,
                         Word(1) + Word(schema) + Word(payload.size() / 2) + Word(32) + payload));
  }

  SqliteConnection& file_;
  int64_t correlation_ = 0;
};

// Two ranks, whose files stand in the other order, and who share a communicator with a third.
TEST_F(NsysTest, CollectivesHaveTheSizesAndGroupsThatNcclNotes) {
  constexpr uint64_t kWorld = 0xfedcba9876543210;
  constexpr uint64_t kOther = 0xabc;
  for (uint32_t file_of = 0; file_of < 2; ++file_of) {
    SqliteConnection file = Make(file_of == 0 ? "a.sqlite" : "b.sqlite");
    const uint32_t rank = 1 - file_of;
    NcclRanges ranges(&file);
    ranges.Begins(kWorld, 2, rank);
    ranges.Begins(kOther, 3, rank);
    ranges.Call(1000, "ncclAllReduce", kWorld, 4096);
    ranges.Kernel(1005, 2);
    // Gathered in a group: one kernel does both, and is launched when the group ends.
    ranges.CallInJson(2000, "ncclAllGather",
                      R"({"NCCL communicator ID": "18,364,758,544,493,064,720",)"
                      R"( "Message size [bytes]": "1,024"})");
    ranges.CallInJson(2020, "ncclAllGather",
                      R"({"NCCL communicator ID": 18364758544493064720,)"
                      R"( "Message size [bytes]": 512})");
    ranges.Kernel(2050, 10);
    ranges.Call(3000, rank == 0 ? "ncclSend" : "ncclRecv", kWorld, 300, 1 - rank);
    ranges.Kernel(3005, 11);
    // A message to each member and from each, itself too.
    for (uint32_t peer = 0; peer < 2; ++peer) {
      ranges.Call(4000 + 20 * peer, "ncclSend", kWorld, 70, peer);
      ranges.Call(4010 + 20 * peer, "ncclRecv", kWorld, 70, peer);
    }
    ranges.Kernel(4050, 11);
    ranges.Call(5000, "ncclAllReduce", kOther, 4096);
    ranges.Kernel(5005, 2);
    ranges.Kernel(6000, 2);  // from a graph: nobody calls
  }
  const ImportedKineto imported = ImportNsys({folder_.string()}, KinetoResult::kSchedule);
  EXPECT_THAT(imported.remarks,
              Contains("ranks are those of NCCL's communicator 0xfedcba9876543210"));
  EXPECT_THAT(imported.remarks, Contains(HasSubstr("communicator 0xabc has 3 ranks, of which 2")));
  EXPECT_THAT(
      imported.remarks,
      Contains("4 of \"ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage)\" "
               "not understood: waits, as long as measured"));
  const JsonDocument document = JsonDocument::FromText(imported.text, "imported");
  const Schedule schedule = ReadSchedule(document.Root());
  ASSERT_EQ(schedule.communicators.size(), 1u);
  EXPECT_EQ(schedule.communicators[0].size(), 2u);
  std::vector<std::string> done;
  for (const Op& op : schedule.roles[0].ops) {
    if (const auto* collective = std::get_if<Collective>(&op.work))
      done.push_back(fmt::format("{} {}", Name(collective->kind), collective->bytes.value()));
    if (const auto* send = std::get_if<Send>(&op.work))
      done.push_back(fmt::format("send {} to {}", send->bytes.value(), send->peer));
  }
  // A gather's size is the whole: twice what one rank gives.
  EXPECT_THAT(done, ::testing::ElementsAre("all-reduce 4096", "all-gather 3072", "send 300 to 1",
                                           "all-to-all 140"));
}

// What is not as NCCL writes it is not taken for something.
TEST_F(NsysTest, PayloadsThatAreDamagedAreNotUsed) {
  {
    SqliteConnection file = Make("run.sqlite");
    NcclRanges ranges(&file);
    for (const char* payload : {"[1]", "{", R"({"NCCL communicator ID": 5})",
                                R"({"NCCL communicator ID": 5, "Message size [bytes]": -1})",
                                R"({"NCCL communicator ID": "five", "Message size [bytes]": 1})"})
      ranges.CallInJson(1000, "ncclAllReduce", payload);
    for (const char* payload : {"''", "X'00'", "7"})
      file.Do(
          fmt::format("INSERT INTO NVTX_EVENTS VALUES (1000, 1010, 59, 'ncclAllReduce', {}, "
                      "NULL, NULL, {})",
                      kProcess, payload));
    ranges.Call(1000, "ncclAllReduce", 5, uint64_t{1} << 60);
    ranges.Kernel(1005, 2);
  }
  const ImportedKineto imported = ImportNsys({folder_.string()}, KinetoResult::kSchedule);
  EXPECT_THAT(imported.remarks, Contains(HasSubstr("1 of \"ncclDevKernel_AllReduce")));
}

TEST_F(NsysTest, WhatIsNoExportIsRefused) {
  std::ofstream(folder_ / "text.sqlite") << "CREATE TABLE StringIds";
  ExpectMistake("text.sqlite",
                "is not an SQLite file, expected what nsys export --type sqlite writes");
  {
    const std::string path = folder_ / "other.sqlite";
    SqliteConnection file(path, path, SqliteConnection::Access::kChange);
    file.Do("CREATE TABLE StringIds (id INTEGER, value TEXT)");
  }
  ExpectMistake("other.sqlite", "found no table CUPTI_ACTIVITY_KIND_KERNEL");
  Make("empty.sqlite");
  ExpectMistake("empty.sqlite", "found no kernels, expected what a GPU did");
  {
    SqliteConnection file = Make("backwards.sqlite");
    Kernel(file, 1, 7, 1000, 400);
  }
  ExpectMistake("backwards.sqlite",
                "row 1 of CUPTI_ACTIVITY_KIND_KERNEL ends 600 ns before it begins");
  {
    SqliteConnection file = Make("column.sqlite");
    file.Do("ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL RENAME COLUMN streamId TO stream");
  }
  ExpectMistake("column.sqlite", "has no column \"streamId\"");
}

TEST_F(NsysTest, AFileThatIsCutOffIsDamaged) {
  {
    SqliteConnection file = Make("whole.sqlite");
    for (int64_t i = 0; i < 2000; ++i) Kernel(file, 1, 7, 1000 * i, 1000 * i + 500);
  }
  fs::resize_file(folder_ / "whole.sqlite", fs::file_size(folder_ / "whole.sqlite") / 2);
  ExpectMistake("whole.sqlite", "is damaged");
}

TEST_F(NsysTest, ATimeThatIsMissingIsRefused) {
  {
    SqliteConnection file = Make("run.sqlite");
    file.Do(
        fmt::format("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (NULL, 2000, 0, 1, 7, 0, {}, 1, "
                    "0)",
                    kProcess));
  }
  ExpectMistake("run.sqlite", "row 1 of CUPTI_ACTIVITY_KIND_KERNEL: expected nanoseconds");
}

// Not even one value that SQLite would load whole.
TEST_F(NsysTest, AValueOfManyMegabytesIsRefused) {
  {
    SqliteConnection file = Make("blob.sqlite");
    file.Do("INSERT INTO StringIds VALUES (99, zeroblob(80000000))");
  }
  ExpectMistake("blob.sqlite", "found a text or blob of more than 64 MiB");
}

}  // namespace nsys_test
}  // namespace rehearse
