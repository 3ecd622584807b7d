#include "scenarios/scenario.h"

#include "scenarios/perturbation.h"
#include "scenarios/strategy_reader.h"
#include "sim/error.h"
#include "topology/cluster_file.h"
#include "topology/edits.h"
#include "topology/graph_file.h"
#include "workloads/decoder_network.h"

namespace rehearse {
namespace {

Training ReadTraining(const JsonReader& reader) {
  reader.AllowKeys({"batch", "sequence", "micro_batches", "recomputation", "precision"});
  Training training;
  training.batch = static_cast<uint64_t>(reader.At("batch").Integer(1, int64_t{1} << 32));
  training.sequence = static_cast<uint64_t>(reader.At("sequence").Integer(1, int64_t{1} << 24));
  if (reader.Has("micro_batches")) {
    training.micro_batches = static_cast<uint32_t>(reader.At("micro_batches").Integer(1, 1 << 16));
  }
  training.recomputation = reader.At("recomputation").Choice({"none", "full"}) == 0
                               ? Recomputation::kNone
                               : Recomputation::kFull;
  if (reader.Has("precision")) {
    const bool is_bf16 = reader.At("precision").Choice({"bf16", "fp32"}) == 0;
    training.precision = is_bf16 ? DType::kBf16 : DType::kFp32;
  }
  return training;
}

LowerOptions ReadSimulator(const JsonReader& reader, const Cluster& cluster) {
  reader.AllowKeys({"fidelity", "channels", "slowdown", "routing", "routing_seed", "perturbation"});
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
  root.AllowKeys(
      {"name", "description", "cluster", "model", "training", "strategy", "simulator", "edits"});
  std::string name = root.At("name").String();
  std::string description = root.Has("description") ? root.At("description").String() : "";
  std::unique_ptr<Cluster> cluster = ReadCluster(root.At("cluster"));
  const Training training = ReadTraining(root.At("training"));
  const FlopsPerSecond nominal_peak = MeanPeak(*cluster, training.precision);
  if (root.Has("edits")) cluster = ApplyEdits(std::move(cluster), ReadEdits(root.At("edits")));
  const GptModel model = ReadModel(root.At("model"));
  const JsonReader strategy_reader = root.At("strategy");
  Network network = MakeDecoder(model, training);
  Strategy strategy = ReadStrategy(strategy_reader, network);
  LowerOptions lowering;
  FabricRouting routing;
  Place perturbation_place;
  if (root.Has("simulator")) {
    const JsonReader simulator = root.At("simulator");
    lowering = ReadSimulator(simulator, *cluster);
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
  return {
      std::move(name), std::move(description), std::move(cluster),           std::move(network),
      training,        std::move(strategy),    strategy_reader.place(),      std::move(lowering),
      routing,         nominal_peak,           std::move(perturbation_place)};
}

}  // namespace rehearse
