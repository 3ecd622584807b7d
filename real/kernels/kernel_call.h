// One call of a kernel on the CPU: what sim/schedule/kernel.h says, with its operands in memory.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "real/kernels/array_piece.h"
#include "real/kernels/matrix.h"
#include "sim/schedule/schedule.h"

namespace rehearse {

// The loss of one row of the step's batch, or of the columns of it on this rank.
struct RowLoss {
  uint64_t row = 0;
  uint64_t column = 0;  // first of this rank's columns
  double loss = 0;
};

// What all kernels of a step need to know.
struct StepFacts {
  uint64_t seed = 0;
  double tokens = 1;       // of the step, over all ranks: the loss is their mean
  uint32_t number = 1;     // steps since the parameters were made, including this one (Adam's t)
  bool keep_loss = false;  // kernels that make the loss record it

  friend bool operator==(const StepFacts&, const StepFacts&) = default;
};

template <typename T>
struct Operand : Matrix<T> {
  const ArrayPiece* place = nullptr;  // null if the schedule does not say

  // Position of the element (0, 0) in the global array, and that array's sizes; the piece is the
  // whole array if nothing is known.
  uint64_t GlobalRow() const { return place == nullptr ? 0 : place->row; }
  uint64_t GlobalColumn() const { return place == nullptr ? 0 : place->column; }
  // The number of its index-th row there, with sequences one after the other.
  uint64_t RowOf(uint64_t index) const { return place == nullptr ? index : place->RowOf(index); }
  uint64_t GlobalRows() const { return place == nullptr ? this->rows : place->global_rows; }
  uint64_t GlobalColumns() const {
    return place == nullptr ? this->columns : place->global_columns;
  }
};

template <typename T>
struct KernelCall {
  const Compute& compute;
  const Tag& tag;
  const StepFacts& facts;
  std::span<const Operand<T>> reads;
  std::span<const Operand<T>> writes;
  std::vector<RowLoss>* losses = nullptr;  // if facts.keep_loss

  double Attribute(size_t i) const { return compute.attributes.at(i); }
  uint64_t Count(size_t i) const { return static_cast<uint64_t>(compute.attributes.at(i)); }
  // The operand's index-th row as a row of the step's whole batch.
  uint64_t BatchRow(const Operand<T>& operand, uint64_t index) const {
    return static_cast<uint64_t>(tag.micro_batch) * operand.GlobalRows() + operand.RowOf(index);
  }
};

template <typename T>
using KernelFunction = void (*)(const KernelCall<T>&);

}  // namespace rehearse
