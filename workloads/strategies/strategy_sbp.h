// SBP, with any assignment for every product (AutoDDL, Chen et al., arXiv 2301.06813; OneFlow,
// arXiv 2110.15032).
//
// There are two ways to give it. By numbers: p = p0·p1·p2 ranks for each product, X (S0:p0, B:p1,
// S1:p2), W (B:p0, S1:p1, S0:p2), Y (S0:p0, S1:p1, P:p2), which comes to rest fully split as
// (S0:p0, S1:p1·p2); each p is a pair of machines and ranks in a machine. Or by layouts on a mesh,
// axis by axis, in OneFlow's notation. Between two products we take the cheapest way from the rest
// of the one to the X of the other:
//
//   | between                      | forward                     | backward                    |
//   | Y (…, P:p2) -> rest          | reduce-scatter over p2      | all-gather                  |
//   | the splits differ            | all-to-all                  | all-to-all                  |
//   | rest -> next X (…, B:p1', …) | all-gather over p1'         | reduce-scatter              |
//   | after backward               |                             | all-reduce dW over p0       |
//
// Bytes: mn/(p0 p1) reduce-scattered, mk'/(p0' p2') gathered, kn/(p1 p2) all-reduced. p1 = p2 = 1
// is data parallelism.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/error.h"
#include "workloads/strategies/strategy.h"

namespace rehearse {

// Machines and ranks of a machine for each of p0, p1, p2.
struct SbpNumbers {
  std::array<uint32_t, 3> nodes = {1, 1, 1};
  std::array<uint32_t, 3> gpus = {1, 1, 1};

  friend bool operator==(const SbpNumbers&, const SbpNumbers&) = default;
};

struct SbpOptions {
  uint32_t nodes = 1;
  uint32_t gpus = 1;                 // per machine
  std::vector<SbpNumbers> products;  // for the network's matrices
  bool overlap_all_reduce = true;    // collectives of dX beside the dW product
  bool overlap_gradients = false;    // all-reduce of dW beside the last backward pass
};

// A tied output layer has the table's p1 and p2 swapped.
SbpNumbers Exchanged(const SbpNumbers& numbers);

// The mesh is made of the factors of nodes and gpus that the products' numbers ask for, machines
// outermost. First products take p1 outside p2, second ones p2 outside p1, so that equal numbers
// meet without an all-to-all. Throws Error at `place` if numbers do not multiply to the machines or
// ranks.
Strategy MakeSbp(const SbpOptions& options, const Network& network, const Place& place = {});

// Where a product of this role with these numbers cuts the machines and their ranks, a bit for each
// place; nothing if they do not multiply to the machines or ranks. MakeSbp() needs as
// many axes as the cuts of all products have bits together, at most kMostAxes.
std::optional<uint64_t> SbpCuts(const SbpNumbers& numbers, MatrixRole role, uint32_t nodes,
                                uint32_t gpus);

// Layouts given one by one. If a product's `rest` is empty, its partial sums are reduce-scattered
// to columns.
Strategy MakeSbp(DeviceMesh mesh, std::vector<ProductLayouts> products, bool overlap_all_reduce,
                 bool overlap_gradients);

}  // namespace rehearse
