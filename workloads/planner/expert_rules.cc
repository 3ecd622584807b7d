// Experts: tokens go to the ranks that have the experts which they choose, and their results come
// back (ExpertPolicy, workloads/strategies/strategy.h; who chooses what: expert_routing.h in
// sim/schedule/).
//
// With t tokens per rank, c choices per token that are taken, h columns, p ranks over which experts
// are spread and q that share each:
//
//   | op                                      | ranks | rows         | the way back   |
//   | all-gather of counts of choices         | p·q   |              |                |
//   | permute: rows expert by expert          |       | t·c          | sums of rows   |
//   | all-to-all                              | p     | t·c          | all-to-all     |
//   | all-gather                              | q     | t·c to t·c·q | reduce-scatter |
//   | order: of all sources, by expert        |       | t·c·q        | order          |
//   | grouped products, SwiGLU between        |       | t·c·q        |                |
//   | combine: weighted sums of tokens' rows  |       | t·c          |                |
//
// as Megatron-LM's all-to-all dispatcher does (NVIDIA/Megatron-LM, megatron/core/transformer/moe/
// token_dispatcher.py). What is sent arrives in the later nodes kArrive and kReturn, and may travel
// beside what comes in between: the shared expert.
#include <numeric>
#include <optional>

#include <fmt/format.h>

#include "sim/schedule/expert_routing.h"
#include "workloads/planner/casts.h"
#include "workloads/planner/local_product.h"
#include "workloads/planner/node_rules.h"

namespace rehearse {
namespace {

using Issue = PlanBuilder::Issue;

constexpr const char* kExpertRanks = "expert";
constexpr const char* kRanksOfExpert = "expert tensor";
constexpr const char* kAllExpertRanks = "experts";
constexpr double kNumber = 4;  // bytes of a count, a score in fp32

// Which of a layer's experts this rank has, and how many rows.
class ExpertRows {
 public:
  // `tokens` are the rows that the rank begins with.
  ExpertRows(const Plan& plan, const ExpertRouting& routing, uint64_t tokens)
      : policy_(plan.strategy.experts ? &*plan.strategy.experts : nullptr),
        routing_(routing),
        ranks_(policy_ ? plan.builder.SizeOfAxes(policy_->axes) : 1),
        sharers_(policy_ ? plan.builder.SizeOfAxes(policy_->tensor_axes) : 1),
        own_(plan.expert_rank),
        runs_(tokens / routing_.period) {
    CHECK_EQ(tokens % routing_.period, 0u);
    CHECK_EQ(routing_.experts % ranks_, 0u);
  }

  const ExpertRouting& routing() const { return routing_; }
  uint32_t ranks() const { return ranks_; }
  uint32_t sharers() const { return sharers_; }
  uint32_t sources() const { return ranks_ * sharers_; }
  uint32_t experts() const { return routing_.experts / ranks_; }  // per rank
  // Rows from one source for the experts of a rank, and for each of them.
  uint64_t RowsFor(uint32_t rank) const {
    uint64_t rows = 0;
    for (uint32_t i = 0; i < experts(); ++i) rows += routing_.loads[rank * experts() + i];
    return rows * runs_;
  }
  std::vector<double> RowsOfExperts(uint32_t sources) const {
    std::vector<double> rows;
    for (uint32_t i = 0; i < experts(); ++i)
      rows.push_back(static_cast<double>(routing_.loads[own_ * experts() + i] * runs_ * sources));
    return rows;
  }
  uint64_t sent() const { return routing_.Kept() * runs_; }
  uint64_t received() const { return RowsFor(own_) * ranks_; }

