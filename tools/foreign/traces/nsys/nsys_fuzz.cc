// A report of Nsight Systems as SQLite, damaged.
#include <filesystem>

#include <fmt/format.h>

#include "sim/base/input_file.h"
#include "sim/base/sqlite_connection.h"
#include "tests/fuzz/corpus.h"
#include "tests/fuzz/fuzz_target.h"
#include "tools/foreign/traces/kineto/kineto_read.h"

namespace rehearse {
namespace {

void ReadReport(std::string_view input) {
  if (!HasSqlite()) return;
  ImportNsys({WriteFuzzFile("report.sqlite", input)}, KinetoResult::kTimeline);
}

// A small number in eight bytes, the lowest first, as its hexadecimal digits stand in a text.
uint64_t Word(uint64_t number) { return number << 56; }

std::vector<std::string> ReportSeeds() {
  if (!HasSqlite()) return {""};
  const std::string path = FuzzFolder() + "made-report.sqlite";
  std::filesystem::remove(path);
  {
    SqliteConnection file(path, path, SqliteConnection::Access::kChange);
    file.Do(
        "PRAGMA page_size = 512;"
        "CREATE TABLE StringIds (id, value);"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, \"end\", deviceId, streamId, "
        "correlationId, globalPid, demangledName);"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start, globalTid, correlationId);"
        "CREATE TABLE NVTX_EVENTS (start, \"end\", globalTid, text, textId, jsonText, binaryData);"
        "CREATE TABLE NVTX_PAYLOAD_SCHEMA_ENTRIES (domainId, schemaId, type, name, offset);"
        "INSERT INTO NVTX_PAYLOAD_SCHEMA_ENTRIES VALUES (1, 2, 18, 'NCCL communicator ID', 0), "
        "(1, 2, 22, 'Message size [bytes]', 8);"
        "INSERT INTO StringIds VALUES (1, 'gemm'), (2, 'ncclDevKernel_AllReduce');");
    for (int step = 0; step < 2; ++step) {
      const int at = 1000 * step;
      file.Do(fmt::format(
          "INSERT INTO NVTX_EVENTS VALUES "
          "({0}, {0} + 900, 16777216, 'step {1}', NULL, NULL, NULL), "
          "({0}, {0} + 5, 16777216, 'ncclAllReduce', NULL, NULL, "
          "X'{2:016X}{3:016X}{4:016X}{5:016X}{6:016X}{7:016X}');"
          "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES ({0} + 1, 16777216, {1});"
          "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ({0} + 9, {0} + 50, 0, 7, {1}, 16777216, "
          "1), ({0} + 60, {0} + 90, 1, 20, {1}, 16777216, 2);",
          at, step, Word(1), Word(2), Word(16), Word(32), Word(7), Word(64)));
    }
  }
  return {ReadInputFile(path)};
}

std::vector<std::string> ReportWords() {
  return {"SQLite format 3",
          "CUPTI_ACTIVITY_KIND_MEMCPY",
          "copyKind",
          "step 1",
          "StringIds",
          "TARGET_INFO_SESSION_START_TIME",
          "utcEpochNs",
          "\x0d",
          "\x05",
          "\x0a"};
}

const FuzzTargetRow kNsysRow({"nsys", ReadReport, ReportSeeds, ReportWords, FuzzLanguage::kBytes});

}  // namespace
}  // namespace rehearse
