// rehearse validate TABLE.csv: measured steps, compared with predicted ones.
#include <cstdio>

#include <fmt/format.h>

#include "scenarios/sweeping/validation_report.h"
#include "sim/base/error.h"
#include "sim/base/interruption.h"
#include "sim/base/output_file.h"
#include "sim/base/say.h"
#include "tools/command.h"
#include "tools/number_options.h"
#include "tools/output_format.h"
#include "tools/terminal.h"

namespace rehearse {
namespace {

namespace po = boost::program_options;

const std::vector<OutputFormat> kValidationFormats = {OutputFormat::kText, OutputFormat::kJson,
                                                      OutputFormat::kCsv, OutputFormat::kJsonLines,
                                                      OutputFormat::kMarkdown};

std::string PrintValidation(const ValidationTable& table, const Validation& validation,
                            OutputFormat format) {
  switch (format) {
    case OutputFormat::kText:
      return ToText(table, validation, ColorsWanted());
    case OutputFormat::kJson:
      return ToJson(table, validation).dump(2) + "\n";
    case OutputFormat::kMarkdown:
      return ToMarkdown(table, validation);
    case OutputFormat::kCsv:
    case OutputFormat::kJsonLines:
      return Print(TableOf(table, validation), format);
  }
  CHECK(false);
}

}  // namespace

CommandSyntax ValidateSyntax() {
  CommandSyntax syntax;
  syntax.usage = "rehearse validate TABLE.csv [options]";
  syntax.explanation =
      "Simulates every row of a table of measured steps and shows the errors. For each row:\n"
      "where the step's time goes, and the factor by which each part alone would explain the\n"
      "error. For all rows of a device and software: mean and median error, bias, rows within\n"
      "10 %, and how many pairs more than 2 points of MFU apart are put in the right order.\n"
      "A row of the CSV file is a run. Its columns: name; one of step (\"0.853s\"),\n"
      "tokens_per_second, mfu (0.41); optionally memory (\"60.5GiB\") or memory_reserved, source,\n"
      "group, note. Every other column is a path of the scenario as --set takes it, such as\n"
      "training.batch; an empty cell sets nothing. Lines that begin with # are comments. Tables "
      "are in\n"
      "scenarios/validation/. After Ctrl-C the rows simulated so far are judged.\n"
      "  rehearse validate scenarios/validation/published.csv\n"
      "  rehearse validate mine.csv --format csv > errors.csv\n";
  syntax.positional = {"table"};
  syntax.takes["table"] = TakenFile({".csv"});
  syntax.takes["svg"] = TakenOutput({".svg"});
  syntax.options.add_options()(
      "svg", po::value<std::string>()->value_name("FILE"),
      "also draw predicted against measured utilisation; - is standard output");
  AddThreadsOption(&syntax.options, "rows");
  syntax.options.add_options()(
      "set", po::value<std::vector<std::string>>()->composing()->value_name("PATH=VALUE"),
      "change the scenario of every row, e.g. simulator.fidelity=formula; may be repeated");
  AddFormatOption(syntax.options, kValidationFormats,
                  "a row for each row of the table, with all digits");
  return syntax;
}

int ValidateCommand(const std::vector<std::string>& arguments) {
  CommandSyntax syntax = ValidateSyntax();
  po::variables_map values;
  if (!ParseCommandLine(syntax, arguments, &values)) return 0;
  if (values.count("table") == 0) {
    throw Error("no table given; usage: " + syntax.usage +
                "\ntry: rehearse validate scenarios/validation/published.csv");
  }
  const OutputFormat format = ReadFormat(values, kValidationFormats);
  std::vector<std::string> changes;
  if (values.count("set") > 0) changes = values["set"].as<std::vector<std::string>>();
  const std::string svg = values.count("svg") > 0 ? values["svg"].as<std::string>() : "";
  if (values.count("svg") > 0) CheckWritable(svg);
  ValidationTable table =
      ReadValidationTable(ReadCsvFile(values["table"].as<std::string>()), changes);
  const size_t wanted = table.rows.size();
  const Stoppable stoppable;
  ProgressLine progress(ProgressWanted());
  const Validation validation = Validate(&table, ThreadsOption(values), progress, IsStopAsked);
  progress.Clear();
  const bool is_whole = table.rows.size() == wanted;
  if (!svg.empty() && is_whole) WriteFileAtomically(svg, ValidationSvg(table, validation));
  const std::string text = PrintValidation(table, validation, format);
  if (svg.empty()) {
    std::fputs(text.c_str(), stdout);
  } else {
    PrintBeside(svg, text);
  }
  if (is_whole) return StopCode();
  std::fflush(stdout);
  Say(fmt::format(
      "{}: {} of {} rows were simulated, and the errors above are theirs alone{}; to go on, give "
      "the other rows in a table of their own",
      StopWords(), table.rows.size(), wanted,
      svg.empty() ? "" : fmt::format(", and nothing is written to {}", OutputName(svg))));
  return StopCode();
}

}  // namespace rehearse