 private:
  const ExpertPolicy* policy_;
  const ExpertRouting& routing_;
  uint32_t ranks_;
  uint32_t sharers_;
  uint32_t own_;
  uint64_t runs_;
};

// The node of a layer's experts that this one is among: the last of this kind.
uint32_t LastOfKind(const Plan& plan, uint32_t node, NodeKind kind) {
  while (plan.Node(node).kind != kind) {
    CHECK_GT(node, 0u);
    --node;
  }
  return node;
}

bool HasCapacity(const NetworkNode& route) { return route.attributes[kRoutingCapacity] > 0; }

class ExpertNode {
 public:
  ExpertNode(Plan* plan, uint32_t node)
      : plan_(*plan), builder_(plan->builder), node_(node), shape_(plan->Node(node)) {
    const uint32_t routing = LastOfKind(plan_, node, NodeKind::kRoute);
    const NetworkNode& route = plan_.Node(routing);
    const uint32_t router = *plan_.Node(route.inputs.front()).matrix;
    spread_ = plan_.strategy.products[router].rest;
    is_padded_ = HasCapacity(route);
    rows_.emplace(plan_, plan->RoutingOf(routing),
                  route.rows / Pieces(spread_, builder_.sizes(), 0));
    gathered_ = spread_;
    if (policy() != nullptr) {
      for (const uint32_t axis : policy()->tensor_axes) gathered_[axis] = B();
    }
  }

  const NetworkNode& shape() const { return shape_; }
  const ExpertRows& rows() const { return *rows_; }
  const ExpertPolicy* policy() const {
    return plan_.strategy.experts ? &*plan_.strategy.experts : nullptr;
  }
  // The layout of a grouped product's result.
  Layout ResultOf(MatrixRole role) const {
    Layout layout = gathered_;
    if (policy() == nullptr || role == MatrixRole::kExpertSecond) return layout;
    uint8_t level = 0;
    for (const uint32_t axis : policy()->tensor_axes) layout[axis] = S(1, level++);
    return layout;
  }

  // A tensor with so many rows on this rank.
  Tensor MakeRows(const std::string& name, uint64_t rows, uint64_t columns,
                  const Layout& layout) const {
    return builder_.MakeTensor(name, rows * Pieces(layout, builder_.sizes(), 0), columns, layout);
  }
  Tensor MakeSent(const std::string& name) const {
    return MakeRows(name, rows().sent(), shape_.columns, spread_);
  }
  double BytesOf(const Tensor& tensor) const {
    return builder_.LocalElements(tensor) * plan_.element();
  }
  PermutationCosts CostsOf(const Tensor& tokens, const Tensor& sent) const {
    return CostsOfPermutation(plan_.training, builder_.LocalElements(tokens),
                              builder_.LocalElements(sent), plan_.element());
  }
  void AddMemory(const std::string& name, Kernel kernel, const KernelCost& cost,
                 const std::vector<BufferId>& reads, const std::vector<BufferId>& writes) const {
    builder_.AddMemoryOp(name, kernel, cost, reads, writes, plan_.RoutingAttributes(node_));
  }

  // Tells how many rows each rank will get, before they are sent.
  std::vector<BufferId> GatherCounts() const {
    if (rows().sources() == 1) return {};
    std::vector<uint32_t> axes = policy()->axes;
    axes.insert(axes.end(), policy()->tensor_axes.begin(), policy()->tensor_axes.end());
    const uint64_t experts = rows().routing().experts;
    const double bytes = kNumber * static_cast<double>(experts) * rows().sources();
    const BufferId all = builder_.AddBuffer({.name = builder_.Label("counts of all ranks"),
                                             .kind = BufferKind::kBuffer,
                                             .bytes = Bytes(bytes),
                                             .dtype = DType::kFp32,
                                             .rows = rows().sources(),
                                             .columns = experts});
    const bool is_tensor = policy()->axes.empty();
    const bool is_plain = policy()->tensor_axes.empty();
    Collective collective;
    collective.kind = CollectiveKind::kAllGather;
    collective.communicator = builder_.CommunicatorNamed(axes, is_plain    ? kExpertRanks
                                                               : is_tensor ? kRanksOfExpert
                                                                           : kAllExpertRanks);
    collective.bytes = Bytes(bytes);
    collective.dtype = DType::kFp32;
    const BufferId counts = plan_.State(LastOfKind(plan_, node_, NodeKind::kRoute)).saved.front();
    builder_.AddCollective("all-gather counts", collective, Issue::kBlocking, {counts}, {all});
    return {all};
  }

