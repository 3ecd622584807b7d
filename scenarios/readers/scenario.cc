#include "scenarios/readers/scenario.h"

#include <utility>

#include "scenarios/readers/arrival_options.h"
#include "scenarios/readers/cost_options.h"
#include "scenarios/readers/micro_batch_size.h"
#include "scenarios/readers/perturbation.h"
#include "scenarios/readers/reader_cache.h"
#include "scenarios/readers/run_options.h"
#include "scenarios/readers/scenario_shape.h"
#include "scenarios/readers/software.h"
#include "sim/base/error.h"
#include "sim/base/file_kind.h"
#include "sim/base/input_record.h"
#include "sim/base/json_document.h"
#include "topology/devices/overlap_costs.h"
#include "topology/fabrics/structure.h"
#include "topology/files/calibration.h"
#include "topology/files/cluster_file.h"

namespace rehearse {
namespace {

SimulatorOptions ReadSimulator(const JsonReader& reader, const Cluster& cluster) {
  SimulatorOptions options;
  SimulatorFields().ReadInto(reader, &options);
  LowerOptions& lowering = options.lowering;
  if (reader.Has("perturbation")) {
    lowering.perturbation = ReadPerturbation(reader.At("perturbation"), cluster, lowering.fidelity);
  }
  try {
    CheckRouting(options.routing, FabricOf(cluster), cluster.structure() == nullptr);
  } catch (const Error& error) {
    const char* const key = reader.Has("routing") ? "routing" : "queue_pairs";
    reader.At(key).Fail(error.what());
  }
  return options;
}

std::shared_ptr<const RunOptions> ReadRun(const JsonReader& root) {
  if (!root.Has("run")) return nullptr;
  const JsonReader reader = root.At("run");
  if (root.Has("jobs"))
    reader.Fail("is of a scenario's own step, whose tokens count; expected no \"jobs\" beside it");
  RunOptions options = RunFields().Read(reader);
  options.place = reader.place();
  return std::make_shared<const RunOptions>(std::move(options));
}

std::shared_ptr<const CostOptions> ReadCostsOf(const JsonReader& root) {
  if (!root.Has("costs")) return nullptr;
  const JsonReader reader = root.At("costs");
  if (root.Has("jobs"))
    reader.Fail(
        "are of a scenario's own step, whose tokens count; expected no \"jobs\" beside them");
  return std::make_shared<const CostOptions>(ReadCosts(reader));
}

// The slowdown of the devices' family if neither the scenario nor a calibration gives one; nothing
// if devices differ, as the player's figures are for all of them.
std::optional<Slowdown> UsualSlowdown(const Cluster& cluster) {
  const std::vector<DeviceSpec>& specs = cluster.device_specs();
  for (const DeviceSpec& spec : specs) {
    if (spec.slowdown.Any() || spec.measured != nullptr ||
        spec.compute_capability != specs.front().compute_capability) {
      return std::nullopt;
    }
  }
  const uint32_t last = cluster.device_count() - 1;
  const auto costs = OverlapCostsOf(specs.front(), cluster.NodeOf(0) != cluster.NodeOf(last));
  return costs ? std::optional<Slowdown>(costs->slowdown) : std::nullopt;
}

std::shared_ptr<const ArrivalOptions> ReadArrivalsOf(const JsonReader& root) {
  for (const char* key : {"model", "training", "strategy", "pipeline", "software", "placement",
                          "jobs", "run", "costs", "search"}) {
    if (root.Has(key))
      root.At(key).Fail("is of a step that the scenario has itself; expected no \"arrivals\"");
  }
  return std::make_shared<const ArrivalOptions>(ReadArrivals(root.At("arrivals")));
}

Scenario ReadWhole(const JsonDocument& written, ReaderCache* cache, bool is_queue) {
  JsonDocument document = written;
  const auto inputs = std::make_shared<InputRecord>();
  document.NoteIn(inputs);
  const JsonReader object = document.Root();
  RefuseOtherKinds(object, FileKind::kScenario);
  const JsonReader root = object.As(ScenarioShape());
  if (root.Has("arrivals") && !is_queue)
    root.At("arrivals").Fail("are jobs as they come, which only `rehearse run` plays");
  Scenario scenario;
  scenario.name = root.At("name").String();
  if (root.Has("description")) scenario.description = root.At("description").String();
  const ReadyCluster machine =
      cache != nullptr ? cache->ClusterOf(root, written.Given()) : ReadReadyCluster(root);
  scenario.cluster = machine.ready;
  ApplySoftware(&document, machine.nominal->DeviceOf(0).compute_capability);
  ResolveMicroBatchSize(&document);
  if (root.Has("simulator")) {
    const JsonReader simulator = root.At("simulator").As(SimulatorShape());
    SimulatorOptions options = ReadSimulator(simulator, *scenario.cluster);
    scenario.lowering = std::move(options.lowering);
    if (simulator.Has("communication_multiprocessors")) {
      const JsonReader taken = simulator.At("communication_multiprocessors");
      if (scenario.lowering.slowdown)
        taken.Fail("\"slowdown\" says what communication costs kernels; expected one of them");
      scenario.lowering.slowdown = SlowdownBeside(
          scenario.cluster->DeviceOf(0), options.communication_multiprocessors, taken.place());
      scenario.lowering.is_always_slowed = true;
    }
    scenario.routing = options.routing;
    if (simulator.Has("perturbation"))
      scenario.perturbation_place = simulator.At("perturbation").place();
  }
  if (!scenario.lowering.slowdown) scenario.lowering.slowdown = UsualSlowdown(*scenario.cluster);
  if (root.Has("memory"))
    MemoryOptionsFields().ReadInto(root.At("memory").As(MemoryOptionsFields().shape()),
                                   &scenario.memory);
  scenario.allow_out_of_memory = scenario.memory.allow_oom;
  scenario.lists_jobs = root.Has("jobs");
  scenario.run = ReadRun(root);
  scenario.costs = ReadCostsOf(root);
  if (is_queue) {
    scenario.arrivals = ReadArrivalsOf(root);
  } else {
    scenario.jobs = ReadJobRequests(root, *scenario.cluster, *machine.nominal, cache);
  }
  scenario.given = std::make_shared<const nlohmann::json>(written.Given());
  scenario.changes = written.changes();
  scenario.changes.insert(scenario.changes.end(), inputs->changes.begin(), inputs->changes.end());
  scenario.files = inputs->files;
  return scenario;
}

}  // namespace

Scenario ReadScenario(const JsonDocument& written, ReaderCache* cache) {
  return ReadWhole(written, cache, false);
}

bool HasArrivals(const JsonDocument& document) {
  return document.value().is_object() && document.value().contains("arrivals");
}

Scenario ReadQueueScenario(const JsonDocument& written) {
  return ReadWhole(written, nullptr, true);
}

Scenario ScenarioOf(const JsonDocument& schedule, std::unique_ptr<Cluster> cluster,
                    const std::optional<Calibration>& calibration,
                    const std::vector<uint32_t>& devices) {
  Scenario scenario;
  scenario.cluster = std::move(cluster);
  const std::shared_ptr<const Cluster> nominal = scenario.cluster;
  if (calibration) scenario.cluster = ApplyCalibration(*scenario.cluster, *calibration);
  scenario.lowering.slowdown = UsualSlowdown(*scenario.cluster);
  scenario.jobs.push_back(RequestOf(schedule.Root(), *scenario.cluster, *nominal, devices));
  scenario.name = scenario.jobs.front().name;
  return scenario;
}

}  // namespace rehearse
