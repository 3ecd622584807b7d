// SUMMA in two dimensions (Optimus, Xu et al., arXiv 2104.05343) and two and a half (Tesseract,
// Wang et al., arXiv 2105.14500), under data parallelism.
//
// Mesh q × q × depth × data, columns innermost. X, W and Y of every layer are blocks: rows on
// "row", columns on "column"; depth splits the batch further, each part with a copy of the weights.
// Biases and norms lie like columns. Bytes in elements, for m rows and a product X (m×k)·W (k×n),
// in each of q rounds:
//
//   | op       | collective | axis   | a round          | collective | axis   | a round           |
//   | forward  | broadcast  | column | mk/(q² depth)    | broadcast  | row    | kn/q²             |
//   | dX       | broadcast  | row    | kn/q²            | reduce     | column | mk/(q² depth)     |
//   | dW       | broadcast  | column | mk/(q² depth)    | reduce     | row    | kn/q²             |
//   | after backward          | all-reduce | depth and data | kn/q²                              |
//
// The embedding and the output layer split the vocabulary over "column" (the table is kept whole
// along "row", where its gradient is all-reduced): Optimus leaves their layout open.
#pragma once

#include <cstdint>

#include "workloads/strategies/strategy.h"

namespace rehearse {

struct SummaOptions {
  uint32_t q = 1;
  uint32_t depth = 1;  // 1: Optimus
  uint32_t data = 1;
  bool overlap_panels = true;  // the next round's panels travel during this round's product
};

enum SummaAxis : uint32_t {
  kSummaColumnAxis = 0,
  kSummaRowAxis = 1,
  kSummaDepthAxis = 2,
  kSummaDataAxis = 3
};

Strategy MakeSumma(const SummaOptions& options, const Network& network);

}  // namespace rehearse
