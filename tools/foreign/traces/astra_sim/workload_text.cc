#include "tools/foreign/traces/astra_sim/workload_text.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/base/error.h"
#include "sim/base/json_document.h"
#include "sim/base/json_reader.h"
#include "sim/base/known_names.h"
#include "sim/schedule/schedule_json.h"
#include "tools/foreign/machines/imported_cluster.h"

namespace rehearse {
namespace {

constexpr uint64_t kMostWorkloadRanks = 1 << 20;
constexpr uint64_t kMostWorkloadLayers = 100'000;
constexpr uint64_t kMostOfPart = uint64_t{1} << 50;  // nanoseconds, bytes

// Who takes part in a collective: the ranks of a stage, those that share layers, and so on.
enum class SharingGroup : uint8_t {
  kNobody,
  kAll,
  kTensor,
  kData,
  kExpert,
  kReplicas,
  kNear,  // ranks of the first dimension, whatever they share
  kFar,   // those with the same place in it
};
constexpr const char* kGroupNames[] = {"nobody", "all",      "tensor", "data",
                                       "expert", "replicas", "near",   "far"};

enum class BackwardOrder : uint8_t {
  kNone,
  kWeightsFirst,   // gradients of weights before those of inputs
  kInputsBehind,   // collectives of inputs' gradients run beside the products of weights'
  kInputsBetween,  // compute waits for them
  kWeightsOnly,    // nothing but the collectives of weights' gradients, one after the other
  kEmbedding,      // as kWeightsFirst; the first layer's all-to-alls run beside the bottom layers
};

struct SharingPolicy {
  std::string_view name;
  SharingGroup layers;   // of forward and of inputs' gradients
  SharingGroup weights;  // of weights' gradients
  BackwardOrder backward;
  bool is_data_inside;  // the nearest ranks are those of data parallelism
};
constexpr SharingPolicy kPolicies[] = {
    {"HYBRID_TRANSFORMER_FWD_IN_BCKWD", SharingGroup::kTensor, SharingGroup::kData,
     BackwardOrder::kInputsBetween, false},
    {"HYBRID_TRANSFORMER", SharingGroup::kTensor, SharingGroup::kData,
     BackwardOrder::kInputsBetween, false},
    {"HYBRID_DATA_MODEL", SharingGroup::kTensor, SharingGroup::kData, BackwardOrder::kInputsBehind,
     false},
    {"HYBRID_MODEL_DATA", SharingGroup::kTensor, SharingGroup::kData, BackwardOrder::kInputsBehind,
     true},
    {"DATA", SharingGroup::kNobody, SharingGroup::kAll, BackwardOrder::kWeightsFirst, false},
    {"MODEL", SharingGroup::kAll, SharingGroup::kNobody, BackwardOrder::kInputsBehind, false},
    {"DISTRIBUTED_INFERENCE", SharingGroup::kAll, SharingGroup::kNobody, BackwardOrder::kNone,
     false},
    {"MICRO", SharingGroup::kNobody, SharingGroup::kAll, BackwardOrder::kWeightsOnly, false},
    {"HYBRID_CUSTOMIZED", SharingGroup::kNobody, SharingGroup::kNobody,
     BackwardOrder::kInputsBehind, false},
    {"HYBRID_DLRM_ENHANCED", SharingGroup::kNobody, SharingGroup::kAll, BackwardOrder::kEmbedding,
     false},
    {"HYBRID_DLRM", SharingGroup::kNobody, SharingGroup::kAll, BackwardOrder::kEmbedding, false}};
constexpr std::string_view kCustomized = "HYBRID_CUSTOMIZED";

// How a layer of a customized workload is shared.
struct LayerPolicy {
  std::string_view name;
  SharingGroup layers;
  SharingGroup weights;
};
constexpr LayerPolicy kLayerPolicies[] = {
    {"DATA", SharingGroup::kNobody, SharingGroup::kAll},
    {"MODEL", SharingGroup::kAll, SharingGroup::kNobody},
    {"HYBRID_DATA_MODEL", SharingGroup::kNear, SharingGroup::kFar},
    {"HYBRID_MODEL_DATA", SharingGroup::kFar, SharingGroup::kNear}};

struct CollectiveName {
  std::string_view theirs;
  const char* ours;
};
constexpr CollectiveName kCollectiveNames[] = {{"ALLREDUCE", "all-reduce"},
                                               {"ALLGATHER", "all-gather"},
                                               {"REDUCESCATTER", "reduce-scatter"},
                                               {"ALLTOALL", "all-to-all"}};
struct GroupEnding {
  std::string_view ending;
  SharingGroup group;
};
constexpr GroupEnding kGroupEndings[] = {{"_DP_EP", SharingGroup::kReplicas},
                                         {"_EP", SharingGroup::kExpert}};

// What a layer does in one of its three parts.
struct PassText {
  uint64_t compute = 0;  // ns
  const char* collective = nullptr;
  SharingGroup group = SharingGroup::kNobody;
  uint64_t bytes = 0;
};
struct WorkloadLayer {
  std::string name;
  PassText forward;
  PassText inputs;
  PassText weights;
  uint64_t update = 0;  // ns, behind each collective
};

std::vector<std::string> WordsOf(const std::string& line) {
  std::vector<std::string> words;
  std::istringstream parts(line);
  for (std::string word; parts >> word;) words.push_back(word);
  return words;
}

class WorkloadReader {
 public:
  WorkloadReader(std::string_view text, std::string file)
      : lines_(std::string(text)), file_(std::move(file)) {}

