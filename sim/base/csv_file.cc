#include "sim/base/csv_file.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/base/error.h"
#include "sim/base/input_file.h"

namespace rehearse {
namespace {

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

std::string WithoutBlanks(std::string_view text) {
  while (!text.empty() && IsBlank(text.front())) text.remove_prefix(1);
  while (!text.empty() && IsBlank(text.back())) text.remove_suffix(1);
  return std::string(text);
}

constexpr size_t kLongestColumn = 100;  // bytes in a name
// As in names and paths of a scenario.
bool IsOfColumns(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-';
}

bool IsUtf8Text(std::string_view text) {
  try {
    nlohmann::json(std::string(text)).dump();
    return true;
  } catch (const nlohmann::json::type_error&) {
    return false;
  }
}

class CsvParser {
 public:
  CsvParser(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  CsvFile Parse() {
    CsvFile file;
    file.name = name_;
    RefuseOtherBytes();
    if (text_.substr(0, 3) == "\xef\xbb\xbf") at_ = 3;  // a byte order mark
    while (SkipToRow()) {
      if (file.columns.empty() && (text_[at_] == '{' || text_[at_] == '['))
        Fail(line_, "found JSON, expected a table: names of columns, then rows, with commas");
      CsvRow row{line_, Cells()};
      if (file.columns.empty()) {
        file.line = row.line;
        CheckColumns(row);
        file.columns = std::move(row.cells);
        continue;
      }
      if (row.cells.size() != file.columns.size()) {
        Fail(row.line, fmt::format("found {} cells, expected {}, one per column", row.cells.size(),
                                   file.columns.size()));
      }
      file.rows.push_back(std::move(row));
    }
    if (file.columns.empty()) Fail(0, "found no line of column names");
    return file;
  }

 private:
  [[noreturn]] void Fail(int line, const std::string& message) const {
    throw Error({name_, line, ""}, message);
  }

  // Bytes that no table has: then it is something else, and nothing of it is shown.
  void RefuseOtherBytes() const {
    const bool is_utf8 = IsUtf8Text(text_);
    int number = 1;
    for (size_t begin = 0; begin < text_.size(); ++number) {
      const size_t end = std::min(text_.find('\n', begin), text_.size());
      const std::string_view line = text_.substr(begin, end - begin);
      for (const char c : line) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte < ' ' && c != '\r' && c != '\t') {
          Fail(number,
               fmt::format("found the byte 0x{:02x}, expected a CSV file: this is not text", byte));
        }
      }
      if (!is_utf8 && !IsUtf8Text(line))
        Fail(number, "found bytes that are not UTF-8, expected a text in UTF-8");
      begin = end + 1;
    }
  }

  // Skips empty lines and comments; false at the end.
  bool SkipToRow() {
    while (at_ < text_.size()) {
      size_t end = text_.find('\n', at_);
      if (end == std::string_view::npos) end = text_.size();
      const std::string line = WithoutBlanks(text_.substr(at_, end - at_));
      if (!line.empty() && line.front() != '#') return true;
      at_ = std::min(end + 1, text_.size());
      ++line_;
    }
    return false;
  }

  // The cells of one row; moves past its line break.
  std::vector<std::string> Cells() {
    std::vector<std::string> cells;
    for (;;) {
      cells.push_back(Cell());
      if (at_ == text_.size()) return cells;
      if (text_[at_++] == '\n') {
        ++line_;
        return cells;
      }
    }
  }

  std::string Cell() {
    while (at_ < text_.size() && IsBlank(text_[at_])) ++at_;
    if (at_ < text_.size() && text_[at_] == '"') return QuotedCell();
    const size_t begin = at_;
    at_ = std::min(text_.find_first_of(",\n", begin), text_.size());
    return WithoutBlanks(text_.substr(begin, at_ - begin));
  }

  std::string QuotedCell() {
    const int begin = line_;
    std::string cell;
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == '\n') ++line_;
      if (text_[at_] != '"') {
        cell += text_[at_];
        continue;
      }
      if (at_ + 1 < text_.size() && text_[at_ + 1] == '"') {
        cell += text_[++at_];
        continue;
      }
      ++at_;
      while (at_ < text_.size() && IsBlank(text_[at_])) ++at_;
      if (at_ < text_.size() && text_[at_] != ',' && text_[at_] != '\n')
        Fail(line_, "found text after a closing quote, expected a comma or the end of the line");
      return cell;
    }
    Fail(begin, "found a quote that is never closed");
  }

  void CheckColumns(const CsvRow& row) const {
    for (size_t i = 0; i < row.cells.size(); ++i) {
      const size_t size = row.cells[i].size();
      if (size == 0) Fail(row.line, fmt::format("column {} has no name", i + 1));
      if (size > kLongestColumn) {
        Fail(row.line, fmt::format("column {} has a name of {} bytes, expected at most {}", i + 1,
                                   size, kLongestColumn));
      }
      const auto other = std::find_if_not(row.cells[i].begin(), row.cells[i].end(), IsOfColumns);
      if (other != row.cells[i].end()) {
        Fail(row.line, fmt::format("column {} has a name with '{}', expected letters, digits, '.', "
                                   "'_' and '-'",
                                   i + 1, *other));
      }
      for (size_t j = 0; j < i; ++j) {
        if (row.cells[i] == row.cells[j])
          Fail(row.line, fmt::format("two columns are called \"{}\"", row.cells[i]));
      }
    }
  }

  const std::string_view text_;
  const std::string& name_;
  size_t at_ = 0;
  int line_ = 1;
};

}  // namespace

CsvFile ParseCsvFile(std::string_view text, const std::string& name) {
  return CsvParser(text, name).Parse();
}

CsvFile ReadCsvFile(const std::string& path) {
  return ParseCsvFile(ReadInputFile(path, "CSV file"), InputName(path));
}

}  // namespace rehearse
