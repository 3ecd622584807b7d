// The optimizer: its state, the norm of all gradients (one number travels), then the update.
//
// Adam reads the gradient, reads and writes its state, writes the parameter. Where validation comes
// after the update (workloads/planner/pipeline.h), it does without the norm of the ranks behind:
// the whole norm comes back from the last rank, and the update is done again if it must be. SGD
// with momentum is the same with one moment.
//
// LAMB (You et al. 2020, arXiv 1904.00962, algorithm 2) is Adam whose direction, with a decay of
// 0.01, is scaled to the norm of each tensor. Its passes are those of Apex (NVIDIA/apex,
// csrc/multi_tensor_lamb.cu): the weights' norms, moments and directions (which take the place of
// gradients), the directions' norms, the step. Where ranks hold pieces of tensors, two numbers of
// each tensor are summed over all ranks that share the model, but not over stages: one all-reduce
// (apex/contrib/optimizers/distributed_fused_lamb.py). The experts of a layer are one tensor.
//
// Muon (Jordan et al. 2024, github.com/KellerJordan/Muon) keeps one moment of each matrix between
// embedding and output layer, and makes its direction orthogonal by five Newton-Schulz steps of
// three products, in the run's precision:
//
//   X = D/|D|;  5 times: A = X·X^T (or X^T·X, whichever is smaller), B = b·A + c·A², X = a·X + B·X
//
// Tables, the output layer, biases and norms have Adam. A step takes all of the matrix: what other
// ranks have of it is gathered, over ZeRO's shares (Liu et al. 2025, arXiv 2502.16982, algorithm 1)
// and over tensor parallel ranks, each of which does the whole of the work and keeps its own part
// (Megatron-LM's --muon-tp-mode duplicated; blockwise, its default, is muon_by_pieces).
//
// On the host (Ren et al. 2021, arXiv 2101.06840), norm, clipping and update are the host's own
// work on arrays in its memory, one after the other: clipping brings gradients to fp32 and scales
// them in place, Adam is one pass (deepspeedai/DeepSpeed, runtime/zero/stage_1_and_2.py,
// unscale_and_clip_grads; csrc/adam). What it made comes back when all of it is done. Only the norm
// goes to the device in between, where ranks sum it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workloads/planner/kernel_costs.h"
#include "workloads/planner/parameter_arrays.h"
#include "workloads/planner/parameter_places.h"
#include "workloads/planner/plan_builder.h"

namespace rehearse {

class OptimizerUpdate {
 public:
  // Both must outlive this. Throws Error if the update is to be validated afterwards and shares are
  // gathered after it, as they would have to be gathered again, or if it cannot be taken back.
  OptimizerUpdate(const ParameterArrays& arrays, AdamAgain validation, PlanBuilder* plan);

  // The state that an earlier step left on the device goes to the host, if that is where it waits,
  // and comes back when gradients are there.
  void SendState();
  void ReturnState();
  void Update();

 private:
  // What is updated as one, its state, and of what the norm is taken: vectors of a group may lie
  // differently.
  struct Operands {
    std::vector<BufferId> gradients;
    std::vector<BufferId> parameters;
    std::vector<BufferId> summands;
    std::vector<double> shares;
  };
  struct Set {
    double vectors = 0;  // elements
    double matrices = 0;
    std::vector<BufferId> state;  // as kernels take it: kAdam in sim/schedule/kernel.h
  };

  void AddStates(const char* name, uint64_t moments, Set* set);
  void AddState(const std::string& name, uint64_t rows, DType dtype, Set* set);
  void CheckValidation() const;
  void CheckHost() const;
  bool HasMasters() const;
  // Whether Muon's steps update this matrix.
  bool IsOrthogonal(uint32_t matrix) const;
  std::vector<uint32_t> OrthogonalMatrices() const;
  // Of all that is updated, or of one of Muon's two sets.
  Operands OperandsOf(bool adams, bool muons) const;
  // The same on the host, where gradients that are not summed there go, and what comes back.
  struct HostOperands {
    Operands own;
    std::vector<BufferId> sent;
    std::vector<BufferId> sent_to;
    std::vector<BufferId> made;
    std::vector<BufferId> returned_to;
  };
  HostOperands HostOperandsOf();
  static std::vector<BufferId> WithState(std::vector<BufferId> parameters, const Set& set);
  double ShareOfRanks(const Layout& layout, const std::vector<uint32_t>& share_axes) const;
  double GradientBytes(const Set& set) const;
  double ParameterBytes() const;
  OptimizerCosts Costs(const Set& set) const;
  void UpdateOnHost();
  double HostBytes() const;
  void UpdateByLamb(const Operands& operands, BufferId norm);
  std::vector<double> LambAttributes(const Operands& operands) const;
  std::vector<uint32_t> ModelAxes() const;
  void UpdateByMuon(const Operands& operands, BufferId norm);
  void UpdateMatrixByMuon(uint32_t matrix, BufferId norm, double begin);
  BufferId Orthogonal(uint32_t matrix, BufferId direction);
  BufferId OwnPart(uint32_t matrix, BufferId direction, BufferId whole);
  uint32_t UpdatedArrays() const;
  BufferId AddNumber(const std::string& name, bool on_host = false);
  BufferId GradientNorm(const Operands& operands);
  uint32_t RanksOfModel() const;
  void SumOverModel(BufferId norm);
  void SumWithRanksBefore(BufferId norm);
  void Validate(std::vector<BufferId> reads, const std::vector<BufferId>& writes);
  bool IsDataAxis(uint32_t axis) const;

  const ParameterArrays& arrays_;
  const ParameterPlaces& places_;
  const Training& training_;
  const AdamAgain validation_;
  const std::vector<uint32_t> data_;  // axes along which no parameter is split or shared
  PlanBuilder& plan_;
  Set adam_;                             // or that of another rule, which updates all
  Set muon_;                             // what Muon's steps update
  std::vector<BufferId> state_;          // of both
  std::vector<BufferId> state_on_host_;  // if it is offloaded
};

}  // namespace rehearse
