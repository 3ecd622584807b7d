#include "tools/foreign/traces/nsys/nsys_file.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/sqlite_connection.h"
#include "sim/base/visible_text.h"
#include "tools/foreign/traces/kept_bytes.h"
#include "tools/foreign/traces/kernel_names.h"
#include "tools/foreign/traces/name_pattern.h"
#include "tools/foreign/traces/nsys/nsys_nccl.h"

namespace rehearse {
namespace {

namespace fs = std::filesystem;

constexpr const char* kKernels = "CUPTI_ACTIVITY_KIND_KERNEL";
constexpr int64_t kOfProcess = 0x1000000;  // global thread ids divided by this give the process

// "step 7", "Iteration_12", "train_step=3", "ProfilerStep#3": a word for steps and a number.
bool IsStepName(std::string_view name) {
  const size_t digits = name.find_last_not_of("0123456789") + 1;
  if (digits == name.size() || digits == 0) return false;
  std::string word(name.substr(0, digits));
  while (!word.empty() && std::string_view(" #_-:=").find(word.back()) != std::string_view::npos)
    word.pop_back();
  for (char& c : word)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  static const std::set<std::string_view> words = {
      "step",          "iteration",     "iter",         "train_step",
      "train step",    "training step", "profilerstep", "train_iteration",
      "training_step", "train_iter",    "batch",        "global_step"};
  return words.contains(word);
}

const char* NameOfCopy(int64_t kind) {
  switch (kind) {  // CUpti_ActivityMemcpyKind
    case 1:
      return "Memcpy HtoD";
    case 2:
      return "Memcpy DtoH";
    case 8:
      return "Memcpy DtoD";
    case 10:
      return "Memcpy PtoP";
    default:
      return "Memcpy";
  }
}

class NsysReader {
 public:
  NsysReader(const std::string& path, const KinetoOptions& options)
      : path_(path),
        communication_("--communication", options.communication),
        step_name_("--step-name", options.step_name),
        file_(path, FrozenSqliteName(fs::absolute(path).string()),
              SqliteConnection::Access::kRead) {}

  std::vector<KinetoTrace> Read() {
    SqliteStatement tables = file_.Prepare("SELECT name FROM sqlite_schema WHERE type = 'table'");
    while (tables.Step()) tables_.insert(tables.Text(0));
    for (const char* table : {"StringIds", kKernels}) {
      if (tables_.contains(table)) continue;
      Fail(
          fmt::format("found no table {}, expected the SQLite export of a report of Nsight Systems "
                      "(nsys export --type sqlite), with what GPUs did (--trace=cuda)",
                      table));
    }
    ReadStrings();
    ReadBase();
    ReadEvents(kKernels, "demangledName");
    if (tables_.contains("CUPTI_ACTIVITY_KIND_MEMCPY"))
      ReadEvents("CUPTI_ACTIVITY_KIND_MEMCPY", "copyKind");
    if (tables_.contains("CUPTI_ACTIVITY_KIND_MEMSET"))
      ReadEvents("CUPTI_ACTIVITY_KIND_MEMSET", "NULL");
    if (traces_.empty()) Fail("found no kernels, expected what a GPU did");
    if (tables_.contains("CUPTI_ACTIVITY_KIND_RUNTIME")) ReadLaunches();
    if (tables_.contains("NVTX_EVENTS")) {
      ReadRanges();
      ReadTransfers();
    }
    std::vector<KinetoTrace> traces;
    for (auto& [key, own] : traces_) traces.push_back(std::move(own.trace));
    return traces;
  }

 private:
  struct Own {
    KinetoTrace trace;
    std::unordered_map<std::string, uint32_t> place_of_name;
  };
  using Key = std::pair<int64_t, int64_t>;  // device, process

  [[noreturn]] void Fail(const std::string& what) const { throw Error({path_, 0, ""}, what); }

  // What a node of a hash table takes beside the value.
  static constexpr uint64_t kBytesOfNode = 32;
  template <typename Entry>
  void Keep(uint64_t bytes_of_texts = 0) {
    if (!kept_.TakeEntry<Entry>(bytes_of_texts)) Fail(KeptBytes::Complaint());
  }