  [[noreturn]] void Fail(const std::string& message) const {
    throw Error({file_, line_, ""}, message);
  }

  std::vector<std::string> Next() {
    std::string line;
    std::vector<std::string> words;
    while (words.empty() && std::getline(lines_, line)) {
      ++line_;
      words = WordsOf(line);
    }
    return words;
  }

  uint64_t Count(const std::string& word, uint64_t most) const {
    uint64_t value = 0;
    const auto [end, fault] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (fault != std::errc() || end != word.data() + word.size() || value > most)
      Fail(fmt::format("found {}, expected a whole number of at most {}", Quoted(word), most));
    return value;
  }

  void ReadHead(const WorkloadSettings& settings) {
    const std::vector<std::string> words = Next();
    const std::string name = words.empty() ? "" : words.front();
    std::vector<std::string> names;
    for (const SharingPolicy& policy : kPolicies) {
      if (name == policy.name) policy_ = &policy;
      names.emplace_back(policy.name);
    }
    if (policy_ == nullptr) {
      Fail(
          fmt::format("found {}, no way of sharing work{}", Quoted(name), KnownNames(name, names)));
    }
    // ASTRA-sim 1.0 has the number alone, SimAI a name before it.
    const bool is_number = words.size() == 2 && !words[1].ends_with(':');
    if (policy_->backward == BackwardOrder::kEmbedding && is_number) head_[kLastBottom] = words[1];
    for (size_t i = 1; i < words.size(); ++i) {
      const bool is_list = words[i] == "checkpoints:" || words[i] == "checkpoint_initiates:";
      if (is_list && i + 1 < words.size()) {
        const uint64_t count = Count(words[i + 1], words.size());
        std::set<uint64_t>& list = words[i] == "checkpoints:" ? checkpoints_ : initiates_;
        if (i + 1 + count >= words.size())
          Fail(fmt::format("{} lacks some of its layers", words[i]));
        for (uint64_t k = 0; k < count; ++k)
          list.insert(Count(words[i + 2 + k], kMostWorkloadLayers));
        i += 1 + count;
      } else if (words[i].ends_with(':') && i + 1 < words.size()) {
        head_[words[i].substr(0, words[i].size() - 1)] = words[i + 1];
        ++i;
      }
    }
    for (const auto& [setting, value] : settings) head_[setting] = value;
  }

  uint64_t Degree(const char* name, uint64_t otherwise) const {
    const auto found = head_.find(name);
    const uint64_t value =
        found == head_.end() ? otherwise : Count(found->second, kMostWorkloadRanks);
    if (value == 0) Fail(fmt::format("{}: found 0, expected at least 1", name));
    return value;
  }
  bool Says(const char* name) const { return head_.count(name) > 0; }
  bool IsCustomized() const { return policy_->name == kCustomized; }

