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
// considerations). Blackwell needs no transposed copy with one scale per array; we count one all
// the same, a byte in four too many.
//
// Memory traffic in bytes per element of `e` bytes, and kernels:
//
//   | recipe        | traffic        | kernels |                                                |
//   | fp8           | e + 2          | 1       | none after a norm, which writes fp8 itself     |
//   | fp8-current   | 2e + 2         | 2       | reads it once for its largest number; e + 2 in |
//   |               |                |         | 1 behind a norm, and behind an MLP's activation |
//   |               |                |         | either way, whose kernels find that number      |
//   |               |                |         | (NVIDIA/TransformerEngine #2004, #2013)         |
//   | fp8-blockwise | e + 2·33/32    | 1       | a scale in fp32 for 128                        |
//   | mxfp8         | e + 2·33/32    | 1       | one byte for 32                                |
//   | nvfp4         | 2e + 2·9/16    | 2       | one byte for 16, and the array's largest number |
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

// `copies`: 1 if the copy along the columns is made later, when what was cast is computed again.
KernelCost CostOfCast(ProductRecipe recipe, double elements, double element, CastBehind behind,
                      uint32_t copies = 2);
// Whether a matrix of these products is kept and gathered in the products' own type.
bool KeepsOnlyNarrow(const Training& training);

// Bytes of one of the two copies of an element, its part of the scales included.
double BytesOfCopy(ProductRecipe recipe);
// The cost of making the copy along the columns from that along the rows.
KernelCost CostOfTurn(ProductRecipe recipe, double elements);

}  // namespace rehearse
