// Operands of products in 8 or 4 bits (ProductRecipe), as NVIDIA's Transformer Engine casts them.
//
//   X, dY  cast where they rest, so that gathers move the narrow copy; X's is kept for dW in place
//          of X. Sums over ranks stay in the training's precision, and so do results.
//   W      cast once a step, or each time that it has been gathered (ZeRO-3).
//
// Which products: those of the layers' matrices, except in the first and last `precise_layers`;
// never attention cores, the head or the embedding. An array is needed along its rows and along its
// columns (Y = X·W^T and dX = dY·W, dW = dY^T·X): matrix units of Hopper read 8-bit operands along
// k only, and scales of blocks lie along k on any device, so two copies are written, one transposed
// (docs.nvidia.com/deeplearning/transformer-engine, low precision training: performance
// considerations). Blackwell needs one copy of arrays with one scale (Training::reads_columns).
// What is multiplied with a frozen matrix, whose gradients nobody needs, is needed along its rows
// only.
//
// Memory traffic in bytes per element of `e` bytes, and kernels:
//
//   | recipe        | traffic           | kernels |                                             |
//   | fp8           | e + c             | 1       | c: copies, 1 or 2; behind a norm, which     |
//   |               |                   |         | writes fp8 itself: none, or 2 to transpose  |
//   |               |                   |         | it (NVIDIA/TransformerEngine 2.5,           |
//   |               |                   |         | common/normalization: nvte_transpose)       |
//   | fp8-current   | 2e + c            | 2       | reads it once for its largest number, on a  |
//   |               |                   |         | Blackwell at .71 of the rate; e + c in 1    |
//   |               |                   |         | behind a norm, and behind an MLP's          |
//   |               |                   |         | activation either way, whose kernels find   |
//   |               |                   |         | that number                                 |
//   |               |                   |         | (NVIDIA/TransformerEngine #2004, #2013)     |
//   | fp8-blockwise | e + 2·33/32       | 1       | a scale in fp32 for 128                     |
//   | mxfp8         | (e + 2·33/32)/.85 | 2       | one byte for 32; the second zeroes scales   |
//   |               |                   |         | (NVIDIA/TransformerEngine #1912)            |
//   | nvfp4         | (2e + 2·9/16)/.72 | 2       | one byte for 16; reads it once for its      |
//   |               |                   |         | largest number, behind a Hadamard transform |
//   |               | + 1.4 of dY       |         | which is rounded at random                  |
//
// Casts to blocks compute more than memory bounds: what they take is written as so many bytes. An
// array of 8,192² in bf16 takes 52 us in mxfp8 on a B200 (ROCm/TransformerEngine #598, its column
// of a B200), 0.87 of what streams reach; on a B300, products of a layer with their casts take
// longer than without by 1.82 ms in mxfp8, 2.69 in nvfp4, 2.34 in fp8-current and 0.99 in fp8, for
// 24 casts of 2.48 G elements (NVIDIA/TransformerEngine d0067d0da, docs/examples/gemm_profiling:
// both are forward only): here 1.72, 2.70, 2.34 and 1.20 ms. That a cast to 4 bits takes 3.125
// bytes at 4.5 TB/s where it rounds at random, and at 6.4 where it does not, is from
// NVIDIA/TransformerEngine #2412.
//
// Products read the scales of blocks in an order of their own. Where casts do not write it
// (Training::orders_scales_apart), a kernel for each of the two copies does, which takes as long as
// 0.6 bytes of each element: 14.5 us for 103 M elements of mxfp8 (the products above: 7.16 ms,
// where those with one scale for each array take 6.81), 25 us for both copies of an nvfp4 operand
// of Llama's sizes (NVIDIA/TransformerEngine #3011). The scales of weights are ordered with each
// product, too, which is not counted.
//
// A backend copies: numbers are those of the training's precision.
#pragma once

#include <cstdint>

#include "workloads/networks/network.h"
#include "workloads/networks/training.h"
#include "workloads/planner/kernel_costs.h"

namespace rehearse {

DType TypeOf(ProductRecipe recipe);  // kFp8 or kFp4; CHECK that it is not kNone
inline bool IsNarrow(DType dtype) { return dtype == DType::kFp8 || dtype == DType::kFp4; }
// Whether products with the matrix take such operands.
bool IsNarrow(const Training& training, const Network& network, uint32_t matrix);

// What made the array.
enum class CastBehind : uint8_t { kOther, kNorm, kActivation };

struct CastWork {
  double elements = 0;
  double element = 2;  // bytes
  CastBehind behind = CastBehind::kOther;
  uint32_t copies = 2;  // 1: that along the columns is made later, of what is computed again, or
                        // nobody needs it
  bool is_gradient = false;
};
KernelCost CostOfCast(const Training& training, const CastWork& work);
// Whether a matrix of these products is kept and gathered in the products' own type.
bool KeepsOnlyNarrow(const Training& training);
// How many copies of an operand all its products together need.
uint32_t CopiesOf(const Training& training);

// Bytes of one of the two copies of an element, its part of the scales included.
double BytesOfCopy(ProductRecipe recipe);
// The cost of making the copy along the columns from that along the rows.
KernelCost CostOfTurn(ProductRecipe recipe, double elements);

}  // namespace rehearse