  // The last layer that the embedding's all-to-all runs beside.
  uint64_t LastBottomLayer(size_t layers) const {
    const auto found = head_.find(kLastBottom);
    if (found == head_.end())
      Fail(
          fmt::format("{}: nothing says which layer is the last of the bottom; expected "
                      "--set {}=4",
                      policy_->name, kLastBottom));
    const uint64_t last = Count(found->second, kMostWorkloadLayers);
    if (last == 0 || last >= layers)
      Fail(fmt::format("{}: found {}, expected a layer from 1 to {}", kLastBottom, last,
                       layers - 1));
    return last;
  }

  PassText ReadPart(const std::vector<std::string>& words, size_t at, SharingGroup usual) {
    PassText part;
    part.compute = Count(words[at], kMostOfPart);
    part.bytes = Count(words[at + 2], kMostOfPart);
    const std::string& kind = words[at + 1];
    if (kind == "NONE" || part.bytes == 0) return part;
    std::string_view stem = kind;
    part.group = usual;
    for (const GroupEnding& ending : kGroupEndings) {
      if (!stem.ends_with(ending.ending)) continue;
      stem.remove_suffix(ending.ending.size());
      part.group = ending.group;
      break;
    }
    for (const CollectiveName& known : kCollectiveNames)
      if (stem == known.theirs) part.collective = known.ours;
    if (part.collective == nullptr) ++left_out_[kind];
    return part;
  }

  std::vector<WorkloadLayer> ReadLayers() {
    const std::vector<std::string> second = Next();
    if (second.size() != 1) Fail("expected how many layers there are");
    const uint64_t count = Count(second[0], kMostWorkloadLayers);
    const size_t fields = IsCustomized() ? 13 : 12;
    std::vector<WorkloadLayer> layers;
    for (uint64_t i = 0; i < count; ++i) {
      const std::vector<std::string> words = Next();
      if (words.size() < fields) {
        Fail(fmt::format(
            "found {} values of layer {} of {}, expected {}: name, -1, and compute, "
            "collective and bytes of forward, inputs and weights, and the update{}",
            words.size(), i + 1, count, fields, IsCustomized() ? ", and how it is shared" : ""));
      }
      LayerPolicy own = {"", policy_->layers, policy_->weights};
      if (IsCustomized()) own = PolicyOfLayer(words[fields - 1]);
      const bool is_embedding = policy_->backward == BackwardOrder::kEmbedding && i == 0;
      if (is_embedding) own.layers = SharingGroup::kAll;
      WorkloadLayer layer;
      layer.name = Printable(words[0]);
      layer.forward = ReadPart(words, 2, own.layers);
      layer.inputs = ReadPart(words, 5, own.layers);
      layer.weights = ReadPart(words, 8, own.weights);
      layer.update = Count(words[11], kMostOfPart);
      layers.push_back(std::move(layer));
    }
    if (layers.empty()) Fail("found no layers, expected at least 1");
    return layers;
  }

  LayerPolicy PolicyOfLayer(const std::string& name) const {
    std::vector<std::string> names;
    for (const LayerPolicy& policy : kLayerPolicies) {
      if (name == policy.name) return policy;
      names.emplace_back(policy.name);
    }
    Fail(fmt::format("found {}, no way of sharing a layer{}", Quoted(name),
                     KnownNames(name, names)));
  }

  const SharingPolicy& policy() const { return *policy_; }
  const std::set<uint64_t>& checkpoints() const { return checkpoints_; }
  const std::set<uint64_t>& initiates() const { return initiates_; }
  const std::map<std::string, uint64_t>& left_out() const { return left_out_; }

 private:
  static constexpr const char* kLastBottom = "DLRM_LAST_BOTTOM_LAYER";

