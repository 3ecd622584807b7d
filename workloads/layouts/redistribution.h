// The cheapest way from one layout to another: a shortest path over layouts.
//
// The nodes of the graph are layouts, its edges single collectives (or free slices) along one axis
// or along several nested ones together. The cost of an edge is that of a ring: a launch,
// steps·alpha and bytes·beta, with p-1 steps and (p-1)/p of the array for all-gather,
// reduce-scatter and all-to-all, twice that for all-reduce. So partial sums are added up while the
// array is small, and what will be sliced is sliced before it travels.
//
// What each edge may do: a dimension's pieces nest, so only its innermost axes can be gathered or
// exchanged, and a new split lies inside the existing ones. Axes on which both layouts agree (and
// that lie outside everything that changes) are left alone. Pure and deterministic: ties go to the
// way that was found first.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/base/quantity.h"
#include "workloads/layouts/layout.h"

namespace rehearse {

struct RedistributionStep {
  Move move = Move::kNone;
  std::vector<uint32_t> axes;  // that take part together, outermost first
  uint8_t from_dimension = 0;  // all-gather, all-to-all: the dimension whose pieces travel
  uint8_t to_dimension = 0;    // slice, reduce-scatter, all-to-all: the dimension that is cut
  Layout after;
};

// Latency of a ring's step and seconds per byte along one axis.
struct AxisCost {
  Seconds alpha{1e-6};
  double beta = 1 / 20e9;
};

struct MatrixShape {
  uint64_t rows = 0;
  uint64_t columns = 0;
  double element = 2;  // bytes
};

// Both layouts must be normalised for `axis_sizes`; `costs` are by axis, or empty for AxisCost's
// defaults. Returns nothing if no sequence of moves reaches `to`: P from anything else, or sizes
// that do not divide.
std::optional<std::vector<RedistributionStep>> ShortestPath(
    const Layout& from, const Layout& to, const MatrixShape& shape,
    const std::vector<uint32_t>& axis_sizes, const std::vector<AxisCost>& costs = {});

// Cost of one step that starts from layout `before`.
Seconds CostOf(const RedistributionStep& step, const Layout& before, const MatrixShape& shape,
               const std::vector<uint32_t>& axis_sizes, const std::vector<AxisCost>& costs = {});

}  // namespace rehearse
