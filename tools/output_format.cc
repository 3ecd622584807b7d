#include "tools/output_format.h"

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/known_names.h"

namespace rehearse {
namespace {

namespace po = boost::program_options;

std::vector<std::string> NamesOf(const std::vector<OutputFormat>& formats) {
  std::vector<std::string> names;
  names.reserve(formats.size());
  for (const OutputFormat format : formats) names.emplace_back(Name(format));
  return names;
}

}  // namespace

const char* Name(OutputFormat format) {
  switch (format) {
    case OutputFormat::kText:
      return "text";
    case OutputFormat::kJson:
      return "json";
    case OutputFormat::kCsv:
      return "csv";
    case OutputFormat::kJsonLines:
      return "jsonl";
    case OutputFormat::kMarkdown:
      return "markdown";
  }
  CHECK(false);
}

void AddFormatOption(po::options_description& options, const std::vector<OutputFormat>& formats,
                     const std::string& rows) {
  std::string help = "what to print";
  if (!rows.empty())
    help += "; csv and jsonl (a JSON object per line) are for other programs: " + rows +
            "; in csv, text that a spreadsheet would run as a formula has a ' before it";
  options.add_options()("format",
                        po::value<std::string>()->default_value("text")->value_name(
                            fmt::format("{}", fmt::join(NamesOf(formats), "|"))),
                        help.c_str());
}

OutputFormat ReadFormat(const po::variables_map& values, const std::vector<OutputFormat>& formats,
                        const std::string& of) {
  const auto text = values["format"].as<std::string>();
  const std::vector<std::string> names = NamesOf(formats);
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i] == text) return formats[i];
  throw Error(fmt::format("--format: found \"{}\"{}{}", text, of.empty() ? "" : " with " + of,
                          KnownNames(text, names)));
}

bool IsTable(OutputFormat format) {
  return format == OutputFormat::kCsv || format == OutputFormat::kJsonLines;
}

std::string Print(const DataTable& table, OutputFormat format) {
  CHECK(IsTable(format));
  return format == OutputFormat::kCsv ? ToCsv(table) : ToJsonLines(table);
}

}  // namespace rehearse
