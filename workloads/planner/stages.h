// A network cut into the stages of a pipeline: which nodes and matrices each has, and which values
// pass from one to the next.
//
// Stages hold runs of units; a unit is the nodes of one layer, or those between layers. A value
// that a later stage takes passes through all stages in between, and so does its gradient on its
// way back. Pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/error.h"
#include "workloads/networks/network.h"

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
// the output layer. Each stage holds it whole.
struct SharedMatrix {
  uint32_t matrix = 0;  // of this stage
  uint32_t first_stage = 0;
  uint32_t other_stage = 0;  // behind the first
};

struct Stage {
  uint32_t index = 0;
  uint32_t count = 1;  // of all stages
  std::vector<Unit> units;
  std::vector<uint32_t> inputs;   // nodes of data that it takes
  std::vector<uint32_t> arrives;  // nodes whose values come from the stage before
  std::vector<uint32_t> leaves;   // nodes whose values go to the next one
  std::vector<SharedMatrix> shared;

  uint32_t node_begin() const { return units.front().begin; }
  uint32_t node_end() const { return units.back().end; }
  uint32_t first_matrix() const { return units.front().first_matrix; }
  uint32_t matrix_end() const { return units.back().matrix_end; }
  bool HasMatrix(uint32_t matrix) const {
    return matrix >= first_matrix() && matrix < matrix_end();
  }
};

// Layers as evenly as can be, the first stages with one more where they do not divide; what comes
// before the layers is on the first stage, what comes after them on the last. Units of each stage.
// Throws Error where there are fewer layers than stages.
std::vector<uint32_t> EvenStages(const Network& network, uint32_t stages, const Place& place = {});

// Throws Error unless every stage has a unit, and together they have all.
std::vector<Stage> CutIntoStages(const Network& network,
                                 const std::vector<uint32_t>& units_of_stage,
                                 const Place& place = {});

}  // namespace rehearse
