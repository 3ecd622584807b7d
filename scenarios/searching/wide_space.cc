#include "scenarios/searching/wide_space.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/base/file_kind.h"
#include "sim/base/json_reader.h"
#include "topology/devices/overlap_costs.h"
#include "workloads/networks/model.h"

namespace rehearse {
namespace {

using nlohmann::json;

constexpr const char* kUsualSoftware = "nemo";
constexpr uint64_t kFewestTokens = 2048;   // of a sequence that each rank of a context has
constexpr uint32_t kMostTensor = 16;       // beyond, products are too narrow to be worth it
constexpr uint64_t kFewestColumns = 2048;  // of an expert that is divided, likewise
constexpr uint32_t kMostContext = 64;
constexpr uint32_t kMostStages = 64;
constexpr uint32_t kMostVirtual = 12;
constexpr uint32_t kMostSamples = 8;  // of a micro-batch
constexpr size_t kMostRankCounts = 3;
constexpr const char* kPairOrder = "megatron-core";
constexpr uint32_t kCommunicationMultiprocessors = 20;  // DeepSeek-V3's, arXiv 2412.19437

bool Says(const json& scenario, const char* object, const char* key) {
  return scenario.contains(object) && scenario[object].is_object() &&
         scenario[object].contains(key);
}

std::vector<uint32_t> DivisorsOf(uint32_t number) {
  std::vector<uint32_t> divisors;
  for (uint32_t i = 1; i <= number; ++i)
    if (number % i == 0) divisors.push_back(i);
  return divisors;
}

uint32_t DevicesOfMachine(const Cluster& cluster) {
  return std::max(1u, cluster.device_count() / std::max(1u, cluster.node_count()));
}

// What the model and the training allow, whatever the machine.
struct Shapes {
  GptModel model;
  uint64_t sequence = 0;
  uint64_t batch = 0;
};

class WideReader {
 public:
  WideReader(const JsonDocument& scenario, std::vector<std::shared_ptr<const Cluster>> clusters,
             uint32_t most_ranks)
      : scenario_(scenario.value()),
        place_(scenario.Root().At("model").place()),
        clusters_(std::move(clusters)),
        most_ranks_(most_ranks) {
    const JsonReader root = scenario.Root();
    shapes_.model = ReadModel(root.At("model"));
    if (!shapes_.model.layer_pattern.empty())
      root.At("model").Fail(
          "steps of a search without a \"strategy\" are composed of equal layers, which a "
          "\"layer_pattern\" has not; expected a \"strategy\"");
    const JsonReader training = root.At("training");
    shapes_.sequence = static_cast<uint64_t>(training.At("sequence").Integer(1, 1 << 24));
    shapes_.batch = static_cast<uint64_t>(training.At("batch").Integer(1, int64_t{1} << 32));
  }

  std::vector<SpaceAxis> Axes() {
    AddLayouts();
    if (shapes_.model.experts) AddExperts();
    AddSchedules();
    if (shapes_.model.experts) {
      AddPairs();
      AddDispatchers();
    }
    Add("sequence_parallel", {{"sequence parallel", {{"strategy.sequence_parallel", true}}},
                              {"not sequence parallel", {{"strategy.sequence_parallel", false}}}});
    AddZero();
    AddMicroBatches();
    AddRecomputation();
    AddProducts();
    return std::move(axes_);
  }

 private:
  void Add(const std::string& name, std::vector<SpaceChoice> choices) {
    SpaceAxis axis;
    axis.name = name;
    axis.choices = std::move(choices);
    axis.place = place_;
    axes_.push_back(std::move(axis));
  }

  // Of the cluster with the most: others refuse what they cannot have.
  uint32_t MostTensor() const {
    uint32_t most = 1;
    for (const auto& cluster : clusters_) most = std::max(most, DevicesOfMachine(*cluster));
    return std::min(most, kMostTensor);
  }

  std::vector<uint32_t> Stages() const {
    if (!scenario_.contains("pipeline")) return {};
    const json& stages = scenario_["pipeline"].value("stages", json(1));
    return {stages.is_number_unsigned() ? stages.get<uint32_t>() : 1u};
  }

