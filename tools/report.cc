// rehearse report INPUT...: one HTML file that shows steps and studies in a browser.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "scenarios/playing/rehearsal.h"
#include "scenarios/reporting/collective_film.h"
#include "scenarios/reporting/live.h"
#include "scenarios/reporting/live_controls.h"
#include "scenarios/reporting/pipelines_picture.h"
#include "scenarios/reporting/report_page.h"
#include "scenarios/reporting/stacked_picture.h"
#include "scenarios/searching/search.h"
#include "scenarios/searching/search_machines.h"
#include "scenarios/searching/search_report.h"
#include "scenarios/sweeping/study_reader.h"
#include "scenarios/sweeping/study_report.h"
#include "scenarios/sweeping/validation_report.h"
#include "sim/base/error.h"
#include "sim/base/gzip.h"
#include "sim/base/input_file.h"
#include "sim/base/input_record.h"
#include "sim/base/known_names.h"
#include "sim/base/output_file.h"
#include "sim/base/say.h"
#include "sim/base/units.h"
#include "sim/base/visible_text.h"
#include "sim/report/svg.h"
#include "sim/report/timeline_file.h"
#include "sim/schedule/schedule_json.h"
#include "tools/command.h"
#include "tools/page_file.h"
#include "tools/picture_options.h"
#include "tools/ranks.h"
#include "tools/scenario_options.h"
#include "tools/search_keys.h"
#include "tools/terminal.h"
#include "tools/viewer_bundle.h"
#include "workloads/planner/pipeline.h"

