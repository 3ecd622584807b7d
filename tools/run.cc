// rehearse run SCENARIO: simulate one scenario.
#include <algorithm>
#include <cstdio>
#include <numeric>
#include <variant>

#include <fmt/format.h>
#include <unistd.h>

#include "scenarios/campaign/campaign.h"
#include "scenarios/campaign/campaign_picture.h"
#include "scenarios/campaign/costs.h"
#include "scenarios/playing/far_from_bound.h"
#include "scenarios/playing/paper_models.h"
#include "scenarios/playing/rehearsal.h"
#include "scenarios/queueing/queue.h"
#include "scenarios/queueing/queue_result.h"
#include "sim/base/error.h"
#include "sim/base/input_file.h"
#include "sim/base/known_names.h"
#include "sim/base/output_file.h"
#include "sim/report/kept_ranks.h"
#include "sim/report/timeline_gantt.h"
#include "sim/report/timeline_record.h"
#include "tools/command.h"
#include "tools/output_format.h"
#include "tools/picture_options.h"
#include "tools/ranks.h"
#include "tools/scenario_options.h"
#include "tools/terminal.h"
#include "tools/trace_options.h"

namespace rehearse {
namespace po = boost::program_options;

CommandSyntax RunSyntax() {
  CommandSyntax syntax;
  syntax.usage = "rehearse run SCENARIO|SCHEDULE [options]";
  syntax.explanation =
      "Plans the schedule that every GPU of the scenario would follow, plays it on the modelled\n"
      "cluster, and prints where the time goes. `rehearse init` writes a first scenario,\n"
      "`rehearse schema scenario` lists every key. Examples:\n"
      "  rehearse run scenarios/axonn-gpt20b-perlmutter.json\n"
      "  rehearse run scenarios/axonn-gpt20b-perlmutter.json --set "
      "strategy.overlap_all_gather=false\n"
      "  rehearse run scenarios/axonn-gpt20b-perlmutter.json --gantt\n"
      "  rehearse run scenarios/axonn-gpt20b-perlmutter.json --out out --window 300ms-420ms\n";
  AddScenarioOptions(&syntax);
  auto add = syntax.options.add_options();
  AddFormatOption(syntax.options, kTableFormats,
                  "one row, or a row for each job, with a column for each number of the JSON and "
                  "each value of the scenario, so that the rows of many runs form one table");
  add("out", po::value<std::string>()->value_name("DIR"),
      "also write result.json and, of jobs as they come, queue.svg; else timeline.json (for "
      "rehearse compare), trace.pftrace (open it in "
      "ui.perfetto.dev) and timeline.svg there, and weeks.svg if the scenario has a \"run\". "
      "Timeline and trace hold one of each group of ranks "
      "that behave alike, at most 16, and a trace with many micro-batches only the first and the "
      "last; they say what they leave out");
  add("gantt",
      "also print the step as lanes of block characters, as wide as the terminal (or 100); solid "
      "blocks are compute or exposed communication");
  add("ranks", po::value<std::string>()->default_value("0")->value_name("A,B-C"),
      "ranks (with jobs: devices) that --gantt and timeline.svg show, and that timeline and trace "
      "then also hold, with all their micro-batches; by default the first of each stage or job; of "
      "a schedule with fewer ranks than devices: the devices that it is on");
  add("window", po::value<std::string>()->value_name("FROM-TO"),
      "part of the step that --gantt and timeline.svg show, e.g. 100ms-250ms");
  add("cost-model", po::value<std::string>()->value_name("auto|axonn|axonn-agnostic|autoddl|atp"),
      "also show what a paper's own model says about the communication, term by term; auto: the "
      "model of the strategy's paper");
  AddTraceOption(&syntax);
  return syntax;
}

namespace {

// Whether --ranks say on which devices a schedule is that is smaller than its machine.
bool RanksPlace(const po::variables_map& values, const Scenario& scenario) {
  return !values["ranks"].defaulted() && !scenario.lists_jobs &&
         std::holds_alternative<Schedule>(scenario.jobs.front().work) &&
         scenario.jobs.front().placement.size() < scenario.cluster->device_count();
}

// The default is the first rank or, where ranks are devices, the first of each job.
std::vector<uint32_t> PicturedRanks(const po::variables_map& values, const Scenario& scenario) {
  std::vector<uint32_t> ranks;
  if (values["ranks"].defaulted() && scenario.lists_jobs) {
    for (const JobRequest& job : scenario.jobs) ranks.push_back(job.placement.front());
    return ranks;
  }
  if (RanksPlace(values, scenario)) {
    ranks.resize(scenario.jobs.front().placement.size());
    std::iota(ranks.begin(), ranks.end(), 0u);
    return ranks;
  }
  const size_t count = scenario.lists_jobs ? scenario.cluster->device_count()
                                           : scenario.jobs.front().placement.size();
  return ParseRanks("--ranks", values["ranks"].as<std::string>(), static_cast<uint32_t>(count));
}

// The prediction of the model of --cost-model; nothing where it is not given.
std::optional<PaperPrediction> PredictionOf(const po::variables_map& values,
                                            const Scenario& scenario) {
  if (values.count("cost-model") == 0) return std::nullopt;
  const auto name = values["cost-model"].as<std::string>();
  const auto* const known =
      std::find(std::begin(kPaperModelNames), std::end(kPaperModelNames), name);
  std::optional<PaperModel> model;
  if (known != std::end(kPaperModelNames)) {
    model = static_cast<PaperModel>(known - std::begin(kPaperModelNames));
  } else if (name != "auto") {
    std::vector<std::string> names = {"auto"};
    names.insert(names.end(), std::begin(kPaperModelNames), std::end(kPaperModelNames));
    throw Error(fmt::format("--cost-model: found \"{}\"{}", name, KnownNames(name, names)));
  } else {
    model = PaperModels::ModelOf(scenario);
    if (!model)
      throw Error(
          "--cost-model: the papers have models of 4d, atp and sbp by numbers, without pipelines; "
          "this scenario is none of these");
  }
  PaperModels models;
  return models.Predict(*model, scenario);
}

nlohmann::ordered_json ResultToJson(const Rehearsal& rehearsal, const Scenario& scenario,
                                    const std::optional<PaperPrediction>& prediction,
                                    const std::optional<Campaign>& campaign,
                                    const std::optional<CostOutcome>& costs) {
  auto json = rehearsal.jobs ? ToJson(*rehearsal.jobs) : ToJson(rehearsal.result);
  if (prediction) json["cost_model"] = ToJson(*prediction);
  if (campaign) json["run"] = ToJson(campaign->outcome);
  if (costs) json["costs"] = ToJson(*costs);
  if (scenario.given) json["given"] = *scenario.given;
  return json;
}

// A row for the step, or one for each job with what all jobs have in common.
DataTable ResultToTable(nlohmann::ordered_json result) {
  if (result.contains("given")) result["given"].erase("description");  // not one of its values
  if (!result.contains("jobs")) return FlatTable({result});
  nlohmann::ordered_json common = result;
  common.erase("jobs");
  std::vector<nlohmann::ordered_json> rows;
  for (const auto& job : result["jobs"]) {
    rows.push_back(common);
    rows.back()["job"] = job;
  }
  return FlatTable(rows);
}

std::string ResultToText(const Rehearsal& rehearsal) {
  return rehearsal.jobs ? ToText(*rehearsal.jobs, ColorsWanted())
                        : ToText(rehearsal.result, ColorsWanted());
}

std::string GanttOf(const Rehearsal& rehearsal, const PictureOptions& picture) {
  constexpr unsigned kPiped = 100;
  return TimelineGantt(rehearsal.schedule, rehearsal.timeline, rehearsal.names,
                       {.ranks = picture.ranks,
                        .from = picture.from,
                        .to = picture.to,
                        .columns = TerminalColumns(STDOUT_FILENO, kPiped),
                        .color = ColorsWanted()});
}

// What a result says of the step, without what was given, what it took to play and what other
// devices would do.
std::string StepOf(const Rehearsal& rehearsal) {
  nlohmann::ordered_json json = ToJson(rehearsal.result);
  for (const char* key : {"given", "changes", "simulator", "placement"}) json.erase(key);
  return json.dump();
}

bool ReadsStandardInput(const po::variables_map& values) {
  return std::any_of(values.begin(), values.end(), [](const auto& value) {
    const auto* const text = boost::any_cast<std::string>(&value.second.value());
    return text != nullptr && *text == kStandardInput;
  });
}

// Notes each --set without which the step would be the same. Each is played for that, so only small
// steps are.
void NoteIdleChanges(const CommandSyntax& syntax, const po::variables_map& values,
                     const Scenario& scenario, Rehearsal* rehearsal) {
  constexpr uint64_t kMostEvents = 400'000;  // some half a second
  if (values.count("set") == 0 || scenario.lists_jobs || ReadsStandardInput(values)) return;
  const auto all = values["set"].as<std::vector<std::string>>();
  const SimulatorCost& cost = rehearsal->result.simulator;
  if ((cost.events + cost.packet_hops) * all.size() > kMostEvents) return;
  const std::string step = StepOf(*rehearsal);
  std::vector<std::string> notes;
  for (size_t i = 0; i < all.size(); ++i) {
    std::vector<std::string> others = all;
    others.erase(others.begin() + static_cast<ptrdiff_t>(i));
    po::variables_map without = values;
    without.at("set").value() = others;
    try {
      const Scenario other = ReadScenarioArgument(syntax, without);
      if (StepOf(Rehearse(other, {.allocations = true})) != step) continue;
    } catch (const Error&) {
      continue;  // without it there is no step
    }
    notes.push_back(fmt::format("--set {} changes nothing about this step", all[i]));
  }
  rehearsal->result.notes.insert(rehearsal->result.notes.end(), notes.begin(), notes.end());
}

// So much of a step is written unless the user asks for more.
constexpr size_t kMostOpsOfATrace = 100'000;  // per rank
constexpr size_t kMostLinksOfATrace = 100;

// `asked` are the ranks that the user named.
void WriteOutputs(const Rehearsal& rehearsal, const Scenario& scenario, const std::string& folder,
                  const PictureOptions& picture, const std::vector<uint32_t>& asked, bool kineto,
                  const std::optional<Campaign>& campaign, const nlohmann::ordered_json& result) {
  MakeFolder(folder);
  OutputSet files;
  files.Add(folder + "/result.json", result.dump(2) + "\n");
  TraceOptions options;
  options.ranks = RanksToKeep(rehearsal.schedule, rehearsal.timeline, asked);
  options.most_links = kMostLinksOfATrace;
  if (asked.empty()) options.most_ops = kMostOpsOfATrace;
  if (kineto) {
    AddKinetoTraces(rehearsal.schedule, rehearsal.timeline, rehearsal.names, options.ranks, folder,
                    &files);
  } else {
    files.Add(folder + "/trace.pftrace",
              PerfettoTrace(rehearsal.schedule, rehearsal.timeline, rehearsal.names, options));
  }
  Timeline kept = rehearsal.timeline;
  std::vector<uint32_t> left_out = KeepOnly(options.ranks, rehearsal.schedule, &kept);
  TimelineRecord record =
      MakeRecord(rehearsal.result.scenario, rehearsal.schedule, std::move(kept));
  record.left_out = std::move(left_out);
  if (scenario.given) record.given = *scenario.given;
  files.Add(folder + "/timeline.json", ToJsonText(record));
  files.Add(folder + "/timeline.svg",
            TimelineSvg(rehearsal.schedule, rehearsal.timeline, rehearsal.names, picture));
  if (campaign) files.Add(folder + "/weeks.svg", CampaignSvg(*campaign, scenario.name));
  files.Commit();
}

// Jobs as they come: another kind of result.
int RunQueue(const Scenario& scenario, const po::variables_map& values, OutputFormat format,
             const std::string& folder) {
  for (const char* option : {"gantt", "window", "cost-model"}) {
    if (values.count(option) > 0)
      throw Error(
          fmt::format("--{} is about one step; the scenario has jobs as they come", option));
  }
  if (!values["ranks"].defaulted())
    throw Error("--ranks is about one step; the scenario has jobs as they come");
  ProgressLine progress(ProgressWanted());
  const Queue queue = PlayQueue(scenario, progress);
  const nlohmann::ordered_json result = ToJson(queue, scenario);
  if (!folder.empty()) {
    MakeFolder(folder);
    OutputSet files;
    files.Add(folder + "/result.json", result.dump(2) + "\n");
    files.Add(folder + "/queue.svg", QueueSvg(queue, scenario.name));
    files.Commit();
  }
  std::string text;
  if (IsTable(format)) {
    text = Print(FlatTable({result["jobs"].begin(), result["jobs"].end()}), format);
  } else {
    text = format == OutputFormat::kJson ? result.dump(2) + "\n"
                                         : ToText(queue, scenario, ColorsWanted());
  }
  progress.Clear();
  std::fputs(text.c_str(), stdout);
  return 0;
}

}  // namespace

int RunCommand(const std::vector<std::string>& arguments) {
  CommandSyntax syntax = RunSyntax();
  po::variables_map values;
  if (!ParseCommandLine(syntax, arguments, &values)) return 0;
  const OutputFormat format = ReadFormat(values, kTableFormats);
  const std::string folder = FolderOption(values, "out");
  const bool kineto = WantsKineto(values);
  const Scenario scenario = ReadScenarioArgument(syntax, values, Arrivals::kTaken);
  if (scenario.arrivals != nullptr) return RunQueue(scenario, values, format, folder);
  PictureOptions picture;
  picture.ranks = PicturedRanks(values, scenario);
  const bool draws = values.count("gantt") > 0;
  if (folder.empty() && !draws &&
      (values.count("window") > 0 ||
       (!values["ranks"].defaulted() && !RanksPlace(values, scenario)))) {
    throw Error("--ranks and --window are for --gantt, and for the files that --out DIR writes");
  }
  if (draws && format != OutputFormat::kText)
    throw Error(fmt::format("--gantt is for people; leave out --format {}", Name(format)));

  const std::optional<PaperPrediction> prediction = PredictionOf(values, scenario);

  ProgressLine progress(ProgressWanted());
  Rehearsal rehearsal = Rehearse(scenario, {.record_link_loads = !folder.empty(),
                                            .observer = &progress,
                                            .allocations = true,
                                            .best_placement = true,
                                            .spans = !folder.empty() || draws});
  NoteIdleChanges(syntax, values, scenario, &rehearsal);
  // The picture of a pipeline has a rank of each stage.
  if (values["ranks"].defaulted() && !scenario.lists_jobs)
    picture.ranks = FirstRanksOfRoles(rehearsal.schedule);
  if (values.count("window") > 0) {
    ParseWindow(values["window"].as<std::string>(), rehearsal.timeline.step, &picture);
  }
  std::optional<Campaign> campaign;
  if (scenario.run != nullptr) {
    campaign = PlayCampaign(scenario, rehearsal, progress);
  }
  std::optional<CostOutcome> costs;
  if (scenario.costs != nullptr)
    costs = CostsOf(scenario, rehearsal.result, campaign ? &campaign->outcome : nullptr);
  const nlohmann::ordered_json result =
      ResultToJson(rehearsal, scenario, prediction, campaign, costs);
  if (!folder.empty()) {
    progress.Begin("writing " + folder, "", 0);
    WriteOutputs(rehearsal, scenario, folder, picture,
                 values["ranks"].defaulted() ? std::vector<uint32_t>() : picture.ranks, kineto,
                 campaign, result);
  }
  std::string text = IsTable(format)                 ? Print(ResultToTable(result), format)
                     : format == OutputFormat::kJson ? result.dump(2) + "\n"
                                                     : ResultToText(rehearsal);
  if (format == OutputFormat::kText) text += ToText(FarFromBound(rehearsal.schedule, scenario));
  if (prediction && format == OutputFormat::kText) text += "\n" + ToText(*prediction);
  if (campaign && format == OutputFormat::kText) text += ToText(campaign->outcome, ColorsWanted());
  if (costs && format == OutputFormat::kText) text += ToText(*costs, ColorsWanted());
  if (draws) text += "\n" + GanttOf(rehearsal, picture);
  progress.Clear();
  std::fputs(text.c_str(), stdout);
  return 0;
}

}  // namespace rehearse
