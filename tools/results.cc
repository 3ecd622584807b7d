// rehearse results show|merge: what sweeps and searches have kept.
#include <algorithm>
#include <cstdio>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "scenarios/evaluating/results_file.h"
#include "scenarios/evaluating/results_table.h"
#include "sim/base/error.h"
#include "sim/base/input_file.h"
#include "sim/base/known_names.h"
#include "sim/base/output_file.h"
#include "sim/base/visible_text.h"
#include "tools/command.h"
#include "tools/number_options.h"
#include "tools/output_format.h"
#include "tools/results_options.h"

namespace rehearse {
namespace {

namespace po = boost::program_options;

constexpr uint32_t kMostRows = 1'000'000'000;

std::string PrintResults(const std::vector<KeptPoint>& points, const std::string& sort,
                         OutputFormat format) {
  if (format == OutputFormat::kText) return ToText(points, sort);
  if (format == OutputFormat::kJson) {
    const nlohmann::ordered_json json = {{"schema", "rehearse.results.v1"},
                                         {"points", ToJson(TableOf(points))}};
    return json.dump(2) + "\n";
  }
  return Print(TableOf(points), format);
}

int Show(const std::vector<std::string>& files, const po::variables_map& values) {
  const OutputFormat format = ReadFormat(values, kTableFormats);
  if (files.size() > 1)
    throw Error("results show takes one file; rehearse results merge makes one out of several");
  if (values.count("output") > 0) throw Error("--output is for results merge; results show prints");
  ResultsView view;
  view.sort = SortOption(values);
  if (values.count("top") > 0) view.top = values["top"].as<uint32_t>();
  ResultsFile file(files.front(), ResultsFile::Opening::kShown);
  std::fputs(PrintResults(ReadKeptPoints(file, view, files.front()), view.sort, format).c_str(),
             stdout);
  return 0;
}

int MergeCommand(const std::vector<std::string>& files, const po::variables_map& values) {
  for (const char* option : {"sort", "top"})
    if (values.count(option) > 0)
      throw Error(fmt::format("--{} is for results show; results merge takes all points", option));
  if (values.count("output") == 0) throw Error("results merge writes a new file; expected -o FILE");
  const auto output = values["output"].as<std::string>();
  if (output.empty() || IsStandardOutput(output))
    throw Error(fmt::format("--output: found \"{}\", expected a file", output));
  const size_t points = MergeResults(files, output);
  std::fputs(
      fmt::format("{}: {} points of {} files\n", VisibleText(output), points, files.size()).c_str(),
      stdout);
  return 0;
}

}  // namespace

CommandSyntax ResultsSyntax() {
  CommandSyntax syntax;
  syntax.usage = "rehearse results show|merge FILE... [options]";
  syntax.explanation =
      "Shows or merges what `sweep --results FILE` and `search --results FILE` have kept: SQLite\n"
      "files with a row for each point. show prints one; merge makes one out of several, such as\n"
      "those of --shard. Of a point that several files have, the last one counts. Then the\n"
      "command that made them, given the merged file, prints everything without simulating\n"
      "again. Examples:\n"
      "  rehearse results show all.sqlite --sort step_seconds --top 10\n"
      "  rehearse results merge part*.sqlite -o all.sqlite\n";
  syntax.positional = {"action", "file"};
  syntax.last_repeats = true;
  syntax.takes["action"] = TakenName({"show", "merge"});
  syntax.takes["file"] = TakenFile({".sqlite"});
  AddSortOption(&syntax);
  auto add = syntax.options.add_options();
  add("top", Whole("N", nullptr, 1u, kMostRows), "show the first N points only");
  add("output,o", po::value<std::string>()->value_name("FILE"), "merge: the new file");
  syntax.takes["output"] = TakenOutput({".sqlite"});
  AddFormatOption(syntax.options, kTableFormats,
                  "a row for each point, with what it changes and all numbers of its result");
  return syntax;
}

int ResultsCommand(const std::vector<std::string>& arguments) {
  CommandSyntax syntax = ResultsSyntax();
  po::variables_map values;
  if (!ParseCommandLine(syntax, arguments, &values)) return 0;
  if (values.count("action") == 0) throw Error("no action given; usage: " + syntax.usage);
  const auto action = values["action"].as<std::string>();
  const std::vector<std::string>& names = syntax.takes["action"].names;
  if (std::find(names.begin(), names.end(), action) == names.end())
    throw Error(fmt::format("results: found \"{}\"{}", action, KnownNames(action, names)));
  if (values.count("file") == 0) throw Error("no file given; usage: " + syntax.usage);
  const auto files = values["file"].as<std::vector<std::string>>();
  if (std::find(files.begin(), files.end(), kStandardInput) != files.end())
    throw Error(
        "found \"-\", expected a file: results are SQLite, which is not read from a stream");
  return action == "show" ? Show(files, values) : MergeCommand(files, values);
}

}  // namespace rehearse
