#include "tools/foreign/jobs/job_table.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/input_file.h"
#include "sim/base/json_parse.h"
#include "sim/base/visible_text.h"
#include "tools/foreign/jobs/date_text.h"

namespace rehearse {
namespace {

constexpr size_t kLongestCell = size_t{1} << 16;
constexpr size_t kMostCells = 1000;

constexpr std::string_view kNothing[] = {"nan",  "NaN",  "NaT", "None",    "none",
                                         "null", "NULL", "NA",  "Unknown", "\\N"};

bool IsPadding(char c) { return c == ' ' || c == '\t' || c == '\r'; }

bool IsAscii(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c < '\x7f'; });
}

std::string NamesOf(std::span<const JobColumn> columns) {
  std::string names;
  for (const JobColumn& column : columns)
    if (column.is_needed) names += (names.empty() ? "" : ", ") + std::string(column.name);
  return names;
}

}  // namespace

JobTable::JobTable(const std::string& path, std::span<const JobColumn> columns,
                   const std::string& what)
    : JobTable(path, columns, what, {}) {}

JobTable::JobTable(const std::string& path, std::span<const JobColumn> columns,
                   const std::string& what, const WithoutNames& without)
    : name_(InputName(path)),
      text_(path == kStandardInput ? "/dev/stdin" : path),
      columns_(columns.begin(), columns.end()) {
  for (const char mark : {'\xef', '\xbb', '\xbf'})  // a byte order mark
    if (!text_.AtEnd() && text_.Current() == mark) text_.Next();
  const bool has_row = ReadRow();
  width_ = count_;
  if (has_row && FindColumns()) return;
  const auto told = std::find(without.columns.begin(), without.columns.end(), without.told_by);
  const bool is_job = has_row && count_ == without.columns.size() &&
                      told != without.columns.end() &&
                      std::count(without.values.begin(), without.values.end(),
                                 cells_[static_cast<size_t>(told - without.columns.begin())]) > 0;
  if (!is_job)
    Fail(fmt::format("expected {}, whose first line names its columns: {}", what,
                     NamesOf(columns_)));
  for (size_t i = 0; i < columns_.size(); ++i) {
    const auto at = std::find(without.columns.begin(), without.columns.end(),
                              std::string_view(columns_[i].name));
    places_[i] =
        at == without.columns.end() ? kNone : static_cast<size_t>(at - without.columns.begin());
  }
  is_pending_ = true;
}

bool JobTable::FindColumns() {
  places_.assign(columns_.size(), kNone);
  for (size_t i = 0; i < columns_.size(); ++i) {
    const auto end = cells_.begin() + static_cast<ptrdiff_t>(count_);
    const auto at = std::find(cells_.begin(), end, columns_[i].name);
    if (at != end) places_[i] = static_cast<size_t>(at - cells_.begin());
    if (at == end && columns_[i].is_needed) return false;
  }
  return true;
}

bool JobTable::Next() {
  if (is_pending_) {
    is_pending_ = false;
    return true;
  }
  if (!ReadRow()) return false;
  if (count_ != width_)
    Fail(fmt::format("found {} cells, expected {} as in the first line", count_, width_));
  return true;
}

const std::string& JobTable::Text(size_t column) const {
  static const std::string missing;
  const size_t place = places_[column];
  if (place == kNone) return missing;
  const std::string& cell = cells_[place];
  return std::find(std::begin(kNothing), std::end(kNothing), cell) == std::end(kNothing) ? cell
                                                                                         : missing;
}

std::optional<double> JobTable::Number(size_t column, double most) const {
  const std::string& cell = Text(column);
  if (cell.empty()) return std::nullopt;
  double value = 0;
  const char* const end = cell.data() + cell.size();
  const auto [next, problem] = std::from_chars(cell.data(), end, value);
  if (problem != std::errc() || next != end || !(value >= 0 && value <= most))
    Expected(column, fmt::format("a number from 0 to {}", most));
  return value;
}

uint32_t JobTable::Whole(size_t column, uint32_t most) const {
  const double value = Number(column, most).value_or(0);
  if (value != std::floor(value)) Expected(column, fmt::format("a whole number up to {}", most));
  return static_cast<uint32_t>(value);
}

std::optional<double> JobTable::Date(size_t column) const {
  const std::string& cell = Text(column);
  if (cell.empty()) return std::nullopt;
  const std::optional<DatedTime> time = ParseDate(cell);
  if (!time) Expected(column, "a date and time such as 2020-06-09 18:41:01");
  return time->seconds;
}

void JobTable::Expected(size_t column, const std::string& expected) const {
  Fail(fmt::format("{}: found {}, expected {}", columns_[column].name, QuotedJson(Text(column)),
                   expected));
}

void JobTable::Fail(const std::string& message) const {
  throw Error({name_, row_line_, ""}, message);
}

bool JobTable::ReadRow() {
  for (;; text_.Next()) {
    if (text_.AtEnd()) return false;
    if (text_.Current() == '\n') ++line_;
    if (text_.Current() != '\n' && !IsPadding(text_.Current())) break;
  }
  row_line_ = line_;
  for (count_ = 0; count_ < kMostCells;) {
    if (count_ == cells_.size()) cells_.emplace_back();
    std::string& cell = cells_[count_++];
    cell.clear();
    ReadCell(&cell);
    if (!IsAscii(cell)) cell = VisibleText(cell);
    if (text_.AtEnd()) return true;
    const char separator = text_.Current();
    text_.Next();
    if (separator == '\n') {
      ++line_;
      return true;
    }
  }
  Fail(fmt::format("found more than {} cells in a row", kMostCells));
}

// Up to the comma or the end of the line.
void JobTable::ReadCell(std::string* cell) {
  while (!text_.AtEnd() && IsPadding(text_.Current())) text_.Next();
  if (!text_.AtEnd() && text_.Current() == '"') return ReadQuoted(cell);
  for (; !text_.AtEnd() && text_.Current() != ',' && text_.Current() != '\n'; text_.Next()) {
    if (cell->size() == kLongestCell)
      Fail(fmt::format("found a cell of more than {} bytes", kLongestCell));
    *cell += text_.Current();
  }
  while (!cell->empty() && IsPadding(cell->back())) cell->pop_back();
}

void JobTable::ReadQuoted(std::string* cell) {
  text_.Next();
  for (;; text_.Next()) {
    if (text_.AtEnd()) Fail("found a quote that is never closed");
    if (text_.Current() == '"') {
      text_.Next();
      if (text_.AtEnd() || text_.Current() != '"') break;  // two of them stand for one
    }
    if (text_.Current() == '\n') ++line_;
    if (cell->size() == kLongestCell)
      Fail(fmt::format("found a cell of more than {} bytes", kLongestCell));
    *cell += text_.Current();
  }
  while (!text_.AtEnd() && IsPadding(text_.Current())) text_.Next();
  if (!text_.AtEnd() && text_.Current() != ',' && text_.Current() != '\n')
    Fail("found text after a closing quote, expected a comma or the end of the line");
}

}  // namespace rehearse
