// rehearse sweep STUDY: simulates many scenarios and compares them with what is published.
#include "scenarios/sweeping/sweep.h"

#include <cstdio>

#include <fmt/format.h>

#include "scenarios/sweeping/study_picture.h"
#include "scenarios/sweeping/study_reader.h"
#include "scenarios/sweeping/study_report.h"
#include "sim/base/error.h"
#include "sim/base/interruption.h"
#include "sim/base/json_document.h"
#include "sim/base/known_names.h"
#include "sim/base/output_file.h"
#include "sim/base/say.h"
#include "sim/base/visible_text.h"
#include "tools/command.h"
#include "tools/many_ranks.h"
#include "tools/number_options.h"
#include "tools/output_format.h"
#include "tools/results_options.h"
#include "tools/terminal.h"

namespace rehearse {
namespace {

namespace po = boost::program_options;

const std::vector<OutputFormat> kFormats = {OutputFormat::kText, OutputFormat::kJson,
                                            OutputFormat::kCsv, OutputFormat::kJsonLines,
                                            OutputFormat::kMarkdown};

std::string PrintSweep(const Study& study, const Sweep& sweep, const std::string& sort,
                       OutputFormat format) {
  const PublishedComparison comparison = Compare(study, sweep, sort);
  switch (format) {
    case OutputFormat::kText:
      return ToText(study, sweep, comparison);
    case OutputFormat::kJson:
      return ToJson(study, sweep, comparison).dump(2) + "\n";
    case OutputFormat::kMarkdown:
      return ToMarkdown(study, sweep, comparison);
    case OutputFormat::kCsv:
    case OutputFormat::kJsonLines:
      return Print(TableOf(study, sweep, comparison), format);
  }
  CHECK(false);
}

void CheckPicture(const Study& study, const std::string& svg) {
  if (study.panels.empty())
    throw Error(
        fmt::format("--svg draws the \"pictures\" of a study, but \"{}\" has none; rehearse "
                    "schema study says how they are written",
                    study.name));
  CheckWritable(svg);
}

}  // namespace

CommandSyntax SweepSyntax() {
  CommandSyntax syntax;
  syntax.usage = "rehearse sweep STUDY [options]";
  syntax.explanation =
      "Simulates every point of a study, which is a base scenario with changes, listed one by\n"
      "one or as a grid of values. Shows one number of each point, beside the published one if\n"
      "the study has it. `rehearse schema study` lists a study's keys; scenarios/studies/ has\n"
      "examples. Ctrl-C keeps the points that are done. Ranks under mpirun share the points.\n"
      "Examples:\n"
      "  rehearse sweep scenarios/studies/axonn-table4.json\n"
      "  rehearse sweep my-study.json --results all.sqlite --sort step_seconds\n"
      "  rehearse sweep my-study.json --out sweep --format csv     # go on where it stopped\n"
      "  rehearse sweep my-study.json --results part3.sqlite --shard 3/16    # then rehearse "
      "results\n"
      "                                                                      # merge, and sweep "
      "again\n";
  syntax.positional = {"study"};
  syntax.takes["study"] = TakenFile({".json"});
  syntax.takes["svg"] = TakenOutput({".svg"});
  syntax.options.add_options()(
      "out", po::value<std::string>()->value_name("DIR"),
      "keep the result of each point there, and do not simulate what is already there")(
      "again", "simulate kept points again")(
      "svg", po::value<std::string>()->value_name("FILE"),
      "also draw the study's \"pictures\"; - is standard output");
  AddResultsOptions(&syntax);
  AddSortOption(&syntax);
  AddThreadsOption(&syntax.options, "points");
  syntax.options.add_options()(
      "set", po::value<std::vector<std::string>>()->composing()->value_name("PATH=VALUE"),
      "change the scenario of every point, e.g. simulator.fidelity=formula; may be repeated");
  AddFormatOption(
      syntax.options, kFormats,
      "a row for each point, with a column for each value that points change, and all digits");
  return syntax;
}

int SweepCommand(const std::vector<std::string>& arguments) {
  CommandSyntax syntax = SweepSyntax();
  po::variables_map values;
  if (!ParseCommandLine(syntax, arguments, &values)) return 0;
  if (values.count("study") == 0)
    throw Error("no study given; usage: " + syntax.usage +
                "\ntry: rehearse sweep scenarios/studies/axonn-table4.json");
  const OutputFormat format = ReadFormat(values, kFormats);
  SweepOptions options;
  options.threads = ThreadsOption(values);
  options.again = values.count("again") > 0;
  options.folder = FolderOption(values, "out");
  const std::string sort = SortOption(values);
  options.warn = [](const std::string& message) { Say(message); };
  options.is_stopped = IsStopAsked;

  ResultsOptions results = ReadResultsOptions(values, options.folder);
  const bool is_kept = !options.folder.empty() || !results.path.empty();
  if (options.again && !is_kept)
    throw Error("--again is about kept results, but neither --out nor --results is given");
  if (options.again && values.count("resume") > 0)
    throw Error("--again simulates kept points, --resume does not; expected one of them");
  options.shard = results.shard;

  Study study = ReadStudy(JsonDocument::FromFile(values["study"].as<std::string>()));
  if (values.count("set") > 0)
    for (const std::string& change : values["set"].as<std::vector<std::string>>())
      ChangeAllPoints(study, change);
  const std::string svg = values.count("svg") > 0 ? values["svg"].as<std::string>() : "";
  if (!svg.empty()) CheckPicture(study, svg);
  const Stoppable stoppable;
  const auto play = [&]() -> int {
    options.stores = results.Open();
    ProgressLine progress(ProgressWanted());
    options.observer = &progress;
    const Sweep sweep = PlayStudy(study, options);
    progress.Clear();
    const bool is_drawn = !svg.empty() && sweep.interrupted == 0;
    if (is_drawn) WriteFileAtomically(svg, StudySvg(study, sweep));
    if (sweep.interrupted == 0 || !is_kept) {
      const std::string text = PrintSweep(study, sweep, sort, format);
      if (is_drawn) {
        PrintBeside(svg, text);
      } else {
        std::fputs(text.c_str(), stdout);
      }
    }
    if (sweep.interrupted > 0) {
      std::fflush(stdout);
      Say(fmt::format(
          "{}: {} of {} points are {}", StopWords(), study.points.size() - sweep.left_out,
          study.points.size(),
          is_kept ? fmt::format("kept in {}; the same command{} goes on from there",
                                VisibleText(options.folder.empty() ? results.path : options.folder),
                                options.again ? " without --again" : "")
                  : "done; with --results FILE or --out DIR they would be kept, and the same "
                    "command would go on from there"));
    }
    return StopCode();
  };
  const std::optional<Launch> launch = SharingLaunch(results);
  if (!launch) return play();
  const auto share = [&](const RankShare& rank) {
    SweepOptions part = options;
    part.folder = "";
    part.leases = rank.leases;
    part.stores = rank.stores;
    part.is_stopped = rank.is_stopped;
    part.threads = rank.threads > 0 && options.threads == 0 ? rank.threads : options.threads;
    PlayStudy(study, part);
  };
  return PlayOnRanks(*launch, results, share, [&] {
    options.again = false;
    return play();
  });
}

}  // namespace rehearse
