// The argument of every GPU kernel of Rehearse: one plain struct, the same for host, device and
// test double.
//
// A kernel of sim/schedule/kernel.h is one launch or a few ("stages"), all with these arguments.
// Operands and attributes are in device memory from the time the schedule is loaded, so that a
// launch costs the same whatever the number of operands. nvcc reads this too: plain C++17 without
// the standard library's classes.
#pragma once

#include <cstdint>

#include "real/kernels/storage.h"
#include "sim/schedule/kernel.h"
#include "sim/schedule/sequence_order.h"

namespace rehearse {

// A local piece of a row-major matrix, and where it is in the global one.
struct GpuOperand {
  void* data;
  uint64_t rows;
  uint64_t columns;
  uint64_t stride;  // elements from one row to the next
  uint64_t global_rows;
  uint64_t global_columns;
  uint64_t global_row;  // position of element (0, 0)
  uint64_t global_column;
  uint64_t first_batch_row;  // of the step's whole batch: that of the global array's row 0
  SequenceOrder order;       // of the global rows
  Storage storage;
  uint32_t placed;  // 0 if the schedule does not say which global array it is a piece of

  // The number of the index-th row in the global array, with sequences one after the other, and in
  // the step's whole batch.
  constexpr uint64_t RowOf(uint64_t index) const { return order.InSequences(global_row + index); }
  constexpr uint64_t BatchRow(uint64_t index) const { return first_batch_row + RowOf(index); }
};

struct KernelArguments {
  const GpuOperand* operands;  // reads, then writes
  const double* attributes;
  float* scratch;  // of the stream, for partial sums between stages
  double* losses;  // one for each row of a kernel that makes the loss; null to keep none
  // The stream of hashed numbers that the kernel draws from (real/kernels/numbers.h).
  uint64_t random;
  double tokens;  // of the step, over all ranks
  uint32_t step;  // 1 for the first: Adam's t
  uint32_t reads;
  uint32_t writes;
  uint32_t attribute_count;
  uint32_t chunks;  // row chunks of a column sum, blocks of a long sum
  Kernel kernel;
  uint8_t stage;
  uint8_t stages;
};

}  // namespace rehearse
