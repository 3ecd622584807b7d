// A network cut into the stages of a pipeline: which nodes and matrices each has, and which values
// pass from one to the next.
//
// Stages hold runs of units; a unit is the nodes of one layer, or those between layers. A value
// that a later stage takes passes through all stages in between, and so does its gradient on its
// way back. workloads/planner/stage_sizes.h says how many units each stage gets. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/base/error.h"
#include "workloads/networks/network.h"
#include "workloads/planner/actions.h"

namespace rehearse {

// Nodes [begin, end) of one layer, with their matrices.
struct Unit {
  int32_t layer = -1;
  uint32_t begin = 0;
  uint32_t end = 0;
  uint32_t first_matrix = 0;
  uint32_t matrix_end = 0;
};
std::vector<Unit> UnitsOf(const Network& network);

// A matrix that another stage has too, because one is tied to the other: the embedding's table and
// the output layer. Each rank holds it whole; if both stages are on one rank, it is there once.
struct SharedMatrix {
  uint32_t matrix = 0;  // of this stage
  uint32_t first_rank = 0;
  uint32_t other_rank = 0;  // of the later stage
};

struct Stage {
  uint32_t index = 0;  // as actions count stages
  uint32_t rank = 0;   // of the pipeline
  // Those of its neighbours; meaningless at the ends.
  uint32_t rank_before = 0;
  uint32_t rank_behind = 0;
  std::vector<Unit> units;
  std::vector<uint32_t> inputs;   // nodes of data that it takes
  std::vector<uint32_t> arrives;  // nodes whose values come from the stage before
  std::vector<uint32_t> leaves;   // nodes whose values go to the next one
  std::vector<SharedMatrix> shared;
  // The rank with the other copy of it, if there are two copies of the model: gradients of all its
  // parameters are summed with that rank's.
  std::optional<uint32_t> mirror;

  uint32_t node_begin() const { return units.front().begin; }
  uint32_t node_end() const { return units.back().end; }
  uint32_t first_matrix() const { return units.front().first_matrix; }
  uint32_t matrix_end() const { return units.back().matrix_end; }
  // Its layers before this one.
  uint32_t LayersBefore(int32_t layer) const {
    uint32_t before = 0;
    for (const Unit& unit : units) before += unit.layer >= 0 && unit.layer < layer;
    return before;
  }
  bool HasMatrix(uint32_t matrix) const {
    return matrix >= first_matrix() && matrix < matrix_end();
  }
};

// One for each stage of `places`. Throws Error unless every stage (of one copy of the model) has a
// unit, and together they have all units.
std::vector<Stage> CutIntoStages(const Network& network,
                                 const std::vector<uint32_t>& units_of_stage,
                                 const StagePlaces& places, const Place& place = {});

}  // namespace rehearse
