// What lies between the products of a state-space layer (workloads/networks/state_space.h), on a
// rank's own groups of heads and whole sequences, as Megatron-LM runs it: the kernels of
// state-spaces/mamba's mamba_split_conv1d_scan_combined (mamba_ssm/ops/triton/ssd_combined.py) and
// a norm of the gated result behind (megatron/core/ssm/mamba_mixer.py, _ssm_training). They keep
// z, x, B, C and dt as the product gives them, the result before and after its gate and the norm's
// scales; backward, what is convolved and the states of chunks are made again.
//
// With T rows, chunks of Q, G groups, heads of P columns, H of them, states of N, and elements of e
// bytes, the kernels move (numbers of dt and its products with A are in fp32, d is H·P):
//
//   convolution          x, B and C, read and written: 2·T(d + 2GN)·e; backward dX as well, 3
//   states of chunks     dt (e), dt and dt·A written and read (16) of each head; x, B; a state per
//                        chunk and head in fp32 (S = T/Q·d·N numbers) written, read, and written as
//                        chunks begin with it: in e bytes, backward in fp32
//   scan                 B, C, their product for each chunk and group (T·Q·G in fp32) written and
//                        read; dt; x, z, C and states; both results
//   scan backward        CB again; the gate's gradients (x, z, result and its gradient read, two
//                        written); states' gradients written in fp32, states and those read, both
//                        written in e bytes and read; d x; d B and d C in fp32 and in e bytes;
//                        d CB written, read twice; dt·A's gradients from x, the result's and CB
//   norm                 read and written; backward both read and one written
//
// Flops are those of the products (sim/schedule/state_space.h): forward one for CB, one with it and
// two with states; backward, those of CB and the states of chunks again, CB's two gradients and its
// own, and two more with it (d x, dt·A), and four with states (their gradients, d x, d B, d C). The
// time of a scan is that of one product for each chunk and head, with Q rows and P columns and as
// deep as its flops make it, but never less than its memory traffic takes.
#include <algorithm>
#include <cmath>

#include "sim/schedule/state_space.h"
#include "workloads/planner/node_rules.h"

namespace rehearse {
namespace {

constexpr double kNumberBytes = 4;  // bytes

class StateSpaceRule {
 public:
  StateSpaceRule(Plan* plan, uint32_t node)
      : plan_(*plan),
        builder_(plan->builder),
        node_(node),
        shape_(plan->Node(node)),
        x_(plan->Input(node)),
        attributes_(shape_.attributes),
        e_(plan->element()) {
    attributes_[kStateGroups] /= static_cast<double>(Pieces(x_.layout, builder_.sizes(), 1));
    part_ = StateSpaceOf(attributes_);
    rows_ = builder_.LocalRows(x_);
    const auto rows = static_cast<double>(rows_);
    inner_ = rows * static_cast<double>(part_.Inner());
    shared_ = rows * static_cast<double>(part_.groups * part_.state);
    products_ = rows * static_cast<double>(part_.chunk * part_.groups);
    heads_ = rows * static_cast<double>(part_.Heads());
    states_ = static_cast<double>(part_.ChunksOf(rows_) * part_.Inner() * part_.state);
  }

  void Forward() {
    const Tensor mixed = Convolve();
    const BufferId states = MakeStates(mixed, e_);
    const Tensor y = Like("state-space result", part_.Inner() * Split());
    const Tensor gated = Like("gated result", part_.Inner() * Split());
    const double bytes = e_ * (4 * inner_ + 3 * shared_ + states_) + 2 * kNumberBytes * products_ +
                         2 * kNumberBytes * heads_;
    // C·Bᵀ, its product with x, and that of C with states.
    AddProduct("scan", Kernel::kStateScan, 1, 1, 1, bytes, 2,
               {mixed.buffer, x_.buffer, Value(kDtBias), Value(kLogA), Value(kSkip), states},
               {y.buffer, gated.buffer});
    const Tensor normal = plan_.MakeValue(node_, x_);
    const Tensor scales =
        builder_.MakeTensor(shape_.name + " scales", x_.rows, part_.groups * Split(), x_.layout,
                            DType::kFp32, SizeOf(DType::kFp32));
    builder_.AddMemoryOp("norm of groups", Kernel::kStateNorm, 2 * e_ * inner_,
                         {gated.buffer, Value(kGain)}, {normal.buffer, scales.buffer}, 1,
                         attributes_);
    NodeState& state = plan_.State(node_);
    state.value = normal;
    state.saved = {y.buffer, gated.buffer, scales.buffer};
  }

