#include "tools/foreign/logs/nccl_tests/nccl_sections.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "real/calibration/nccl_table.h"
#include "sim/base/error.h"
#include "sim/base/json_parse.h"
#include "tools/foreign/logs/nccl_tests/line_frame.h"

namespace rehearse {
namespace {

using enum CollectiveKind;

// Programs of nccl-tests whose collective is not simulated.
constexpr std::string_view kOtherPrograms[] = {"gather_perf", "scatter_perf", "hypercube_perf",
                                               "alltoallv_perf"};
constexpr CollectiveKind kTestedKinds[] = {kAllReduce, kAllGather, kReduceScatter, kAllToAll,
                                           kBroadcast, kReduce,    kSendReceive};
bool Names(std::string_view line, std::string_view program) {
  // all_reduce_perf also contains reduce_perf.
  const size_t at = line.find(program);
  return at != std::string_view::npos && (at == 0 || line[at - 1] != '_');
}

std::optional<NcclProgram> ProgramIn(std::string_view line) {
  for (const CollectiveKind kind : kTestedKinds) {
    const std::string_view program = FindNcclTest(kind)->program;
    if (Names(line, program)) return NcclProgram{program, kind};
  }
  for (const std::string_view program : kOtherPrograms)
    if (Names(line, program)) return NcclProgram{program, std::nullopt};
  return std::nullopt;
}
// "... 1 group of 8 ranks", as we write it.
std::optional<uint32_t> WrittenRanks(std::string_view line) {
  const auto words = NcclWords(line, false);
  if (words.size() < 3 || words[0] != "#" || words.back() != "ranks") return std::nullopt;
  const auto count = NcclNumber(words[words.size() - 2]);
  if (!count || *count < 1 || *count > 1e9) return std::nullopt;
  return static_cast<uint32_t>(*count);
}
// ---- Lines --------------------------------------------------------------------------------------

class LogReader {
 public:
  explicit LogReader(const std::string& file) : file_(file) {}

  void ReadLine(std::string_view framed) {
    ++number_;
    const std::string plain = WithoutFrame(framed);
    const std::string_view line = plain;
    if (line.empty()) return;
    if (const auto heading = ReadNcclHeading(line)) return Begin(*heading);
    if (in_section_ && rows().empty() && ReadNcclUnits(line, section().columns)) return;
    if (ReadNcclsOwnLine(line)) return;
    if (const auto program = ProgramIn(line)) {
      TakeName(*program, line);
      if (!in_section_ || !section().columns.has_commas) return;
    }
    if (line.starts_with('#')) return ReadComment(line);
    if (in_section_) ReadRowOrRest(line);
  }

  std::vector<NcclSection> Finish() {
    GiveUpPartial();
    if (sections_.empty())
      throw Error({file_, 0, ""},
                  "found no table of nccl-tests: no line names the columns size and time");
    sections_.erase(std::remove_if(sections_.begin(), sections_.end(),
                                   [](const NcclSection& section) { return section.rows.empty(); }),
                    sections_.end());
    if (sections_.empty())
      throw Error({file_, 0, ""}, "found the columns of nccl-tests, but no row of figures below");
    return std::move(sections_);
  }

  std::vector<std::string> remarks;

 private:
  // A row that NCCL printed into.
  struct PartialRow {
    int line = 0;
    std::vector<std::string> words;
  };

  [[noreturn]] void Fail(int line, const std::string& message) const {
    throw Error({file_, line, ""}, message);
  }
  NcclSection& section() { return sections_.back(); }
  std::vector<NcclLogRow>& rows() { return sections_.back().rows; }

  void Begin(const NcclColumns& columns) {
    GiveUpPartial();
    is_rest_ = false;
    NcclSection next;
    // What is not repeated stays as before.
    if (!sections_.empty()) {
      if (rows().empty()) {
        next = std::move(section());  // named twice
        sections_.pop_back();
      } else {
        next.ranks = section().ranks;
        next.written_ranks = section().written_ranks;
      }
    }
    if (next_program_) next.program = next_program_;
    if (!next_ranks_.groups.empty()) next.ranks = std::move(next_ranks_);
    if (next_written_ranks_) next.written_ranks = next_written_ranks_;
    next_program_.reset();
    next_ranks_ = {};
    next_written_ranks_.reset();
    next.line = number_;
    next.columns = columns;
    sections_.push_back(std::move(next));
    in_section_ = true;
  }

  // A line above the columns belongs to the next table, one below them to this table; once there
  // are rows, it is the end of this table or the beginning of the next.
  bool IsOfThisTable() { return in_section_ && rows().empty(); }

