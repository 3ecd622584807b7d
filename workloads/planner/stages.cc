#include "workloads/planner/stages.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace rehearse {

std::vector<Unit> UnitsOf(const Network& network) {
  std::vector<Unit> units;
  uint32_t matrix = 0;
  for (uint32_t node = 0; node < network.nodes.size(); ++node) {
    const NetworkNode& shape = network.nodes[node];
    if (units.empty() || units.back().layer != shape.layer) {
      units.push_back({shape.layer, node, node, matrix, matrix});
    }
    if (shape.matrix) {
      CHECK_EQ(*shape.matrix, matrix);
      ++matrix;
    }
    units.back().end = node + 1;
    units.back().matrix_end = matrix;
  }
  return units;
}

namespace {

constexpr uint32_t kNobody = 0;

// By node: the last stage that takes its value.
std::vector<uint32_t> LastConsumers(const Network& network,
                                    const std::vector<uint32_t>& stage_of_node) {
  std::vector<uint32_t> last(network.nodes.size(), kNobody);
  for (uint32_t node = 0; node < network.nodes.size(); ++node) {
    for (const uint32_t input : network.nodes[node].inputs) {
      last[input] = std::max(last[input], stage_of_node[node]);
    }
  }
  return last;
}

void AddSharedMatrices(const Network& network, const std::vector<uint32_t>& stage_of_matrix,
                       const StagePlaces& places, std::vector<Stage>* stages) {
  for (uint32_t matrix = 0; matrix < network.matrices.size(); ++matrix) {
    if (!network.matrices[matrix].tied) continue;
    const uint32_t table = *network.matrices[matrix].tied;
    const uint32_t first = stage_of_matrix[table];
    const uint32_t other = stage_of_matrix[matrix];
    if (first == other) continue;
    CHECK_LT(first, other);
    for (const SharedMatrix& known : (*stages)[first].shared) CHECK_NE(known.matrix, table);
    const uint32_t first_rank = places.rank_of[first];
    const uint32_t other_rank = places.rank_of[other];
    (*stages)[first].shared.push_back({table, first_rank, other_rank});
    (*stages)[other].shared.push_back({matrix, first_rank, other_rank});
  }
}

// The stages of one copy, as if there were no other.
std::vector<Stage> CutOneCopy(const Network& network, const std::vector<uint32_t>& units_of_stage,
                              const StagePlaces& places) {
  std::vector<Stage> stages;
  std::vector<uint32_t> stage_of_node;
  std::vector<uint32_t> stage_of_matrix;
  const std::vector<Unit> units = UnitsOf(network);
  auto unit = units.begin();
  for (uint32_t i = 0; i < units_of_stage.size(); ++i) {
    Stage stage;
    stage.index = i;
    stage.units.assign(unit, unit + units_of_stage[i]);
    unit += units_of_stage[i];
    stage_of_node.resize(stage.node_end(), i);
    stage_of_matrix.resize(stage.matrix_end(), i);
    stages.push_back(std::move(stage));
  }
  const std::vector<uint32_t> last = LastConsumers(network, stage_of_node);
  for (uint32_t node = 0; node < network.nodes.size(); ++node) {
    if (network.nodes[node].kind == NodeKind::kInput) continue;
    for (uint32_t stage = stage_of_node[node]; stage < last[node]; ++stage) {
      stages[stage].leaves.push_back(node);
      stages[stage + 1].arrives.push_back(node);
    }
  }
  // Data are wherever they are taken; what nobody takes stays where it is defined.
  for (Stage& stage : stages) {
    for (uint32_t node = 0; node < network.nodes.size(); ++node) {
      if (network.nodes[node].kind != NodeKind::kInput) continue;
      bool takes = stage_of_node[node] == stage.index;
      for (uint32_t own = stage.node_begin(); own < stage.node_end(); ++own) {
        const std::vector<uint32_t>& inputs = network.nodes[own].inputs;
        takes |= std::find(inputs.begin(), inputs.end(), node) != inputs.end();
      }
      if (takes) stage.inputs.push_back(node);
    }
  }
  // If there are two copies, all gradients are summed with those of the other one.
  if (places.copies == 1) AddSharedMatrices(network, stage_of_matrix, places, &stages);
  return stages;
}

}  // namespace

std::vector<Stage> CutIntoStages(const Network& network,
                                 const std::vector<uint32_t>& units_of_stage,
                                 const StagePlaces& places, const Place& place) {
  const std::vector<Unit> units = UnitsOf(network);
  const uint32_t sum = std::accumulate(units_of_stage.begin(), units_of_stage.end(), 0u);
  if (sum != units.size() || std::count(units_of_stage.begin(), units_of_stage.end(), 0u) > 0) {
    throw Error(place, fmt::format("stages of {} units: {} has {}, and every stage needs one",
                                   fmt::join(units_of_stage, ", "), network.name, units.size()));
  }
  CHECK_EQ(units_of_stage.size(), places.stages_of_copy());
  std::vector<Stage> stages = CutOneCopy(network, units_of_stage, places);
  const auto count = static_cast<uint32_t>(stages.size());
  for (uint32_t index = count; index < places.stages(); ++index) {
    stages.push_back(stages[index - count]);
    stages.back().index = index;
  }
  for (Stage& stage : stages) {
    stage.rank = places.rank_of[stage.index];
    if (!places.IsFirstOfCopy(stage.index)) stage.rank_before = places.rank_of[stage.index - 1];
    if (!places.IsLastOfCopy(stage.index)) stage.rank_behind = places.rank_of[stage.index + 1];
    if (places.copies == 2) {
      stage.mirror = places.rank_of[(stage.index + count) % places.stages()];
      CHECK_NE(*stage.mirror, stage.rank);
    }
  }
  return stages;
}

}  // namespace rehearse