  std::istringstream lines_;
  std::string file_;
  int line_ = 0;
  const SharingPolicy* policy_ = nullptr;
  std::map<std::string, std::string> head_;
  std::set<uint64_t> checkpoints_;
  std::set<uint64_t> initiates_;
  std::map<std::string, uint64_t> left_out_;
};

// ---- Groups -------------------------------------------------------------------------------------

using Axes = std::vector<std::pair<uint64_t, uint64_t>>;  // extent, stride

struct WorkloadGroups {
  std::map<SharingGroup, uint64_t> sizes;
  std::map<SharingGroup, nlohmann::ordered_json> communicators;
};

nlohmann::ordered_json MeshOf(const Axes& axes) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const auto& [extent, stride] : axes)
    if (extent > 1) list.push_back({extent, stride});
  return list;
}

WorkloadGroups GroupsOf(const WorkloadReader& reader, uint64_t ranks) {
  const bool is_split = reader.policy().layers == SharingGroup::kTensor;
  const uint64_t tensor = is_split ? reader.Degree("model_parallel_NPU_group", 1) : 1;
  const uint64_t stages = is_split ? reader.Degree("pp", 1) : 1;
  const uint64_t expert = is_split ? reader.Degree("ep", 1) : 1;
  const uint64_t of_stage = ranks / stages;
  if (ranks % stages != 0 || of_stage % tensor != 0 || of_stage / tensor % expert != 0) {
    reader.Fail(fmt::format("{} ranks cannot be shared by {} tensor x {} expert x {} stages", ranks,
                            tensor, expert, stages));
  }
  const uint64_t data = of_stage / tensor;
  const bool inside = reader.policy().is_data_inside;
  const uint64_t step_of_tensor = inside ? data : 1;
  const uint64_t step_of_data = inside ? 1 : tensor;
  const Axes of_tensor = {{tensor, step_of_tensor}};
  const Axes of_data = {{data, step_of_data}};
  const Axes of_expert = {{expert, step_of_data}};
  const Axes of_replicas = {{data / expert, step_of_data * expert}};
  const Axes of_stages = {{stages, of_stage}};
  WorkloadGroups groups;
  const auto add = [&](SharingGroup group, const Axes& members, const std::vector<Axes>& others) {
    groups.sizes[group] = members.front().first;
    if (members.front().first == 1) return;
    Axes all;
    for (const Axes& other : others) all.insert(all.end(), other.begin(), other.end());
    groups.communicators[group] = {
        {"name", kGroupNames[static_cast<size_t>(group)]},
        {"mesh", {{"members", MeshOf(members)}, {"groups", MeshOf(all)}}}};
  };
  add(SharingGroup::kAll, {{ranks, 1}}, {});
  add(SharingGroup::kTensor, of_tensor, {of_data, of_stages});
  add(SharingGroup::kData, of_data, {of_tensor, of_stages});
  add(SharingGroup::kExpert, of_expert, {of_tensor, of_replicas, of_stages});
  add(SharingGroup::kReplicas, of_replicas, {of_tensor, of_expert, of_stages});
  if (!reader.IsCustomized()) return groups;
  const uint64_t near = reader.Degree("model_parallel_NPU_group", 1);
  if (ranks % near != 0)
    reader.Fail(fmt::format("{} ranks are not a multiple of {} near ones", ranks, near));
  const Axes of_near = {{near, 1}};
  const Axes of_far = {{ranks / near, near}};
  add(SharingGroup::kNear, of_near, {of_far});
  add(SharingGroup::kFar, of_far, {of_near});
  return groups;
}

// ---- The loops ----------------------------------------------------------------------------------

class WorkloadPlayer {
 public:
  explicit WorkloadPlayer(const WorkloadGroups& groups) : groups_(groups) {}

  void Compute(const std::string& name, const char* phase, uint64_t layer, uint64_t nanoseconds) {
    if (nanoseconds == 0) return;
    Add({{"name", name},
         {"duration", fmt::format("{}ns", nanoseconds)},
         {"stream", "compute"},
         {"phase", phase},
         {"layer", layer}},
        std::exchange(waits_, std::nullopt));
    compute_ = ops_.size() - 1;
  }

