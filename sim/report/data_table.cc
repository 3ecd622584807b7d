#include "sim/report/data_table.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/base/error.h"
#include "sim/base/visible_text.h"

namespace rehearse {
namespace {

using Json = nlohmann::ordered_json;

// A spreadsheet runs text that begins like a formula, and names may come from anybody's files. A
// quote before it makes it text there.
bool IsRunBySpreadsheets(const std::string& text) {
  return !text.empty() && std::string_view("=+-@\t\r").find(text.front()) != std::string_view::npos;
}

std::string CsvText(const std::string& text) {
  std::string visible = VisibleText(text);
  if (IsRunBySpreadsheets(text)) visible.insert(visible.begin(), '\'');
  if (visible.find_first_of(",\"\r\n") == std::string::npos) return visible;
  std::string quoted = "\"";
  for (const char c : visible) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

// Bytes that are not UTF-8 become U+FFFD: a JSON text cannot hold them.
std::string JsonText(const std::string& text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

void AddLeaves(const Json& json, const std::string& path,
               std::vector<std::pair<std::string, const Json*>>* leaves) {
  if (json.is_object()) {
    const std::string before = path.empty() ? "" : path + ".";
    for (const auto& [key, value] : json.items()) AddLeaves(value, before + key, leaves);
  } else if (!json.is_array() && !json.is_null()) {
    leaves->emplace_back(path, &json);
  }
}

CellKind KindOf(const Json& json) {
  if (json.is_boolean()) return CellKind::kTruth;
  if (json.is_number_integer()) return CellKind::kInteger;
  return json.is_number() ? CellKind::kNumber : CellKind::kText;
}

CellKind Joined(CellKind a, CellKind b) {
  const auto is_number = [](CellKind kind) {
    return kind == CellKind::kNumber || kind == CellKind::kInteger;
  };
  if (a == b) return a;
  return is_number(a) && is_number(b) ? CellKind::kNumber : CellKind::kText;
}

}  // namespace

DataCell::DataCell(double value) {
  if (std::isfinite(value)) value_ = value;
}

bool DataCell::Fits(CellKind kind) const {
  switch (kind) {
    case CellKind::kText:
      return IsNothing() || std::holds_alternative<std::string>(value_);
    case CellKind::kNumber:
      return IsNothing() || std::holds_alternative<double>(value_) ||
             std::holds_alternative<int64_t>(value_);
    case CellKind::kInteger:
      return IsNothing() || std::holds_alternative<int64_t>(value_);
    case CellKind::kTruth:
      return IsNothing() || std::holds_alternative<bool>(value_);
  }
  CHECK(false);
}

std::string DataCell::AsCsv() const {
  if (const auto* text = std::get_if<std::string>(&value_)) return CsvText(*text);
  return IsNothing() ? "" : AsJson();
}

std::string DataCell::AsJson() const {
  if (IsNothing()) return "null";
  if (const auto* truth = std::get_if<bool>(&value_)) return *truth ? "true" : "false";
  if (const auto* integer = std::get_if<int64_t>(&value_)) return fmt::format("{}", *integer);
  if (const auto* number = std::get_if<double>(&value_)) return fmt::format("{}", *number);
  return JsonText(std::get<std::string>(value_));
}

Json DataCell::ToJson() const {
  if (IsNothing()) return nullptr;
  if (const auto* truth = std::get_if<bool>(&value_)) return *truth;
  if (const auto* integer = std::get_if<int64_t>(&value_)) return *integer;
  if (const auto* number = std::get_if<double>(&value_)) return *number;
  return std::get<std::string>(value_);
}

DataTable::DataTable(std::vector<DataColumn> columns) : columns_(std::move(columns)) {
  std::set<std::string> names;
  for (DataColumn& column : columns_) {
    const std::string wanted = column.name;
    for (int i = 2; !names.insert(column.name).second; ++i)
      column.name = fmt::format("{}_{}", wanted, i);
  }
}

void DataTable::Add(std::vector<DataCell> row) {
  CHECK_EQ(row.size(), columns_.size());
  for (size_t i = 0; i < row.size(); ++i) CHECK(row[i].Fits(columns_[i].kind));
  rows_.push_back(std::move(row));
}

std::string ToCsv(const DataTable& table) {
  std::string text;
  const auto add = [&](size_t i, const std::string& cell) { text += (i == 0 ? "" : ",") + cell; };
  for (size_t i = 0; i < table.columns().size(); ++i) add(i, CsvText(table.columns()[i].name));
  text += "\n";
  for (const std::vector<DataCell>& row : table.rows()) {
    for (size_t i = 0; i < row.size(); ++i) add(i, row[i].AsCsv());
    text += "\n";
  }
  return text;
}

std::string ToJsonLines(const DataTable& table) {
  std::vector<std::string> keys;
  for (const DataColumn& column : table.columns()) keys.push_back(JsonText(column.name));
  std::string text;
  for (const std::vector<DataCell>& row : table.rows()) {
    for (size_t i = 0; i < row.size(); ++i)
      text += (i == 0 ? "{" : ", ") + keys[i] + ": " + row[i].AsJson();
    text += "}\n";
  }
  return text;
}

Json ToJson(const DataTable& table) {
  Json array = Json::array();
  for (const std::vector<DataCell>& row : table.rows()) {
    Json& object = array.emplace_back(Json::object());
    for (size_t i = 0; i < row.size(); ++i) object[table.columns()[i].name] = row[i].ToJson();
  }
  return array;
}

CellKind KindOfAll(const std::vector<Json>& values) {
  std::optional<CellKind> all;
  for (const Json& value : values) {
    if (!value.is_null()) all = all ? Joined(*all, KindOf(value)) : KindOf(value);
  }
  return all.value_or(CellKind::kText);
}

DataCell CellOf(const Json& value, CellKind kind) {
  if (value.is_null()) return {};
  switch (kind) {
    case CellKind::kTruth:
      return value.get<bool>();
    case CellKind::kInteger:
      return value.get<int64_t>();
    case CellKind::kNumber:
      return value.get<double>();
    case CellKind::kText:
      return value.is_string() ? value.get<std::string>() : value.dump();
  }
  CHECK(false);
}

DataTable FlatTable(const std::vector<Json>& objects) {
  std::vector<std::string> paths;
  std::map<std::string, std::vector<Json>> values;  // by path, then row
  for (size_t i = 0; i < objects.size(); ++i) {
    std::vector<std::pair<std::string, const Json*>> leaves;
    AddLeaves(objects[i], "", &leaves);
    for (const auto& [path, leaf] : leaves) {
      const auto [found, is_new] = values.try_emplace(path, objects.size());
      if (is_new) paths.push_back(path);
      found->second[i] = *leaf;
    }
  }
  std::vector<DataColumn> columns;
  columns.reserve(paths.size());
  for (const std::string& path : paths) columns.push_back({path, KindOfAll(values.at(path))});
  DataTable table(columns);
  for (size_t i = 0; i < objects.size(); ++i) {
    std::vector<DataCell> row;
    row.reserve(paths.size());
    for (size_t column = 0; column < paths.size(); ++column)
      row.push_back(CellOf(values.at(paths[column])[i], columns[column].kind));
    table.Add(std::move(row));
  }
  return table;
}

}  // namespace rehearse
