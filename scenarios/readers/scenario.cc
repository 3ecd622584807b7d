#include "scenarios/readers/scenario.h"

#include "scenarios/readers/perturbation.h"
#include "scenarios/readers/reader_cache.h"
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
#include "topology/files/device_file.h"

namespace rehearse {
namespace {

LowerOptions ReadSimulator(const JsonReader& reader, const Cluster& cluster) {
  LowerOptions options;
  options.fidelity = static_cast<Fidelity>(reader.At("fidelity").Choice());
  options.channels = reader.At("channels").Whole<uint32_t>();
  options.nccl = {kNcclVersions[reader.At("nccl").Choice()], reader.At("nvls").Bool()};
  if (reader.Has("copy_engines")) {
    for (const JsonReader& axis : reader.At("copy_engines").Elements())
      options.copy_engines.push_back(axis.String());
  }
  if (reader.Has("slowdown")) options.slowdown = SlowdownFields().Read(reader.At("slowdown"));
  if (reader.Has("perturbation")) {
    options.perturbation = ReadPerturbation(reader.At("perturbation"), cluster, options.fidelity);
  }
  return options;
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

FabricRouting ReadRouting(const JsonReader& reader, const Cluster& cluster) {
  FabricRouting routing;
  if (reader.Has("routing"))
    routing.choice = static_cast<RouteChoice>(reader.At("routing").Choice());
  if (reader.Has("queue_pairs")) routing.queue_pairs = reader.At("queue_pairs").Whole<uint32_t>();
  if (reader.Has("routing_seed")) routing.seed = reader.At("routing_seed").Whole<uint64_t>();
  try {
    CheckRouting(routing, FabricOf(cluster), cluster.structure() == nullptr);
  } catch (const Error& error) {
    const char* const key = reader.Has("routing") ? "routing" : "queue_pairs";
    reader.At(key).Fail(error.what());
  }
  return routing;
}

}  // namespace

Scenario ReadScenario(const JsonDocument& written, ReaderCache* cache) {
  JsonDocument document = written;
  const auto inputs = std::make_shared<InputRecord>();
  document.NoteIn(inputs);
  const JsonReader object = document.Root();
  RefuseOtherKinds(object, FileKind::kScenario);
  const JsonReader root = object.As(ScenarioShape());
  Scenario scenario;
  scenario.name = root.At("name").String();
  if (root.Has("description")) scenario.description = root.At("description").String();
  const ReadyCluster machine =
      cache != nullptr ? cache->ClusterOf(root, written.Given()) : ReadReadyCluster(root);
  scenario.cluster = machine.ready;
  ApplySoftware(&document, machine.nominal->DeviceOf(0).compute_capability);
  if (root.Has("simulator")) {
    const JsonReader simulator = root.At("simulator").As(SimulatorShape());
    scenario.lowering = ReadSimulator(simulator, *scenario.cluster);
    scenario.routing = ReadRouting(simulator, *scenario.cluster);
    if (simulator.Has("perturbation"))
      scenario.perturbation_place = simulator.At("perturbation").place();
  }
  if (!scenario.lowering.slowdown) scenario.lowering.slowdown = UsualSlowdown(*scenario.cluster);
  scenario.lists_jobs = root.Has("jobs");
  scenario.jobs = ReadJobRequests(root, *scenario.cluster, *machine.nominal, cache);
  scenario.given = std::make_shared<const nlohmann::json>(written.Given());
  scenario.changes = written.changes();
  scenario.changes.insert(scenario.changes.end(), inputs->changes.begin(), inputs->changes.end());
  scenario.files = inputs->files;
  return scenario;
}

Scenario ScenarioOf(const JsonDocument& schedule, std::unique_ptr<Cluster> cluster,
                    const std::optional<Calibration>& calibration) {
  Scenario scenario;
  scenario.cluster = std::move(cluster);
  const std::shared_ptr<const Cluster> nominal = scenario.cluster;
  if (calibration) scenario.cluster = ApplyCalibration(*scenario.cluster, *calibration);
  scenario.lowering.slowdown = UsualSlowdown(*scenario.cluster);
  scenario.jobs.push_back(RequestOf(schedule.Root(), *scenario.cluster, *nominal));
  scenario.name = scenario.jobs.front().name;
  return scenario;
}

}  // namespace rehearse
