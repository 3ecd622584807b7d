#include "workloads/planner/local_product.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "workloads/planner/casts.h"
#include "workloads/planner/kept_narrow.h"

namespace rehearse {
namespace {

double BytesOf(const Plan& plan, BufferId id) {
  const Buffer& buffer = plan.builder.BufferOf(id);
  return static_cast<double>(buffer.rows) * static_cast<double>(buffer.columns) * plan.element();
}

// The products of a node that is a convolution.
class Windows {
 public:
  Windows(Plan& plan, uint32_t node)
      : plan_(plan), node_(plan.Node(node)), window_(*node_.window) {}

  // A buffer for the windows of this image.
  BufferId Make(BufferId image) const {
    const Buffer pixels = plan_.builder.BufferOf(image);
    Buffer windows;
    windows.name = pixels.name + " windows";
    windows.kind = BufferKind::kBuffer;
    windows.dtype = pixels.dtype;
    windows.rows =
        pixels.rows / (window_.height * window_.width) * window_.OutHeight() * window_.OutWidth();
    windows.columns = pixels.columns * window_.kernel * window_.kernel;
    if (!IsImplicit()) {
      windows.bytes = static_cast<double>(windows.rows * windows.columns) * SizeOf(pixels.dtype);
    }
    return plan_.builder.AddBuffer(std::move(windows));
  }

  // im2col or, the other way round, col2im.
  void Move(Kernel kernel, BufferId from, BufferId to) const {
    plan_.builder.AddMemoryOp(
        fmt::format("{} {}", Name(kernel), node_.op), kernel,
        IsImplicit() ? 0 : BytesOf(plan_, from) + BytesOf(plan_, to), {from}, {to},
        IsImplicit() ? 0 : 1,
        {static_cast<double>(window_.height), static_cast<double>(window_.width),
         static_cast<double>(window_.kernel), static_cast<double>(window_.stride),
         static_cast<double>(window_.padding)});
  }

  // The traffic of a product that has the image in place of its windows.
  std::optional<Bytes> Traffic(BufferId image, BufferId a, BufferId b) const {
    if (!IsImplicit()) return std::nullopt;
    return Bytes(BytesOf(plan_, image) + BytesOf(plan_, a) + BytesOf(plan_, b));
  }

 private:
  bool IsImplicit() const { return plan_.training.implicit_convolution; }

