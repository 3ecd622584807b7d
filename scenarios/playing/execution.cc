#include "scenarios/playing/execution.h"

#include <algorithm>
#include <cmath>
#include <thread>

#include <fmt/format.h>

#include "real/backends/executable.h"
#include "real/backends/host.h"
#include "real/execution/losses.h"
#include "scenarios/playing/memory_fit.h"
#include "sim/base/error.h"
#include "sim/base/units.h"
#include "sim/base/visible_text.h"
#include "workloads/planner/planner.h"

namespace rehearse {
namespace {

using Json = nlohmann::ordered_json;

// The names of the types in the schedule's arithmetic, other than `arithmetic`.
std::vector<std::string> OtherTypes(const Schedule& schedule, DType arithmetic) {
  std::vector<std::string> names;
  for (const Role& role : schedule.roles) {
    for (const Op& op : role.ops) {
      const auto* compute = std::get_if<Compute>(&op.work);
      if (compute == nullptr || compute->kind == ComputeKind::kMemory || IsHostWork(op.work) ||
          IsWaitedFor(*compute))
        continue;
      const std::string name = Name(compute->dtype);
      if (compute->dtype == arithmetic || std::count(names.begin(), names.end(), name) > 0)
        continue;
      names.push_back(name);
    }
  }
  return names;
}

bool HasTunedProducts(const Schedule& schedule) {
  for (const Role& role : schedule.roles) {
    for (const Op& op : role.ops) {
      const auto* compute = std::get_if<Compute>(&op.work);
      if (compute != nullptr && compute->tuned) return true;
    }
  }
  return false;
}

std::vector<Seconds> TimesOf(const std::vector<Timeline>& steps) {
  std::vector<Seconds> times;
  for (const Timeline& step : steps) times.push_back(ToSeconds(step.step));
  return times;
}

Json Numbers(const std::vector<Seconds>& times) {
  Json array = Json::array();
  for (const Seconds time : times) array.push_back(time.value());
  return array;
}

Seconds MedianOf(std::vector<Seconds> times) {
  std::sort(times.begin(), times.end());
  return times[(times.size() - 1) / 2];
}

// The cost of timing the ops, as a share of the step.
double TimingCost(const Execution& execution) {
  return MedianOf(execution.walls) / MedianOf(execution.untimed_walls) - 1;
}

// Of steps whose ops are not timed, if there are any.
Seconds MedianWithoutGraph(const Execution& execution) {
  return MedianOf(execution.untimed_walls.empty() ? execution.walls : execution.untimed_walls);
}

// What launching the step as a graph saves, as a share of the step.
double GraphGain(const Execution& execution) {
  return 1 - MedianOf(execution.graph_walls) / MedianWithoutGraph(execution);
}

Seconds FastestOf(const Execution& execution) {
  const std::vector<Seconds> times = TimesOf(execution.repeats);
  return *std::min_element(times.begin(), times.end());
}

int64_t InterruptionsOf(const Execution& execution) {
  int64_t sum = 0;
  for (const std::vector<HostShares>& ranks : execution.host) {
    for (const HostShares& own : ranks) sum += own.interruptions;
  }
  return sum;
}

Json LostToJson(const Execution& execution, double lost) {
  Json by_repeat = Json::array();
  for (const std::vector<HostShares>& ranks : execution.host)
    by_repeat.push_back(LostShare(ranks, execution.cores));
  return {{"share", lost},
          {"by_repeat", by_repeat},
          {"involuntary_switches", InterruptionsOf(execution)},
          {"repeats_left_alone", execution.LeftAlone()}};
}

// The rank whose arrays took most, and what was reckoned for it.
struct CountedRank {
  size_t rank = 0;
  MemoryUse counted;
  MemoryUse predicted;

