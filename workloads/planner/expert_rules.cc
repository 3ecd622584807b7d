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
//
// In pieces (ExpertPolicy::pieces) each op is one for each equal run of tokens, and arrays lie
// piece by piece: what arrives is ordered when the first product takes it, and the second product
// of a piece is followed by its way back.
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "workloads/planner/casts.h"
#include "workloads/planner/expert_node.h"
#include "workloads/planner/local_product.h"
#include "workloads/planner/node_rules.h"

namespace rehearse {
namespace {

// C for each expert, of a piece of the rows or of all. Products with a mean number of rows take
// their average cost.
void MultiplyPiece(Plan& plan, uint32_t node, GemmMode mode, BufferId a, BufferId b, BufferId c,
                   bool adds, bool is_first_piece) {
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
  Gemm kernel = compute.gemm;  // of which this may be a part
  const uint32_t pieces = experts.rows().pieces();
  if (pieces > 1 && !makes_weights && experts.policy()->tiles) {
    compute.row_parts = pieces;
    compute.kernels = is_first_piece ? 1 : 0;
    kernel.m *= pieces;
  }
  compute.bytes = (IsNarrow(operands) ? builder.BytesOfGemm(kernel, a) * count
                                      : BytesOf(kernel, builder.precision())) /
                  compute.row_parts;
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

// Piece by piece, each when its rows are there; `after` what follows each.
void MultiplyGrouped(Plan& plan, uint32_t node, GemmMode mode, BufferId a, BufferId b, BufferId c,
                     bool adds, const std::function<void(uint32_t piece)>& after = {}) {
  const uint32_t pieces = ExpertNode(&plan, node).rows().pieces();
  const bool makes_weights = mode == GemmMode::kTN;  // of the rows of both others
  const auto rows_of = [&](BufferId array, bool has_rows) {
    return has_rows ? plan.builder.EqualRows(array, pieces) : std::vector<BufferId>(pieces, array);
  };
  const std::vector<BufferId> of_a = rows_of(a, true);
  const std::vector<BufferId> of_b = rows_of(b, makes_weights);
  const std::vector<BufferId> of_c = rows_of(c, !makes_weights);
  const PieceSteps before_a = plan.chunk->TakeArriving(a);
  const PieceSteps before_b = plan.chunk->TakeArriving(b);
  for (uint32_t i = 0; i < pieces; ++i) {
    for (const PieceSteps* before : {&before_a, &before_b})
      if (!before->empty()) (*before)[i]();
    MultiplyPiece(plan, node, mode, of_a[i], of_b[i], of_c[i], adds || (makes_weights && i > 0),
                  i == 0);
    if (after) after(i);
  }
}

// What arrived in 8 bits lies along its rows; products of dW need it along its columns. Scales are
// powers of two, so that it can be turned (DeepSeek-V3, section 3.3.3).
Tensor Turned(Plan& plan, const Tensor& tensor) {
  PlanBuilder& builder = plan.builder;
  const ProductRecipe recipe = plan.training.products;
  AwaitPieces(plan, tensor.buffer);
  Tensor turned = builder.MakeTensor("turned " + tensor.name, tensor.rows, tensor.columns,
                                     tensor.layout, tensor.dtype, Bytes(BytesOfCopy(recipe)));
  builder.AddMemoryOp("turn " + tensor.name, Kernel::kCopy,
                      CostOfTurn(recipe, builder.LocalElements(tensor)), {tensor.buffer},
                      {turned.buffer});
  return turned;
}

// Rows of results that experts have made: all, or one of equal pieces.
struct ResultRows {
  const Tensor& all;
  BufferId rows;
  uint32_t pieces = 1;
};

// To each expert's results, or its gradient from theirs.
void AddBias(Plan& plan, uint32_t node, const ResultRows& results, bool back) {
  const NetworkNode& shape = plan.Node(node);
  if (!shape.has_extra || plan.training.fused_experts) return;
  AwaitPieces(plan, results.all.buffer);
  const uint32_t experts = ExpertNode(&plan, node).rows().experts();
  const double elements = plan.builder.LocalElements(results.all);
  const KernelCost cost = back ? plan.costs().ExpertBiasBackward(elements, experts)
                               : plan.costs().ExpertBias(elements, experts);
  plan.builder.AddMemoryOp(shape.op + (back ? " bias backward" : " bias"), Kernel::kCopy,
                           CostOfPiece(cost, results.pieces), {results.rows}, {results.rows});
}

// What experts have made one by one becomes one array.
void Join(Plan& plan, uint32_t node, const ResultRows& results) {
  if (!plan.training.sequential_experts) return;
  const ExpertNode experts(&plan, node);
  if (experts.rows().experts() == 1) return;
  const KernelCost cost{2 * experts.BytesOf(results.all), 1};
  plan.builder.AddMemoryOp("join " + results.all.name, Kernel::kCopy,
                           CostOfPiece(cost, results.pieces), {results.rows}, {results.rows});
}

// What follows a product of rows: forward the bias, and where rows go on, what joins them.
void Finish(Plan& plan, uint32_t node, const ResultRows& results, bool back, bool goes_on) {
  if (!back) AddBias(plan, node, results, /*back=*/false);
  if (goes_on) Join(plan, node, results);
}

std::optional<Tensor> TakeSentAhead(Plan& plan, uint32_t node) {
  const auto sent = plan.chunk->sent_ahead.find(node);
  if (sent == plan.chunk->sent_ahead.end()) return std::nullopt;
  Tensor tensor = std::move(sent->second);
  plan.chunk->sent_ahead.erase(sent);
  return tensor;
}

// Rows that go on to other ranks (`goes_on`) leave piece by piece, in place of the node that would
// send them all, `sender`.
void MultiplyAndFinish(Plan& plan, uint32_t node, GemmMode mode, BufferId a, BufferId b,
                       const Tensor& result, bool goes_on, uint32_t sender) {
  const ExpertNode experts(&plan, node);
  const uint32_t pieces = experts.rows().pieces();
  const bool back = mode == GemmMode::kNN;
  if (pieces == 1 || !goes_on) {
    MultiplyGrouped(plan, node, mode, a, b, result.buffer, false);
    Finish(plan, node, {result, result.buffer}, back, goes_on);
    return;
  }
  const std::vector<BufferId> of_a = plan.builder.EqualRows(a, pieces);
  const std::vector<BufferId> rows = plan.builder.EqualRows(result.buffer, pieces);
  const PieceSteps before = plan.chunk->TakeArriving(a);
  Tensor sent = experts.SpreadAndSend(result, [&](uint32_t i) {
    if (!before.empty()) before[i]();
    MultiplyPiece(plan, node, mode, of_a[i], b, rows[i], false, i == 0);
    Finish(plan, node, {result, rows[i], pieces}, back, goes_on);
  });
  plan.chunk->sent_ahead.emplace(sender, std::move(sent));
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
  const BufferId counts =
      builder.AddBuffer({.name = builder.Label("counts"),
                         .kind = BufferKind::kBuffer,
                         .bytes = Bytes(kBytesOfNumber * static_cast<double>(experts)),
                         .dtype = DType::kFp32,
                         .rows = 1,
                         .columns = experts});
  const bool balances = shape.attributes[kRoutingAuxiliary] > 0;
  const double bytes = builder.LocalElements(logits) * (plan.element() + 5 * kBytesOfNumber) +
                       builder.LocalElements(weights) * 4 * kBytesOfNumber;
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
  const double bytes = builder.LocalElements(logits) * (plan.element() + 4 * kBytesOfNumber) +
                       builder.LocalElements(dy) * 2 * kBytesOfNumber;
  builder.AddMemoryOp(shape.backward_op, Kernel::kRouteBackward,
                      KernelCost{bytes, HasCapacity(shape) ? 9u : 3u}, {dy.buffer, logits.buffer},
                      {dx.buffer}, plan.RoutingAttributes(node));
  plan.PassBack(node, dx);
}

void ForwardDispatch(Plan& plan, uint32_t node) {
  const ExpertNode experts(&plan, node);
  const Tensor& x = plan.Input(node);
  const Tensor sent = experts.MakeSent(experts.shape().name);
  const std::vector<std::vector<BufferId>> writes = {experts.PiecesOf(sent.buffer)};
  std::vector<std::vector<BufferId>> reads = {experts.PiecesOf(x.buffer)};
  for (const BufferId counts : experts.GatherCounts()) reads.push_back({counts});
  plan.State(node).value = experts.Send(sent, /*back=*/false, [&](uint32_t i) {
    experts.AddMemoryPiece(experts.shape().op, Kernel::kPermute, experts.CostsOf(x, sent).permute,
                           i, reads, writes);
  });
}

void BackwardDispatch(Plan& plan, uint32_t node, const Tensor& dy) {
  const ExpertNode experts(&plan, node);
  const Tensor& x = plan.Input(node);
  const Tensor dx = plan.MakeGradient(experts.shape().inputs.front(), x.layout);
  const std::vector<std::vector<BufferId>> reads = {experts.PiecesOf(dy.buffer)};
  const std::vector<std::vector<BufferId>> writes = {experts.PiecesOf(dx.buffer)};
  for (uint32_t i = 0; i < experts.rows().pieces(); ++i)
    experts.AddMemoryPiece("permute backward", Kernel::kPermuteBackward,
                           experts.CostsOf(dx, dy).permute_backward, i, reads, writes);
  plan.PassBack(node, dx);
}

void ForwardArrive(Plan& plan, uint32_t node) {
  plan.State(node).value = ExpertNode(&plan, node).Collect(plan.Input(node));
}

void BackwardArrive(Plan& plan, uint32_t node, const Tensor& dy) {
  const ExpertNode experts(&plan, node);
  const uint32_t input = experts.shape().inputs.front();
  CHECK(!plan.Gradient(input).has_value());
  std::optional<Tensor> sent = TakeSentAhead(plan, node);
  plan.Gradient(input) = sent ? *std::move(sent) : experts.Send(experts.Spread(dy), /*back=*/true);
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
  plan.State(node).operand = x;
  plan.State(node).value = y;
  MultiplyAndFinish(plan, node, GemmMode::kNT, x.buffer, weight, y,
                    role == MatrixRole::kExpertSecond, node + 1);
}

void InputGradientOfGroupedProduct(Plan& plan, uint32_t node, const Tensor& gradient) {
  const NetworkNode& shape = plan.Node(node);
  const uint32_t matrix = *shape.matrix;
  AddBias(plan, node, {gradient, gradient.buffer}, /*back=*/true);
  const Tensor dy = ToOperand(plan, node, gradient, gradient.layout, /*is_gradient=*/true).whole;
  const BufferId weight = plan.parameters.gathering.OperandBackward(matrix, plan.action);
  Tensor dx = plan.MakeGradient(shape.inputs.front(), plan.Input(node).layout);
  MultiplyAndFinish(plan, node, GemmMode::kNN, dy.buffer, weight, dx,
                    plan.network.matrices[matrix].role == MatrixRole::kExpertFirst,
                    shape.inputs.front());
  plan.PassToWeight(node, {plan.State(node).operand, dy});
  plan.parameters.gathering.Release(matrix, plan.action);
  plan.PassBack(node, std::move(dx));
}

void ForwardReturn(Plan& plan, uint32_t node) {
  const ExpertNode experts(&plan, node);
  std::optional<Tensor> sent = TakeSentAhead(plan, node);
  plan.State(node).value =
      sent ? *std::move(sent) : experts.Send(experts.Spread(plan.Input(node)), /*back=*/true);
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
  const std::vector<std::vector<BufferId>> reads = {experts.PiecesOf(x.buffer),
                                                    experts.PiecesOf(weights.buffer)};
  const std::vector<std::vector<BufferId>> writes = {experts.PiecesOf(y.buffer)};
  for (uint32_t i = 0; i < experts.rows().pieces(); ++i)
    experts.AddMemoryPiece(shape.op, Kernel::kCombine, experts.CostsOf(y, x).combine, i, reads,
                           writes);
  plan.State(node).value = y;
}

void BackwardCombine(Plan& plan, uint32_t node, const Tensor& dy) {
  const ExpertNode experts(&plan, node);
  const NetworkNode& shape = experts.shape();
  const Tensor& x = plan.Input(node);
  const Tensor& weights = plan.Input(node, 1);
  const Tensor dx = experts.MakeSent("d " + plan.Node(shape.inputs[0]).name);
  const Tensor dw = plan.MakeGradient(shape.inputs[1], weights.layout);
  std::vector<std::vector<BufferId>> reads = {experts.PiecesOf(dy.buffer),
                                              experts.PiecesOf(weights.buffer)};
  if (!plan.training.weighs_early) reads.insert(reads.begin() + 1, experts.PiecesOf(x.buffer));
  const std::vector<std::vector<BufferId>> writes = {experts.PiecesOf(dx.buffer),
                                                     experts.PiecesOf(dw.buffer)};
  // No kernel makes the weights' gradients from what is not kept: backends refuse it.
  const Kernel kernel = plan.training.weighs_early ? Kernel::kNone : Kernel::kCombineBackward;
  const Tensor sent = experts.Send(dx, /*back=*/false, [&](uint32_t i) {
    experts.AddMemoryPiece(shape.backward_op, kernel, experts.CostsOf(dy, x).combine_backward, i,
                           reads, writes);
    if (i + 1 == experts.rows().pieces()) plan.PassBack(node, dw, 1);
  });
  plan.Gradient(shape.inputs.front()) = sent;
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