  // Whether products take what arrives in 8 bits as it is: their blocks of 128 are its own, if no
  // other rank has to get it first.
  bool TakesNarrow() const {
    uint32_t product = LastOfKind(plan_, node_, NodeKind::kRoute);
    while (plan_.Node(product).kind != NodeKind::kGroupedProduct) ++product;
    return IsNarrow(plan_.training, plan_.network, *plan_.Node(product).matrix) &&
           policy() != nullptr && policy()->narrow_dispatch && rows().ranks() > 1 &&
           rows().sharers() == 1 && plan_.training.products == ProductRecipe::kFp8Blockwise;
  }

  // To the ranks that have the experts, or back from them.
  Tensor Send(const Tensor& tensor, bool back) const {
    if (rows().ranks() == 1) return tensor;
    const bool is_narrow = !back && policy()->narrow_dispatch;
    if (!is_narrow) return SendAsItIs(tensor, back);
    const Tensor cast = MakeCast(tensor, rows().sent());
    AddCast("cast ", tensor, cast);
    return SendAsItIs(cast, back);
  }

  // What has arrived on all ranks that share the experts, expert by expert.
  Tensor Collect(Tensor tensor) const {
    if (IsNarrow(tensor.dtype) && !TakesNarrow()) {
      const Tensor wide = MakeRows(tensor.name, rows().received(), tensor.columns, spread_);
      AddCast("widen ", tensor, wide);
      tensor = wide;
    }
    if (rows().sharers() > 1) {
      const uint64_t all = rows().received() * rows().sharers();
      const Tensor whole = MakeRows(tensor.name, all, tensor.columns, gathered_);
      AddShared(CollectiveKind::kAllGather, "all-gather ", whole, tensor, whole);
      tensor = whole;
    } else {
      tensor.layout = gathered_;
    }
    return Order(std::move(tensor), /*back=*/false);
  }

  // The way back.
  Tensor Spread(Tensor tensor) const {
    tensor = Order(std::move(tensor), /*back=*/true);
    if (rows().sharers() == 1) {
      tensor.layout = spread_;
      return tensor;
    }
    Tensor share = MakeRows(tensor.name, rows().received(), tensor.columns, spread_);
    AddShared(CollectiveKind::kReduceScatter, "reduce-scatter ", tensor, tensor, share);
    return share;
  }

 private:
  bool IsEvenOverRanks() const {
    for (uint32_t rank = 1; rank < rows().ranks(); ++rank) {
      if (rows().RowsFor(rank) != rows().RowsFor(0)) return false;
    }
    return true;
  }

  // `row` is in bytes.
  void SetSizes(double row, bool back, Collective* collective) const {
    collective->bytes = Bytes(static_cast<double>(rows().sent()) * row);
    if (IsEvenOverRanks()) return;
    const uint32_t ranks = rows().ranks();
    double most = 0;
    for (uint32_t from = 0; from < ranks; ++from) {
      double sum = 0;
      for (uint32_t to = 0; to < ranks; ++to) {
        const double bytes = static_cast<double>(rows().RowsFor(back ? from : to)) * row;
        collective->pair_bytes.emplace_back(bytes);
        sum += bytes;
      }
      most = std::max(most, sum);
    }
    collective->bytes = Bytes(most);
  }

  static constexpr double kNarrowElement = 1 + 4.0 / 128;  // bytes, with its part of a scale

  Tensor MakeCast(const Tensor& tensor, uint64_t rows) const {
    return builder_.MakeTensor(tensor.name, rows * Pieces(spread_, builder_.sizes(), 0),
                               tensor.columns, spread_, DType::kFp8, Bytes(kNarrowElement));
  }
  void AddCast(const char* name, const Tensor& from, const Tensor& to) const {
    const double bytes = builder_.LocalElements(from) * (plan_.element() + kNarrowElement);
    builder_.AddMemoryOp(name + to.name, Kernel::kCopy, KernelCost{bytes, 1}, {from.buffer},
                         {to.buffer});
  }

