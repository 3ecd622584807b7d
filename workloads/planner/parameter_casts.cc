// Copies of parameters that narrow products take (workloads/planner/casts.h).
#include "workloads/planner/casts.h"
#include "workloads/planner/parameters.h"

namespace rehearse {

bool Parameters::IsNarrowMatrix(uint32_t index) const {
  return IsNarrow(training_, network_, index);
}

// ZeRO-3 keeps shares in the training's precision.
DType Parameters::ParameterType(uint32_t index) const {
  const bool is_narrow =
      training_.narrow_parameters && IsNarrowMatrix(index) && !Shares(matrices_[index], 3);
  return is_narrow ? TypeOf(training_.products) : training_.precision;
}

DType Parameters::GatherType(uint32_t index) const {
  return training_.narrow_parameters && IsNarrowMatrix(index) ? TypeOf(training_.products)
                                                              : training_.precision;
}

BufferId Parameters::AddNarrowCopies(uint32_t index) {
  Buffer copies = MatrixBuffer(index, plan_.Label("cast " + network_.matrices[index].name),
                               BufferKind::kBuffer, TypeOf(training_.products), /*share=*/false);
  const double count = training_.narrow_parameters ? 1 : 2;
  copies.bytes = Bytes(count * BytesOfCopy(training_.products) * matrices_[index].elements);
  return plan_.AddBuffer(std::move(copies));
}

// The narrow copy of this block, transposed for dX.
BufferId Parameters::NarrowOf(uint32_t index, BufferId whole, bool turned) {
  Matrix& matrix = matrices_[index];
  if (training_.narrow_parameters && !turned) return whole;
  if (matrix.narrow_of == whole) return matrix.narrow;
  const Tag tag = plan_.tag();
  SetLayer(network_.matrices[index].layer);
  if (Shares(matrix, 3)) matrix.narrow = AddNarrowCopies(index);
  matrix.narrow_of = whole;
  const KernelCost cost =
      training_.narrow_parameters
          ? CostOfTurn(training_.products, matrix.elements)
          : CostOfCast(training_.products, matrix.elements, plan_.element(), false);
  plan_.AddMemoryOp(
      (training_.narrow_parameters ? "turn " : "cast ") + network_.matrices[index].name + " weight",
      Kernel::kCopy, cost, {whole}, {matrix.narrow});
  plan_.set_tag(tag);
  return matrix.narrow;
}

BufferId Parameters::Operand(uint32_t index, uint32_t end) {
  const BufferId whole = Fetch(index, end);
  return IsNarrowMatrix(index) ? NarrowOf(index, whole, /*turned=*/false) : whole;
}

BufferId Parameters::OperandBackward(uint32_t index) {
  const BufferId whole = FetchBackward(index);
  return IsNarrowMatrix(index) ? NarrowOf(index, whole, /*turned=*/true) : whole;
}

}  // namespace rehearse
