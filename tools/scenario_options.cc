#include "tools/scenario_options.h"

#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/base/error.h"
#include "sim/base/input_file.h"
#include "sim/base/input_record.h"
#include "sim/base/json_document.h"
#include "sim/schedule/schedule_json.h"
#include "tools/ranks.h"
#include "topology/files/calibration.h"
#include "topology/files/cluster_file.h"
#include "topology/files/device_points_file.h"

namespace rehearse {

namespace po = boost::program_options;

void AddClusterOption(CommandSyntax* syntax) {
  syntax->takes["scenario"] = TakenFile({".json", ".json.gz"});
  syntax->options.add_options()(
      "cluster", po::value<std::string>()->value_name("CLUSTER"),
      "needed for a schedule (rehearse plan writes them): a preset, a preset with changes "
      "(dgx-a100:nodes=4), or a cluster file, with or without changes (my.json:nodes=4)");
}

void AddScenarioOptions(CommandSyntax* syntax) {
  syntax->positional = {"scenario"};
  AddScenarioSettings(syntax);
}

void AddScenarioSettings(CommandSyntax* syntax) {
  AddClusterOption(syntax);
  auto add = syntax->options.add_options();
  add("set", po::value<std::vector<std::string>>()->composing()->value_name("PATH=VALUE"),
      "change the scenario before it is read, e.g. cluster.nodes=8 or strategy.depth=8, or a file "
      "that it names, e.g. cluster.node.nics=8 in a cluster file; may be repeated");
  add("fidelity", po::value<std::string>()->value_name("formula|fluid|step|packet"),
      FidelityHelp("how closely the network is simulated; overrides the scenario's").c_str());
  add("calibration", po::value<std::string>()->value_name("FILE"),
      "link efficiencies and overheads that `rehearse compare --calibration` wrote; overrides the "
      "scenario's");
  syntax->takes["calibration"] = TakenFile({".json"});
  add("device-points", po::value<std::string>()->value_name("FILE.csv"),
      "measured times of exact products and attention cores (columns op, m, n, k, heads, head_dim, "
      "sequence, dtype, microseconds), used instead of the devices' model; overrides the "
      "scenario's");
  syntax->takes["device-points"] = TakenFile({".csv"});
  add("allow-oom", "play the plan even if it does not fit the devices' memory");
  add("no-fold", "simulate every rank, not just one of each class that behaves alike");
}

namespace {

const Place kFidelityOption = {"--fidelity", 0, ""};
const Place kCalibrationOption = {"--calibration", 0, ""};
const Place kVersusOption = {"--versus", 0, ""};
const Place kPointsOption = {"--device-points", 0, ""};

JsonDocument ReadLargeDocument(const std::string& path) {
  return JsonDocument::FromFile(path, {.size = InputSize::kLarge});
}

bool Has(const po::variables_map& values, const char* option) { return values.count(option) > 0; }

// Where a schedule is smaller than its machine, --ranks of run say where it is.
std::vector<uint32_t> DevicesOf(const JsonDocument& document, const Cluster& machine,
                                const po::variables_map& values) {
  const JsonReader root = document.Root();
  if (!Has(values, "ranks") || values["ranks"].defaulted() || !root.Has("ranks")) return {};
  const int64_t ranks = root.At("ranks").Integer(1, int64_t{1} << 24);
  if (ranks >= machine.device_count()) return {};
  return ParseRanks("--ranks", values["ranks"].as<std::string>(), machine.device_count());
}

Scenario ReadSchedulePart(const JsonDocument& document, const po::variables_map& values) {
  if (!Has(values, "cluster")) {
    throw Error(fmt::format("{} is a schedule, which names no cluster: --cluster is needed",
                            document.name()));
  }
  std::optional<Calibration> calibration;
  if (Has(values, "calibration"))
    calibration = ReadCalibrationFile(values["calibration"].as<std::string>());
  const auto cluster = values["cluster"].as<std::string>();
  const auto inputs = std::make_shared<InputRecord>();
  std::unique_ptr<Cluster> machine = ReadClusterArgument(cluster, {.record = inputs});
  if (Has(values, "device-points")) {
    const auto path = values["device-points"].as<std::string>();
    machine = ApplyDevicePoints(*machine, ReadDevicePoints(ReadCsvFile(path)));
  }
  const std::vector<uint32_t> devices = DevicesOf(document, *machine, values);
  Scenario scenario = ScenarioOf(document, std::move(machine), calibration, devices);
  scenario.given = std::make_shared<const nlohmann::json>(
      nlohmann::json{{"schedule", scenario.name}, {"cluster", cluster}});
  scenario.changes = document.changes();
  scenario.changes.insert(scenario.changes.end(), inputs->changes.begin(), inputs->changes.end());
  scenario.files = inputs->files;
  if (Has(values, "fidelity")) {
    scenario.lowering.fidelity = ParseFidelity("--fidelity", values["fidelity"].as<std::string>());
  }
  return scenario;
}

Scenario ReadScenarioPart(JsonDocument document, const po::variables_map& values,
                          Arrivals arrivals) {
  if (Has(values, "cluster")) {
    throw Error(
        "--cluster is for schedules: a scenario names its own; change it with --set cluster=" +
        values["cluster"].as<std::string>());
  }
  if (Has(values, "fidelity"))
    document.Set("simulator.fidelity=" + values["fidelity"].as<std::string>(), kFidelityOption);
  if (Has(values, "calibration")) {
    // The path is relative to where the command runs, not to the scenario.
    const std::string path = values["calibration"].as<std::string>();
    const nlohmann::json calibration =
        path == kStandardInput ? JsonDocument::FromFile(path).value()
                               : nlohmann::json(std::filesystem::absolute(path).string());
    document.Set("calibration=" + calibration.dump(), kCalibrationOption);
  }
  if (Has(values, "device-points")) {
    const std::string path = values["device-points"].as<std::string>();
    const nlohmann::json named =
        path == kStandardInput ? "/dev/stdin" : std::filesystem::absolute(path).string();
    document.Set("device_points=" + named.dump(), kPointsOption);
  }
  Scenario scenario = arrivals == Arrivals::kTaken && HasArrivals(document)
                          ? ReadQueueScenario(document)
                          : ReadScenario(document);
  // These have options of their own, which the result records anyway.
  std::erase_if(scenario.changes, [](const JsonChange& change) {
    return change.by == kFidelityOption.file || change.by == kCalibrationOption.file;
  });
  return scenario;
}

}  // namespace

Scenario ReadScenarioArgument(const CommandSyntax& syntax, const po::variables_map& values,
                              Arrivals arrivals) {
  if (!Has(values, "scenario")) {
    throw Error("no scenario given; usage: " + syntax.usage +
                "\ntry: " + syntax.usage.substr(0, syntax.usage.find("SCENARIO")) +
                "scenarios/axonn-gpt20b-perlmutter.json");
  }
  return ReadScenarioWith(ReadLargeDocument(values["scenario"].as<std::string>()), values, {},
                          arrivals);
}

Scenario ReadScenarioWith(JsonDocument document, const po::variables_map& values,
                          const std::vector<std::string>& changes, Arrivals arrivals) {
  if (Has(values, "set")) {
    for (const std::string& change : values["set"].as<std::vector<std::string>>()) {
      document.Set(change);
    }
  }
  for (const std::string& change : changes) document.Set(change, kVersusOption);
  Scenario scenario = IsSchedule(document.value()) ? ReadSchedulePart(document, values)
                                                   : ReadScenarioPart(document, values, arrivals);
  if (Has(values, "allow-oom")) scenario.allow_out_of_memory = true;
  if (Has(values, "no-fold")) scenario.lowering.fold = false;
  return scenario;
}

}  // namespace rehearse
