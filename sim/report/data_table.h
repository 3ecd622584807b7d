// Rows for other programs: columns that know what they hold, written as CSV or as one JSON object
// per line.
//
// A cell holds what its column is for, or nothing; never words where numbers belong, so that a
// reader gets numbers as numbers. Numbers are written in the shortest way that reads back as the
// same double.
//
// CSV is that of RFC 4180, with a line of column names, and lines that end in "\n"; an empty cell
// stands for nothing, true and false are words. As text goes to terminals too, anything they would
// obey is written out (sim/base/visible_text.h); text that begins with =, +, -, @, a tab or a
// carriage return, which a spreadsheet would run as a formula, gets a ' before it. In JSON, null
// stands for nothing, and text is as it is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace rehearse {

enum class CellKind : uint8_t { kText, kNumber, kInteger, kTruth };

class DataCell {
 public:
  // NOLINTBEGIN(google-explicit-constructor): rows are lists of plain values
  DataCell() = default;  // nothing
  DataCell(bool value) : value_(value) {}
  // Nothing if it is not finite: neither format has a word for that.
  DataCell(double value);
  DataCell(std::string text) : value_(std::move(text)) {}
  DataCell(std::string_view text) : value_(std::string(text)) {}
  DataCell(const char* text) : value_(std::string(text)) {}
  template <typename Integer, typename = std::enable_if_t<std::is_integral_v<Integer>>>
  DataCell(Integer value) : value_(static_cast<int64_t>(value)) {}
  template <typename Value>
  DataCell(const std::optional<Value>& value) {
    if (value) *this = DataCell(*value);
  }
  // NOLINTEND(google-explicit-constructor)

  bool IsNothing() const { return std::holds_alternative<std::monostate>(value_); }
  bool Fits(CellKind kind) const;
  std::string AsCsv() const;
  std::string AsJson() const;
  nlohmann::ordered_json ToJson() const;

 private:
  std::variant<std::monostate, bool, int64_t, double, std::string> value_;
};

struct DataColumn {
  std::string name;
  CellKind kind = CellKind::kText;
};

class DataTable {
 public:
  // A name already taken gets a number after it ("step_seconds_2"): names are keys.
  explicit DataTable(std::vector<DataColumn> columns);

  // CHECKs that there is a cell for each column, of its kind or nothing.
  void Add(std::vector<DataCell> row);

  const std::vector<DataColumn>& columns() const { return columns_; }
  const std::vector<std::vector<DataCell>>& rows() const { return rows_; }

 private:
  std::vector<DataColumn> columns_;
  std::vector<std::vector<DataCell>> rows_;
};

std::string ToCsv(const DataTable& table);
std::string ToJsonLines(const DataTable& table);
// The same objects in an array.
nlohmann::ordered_json ToJson(const DataTable& table);

// What a column of these values holds: whole numbers mixed with others are numbers; mixed kinds,
// lists and objects are text. Null stands for nothing and fits any kind.
CellKind KindOfAll(const std::vector<nlohmann::ordered_json>& values);
// The value in a column of this kind: text as it is, anything else in a text column as JSON.
DataCell CellOf(const nlohmann::ordered_json& value, CellKind kind);

// A row for each JSON object, and a column for each number, text or truth in one of them, in order
// of first appearance, named by its dotted path: "breakdown.idle_seconds". Lists and null are left
// out.
DataTable FlatTable(const std::vector<nlohmann::ordered_json>& objects);

}  // namespace rehearse
