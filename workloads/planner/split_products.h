// Products of tensor parallelism in pieces, so that what they gather or sum travels beside them
// (SplitProducts in workloads/strategies/strategy.h). With t ranks that have m rows together:
//
//   | X forward and dY backward, which are gathered     | Y forward, which is summed           |
//   | exchange 1 .. t-1: m/t rows from the rank before  | product 1 | product 2 | ..           |
//   | product of the own rows | of piece 1 | .. | of t-1 |           | sum of piece 1 | ..    |
//
// Rows go round the ring of the group into one array, which the product of dW takes as a whole.
// Products that are summed are cut by columns, each piece reduce-scattered behind its product, or
// by rows, whose sums go round the ring. X is gathered again beside dX, and dX summed beside dW, as
// without pieces. Copy engines move what goes round, as between GPUs that see each other's memory.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "workloads/planner/plan.h"

namespace rehearse {

// An operand and, where it comes in pieces, views of its rows in the order in which they are there.
struct ArrivingOperand {
  Tensor whole;
  std::vector<BufferId> pieces = {};
};

// Brings a tensor into another layout: in pieces if the strategy splits products and this is one
// gather of rows. `lies_ready`: the kernel before can write its rows to where they belong.
ArrivingOperand BringOperand(Plan& plan, Tensor tensor, const Layout& layout, bool lies_ready);

// Visits the parts of the operand, each with the rows of the result that belong to it: the products
// of the visits are pieces.
void ForEachPart(Plan& plan, const ArrivingOperand& operand, const Tensor& result,
                 const std::function<void(BufferId operand, BufferId result)>& visit);

// Y = X·W^T of the node, whose partial sums lie as `from` says, reduce-scattered piece by piece.
// Nothing, and no op, if the strategy does not split products, or this one is not summed so or not
// cut into equal pieces.
std::optional<Tensor> MultiplyAndScatter(Plan& plan, uint32_t node, BufferId x, BufferId weight,
                                         const Layout& from);

}  // namespace rehearse