  // Begins when what is before it on the compute stream is done. Nothing where nobody takes part.
  std::optional<size_t> Communicate(const PassText& part, const std::string& name,
                                    const char* phase, uint64_t layer, uint64_t update) {
    if (part.collective == nullptr) return std::nullopt;
    const auto communicator = groups_.communicators.find(part.group);
    if (communicator == groups_.communicators.end()) return std::nullopt;
    used_.insert(part.group);
    const std::string group = kGroupNames[static_cast<size_t>(part.group)];
    Add({{"name", fmt::format("{} {}", part.collective, name)},
         {"collective", part.collective},
         {"communicator", group},
         {"bytes", fmt::format("{}B", part.bytes)},
         {"phase", phase},
         {"layer", layer}},
        waits_ ? waits_ : compute_);
    if (update > 0) {
      Add({{"name", "use " + name},
           {"duration", fmt::format("{}ns", update)},
           {"stream", "use"},
           {"phase", phase},
           {"layer", layer}},
          ops_.size() - 1);
    }
    return ops_.size() - 1;
  }

  // What is computed next waits for this.
  void WaitFor(std::optional<size_t> op) {
    if (op) waits_ = op;
  }

  nlohmann::ordered_json Schedule(uint64_t ranks) const {
    nlohmann::ordered_json schedule = {{"schema", "rehearse.schedule.v1"}, {"ranks", ranks}};
    schedule["communicators"] = nlohmann::ordered_json::array();
    for (const SharingGroup group : used_)
      schedule["communicators"].push_back(groups_.communicators.at(group));
    schedule["ops"] = ops_;
    return schedule;
  }

 private:
  void Add(nlohmann::ordered_json op, std::optional<size_t> after) {
    if (after) op["after"] = *after;
    ops_.push_back(std::move(op));
  }

  const WorkloadGroups& groups_;
  nlohmann::ordered_json ops_ = nlohmann::ordered_json::array();
  std::set<SharingGroup> used_;
  std::optional<size_t> compute_;  // the last one
  std::optional<size_t> waits_;
};

void PlayForward(const WorkloadLayer& layer, uint64_t number, const char* phase,
                 WorkloadPlayer* player) {
  player->Compute(layer.name, phase, number, layer.forward.compute);
  player->WaitFor(player->Communicate(layer.forward, layer.name, phase, number, layer.update));
}

void PlayBackward(const WorkloadLayer& layer, uint64_t number, BackwardOrder backward,
                  WorkloadPlayer* player) {
  constexpr const char* kPhase = "backward";
  const auto weights = [&] {
    player->Compute(layer.name + " weights", kPhase, number, layer.weights.compute);
    player->Communicate(layer.weights, layer.name + " weights", "synchronize", number,
                        layer.update);
  };
  if (backward == BackwardOrder::kWeightsFirst) {
    weights();
    if (number > 0) player->Compute(layer.name + " inputs", kPhase, number, layer.inputs.compute);
    return;
  }
  player->Compute(layer.name + " inputs", kPhase, number, layer.inputs.compute);
  std::optional<size_t> inputs;
  if (number > 0 || backward == BackwardOrder::kInputsBetween)
    inputs =
        player->Communicate(layer.inputs, layer.name + " inputs", kPhase, number, layer.update);
  if (backward == BackwardOrder::kInputsBetween) player->WaitFor(inputs);
  weights();
  if (backward == BackwardOrder::kInputsBehind) player->WaitFor(inputs);
}

// Of embeddings and perceptrons: only all-to-alls of the way forward are played, and the first
// layer's is awaited behind the bottom ones; that of its gradients begins when they do.
void PlayEmbedding(const std::vector<WorkloadLayer>& layers, uint64_t last_bottom,
                   WorkloadPlayer* player) {
  std::optional<size_t> embedding;
  for (uint64_t i = 0; i < layers.size(); ++i) {
    const WorkloadLayer& layer = layers[i];
    player->Compute(layer.name, "forward", i, layer.forward.compute);
    const char* const collective = layer.forward.collective;
    if (collective != nullptr && collective == std::string_view("all-to-all")) {
      const auto sent = player->Communicate(layer.forward, layer.name, "forward", i, layer.update);
      if (i == 0) embedding = sent;
    }
    if (i == last_bottom) player->WaitFor(embedding);
  }
  for (uint64_t i = layers.size(); i-- > 0;) {
    const WorkloadLayer& layer = layers[i];
    PlayBackward(layer, i, BackwardOrder::kWeightsFirst, player);
    if (i == last_bottom + 1)
      player->Communicate(layers[0].inputs, layers[0].name + " inputs", "backward", 0,
                          layers[0].update);
  }
}

