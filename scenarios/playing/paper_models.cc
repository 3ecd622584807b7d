#include "scenarios/playing/paper_models.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "collectives/lowering/trial.h"
#include "scenarios/readers/collective_pins.h"
#include "sim/base/error.h"
#include "sim/base/units.h"

namespace rehearse {
namespace {

using nlohmann::json;

const Workload& WorkloadOf(const Scenario& scenario) {
  const auto* workload = std::get_if<Workload>(&scenario.jobs.front().work);
  if (scenario.lists_jobs || workload == nullptr)
    throw Error("the papers' models are for one training step, not for jobs or schedules");
  return *workload;
}

// The sizes of the mesh's axes by name, if these are exactly the axes that it has.
std::optional<std::vector<uint32_t>> SizesOf(const DeviceMesh& mesh,
                                             const std::vector<std::string>& names) {
  if (mesh.axes().size() != names.size()) return std::nullopt;
  std::vector<uint32_t> sizes;
  for (const std::string& name : names) {
    const auto axis = std::find_if(mesh.axes().begin(), mesh.axes().end(),
                                   [&](const MeshAxis& one) { return one.name == name; });
    if (axis == mesh.axes().end()) return std::nullopt;
    sizes.push_back(axis->size);
  }
  return sizes;
}

std::optional<std::vector<uint32_t>> FourDSizes(const Workload& workload) {
  return SizesOf(workload.strategy.mesh, {"column", "row", "depth", "data"});
}
std::optional<std::vector<uint32_t>> AtpSizes(const Workload& workload) {
  return SizesOf(workload.strategy.mesh, {"d1", "d2", "data"});
}

const json* SbpProductsOf(const Scenario& scenario) {
  if (!scenario.given || !scenario.given->contains("strategy")) return nullptr;
  const json& strategy = (*scenario.given)["strategy"];
  if (!strategy.is_object() || strategy.value("kind", "") != "sbp") return nullptr;
  if (!strategy.contains("nodes") || !strategy.contains("products")) return nullptr;
  return &strategy["products"];
}

[[noreturn]] void Refuse(const Scenario& scenario, const std::string& what) {
  throw Error(scenario.jobs.front().place, what);
}

void RefuseStages(const Scenario& scenario, const char* whose) {
  if (WorkloadOf(scenario).pipeline)
    Refuse(scenario, fmt::format("{} model has no stages; found a pipeline", whose));
}

// How many ranks the first machine has.
uint32_t RanksOfNode(const Cluster& cluster) {
  uint32_t ranks = 1;
  while (ranks < cluster.device_count() && cluster.NodeOf(ranks) == cluster.NodeOf(0)) ++ranks;
  return ranks;
}

// The busbw of ring all-reduces in all these groups at the same time.
BytesPerSecond RingBandwidth(const Scenario& scenario, std::vector<std::vector<uint32_t>> groups) {
  const auto size = static_cast<double>(groups.front().size());
  Trial trial;
  trial.groups = std::move(groups);
  trial.routing = scenario.routing;
  const Bytes bytes(512.0 * 1024 * 1024);
  Router router(*scenario.cluster, scenario.routing);
  return 2 * (size - 1) / size * bytes / TimeOf(trial, bytes, router);
}

AxonnBandwidths MeasuredBandwidths(const Scenario& scenario) {
  const Cluster& cluster = *scenario.cluster;
  AxonnBandwidths table;
  table.name = cluster.name();
  table.source = "rings on the simulated machine";
  table.gpus_per_node = RanksOfNode(cluster);
  for (uint32_t size = 2; size <= table.gpus_per_node; ++size) {
    for (uint32_t inner = 1; inner * size <= table.gpus_per_node; ++inner) {
      if (table.gpus_per_node % (inner * size) != 0) continue;
      std::vector<std::vector<uint32_t>> groups;
      for (uint32_t begin = 0; begin < table.gpus_per_node; begin += inner * size) {
        for (uint32_t first = begin; first < begin + inner; ++first) {
          groups.emplace_back();
          for (uint32_t i = 0; i < size; ++i) groups.back().push_back(first + i * inner);
        }
      }
      table.intra[{inner, size}] = RingBandwidth(scenario, std::move(groups));
    }
  }
  if (cluster.device_count() >= 2 * table.gpus_per_node) {
    std::vector<std::vector<uint32_t>> groups;
    for (uint32_t rank = 0; rank < table.gpus_per_node; ++rank)
      groups.push_back({rank, rank + table.gpus_per_node});
    table.inter = static_cast<double>(table.gpus_per_node) * RingBandwidth(scenario, groups);
  }
  return table;
}

// An all-reduce that is run as the scenario runs those of any axis.
Trial AllReduceTrial(const Scenario& scenario) {
  Trial trial;
  trial.routing = scenario.routing;
  trial.nccl = scenario.lowering.nccl;
  trial.algorithm = AlgorithmId::kAuto;
  trial.protocol = Protocol::kAuto;
  for (const CollectivePin& pin : scenario.jobs.front().collective_pins) {
    if (!Fits(pin, trial.kind, "")) continue;
    trial.algorithm = pin.algorithm;
    trial.protocol = pin.protocol;
  }
  return trial;
}

// α and β by section 3.2 of the paper, from all-reduces of 64 KiB to 64 MiB. The paper times one
// collective at a time, by NCCL; so its formula does not know that the groups of a layout share the
// NICs of a machine.
AlphaBeta FitAllReduce(const Scenario& scenario, std::vector<uint32_t> ranks) {
  Trial trial = AllReduceTrial(scenario);
  trial.groups = {std::move(ranks)};
  Router router(*scenario.cluster, scenario.routing);
  std::vector<AlphaBetaSample> samples;
  constexpr uint64_t kLeast = uint64_t{1} << 16;
  constexpr uint64_t kMost = uint64_t{1} << 26;
  const auto size = static_cast<uint32_t>(trial.groups.front().size());
  for (uint64_t count = kLeast; count <= kMost; count *= 4) {
    const Bytes bytes(static_cast<double>(count));
    samples.push_back({CollectiveKind::kAllReduce, size, bytes, TimeOf(trial, bytes, router)});
  }
  return FitAlphaBeta(samples);
}

SbpNetwork MeasuredNetwork(const Scenario& scenario) {
  const Cluster& cluster = *scenario.cluster;
  const uint32_t own = RanksOfNode(cluster);
  SbpNetwork network;
  if (own > 1) {
    std::vector<uint32_t> ranks(own);
    std::iota(ranks.begin(), ranks.end(), 0u);
    network.inside = FitAllReduce(scenario, std::move(ranks));
  }
  const uint32_t nodes = cluster.device_count() / own;
  constexpr uint32_t kMostNodes = 16;
  if (nodes > 1) {
    std::vector<uint32_t> ranks(size_t{own} * std::min(nodes, kMostNodes));
    std::iota(ranks.begin(), ranks.end(), 0u);
    network.between = FitAllReduce(scenario, std::move(ranks));
  }
  return network;
}

}  // namespace

SbpChoice ReadSbpChoice(const json& placement) {
  SbpFactor factors[3];
  for (size_t i = 0; i < 3; ++i) {
    const json& part = placement[i];
    factors[i] = part.is_array() ? SbpFactor{part[0].get<uint32_t>(), part[1].get<uint32_t>()}
                                 : SbpFactor{part.get<uint32_t>(), 1};
  }
  return {factors[0], factors[1], factors[2]};
}

std::optional<PaperModel> PaperModels::ModelOf(const Scenario& scenario) {
  const Workload& workload = WorkloadOf(scenario);
  if (workload.pipeline) return std::nullopt;
  if (FourDSizes(workload)) return PaperModel::kAxonn;
  if (AtpSizes(workload)) return PaperModel::kAtp;
  if (SbpProductsOf(scenario) != nullptr) return PaperModel::kAutoddl;
  return std::nullopt;
}

PaperModels::Machine& PaperModels::MachineOf(const Scenario& scenario) {
  Machine& machine = machines_[scenario.cluster.get()];
  machine.cluster = scenario.cluster;
  return machine;
}

PaperPrediction PaperModels::Predict(PaperModel model, const Scenario& scenario) {
  switch (model) {
    case PaperModel::kAxonn:
      return Axonn(scenario, true);
    case PaperModel::kAxonnAgnostic:
      return Axonn(scenario, false);
    case PaperModel::kAtp:
      return Atp(scenario);
    case PaperModel::kAutoddl:
      return Autoddl(scenario);
  }
  CHECK(false);
}

AxonnInput PaperModels::AxonnInputOf(const Scenario& scenario, bool is_aware) {
  RefuseStages(scenario, "AxoNN's");
  const Workload& workload = WorkloadOf(scenario);
  if (!FourDSizes(workload)) Refuse(scenario, "AxoNN's model is for the strategy \"4d\"");
  AxonnInput input{AxonnProducts(*workload.network), workload.training, {}};
  if (is_aware) {
    const std::lock_guard lock(mutex_);
    Machine& machine = MachineOf(scenario);
    if (!machine.axonn)
      machine.axonn = scenario.cluster->name() == PerlmutterBandwidths().name
                          ? PerlmutterBandwidths()
                          : MeasuredBandwidths(scenario);
    input.bandwidths = *machine.axonn;
  } else {
    // Everything carries one byte per second, as in the paper's baseline, so that times are
    // volumes.
    input.bandwidths.name = "agnostic";
    input.bandwidths.source = "all bandwidths are one byte a second";
    input.bandwidths.inter = BytesPerSecond(1);
    input.bandwidths.gpus_per_node = 1;
  }
  return input;
}

PaperPrediction PaperModels::Axonn(const Scenario& scenario, bool is_aware) {
  const AxonnInput input = AxonnInputOf(scenario, is_aware);
  const std::vector<uint32_t> sizes = *FourDSizes(WorkloadOf(scenario));
  FourDOptions options;
  options.column = sizes[0];
  options.row = sizes[1];
  options.depth = sizes[2];
  options.data = sizes[3];
  const AxonnPrediction axonn =
      PredictAxonn(input.products, input.training, options, input.bandwidths);
  PaperPrediction prediction;
  prediction.model = is_aware ? PaperModel::kAxonn : PaperModel::kAxonnAgnostic;
  prediction.terms = {{"all-gathers of W (eq. 4)", axonn.all_gather},
                      {"reduce-scatters of dW (eq. 5)", axonn.reduce_scatter},
                      {"all-reduces of Y (eq. 6)", axonn.forward_all_reduce},
                      {"all-reduces of dX (eq. 7)", axonn.backward_all_reduce},
                      {"all-reduces of dW (eq. 8)", axonn.data_all_reduce}};
  prediction.total = axonn.Total();
  prediction.source = "AxoNN, arXiv 2305.13525, eq. 9; bandwidths: " + input.bandwidths.source;
  return prediction;
}

AtpWorkload AtpInput::Of(uint32_t data) const {
  AtpWorkload own = whole;
  own.tokens /= data;
  return own;
}

AtpInput PaperModels::AtpInputOf(const Scenario& scenario) {
  RefuseStages(scenario, "ATP's");
  const Workload& workload = WorkloadOf(scenario);
  if (!AtpSizes(workload)) Refuse(scenario, "ATP's model is for the strategy \"atp\"");
  const Network& network = *workload.network;
  const auto qkv =
      std::find_if(network.matrices.begin(), network.matrices.end(),
                   [](const NetworkMatrix& matrix) { return matrix.role == MatrixRole::kQkv; });
  if (qkv == network.matrices.end()) Refuse(scenario, "ATP's model is for decoders");
  return {{.layers = static_cast<uint32_t>(network.layers),
           .tokens = network.tokens,
           .hidden = qkv->k,
           .element = SizeOf(workload.training.precision)}};
}

const CommunicationMatrix& PaperModels::MatrixOf(const Scenario& scenario, uint32_t devices) {
  const std::lock_guard lock(mutex_);
  Machine& machine = MachineOf(scenario);
  auto found = machine.matrices.find(devices);
  if (found == machine.matrices.end()) {
    Router router(*scenario.cluster, scenario.routing);
    std::vector<uint32_t> ranks(devices);
    std::iota(ranks.begin(), ranks.end(), 0u);
    found = machine.matrices.emplace(devices, HierarchicalMatrix(router, ranks)).first;
  }
  return found->second;
}

PaperPrediction PaperModels::Atp(const Scenario& scenario) {
  const AtpInput input = AtpInputOf(scenario);
  const std::vector<uint32_t> sizes = *AtpSizes(WorkloadOf(scenario));
  const AtpMesh mesh{sizes[0], sizes[1]};
  const CommunicationMatrix& matrix = MatrixOf(scenario, mesh.d1 * mesh.d2);
  if (!SplitsEvenly(matrix, mesh))
    Refuse(scenario,
           "ATP's eq. 3 says nothing about a mesh that cuts a layer of its communication matrix "
           "unevenly");
  const AtpPrediction atp = PredictAtp(input.Of(sizes[2]), mesh, matrix);
  PaperPrediction prediction;
  prediction.model = PaperModel::kAtp;
  prediction.terms = {{"all-reduces of q, k, v", atp.qkv},
                      {"all-reduces of the projection", atp.projection},
                      {"all-reduces of the MLP's first product", atp.mlp_up},
                      {"all-reduces of the MLP's second product", atp.mlp_down}};
  prediction.total = atp.Total();
  prediction.source =
      "ATP, arXiv 2301.08658, eq. 2 to 4; bandwidths: its communication matrix of the graph";
  return prediction;
}

AutoddlInput PaperModels::AutoddlInputOf(const Scenario& scenario) {
  RefuseStages(scenario, "AutoDDL's");
  const Workload& workload = WorkloadOf(scenario);
  if (SbpProductsOf(scenario) == nullptr)
    Refuse(scenario, "AutoDDL's model is for the strategy \"sbp\" by numbers");
  AutoddlInput input;
  {
    const Trial trial = AllReduceTrial(scenario);
    const std::string key = fmt::format("{} {} {} {}", Name(trial.algorithm), Name(trial.protocol),
                                        Name(trial.nccl.version), trial.nccl.nvls);
    const std::lock_guard lock(mutex_);
    Machine& machine = MachineOf(scenario);
    auto known = machine.networks.find(key);
    if (known == machine.networks.end())
      known = machine.networks.emplace(key, MeasuredNetwork(scenario)).first;
    input.network = known->second;
  }
  input.network.element = SizeOf(workload.training.precision);
  const Network& network = *workload.network;
  for (const NetworkNode& node : network.nodes) {
    if (node.kind != NodeKind::kProduct || !node.matrix) continue;
    const NetworkMatrix& matrix = network.matrices[*node.matrix];
    const bool is_first = input.chain.empty() && matrix.layer <= 0 && !node.inputs.empty() &&
                          network.nodes[node.inputs.front()].kind == NodeKind::kInput;
    input.chain.push_back(
        {.product = {.rows = static_cast<double>(node.rows) * network.micro_batches,
                     .k = static_cast<double>(matrix.k),
                     .n = static_cast<double>(matrix.n),
                     .choice = {},
                     .first = is_first},
         // A tied matrix goes by the name of the table.
         .name = matrix.tied ? network.matrices[*matrix.tied].name : matrix.name,
         .is_tied = matrix.tied.has_value()});
  }
  if (input.chain.empty()) Refuse(scenario, "AutoDDL's model is for products, but there are none");
  return input;
}

PaperPrediction PaperModels::Autoddl(const Scenario& scenario) {
  const AutoddlInput input = AutoddlInputOf(scenario);
  const json& products = *SbpProductsOf(scenario);
  std::vector<SbpProduct> chain;
  for (const AutoddlInput::Product& one : input.chain) {
    chain.push_back(one.product);
    SbpChoice& choice = chain.back().choice;
    choice = ReadSbpChoice(products[products.contains(one.name) ? one.name : "default"]);
    if (one.is_tied) std::swap(choice.p1, choice.p2);
  }
  const AutoddlPrediction autoddl = PredictAutoddl(chain, input.network);
  PaperPrediction prediction;
  prediction.model = PaperModel::kAutoddl;
  prediction.terms = {{"all-gathers of X and dY", autoddl.gather},
                      {"reduce-scatters of Y and dX", autoddl.scatter},
                      {"all-to-alls where p0 changes", autoddl.change},
                      {"all-reduces of dW", autoddl.gradient}};
  prediction.total = autoddl.Total();
  prediction.source =
      "AutoDDL, arXiv 2301.06813, Table 2 and section 4; alpha and beta: all-reduces on the "
      "simulated machine";
  return prediction;
}

std::string ToText(const PaperPrediction& prediction) {
  std::string text = fmt::format(
      "What {}'s formula says: {} of communication, without computation, overlap and contention\n",
      kPaperModelNames[static_cast<size_t>(prediction.model)], Print(prediction.total));
  for (const auto& [name, seconds] : prediction.terms) {
    text += fmt::format("  {:<42} {:>10}  {:5.1f} %\n", name, Print(seconds),
                        prediction.total > Seconds(0) ? 100 * (seconds / prediction.total) : 0.0);
  }
  return text + fmt::format("  {}\n", prediction.source);
}

nlohmann::ordered_json ToJson(const PaperPrediction& prediction) {
  nlohmann::ordered_json terms = nlohmann::ordered_json::object();
  for (const auto& [name, seconds] : prediction.terms) terms[name] = seconds.value();
  return {{"model", kPaperModelNames[static_cast<size_t>(prediction.model)]},
          {"communication_seconds", prediction.total.value()},
          {"terms", std::move(terms)},
          {"source", prediction.source}};
}

}  // namespace rehearse
