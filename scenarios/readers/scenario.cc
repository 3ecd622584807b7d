#include "scenarios/readers/scenario.h"

#include "scenarios/readers/model_reader.h"
#include "scenarios/readers/perturbation.h"
#include "scenarios/readers/strategy_reader.h"
#include "sim/base/error.h"
#include "topology/files/calibration.h"
#include "topology/files/cluster_file.h"
#include "topology/files/edits.h"
#include "topology/files/graph_file.h"

namespace rehearse {
namespace {

LowerOptions ReadSimulator(const JsonReader& reader, const Cluster& cluster) {
  reader.AllowKeys({"fidelity", "channels", "algorithm", "protocol", "collectives", "slowdown",
                    "routing", "routing_seed", "perturbation"});
  LowerOptions options;
  if (reader.Has("fidelity")) {
    options.fidelity =
        static_cast<Fidelity>(reader.At("fidelity").Choice({"formula", "fluid", "step"}));
  }
  if (reader.Has("channels")) {
    options.channels = static_cast<uint32_t>(reader.At("channels").Integer(0, kMostChannels));
  }
  if (reader.Has("slowdown")) options.slowdown = ReadSlowdown(reader.At("slowdown"));
  if (reader.Has("perturbation")) {
    options.perturbation = ReadPerturbation(reader.At("perturbation"), cluster, options.fidelity);
  }
  return options;
}

FabricRouting ReadRouting(const JsonReader& reader) {
  FabricRouting routing;
  if (reader.Has("routing")) {
    routing.dragonfly = reader.At("routing").Choice({"minimal", "valiant"}) == 0
                            ? DragonflyRouting::kMinimal
                            : DragonflyRouting::kValiant;
  }
  if (reader.Has("routing_seed")) {
    routing.seed = static_cast<uint64_t>(reader.At("routing_seed").Integer(0, int64_t{1} << 53));
  }
  return routing;
}

FlopsPerSecond MeanPeak(const Cluster& cluster, DType precision) {
  std::vector<uint32_t> devices(cluster.device_specs().size());
  for (const Cluster::VertexId device : cluster.devices()) {
    ++devices[cluster.graph()[device].device];
  }
  FlopsPerSecond sum;
  for (size_t i = 0; i < devices.size(); ++i) {
    sum += devices[i] * PeakOf(cluster.device_specs()[i], precision);
  }
  return sum / cluster.device_count();
}

std::string MeshText(const DeviceMesh& mesh) {
  std::string text;
  for (const MeshAxis& axis : mesh.axes()) {
    text += fmt::format("{}{} {}", text.empty() ? "" : " x ", axis.name, axis.size);
  }
  return text;
}

}  // namespace

Scenario ReadScenario(const JsonDocument& document) {
  const JsonReader root = document.Root();
  root.AllowKeys({"name", "description", "cluster", "model", "training", "strategy", "simulator",
                  "calibration", "edits"});
  std::string name = root.At("name").String();
  std::string description = root.Has("description") ? root.At("description").String() : "";
  std::unique_ptr<Cluster> cluster = ReadCluster(root.At("cluster"));
  auto [network, training] = ReadModelAndTraining(root.At("model"), root.At("training"));
  const FlopsPerSecond nominal_peak = MeanPeak(*cluster, training.precision);
  if (root.Has("calibration")) ApplyCalibration(*cluster, ReadCalibration(root.At("calibration")));
  if (root.Has("edits")) cluster = ApplyEdits(std::move(cluster), ReadEdits(root.At("edits")));
  const JsonReader strategy_reader = root.At("strategy");
  Strategy strategy = ReadStrategy(strategy_reader, network);
  LowerOptions lowering;
  std::vector<CollectivePin> pins;
  FabricRouting routing;
  Place perturbation_place;
  if (root.Has("simulator")) {
    const JsonReader simulator = root.At("simulator");
    lowering = ReadSimulator(simulator, *cluster);
    pins = ReadCollectivePins(simulator);
    routing = ReadRouting(simulator);
    if (simulator.Has("perturbation")) perturbation_place = simulator.At("perturbation").place();
  }

  if (strategy.mesh.size() != cluster->device_count()) {
    strategy_reader.Fail(
        fmt::format("a mesh of {} = {} ranks does not fit cluster \"{}\" with {} "
                    "devices; expected their product to be {}",
                    MeshText(strategy.mesh), strategy.mesh.size(), cluster->name(),
                    cluster->device_count(), cluster->device_count()));
  }
  return {std::move(name),
          std::move(description),
          std::move(cluster),
          std::move(network),
          training,
          std::move(strategy),
          strategy_reader.place(),
          std::move(lowering),
          std::move(pins),
          routing,
          nominal_peak,
          std::move(perturbation_place)};
}

}  // namespace rehearse