void Play(const WorkloadReader& reader, const std::vector<WorkloadLayer>& layers,
          WorkloadPlayer* player) {
  const BackwardOrder backward = reader.policy().backward;
  const uint64_t count = layers.size();
  if (backward == BackwardOrder::kWeightsOnly) {
    for (uint64_t i = 0; i < count; ++i)
      player->WaitFor(
          player->Communicate(layers[i].weights, layers[i].name, "forward", i, layers[i].update));
    return;
  }
  if (backward == BackwardOrder::kEmbedding) {
    PlayEmbedding(layers, reader.LastBottomLayer(count), player);
    return;
  }
  for (uint64_t i = 0; i < count; ++i) PlayForward(layers[i], i, "forward", player);
  if (backward == BackwardOrder::kNone) return;
  for (uint64_t i = count; i-- > 0;) {
    if (reader.initiates().count(i) > 0) {
      const auto behind = reader.checkpoints().upper_bound(i);
      if (behind == reader.checkpoints().begin())
        reader.Fail(fmt::format("layer {} has no checkpoint before it", i));
      for (uint64_t j = *std::prev(behind); j < i; ++j)
        PlayForward(layers[j], j, "recompute", player);
    }
    PlayBackward(layers[i], i, backward, player);
  }
}

}  // namespace

bool IsAstraWorkload(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return false;
  const size_t end = std::min(text.find_first_of(" \t\r\n", first), text.size());
  const std::string_view word = text.substr(first, end - first);
  return std::any_of(std::begin(kPolicies), std::end(kPolicies),
                     [&](const SharingPolicy& policy) { return policy.name == word; });
}

ImportedWorkload ImportAstraWorkload(std::string_view text, const std::string& file, uint32_t ranks,
                                     const WorkloadSettings& settings) {
  RefuseNonText(text, file, "a workload of ASTRA-sim", Escapes::kRefused);
  WorkloadReader reader(text, file);
  reader.ReadHead(settings);
  const uint64_t given = reader.Says("all_gpus") ? reader.Degree("all_gpus", 1) : ranks;
  if (given == 0 || given > kMostWorkloadRanks) {
    throw Error({file, 1, ""},
                "nothing says how many ranks there are; expected all_gpus: in the first line, "
                "--set all_gpus=64, or --cluster");
  }
  const bool is_split = reader.policy().backward == BackwardOrder::kInputsBehind &&
                        (reader.policy().layers == SharingGroup::kTensor || reader.IsCustomized());
  if (is_split && !reader.Says("model_parallel_NPU_group")) {
    throw Error({file, 1, ""},
                "says layers are shared, but not by how many ranks; expected --set "
                "model_parallel_NPU_group=8");
  }
  const WorkloadGroups groups = GroupsOf(reader, given);
  const std::vector<WorkloadLayer> layers = reader.ReadLayers();
  WorkloadPlayer player(groups);
  Play(reader, layers, &player);

  ImportedWorkload imported;
  imported.ranks = static_cast<uint32_t>(given);
  for (const auto& [kind, count] : reader.left_out()) {
    imported.remarks.push_back(
        fmt::format("{} of {} left out: ASTRA-sim has no such collective", count, Quoted(kind)));
  }
  if (reader.Says("pp") && reader.Degree("pp", 1) > 1) {
    imported.remarks.push_back(
        fmt::format("one of {} stages is played; what stages send, and how long they wait for each "
                    "other, is not in the layers",
                    reader.Degree("pp", 1)));
  }
  const JsonDocument document =
      JsonDocument::FromValue(nlohmann::json(player.Schedule(given)), {file, 0, ""});
  imported.text = WriteSchedule(ReadSchedule(document.Root()), {ClusterNameOf(file), ""});
  return imported;
}

}  // namespace rehearse
