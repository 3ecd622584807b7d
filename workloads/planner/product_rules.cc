// Products with a weight, and the embedding, which is one with one-hot rows.
#include "workloads/planner/attention_ops.h"
#include "workloads/planner/local_product.h"
#include "workloads/planner/node_rules.h"

namespace rehearse {
namespace {

using Issue = PlanBuilder::Issue;

// From the layout in which the product leaves it to the one in which it rests.
Tensor Rest(Plan& plan, const ProductLayouts& layouts, Tensor y) {
  for (const Layout& layout : layouts.by_way_of) {
    y = plan.builder.Redistribute(std::move(y), layout);
  }
  return plan.builder.Redistribute(std::move(y), layouts.rest);
}

// dX = dY·W. The collectives that add up its partial sums may run beside the dW product that
// follows; a gather (and the copy after it) comes after that.
Tensor MakeInputGradient(Plan& plan, uint32_t node, const Tensor& x, const Tensor& dy) {
  PlanBuilder& builder = plan.builder;
  const uint32_t matrix = *plan.Node(node).matrix;
  const BufferId weight = plan.parameters.gathering.OperandBackward(matrix, plan.action);
  Tensor dx =
      plan.MakeGradient(plan.Node(node).inputs.front(), plan.parameters.places[matrix].products.dx);
  MultiplyForInputGradient(plan, node, dy.buffer, weight, dx.buffer);
  const Issue issue =
      plan.strategy.asynchronous_input_gradient ? Issue::kAsynchronous : Issue::kBlocking;
  const auto& path = builder.PathTo(dx, plan.Input(node).layout);
  size_t sums = path.size();
  while (sums > 0 && path[sums - 1].move != Move::kAllReduce &&
         path[sums - 1].move != Move::kReduceScatter) {
    --sums;
  }
  const size_t first_sum = builder.role().ops.size();
  for (size_t i = 0; i < sums; ++i) dx = builder.Take(path[i], std::move(dx), issue);
  plan.PassToWeight(node, {x, dy});
  // Without chunks, what comes next needs dX.
  if (plan.strategy.chunks > 1 && !plan.strategy.chunks_overlap_backward)
    builder.AwaitSince(first_sum);
  for (size_t i = sums; i < path.size(); ++i) dx = builder.Take(path[i], std::move(dx));
  return dx;
}

// X as the dW product takes it; a gather of it may run beside what comes before that product.
Tensor OperandOfWeightGradient(Plan& plan, uint32_t node, const Tensor& x) {
  const ProductLayouts& layouts = plan.strategy.products[*plan.Node(node).matrix];
  return plan.builder.Redistribute(x, layouts.x, Issue::kAsynchronous);
}

// Products that are one here and several in a framework, which computes some of them again: what it
// keeps of the others lies apart in the meantime. It takes no time, as it was never one array.
void KeepPart(Plan& plan, uint32_t node, BufferId y, double share, bool is_again) {
  PlanBuilder& builder = plan.builder;
  std::vector<BufferId>& saved = plan.State(node).saved;
  if (is_again) {
    CHECK_EQ(saved.size(), 1u);
    builder.AddMemoryOp("join kept part", Kernel::kCopy, KernelCost{0, 0}, {saved.front()}, {y});
    saved.clear();
    return;
  }
  saved = {builder.AddBuffer({.name = "kept part of " + builder.BufferOf(y).name,
                              .kind = BufferKind::kActivation,
                              .bytes = share * builder.BufferOf(y).bytes})};
  builder.AddMemoryOp("keep part", Kernel::kCopy, KernelCost{0, 0}, {y}, {saved.front()});
}

}  // namespace

void ForwardProduct(Plan& plan, uint32_t node) {
  const NetworkNode& shape = plan.Node(node);
  const uint32_t matrix = *shape.matrix;
  const ProductLayouts& layouts = plan.strategy.products[matrix];
  if (layouts.summa) {
    ForwardSumma(plan, node);
    return;
  }
  PlanBuilder& builder = plan.builder;
  const Tensor input = CastInput(plan, node);
  const Tensor x = ToOperand(plan, node, input, layouts.x, /*is_gradient=*/false);
  const BufferId weight = plan.parameters.gathering.Operand(matrix, plan.action);
  Tensor y = builder.MakeTensor(shape.name, shape.rows, shape.columns,
                                plan.parameters.places[matrix].products.y);
  const double kept = plan.training.recomputed_ops.second_products
                          ? KeptShareOf(plan.network, shape, plan.training)
                          : 0;
  const bool is_again = plan.builder.tag().phase == Phase::kRecompute;
  Multiply(plan, node, x.buffer, weight, y.buffer, false, is_again ? 1 - kept : 1);
  if (kept > 0) KeepPart(plan, node, y.buffer, kept, is_again);
  NodeState& state = plan.State(node);
  state.operand = plan.strategy.gathers_inputs_again ? input : x;
  state.value = Rest(plan, layouts, std::move(y));
  // A core that is not computed again finds its heads as it left them.
  const bool leaves_core = kept > 0 && is_again && !plan.training.recomputed_ops.attention;
  if (leaves_core && plan.Node(node + 1).kind == NodeKind::kAttention)
    TurnHeads(plan, node + 1, state.value, /*back=*/false);
}

void TakeOperandAgain(Plan& plan, uint32_t node) {
  if (plan.network.matrices[*plan.Node(node).matrix].is_frozen) return;
  if (plan.Node(node).kind == NodeKind::kGroupedProduct) {
    plan.State(node).operand = CastInput(plan, node);
    return;
  }
  const ProductLayouts& layouts = plan.strategy.products[*plan.Node(node).matrix];
  if (layouts.summa) return;
  const Tensor input = CastInput(plan, node);
  const Tensor x = ToOperand(plan, node, input, layouts.x, /*is_gradient=*/false);
  plan.State(node).operand = plan.strategy.gathers_inputs_again ? input : x;
}

void InputGradientOfProduct(Plan& plan, uint32_t node, const Tensor& gradient) {
  const NetworkNode& shape = plan.Node(node);
  const uint32_t matrix = *shape.matrix;
  if (plan.strategy.products[matrix].summa) {
    InputGradientOfSumma(plan, node, gradient);
    return;
  }
  const Tensor dy =
      ToOperand(plan, node, gradient, Resolved(plan.parameters.places[matrix].products.y),
                /*is_gradient=*/true);
  Tensor x = plan.State(node).operand;
  const bool is_frozen = plan.network.matrices[matrix].is_frozen;
  if (!plan.action.puts_off_weights && !is_frozen) x = OperandOfWeightGradient(plan, node, x);
  if (plan.Node(shape.inputs.front()).kind == NodeKind::kInput) {
    plan.PassToWeight(node, {x, dy});
    plan.parameters.gathering.Release(matrix, plan.action);
    return;
  }
  Tensor dx = MakeInputGradient(plan, node, x, dy);
  plan.parameters.gathering.Release(matrix, plan.action);
  plan.PassBack(node, std::move(dx));
}

void WeightGradientOfProduct(Plan& plan, uint32_t node, const WeightOperands& operands) {
  const uint32_t matrix = *plan.Node(node).matrix;
  if (plan.strategy.products[matrix].summa) {
    WeightGradientOfSumma(plan, node, operands);
    return;
  }
  const Tensor x = OperandOfWeightGradient(plan, node, operands.x);
  bool adds = false;
  const BufferId block = plan.parameters.gradients.Begin(matrix, &adds);
  MultiplyForWeightGradient(plan, node, operands.dy.buffer, x.buffer, block, adds);
  plan.parameters.gradients.End(matrix, plan.action);
}

// Looks up the rows of the table that this rank holds; what the others find is added up afterwards.
void ForwardEmbedding(Plan& plan, uint32_t node) {
  const NetworkNode& shape = plan.Node(node);
  const uint32_t matrix = *shape.matrix;
  PlanBuilder& builder = plan.builder;
  const BufferId table = plan.parameters.gathering.Fetch(matrix, plan.action);
  Tensor y = builder.MakeTensor(shape.name, shape.rows, shape.columns,
                                plan.parameters.places[matrix].products.y);
  builder.AddMemoryOp(shape.op, Kernel::kEmbedding, builder.LocalElements(y) * 2 * plan.element(),
                      {table}, {y.buffer}, 1, shape.attributes);
  plan.parameters.gathering.Release(matrix, plan.action);
  plan.State(node).value = Rest(plan, plan.strategy.products[matrix], std::move(y));
}

void InputGradientOfEmbedding(Plan& plan, uint32_t node, const Tensor& gradient) {
  if (plan.network.matrices[*plan.Node(node).matrix].is_frozen) return;
  const Layout& y = plan.parameters.places[*plan.Node(node).matrix].products.y;
  plan.PassToWeight(node, {{}, plan.builder.Redistribute(gradient, Resolved(y))});
}

// Scatter-adds into the gradient, which a tied output layer may have begun. Frameworks fill a whole
// table with zeros first, and then add it to one that was begun.
void WeightGradientOfEmbedding(Plan& plan, uint32_t node, const WeightOperands& operands) {
  const uint32_t matrix = *plan.Node(node).matrix;
  bool adds = false;
  const BufferId table = plan.parameters.gradients.Begin(matrix, &adds);
  std::vector<BufferId> reads = {operands.dy.buffer};
  if (adds) reads.push_back(table);
  // The product of an output layer that adds to the sum of gradients has not begun another.
  const bool joins = adds && !plan.training.fused_accumulation;
  const double elements = 3 * plan.builder.LocalElements(operands.dy) +
                          (joins ? 4 : 1) * plan.parameters.places[matrix].elements;
  plan.builder.AddMemoryOp(plan.Node(node).op + " backward", Kernel::kEmbeddingBackward,
                           elements * plan.element(), reads, {table}, joins ? 3 : 2,
                           plan.Node(node).attributes);
  plan.parameters.gradients.End(matrix, plan.action);
}

}  // namespace rehearse