  bool IsEqual() const {
    return counted.parameters == predicted.parameters && counted.gradients == predicted.gradients &&
           counted.optimizer == predicted.optimizer &&
           counted.activations == predicted.activations && counted.buffers == predicted.buffers &&
           counted.host == predicted.host;
  }
};

std::optional<CountedRank> FullestCounted(const Execution& execution) {
  if (execution.memory.empty()) return std::nullopt;
  const auto fullest = std::max_element(
      execution.memory.begin(), execution.memory.end(),
      [](const MemoryUse& a, const MemoryUse& b) { return a.Total() < b.Total(); });
  CountedRank rank;
  rank.rank = static_cast<size_t>(fullest - execution.memory.begin());
  rank.counted = *fullest;
  rank.predicted = MemoryOf(execution.schedule.roles[execution.schedule.role_of_rank[rank.rank]]);
  return rank;
}

Json MemoryToJson(const CountedRank& rank) {
  return {{"rank", rank.rank},
          {"parameters_bytes", rank.counted.parameters.value()},
          {"gradients_bytes", rank.counted.gradients.value()},
          {"optimizer_bytes", rank.counted.optimizer.value()},
          {"activations_bytes", rank.counted.activations.value()},
          {"buffers_bytes", rank.counted.buffers.value()},
          {"host_bytes", rank.counted.host.value()},
          {"predicted_bytes", rank.predicted.Total().value()},
          {"as_predicted", rank.IsEqual()}};
}

// Streams end their ops in an order of their own, and so more or less lives at once.
std::string MemoryToText(const CountedRank& rank, bool blocking) {
  const std::string counted = fmt::format("Memory counted while it ran: {} on rank {}",
                                          Print(rank.counted.Total()), rank.rank);
  if (rank.IsEqual()) return counted + ", to the byte what is predicted\n";
  return fmt::format("{}; {} predicted{}\n", counted, Print(rank.predicted.Total()),
                     blocking ? "" : ", where streams keep the order of the list");
}

Json ClocksToJson(const Execution& execution, bool applied) {
  Json array = Json::array();
  for (size_t rank = 1; rank < execution.clocks.size(); ++rank) {
    const ClockMap& clock = execution.clocks[rank];
    array.push_back({{"rank", rank},
                     {"offset_nanoseconds", clock.before.offset},
                     {"drift_nanoseconds_per_second", clock.Drift()},
                     {"round_trip_nanoseconds", clock.before.round_trip},
                     {"applied", applied}});
  }
  return array;
}

// JSON has no infinity: a difference that is not a number is null.
Json Difference(double value) { return std::isfinite(value) ? Json(value) : Json(); }

Json CheckToJson(const CheckReport& check, double tolerance) {
  Json arrays = Json::array();
  for (const ArrayDifference& array : check.arrays) {
    arrays.push_back({{"name", array.name},
                      {"kind", array.kind == BufferKind::kGradient ? "gradient" : "parameter"},
                      {"relative", Difference(array.relative)},
                      {"rank", array.rank}});
  }
  return {{"passed", check.Passes(tolerance)},
          {"tolerance", tolerance},
          {"loss", Difference(check.loss)},
          {"serial_loss", Difference(check.serial_loss)},
          {"loss_difference", Difference(check.LossDifference())},
          {"worst_gradient", Difference(check.WorstOf(BufferKind::kGradient))},
          {"worst_parameter", Difference(check.WorstOf(BufferKind::kParameter))},
          {"missing", check.missing},
          {"arrays", arrays}};
}

std::string CheckToText(const CheckReport& check, double tolerance) {
  std::string text = fmt::format(
      "Check against the serial step ({}): loss {:.12g}, serial {:.12g}; largest relative "
      "differences: "
      "gradients {:.1e}, updated parameters {:.1e}, tolerance {:.0e}\n",
      check.Passes(tolerance) ? "passed" : "FAILED", check.loss, check.serial_loss,
      check.WorstOf(BufferKind::kGradient), check.WorstOf(BufferKind::kParameter), tolerance);
  if (check.Passes(tolerance)) return text;
  for (const ArrayDifference& array : check.arrays) {
    if (array.relative <= tolerance) continue;
    text += fmt::format("  \"{}\" differs by {:.1e} on rank {}\n", VisibleText(array.name),
                        array.relative, array.rank);
  }
  for (const std::string& name : check.missing)
    text += fmt::format("  no rank holds \"{}\"\n", VisibleText(name));
  return text;
}

Json TrainingToJson(const TrainedSteps& training) {
  const auto numbers = [](const std::vector<double>& losses) {
    Json array = Json::array();
    for (const double loss : losses) array.push_back(Difference(loss));
    return array;
  };
  Json json = {{"arithmetic", Name(training.arithmetic)}, {"losses", numbers(training.losses)}};
  if (training.serial_losses.empty()) return json;
  json["serial_losses"] = numbers(training.serial_losses);
  json["largest_difference"] = Difference(training.LargestDifference());
  return json;
}

// Some of the steps, the first and the last among them.
std::string TrainingToText(const TrainedSteps& training) {
  constexpr size_t kMostShown = 10;
  const size_t steps = training.losses.size();
  const bool has_serial = !training.serial_losses.empty();
  std::string text = fmt::format("\nTrained {} step{} on one batch, in {}", steps,
                                 steps == 1 ? "" : "s", Name(training.arithmetic));
  if (has_serial)
    text += fmt::format(": losses differ from one rank's by {:.1e} of them at most",
                        training.LargestDifference());
  text +=
      fmt::format("\n{:>6}{:>20}{}\n", "step", "loss", has_serial ? "            one rank" : "");
  const size_t stride = std::max<size_t>(1, (steps + kMostShown - 2) / (kMostShown - 1));
  for (size_t step = 0; step < steps; ++step) {
    if (step % stride != 0 && step + 1 != steps) continue;
    text += fmt::format("{:>6}{:>20.15g}", step + 1, training.losses[step]);
    if (has_serial) text += fmt::format("{:>20.15g}", training.serial_losses[step]);
    text += "\n";
  }
  return text;
}

}  // namespace

double TrainedSteps::LargestDifference() const {
  double largest = 0;
  for (size_t step = 0; step < serial_losses.size(); ++step)
    largest = std::max(largest, RelativeDifference(losses[step], serial_losses[step]));
  return largest;
}

std::string ToCsv(const TrainedSteps& training) {
  const bool has_serial = !training.serial_losses.empty();
  std::string text = has_serial ? "step,loss,serial_loss\n" : "step,loss\n";
  for (size_t step = 0; step < training.losses.size(); ++step) {
    text += fmt::format("{},{}", step + 1, training.losses[step]);
    if (has_serial) text += fmt::format(",{}", training.serial_losses[step]);
    text += "\n";
  }
  return text;
}

bool HasNetwork(const Scenario& scenario) {
  return std::holds_alternative<Workload>(scenario.jobs.front().work);
}

Schedule PlanSerially(const Scenario& scenario) {
  const auto* workload = std::get_if<Workload>(&scenario.jobs.front().work);
  if (workload == nullptr) {
    throw Error(
        fmt::format("\"{}\" is a schedule: its network, and so the serial numbers, are not known",
                    scenario.name));
  }
  return PlanSerialStep(*workload->network, workload->training, workload->strategy.chunks);
}

std::vector<std::string> ExecutionNotes(const Schedule& schedule, const Transport& transport,
                                        DType arithmetic) {
  std::vector<std::string> notes;
  const std::vector<std::string> others = OtherTypes(schedule, arithmetic);
  if (!others.empty()) {
    notes.push_back(
        fmt::format("the schedule's {} is executed in {}: bytes and flop rates are for {}",
                    fmt::join(others, ", "), Name(arithmetic), Name(arithmetic)));
  }
  if (HasTunedProducts(schedule)) {
    notes.emplace_back(
        "tuned_kernels: products are executed as their operands lie, not in the mode that the "
        "simulation times them in");
  }
  if (WaitsForOps(schedule))
    notes.emplace_back(
        "ops of a fixed duration are executed by waiting: ranks sleep and compute nothing");
  if (MakesUpMessages(schedule))
    notes.emplace_back("messages of ops that name no buffers are made up, in fp32");
  const uint32_t cores = std::max(1u, std::thread::hardware_concurrency());
  if (transport.ranks_on_host() > cores) {
    notes.push_back(fmt::format("{} ranks share {} cores: times are not those of a rank on its own",
                                transport.ranks_on_host(), cores));
  }
  return notes;
}

std::string NoteOnLoss(const Execution& execution) {
  constexpr double kMuch = 0.05;
  const double lost = execution.Lost().value_or(0);
  if (lost <= kMuch) return "";
  return fmt::format(
      "other programs took {:.0f} % of the repeats' time ({} involuntary switches): on a quiet "
      "machine the step takes rather {}, as the fastest did",
      100 * lost, InterruptionsOf(execution), Print(FastestOf(execution)));
}

void Describe(const Scenario& scenario, const Schedule& schedule, const Transport& transport,
              ExecutedScenario* executed) {
  executed->environment = ThisEnvironment();
  executed->scenario = scenario.name;
  executed->given = scenario.given;
  executed->notes = ExecutionNotes(schedule, transport, executed->arithmetic);
  if (const std::string note = NoteOnLoss(executed->execution); !note.empty())
    executed->notes.push_back(note);
  if (!executed->representative) {
    executed->notes.push_back("ranks shared GPUs: the times mean nothing");
  }
  if (!executed->choices_missing.empty()) {
    executed->notes.push_back("how NCCL ran the collectives is not known: " +
                              executed->choices_missing);
  }
  const DeviceSpec& device = scenario.cluster->DeviceOf(scenario.jobs.front().placement.front());
  const FlopsPerSecond peak = PeakOf(device, executed->arithmetic);
  executed->result = Summarize(executed->execution.schedule, executed->execution.Median(), peak);
  executed->result.peak_dtype = Name(executed->arithmetic);
  executed->result.scenario = scenario.name;
  executed->result.fidelity = "measured";
  executed->result.changes = scenario.changes;
  executed->result.software = scenario.jobs.front().software;
  executed->result.chosen =
      ChosenCollectives(executed->execution.schedule, executed->execution.choices);
  DescribeMemory(TightestFit(executed->execution.schedule, scenario.jobs.front().placement,
                             *scenario.cluster, scenario.memory.headroom_share),
                 *scenario.cluster, &executed->result);
}

nlohmann::ordered_json ToJson(const ExecutedScenario& executed) {
  const Execution& execution = executed.execution;
  Json json;
  json["schema"] = "rehearse.execution.v1";
  json["scenario"] = executed.scenario;
  json["ranks"] = execution.schedule.ranks();
  json["backend"] = executed.backend;
  json["transport"] = executed.transport;
  json["collectives"] = executed.collectives;
  json["streams"] = execution.blocking ? "blocking" : "threads";
  json["arithmetic"] = Name(executed.arithmetic);
  json["seed"] = executed.seed;
  if (executed.given) json["given"] = *executed.given;
  json["notes"] = executed.notes;
  json["libraries"] = execution.backend;
  json["host"] = ToJson(ThisHost());
  json["environment"] = executed.environment;
  if (!executed.gpu.is_null()) {
    json["gpu"] = executed.gpu;
    json["representative"] = executed.representative;
  }
  json["warm_up_seconds"] = Numbers(TimesOf(execution.warm_ups));
  json["repeat_seconds"] = Numbers(TimesOf(execution.repeats));
  json["fastest_step_seconds"] = FastestOf(execution).value();
  if (const std::optional<double> lost = execution.Lost())
    json["lost"] = LostToJson(execution, *lost);
  if (const std::optional<CountedRank> rank = FullestCounted(execution))
    json["memory"] = MemoryToJson(*rank);
  if (!execution.untimed_walls.empty()) {
    json["timing"] = {{"timed_step_seconds", MedianOf(execution.walls).value()},
                      {"untimed_step_seconds", MedianOf(execution.untimed_walls).value()},
                      {"cost", TimingCost(execution)}};
  }
  if (!execution.graph_walls.empty()) {
    json["cuda_graph"] = {{"step_seconds", MedianOf(execution.graph_walls).value()},
                          {"step_seconds_without", MedianWithoutGraph(execution).value()},
                          {"gain", GraphGain(execution)}};
  }
  json["clocks"] = ClocksToJson(execution, executed.transport != "threads");
  if (executed.check) json["check"] = CheckToJson(*executed.check, executed.check_tolerance);
  if (executed.training) json["training"] = TrainingToJson(*executed.training);
  json["result"] = ToJson(executed.result);
  json["result"].erase("simulator");
  json["result"].erase("links");
  return json;
}

std::string ToText(const ExecutedScenario& executed, bool color) {
  const Execution& execution = executed.execution;
  std::vector<Seconds> times = TimesOf(execution.repeats);
  std::sort(times.begin(), times.end());
  std::string text = ToText(executed.result, color);
  text += fmt::format("\nExecuted on {} ranks ({}), {}, {} collectives, {}; {}\n",
                      execution.schedule.ranks(), executed.transport,
                      execution.blocking ? "one op after the other" : "a thread per stream",
                      executed.collectives, Name(executed.arithmetic), execution.backend);
  text += fmt::format("{} repeats after {} warm-ups: fastest {}, median {}, slowest {}\n",
                      times.size(), execution.warm_ups.size(), Print(times.front()),
                      Print(executed.result.step), Print(times.back()));
  if (const std::optional<double> lost = execution.Lost()) {
    const size_t alone = execution.LeftAlone();
    text += fmt::format("Lost to other programs: {:.1f} % of their time; {}\n", 100 * *lost,
                        alone == 0 ? "none was left alone, so all count"
                        : alone == times.size()
                            ? "all were left alone"
                            : fmt::format("{} were left alone, and the median is theirs", alone));
  }
  if (!execution.untimed_walls.empty()) {
    text += fmt::format("Timing the ops: {:+.1f} % ({} per step with it, {} without)\n",
                        100 * TimingCost(execution), Print(MedianOf(execution.walls)),
                        Print(MedianOf(execution.untimed_walls)));
  }
  if (!execution.graph_walls.empty()) {
    text += fmt::format("As a CUDA graph: {} per step, {} without ({:+.1f} %)\n",
                        Print(MedianOf(execution.graph_walls)),
                        Print(MedianWithoutGraph(execution)), -100 * GraphGain(execution));
  }
  if (const std::optional<CountedRank> rank = FullestCounted(execution))
    text += MemoryToText(*rank, execution.blocking);
  for (const std::string& note : executed.notes) text += "Note: " + note + "\n";
  if (executed.check) text += CheckToText(*executed.check, executed.check_tolerance);
  if (executed.training) text += TrainingToText(*executed.training);
  return text;
}

namespace {

// Gives each role what its first rank was told.
void AddChoices(const Execution& execution, TimelineRecord* record) {
  std::vector<bool> is_told(record->roles.size());
  for (size_t rank = 0; rank < execution.choices.size(); ++rank) {
    const uint32_t role = record->role_of_rank[rank];
    if (is_told[role]) continue;
    is_told[role] = true;
    for (const LibraryChoice& choice : execution.choices[rank]) {
      RecordedOp& op = record->roles[role].ops[choice.op];
      op.algorithm = AlgorithmOf(choice);
      op.protocol = ProtocolOf(choice);
      op.channels = choice.channels;
    }
  }
}

}  // namespace

TimelineRecord RecordOf(const ExecutedScenario& executed) {
  const Execution& execution = executed.execution;
  CHECK(!execution.repeats.empty());
  TimelineRecord record;
  for (const auto* steps : {&execution.warm_ups, &execution.repeats}) {
    for (const Timeline& step : *steps) {
      if (record.steps.empty()) {
        record = MakeRecord(executed.scenario, execution.schedule, step);
      } else {
        record.steps.push_back({false, step});
      }
      record.steps.back().is_warm_up = steps == &execution.warm_ups;
      const auto repeat = static_cast<size_t>(&step - steps->data());
      if (steps == &execution.repeats && !execution.WasLeftAlone(repeat)) {
        record.steps.back().is_disturbed = true;
        record.steps.back().lost = LostShare(execution.host[repeat], execution.cores);
      }
    }
  }
  AddChoices(execution, &record);
  if (executed.given) record.given = *executed.given;
  record.environment = {{"backend", executed.backend},
                        {"transport", executed.transport},
                        {"collectives", executed.collectives},
                        {"streams", execution.blocking ? "blocking" : "threads"},
                        {"arithmetic", Name(executed.arithmetic)},
                        {"libraries", execution.backend},
                        {"host", ToJson(ThisHost())},
                        {"environment", executed.environment}};
  if (!executed.gpu.is_null()) {
    record.environment["gpu"] = executed.gpu;
    record.environment["representative"] = executed.representative;
  }
  return record;
}

}  // namespace rehearse