  void AddLayouts() {
    std::set<uint32_t> counts;
    std::set<uint32_t> machines;
    for (const auto& cluster : clusters_) {
      for (const uint32_t count : RankCounts(*cluster, most_ranks_)) counts.insert(count);
      machines.insert(std::bit_floor(DevicesOfMachine(*cluster)));
    }
    SpaceAxis axis;
    axis.name = "tensor x context x shard x replicas x stages";
    axis.place = place_;
    for (const uint32_t ranks : counts)
      for (const uint32_t tensor : DivisorsOf(ranks))
        if (IsTensor(tensor)) AddLayouts(ranks, tensor, machines, &axis);
    axes_.push_back(std::move(axis));
  }

  bool IsTensor(uint32_t tensor) const {
    return tensor <= MostTensor() && shapes_.model.heads % tensor == 0 &&
           shapes_.model.Groups() % tensor == 0;
  }

  bool IsContext(uint32_t context) const {
    return context == 1 || (!shapes_.model.latent && context <= kMostContext &&
                            shapes_.sequence % (2 * uint64_t{context}) == 0 &&
                            shapes_.sequence / context >= kFewestTokens);
  }

  void AddLayouts(uint32_t ranks, uint32_t tensor, const std::set<uint32_t>& machines,
                  SpaceAxis* axis) const {
    const std::vector<uint32_t> given = Stages();
    for (const uint32_t context : DivisorsOf(ranks / tensor)) {
      if (!IsContext(context)) continue;
      const uint32_t others = ranks / tensor / context;
      for (const uint32_t stages : DivisorsOf(others)) {
        const bool is_wanted = given.empty() ? stages <= std::min(kMostStages, shapes_.model.layers)
                                             : stages == given.front();
        const uint32_t groups = others / stages;
        if (!is_wanted || shapes_.batch % groups != 0) continue;
        std::set<uint32_t> shards = {groups};
        for (const uint32_t machine : machines) {
          const uint32_t within = machine / std::gcd(machine, tensor * context);
          if (within > 1 && within < groups && groups % within == 0) shards.insert(within);
        }
        for (const uint32_t shard : shards)
          axis->choices.push_back(Layout(tensor, context, shard, groups / shard, stages));
      }
    }
  }

  static SpaceChoice Layout(uint32_t tensor, uint32_t context, uint32_t shard, uint32_t replicas,
                            uint32_t stages) {
    SpaceChoice choice;
    choice.name = fmt::format("tensor {}", tensor);
    if (context > 1) choice.name += fmt::format(" context {}", context);
    choice.name += fmt::format(" shard {}", shard);
    if (replicas > 1) choice.name += fmt::format(" replicas {}", replicas);
    if (stages > 1) choice.name += fmt::format(" stages {}", stages);
    choice.changes = {{"strategy.tensor", tensor},
                      {"strategy.context", context},
                      {"strategy.shard", shard},
                      {"strategy.replicas", replicas},
                      {"pipeline.stages", stages}};
    return choice;
  }

  // Each expert whole, or as much divided as other products can be.
  void AddExperts() {
    std::vector<SpaceChoice> choices;
    for (const uint32_t expert : DivisorsOf(shapes_.model.experts->count)) {
      for (uint32_t tensor = 1; tensor <= MostTensor(); tensor *= 2) {
        const uint64_t hidden = shapes_.model.experts->hidden;
        if (hidden % tensor != 0 || (tensor > 1 && hidden / tensor < kFewestColumns)) continue;
        std::string name = fmt::format("expert {}", expert);
        if (tensor > 1) name += fmt::format(" expert_tensor {}", tensor);
        choices.push_back(
            {name, {{"strategy.expert", expert}, {"strategy.expert_tensor", tensor}}});
      }
    }
    Add("expert x expert_tensor", std::move(choices));
  }