namespace rehearse {
namespace po = boost::program_options;

CommandSyntax ReportSyntax() {
  CommandSyntax syntax;
  syntax.usage = "rehearse report [INPUT...] -o FILE.html [options]";
  syntax.explanation =
      "Writes one self-contained page for a browser: the timeline of the step with exposed\n"
      "communication and the critical path, what each op waited for, where the time of each rank,\n"
      "layer and axis goes, memory, the cluster with the load of its links, and collectives.\n"
      "INPUT is a scenario or a schedule, which is simulated; a timeline of \"rehearse run --out\" "
      "or\n"
      "\"rehearse execute --out\" (or its folder); or a study or a table of measured steps, whose\n"
      "points are drawn as dots. Several steps are drawn one above the other on one axis.\n"
      "--pipelines draws a scenario, or a small one of its own, under several orders of a "
      "pipeline.\n"
      "Examples:\n"
      "  rehearse report scenarios/axonn-gpt20b-perlmutter.json -o step.html\n"
      "  rehearse report scenarios/axonn-fig3-a.json scenarios/axonn-fig3-abcde.json -o two.html\n"
      "  rehearse report scenarios/cpu-4d.json measured/timeline.json -o true.html\n"
      "  rehearse report scenarios/strategy-fsdp.json --versus strategy.prefetch=0 -o two.html\n"
      "  rehearse report scenarios/strategy-fsdp.json --live -o live.html\n"
      "  rehearse report scenarios/studies/axonn-table4.json -o dots.html\n"
      "  rehearse report scenarios/search-gpt40b-perlmutter.json --search -o best.html\n"
      "  rehearse report mine.json --clusters dgx-h100:nodes=16,dgx-b200:nodes=16 -o which.html\n"
      "  rehearse report a.json b.json --svg --window 100ms-250ms -o two.svg\n"
      "  rehearse report --pipelines gpipe,1f1b,zb-h1,zb-v,dualpipe -o pipelines.html\n"
      "  rehearse report scenarios/strategy-fsdp.json --watch \"all-gather qkv\" -o gather.html\n";
  syntax.positional = {"input"};
  syntax.last_repeats = true;
  AddScenarioSettings(&syntax);
  syntax.takes.erase("scenario");  // inputs may be other things too
  syntax.takes["input"] = TakenFile({".json", ".json.gz", ".csv"});
  AddSearchKeys(&syntax);
  auto add = syntax.options.add_options();
  add("output,o", po::value<std::string>()->value_name("FILE"),
      "where to write the page; - is standard output");
  syntax.takes["output"] = TakenOutput({".html", ".svg"});
  syntax.takes["pipelines"] = {};
  syntax.takes["watch"] = {};
  add("versus", po::value<std::vector<std::string>>()->composing()->value_name("PATH=VALUE"),
      "show the scenario above itself with this change; may be repeated");
  add("live",
      "the page also contains the simulator: change bandwidths, switches, grid, micro-batches or "
      "the scenario's text there, and it plays the step again");
  add("search",
      "run the scenario's \"search\" (rehearse search): the page begins with the best of each "
      "machine, side by side with their ranges, each configuration is a dot, and the steps are "
      "the bests");
  add("pipelines", po::value<std::string>()->value_name("NAME,NAME..."),
      "play the scenario under these orders of a pipeline (rehearse list pipelines), and draw a "
      "row "
      "for each rank: micro-batches numbered, the bubble hatched and counted; without INPUT, of "
      "eight equal layers on four ranks");
  add("watch", po::value<std::string>()->value_name("OP"),
      "play a collective of the step instead, at fidelity step: blocks of data along the links, "
      "beside all else that happens; OP is its name, or NAME#3 for its third time");
  add("svg",
      "write an SVG picture instead, of one rank of each group that does the same in each step");
  add("window", po::value<std::string>()->value_name("FROM-TO"),
      "part of the steps that --svg shows, e.g. 100ms-250ms");
  add("ranks", po::value<std::string>()->value_name("A,B-C"),
      "ranks whose spans the page also holds, besides those that stand for all (one of each group "
      "that behaves alike, at most 24)");
  return syntax;
}

namespace {

constexpr size_t kMostRuns = 24;
// A page answers a change of such a step while somebody waits.
constexpr Seconds kQuick(2);

enum class InputKind : uint8_t { kScenario, kTimeline, kStudy, kTable };

struct Input {
  InputKind kind = InputKind::kScenario;
  std::string path;
  JsonDocument document;           // except for tables
  std::optional<StepSpans> spans;  // of a large timeline
};

InputKind KindOfDocument(const JsonDocument& document) {
  const JsonReader root = document.Root();
  if (!root.IsObject()) root.Expected("an object: a scenario, a schedule, a timeline or a study");
  if (IsSchedule(document.value())) return InputKind::kScenario;
  if (root.Has("schema")) {
    const std::string schema = root.At("schema").String();
    if (schema.starts_with("rehearse.timeline.")) return InputKind::kTimeline;
    root.At("schema").Fail(fmt::format(
        "found \"{}\", expected {} (timeline.json of `rehearse run --out`), rehearse.schedule.v1, "
        "a scenario or a study",
        VisibleText(schema), kTimelineSchema));
  }
  return root.Has("base") ? InputKind::kStudy : InputKind::kScenario;
}

Input ReadInput(const std::string& asked) {
  Input input;
  input.path = asked;
  std::error_code ignored;  // what cannot be examined cannot be read either
  if (asked != kStandardInput && std::filesystem::is_directory(asked, ignored))
    input.path += "/timeline.json";
  if (input.path.ends_with(".csv")) {
    input.kind = InputKind::kTable;
    return input;
  }
  TimelineFile file = ReadTimelineFile(input.path);
  input.document = JsonDocument::FromText(file.text, file.name);
  input.spans = std::move(file.spans);
  input.kind = KindOfDocument(input.document);
  return input;
}

std::vector<std::string> ChangesOf(const po::variables_map& values, const char* option) {
  return values.count(option) > 0 ? values[option].as<std::vector<std::string>>()
                                  : std::vector<std::string>();
}

ReportedRun PlayedRun(const Input& input, const Scenario& scenario, const po::variables_map& values,
                      ProgressObserver& observer) {
  std::vector<uint32_t> asked;
  if (values.count("ranks") > 0)
    asked =
        ParseRanks("--ranks", values["ranks"].as<std::string>(), scenario.cluster->device_count());
  ReportedRun run = ReportScenario(scenario, asked, observer);
  run.source = InputName(input.path);
  return run;
}

ReportedRun RecordedRun(Input& input) {
  TimelineRecord record = ReadTimelineRecord(input.document.Root(), std::move(input.spans));
  if (record.Median().spans.empty())
    input.document.Root().At("steps").Fail("the step has no span: there is nothing to show");
  ReportedRun run = ReportRecord(std::move(record));
  run.source = InputName(input.path);
  return run;
}

ReportedTable StudyTable(const Input& input, const std::vector<std::string>& changes,
                         ProgressObserver& observer) {
  Study study = ReadStudy(input.document);
  for (const std::string& change : changes) ChangeAllPoints(study, change);
  SweepOptions options;
  options.observer = &observer;
  const Sweep sweep = PlayStudy(study, options);
  return {DotsKind::kStudy,  study.name,           input.path,
          study.description, study.metric.Title(), TableOf(study, sweep, Compare(study, sweep))};
}

bool IsSearched(const po::variables_map& values) {
  return values.count("search") > 0 || HasSearchKeys(values);
}

struct PlayedSearch {
  Search search;
  FoundPoints found;
  nlohmann::ordered_json machines;
};

// What a page compares are machines: if the search chooses among clusters, each has its best.
void ComparesClusters(JsonDocument* document) {
  const nlohmann::json& scenario = document->value();
  if (!scenario.contains("search") || !scenario["search"].is_object() ||
      scenario["search"].contains("per"))
    return;
  const Search search = ReadSearch(*document);
  for (const SpaceAxis& axis : search.space.axes)
    for (const SpaceChoice& choice : axis.choices)
      for (const auto& [path, value] : choice.changes)
        if (path == "cluster") {
          document->Set("search.per=cluster", {"--search", 0, ""});
          return;
        }
}

PlayedSearch PlaySearch(const Input& input, const po::variables_map& values,
                        ProgressObserver& observer) {
  JsonDocument document = input.document;
  for (const std::string& change : ChangesOf(values, "set")) document.Set(change);
  SetSearchKeys(values, &document);
  if (values.count("clusters") == 0) ComparesClusters(&document);
  PlayedSearch played;
  played.search = ReadSearch(document);
  SearchRun run;
  run.observer = &observer;
  run.explains_bests = true;
  run.allow_out_of_memory = values.count("allow-oom") > 0;
  played.found = RunSearch(played.search, run);
  played.machines = MachinesJson(played.search, played.found);
  return played;
}

ReportedTable TableOfSearch(const Input& input, const PlayedSearch& played) {
  const std::vector<Objective>& objectives = played.search.objectives;
  ReportedTable table{DotsKind::kSearch,
                      "All configurations",
                      input.path,
                      "",
                      objectives.front().name,
                      TableOf(played.search, played.found)};
  if (objectives.size() > 1) table.across = objectives.back().name;
  return table;
}

// Plays the best of each machine, as many as a page shows, and says which run is whose.
std::vector<ReportedRun> RunsOfBests(const Input& input, po::variables_map values,
                                     PlayedSearch* played, ProgressObserver& observer) {
  values.erase("set");  // the search has made these changes before its own
  std::vector<ReportedRun> runs;
  for (size_t i = 0; i < played->machines["machines"].size() && runs.size() < kMostRuns; ++i) {
    nlohmann::ordered_json& machine = played->machines["machines"][i];
    if (!machine.contains("configuration")) continue;
    const size_t best = played->found.groups.empty() ? 0 : *played->found.groups[i].best;
    const Scenario scenario =
        ReadScenarioWith(ScenarioOf(played->search, played->found.points[best].point), values);
    machine["run"] = runs.size();
    runs.push_back(PlayedRun(input, scenario, values, observer));
    runs.back().record.title = machine["name"].get<std::string>();
    runs.back().source += ": " + machine["configuration"].get<std::string>();
  }
  return runs;
}

ReportedTable ValidationRows(const Input& input, const std::vector<std::string>& changes,
                             ProgressObserver& observer) {
  const ValidationTable table = ReadValidationTable(ReadCsvFile(input.path), changes);
  return {DotsKind::kValidation,
          table.name,
          input.path,
          "",
          "",
          TableOf(table, Validate(table, 0, observer))};
}

std::string TitleOf(const Report& report) {
  std::string title;
  for (const ReportedRun& run : report.runs)
    title += (title.empty() ? "" : " above ") + run.record.title;
  for (const ReportedTable& table : report.tables)
    title += (title.empty() ? "" : ", ") + table.title;
  return title + " - Rehearse";
}

std::string PictureOf(const Report& report, const po::variables_map& values) {
  PictureOptions picture;
  if (values.count("window") > 0) {
    Time longest;
    for (const ReportedRun& run : report.runs)
      longest = std::max(longest, run.record.Median().step);
    ParseWindow(values["window"].as<std::string>(), longest, &picture);
  }
  return report.as_pipelines ? PipelinesPicture(report.runs, picture.from, picture.to)
                             : StackedPicture(report.runs, picture.from, picture.to);
}

// What the page plays again itself. `read` are the files that the scenario was read from.
LiveStep LiveStepOf(const Input& input, const po::variables_map& values,
                    const std::vector<InputFile>& read) {
  LiveStep step{
      .name = InputName(input.path),
      .text = "",
      .cluster = values.count("cluster") > 0 ? values["cluster"].as<std::string>() : "",
      .set = ChangesOf(values, "set"),
      .fidelity = values.count("fidelity") > 0 ? values["fidelity"].as<std::string>() : "",
      .allow_out_of_memory = values.count("allow-oom") > 0,
      .no_fold = values.count("no-fold") > 0};
  const auto text_of = [](const std::string& path) {
    std::string text = ReadInputFile(path);
    return IsGzip(text) ? Gunzip(text, kLargestInput) : text;
  };
  step.text = input.path == kStandardInput ? input.document.value().dump(2) : text_of(input.path);
  std::error_code ignored;
  for (const InputFile& file : read)
    if (file.path != input.path && std::filesystem::is_regular_file(file.path, ignored))
      step.files[file.path] = text_of(file.path);
  return step;
}

void CheckLive(const std::vector<Input>& inputs, const po::variables_map& values) {
  if (inputs.size() != 1 || inputs.front().kind != InputKind::kScenario)
    throw Error("--live plays one scenario or schedule again; give exactly one input");
  for (const char* option :
       {"versus", "search", "clusters", "svg", "pipelines", "calibration", "device-points"})
    if (values.count(option) > 0)
      throw Error(fmt::format("--live and --{} do not go together{}", option,
                              std::string_view(option) == "versus"
                                  ? ": the page itself shows changes beside the step"
                                  : ""));
}

// A page that plays one collective of a step.
void WatchOp(const std::vector<Input>& inputs, const po::variables_map& values,
             const std::string& output) {
  if (inputs.size() != 1 || inputs.front().kind != InputKind::kScenario)
    throw Error("--watch plays a collective of one scenario or schedule; give exactly one input");
  for (const char* option :
       {"versus", "search", "clusters", "svg", "pipelines", "live", "ranks", "fidelity"})
    if (values.count(option) > 0)
      throw Error(fmt::format("--watch and --{} do not go together", option));
  const Scenario scenario = ReadScenarioWith(inputs.front().document, values);
  const auto op = values["watch"].as<std::string>();
  ProgressLine progress(ProgressWanted());
  const std::string page =
      ToHtml({.title = fmt::format("{} of {} - Rehearse", op, scenario.name),
              .texts = {{"rehearse-film", FilmDataOfOp(scenario, op, progress)}}});
  WriteFileAtomically(output, page);
  progress.Clear();
  TellOfPage(output, page.size());
}

// The page begins with one search.
void CheckSearched(const std::vector<Input>& inputs, const po::variables_map& values) {
  if (!IsSearched(values)) return;
  if (inputs.size() != 1 || inputs.front().kind != InputKind::kScenario)
    throw Error("--search is for one scenario; give exactly one input");
  if (values.count("versus") > 0)
    throw Error("--search and --versus do not go together: the steps are the bests of the search");
}

void CheckInputs(const std::vector<Input>& inputs, const po::variables_map& values) {
  size_t runs = values.count("versus") > 0 ? 1 : 0;
  size_t played = 0;
  for (const Input& input : inputs) {
    runs += input.kind == InputKind::kScenario || input.kind == InputKind::kTimeline ? 1 : 0;
    played += input.kind == InputKind::kTimeline ? 0 : 1;
    if (input.kind == InputKind::kScenario) continue;
    if (values.count("versus") > 0 && input.kind == InputKind::kTimeline)
      throw Error(
          fmt::format("--versus changes a scenario, but {} is a timeline", InputName(input.path)));
  }
  CheckSearched(inputs, values);
  if (runs > kMostRuns)
    throw Error(fmt::format("found {} steps, expected at most {}, drawn one above the other", runs,
                            kMostRuns));
  if (played == 0 && runs > 0 && values.count("set") > 0)
    throw Error(
        "--set changes scenarios before they are played, but timelines were played already");
  if (values.count("svg") > 0 && runs == 0 && values.count("pipelines") == 0)
    throw Error("--svg draws steps, but none is given");
  if (values.count("window") > 0 && values.count("svg") == 0)
    throw Error("--window is for --svg; the page shows the whole step and can be zoomed");
  if (values.count("versus") > 0 && runs != 2)
    throw Error(fmt::format("--versus changes one scenario, found {}", runs - 1));
}

// The scenario's changes under an order: as many stages of a rank as the order takes, and for zb-h2
// an update that waits for nobody, without which its last ranks would idle like those of zb-h1.
std::vector<std::string> ChangesForOrder(const std::string& order, const Input& input) {
  std::vector<std::string> changes = {"pipeline.schedule=" + order};
  const nlohmann::json& pipeline = input.document.value().at("pipeline");
  for (const PipelineScheduleFacts& facts : PipelineSchedules()) {
    if (order != facts.name || !pipeline.contains("virtual")) continue;
    const nlohmann::json& given = pipeline.at("virtual");
    const uint64_t stages = given.is_number_unsigned() ? given.get<uint64_t>() : 0;
    if (stages < facts.fewest_stages_a_rank ||
        (facts.most_stages_a_rank > 0 && stages > facts.most_stages_a_rank))
      changes.push_back(fmt::format("pipeline.virtual={}", facts.fewest_stages_a_rank));
  }
  if (order == "zb-h2" && !pipeline.contains("validation"))
    changes.emplace_back("pipeline.validation=after-update");
  return changes;
}

std::vector<std::string> OrdersOf(const std::string& list) {
  std::vector<std::string> known;
  for (const PipelineScheduleFacts& facts : PipelineSchedules()) known.emplace_back(facts.name);
  std::vector<std::string> orders;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    orders.push_back(list.substr(begin, end - begin));
    if (std::find(known.begin(), known.end(), orders.back()) == known.end())
      throw Error(fmt::format("--pipelines: found \"{}\"{}", VisibleText(orders.back()),
                              KnownNames(orders.back(), known)));
    begin = end + 1;
  }
  if (orders.size() > kMostRuns)
    throw Error(
        fmt::format("--pipelines: found {} orders, expected at most {}", orders.size(), kMostRuns));
  return orders;
}

// The steps of --pipelines.
std::vector<ReportedRun> RunsOfPipelines(const std::vector<Input>& inputs,
                                         const po::variables_map& values,
                                         ProgressObserver& observer) {
  if (inputs.size() > 1 ||
      (!inputs.empty() && (inputs.front().kind != InputKind::kScenario ||
                           !inputs.front().document.value().contains("pipeline"))))
    throw Error(
        "--pipelines draws one scenario that has a \"pipeline\"; give exactly one, or none");
  for (const char* option : {"versus", "search", "clusters"})
    if (values.count(option) > 0)
      throw Error(fmt::format("--pipelines and --{} do not go together", option));
  Input own;
  own.path = "scenarios/lessons/zero-bubble.json";
  if (inputs.empty()) own.document = JsonDocument::FromText(LessonFile("zero-bubble"), own.path);
  const Input& input = inputs.empty() ? own : inputs.front();
  std::vector<Scenario> scenarios;  // all are read before the first is played
  const std::vector<std::string> orders = OrdersOf(values["pipelines"].as<std::string>());
  for (const std::string& order : orders)
    scenarios.push_back(ReadScenarioWith(input.document, values, ChangesForOrder(order, input)));
  std::vector<ReportedRun> runs;
  for (size_t i = 0; i < orders.size(); ++i) {
    runs.push_back(PlayedRun(input, scenarios[i], values, observer));
    if (runs.back().pipeline.rows.empty())
      throw Error(fmt::format("--pipelines: {} has a single stage or micro-batch", input.path));
    runs.back().record.title = orders[i];
    for (const std::string& change : ChangesForOrder(orders[i], input))
      runs.back().source += " " + change;
  }
  return runs;
}

}  // namespace