  std::set<std::string> ColumnsOf(const std::string& table) {
    SqliteStatement columns = file_.Prepare(fmt::format("PRAGMA table_info({})", table));
    std::set<std::string> names;
    while (columns.Step()) names.insert(columns.Text(1));
    return names;
  }
  void Expect(const std::string& table, const std::set<std::string>& columns,
              std::initializer_list<const char*> expected) const {
    for (const char* name : expected) {
      if (!columns.contains(name))
        Fail(fmt::format("table {} has no column \"{}\", expected one", table, name));
    }
  }

  void ReadStrings() {
    Expect("StringIds", ColumnsOf("StringIds"), {"id", "value"});
    // Of names of any length, as of a command line that the report keeps, only a beginning counts.
    constexpr size_t kLongestString = size_t{1} << 20;
    SqliteStatement rows = file_.Prepare(
        fmt::format("SELECT id, substr(value, 1, {}) FROM StringIds", kLongestString));
    while (rows.Step()) {
      std::string text = rows.Text(1);
      Keep<std::string>(kBytesOfNode + text.size());
      strings_[rows.Whole(0)] = std::move(text);
    }
  }

  void ReadBase() {
    constexpr const char* kStart = "TARGET_INFO_SESSION_START_TIME";
    if (!tables_.contains(kStart) || !ColumnsOf(kStart).contains("utcEpochNs")) return;
    constexpr int64_t kNanoseconds = 1000;  // in a microsecond
    SqliteStatement rows = file_.Prepare(fmt::format("SELECT utcEpochNs FROM {} LIMIT 1", kStart));
    if (rows.Step()) base_ = rows.Whole(0) / kNanoseconds;
  }

  Own& OwnOf(int64_t device, int64_t process) {
    Own& own = traces_[{device, process}];
    if (own.trace.file.empty()) {
      own.trace.file = path_;
      own.trace.base = base_;
    }
    return own;
  }

  int64_t Nanoseconds(const SqliteStatement& rows, int at, const std::string& table) const {
    const int64_t value = rows.Whole(at);
    if (rows.IsNull(at) || value < -kLongestNsys || value > kLongestNsys)
      Fail(fmt::format("row {} of {}: expected nanoseconds of less than a month", row_, table));
    return value * kNsysTick;
  }

  void ReadEvents(const std::string& table, const std::string& name) {
    const std::set<std::string> columns = ColumnsOf(table);
    Expect(table, columns, {"start", "end", "deviceId", "streamId", "correlationId"});
    const bool has_process = columns.contains("globalPid");
    const bool has_name = name == "NULL" || columns.contains(name);
    SqliteStatement rows = file_.Prepare(
        fmt::format("SELECT start, \"end\", deviceId, streamId, correlationId, {}, {} FROM {}",
                    has_process ? "globalPid" : "0", has_name ? name : "shortName", table));
    row_ = 0;
    while (rows.Step()) {
      ++row_;
      KinetoEvent event;
      event.begin = Nanoseconds(rows, 0, table);
      event.end = Nanoseconds(rows, 1, table);
      if (event.end < event.begin) {
        Fail(fmt::format("row {} of {} ends {} ns before it begins: its clock runs backwards", row_,
                         table, (event.begin - event.end) / kNsysTick));
      }
      event.offset = row_;
      event.stream = static_cast<uint64_t>(std::max<int64_t>(rows.Whole(3), 0));
      event.correlation = rows.Whole(4);
      Own& own = OwnOf(rows.Whole(2), rows.Whole(5));
      event.is_copy = table != kKernels;
      const std::string text = !event.is_copy   ? StringOf(rows.Whole(6))
                               : name == "NULL" ? "Memset"
                                                : NameOfCopy(rows.Whole(6));
      const auto [place, is_new] =
          own.place_of_name.emplace(text, static_cast<uint32_t>(own.trace.names.size()));
      if (is_new) {
        Keep<std::string>(kBytesOfNode + 2 * text.size());
        own.trace.names.push_back(VisibleText(text));
      }
      event.name = place->second;
      if (communication_.IsIn(text) || (!event.is_copy && CommunicationOfKernel(text))) {
        event.transfer = static_cast<uint32_t>(own.trace.transfers.size());
        Keep<KinetoTransfer>();
        own.trace.transfers.emplace_back();
      }
      Keep<KinetoEvent>();
      own.trace.events.Add(event);
    }
  }
  std::string StringOf(int64_t id) const {
    const auto found = strings_.find(id);
    return found == strings_.end() ? fmt::format("kernel {}", id) : found->second;
  }

