#include "scenarios/sweeping/validation_report.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "scenarios/sweeping/families.h"
#include "sim/base/units.h"
#include "sim/report/svg.h"
#include "sim/report/text_page.h"

namespace rehearse {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kLongestRowName = 44;

std::string Signed(double share) { return fmt::format("{:+.1f} %", 100 * share); }
std::string Plain(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string OfAll(size_t part, size_t whole) {
  return whole == 0 ? "" : fmt::format("{} of {}", part, whole);
}

// What explains nothing is not shown.
constexpr double kMostFactor = 20;

// The share of the step, and the factor that alone would explain the error.
std::string PartText(const ValidatedRow& row, StepPart part) {
  const auto index = static_cast<size_t>(part);
  const double share = row.parts[index] / row.predicted;
  const std::string percent = fmt::format("{:.0f} %", 100 * share);
  const std::optional<double>& factor = row.factors[index];
  return factor && *factor <= kMostFactor ? fmt::format("{} {:.3g}x", percent, *factor) : percent;
}

constexpr std::array<StepPart, kStepParts> kAllParts = {
    StepPart::kGemm,     StepPart::kAttention,     StepPart::kMemory,
    StepPart::kLaunches, StepPart::kCommunication, StepPart::kIdle};

std::vector<std::string> GroupCells(const ValidatedGroup& group) {
  return {group.name,
          fmt::format("{}", group.rows.size()),
          Plain(group.mean),
          Plain(group.median),
          Signed(group.bias),
          fmt::format("{}", group.within),
          group.pairs == 0 ? ""
                           : fmt::format("{:.0f} % of {}",
                                         100 * Share(static_cast<double>(group.ordered),
                                                     static_cast<double>(group.pairs)),
                                         group.pairs),
          group.memory_rows == 0 ? ""
                                 : fmt::format("{}, worst {} ({})", Plain(group.memory_mean),
                                               Plain(group.memory_worst), group.memory_rows)};
}

const std::vector<std::string>& GroupHeader() {
  static const std::vector<std::string> header = {"device, software", "rows",         "mean error",
                                                  "median error",     "bias",         "within 10 %",
                                                  "orders right",     "memory, error"};
  return header;
}

std::vector<std::string> RowCells(const MeasuredRow& measured, const ValidatedRow& row) {
  std::vector<std::string> cells = {Shortened(measured.name, kLongestRowName), Print(row.measured),
                                    Print(row.predicted), Signed(row.error)};
  for (const StepPart part : kAllParts) cells.push_back(PartText(row, part));
  cells.push_back(row.memory_error
                      ? fmt::format("{} of {}, {}{}", Print(row.memory), Print(*measured.Memory()),
                                    Signed(*row.memory_error), row.fits ? "" : ", does not fit")
                  : row.fits ? ""
                             : fmt::format("does not fit: {} of {}", Print(row.memory_needed),
                                           Print(row.memory_capacity)));
  return cells;
}

std::vector<std::string> RowHeader() {
  std::vector<std::string> header = {"row", "measured", "predicted", "error"};
  for (const StepPart part : kAllParts) header.emplace_back(Name(part));
  header.emplace_back("memory of measured");
  return header;
}

// As wide as their widest cell, the first column left-aligned.
void AddColumns(Page& page, const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths(rows.front().size(), 0);
  for (const auto& row : rows)
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  for (size_t number = 0; number < rows.size(); ++number) {
    std::string line;
    for (size_t i = 0; i < rows[number].size(); ++i) {
      const std::string cell = VisibleText(rows[number][i]);
      line += i == 0 ? fmt::format("{:<{}}", cell, widths[i])
                     : fmt::format("  {:>{}}", cell, widths[i]);
    }
    if (number == 0) {
      page.Line("{}", page.pen(Ink::kBold, line));
    } else {
      page.Line("{}", line);
    }
  }
}

std::vector<std::vector<std::string>> GroupRows(const Validation& validation) {
  std::vector<std::vector<std::string>> rows = {GroupHeader()};
  for (const ValidatedGroup& group : validation.groups) rows.push_back(GroupCells(group));
  return rows;
}

// Empty if there is one family only.
std::vector<std::vector<std::string>> FamilyTable(const ValidationTable& table,
                                                  const Validation& validation) {
  const std::vector<ValidatedFamily> families = FamiliesOf(table, validation);
  if (families.empty()) return {};
  std::vector<std::vector<std::string>> rows = {
      {"source", "rows", "mean error", "bias", "left by the others: mean", "bias"}};
  for (const ValidatedFamily& family : families)
    rows.push_back({family.name, fmt::format("{}", family.rows), Plain(family.mean),
                    Signed(family.bias), Plain(family.left_mean), Signed(family.left_bias)});
  return rows;
}

std::vector<std::vector<std::string>> AllRows(const ValidationTable& table,
                                              const Validation& validation) {
  std::vector<std::vector<std::string>> rows = {RowHeader()};
  for (size_t i = 0; i < table.rows.size(); ++i)
    rows.push_back(RowCells(table.rows[i], validation.rows[i]));
  return rows;
}

std::string MarkdownOf(const std::vector<std::vector<std::string>>& rows) {
  std::string text;
  for (size_t i = 0; i < rows.size(); ++i) {
    text += fmt::format("| {} |\n", fmt::join(rows[i], " | "));
    if (i > 0) continue;
    text += "| ---";
    for (size_t column = 1; column < rows[i].size(); ++column) text += " | ---:";
    text += " |\n";
  }
  return text;
}

// The group of each row; "all" comes last and belongs to no row.
std::vector<size_t> GroupOfRows(const ValidationTable& table, const Validation& validation) {
  std::vector<size_t> groups(table.rows.size(), 0);
  for (size_t i = validation.groups.size(); i-- > 0;)
    for (const size_t row : validation.groups[i].rows) groups[row] = i;
  return groups;
}

Json NumberOrNull(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

Json GroupJson(const ValidatedGroup& group) {
  Json json = {{"name", group.name},
               {"rows", group.rows.size()},
               {"mean_error", group.mean},
               {"median_error", group.median},
               {"bias", group.bias},
               {"within_10_percent", group.within},
               {"pairs", group.pairs},
               {"pairs_in_order", group.ordered},
               {"memory_rows", group.memory_rows}};
  if (group.memory_rows > 0) {
    json["memory_mean_error"] = group.memory_mean;
    json["memory_worst_error"] = group.memory_worst;
    json["fit"] = group.memory_fits;
  }
  return json;
}

}  // namespace

std::string ToText(const ValidationTable& table, const Validation& validation, bool color) {
  Page page(color);
  page.Line("{}   {} rows", page.pen(Ink::kBold, VisibleText(table.name)), table.rows.size());
  page.Gap();
  AddColumns(page, AllRows(table, validation));
  page.Line("{}", page.pen(Ink::kFaint,
                           "each part of the predicted step, and the factor by which it alone "
                           "would explain the error"));
  page.Gap();
  AddColumns(page, GroupRows(validation));
  page.Line("{}", page.pen(Ink::kFaint,
                           "errors of steps; orders of pairs measured more than 2 points of MFU "
                           "apart"));
  if (const auto families = FamilyTable(table, validation); !families.empty()) {
    page.Gap();
    AddColumns(page, families);
    page.Line("{}", page.pen(Ink::kFaint,
                             "left by the others: if predictions were corrected by the mean error "
                             "of all other sources on the same device"));
  }
  return page.text;
}

std::string ToMarkdown(const ValidationTable& table, const Validation& validation) {
  std::string text = MarkdownOf(GroupRows(validation)) + "\n";
  if (const auto families = FamilyTable(table, validation); !families.empty())
    text += MarkdownOf(families) + "\n";
  return text + MarkdownOf(AllRows(table, validation));
}

DataTable TableOf(const ValidationTable& table, const Validation& validation) {
  std::vector<DataColumn> columns = {{"row"},
                                     {"group"},
                                     {"source"},
                                     {"measured_seconds", CellKind::kNumber},
                                     {"predicted_seconds", CellKind::kNumber},
                                     {"relative_error", CellKind::kNumber},
                                     {"measured_mfu", CellKind::kNumber},
                                     {"predicted_mfu", CellKind::kNumber}};
  for (const StepPart part : kAllParts)
    columns.push_back({fmt::format("{}_seconds", Name(part)), CellKind::kNumber});
  for (const StepPart part : kAllParts)
    columns.push_back({fmt::format("{}_factor", Name(part)), CellKind::kNumber});
  columns.push_back({"measured_memory_bytes", CellKind::kNumber});
  columns.push_back({"predicted_memory_bytes", CellKind::kNumber});
  columns.push_back({"memory_relative_error", CellKind::kNumber});
  DataTable data(std::move(columns));
  const std::vector<size_t> groups = GroupOfRows(table, validation);
  for (size_t i = 0; i < table.rows.size(); ++i) {
    const MeasuredRow& measured = table.rows[i];
    const ValidatedRow& row = validation.rows[i];
    std::vector<DataCell> cells = {measured.name,         validation.groups[groups[i]].name,
                                   measured.source,       row.measured.value(),
                                   row.predicted.value(), row.error,
                                   row.measured_mfu,      row.predicted_mfu};
    for (const Seconds part : row.parts) cells.emplace_back(part.value());
    for (const std::optional<double>& factor : row.factors) cells.emplace_back(factor);
    cells.push_back(measured.Memory() ? DataCell(measured.Memory()->value()) : DataCell());
    cells.emplace_back(row.memory.value());
    cells.emplace_back(row.memory_error);
    data.Add(std::move(cells));
  }
  return data;
}

Json ToJson(const ValidationTable& table, const Validation& validation) {
  Json json = {{"schema", "rehearse.validation.v1"}, {"table", table.name}};
  json["groups"] = Json::array();
  for (const ValidatedGroup& group : validation.groups) json["groups"].push_back(GroupJson(group));
  json["families"] = Json::array();
  for (const ValidatedFamily& family : FamiliesOf(table, validation))
    json["families"].push_back({{"name", family.name},
                                {"rows", family.rows},
                                {"mean_error", family.mean},
                                {"bias", family.bias},
                                {"mean_error_left_by_others", family.left_mean},
                                {"bias_left_by_others", family.left_bias}});
  json["rows"] = Json::array();
  const std::vector<size_t> groups = GroupOfRows(table, validation);
  for (size_t i = 0; i < table.rows.size(); ++i) {
    const MeasuredRow& measured = table.rows[i];
    const ValidatedRow& row = validation.rows[i];
    Json entry = {{"name", measured.name},
                  {"line", measured.line},
                  {"group", validation.groups[groups[i]].name},
                  {"source", measured.source},
                  {"measured_seconds", row.measured.value()},
                  {"predicted_seconds", row.predicted.value()},
                  {"relative_error", row.error},
                  {"measured_mfu", row.measured_mfu},
                  {"predicted_mfu", row.predicted_mfu}};
    for (const StepPart part : kAllParts) {
      const auto index = static_cast<size_t>(part);
      entry["parts"][Name(part)] = {{"seconds", row.parts[index].value()},
                                    {"factor", NumberOrNull(row.factors[index])}};
    }
    entry["predicted_memory_bytes"] = row.memory.value();
    if (measured.Memory()) entry["measured_memory_bytes"] = measured.Memory()->value();
    entry["fits"] = row.fits;
    entry["memory_needed_bytes"] = row.memory_needed.value();
    entry["memory_capacity_bytes"] = row.memory_capacity.value();
    entry["memory_relative_error"] = NumberOrNull(row.memory_error);
    json["rows"].push_back(std::move(entry));
  }
  return json;
}

// ---- the picture --------------------------------------------------------------------------------

namespace {

constexpr double kSide = 460;  // of the plot, in pixels
constexpr double kLeft = 56;   // for what is beside it
constexpr double kTop = 16;
constexpr double kBottom = 48;
constexpr double kLegend = 270;  // to the right

}  // namespace

std::string ValidationSvg(const ValidationTable& table, const Validation& validation) {
  double most = 0.1;
  for (const ValidatedRow& row : validation.rows)
    most = std::max({most, row.measured_mfu, row.predicted_mfu});
  most = std::ceil(10 * most) / 10;
  const auto x = [&](double mfu) { return kLeft + kSide * mfu / most; };
  const auto y = [&](double mfu) { return kTop + kSide - kSide * mfu / most; };
  const double width = kLeft + kSide + kLegend;
  const double height = kTop + kSide + kBottom;
  std::string svg = svg::Begin(width, height);
  for (int tenth = 0; tenth <= static_cast<int>(std::lround(10 * most)); ++tenth) {
    const double mfu = tenth / 10.0;
    svg += svg::Line(x(mfu), y(0), x(mfu), y(most), "stroke=\"#e6e6e6\"");
    svg += svg::Line(x(0), y(mfu), x(most), y(mfu), "stroke=\"#e6e6e6\"");
    svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{} %</text>\n",
                       svg::Pixels(x(mfu)), svg::Pixels(y(0) + 16), 10 * tenth);
    svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{} %</text>\n",
                       svg::Pixels(x(0) - 6), svg::Pixels(y(mfu) + 4), 10 * tenth);
  }
  svg += svg::Line(x(0), y(0), x(most), y(most), "stroke=\"#555\"");
  // Predicted steps 10 % off: utilisations of 1/1.1 and 1/0.9.
  svg += svg::Line(x(0), y(0), x(most), y(most / (1 + kNearEnough)),
                   "stroke=\"#999\" stroke-dasharray=\"4 3\"");
  svg += svg::Line(x(0), y(0), x(most * (1 - kNearEnough)), y(most),
                   "stroke=\"#999\" stroke-dasharray=\"4 3\"");
  const std::vector<size_t> groups = GroupOfRows(table, validation);
  for (size_t i = 0; i < table.rows.size(); ++i) {
    const ValidatedRow& row = validation.rows[i];
    svg += fmt::format(
        "<circle cx=\"{}\" cy=\"{}\" r=\"3.5\" fill=\"{}\" fill-opacity=\"0.75\"><title>{}: {}"
        "</title></circle>\n",
        svg::Pixels(x(row.measured_mfu)), svg::Pixels(y(row.predicted_mfu)),
        svg::kColors[groups[i] % svg::kColors.size()], svg::Escape(table.rows[i].name),
        Signed(row.error));
  }
  double line = kTop + 12;
  for (size_t i = 0; i < validation.groups.size(); ++i) {
    const ValidatedGroup& group = validation.groups[i];
    if (i > 0 && i + 1 == validation.groups.size()) break;  // all
    svg += fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"4\" fill=\"{}\"/>\n",
                       svg::Pixels(kLeft + kSide + 22), svg::Pixels(line - 4),
                       svg::kColors[i % svg::kColors.size()]);
    svg +=
        fmt::format("<text x=\"{}\" y=\"{}\">{}: {}, {}</text>\n", svg::Pixels(kLeft + kSide + 32),
                    svg::Pixels(line), svg::Escape(Shortened(group.name, 24)),
                    OfAll(group.within, group.rows.size()), Signed(group.bias));
    line += 19;
  }
  svg += fmt::format(
      "<text x=\"{}\" y=\"{}\" fill=\"#777\">within 10 %, and the bias of steps</text>\n",
      svg::Pixels(kLeft + kSide + 16), svg::Pixels(line));
  svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">measured MFU</text>\n",
                     svg::Pixels(kLeft + kSide / 2), svg::Pixels(height - 10));
  svg += fmt::format(
      "<text x=\"14\" y=\"{0}\" text-anchor=\"middle\" transform=\"rotate(-90 14 {0})\">predicted "
      "MFU</text>\n",
      svg::Pixels(kTop + kSide / 2));
  return svg + "</svg>\n";
}

}  // namespace rehearse