  void TakeName(const NcclProgram& program, std::string_view line) {
    const bool ends = line.find("concluded") != std::string_view::npos;
    if (ends && !in_section_) return;
    if (ends || IsOfThisTable()) {
      if (!section().program) section().program = program;
    } else {
      next_program_ = program;
    }
  }

  void ReadComment(std::string_view line) {
    (IsOfThisTable() ? section().ranks : next_ranks_).Add(line);
    if (const auto ranks = WrittenRanks(line)) {
      auto& written = IsOfThisTable() ? section().written_ranks : next_written_ranks_;
      if (!written) written = ranks;
    }
  }

  // "node0:123:456 [0] NCCL INFO ...", perhaps behind the beginning of a row.
  bool ReadNcclsOwnLine(std::string_view line) {
    size_t at = std::string_view::npos;
    for (const std::string_view level : {"NCCL INFO", "NCCL WARN", "NCCL TRACE", "NCCL ABORT"})
      at = std::min(at, line.find(level));
    if (at == std::string_view::npos || line.starts_with('#')) return false;
    if (!in_section_) return true;
    std::vector<std::string_view> words = NcclWords(line.substr(0, at), false);
    if (!words.empty() && words.back().starts_with('[')) words.pop_back();  // the device
    if (words.empty()) return true;
    const std::string_view process = words.back();
    words.pop_back();
    const size_t column = (partial_ ? partial_->words.size() : 0) + words.size();
    if (const auto cell = CellBefore(process, column, section().columns); !cell.empty())
      words.push_back(cell);
    if (!words.empty()) {
      // "-1[0]": a launcher's mark for the next line.
      const size_t mark = words.back().find('[');
      if (mark != std::string_view::npos) words.back() = words.back().substr(0, mark);
      if (words.back().empty()) words.pop_back();
    }
    if (!words.empty()) TakePart(words);
    return true;
  }

  bool BeginsRow(const std::vector<std::string_view>& words) {
    const NcclColumns& columns = section().columns;
    return words.size() > *columns.size && NcclSize(words[*columns.size], columns.size_unit) &&
           (!columns.type || words.size() <= *columns.type || NcclTypeSize(words[*columns.type]));
  }

  static bool AreFigures(const std::vector<std::string_view>& words) {
    return std::all_of(words.begin(), words.end(), [](std::string_view word) {
      return word == "N/A" || NcclNumber(word).has_value();
    });
  }

  void TakePart(const std::vector<std::string_view>& words) {
    const bool goes_on = (partial_ || is_rest_) && AreFigures(words);
    if (!goes_on) {
      if (!BeginsRow(words)) return;
      GiveUpPartial();
      is_rest_ = false;
      partial_ = PartialRow{number_, {}};
    }
    if (!partial_) return;  // the rest of a row that is already known
    for (const std::string_view word : words) partial_->words.emplace_back(word);
    FinishPartial();
  }

  // Done as soon as its first figures are there.
  void FinishPartial() {
    const NcclColumns& columns = section().columns;
    size_t needed = *columns.size;
    for (const auto& column :
         {columns.time, columns.algorithm_bandwidth, columns.bus_bandwidth, columns.wrong})
      if (column) needed = std::max(needed, *column);
    std::vector<std::string_view> words(partial_->words.begin(), partial_->words.end());
    const bool is_blank = columns.redop && words.size() > *columns.redop &&
                          NcclNumber(words[*columns.redop]).has_value();
    if (is_blank)
      words.insert(words.begin() + static_cast<ptrdiff_t>(*columns.redop), std::string_view());
    if (words.size() <= needed) return;
    const PartialRow row = std::move(*partial_);
    partial_.reset();
    is_rest_ = true;
    AddRow(row.line, words);
  }

  void GiveUpPartial() {
    if (!partial_) return;
    remarks.push_back(
        fmt::format("{}:{}: the row breaks off after {} of {} columns and is left out", file_,
                    partial_->line, partial_->words.size(), section().columns.count_of_columns));
    partial_.reset();
  }

