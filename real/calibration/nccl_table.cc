#include "real/calibration/nccl_table.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "collectives/algorithms/ring.h"
#include "sim/base/error.h"

namespace rehearse {
namespace {

constexpr NcclTest kTests[] = {
    {CollectiveKind::kAllReduce, "all_reduce_perf", "sum", false, false},
    {CollectiveKind::kAllGather, "all_gather_perf", "none", false, true},
    {CollectiveKind::kReduceScatter, "reduce_scatter_perf", "sum", false, true},
    {CollectiveKind::kAllToAll, "alltoall_perf", "none", false, true},
    {CollectiveKind::kBroadcast, "broadcast_perf", "none", true, false},
    {CollectiveKind::kReduce, "reduce_perf", "sum", true, false},
    {CollectiveKind::kSendReceive, "sendrecv_perf", "none", false, false},
};

constexpr double kLargestSize = 1125899906842624.0;  // 2^50, as in rehearse collective
constexpr double kLongest = 1e6;                     // seconds

std::vector<std::string_view> Split(std::string_view line, std::string_view separators) {
  const bool keeps_empty = separators == ",";
  std::vector<std::string_view> words;
  size_t begin = 0;
  while (begin <= line.size()) {
    const size_t end = std::min(line.find_first_of(separators, begin), line.size());
    if (keeps_empty || end > begin) words.push_back(line.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

std::string_view Trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

std::optional<double> Number(std::string_view text) {
  text = Trim(text);
  double value = 0;
  const auto [stop, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (fault != std::errc() || stop != text.data() + text.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

// Which column is what: positions, and the unit of the time.
struct Columns {
  std::optional<size_t> size;
  std::optional<size_t> time;
  std::optional<size_t> algorithm_bandwidth;
  std::optional<size_t> bus_bandwidth;
  double time_unit = 1e-6;
  size_t count = 0;
  bool has_commas = false;
};

double TimeUnit(std::string_view name) {
  const std::string_view unit = name.substr(4);
  if (unit.find("ns") != std::string_view::npos) return 1e-9;
  if (unit.find("ms") != std::string_view::npos) return 1e-3;
  return 1e-6;
}

// Of a line that names columns; nothing of any other.
std::optional<Columns> ReadHeading(std::string_view line) {
  Columns columns;
  columns.has_commas = line.find(',') != std::string_view::npos;
  const bool is_comment = line.starts_with('#');
  if (is_comment == columns.has_commas) return std::nullopt;
  const auto names = columns.has_commas ? Split(line, ",") : Split(line.substr(1), " \t\r");
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string_view name = Trim(names[i]);
    const auto first = [&](std::optional<size_t>& column) {
      if (!column) column = i;
    };
    if (name.starts_with("size")) first(columns.size);
    if (name.starts_with("algbw")) first(columns.algorithm_bandwidth);
    if (name.starts_with("busbw")) first(columns.bus_bandwidth);
    if (name.starts_with("time") && !columns.time) {
      columns.time = i;
      columns.time_unit = TimeUnit(name);
    }
  }
  columns.count = names.size();
  const bool has_figures = columns.time || columns.algorithm_bandwidth || columns.bus_bandwidth;
  if (!columns.size || !has_figures) return std::nullopt;
  return columns;
}

std::optional<CollectiveKind> KindIn(std::string_view line) {
  for (const NcclTest& test : kTests) {
    // all_reduce_perf holds reduce_perf as well.
    const size_t at = line.find(test.program);
    if (at != std::string_view::npos && (at == 0 || line[at - 1] != '_')) return test.kind;
  }
  return std::nullopt;
}

bool IsRankLine(std::string_view line) {
  const auto words = Split(line, " \t\r");
  return words.size() > 3 && words[0] == "#" && words[1] == "Rank" && Number(words[2]);
}

// "... 1 group of 8 ranks", as we write it.
std::optional<uint32_t> RanksIn(std::string_view line) {
  const auto words = Split(line, " \t\r");
  if (words.size() < 3 || words[0] != "#" || words.back() != "ranks") return std::nullopt;
  const auto count = Number(words[words.size() - 2]);
  if (!count || *count < 1 || *count > 1e9) return std::nullopt;
  return static_cast<uint32_t>(*count);
}

class Reader {
 public:
  Reader(const std::string& file, NcclTable& table) : file_(file), table_(table) {}

  void ReadLine(std::string_view line) {
    ++number_;
    line = Trim(line);
    if (line.empty()) return;
    if (const auto heading = ReadHeading(line)) {
      columns_ = heading;
      return;
    }
    if (!table_.kind) table_.kind = KindIn(line);
    if (line.starts_with('#')) {
      if (IsRankLine(line)) ++rank_lines_;
      if (const auto ranks = RanksIn(line); ranks && !written_ranks_) written_ranks_ = ranks;
      return;
    }
    if (columns_) ReadRow(line);
  }

  void Finish(std::optional<uint32_t> ranks) {
    table_.ranks = ranks ? ranks : written_ranks_;
    if (!table_.ranks && rank_lines_ > 0) table_.ranks = rank_lines_;
    if (!columns_)
      throw Error({file_, 0, ""},
                  "found no table of nccl-tests: no line names the columns size and time");
    if (pending_.empty())
      throw Error({file_, 0, ""}, "found the columns of nccl-tests, but no row of figures below");
    for (const Pending& row : pending_) table_.rows.push_back({row.bytes, TimeOf(row)});
  }

 private:
  struct Pending {
    int line = 0;
    Bytes bytes;
    std::optional<double> time;                 // seconds
    std::optional<double> algorithm_bandwidth;  // bytes a second
    std::optional<double> bus_bandwidth;
  };

  [[noreturn]] void Fail(int line, const std::string& message) const {
    throw Error({file_, line, ""}, message);
  }

  void ReadRow(std::string_view line) {
    const auto words = columns_->has_commas ? Split(line, ",") : Split(line, " \t\r");
    const auto size =
        words.size() > *columns_->size ? Number(words[*columns_->size]) : std::optional<double>();
    if (!columns_->has_commas && !size) return;  // a launcher's chatter between the rows
    if (!size || *size < 0 || *size > kLargestSize || *size != std::floor(*size))
      Fail(number_, fmt::format("found \"{}\", expected a row that begins with a size in bytes",
                                line.substr(0, 60)));
    if (words.size() != columns_->count)
      Fail(number_, fmt::format("found {} columns, expected {} as named above", words.size(),
                                columns_->count));
    if (*size == 0) return;  // nccl-tests prints them for sizes below a rank's share
    const auto figure = [&](const std::optional<size_t>& column,
                            double unit) -> std::optional<double> {
      if (!column) return std::nullopt;
      const auto value = Number(words[*column]);
      if (!value || *value < 0)
        Fail(number_, fmt::format("found \"{}\" in column {}, expected a number",
                                  Trim(words[*column]), *column + 1));
      if (*value == 0) return std::nullopt;  // rounded away
      return *value * unit;
    };
    Pending row;
    row.line = number_;
    row.bytes = Bytes(*size);
    row.time = figure(columns_->time, columns_->time_unit);
    row.algorithm_bandwidth = figure(columns_->algorithm_bandwidth, 1e9);
    row.bus_bandwidth = figure(columns_->bus_bandwidth, 1e9);
    pending_.push_back(row);
  }

  Seconds TimeOf(const Pending& row) const {
    double seconds = 0;
    if (row.time) {
      seconds = *row.time;
    } else if (row.algorithm_bandwidth) {
      seconds = row.bytes.value() / *row.algorithm_bandwidth;
    } else if (row.bus_bandwidth) {
      if (!table_.kind || !table_.ranks)
        Fail(row.line,
             "a bus bandwidth alone says the time only when the kind and the ranks are known");
      // busbw = algbw times a factor that does not depend on the time.
      const BytesPerSecond factor = BusBandwidth(*table_.kind, *table_.ranks, Bytes(1), Seconds(1));
      seconds = row.bytes.value() * factor.value() / *row.bus_bandwidth;
    } else {
      Fail(row.line, "found neither a time nor a bandwidth above 0");
    }
    if (!(seconds > 0) || seconds > kLongest)
      Fail(row.line, fmt::format("a time of {} s makes no sense", seconds));
    return Seconds(seconds);
  }

  const std::string& file_;
  NcclTable& table_;
  int number_ = 0;
  uint32_t rank_lines_ = 0;
  std::optional<uint32_t> written_ranks_;
  std::optional<Columns> columns_;
  std::vector<Pending> pending_;
};

// As wide as nccl-tests has it: two decimals below 100 us, one below 10 ms.
std::string TimeText(Seconds time) {
  const double microseconds = time.value() * 1e6;
  if (microseconds < 100) return fmt::format("{:.2f}", microseconds);
  if (microseconds < 10000) return fmt::format("{:.1f}", microseconds);
  return fmt::format("{:.0f}", microseconds);
}

}  // namespace

const NcclTest* FindNcclTest(CollectiveKind kind) {
  for (const NcclTest& test : kTests) {
    if (test.kind == kind) return &test;
  }
  return nullptr;
}

bool LooksLikeNcclTable(std::string_view text) {
  for (const std::string_view line : Split(text, "\n")) {
    if (ReadHeading(Trim(line))) return true;
  }
  return false;
}

NcclTable ReadNcclTable(std::string_view text, const std::string& file,
                        std::optional<CollectiveKind> kind, std::optional<uint32_t> ranks) {
  NcclTable table;
  table.kind = kind;
  Reader reader(file, table);
  size_t begin = 0;
  while (begin < text.size()) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    reader.ReadLine(text.substr(begin, end - begin));
    begin = end + 1;
  }
  reader.Finish(ranks);
  return table;
}

std::string WriteNcclTable(const NcclTable& table, uint32_t root,
                           const std::vector<std::string>& comments) {
  CHECK(table.kind && table.ranks && !table.rows.empty());
  const NcclTest* const test = FindNcclTest(*table.kind);
  std::string text;
  if (test) text += fmt::format("# Collective test starting: {}\n", test->program);
  for (const std::string& comment : comments) text += "# " + comment + "\n";
  text +=
      "#\n"
      "#                                                              out-of-place                "
      "       in-place          \n"
      "#       size         count      type   redop    root     time   algbw   busbw #wrong     "
      "time   algbw   busbw #wrong\n"
      "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            "
      "(us)  (GB/s)  (GB/s)       \n";
  const double parts = test && test->counts_a_part ? *table.ranks : 1;
  const std::string place = test && test->has_root ? fmt::format("{}", root) : std::string("-1");
  double sum = 0;
  for (const NcclRow& row : table.rows) {
    const double algorithm = (row.bytes / row.time).value() / 1e9;
    const double bus = BusBandwidth(*table.kind, *table.ranks, row.bytes, row.time).value() / 1e9;
    const std::string numbers =
        fmt::format(" {:>8} {:>7.2f} {:>7.2f} {:>6}", TimeText(row.time), algorithm, bus, 0);
    text += fmt::format("{:>12.0f} {:>13.0f} {:>9} {:>7} {:>7}{}{}\n", row.bytes.value(),
                        std::floor(row.bytes.value() / 4 / parts), "float",
                        test ? test->reduction : "none", place, numbers, numbers);
    sum += bus;
  }
  text += "# Out of bounds values : 0 OK\n";
  text += fmt::format("# Avg bus bandwidth    : {:.4f}\n",
                      sum / static_cast<double>(table.rows.size()));
  return text;
}

}  // namespace rehearse