  void AddSchedules() {
    if (Says(scenario_, "pipeline", "schedule") || Says(scenario_, "pipeline", "order")) return;
    std::vector<SpaceChoice> choices = {
        {"1f1b", {{"pipeline.schedule", "1f1b"}, {"pipeline.split", "flops"}}}};
    const auto add = [&](uint32_t stages, const char* split, const char* words) {
      choices.push_back({fmt::format("interleaved {}{}", stages, words),
                         {{"pipeline.schedule", "interleaved"},
                          {"pipeline.virtual", stages},
                          {"pipeline.split", split}}});
    };
    const uint32_t layers = shapes_.model.layers;
    for (uint32_t stages = 2; stages <= std::min(kMostVirtual, layers); ++stages) {
      if (layers % stages == 0) add(stages, "layers", "");
      if ((layers + 2) % stages == 0) add(stages, "layers-and-ends", " with ends as layers");
    }
    if (shapes_.model.experts) {
      for (const char* order : {"dualpipe", "dualpipev"})
        choices.push_back({order, {{"pipeline.schedule", order}, {"pipeline.split", "flops"}}});
    }
    Add("schedule", std::move(choices));
  }

  // Whether so many multiprocessors can be kept for communication on one of the clusters, and the
  // scenario does not say itself what communication costs the kernels beside it.
  bool KeepsMultiprocessors() const {
    if (Says(scenario_, "simulator", "slowdown") ||
        Says(scenario_, "simulator", "communication_multiprocessors"))
      return false;
    return std::any_of(clusters_.begin(), clusters_.end(), [](const auto& cluster) {
      return OverlapCostsOf(cluster->DeviceOf(0), false).has_value();
    });
  }

  void AddPairs() {
    if (Says(scenario_, "pipeline", "pair_passes")) return;
    const Changes pairs = {{"pipeline.pair_passes", true}, {"pipeline.pair_order", kPairOrder}};
    std::vector<SpaceChoice> choices = {{"no pairs", {{"pipeline.pair_passes", false}}},
                                        {"pairs", pairs}};
    if (KeepsMultiprocessors()) {
      choices.push_back(
          {fmt::format("pairs beside {} multiprocessors", kCommunicationMultiprocessors), pairs});
      choices.back().changes.emplace_back("simulator.communication_multiprocessors",
                                          kCommunicationMultiprocessors);
    }
    Add("pairs", std::move(choices));
  }

  void AddDispatchers() {
    if (Says(scenario_, "simulator", "collectives") || Says(scenario_, "simulator", "algorithm"))
      return;
    const json deepep =
        json::array({json::object({{"kind", "all-to-all"}, {"algorithm", "deepep"}})});
    Add("dispatcher", {{"all-to-all", {{"simulator.collectives", json::array()}}},
                       {"deepep", {{"simulator.collectives", deepep}}}});
  }

  void AddZero() {
    Add("zero", {{"zero 1", {{"strategy.zero", 1}}},
                 {"zero 2", {{"strategy.zero", 2}, {"strategy.overlap_reduce_scatter", true}}},
                 {"zero 3",
                  {{"strategy.zero", 3},
                   {"strategy.gather", "layer"},
                   {"strategy.prefetch", 1},
                   {"strategy.reshard_after_forward", true},
                   {"strategy.overlap_reduce_scatter", true}}}});
  }

  void AddMicroBatches() {
    if (Says(scenario_, "training", "micro_batches") ||
        Says(scenario_, "training", "micro_batch_size"))
      return;
    std::vector<SpaceChoice> choices;
    for (uint32_t size = 1; size <= std::min<uint64_t>(kMostSamples, shapes_.batch); size *= 2)
      choices.push_back(
          {fmt::format("micro-batch {}", size), {{"training.micro_batch_size", size}}});
    Add("micro-batch", std::move(choices));
  }

  void AddRecomputation() {
    if (Says(scenario_, "training", "recomputation")) return;
    const json ops = shapes_.model.llama ? json{"norms", "activations"} : json{"activations"};
    Add("recomputation",
        {{"no recomputation", {{"training.recomputation", "none"}}},
         {"selective recomputation",
          {{"training.recomputation", "selective"}, {"training.recomputed_ops", ops}}},
         {"full recomputation", {{"training.recomputation", "full"}}}});
  }