int ReportCommand(const std::vector<std::string>& arguments) {
  CommandSyntax syntax = ReportSyntax();
  po::variables_map values;
  if (!ParseCommandLine(syntax, arguments, &values)) return 0;
  if (values.count("input") == 0 && values.count("pipelines") == 0)
    throw Error("nothing to report on; usage: " + syntax.usage +
                "\ntry: rehearse report scenarios/axonn-gpt20b-perlmutter.json -o step.html");
  if (values.count("output") == 0)
    throw Error("-o FILE.html is missing: where to write the page (- is standard output)");
  const std::string output = values["output"].as<std::string>();
  CheckWritable(output);
  std::vector<Input> inputs;
  if (values.count("input") > 0)
    for (const std::string& name : values["input"].as<std::vector<std::string>>())
      inputs.push_back(ReadInput(name));
  if (values.count("watch") > 0) {
    WatchOp(inputs, values, output);
    return 0;
  }
  CheckInputs(inputs, values);
  if (values.count("live") > 0) CheckLive(inputs, values);
  const std::vector<std::string> versus = ChangesOf(values, "versus");

  ProgressLine progress(ProgressWanted());
  Report report;
  std::optional<std::string> live;  // for a page that simulates
  Seconds took;
  if (values.count("pipelines") > 0) {
    report.as_pipelines = true;
    report.runs = RunsOfPipelines(inputs, values, progress);
    inputs.clear();
  }
  for (Input& input : inputs) {
    switch (input.kind) {
      case InputKind::kScenario: {
        if (IsSearched(values)) {
          PlayedSearch played = PlaySearch(input, values, progress);
          report.runs = RunsOfBests(input, values, &played, progress);
          report.tables.push_back(TableOfSearch(input, played));
          report.machines = std::move(played.machines);
          break;
        }
        // Both are read before the first is played, so that a mistake costs no time.
        const Scenario scenario = ReadScenarioWith(input.document, values);
        std::optional<Scenario> other;
        if (!versus.empty()) other = ReadScenarioWith(input.document, values, versus);
        const RehearsalClock clock;
        report.runs.push_back(PlayedRun(input, scenario, values, progress));
        if (values.count("live") > 0) {
          took = clock.Past();
          const LiveStep step = LiveStepOf(input, values, scenario.files);
          const nlohmann::ordered_json told = {
              {"step", ToJson(step)},
              {"controls", LiveControls(scenario, input.document.value())},
              {"native_seconds", took > kQuick ? std::round(took.value()) : 0.0}};
          // Comments in the text may hold any bytes.
          live = PackedForPage(
              told.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
        }
        if (!other) break;
        report.runs.push_back(PlayedRun(input, *other, values, progress));
        for (const std::string& change : versus) report.runs.back().source += " " + change;
        break;
      }
      case InputKind::kTimeline:
        report.runs.push_back(RecordedRun(input));
        break;
      case InputKind::kStudy:
        report.tables.push_back(StudyTable(input, ChangesOf(values, "set"), progress));
        break;
      case InputKind::kTable:
        report.tables.push_back(ValidationRows(input, ChangesOf(values, "set"), progress));
        break;
    }
  }
  progress.Begin("writing " + OutputName(output), "", 0);
  PageFile file{
      .title = TitleOf(report), .texts = {{"rehearse-data", PageData(report)}}, .is_live = false};
  if (live) {
    file.is_live = true;
    file.texts.emplace_back("rehearse-live", *live);
  }
  const std::string page = values.count("svg") > 0 ? PictureOf(report, values) : ToHtml(file);
  WriteFileAtomically(output, page);
  progress.Clear();
  TellOfPage(output, page.size());
  if (took > kQuick)
    PrintBeside(output,
                fmt::format("playing this step took {} here; the page takes several times as "
                            "long for each change, if its memory of 2 GiB suffices. Fewer "
                            "layers, ranks or micro-batches (--set) make it quick.\n",
                            Print(took)));
  return 0;
}

}  // namespace rehearse