  void ReadRowOrRest(std::string_view line) {
    const NcclColumns& columns = section().columns;
    const auto words = NcclWords(line, columns.has_commas);
    const bool is_whole = NcclCells(words, columns).has_value() && BeginsRow(words);
    if ((partial_ || is_rest_) && !is_whole && AreFigures(words)) return TakePart(words);
    const auto size = words.size() > *columns.size
                          ? NcclSize(words[*columns.size], columns.size_unit)
                          : std::optional<Bytes>();
    const bool is_number =
        words.size() > *columns.size && NcclNumber(words[*columns.size]).has_value();
    if (!columns.has_commas && !is_number && !size) return;  // a launcher's chatter
    if (!size)
      Fail(number_, fmt::format("found \"{}\", expected a row that begins with a size in bytes",
                                line.substr(0, 60)));
    const auto cells = NcclCells(words, columns);
    if (!cells)
      Fail(number_, fmt::format("found {} columns, expected {} as named above", words.size(),
                                columns.count_of_columns));
    GiveUpPartial();
    is_rest_ = false;
    AddRow(number_, *cells);
  }

  void AddRow(int line, const std::vector<std::string_view>& cells) {
    const NcclColumns& columns = section().columns;
    const auto cell = [&](const std::optional<size_t>& column) -> std::string_view {
      return column && *column < cells.size() ? cells[*column] : std::string_view();
    };
    const auto figure = [&](const std::optional<size_t>& column,
                            double unit) -> std::optional<double> {
      if (!column) return std::nullopt;
      const auto value = NcclNumber(cell(column));
      if (!value || *value < 0)
        Fail(line, fmt::format("found {} in column {}, expected a number", QuotedJson(cell(column)),
                               *column + 1));
      if (*value == 0) return std::nullopt;  // rounded away
      return *value * unit;
    };
    NcclLogRow row;
    row.line = line;
    row.bytes = *NcclSize(cell(columns.size), columns.size_unit);
    // nccl-tests prints them for sizes below a rank's share.
    if (row.bytes == Bytes(0)) return;
    row.time = figure(columns.time, 1);
    row.algorithm_bandwidth = figure(columns.algorithm_bandwidth, columns.bandwidth_unit);
    row.bus_bandwidth = figure(columns.bus_bandwidth, columns.bandwidth_unit);
    if (const auto count = NcclSize(cell(columns.count), 1)) row.count = count->value();
    row.type_size = NcclTypeSize(cell(columns.type)).value_or(0);
    row.reduction = cell(columns.redop);
    row.root = NcclNumber(cell(columns.root)).value_or(-1);
    if (columns.wrong) {
      row.is_checked = NcclNumber(cell(columns.wrong)).has_value();
      row.is_checked_in_place =
          columns.second > 0 && NcclNumber(cell(*columns.wrong + columns.second)).has_value();
    }
    rows().push_back(std::move(row));
  }

  const std::string& file_;
  int number_ = 0;
  bool in_section_ = false;
  std::vector<NcclSection> sections_;
  std::optional<NcclProgram> next_program_;
  NcclListedRanks next_ranks_;
  std::optional<uint32_t> next_written_ranks_;
  std::optional<PartialRow> partial_;
  bool is_rest_ = false;  // figures alone on a line belong to a row that is already known
};
template <typename Function>
void ForEachLine(std::string_view text, Function function) {
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    if (!function(text.substr(begin, end - begin))) return;
    begin = end + 1;
  }
}

}  // namespace

void NcclListedRanks::Add(std::string_view line) {
  if (line.starts_with('#')) line.remove_prefix(1);
  const auto words = NcclWords(line, false);
  if (words.size() < 3 || words[0] != "Rank") return;
  const auto rank = NcclNumber(words[1]);
  const auto group = words[2] == "Group" && words.size() > 3 ? NcclNumber(words[3]) : 0;
  constexpr double kMost = 1e9;
  if (!rank || !group || *rank < 0 || *rank > kMost || *group < 0 || *group > kMost) return;
  groups.emplace(static_cast<uint32_t>(*rank), static_cast<uint32_t>(*group));
}

std::vector<std::vector<uint32_t>> NcclListedRanks::Groups() const {
  std::map<uint32_t, std::vector<uint32_t>> members;
  for (const auto& [rank, group] : groups) members[group].push_back(rank);
  std::vector<std::vector<uint32_t>> all;
  for (auto& [group, ranks] : members) all.push_back(std::move(ranks));
  return all;
}

NcclSections ReadNcclSections(std::string_view text, const std::string& file) {
  LogReader reader(file);
  ForEachLine(text, [&](std::string_view line) {
    reader.ReadLine(line);
    return true;
  });
  NcclSections read;
  read.sections = reader.Finish();
  read.remarks = std::move(reader.remarks);
  return read;
}

bool NamesNcclColumns(std::string_view text) {
  bool found = false;
  ForEachLine(text, [&](std::string_view line) {
    found = ReadNcclHeading(WithoutFrame(line)).has_value();
    return !found;
  });
  return found;
}

}  // namespace rehearse