  // The recipes of devices that multiply in 8 bits.
  void AddProducts() {
    if (Says(scenario_, "training", "products") || Says(scenario_, "training", "precision")) return;
    std::vector<SpaceChoice> choices = {{"bf16", {{"training.products", "plain"}}}};
    std::set<std::string> recipes;
    for (const auto& cluster : clusters_) {
      const DeviceSpec& device = cluster->DeviceOf(0);
      if (!(device.matrix_peak_8 > FlopsPerSecond(0))) continue;
      constexpr uint32_t kBlackwell = 100;
      recipes.insert("fp8");
      if (device.compute_capability >= kBlackwell) recipes.insert("mxfp8");
    }
    for (const std::string& recipe : recipes)
      choices.push_back({recipe, {{"training.products", recipe}}});
    Add("products", std::move(choices));
  }

  const json& scenario_;
  const Place place_;
  const std::vector<std::shared_ptr<const Cluster>> clusters_;
  const uint32_t most_ranks_;
  Shapes shapes_;
  std::vector<SpaceAxis> axes_;
};

}  // namespace

bool LeavesStrategyOpen(const JsonReader& scenario) {
  return !scenario.Has("strategy") && !scenario.Has("jobs");
}

JsonDocument WithAnyStrategy(const JsonDocument& scenario) {
  RefuseOtherKinds(scenario.Root(), FileKind::kScenario);
  if (!scenario.Root().Has("cluster"))
    scenario.Root().Fail("missing key \"cluster\"; expected one, or --clusters of the search");
  const JsonReader model = scenario.Root().At("model");
  if (model.IsObject() && model.value().value("kind", "decoder") != "decoder")
    model.Fail(
        "only decoders have configurations that a search knows by itself; expected a "
        "\"strategy\"");
  JsonDocument document = scenario;
  const json& value = scenario.value();
  document.Set(R"(strategy={"kind": "combined", "zero": 1, "sequence_parallel": false})");
  if (!value.contains("software")) document.Set(std::string("software=\"") + kUsualSoftware + "\"");
  if (!value.contains("placement")) document.Set("placement=\"even\"");
  if (!value.contains("pipeline")) document.Set(R"(pipeline={"stages": 1, "split": "flops"})");
  if (!Says(value, "pipeline", "schedule") && !Says(value, "pipeline", "order"))
    document.Set("pipeline.schedule=\"1f1b\"");
  if (!Says(value, "training", "recomputation")) document.Set("training.recomputation=\"full\"");
  if (!Says(value, "training", "micro_batches") && !Says(value, "training", "micro_batch_size"))
    document.Set("training.micro_batch_size=1");
  return document;
}

std::vector<uint32_t> RankCounts(const Cluster& cluster, uint32_t most) {
  const uint32_t machine = DevicesOfMachine(cluster);
  const uint32_t even = std::bit_floor(machine);
  std::set<uint32_t, std::greater<>> counts;
  if (cluster.device_count() <= most) {
    counts.insert(cluster.device_count());
  } else if (most >= machine) {
    counts.insert(most / machine * machine);
  } else {
    counts.insert(most);
  }
  const uint32_t machines = std::min(std::max(1u, cluster.node_count()), most / even);
  if (machines > 0) {
    counts.insert(machines * even);
    counts.insert(std::bit_floor(machines) * even);
  }
  std::vector<uint32_t> falling(counts.begin(), counts.end());
  if (falling.size() > kMostRankCounts) falling.resize(kMostRankCounts);
  return falling;
}

std::vector<SpaceAxis> WideAxes(const JsonDocument& scenario,
                                const std::vector<std::shared_ptr<const Cluster>>& clusters,
                                uint32_t most_ranks) {
  return WideReader(scenario, clusters, most_ranks).Axes();
}

}  // namespace rehearse