  void ReadLaunches() {
    constexpr const char* kTable = "CUPTI_ACTIVITY_KIND_RUNTIME";
    Expect(kTable, ColumnsOf(kTable), {"start", "globalTid", "correlationId"});
    SqliteStatement rows =
        file_.Prepare(fmt::format("SELECT start, globalTid, correlationId FROM {}", kTable));
    row_ = 0;
    while (rows.Step()) {
      ++row_;
      const KinetoLaunch launch = {Nanoseconds(rows, 0, kTable), rows.Whole(1)};
      ForProcess(rows.Whole(1), [&](KinetoTrace& trace) {
        Keep<KinetoLaunch>(kBytesOfNode);
        trace.launches[rows.Whole(2)] = launch;
      });
    }
  }

  void ReadRanges() {
    constexpr const char* kTable = "NVTX_EVENTS";
    const std::set<std::string> columns = ColumnsOf(kTable);
    Expect(kTable, columns, {"start", "end", "globalTid"});
    const std::string payload = NvtxPayloadColumn(&file_);
    SqliteStatement rows = file_.Prepare(fmt::format(
        "SELECT start, \"end\", globalTid, {}, {} FROM {} WHERE \"end\" IS NOT NULL{}",
        columns.contains("text") ? "text" : "NULL", columns.contains("textId") ? "textId" : "NULL",
        kTable, payload.empty() ? "" : fmt::format(" AND {} IS NULL", payload)));
    row_ = 0;
    while (rows.Step()) {
      ++row_;
      const std::string text = !rows.IsNull(3)  ? rows.Text(3)
                               : rows.IsNull(4) ? ""
                                                : StringOf(rows.Whole(4));
      if (!(step_name_ ? step_name_.IsIn(text) : IsStepName(text))) {
        ForProcess(rows.Whole(2), [](KinetoTrace& trace) { ++trace.not_used["NVTX range"]; });
        continue;
      }
      const KinetoRange range = {text, Nanoseconds(rows, 0, kTable), Nanoseconds(rows, 1, kTable),
                                 rows.Whole(2)};
      ForProcess(rows.Whole(2), [&](KinetoTrace& trace) {
        Keep<KinetoRange>(text.size());
        trace.steps.push_back(range);
      });
    }
  }

  // What NCCL's own ranges say, process by process.
  void ReadTransfers() {
    std::map<int64_t, std::vector<NcclCall>> calls;
    for (NcclCall& call : ReadNcclCalls(&file_, [&](int64_t id) { return StringOf(id); }))
      calls[call.thread / kOfProcess].push_back(std::move(call));
    for (auto& [process, own] : calls) {
      std::vector<KinetoTrace*> traces;
      ForProcess(process * kOfProcess, [&](KinetoTrace& trace) { traces.push_back(&trace); });
      TakeNcclCalls(std::move(own), traces);
    }
  }

  // The traces of a thread's process; of all processes if kernels do not say whose they are.
  template <typename Visit>
  void ForProcess(int64_t thread, const Visit& visit) {
    for (auto& [key, own] : traces_) {
      if (key.second == 0 || key.second / kOfProcess == thread / kOfProcess) visit(own.trace);
    }
  }

  const std::string path_;
  NamePattern communication_;
  NamePattern step_name_;
  SqliteConnection file_;
  std::set<std::string> tables_;
  std::unordered_map<int64_t, std::string> strings_;
  int64_t base_ = 0;
  uint64_t row_ = 0;
  std::map<Key, Own> traces_;
  KeptBytes kept_;
};

void CheckMagic(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error({path, 0, ""}, "cannot be read");
  std::string head(16, '\0');
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  constexpr std::string_view kMagic("SQLite format 3\0", 16);
  if (head != kMagic) {
    throw Error({path, 0, ""},
                "is not an SQLite file, expected what nsys export --type sqlite writes");
  }
}

}  // namespace

std::vector<KinetoTrace> ReadNsys(const std::string& path, const KinetoOptions& options) {
  CheckMagic(path);
  return NsysReader(path, options).Read();
}

}  // namespace rehearse