  Tensor SendAsItIs(const Tensor& tensor, bool back) const {
    const bool is_narrow = IsNarrow(tensor.dtype);
    const double row =
        static_cast<double>(tensor.columns) * (is_narrow ? kNarrowElement : plan_.element());
    const uint64_t arriving = back ? rows().sent() : rows().received();
    Tensor arrived = is_narrow ? MakeCast(tensor, arriving)
                               : MakeRows(tensor.name, arriving, tensor.columns, spread_);
    Collective collective;
    collective.kind = CollectiveKind::kAllToAll;
    collective.communicator = builder_.CommunicatorNamed(policy()->axes, kExpertRanks);
    collective.dtype = is_narrow ? tensor.dtype : builder_.precision();
    SetSizes(row, back, &collective);
    const bool overlaps = policy()->overlaps_shared;
    builder_.AddCollective(fmt::format("{} {}", back ? "combine" : "dispatch", tensor.name),
                           collective, overlaps ? Issue::kAsynchronous : Issue::kBlocking,
                           {tensor.buffer}, {arrived.buffer});
    return arrived;
  }

  void AddShared(CollectiveKind kind, const char* name, const Tensor& whole, const Tensor& from,
                 const Tensor& to) const {
    Collective collective;
    collective.kind = kind;
    collective.communicator = builder_.CommunicatorNamed(policy()->tensor_axes, kRanksOfExpert);
    collective.bytes = Bytes(BytesOf(whole));
    collective.dtype = builder_.precision();
    builder_.AddCollective(name + from.name, collective, Issue::kBlocking, {from.buffer},
                           {to.buffer});
  }

  // There is nothing to do if rows come from one source, or are for one expert.
  Tensor Order(Tensor tensor, bool back) const {
    if (rows().sources() == 1 || rows().experts() == 1) return tensor;
    const bool is_narrow = IsNarrow(tensor.dtype);
    const double element = is_narrow ? kNarrowElement : plan_.element();
    Tensor ordered = builder_.MakeTensor(tensor.name, tensor.rows, tensor.columns, tensor.layout,
                                         tensor.dtype, Bytes(element));
    std::vector<double> attributes = {static_cast<double>(rows().sources()), back ? 1.0 : 0.0};
    for (const double of_source : rows().RowsOfExperts(1)) attributes.push_back(of_source);
    builder_.AddMemoryOp(
        "order " + tensor.name, Kernel::kOrderChunks,
        CostOfOrder(plan_.training, builder_.LocalElements(tensor), element, is_padded_),
        {tensor.buffer}, {ordered.buffer}, std::move(attributes));
    return ordered;
  }

