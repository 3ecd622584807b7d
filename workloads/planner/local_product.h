// The three products of a node on one rank's pieces, whose sizes are those of the buffers; a
// convolution's products are on the windows of its image, which are made before them (im2col) or
// folded back after them (col2im).
//
//   Y = X·W^T    dX = dY·W    dW = dY^T·X        W as it is stored, n×k
//
// Windows of a product that reads them where they are (Training::implicit_convolution) cost nothing
// and take no memory; the product's traffic is that of the image. Windows are made again for dW.
//
// Operands are cast first if the product takes narrow ones (workloads/planner/casts.h).
#pragma once

#include "workloads/planner/split_products.h"

namespace rehearse {

// X or dY of the node's product, cast if the product takes it so, in the layout that the product
// wants.
ArrivingOperand ToOperand(Plan& plan, uint32_t node, const Tensor& tensor, const Layout& layout,
                          bool is_gradient);
// X before it is moved there; X itself if it is not cast.
Tensor CastInput(Plan& plan, uint32_t node);

// Each writes its last array, or adds to it if `adds`.
// `share`: of the columns of Y, the part that is computed.
void Multiply(Plan& plan, uint32_t node, BufferId x, BufferId weight, BufferId y, bool adds,
              double share = 1);
void MultiplyForInputGradient(Plan& plan, uint32_t node, BufferId dy, BufferId weight, BufferId dx);
void MultiplyForWeightGradient(Plan& plan, uint32_t node, BufferId dy, BufferId x, BufferId dw,
                               bool adds);

}  // namespace rehearse
