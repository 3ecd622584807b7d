#include "scenarios/searching/composed_step.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "scenarios/readers/software.h"
#include "scenarios/searching/evaluator.h"
#include "scenarios/searching/wide_space.h"
#include "sim/base/clock.h"
#include "sim/base/error.h"
#include "sim/base/fnv.h"
#include "sim/base/json_reader.h"
#include "sim/engine/timeline.h"
#include "sim/schedule/schedule.h"
#include "topology/files/cluster_file.h"
#include "workloads/networks/model.h"

namespace rehearse {
namespace {

using nlohmann::json;

constexpr uint32_t kNoValue = UINT32_MAX;
constexpr uint32_t kUnknown = UINT32_MAX - 1;  // a name that is not in the lists below

// How an order of a pipeline fills and drains it, and how many micro-batches are under way on the
// first of p stages with v parts each, out of m.
struct Order {
  const char* name = "";
  double bubble = 1;         // of (p - 1) passes over a stage's part
  bool interleaves = false;  // p divides m, and passes are over one part at a time
  double (*under_way)(double p, double v, double m) = nullptr;
  bool takes_both_ways = false;  // m is 2p or more
  uint32_t copies = 1;           // of parameters
};
constexpr Order kOrders[] = {
    {"1f1b", 1, false, [](double p, double, double) { return p; }},
    {"interleaved", 1, true,
     [](double p, double v, double) { return (2 * (p - 1) + (v - 1) * p + 1) / v; }},
    {"gpipe", 1, false, [](double, double, double m) { return m; }},
    {"breadth-first", 1, true, [](double, double, double m) { return m; }},
    {"zb-h1", 1.0 / 3, false, [](double p, double, double) { return p; }},
    {"zb-h2", 0, false, [](double p, double, double) { return 2 * p - 1; }},
    {"zb-1p", 1.0 / 3, false, [](double p, double, double) { return p; }},
    {"zb-2p", 0, false, [](double p, double, double) { return 2 * p - 1; }},
    {"zb-v", 0, false, [](double p, double, double) { return p; }, true},
    {"dualpipe", 0.5, false, [](double p, double, double) { return p + 1; }, true, 2},
    {"dualpipev", 0.5, false, [](double p, double, double) { return p + 1; }, true}};
constexpr const char* kSplits[] = {"layers", "layers-and-ends", "flops", "parameters"};
enum Split : uint32_t { kByLayers, kByLayersAndEnds, kByFlops, kByParameters };

constexpr uint32_t kOneForwardOneBackward = 0;
constexpr uint32_t kInterleaved = 1;
constexpr uint32_t kGPipe = 2;
constexpr uint32_t kBreadthFirst = 3;
static_assert(std::string_view(kOrders[kOneForwardOneBackward].name) == "1f1b");
static_assert(std::string_view(kOrders[kInterleaved].name) == "interleaved");
static_assert(std::string_view(kOrders[kGPipe].name) == "gpipe");
static_assert(std::string_view(kOrders[kBreadthFirst].name) == "breadth-first");

// Ranks of these take one more forward pass before the first pair, so that as many more
// micro-batches are under way (workloads/planner/pipeline.h).
double UnderWay(uint32_t schedule, bool pairs, double p, double v, double m) {
  double number = kOrders[schedule].under_way(p, v, m);
  if (pairs && schedule == kOneForwardOneBackward) number = 2 * p;
  if (pairs && schedule == kInterleaved) number += 1 / v;
  return std::min(m, number);
}

// Changes of these make no difference to a piece.
bool IsOfStages(const std::string& path) {
  return path.rfind("pipeline.", 0) == 0 || path.rfind("search.", 0) == 0 || path == "placement" ||
         path.rfind("costs", 0) == 0 || path.rfind("run", 0) == 0;
}

bool IsOfCluster(const std::string& path) {
  return path == "cluster" || path.rfind("cluster.", 0) == 0;
}

bool IsOfAllToAlls(const json& pins) {
  return pins.is_array() && std::all_of(pins.begin(), pins.end(), [](const json& pin) {
           return pin.is_object() && pin.value("kind", json()) == "all-to-all";
         });
}

// Changes of these make no difference to what a step does once.
bool IsOfPasses(const std::string& path, const json& value) {
  return path.rfind("training.recomput", 0) == 0 ||
         path == "simulator.communication_multiprocessors" ||
         (path == "simulator.collectives" && IsOfAllToAlls(value));
}

// Whether what a model says about its experts can be changed where it stands.
bool HasOwnExperts(const json& model) {
  return model.is_object() && !model.contains("file") &&
         (model.contains("preset") || model.contains("experts"));
}

// What a message between stages meets.
struct Wires {
  double across = 0;  // seconds a byte of one rank's, between machines
  double within = 0;
  double latency = 0;
  uint32_t machine = 1;  // devices
};

Wires WiresOf(const Cluster& cluster) {
  Wires network;
  network.machine = std::max(1u, cluster.device_count() / std::max(1u, cluster.node_count()));
  double nics = 0;
  double inside = 0;
  for (uint32_t i = 0; i < cluster.link_count(); ++i) {
    const VertexKind source = cluster.KindOfVertex(cluster.SourceOf(i));
    const ClusterLink link = cluster.Link(i);
    if (source == VertexKind::kNic && link.kind == LinkKind::kNetwork) {
      nics += link.Capacity().value();
      network.latency = std::max(network.latency, link.latency.value());
    }
    if (source == VertexKind::kDevice && link.kind != LinkKind::kNetwork)
      inside = std::max(inside, link.Capacity().value());
  }
  if (inside > 0) network.within = 1 / inside;
  network.across = nics > 0 ? cluster.device_count() / nics : network.within;
  return network;
}

// When the last rank is through its first way forward, in seconds.
double EndOfForward(const Schedule& schedule, const SpansByRank& spans) {
  Time last;
  std::vector<Span> room;
  for (size_t i = 0; i < spans.count(); ++i) {
    const Role& role = schedule.roles[schedule.role_of_rank[spans.RankAt(i)]];
    for (const Span& span : spans.At(i, &room))
      if (role.TagAt(span.op).phase == Phase::kForward) last = std::max(last, span.end);
  }
  return ToSeconds(last).value();
}

}  // namespace

struct ComposedSteps::Axis {
  std::vector<std::vector<std::pair<Field, uint32_t>>> sets;  // by choice
  std::vector<uint32_t> others;  // by choice: which of the changes of what pieces are made of
  uint32_t other_count = 1;
  bool is_other = false;      // changes what pieces are made of
  bool is_of_passes = false;  // and nothing else
};

struct ComposedSteps::Piece {
  std::once_flag once;
  std::string error;  // "" if it can be played
  // Seconds and bytes.
  double layer = 0;
  double ends = 0;
  double update = 0;
  double rest = 0;
  double idle_layer = 0;  // where kernels wait for the host
  double forward = 0;     // a layer's part of the way forward; of an update, with what it waits for
  double kept_layer = 0;  // parameters, gradients and the optimizer's state
  double kept_rest = 0;
  double parameters_layer = 0;  // of kept_layer, where no other ranks share them; else 0
  double active_layer = 0;      // activations of a micro-batch
  double active_rest = 0;
  double sums_layer = 0;  // of gradients of several micro-batches
  double reserve = 0;
  double room = 0;
  double tokens_of_sample = 0;
  double row_bytes = 0;  // of a sample's activations between stages, on one rank
  uint32_t layers = 0;   // of the whole model
  Wires network;
  std::string device;
};

size_t ComposedSteps::HashOfKey::operator()(const Key& key) const {
  Fnv1a hash;
  for (const uint32_t value : key) hash.Add(uint64_t{value});
  return hash.hash();
}

ComposedSteps::ComposedSteps(const SearchSpace& space, const JsonDocument& scenario, bool is_wide,
                             uint32_t most_ranks, Engine* engine)
    : space_(space), scenario_(scenario), is_wide_(is_wide), engine_(*engine) {
  Compile(scenario, most_ranks);
}

ComposedSteps::~ComposedSteps() = default;

// ---- What a point says --------------------------------------------------------------------------

void ComposedSteps::SetField(const std::string& path, const json& value, Values* values) {
  static const std::map<std::string_view, Field> kFields = {
      {"strategy.tensor", kTensor},
      {"strategy.context", kContext},
      {"strategy.shard", kShard},
      {"strategy.replicas", kReplicas},
      {"strategy.data", kData},
      {"strategy.expert", kExpert},
      {"strategy.expert_tensor", kExpertTensor},
      {"strategy.zero", kZero},
      {"strategy.sequence_parallel", kSequenceParallel},
      {"pipeline.stages", kStages},
      {"pipeline.schedule", kSchedule},
      {"pipeline.virtual", kVirtual},
      {"pipeline.split", kSplit},
      {"training.micro_batches", kMicroBatches},
      {"training.micro_batch_size", kMicroBatchSize},
      {"training.batch", kBatch},
      {"pipeline.pair_passes", kPairs},
      {"pipeline.pair_order", kPairOrder},
      {"simulator.collectives", kPinned},
      {"simulator.communication_multiprocessors", kKept}};
  const auto field = kFields.find(path);
  if (field == kFields.end()) return;
  uint32_t& number = (*values)[field->second];
  if (field->second == kPairOrder) {
    const auto known = std::find(pair_orders_.begin(), pair_orders_.end(), value);
    number = static_cast<uint32_t>(known - pair_orders_.begin());
    if (known == pair_orders_.end()) pair_orders_.push_back(value);
  } else if (field->second == kPinned) {
    number = value.empty() ? 0 : 1;
  } else if (value.is_boolean()) {
    number = value.get<bool>() ? 1 : 0;
  } else if (value.is_number_integer() && value.get<int64_t>() >= 0) {
    number = static_cast<uint32_t>(std::min<int64_t>(value.get<int64_t>(), kUnknown - 1));
  } else if (value.is_string()) {
    const auto text = value.get<std::string>();
    const auto position = [&](const auto& names, const auto& name_of) {
      uint32_t i = 0;
      for (const auto& one : names) {
        if (name_of(one) == text) return i;
        ++i;
      }
      return kUnknown;
    };
    if (field->second == kSchedule)
      number = position(kOrders, [](const Order& order) { return std::string(order.name); });
    if (field->second == kSplit)
      number = position(kSplits, [](const char* name) { return std::string(name); });
  }
}

bool ComposedSteps::CompileAxis(const SpaceAxis& axis) {
  Axis compiled;
  bool is_of_cluster = false;
  bool has_passes = false;
  bool has_others = false;
  std::vector<json> known;  // changes of what pieces are made of
  for (const SpaceChoice& choice : axis.choices) {
    Values values;
    values.fill(kNoValue);
    json others = json::array();
    for (const auto& [path, value] : choice.changes) {
      const Values before = values;
      SetField(path, value, &values);
      is_of_cluster = is_of_cluster || IsOfCluster(path);
      // All of a strategy or a model at once is not taken apart.
      if (path == "strategy" || path == "pipeline" || path == "training" ||
          path == "strategy.kind" || path == "strategy.order")
        return false;
      const bool is_told = values != before && path.rfind("simulator.", 0) != 0;
      if (is_told || IsOfStages(path)) continue;
      (IsOfPasses(path, value) ? has_passes : has_others) = true;
      others.push_back({path, value});
    }
    const auto same = std::find(known.begin(), known.end(), others);
    compiled.others.push_back(static_cast<uint32_t>(same - known.begin()));
    if (same == known.end()) known.push_back(std::move(others));
    if (values[kSchedule] == kUnknown || values[kSplit] == kUnknown) return false;
    std::vector<std::pair<Field, uint32_t>> sets;
    for (uint8_t field = 0; field < kFieldCount; ++field)
      if (values[field] != kNoValue) sets.emplace_back(static_cast<Field>(field), values[field]);
    compiled.sets.push_back(std::move(sets));
  }
  compiled.other_count = static_cast<uint32_t>(known.size());
  compiled.is_other = has_passes || has_others;
  compiled.is_of_passes = has_passes && !has_others;
  if (is_of_cluster) {
    if (cluster_axis_ != SIZE_MAX) return false;
    cluster_axis_ = axes_.size();
  }
  axes_.push_back(std::move(compiled));
  return true;
}

void ComposedSteps::Compile(const JsonDocument& scenario, uint32_t most_ranks) {
  const json& value = scenario.value();
  if (!value.contains("strategy") || !value["strategy"].is_object() ||
      value["strategy"].value("kind", json()) != "combined")
    return;
  const JsonReader model = scenario.Root().At("model");
  if (!model.IsObject() || model.value().value("kind", json("decoder")) != "decoder") return;

  const auto changes_model = [](const SpaceAxis& axis) {
    return std::any_of(axis.choices.begin(), axis.choices.end(), [](const SpaceChoice& choice) {
      return std::any_of(choice.changes.begin(), choice.changes.end(),
                         [](const auto& change) { return change.first.rfind("model", 0) == 0; });
    });
  };
  if (std::none_of(space_.axes.begin(), space_.axes.end(), changes_model)) {
    const GptModel known = ReadModel(model);
    has_experts_ = known.experts.has_value();
    layers_ = known.layers;
  }

  const auto counts_of = [&](const Cluster& cluster) -> std::vector<uint32_t> {
    if (is_wide_) return RankCounts(cluster, most_ranks);
    return {std::min(cluster.device_count(), most_ranks)};
  };
  const auto add_cluster = [&](const Cluster& cluster) {
    rank_counts_.push_back(counts_of(cluster));
    machines_.push_back(cluster.device_count() / std::max(1u, cluster.node_count()));
  };
  for (const SpaceAxis& axis : space_.axes)
    if (!CompileAxis(axis)) return;
  std::unique_ptr<Cluster> first;
  if (cluster_axis_ == SIZE_MAX) {
    first = ReadCluster(scenario.Root().At("cluster"));
    add_cluster(*first);
  } else {
    for (const SpaceChoice& choice : space_.axes[cluster_axis_].choices) {
      JsonDocument document = scenario;
      for (const auto& [path, change] : choice.changes)
        document.Set(path + "=" + change.dump(), space_.axes[cluster_axis_].place);
      first = ReadCluster(document.Root().At("cluster"));
      add_cluster(*first);
    }
  }
  if (!is_wide_ && value.contains("placement")) rank_counts_.clear();

  JsonDocument whole = scenario;
  ApplySoftware(&whole, first->DeviceOf(0).compute_capability);
  base_.fill(1);
  base_[kZero] = 0;
  base_[kSequenceParallel] = 0;
  base_[kSchedule] = kOneForwardOneBackward;
  base_[kSplit] = kByLayers;
  base_[kMicroBatches] = 0;
  base_[kMicroBatchSize] = 0;
  base_[kPairs] = 0;
  base_[kPairOrder] = kNoValue;
  base_[kPinned] = 0;
  base_[kKept] = 0;
  for (const char* object : {"strategy", "pipeline", "training", "simulator"}) {
    if (!whole.value().contains(object)) continue;
    for (const auto& [key, one] : whole.value()[object].items())
      SetField(std::string(object) + "." + key, one, &base_);
  }
  is_known_ = base_[kSchedule] < std::size(kOrders) && base_[kSplit] < std::size(kSplits);
}

// Ranks on each machine where they are placed evenly (scenarios/readers/placement.h).
uint64_t ComposedSteps::MachineShare(uint64_t ranks, const SpacePoint& point) const {
  const uint64_t devices = machines_[cluster_axis_ == SIZE_MAX ? 0 : point[cluster_axis_]];
  for (uint64_t share = std::min(devices, ranks); share > 1; --share)
    if (ranks % share == 0) return share;
  return 1;
}

// Nothing if so many layers can be divided into the stages.
const std::string* ComposedSteps::BrokenBy(uint32_t layers, const Values& values) const {
  static const std::string kFewLayers = "the model has fewer layers than there are stages";
  static const std::string kUneven = "the layers do not split evenly into the stages";
  if (values[kStages] <= 1) return nullptr;
  const Order& order = kOrders[values[kSchedule]];
  const uint32_t goes_back = order.takes_both_ways && order.copies == 1 ? 2 : 1;
  const uint32_t chunks =
      values[kStages] * (order.interleaves ? std::max(1u, values[kVirtual]) : goes_back);
  if (layers < chunks) return &kFewLayers;
  const bool counts_ends = values[kSplit] == kByLayersAndEnds;
  const bool is_even = values[kSplit] != kByLayers && !counts_ends;
  return is_wide_ && !is_even && (layers + (counts_ends ? 2 : 0)) % chunks != 0 ? &kUneven
                                                                                : nullptr;
}

// Nothing if the order and its pairs can have so many micro-batches.
const std::string* ComposedSteps::BrokenOrder(const Values& values, uint64_t micro_batches) const {
  static const std::string kWhyMultiple =
      "the stages do not divide the micro-batches, as the order needs";
  static const std::string kWhyBothWays =
      "fewer micro-batches than two for each stage, as the order needs";
  static const std::string kWhyTwoCopies =
      "an odd number of stages or of micro-batches, which come from both ends";
  static const std::string kWhyOrder =
      "passes in pairs, in an order where all forward passes come first";
  static const std::string kWhyNoPairs = "too few micro-batches for passes in pairs";
  static const std::string kWhyNothingSent =
      "passes in pairs or a way to send tokens, but experts are not spread";
  static const std::string kWhyKept =
      "multiprocessors kept for communication, but all-to-alls take theirs as they come";
  const Order& order = kOrders[values[kSchedule]];
  const uint32_t stages = values[kStages];
  if (order.interleaves && stages > 1 && micro_batches % stages != 0) return &kWhyMultiple;
  if (order.takes_both_ways && micro_batches < 2 * uint64_t{stages}) return &kWhyBothWays;
  if (order.copies > 1 && (stages % 2 != 0 || micro_batches % 2 != 0)) return &kWhyTwoCopies;
  const bool has_no_pairs =
      (values[kSchedule] == kGPipe || values[kSchedule] == kBreadthFirst) && stages > 1;
  if (values[kPairs] != 0 && has_no_pairs) return &kWhyOrder;
  if (values[kPairs] != 0 && micro_batches < (stages > 1 ? 3 : 2)) return &kWhyNoPairs;
  const bool has_way = values[kPairs] != 0 || values[kPinned] != base_[kPinned];
  if (is_wide_ && has_way && values[kExpert] == 1) return &kWhyNothingSent;
  const bool keeps = values[kKept] != base_[kKept];
  if (is_wide_ && keeps && values[kPinned] == 0) return &kWhyKept;
  return nullptr;
}

// Nothing if it may be possible.
const std::string* ComposedSteps::Broken(const Values& values, const SpacePoint& point) const {
  static const std::string kWhyRanks =
      "the mesh has another number of ranks than this cluster is to have";
  static const std::string kWhyBatch =
      "the batch cannot be split over the groups of ranks and their micro-batches";
  static const std::string kWhyOneStage = "an order of several stages, but there is one";
  static const std::string kWhyAcross =
      "groups of ranks would begin in the middle of a machine and end in another";
  static const std::string kWhyMachine = "tensor parallelism across machines";
  static const std::string kWhyNoTensor = "sequence parallelism without tensor parallelism";
  static const std::string kWhyNothingShared = "there is one rank to shard over, as with zero 1";
  static const std::string kWhySameTokens =
      "without sequence parallelism, ranks of tensor parallelism would send experts the same "
      "tokens";
  static const std::string kWhyExperts = "the ranks of the experts do not divide those of a stage";
  static const std::string kWhyExpertParts = "experts are divided more than other products";
  const uint64_t groups = uint64_t{values[kShard]} * values[kReplicas] * values[kData];
  const uint64_t of_stage = groups * values[kTensor] * values[kContext];
  if (!rank_counts_.empty()) {
    const auto& counts = rank_counts_[cluster_axis_ == SIZE_MAX ? 0 : point[cluster_axis_]];
    const uint64_t ranks = of_stage * values[kStages];
    if (std::find(counts.begin(), counts.end(), ranks) == counts.end()) return &kWhyRanks;
  }
  const uint64_t parts =
      groups *
      (values[kMicroBatchSize] > 0 ? values[kMicroBatchSize] : std::max(1u, values[kMicroBatches]));
  if (values[kBatch] % parts != 0) return &kWhyBatch;
  if (of_stage % (uint64_t{values[kExpert]} * values[kExpertTensor]) != 0) return &kWhyExperts;
  const uint64_t micro_batches =
      values[kMicroBatchSize] > 0 ? values[kBatch] / parts : std::max(1u, values[kMicroBatches]);
  if (const std::string* broken = BrokenOrder(values, micro_batches)) return broken;
  if (layers_ > 0)
    if (const std::string* broken = BrokenBy(layers_, values)) return broken;
  if (!is_wide_) return nullptr;
  if (values[kTensor] > machines_[cluster_axis_ == SIZE_MAX ? 0 : point[cluster_axis_]])
    return &kWhyMachine;
  const uint64_t machine = MachineShare(of_stage * values[kStages], point);
  for (const uint64_t group : {uint64_t{values[kTensor]} * values[kContext],
                               uint64_t{values[kExpert]} * values[kExpertTensor], of_stage})
    if (group % machine != 0 && machine % group != 0) return &kWhyAcross;
  if (values[kStages] == 1 && values[kSchedule] != kOneForwardOneBackward) return &kWhyOneStage;
  if (values[kTensor] == 1 && values[kSequenceParallel] != 0) return &kWhyNoTensor;
  if (has_experts_ && values[kTensor] > 1 && values[kSequenceParallel] == 0) return &kWhySameTokens;
  if (values[kZero] > 1 && values[kShard] == 1) return &kWhyNothingShared;
  if (values[kExpertTensor] > values[kTensor]) return &kWhyExpertParts;
  return nullptr;
}

// ---- Pieces -------------------------------------------------------------------------------------

ComposedSteps::Key ComposedSteps::KeyOf(const SpacePoint& point, const Values& values,
                                        PieceKind kind) const {
  const bool of_update = kind == kUpdate;
  uint64_t others = 0;
  for (size_t i = 0; i < axes_.size(); ++i) {
    if (!axes_[i].is_other) continue;
    others *= axes_[i].other_count;
    if (!of_update || !axes_[i].is_of_passes) others += axes_[i].others[point[i]];
  }
  // Where gradients are not divided, shards only matter to the update.
  const bool shards = of_update || values[kZero] >= 2;
  return {kind,
          values[kTensor],
          values[kContext],
          values[kExpert],
          values[kExpertTensor],
          shards ? values[kShard] : 1,
          of_update ? values[kReplicas] : 1,
          of_update ? values[kData] : 1,
          shards ? values[kZero] : 1,
          of_update ? 1 : values[kMicroBatchSize],
          static_cast<uint32_t>(others),
          static_cast<uint32_t>(others >> 32) * 2 + values[kSequenceParallel],
          kind == kPairedPass ? values[kPairOrder] : 0};
}

const ComposedSteps::Piece& ComposedSteps::PieceOf(const SpacePoint& point, const Values& values,
                                                   PieceKind kind) {
  const Key key = KeyOf(point, values, kind);
  Piece* piece = nullptr;
  {
    const std::shared_lock lock(mutex_);
    const auto known = pieces_.find(key);
    if (known != pieces_.end()) piece = known->second.get();
  }
  if (piece == nullptr) {
    const std::unique_lock lock(mutex_);
    std::unique_ptr<Piece>& made = pieces_[key];
    if (made == nullptr) made = std::make_unique<Piece>();
    piece = made.get();
  }
  std::call_once(piece->once, [&] {
    try {
      Play(point, values, kind, piece);
    } catch (const Error& error) {
      piece->error = WithoutPlace(error.what());
    }
  });
  return *piece;
}

// A few layers on the ranks of one stage that the piece is about.
JsonDocument ComposedSteps::DocumentOf(const SpacePoint& point, const Values& values,
                                       PieceKind kind, uint32_t layers, uint32_t micro_batches,
                                       bool without_dense) const {
  const bool of_update = kind == kUpdate;
  json value = scenario_.Given();
  for (const char* key : {"search", "pipeline", "run", "costs"}) value.erase(key);
  value["placement"] = "block";
  JsonDocument document = JsonDocument::FromValue(std::move(value), {scenario_.name(), 0, ""},
                                                  scenario_.Root().FilesOfDocument());
  for (size_t i = 0; i < axes_.size(); ++i) {
    if (!axes_[i].is_other) continue;
    const uint32_t choice = of_update && axes_[i].is_of_passes ? 0 : point[i];
    for (const auto& [path, change] : space_.axes[i].choices[choice].changes)
      if (!IsOfStages(path)) document.Set(path + "=" + change.dump());
  }
  const bool shards = of_update || values[kZero] >= 2;
  const uint32_t sharers = values[kTensor] * values[kContext];
  const uint32_t of_experts = values[kExpert] * values[kExpertTensor];
  const uint32_t fewest = of_experts / std::gcd(of_experts, sharers);
  const uint32_t shard = shards ? values[kShard] : std::max(1u, fewest);
  const uint32_t replicas =
      of_update ? values[kReplicas] : std::max(1u, fewest / std::gcd(fewest, shard));
  const uint32_t data = of_update ? values[kData] : 1;
  json value_now = document.value();
  json& strategy = value_now["strategy"];
  strategy["tensor"] = values[kTensor];
  strategy["context"] = values[kContext];
  strategy["shard"] = shard;
  strategy["replicas"] = replicas;
  strategy["data"] = data;
  strategy["expert"] = values[kExpert];
  strategy["expert_tensor"] = values[kExpertTensor];
  strategy["zero"] = values[kZero];
  strategy["sequence_parallel"] = values[kSequenceParallel] != 0;
  json& training = value_now["training"];
  for (const char* key : {"micro_batch_size", "recomputed_layers"}) training.erase(key);
  if (training.contains("offloaded_layers")) training["offloaded_layers"] = 0;
  const uint64_t size = of_update ? 1 : std::max(1u, values[kMicroBatchSize]);
  training["micro_batches"] = micro_batches;
  training["batch"] = size * shard * replicas * data * micro_batches;
  if (kind == kPairedPass) {
    value_now["pipeline"] = {{"stages", 1}, {"schedule", "1f1b"}, {"pair_passes", true}};
    if (values[kPairOrder] != kNoValue)
      value_now["pipeline"]["pair_order"] = pair_orders_[values[kPairOrder]];
  }
  json& model = value_now["model"];
  model["layers"] = layers;
  if (without_dense) model["experts"]["first_dense"] = 0;
  return JsonDocument::FromValue(std::move(value_now), {scenario_.name(), 0, ""},
                                 scenario_.Root().FilesOfDocument());
}

void ComposedSteps::Play(const SpacePoint& point, const Values& values, PieceKind kind,
                         Piece* piece) {
  const bool of_update = kind == kUpdate;
  JsonDocument as_written = scenario_;
  for (size_t i = 0; i < axes_.size(); ++i)
    for (const auto& [path, change] : space_.axes[i].choices[point[i]].changes)
      if (path.rfind("model", 0) == 0) as_written.Set(path + "=" + change.dump());
  const GptModel model = ReadModel(as_written.Root().At("model"));
  if (!model.layer_pattern.empty())
    throw Error("steps are composed of equal layers, which a \"layer_pattern\" has not");
  // Layers take turns, and some at either end differ.
  uint32_t turn = std::max(1u, model.global_every);
  uint32_t first = 0;
  if (model.experts) {
    turn = std::lcm(turn, model.experts->every);
    first = model.experts->first_dense;
  }
  // Passes are those of layers with experts, which most layers have.
  const bool without_dense = !of_update && first > 0 && HasOwnExperts(as_written.value()["model"]);
  if (without_dense) first = 0;
  // Weights are gathered ahead, and so two layers are more alike than one.
  const uint32_t step = turn == 1 && values[kZero] >= 3 ? 2 : turn;
  const uint32_t least = std::max(2u, first + step);

  // What a pass takes is known from another piece, of the same layers.
  const Piece* pass = nullptr;
  if (of_update) {
    SpacePoint same = point;
    for (size_t i = 0; i < axes_.size(); ++i)
      if (axes_[i].is_of_passes) same[i] = 0;
    Values one = values;
    one[kMicroBatchSize] = 1;
    pass = &PieceOf(same, one, kPass);
    if (!pass->error.empty()) throw Error(pass->error);
  }
  const uint32_t fewest = kind == kPairedPass ? 2 : 1;
  std::array<std::array<Result, 2>, 2> results;  // by depth and micro-batches
  std::array<double, 2> forward_ends = {};       // by depth
  const std::array<uint32_t, 2> depths = {least, least + step};
  for (size_t deep = 0; deep < 2; ++deep) {
    for (size_t more = 0; more < (of_update ? 1 : 2); ++more) {
      Scenario scenario = engine_.Read(DocumentOf(
          point, values, kind, depths[deep], static_cast<uint32_t>(more) + fewest, without_dense));
      scenario.lowering.fidelity = Fidelity::kFormula;
      scenario.allow_out_of_memory = true;
      if (more == 0)
        results[deep][more] = engine_.PlayInView(
            scenario, [&](const auto& schedule, const auto&, const SpansByRank& spans) {
              forward_ends[deep] = EndOfForward(schedule, spans);
            });
      else
        results[deep][more] = engine_.Play(scenario);
      if (deep > 0 || more > 0) continue;
      piece->device = scenario.cluster->DeviceOf(0).name;
      piece->network = WiresOf(*scenario.cluster);
    }
  }
  const auto time = [&](size_t deep, size_t more) { return results[deep][more].step.value(); };
  const double k = step;
  const double base = depths[0];
  if (of_update) {
    piece->layer = pass->layer;
    piece->ends = pass->ends;
  } else {
    piece->layer = std::max(0.0, (time(1, 1) - time(0, 1) - time(1, 0) + time(0, 0)) / k);
    piece->ends = std::max(0.0, time(0, 1) - time(0, 0) - base * piece->layer);
  }
  piece->update = std::max(0.0, (time(1, 0) - time(0, 0)) / k - piece->layer);
  piece->rest = std::max(0.0, time(0, 0) - base * (piece->update + piece->layer) - piece->ends);
  const auto idle = [&](size_t deep, size_t more) {
    return results[deep][more].breakdown.idle.value();
  };
  if (!of_update)
    piece->idle_layer =
        std::clamp((idle(1, 1) - idle(0, 1) - idle(1, 0) + idle(0, 0)) / k, 0.0, piece->layer);
  piece->forward = std::max(0.0, (forward_ends[1] - forward_ends[0]) / k);
  piece->layers = model.layers;
  const auto kept = [&](size_t deep) {
    const MemoryUse& memory = results[deep][0].memory;
    return (memory.parameters + memory.gradients + memory.optimizer).value();
  };
  const auto active = [&](size_t deep, size_t more) {
    const MemoryUse& memory = results[deep][more].memory;
    return (memory.activations + memory.buffers).value();
  };
  piece->kept_layer = (kept(1) - kept(0)) / k;
  piece->kept_rest = kept(0) - base * piece->kept_layer;
  if (values[kZero] < 3)
    piece->parameters_layer =
        (results[1][0].memory.parameters - results[0][0].memory.parameters).value() / k;
  piece->active_layer = (active(1, 0) - active(0, 0)) / k;
  piece->active_rest = active(0, 0) - base * piece->active_layer;
  // Where gradients are divided, what is summed is whole while there is more than one micro-batch.
  if (!of_update && values[kZero] >= 2)
    piece->sums_layer = std::max(0.0, (active(1, 1) - active(0, 1)) / k - piece->active_layer);
  const Result& result = results[0][0];
  piece->reserve = result.memory_reserve.value();
  piece->room = (1 - result.memory_headroom) * result.memory_capacity.value();
  const JsonDocument first_document =
      DocumentOf(point, values, kind, depths[0], fewest, without_dense);
  piece->tokens_of_sample = result.tokens_per_second * result.step.value() /
                            first_document.value()["training"]["batch"].get<double>();
  const double sequence = first_document.value()["training"].value("sequence", 1.0);
  piece->row_bytes = 2 * sequence / values[kContext] * static_cast<double>(model.hidden) /
                     (values[kSequenceParallel] != 0 ? values[kTensor] : 1);
}

// ---- The step -----------------------------------------------------------------------------------

ComposedSteps::Values ComposedSteps::ValuesAt(const SpacePoint& point) const {
  Values values = base_;
  for (size_t i = 0; i < axes_.size(); ++i) {
    for (const auto& [field, value] : axes_[i].sets[point[i]]) {
      // The later of the two ways to say how many micro-batches there are counts.
      if (field == kMicroBatches) values[kMicroBatchSize] = 0;
      values[field] = value;
    }
  }
  return values;
}

uint32_t ComposedSteps::FamilyOf(const SpacePoint& point, const Values& values,
                                 const Piece& pass) const {
  constexpr double kOften = 0.05;
  return (values[kStages] > 1 ? 1u : 0) + (values[kZero] >= 3 ? 2u : 0) +
         (values[kContext] > 1 ? 4u : 0) + (values[kExpert] > 1 ? 8u : 0) +
         (pass.idle_layer > kOften * pass.layer ? 16u : 0) + (values[kPairs] != 0 ? 32u : 0) +
         (cluster_axis_ == SIZE_MAX ? 0 : 64 * point[cluster_axis_]);
}

ComposedSteps::Found ComposedSteps::At(const SpacePoint& point, double most_memory) {
  Values values = ValuesAt(point);
  Found found;
  if (const std::string* broken = Broken(values, point)) {
    found.excluded = broken;
    return found;
  }
  const double groups = double{1} * values[kShard] * values[kReplicas] * values[kData];
  if (values[kMicroBatchSize] == 0)
    values[kMicroBatchSize] =
        static_cast<uint32_t>(values[kBatch] / (groups * std::max(1u, values[kMicroBatches])));
  const Piece& pass = PieceOf(point, values, kPass);
  if (!pass.error.empty()) {
    found.excluded = &pass.error;
    return found;
  }
  const Order& order = kOrders[values[kSchedule]];
  const double p = values[kStages];
  const double v = order.interleaves ? std::max(1u, values[kVirtual]) : 1;
  const double m = values[kBatch] / (groups * values[kMicroBatchSize]);
  const double layers = pass.layers;
  const double all = layers * pass.layer + pass.ends;
  const bool pairs = values[kPairs] != 0;
  const Piece* paired = pairs ? &PieceOf(point, values, kPairedPass) : nullptr;
  if (paired != nullptr && !paired->error.empty()) {
    found.excluded = &paired->error;
    return found;
  }
  double cycle = all;
  double paired_cycle = pairs ? layers * paired->layer + paired->ends : all;
  const double all_paired = paired_cycle;
  double fullest = layers;  // layers of the first stage
  double message = 0;
  if (p > 1) {
    found.excluded = BrokenBy(pass.layers, values);
    if (found.excluded != nullptr) return found;
    if (values[kSplit] == kByLayers || values[kSplit] == kByLayersAndEnds) {
      const double units = layers + (values[kSplit] == kByLayersAndEnds ? 2 : 0);
      const double own = std::ceil(units / (p * v)) * v;
      const double last = own - (values[kSplit] == kByLayersAndEnds ? 1 : 0);
      cycle = std::max(own * pass.layer, last * pass.layer + pass.ends);
      if (pairs) paired_cycle = std::max(own * paired->layer, last * paired->layer + paired->ends);
      fullest = own;
    } else {
      // So many layers on every stage but the last that the two are as equal as can be.
      cycle = std::numeric_limits<double>::infinity();
      const int least = static_cast<int>(layers / p);
      for (int held = least; held <= least + 4; ++held) {
        const double own = held;
        if (own > std::ceil(layers / p) + 3) break;
        const double last = std::max(0.0, layers - (p - 1) * own);
        const double longest = std::max(own * pass.layer, last * pass.layer + pass.ends);
        if (longest >= cycle || (last == 0 && own > std::ceil(layers / p))) continue;
        cycle = longest;
        if (pairs)
          paired_cycle = std::max(own * paired->layer, last * paired->layer + paired->ends);
        fullest = own;
      }
    }
    const double of_stage = groups * values[kTensor] * values[kContext];
    const bool crosses = of_stage >= pass.network.machine;
    message = values[kMicroBatchSize] * pass.row_bytes *
                  (crosses ? pass.network.across : pass.network.within) +
              (crosses ? pass.network.latency : 0);
    const bool waits = values[kSchedule] == kOneForwardOneBackward;
    if (waits) cycle += 2 * message;
    if (waits) paired_cycle += 2 * message;
  }
  if (!pairs) paired_cycle = cycle;
  const double in_pairs = pairs ? std::max(0.0, m - p) : 0;
  const double under_way = p > 1 || pairs ? UnderWay(values[kSchedule], pairs, p, v, m) : 1;
  found.room = pass.room;
  // Most of what does not fit shows before it is known what an update takes.
  found.memory = fullest * (order.copies * pass.parameters_layer + pass.active_layer * under_way) +
                 pass.reserve;
  if (found.room > 0 && found.memory > most_memory * found.room) return found;
  const Piece& whole = PieceOf(point, values, kUpdate);
  if (!whole.error.empty()) {
    found.excluded = &whole.error;
    return found;
  }
  if (p > 1) {
    // While a stage waits for its first messages, its host gets ahead of its kernels.
    const double way = all - layers * pass.idle_layer;
    // Ahead by one more forward pass, ranks of 1F1B wait for gradients alone.
    constexpr double kGradients = 2.0 / 3;
    const double bubble =
        order.bubble * (pairs && values[kSchedule] == kOneForwardOneBackward ? kGradients : 1);
    found.step = (p - 1) * (bubble * way / (p * v) + 2 * message);
    // Ranks with several stages gather at the same time.
    if (!order.interleaves)
      found.step += (p - 1) * layers / p * std::max(0.0, whole.forward - pass.forward);
  }
  const double busy =
      ((m - in_pairs) * all + in_pairs * all_paired) / p + whole.update * layers / p + whole.rest;
  found.step +=
      (m - in_pairs) * cycle + in_pairs * paired_cycle + whole.update * layers / p + whole.rest;
  found.idle = std::clamp(1 - busy / found.step, 0.0, 1.0);
  found.tokens = pass.tokens_of_sample * values[kBatch];
  found.ranks = static_cast<uint32_t>(p * groups * values[kTensor] * values[kContext]);
  found.device = &pass.device;
  found.family = FamilyOf(point, values, pass);

  const double halves = p > 1 ? 0.5 : 1;
  const double sums = m > 1 ? pass.sums_layer : 0;
  const double kept =
      order.copies * (halves * whole.kept_rest + fullest * (whole.kept_layer + sums));
  const double first = kept + fullest * pass.active_layer * under_way;
  const double last = kept + fullest * pass.active_layer + pass.active_rest;
  found.memory = std::max(first, last) + pass.reserve;
  return found;
}

}  // namespace rehearse