  Plan& plan_;
  PlanBuilder& builder_;
  const uint32_t node_;
  const NetworkNode& shape_;
  std::optional<ExpertRows> rows_;
  bool is_padded_ = false;  // with a capacity, an expert gets as many rows from each source
  Layout spread_;           // every rank has its own rows
  Layout gathered_;         // ranks that share experts have the same
};

// C for each expert. Products with a mean number of rows take their average cost.
void MultiplyGrouped(Plan& plan, uint32_t node, GemmMode mode, BufferId a, BufferId b, BufferId c,
                     bool adds) {
  PlanBuilder& builder = plan.builder;
  const ExpertNode experts(&plan, node);
  const NetworkNode& shape = plan.Node(node);
  const bool makes_weights = mode == GemmMode::kTN;
  const uint32_t count = experts.rows().experts();
  const uint64_t rows = (builder.BufferOf(a).rows + count - 1) / count;
  Compute compute;
  compute.kind = ComputeKind::kGemm;
  compute.kernel = Kernel::kGroupedGemm;
  const DType operands = builder.BufferOf(a).dtype;
  compute.dtype = IsNarrow(operands) ? operands : builder.precision();
  compute.gemm.mode = mode;
  compute.gemm.batch = count;
  compute.gemm.m = makes_weights ? builder.BufferOf(a).columns : std::max<uint64_t>(rows, 1);
  compute.gemm.n = builder.BufferOf(makes_weights ? b : c).columns;
  compute.gemm.k = makes_weights ? std::max<uint64_t>(rows, 1) : builder.BufferOf(a).columns;
  compute.flops = FlopsOf(compute.gemm);
  compute.bytes = IsNarrow(operands) ? builder.BytesOfGemm(compute.gemm, a) * count
                                     : BytesOf(compute.gemm, builder.precision());
  if (makes_weights && plan.training.fused_accumulation) {
    const double moved = 2 * SizeOf(plan.training.gradients).value() - plan.element();
    compute.bytes += Bytes(moved * static_cast<double>(compute.gemm.m) *
                           static_cast<double>(compute.gemm.n) * count);
  }
  const bool is_first = plan.network.matrices[*shape.matrix].role == MatrixRole::kExpertFirst;
  compute.attributes = {is_first ? 1.0 : 0.0};
  for (const double of_expert : experts.rows().RowsOfExperts(experts.rows().sources()))
    compute.attributes.push_back(of_expert);
  std::vector<BufferId> reads = {a, b};
  if (adds) reads.push_back(c);
  const char* const what = makes_weights ? " dW" : mode == GemmMode::kNN ? " dX" : "";
  builder.AddCompute(shape.op + what, compute, reads, {c});
  // The host launches a product for each expert, and for each what casts its rows.
  if (!plan.training.fused_experts)
    builder.CountLaunches((IsNarrow(operands) && !makes_weights ? 2 : 1) * (count - 1));
}

// What arrived in 8 bits lies along its rows; products of dW need it along its columns. Scales are
// powers of two, so that it can be turned (DeepSeek-V3, section 3.3.3).
Tensor Turned(Plan& plan, const Tensor& tensor) {
  PlanBuilder& builder = plan.builder;
  const ProductRecipe recipe = plan.training.products;
  Tensor turned = builder.MakeTensor("turned " + tensor.name, tensor.rows, tensor.columns,
                                     tensor.layout, tensor.dtype, Bytes(BytesOfCopy(recipe)));
  builder.AddMemoryOp("turn " + tensor.name, Kernel::kCopy,
                      CostOfTurn(recipe, builder.LocalElements(tensor)), {tensor.buffer},
                      {turned.buffer});
  return turned;
}

// To each expert's results, or its gradient from theirs.
void AddBias(Plan& plan, uint32_t node, const Tensor& results, bool back) {
  const NetworkNode& shape = plan.Node(node);
  if (!shape.has_extra || plan.training.fused_experts) return;
  const uint32_t experts = ExpertNode(&plan, node).rows().experts();
  const double elements = plan.builder.LocalElements(results);
  plan.builder.AddMemoryOp(shape.op + (back ? " bias backward" : " bias"), Kernel::kCopy,
                           back ? plan.costs().ExpertBiasBackward(elements, experts)
                                : plan.costs().ExpertBias(elements, experts),
                           {results.buffer}, {results.buffer});
}

// What experts have made one by one becomes one array.
void Join(Plan& plan, uint32_t node, const Tensor& results) {
  if (!plan.training.sequential_experts) return;
  const ExpertNode experts(&plan, node);
  if (experts.rows().experts() == 1) return;
  plan.builder.AddMemoryOp("join " + results.name, Kernel::kCopy,
                           KernelCost{2 * experts.BytesOf(results), 1}, {results.buffer},
                           {results.buffer});
}

}  // namespace

// Megatron-LM's router in fp32: cast, softmax, top-k, the map of choices and their histogram; the
// balancing loss reads scores and counts. With a capacity, each expert picks its tokens: scores and
// choices are spread over zeros (4 kernels), turned round, picked (3) and turned back (2), choices
// are counted (1); backward, all but the count (megatron/core/transformer/moe/moe_utils.py).
void ForwardRoute(Plan& plan, uint32_t node) {
  const NetworkNode& shape = plan.Node(node);
  PlanBuilder& builder = plan.builder;
  const Tensor& logits = plan.Input(node);
  const Tensor weights = builder.MakeTensor(shape.name, shape.rows, shape.columns, logits.layout);
  const uint64_t experts = logits.columns;
  const BufferId counts = builder.AddBuffer({.name = builder.Label("counts"),
                                             .kind = BufferKind::kBuffer,
                                             .bytes = Bytes(kNumber * static_cast<double>(experts)),
                                             .dtype = DType::kFp32,
                                             .rows = 1,
                                             .columns = experts});
  const bool balances = shape.attributes[kRoutingAuxiliary] > 0;
  const double bytes = builder.LocalElements(logits) * (plan.element() + 5 * kNumber) +
                       builder.LocalElements(weights) * 4 * kNumber;
  const uint32_t kernels = (balances ? 7 : 5) + (HasCapacity(shape) ? 10 : 0);
  builder.AddMemoryOp(shape.op, Kernel::kRoute, KernelCost{bytes, kernels}, {logits.buffer},
                      {weights.buffer, counts}, plan.RoutingAttributes(node));
  plan.State(node).value = weights;
  plan.State(node).saved = {counts};
}

void BackwardRoute(Plan& plan, uint32_t node, const Tensor& dy) {
  const NetworkNode& shape = plan.Node(node);
  PlanBuilder& builder = plan.builder;
  const Tensor& logits = plan.Input(node);
  const Tensor dx = plan.MakeGradient(shape.inputs.front(), logits.layout);
  const double bytes = builder.LocalElements(logits) * (plan.element() + 4 * kNumber) +
                       builder.LocalElements(dy) * 2 * kNumber;
  builder.AddMemoryOp(shape.backward_op, Kernel::kRouteBackward,
                      KernelCost{bytes, HasCapacity(shape) ? 9u : 3u}, {dy.buffer, logits.buffer},
                      {dx.buffer}, plan.RoutingAttributes(node));
  plan.PassBack(node, dx);
}

void ForwardDispatch(Plan& plan, uint32_t node) {
  const ExpertNode experts(&plan, node);
  const Tensor& x = plan.Input(node);
  const Tensor sent = experts.MakeSent(experts.shape().name);
  std::vector<BufferId> reads = {x.buffer};
  for (const BufferId counts : experts.GatherCounts()) reads.push_back(counts);
  experts.AddMemory(experts.shape().op, Kernel::kPermute, experts.CostsOf(x, sent).permute, reads,
                    {sent.buffer});
  plan.State(node).value = experts.Send(sent, /*back=*/false);
}

void BackwardDispatch(Plan& plan, uint32_t node, const Tensor& dy) {
  const ExpertNode experts(&plan, node);
  const Tensor& x = plan.Input(node);
  const Tensor dx = plan.MakeGradient(experts.shape().inputs.front(), x.layout);
  experts.AddMemory("permute backward", Kernel::kPermuteBackward,
                    experts.CostsOf(dx, dy).permute_backward, {dy.buffer}, {dx.buffer});
  plan.PassBack(node, dx);
}

void ForwardArrive(Plan& plan, uint32_t node) {
  plan.State(node).value = ExpertNode(&plan, node).Collect(plan.Input(node));
}

void BackwardArrive(Plan& plan, uint32_t node, const Tensor& dy) {
  const ExpertNode experts(&plan, node);
  const uint32_t input = experts.shape().inputs.front();
  CHECK(!plan.Gradient(input).has_value());
  plan.Gradient(input) = experts.Send(experts.Spread(dy), /*back=*/true);
}

// Ranks that share the experts each have columns of the first products' results, and partial sums
// of the second ones', until kReturn adds them up.
void ForwardGroupedProduct(Plan& plan, uint32_t node) {
  const NetworkNode& shape = plan.Node(node);
  const uint32_t matrix = *shape.matrix;
  const Tensor x = CastInput(plan, node);
  const BufferId weight = plan.parameters.gathering.Operand(matrix, plan.action);
  const MatrixRole role = plan.network.matrices[matrix].role;
  const Tensor y = plan.builder.MakeTensor(shape.name, x.rows, shape.columns,
                                           ExpertNode(&plan, node).ResultOf(role));
  MultiplyGrouped(plan, node, GemmMode::kNT, x.buffer, weight, y.buffer, false);
  AddBias(plan, node, y, /*back=*/false);
  if (role == MatrixRole::kExpertSecond) Join(plan, node, y);
  plan.State(node).operand = x;
  plan.State(node).value = y;
}

void InputGradientOfGroupedProduct(Plan& plan, uint32_t node, const Tensor& gradient) {
  const NetworkNode& shape = plan.Node(node);
  const uint32_t matrix = *shape.matrix;
  AddBias(plan, node, gradient, /*back=*/true);
  const Tensor dy = ToOperand(plan, node, gradient, gradient.layout, /*is_gradient=*/true).whole;
  const BufferId weight = plan.parameters.gathering.OperandBackward(matrix, plan.action);
  Tensor dx = plan.MakeGradient(shape.inputs.front(), plan.Input(node).layout);
  MultiplyGrouped(plan, node, GemmMode::kNN, dy.buffer, weight, dx.buffer, false);
  if (plan.network.matrices[matrix].role == MatrixRole::kExpertFirst) Join(plan, node, dx);
  plan.PassToWeight(node, {plan.State(node).operand, dy});
  plan.parameters.gathering.Release(matrix, plan.action);
  plan.PassBack(node, std::move(dx));
}

void ForwardReturn(Plan& plan, uint32_t node) {
  const ExpertNode experts(&plan, node);
  plan.State(node).value = experts.Send(experts.Spread(plan.Input(node)), /*back=*/true);
}

void BackwardReturn(Plan& plan, uint32_t node, const Tensor& dy) {
  plan.PassBack(node, ExpertNode(&plan, node).Collect(dy));
}

void ForwardCombine(Plan& plan, uint32_t node) {
  const ExpertNode experts(&plan, node);
  const NetworkNode& shape = experts.shape();
  const Tensor& x = plan.Input(node);
  const Tensor& weights = plan.Input(node, 1);
  const Tensor y = plan.builder.MakeTensor(shape.name, shape.rows, shape.columns, weights.layout);
  experts.AddMemory(shape.op, Kernel::kCombine, experts.CostsOf(y, x).combine,
                    {x.buffer, weights.buffer}, {y.buffer});
  plan.State(node).value = y;
}

void BackwardCombine(Plan& plan, uint32_t node, const Tensor& dy) {
  const ExpertNode experts(&plan, node);
  const NetworkNode& shape = experts.shape();
  const Tensor& x = plan.Input(node);
  const Tensor& weights = plan.Input(node, 1);
  const Tensor dx = experts.MakeSent("d " + plan.Node(shape.inputs[0]).name);
  const Tensor dw = plan.MakeGradient(shape.inputs[1], weights.layout);
  std::vector<BufferId> reads = {dy.buffer, weights.buffer};
  if (!plan.training.weighs_early) reads.insert(reads.begin() + 1, x.buffer);
  // No kernel makes the weights' gradients from what is not kept: backends refuse it.
  const Kernel kernel = plan.training.weighs_early ? Kernel::kNone : Kernel::kCombineBackward;
  experts.AddMemory(shape.backward_op, kernel, experts.CostsOf(dy, x).combine_backward, reads,
                    {dx.buffer, dw.buffer});
  plan.PassBack(node, dw, 1);
  plan.Gradient(shape.inputs.front()) = experts.Send(dx, /*back=*/false);
}

void WeightGradientOfGroupedProduct(Plan& plan, uint32_t node, const WeightOperands& operands) {
  const uint32_t matrix = *plan.Node(node).matrix;
  bool adds = false;
  const BufferId block = plan.parameters.gradients.Begin(matrix, &adds);
  const bool arrived = ExpertNode(&plan, node).TakesNarrow();
  const bool is_first = plan.network.matrices[matrix].role == MatrixRole::kExpertFirst;
  const Tensor x = arrived && is_first ? Turned(plan, operands.x) : operands.x;
  const Tensor dy = arrived && !is_first ? Turned(plan, operands.dy) : operands.dy;
  MultiplyGrouped(plan, node, GemmMode::kTN, dy.buffer, x.buffer, block, adds);
  plan.parameters.gradients.End(matrix, plan.action);
}

}  // namespace rehearse
