// Rows of the table become scenarios.
#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "scenarios/sweeping/validation.h"
#include "sim/base/error.h"
#include "sim/base/json_parse.h"
#include "sim/base/known_names.h"
#include "sim/base/units.h"

namespace rehearse {
namespace {

enum class Column : uint8_t {
  kName,
  kSource,
  kGroup,
  kNote,
  kStep,
  kTokens,
  kMfu,
  kMemory,
  kReserved,
  kPath,  // any other name
};
const std::vector<std::string>& OwnColumns() {
  static const std::vector<std::string> names = {"name", "source", "group",
                                                 "note", "step",   "tokens_per_second",
                                                 "mfu",  "memory", "memory_reserved"};
  return names;
}

Column ColumnOf(const std::string& name) {
  const auto& names = OwnColumns();
  const auto found = std::find(names.begin(), names.end(), name);
  return static_cast<Column>(found - names.begin());
}

// The first key of a path must be one of a scenario's; otherwise a column's name is misspelt.
void CheckColumn(const CsvFile& file, const std::string& column) {
  const std::vector<std::string> keys = {"cluster",   "model",       "training",     "strategy",
                                         "pipeline",  "software",    "placement",    "edits",
                                         "simulator", "calibration", "device_points"};
  const std::string first = column.substr(0, column.find('.'));
  const bool is_path = column.find('=') == std::string::npos;
  if (is_path && std::find(keys.begin(), keys.end(), first) != keys.end()) return;
  std::vector<std::string> known = OwnColumns();
  known.insert(known.end(), keys.begin(), keys.end());
  throw Error({file.name, file.line, ""},
              fmt::format("there is no column \"{}\"{}", column,
                          KnownNames(column, known, "rehearse help validate")));
}

class RowReader {
 public:
  RowReader(const CsvFile& file, const CsvRow& row) : file_(file), row_(row) {}

  MeasuredRow Read(const std::vector<std::string>& changes) {
    MeasuredRow measured;
    measured.line = row_.line;
    measured.document = Document();
    for (size_t i = 0; i < file_.columns.size(); ++i) {
      if (!row_.cells[i].empty()) ReadCell(i, &measured);
    }
    if (measured.name.empty()) Fail("the row has no \"name\"");
    SetText("name", measured.name, &measured.document);
    for (const std::string& change : changes) measured.document.Set(change);
    if (measured.memory && measured.memory_reserved)
      Fail("found \"memory\" and \"memory_reserved\", expected one of them");
    const int figures =
        (measured.step ? 1 : 0) + (measured.tokens_per_second ? 1 : 0) + (measured.mfu ? 1 : 0);
    if (figures != 1) {
      Fail(fmt::format("found {} of \"step\", \"tokens_per_second\" and \"mfu\", expected one",
                       figures));
    }
    return measured;
  }

 private:
  [[noreturn]] void Fail(const std::string& message) const {
    throw Error({file_.name, row_.line, ""}, message);
  }

  // An empty document with the row's place, so that missing keys are reported at this line.
  JsonDocument Document() const {
    return JsonDocument::FromValue(nlohmann::json::object(), {file_.name, row_.line, ""});
  }

  static void SetText(const std::string& path, const std::string& text, JsonDocument* document,
                      const Place& by = {}) {
    document->Set(fmt::format("{}={}", path, nlohmann::json(text).dump()), by);
  }

  template <typename Parse>
  auto Read(const std::string& column, Parse parse) const {
    try {
      return parse();
    } catch (const Error& error) {
      Fail(fmt::format("{}: {}", column, error.what()));
    }
  }

  [[noreturn]] void FailCell(const std::string& column, const std::string& expected) const {
    const auto at = std::find(file_.columns.begin(), file_.columns.end(), column);
    const std::string& cell = row_.cells[static_cast<size_t>(at - file_.columns.begin())];
    Fail(fmt::format("{}: found {}, expected {}", column, QuotedJson(cell), expected));
  }

  double Number(const std::string& column, const std::string& cell, double most,
                const std::string& expected) const {
    const nlohmann::json value = nlohmann::json::parse(cell, nullptr, false);
    if (!value.is_number()) FailCell(column, expected);
    const auto number = value.get<double>();
    if (!(number > 0 && number <= most)) FailCell(column, expected);
    return number;
  }

  void ReadCell(size_t index, MeasuredRow* measured) const {
    const std::string& column = file_.columns[index];
    const std::string& cell = row_.cells[index];
    switch (ColumnOf(column)) {
      case Column::kName:
        measured->name = cell;
        break;
      case Column::kSource:
        measured->source = cell;
        break;
      case Column::kGroup:
        measured->group = cell;
        break;
      case Column::kNote:
        break;
      case Column::kStep:
        measured->step = Read(column, [&] { return ParseDuration(cell); });
        if (!(*measured->step > Seconds(0))) FailCell(column, "more than 0");
        break;
      case Column::kTokens:
        measured->tokens_per_second = Number(column, cell, 1e18, "a number of tokens per second");
        break;
      case Column::kMfu:
        measured->mfu = Number(column, cell, 1, "a share of the peak, more than 0 and at most 1");
        break;
      case Column::kMemory:
        measured->memory = Read(column, [&] { return ParseSize(cell); });
        break;
      case Column::kReserved:
        measured->memory_reserved = Read(column, [&] { return ParseSize(cell); });
        break;
      case Column::kPath:
        try {
          measured->document.Set(fmt::format("{}={}", column, cell), {file_.name, row_.line, ""});
        } catch (const Error& error) {
          Fail(fmt::format("{}: {}", column, error.what()));
        }
        break;
    }
  }

  const CsvFile& file_;
  const CsvRow& row_;
};

}  // namespace

ValidationTable ReadValidationTable(const CsvFile& file, const std::vector<std::string>& changes) {
  for (const std::string& column : file.columns) {
    if (ColumnOf(column) == Column::kPath) CheckColumn(file, column);
  }
  ValidationTable table;
  table.name = file.name;
  std::map<std::string, int> lines;
  for (const CsvRow& row : file.rows) {
    table.rows.push_back(RowReader(file, row).Read(changes));
    const std::string& name = table.rows.back().name;
    const auto [found, is_new] = lines.emplace(name, row.line);
    if (!is_new) {
      throw Error({file.name, row.line, ""},
                  fmt::format("a row is already called \"{}\", in line {}", name, found->second));
    }
  }
  if (table.rows.empty()) throw Error({file.name, 0, ""}, "found no rows below the column names");
  return table;
}

}  // namespace rehearse