  Plan& plan_;
  const NetworkNode& node_;
  const Window window_;
};

// What a product takes in place of X, and how many bytes it then moves, if not those of its
// operands.
struct ImageOperand {
  BufferId buffer;
  std::optional<Bytes> traffic;
};

// X itself or, for a convolution, its windows; `a` and `b` are the product's other buffers.
ImageOperand OperandOf(Plan& plan, uint32_t node, BufferId x, BufferId a, BufferId b) {
  if (!plan.Node(node).window) return {x, std::nullopt};
  const Windows windows(plan, node);
  const BufferId of_windows = windows.Make(x);
  windows.Move(Kernel::kIm2Col, x, of_windows);
  return {of_windows, windows.Traffic(x, a, b)};
}

// C's sizes and the length of the sums.
Gemm GemmOf(const Plan& plan, BufferId c, uint64_t k, GemmMode mode) {
  const Buffer& buffer = plan.builder.BufferOf(c);
  return {.m = buffer.rows, .n = buffer.columns, .k = k, .mode = mode};
}

// `is_free`: the kernel before it does it.
Tensor Cast(Plan& plan, const Tensor& tensor, CastBehind behind, bool is_free, uint32_t copies,
            bool is_gradient) {
  const ProductRecipe recipe = plan.training.products;
  PlanBuilder& builder = plan.builder;
  Tensor narrow = builder.MakeTensor("cast " + tensor.name, tensor.rows, tensor.columns,
                                     tensor.layout, TypeOf(recipe), Bytes(BytesOfCopy(recipe)));
  const auto cost_of = [&](double elements) {
    return is_free ? KernelCost{0, 0}
                   : CostOfCast(plan.training, {.elements = elements,
                                                .element = plan.element(),
                                                .behind = behind,
                                                .copies = copies,
                                                .is_gradient = is_gradient});
  };
  const std::string name = "cast " + tensor.name;
  const double elements = builder.LocalElements(tensor);
  PieceSteps steps = plan.chunk->TakeArriving(tensor.buffer);
  if (steps.empty()) {
    builder.AddMemoryOp(name, Kernel::kCopy, cost_of(elements), {tensor.buffer}, {narrow.buffer});
    return narrow;
  }
  // Each piece when it is there.
  const auto pieces = static_cast<uint32_t>(steps.size());
  const std::vector<BufferId> from = builder.EqualRows(tensor.buffer, pieces);
  const std::vector<BufferId> to = builder.EqualRows(narrow.buffer, pieces);
  for (uint32_t i = 0; i < pieces; ++i) {
    steps[i] = [&builder, before = std::move(steps[i]), name, cost = cost_of(elements / pieces),
                read = from[i], written = to[i]] {
      before();
      builder.AddMemoryOp(name, Kernel::kCopy, cost, {read}, {written});
    };
  }
  plan.chunk->arriving.emplace(narrow.buffer.index(), std::move(steps));
  return narrow;
}

CastBehind BehindOf(NodeKind kind) {
  switch (kind) {
    case NodeKind::kNorm:
    case NodeKind::kRmsNorm:
      return CastBehind::kNorm;
    case NodeKind::kSwiGlu:
    case NodeKind::kBiasGelu:
      return CastBehind::kActivation;
    default:
      return CastBehind::kOther;
  }
}

bool IsNarrowNode(const Plan& plan, uint32_t node) {
  const NetworkNode& shape = plan.Node(node);
  const bool multiplies =
      shape.kind == NodeKind::kProduct || shape.kind == NodeKind::kGroupedProduct;
  return multiplies && !shape.window && IsNarrow(plan.training, plan.network, *shape.matrix);
}

bool IsFrozen(const Plan& plan, uint32_t node) {
  return plan.network.matrices[*plan.Node(node).matrix].is_frozen;
}

}  // namespace

Tensor CastInput(Plan& plan, uint32_t node) {
  const Tensor& x = plan.Input(node);
  if (!IsNarrowNode(plan, node) || !PartialAxes(x.layout).empty() || IsNarrow(x.dtype)) return x;
  const uint32_t input = plan.Node(node).inputs.front();
  const NetworkNode& from = plan.Node(input);
  const bool is_again =
      IsKeptNarrow(plan.network, input, plan.training) ||
      (!plan.training.keeps_casts && IsRecomputedOp(plan.network, from, plan.training));
  return Cast(plan, x, BehindOf(from.kind),
              plan.training.fused_experts && from.kind == NodeKind::kSwiGlu && from.of_choices,
              is_again || IsFrozen(plan, node) ? 1 : 2, /*is_gradient=*/false);
}

ArrivingOperand ToOperand(Plan& plan, uint32_t node, const Tensor& tensor, const Layout& layout,
                          bool is_gradient) {
  const bool casts = !IsNarrow(tensor.dtype) && IsNarrowNode(plan, node);
  const bool waits = casts && !PartialAxes(tensor.layout).empty();
  // What an activation passes back, in the case of experts' SwiGLU cast already.
  const auto is_of = [&](MatrixRole role) {
    return plan.Node(node).matrix && plan.network.matrices[*plan.Node(node).matrix].role == role;
  };
  const bool is_of_experts = is_of(MatrixRole::kExpertFirst);
  const bool is_free = plan.training.fused_experts && is_of_experts;
  const auto is_followed_by = [&](NodeKind kind) {
    return node + 1 < plan.network.nodes.size() && plan.Node(node + 1).kind == kind;
  };
  const bool is_first =
      (is_of_experts || is_of(MatrixRole::kFirst)) && !is_followed_by(NodeKind::kSquaredRelu);
  const CastBehind behind = is_first ? CastBehind::kActivation : CastBehind::kOther;
  const uint32_t copies = casts && IsFrozen(plan, node) ? 1 : 2;
  const auto cast = [&](const Tensor& wide) {
    return Cast(plan, wide, behind, is_free, copies, is_gradient);
  };
  if (waits) return {cast(plan.builder.Redistribute(tensor, layout))};
  // Norms and casts make new arrays of what they are given; a gradient comes from elsewhere.
  const bool is_new = casts || IsNarrow(tensor.dtype) || !is_gradient;
  return BringOperand(plan, casts ? cast(tensor) : tensor, layout, is_new);
}

void Multiply(Plan& plan, uint32_t node, BufferId x, BufferId weight, BufferId y, bool adds,
              double share) {
  const auto [a, traffic] = OperandOf(plan, node, x, weight, y);
  const uint64_t k = plan.builder.BufferOf(a).columns;
  Gemm gemm = GemmOf(plan, y, k, GemmMode::kNT);
  if (share < 1) {
    const double columns = std::round(share * static_cast<double>(gemm.n));
    gemm.n = std::max<uint64_t>(1, static_cast<uint64_t>(columns));
  }
  plan.builder.AddGemm(plan.Node(node).op, gemm, a, weight, y, adds, traffic);
}

void MultiplyForInputGradient(Plan& plan, uint32_t node, BufferId dy, BufferId weight,
                              BufferId dx) {
  const std::string name = plan.Node(node).op + " dX";
  const uint64_t k = plan.builder.BufferOf(dy).columns;
  if (!plan.Node(node).window) {
    plan.builder.AddGemm(name, GemmOf(plan, dx, k, GemmMode::kNN), dy, weight, dx);
    return;
  }
  const Windows windows(plan, node);
  const BufferId of_windows = windows.Make(dx);
  plan.builder.AddGemm(name, GemmOf(plan, of_windows, k, GemmMode::kNN), dy, weight, of_windows,
                       false, windows.Traffic(dx, dy, weight));
  windows.Move(Kernel::kCol2Im, of_windows, dx);
}

void MultiplyForWeightGradient(Plan& plan, uint32_t node, BufferId dy, BufferId x, BufferId dw,
                               bool adds) {
  const auto [b, traffic] = OperandOf(plan, node, x, dy, dw);
  const uint64_t k = plan.builder.BufferOf(dy).rows;
  const Gemm gemm = GemmOf(plan, dw, k, GemmMode::kTN);
  std::optional<Bytes> bytes = traffic;
  if (plan.training.fused_accumulation && !bytes) {
    // Reads and writes the sum rather than a block of its own.
    const double moved = 2 * SizeOf(plan.training.gradients).value() - plan.element();
    bytes = plan.builder.BytesOfGemm(gemm, dy) +
            Bytes(moved * static_cast<double>(gemm.m) * static_cast<double>(gemm.n));
  }
  plan.builder.AddGemm(plan.Node(node).op + " dW", gemm, dy, b, dw, adds, bytes);
}

}  // namespace rehearse
