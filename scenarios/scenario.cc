#include "scenarios/scenario.h"

#include "scenarios/perturbation.h"
#include "sim/error.h"
#include "topology/cluster_file.h"
#include "topology/edits.h"
#include "topology/graph_file.h"
#include "workloads/strategy_4d.h"

namespace rehearse {
namespace {

constexpr int64_t kMostRanks = 1 << 22;

Training ReadTraining(const JsonReader& reader) {
  reader.AllowKeys({"batch", "sequence", "micro_batches", "recomputation"});
  Training training;
  training.batch = static_cast<uint64_t>(reader.At("batch").Integer(1, int64_t{1} << 32));
  training.sequence = static_cast<uint64_t>(reader.At("sequence").Integer(1, int64_t{1} << 24));
  if (reader.Has("micro_batches")) {
    training.micro_batches = static_cast<uint32_t>(reader.At("micro_batches").Integer(1, 1 << 16));
  }
  training.recomputation = reader.At("recomputation").Choice({"none", "full"}) == 0
                               ? Recomputation::kNone
                               : Recomputation::kFull;
  return training;
}

GptStrategy ReadFourD(const JsonReader& reader) {
  reader.AllowKeys({"kind", "column", "row", "depth", "data", "transpose_alternate_layers",
                    "overlap_all_reduce", "overlap_reduce_scatter", "overlap_all_gather",
                    "cached_layers"});
  const auto size = [&](const char* key) {
    return static_cast<uint32_t>(reader.At(key).Integer(1, kMostRanks));
  };
  FourDOptions options;
  options.column = size("column");
  options.row = size("row");
  options.depth = size("depth");
  options.data = size("data");
  const uint64_t ranks = uint64_t{options.column} * options.row * options.depth;
  if (ranks > kMostRanks || ranks * options.data > kMostRanks) {
    reader.Fail(fmt::format("a mesh of {}x{}x{}x{} has more than {} ranks", options.column,
                            options.row, options.depth, options.data, kMostRanks));
  }
  options.transpose_alternate_layers = reader.At("transpose_alternate_layers").Bool();
  options.overlap_all_reduce = reader.At("overlap_all_reduce").Bool();
  options.overlap_reduce_scatter = reader.At("overlap_reduce_scatter").Bool();
  options.overlap_all_gather = reader.At("overlap_all_gather").Bool();
  options.cached_layers = static_cast<uint32_t>(reader.At("cached_layers").Integer(0, 10000));
  return MakeFourD(options);
}

GptStrategy ReadStrategy(const JsonReader& reader) {
  if (!reader.IsObject()) reader.Expected("an object such as {\"kind\": \"4d\", ...}");
  reader.At("kind").Choice({"4d"});
  return ReadFourD(reader);
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

FlopsPerSecond MeanPeak(const Cluster& cluster) {
  std::vector<uint32_t> devices(cluster.device_specs().size());
  for (const Cluster::VertexId device : cluster.devices()) {
    ++devices[cluster.graph()[device].device];
  }
  FlopsPerSecond sum;
  for (size_t i = 0; i < devices.size(); ++i) {
    sum += devices[i] * PeakOf(cluster.device_specs()[i], DType::kBf16);
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
  const FlopsPerSecond nominal_peak = MeanPeak(*cluster);
  if (root.Has("edits")) cluster = ApplyEdits(std::move(cluster), ReadEdits(root.At("edits")));
  GptModel model = ReadModel(root.At("model"));
  const Training training = ReadTraining(root.At("training"));
  const JsonReader strategy_reader = root.At("strategy");
  GptStrategy strategy = ReadStrategy(strategy_reader);
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
      std::move(name), std::move(description), std::move(cluster),           std::move(model),
      training,        std::move(strategy),    strategy_reader.place(),      std::move(lowering),
      routing,         nominal_peak,           std::move(perturbation_place)};
}

}  // namespace rehearse