  void Backward(const Tensor& dy) {
    const std::vector<BufferId>& saved = plan_.State(node_).saved;
    const Tensor d_gated = Like("d gated result", part_.Inner() * Split());
    builder_.AddMemoryOp("norm of groups backward", Kernel::kStateNormBackward, 3 * e_ * inner_,
                         {dy.buffer, saved[1], Value(kGain), saved[2], Gradient(kGain)},
                         {d_gated.buffer, Gradient(kGain)}, 1, attributes_);
    const Tensor mixed = Convolve();
    const BufferId states = MakeStates(mixed, kNumberBytes);
    const Tensor d_mixed = Like("d x, B, C", part_.Mixed() * Split());
    const Tensor dx = plan_.MakeGradient(shape_.inputs.front(), x_.layout);
    // Results: 6 for the gate; 1, 3, 1, 1, 2 and 2 for states, d x, d B, d C, d CB and dt·A.
    const double bytes = e_ * (16 * inner_ + 10 * shared_ + 5 * states_) +
                         kNumberBytes * (4 * shared_ + 3 * states_) + 6 * kNumberBytes * products_ +
                         16 * kNumberBytes * heads_;
    AddProduct("scan backward", Kernel::kStateScanBackward, 3, 3, 4, bytes, 12,
               {d_gated.buffer, saved[0], mixed.buffer, x_.buffer, Value(kDtBias), Value(kLogA),
                Value(kSkip), states, Gradient(kDtBias), Gradient(kLogA), Gradient(kSkip)},
               {d_mixed.buffer, dx.buffer, Gradient(kDtBias), Gradient(kLogA), Gradient(kSkip)});
    builder_.AddMemoryOp("convolution backward", Kernel::kStateConvolutionBackward,
                         3 * e_ * (inner_ + 2 * shared_),
                         {d_mixed.buffer, x_.buffer, Value(kTaps), Value(kTapsBias),
                          Gradient(kTaps), Gradient(kTapsBias), dx.buffer},
                         {dx.buffer, Gradient(kTaps), Gradient(kTapsBias)}, 1, attributes_);
    plan_.PassBack(node_, dx);
  }

 private:
  // In the order of the node's vectors.
  enum Vector : uint8_t { kTaps, kTapsBias, kDtBias, kLogA, kSkip, kGain };

  BufferId Value(Vector i) const { return plan_.parameters.arrays.Vector(shape_.vectors[i]).value; }
  BufferId Gradient(Vector i) const {
    return plan_.parameters.arrays.Vector(shape_.vectors[i]).gradient;
  }
  uint64_t Split() const { return Pieces(x_.layout, builder_.sizes(), 1); }
  Tensor Like(const std::string& name, uint64_t columns) {
    return builder_.MakeTensor(name, x_.rows, columns, x_.layout);
  }

  Tensor Convolve() {
    Tensor mixed = Like("x, B, C", part_.Mixed() * Split());
    builder_.AddMemoryOp("convolution", Kernel::kStateConvolution, 2 * e_ * (inner_ + 2 * shared_),
                         {x_.buffer, Value(kTaps), Value(kTapsBias)}, {mixed.buffer}, 1,
                         attributes_);
    return mixed;
  }

  // The states with which chunks begin, in elements of so many bytes.
  BufferId MakeStates(const Tensor& mixed, double element) {
    const BufferId states = builder_.AddBuffer({.name = builder_.Label(shape_.name + " states"),
                                                .kind = BufferKind::kActivation,
                                                .bytes = Bytes(element * states_),
                                                .dtype = builder_.precision(),
                                                .rows = part_.ChunksOf(rows_),
                                                .columns = part_.Inner() * part_.state});
    const double bytes = e_ * (inner_ + shared_ + heads_) + 4 * kNumberBytes * heads_ +
                         states_ * (2 * kNumberBytes + element);
    AddProduct("states of chunks", Kernel::kStateChunks, 0, 0, 1, bytes, 3,
               {mixed.buffer, x_.buffer, Value(kDtBias), Value(kLogA)}, {states});
    return states;
  }

  // As a product for each chunk and head: C·Bᵀ `scores` times, products of Q×Q with x `within`
  // times, those with a state `through` times.
  void AddProduct(const char* name, Kernel kernel, double scores, double within, double through,
                  double bytes, uint32_t kernels, const std::vector<BufferId>& reads,
                  const std::vector<BufferId>& writes) {
    const auto chunk = static_cast<double>(part_.chunk);
    const auto state = static_cast<double>(part_.state);
    const double depth = scores * state * chunk / static_cast<double>(part_.InnerOfGroup()) +
                         within * chunk + through * state;
    Compute compute;
    compute.kind = ComputeKind::kGemm;
    compute.kernel = kernel;
    compute.dtype = builder_.precision();
    compute.gemm.mode = GemmMode::kNN;
    compute.gemm.m = part_.chunk;
    compute.gemm.n = part_.head;
    compute.gemm.k = std::max<uint64_t>(1, static_cast<uint64_t>(std::llround(depth)));
    compute.gemm.batch = static_cast<uint32_t>(part_.ChunksOf(rows_) * part_.Heads());
    compute.flops = FlopsOf(compute.gemm);
    compute.bytes = Bytes(bytes);
    compute.kernels = kernels;
    compute.attributes = attributes_;
    builder_.AddCompute(name, compute, reads, writes);
  }

  Plan& plan_;
  PlanBuilder& builder_;
  const uint32_t node_;
  const NetworkNode& shape_;
  const Tensor x_;
  std::vector<double> attributes_;
  const double e_;
  StateSpacePart part_;
  uint64_t rows_ = 0;
  // How many numbers there are of each kind.
  double inner_ = 0;
  double shared_ = 0;  // of B, as of C
  double products_ = 0;
  double heads_ = 0;
  double states_ = 0;
};

}  // namespace

void ForwardStateSpace(Plan& plan, uint32_t node) { StateSpaceRule(&plan, node).Forward(); }

void BackwardStateSpace(Plan& plan, uint32_t node, const Tensor& dy) {
  StateSpaceRule(&plan, node).Backward(dy);
}

}  // namespace rehearse
