// Exports of Nsight Systems with one value changed, one row left out or written twice, one column
// or table missing, and what comes of them, beside a golden record.
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sim/base/error.h"
#include "sim/base/fnv.h"
#include "sim/base/input_file.h"
#include "sim/base/sqlite_connection.h"
#include "tests/golden/record.h"
#include "tests/support/temporary_folder.h"
#include "tools/foreign/traces/kineto/kineto_read.h"

namespace rehearse {
namespace nsys_test {

namespace fs = std::filesystem;

constexpr int64_t kProcess = 0x1000000;
constexpr uint64_t kInit = 16777300;
constexpr uint64_t kTransfer = 16777301;
constexpr uint64_t kWorld = 0xfedcba9876543210;

struct Table {
  const char* name;
  std::vector<const char*> columns;
};
const std::vector<Table>& Tables() {
  static const std::vector<Table> tables = {
      {"StringIds", {"id", "value"}},
      {"CUPTI_ACTIVITY_KIND_KERNEL",
       {"start", "\"end\"", "deviceId", "streamId", "correlationId", "globalPid", "demangledName",
        "shortName"}},
      {"CUPTI_ACTIVITY_KIND_MEMCPY",
       {"start", "\"end\"", "deviceId", "streamId", "correlationId", "globalPid", "bytes",
        "copyKind"}},
      {"CUPTI_ACTIVITY_KIND_MEMSET",
       {"start", "\"end\"", "deviceId", "streamId", "correlationId", "globalPid"}},
      {"CUPTI_ACTIVITY_KIND_RUNTIME", {"start", "\"end\"", "globalTid", "correlationId"}},
      {"NVTX_EVENTS",
       {"start", "\"end\"", "globalTid", "text", "textId", "jsonText", "binaryData"}},
      {"NVTX_PAYLOAD_SCHEMA_ENTRIES", {"domainId", "schemaId", "type", "name", "offset"}},
      {"TARGET_INFO_SESSION_START_TIME", {"utcEpochNs"}}};
  return tables;
}

std::string Word(uint64_t value) {
  std::string hex;
  for (int byte = 0; byte < 8; ++byte) hex += fmt::format("{:02X}", value >> 8 * byte & 0xff);
  return hex;
}

// Two steps of a rank: products, copies, and calls of NCCL with payloads of both kinds.
class Export {
 public:
  Export(const std::string& path, uint32_t rank)
      : file_(path, path, SqliteConnection::Access::kChange), rank_(rank) {
    std::string tables = "PRAGMA synchronous = OFF;";
    for (const Table& table : Tables())
      tables += fmt::format("CREATE TABLE {} ({});", table.name, fmt::join(table.columns, ", "));
    file_.Do(tables);
    file_.Do(fmt::format(
        "INSERT INTO StringIds VALUES (1, 'ampere_bf16_gemm'), (2, 'ncclDevKernel_AllReduce_Sum'), "
        "(3, 'step 2'), (4, 'ncclDevKernel_AllGather_RING_LL'), (5, 'ncclDevKernel_SendRecv'), "
        "(6, 'ncclReduceScatter'), (7, 'ncclDevKernel_ReduceScatter_Sum');"
        "INSERT INTO NVTX_PAYLOAD_SCHEMA_ENTRIES VALUES "
        "(1, {0}, 18, 'NCCL communicator ID', NULL), (1, {0}, 5, 'No. of ranks', 8), "
        "(1, {0}, 5, 'Rank', 12), (1, {1}, 18, 'NCCL communicator ID', NULL), "
        "(1, {1}, 22, 'Message size [bytes]', 8), (1, {1}, 5, 'Peer rank', 16);"
        "INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES ({2});",
        kInit, kTransfer, 1'000'000 + 50 * rank));
    Range(0, 1, "'ncclCommInitRank'", "NULL",
          Payload(kInit, Word(kWorld) + Word(2 | uint64_t{rank} << 32)));
    for (int64_t step = 1; step <= 2; ++step) Step(step, 100'000 * step);
  }

 private:
  void Step(int64_t step, int64_t at) {
    Range(at, at + 90'000, step == 2 ? "NULL" : "'step 1'", step == 2 ? "3" : "NULL", "NULL, NULL");
    Kernel(at + 10, 1, 7);
    Call(at + 1000, "'ncclAllReduce'", "NULL", 4096);
    Kernel(at + 1005, 2, 20);
    for (const int64_t later : {0, 20}) {
      Range(at + 2000 + later, at + 2010 + later, "'ncclAllGather'", "NULL",
            fmt::format("'{{\"NCCL communicator ID\": {}, \"Message size [bytes]\": \"1,024\"}}', "
                        "NULL",
                        kWorld));
    }
    Kernel(at + 2050, 4, 20);
    Call(at + 3000, rank_ == 0 ? "'ncclSend'" : "'ncclRecv'", "NULL", 300);
    Kernel(at + 3005, 5, 20);
    Call(at + 4000, "NULL", "6", 8192);
    Kernel(at + 4005, 7, 21);
    ++correlation_;
    Launch(at + 5000);
    file_.Do(fmt::format(
        "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES ({0}, {0} + 700, 0, 8, {1}, {2}, 64, {3})",
        at + 5100, correlation_, kProcess, step));
    ++correlation_;
    Launch(at + 6000);
    file_.Do(
        fmt::format("INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES ({0}, {0} + 80, 0, 7, {1}, {2})",
                    at + 6100, correlation_, kProcess));
  }

  static std::string Payload(uint64_t schema, const std::string& payload) {
    return fmt::format("NULL, X'{}'",
                       Word(1) + Word(schema) + Word(payload.size() / 2) + Word(32) + payload);
  }
  void Call(int64_t at, const char* text, const char* text_id, uint64_t bytes) {
    Range(at, at + 10, text, text_id,
          Payload(kTransfer, Word(kWorld) + Word(bytes) + Word(1 - rank_)));
  }
  void Range(int64_t begin, int64_t end, const char* text, const char* text_id,
             const std::string& payloads) {
    file_.Do(fmt::format("INSERT INTO NVTX_EVENTS VALUES ({}, {}, {}, {}, {}, {})", begin, end,
                         kProcess, text, text_id, payloads));
  }
  void Launch(int64_t at) {
    file_.Do(fmt::format("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES ({0}, {0} + 1, {1}, {2})",
                         at, kProcess, correlation_));
  }
  void Kernel(int64_t at, int name, int stream) {
    ++correlation_;
    Launch(at);
    file_.Do(fmt::format(
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ({0}, {0} + 500, 0, {1}, {2}, {3}, {4}, 1)",
        at + 100, stream, correlation_, kProcess, name));
  }

  SqliteConnection file_;
  const uint32_t rank_;
  int64_t correlation_ = 0;
};

// By what they change.
std::vector<std::pair<std::string, std::vector<std::string>>> Changes() {
  std::vector<std::pair<std::string, std::vector<std::string>>> changes = {{"none", {"SELECT 1"}}};
  for (const Table& table : Tables()) {
    for (const char* column : table.columns) {
      std::vector<std::string> own;
      for (const int row : {2, 5}) {
        for (const char* value : {"NULL", "-1", "0", "2", "'x'", "4611686018427387904", "{0} - 150",
                                  "{0} + 200000", "X'00'", "{0} || X'0102030405060708'"}) {
          std::string text = value;
          if (const size_t at = text.find("{0}"); at != std::string::npos)
            text.replace(at, 3, column);
          own.push_back(
              fmt::format("UPDATE {} SET {} = {} WHERE rowid = {}", table.name, column, text, row));
        }
      }
      if (column == std::string("\"end\""))
        own.push_back(fmt::format("UPDATE {} SET \"end\" = start", table.name));
      own.push_back(fmt::format("ALTER TABLE {} RENAME COLUMN {} TO other", table.name, column));
      changes.emplace_back(fmt::format("{}.{}", table.name, column), own);
    }
    std::vector<std::string> rows = {fmt::format("DROP TABLE {}", table.name),
                                     fmt::format("DELETE FROM {}", table.name)};
    for (int row = 1; row <= 9; row += 2) {
      rows.push_back(fmt::format("DELETE FROM {} WHERE rowid = {}", table.name, row));
      rows.push_back(
          fmt::format("INSERT INTO {0} SELECT * FROM {0} WHERE rowid = {1}", table.name, row));
    }
    changes.emplace_back(table.name, rows);
  }
  // Who is which rank of how many.
  std::vector<std::string> ranks;
  for (const uint64_t count : {uint64_t{0}, uint64_t{1}, uint64_t{2}, uint64_t{3}}) {
    for (const uint64_t rank : {uint64_t{0}, uint64_t{1}, uint64_t{2}, ~uint64_t{0}}) {
      ranks.push_back(fmt::format("UPDATE NVTX_EVENTS SET binaryData = X'{}' WHERE rowid = 1",
                                  Word(1) + Word(kInit) + Word(16) + Word(32) + Word(kWorld) +
                                      Word((count & 0xffffffff) | rank << 32)));
    }
  }
  changes.emplace_back("ranks", ranks);
  return changes;
}

std::string Imported(const std::vector<std::string>& files, KinetoResult result) {
  try {
    const ImportedKineto imported = ImportNsys(files, result);
    std::string text = imported.text;
    for (const std::string& remark : imported.remarks) text += remark + "\n";
    return text;
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(GoldenNsysTest, ExportsThatAreNearlyRightComeToWhatIsRecorded) {
  if (!HasSqlite()) GTEST_SKIP() << "this build has no SQLite";
  const TemporaryFolder folder("nsys");
  std::vector<std::string> files = {folder / "a.sqlite", folder / "b.sqlite"};
  for (uint32_t rank = 0; rank < 2; ++rank) Export(files[rank], rank);
  const std::string whole = ReadInputFile(files[0]);
  GoldenRecord record("nsys");
  size_t number = 0;
  for (const auto& [what, changes] : Changes()) {
    if (record.IsLeftOut(number++)) continue;
    Fnv1a hash;
    int refused = 0;
    int tried = 0;
    for (const std::string& change : changes) {
      std::ofstream(files[0], std::ios::binary) << whole;
      SqliteConnection(files[0], files[0], SqliteConnection::Access::kChange)
          .Do("PRAGMA synchronous = OFF; PRAGMA journal_mode = OFF;" + change);
      // As schedules mostly, which takes all that a timeline does and more.
      const bool is_timeline = tried++ % 4 == 0;
      std::string text =
          Imported(files, is_timeline ? KinetoResult::kTimeline : KinetoResult::kSchedule);
      refused += text.starts_with("{") ? 0 : 1;
      const std::string name = folder.path().string();
      for (size_t at = text.find(name); at != std::string::npos; at = text.find(name))
        text.erase(at, name.size());
      hash.Add(RoundedNumbers(text));
    }
    record.Add(what, fmt::format("{} changes, {} refused{}\n", changes.size(), refused,
                                 DigestOf("imported", hash)));
  }
  record.End();
}

}  // namespace nsys_test
}  // namespace rehearse
