// Products with a weight, and the embedding, which is one with one-hot rows.
#include <algorithm>
#include <map>
#include <utility>

#include "workloads/planner/attention_ops.h"
#include "workloads/planner/local_product.h"
#include "workloads/planner/node_rules.h"

namespace rehearse {
namespace {

using Issue = PlanBuilder::Issue;

// The sum of two gradients that lie alike.
Tensor SumOfGradients(Plan& plan, const Tensor& x, const Tensor& y) {
  PlanBuilder& builder = plan.builder;
  Tensor sum = builder.MakeTensor(y.name, y.rows, y.columns, y.layout);
  builder.AddMemoryOp("add " + sum.name, Kernel::kAdd,
                      3 * builder.LocalElements(sum) * plan.element(), {y.buffer, x.buffer},
                      {sum.buffer});
  return sum;
}

// The products that take the same norm as this one, in the same layout, and share what brings it
// there (NetworkNode::shares), in the order of the forward pass; only this one if it shares none.
std::vector<uint32_t> Sharers(const Plan& plan, uint32_t node) {
  const uint32_t input = plan.Node(node).inputs.front();
  if (!plan.Node(input).shares) return {node};
  const auto own = plan.Node(node).matrix;
  const auto& strategy = plan.strategy.products;
  const auto& places = plan.parameters.places;
  std::vector<uint32_t> sharers;
  for (uint32_t i = input + 1;
       i < plan.network.nodes.size() && plan.Node(i).layer == plan.Node(input).layer; ++i) {
    const NetworkNode& other = plan.Node(i);
    if (other.kind != NodeKind::kProduct || other.inputs.front() != input) continue;
    const bool lies_alike = !strategy[*other.matrix].summa &&
                            strategy[*other.matrix].x == strategy[*own].x &&
                            places[*other.matrix].products.dx == places[*own].products.dx;
    if (lies_alike) sharers.push_back(i);
  }
  return sharers;
}

// X as the product takes it, after its cast, if it is cast, and before: brought there once for all
// that share it.
struct TakenOperand {
  Tensor cast;
  ArrivingOperand x;
};
TakenOperand TakeOperand(Plan& plan, uint32_t node) {
  const Layout& layout = plan.strategy.products[*plan.Node(node).matrix].x;
  const auto bring = [&] {
    const Tensor input = CastInput(plan, node);
    return TakenOperand{input, ToOperand(plan, node, input, layout, /*is_gradient=*/false)};
  };
  const std::vector<uint32_t> sharers = Sharers(plan, node);
  if (sharers.size() < 2) return bring();
  SharedOperand& shared = plan.chunk->shared_operands[sharers.front()];
  const BufferId of = plan.Input(node).buffer;
  const Phase phase = plan.builder.tag().phase;
  if (shared.of != of || shared.phase != phase) {
    TakenOperand own = bring();
    shared = {of, phase, own.cast, own.x.whole};
    return own;
  }
  return {shared.cast, {shared.operand}};
}

// dX = dY·W. The collectives that add up its partial sums may run beside the dW product that
// follows; a gather (and the copy after it) comes after that.
// Products that share X add up what they have of its gradient before it travels: only the last one
// to come has a dX, which is that of all.
std::optional<Tensor> MakeInputGradient(Plan& plan, uint32_t node, const Tensor& x,
                                        const ArrivingOperand& arriving) {
  const Tensor& dy = arriving.whole;
  PlanBuilder& builder = plan.builder;
  const uint32_t matrix = *plan.Node(node).matrix;
  const BufferId weight = plan.parameters.gathering.OperandBackward(matrix, plan.action);
  Tensor dx =
      plan.MakeGradient(plan.Node(node).inputs.front(), plan.parameters.places[matrix].products.dx);
  ForEachPart(plan, arriving, dx, [&](BufferId of_dy, BufferId of_dx) {
    MultiplyForInputGradient(plan, node, of_dy, weight, of_dx);
  });
  const std::vector<uint32_t> sharers = Sharers(plan, node);
  if (sharers.size() > 1) {
    std::map<uint32_t, Tensor>& known = plan.chunk->shared_gradients;
    const auto found = known.find(sharers.front());
    if (found != known.end()) {
      dx = SumOfGradients(plan, found->second, dx);
      known.erase(found);
    }
    if (node != sharers.front()) {
      known.emplace(sharers.front(), std::move(dx));
      plan.PassToWeight(node, {x, dy});
      return std::nullopt;
    }
  }
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
  const std::vector<uint32_t> sharers = Sharers(plan, node);
  if (sharers.size() < 2) return plan.builder.Redistribute(x, layouts.x, Issue::kAsynchronous);
  SharedOperand& shared = plan.chunk->shared_operands[sharers.front()];
  const Phase phase = plan.builder.tag().phase;
  const bool is_of = shared.of == x.buffer || shared.operand.buffer == x.buffer;
  if (shared.phase != phase || !is_of) {
    shared = {x.buffer, phase, x, plan.builder.Redistribute(x, layouts.x, Issue::kAsynchronous)};
  }
  return shared.operand;
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

Tensor Rest(Plan& plan, const ProductLayouts& layouts, Tensor y) {
  for (const Layout& layout : layouts.by_way_of) {
    y = plan.builder.Redistribute(std::move(y), layout);
  }
  return plan.builder.Redistribute(std::move(y), layouts.rest);
}

bool SumsFirst(const Plan& plan, uint32_t node) {
  if (!plan.Node(node).joins) return false;
  uint32_t sum = node;
  while (plan.Node(sum).kind != NodeKind::kAdd || !plan.Node(sum).joins) ++sum;
  const uint32_t one = *plan.Node(plan.Node(sum).inputs.front()).matrix;
  const uint32_t other = *plan.Node(plan.Node(sum).inputs.back()).matrix;
  const ProductLayouts& a = plan.strategy.products[one];
  const ProductLayouts& b = plan.strategy.products[other];
  const auto& places = plan.parameters.places;
  return !a.summa && !b.summa && a.rest == b.rest && a.by_way_of == b.by_way_of &&
         places[one].products.y == places[other].products.y;
}

void ForwardProduct(Plan& plan, uint32_t node) {
  const NetworkNode& shape = plan.Node(node);
  const uint32_t matrix = *shape.matrix;
  const ProductLayouts& layouts = plan.strategy.products[matrix];
  if (layouts.summa) {
    ForwardSumma(plan, node);
    return;
  }
  PlanBuilder& builder = plan.builder;
  const auto [input, x] = TakeOperand(plan, node);
  const BufferId weight = plan.parameters.gathering.Operand(matrix, plan.action);
  const Layout& of_products = plan.parameters.places[matrix].products.y;
  const double kept = plan.training.recomputed_ops.second_products
                          ? KeptShareOf(plan.network, shape, plan.training)
                          : 0;
  const bool is_again = plan.builder.tag().phase == Phase::kRecompute;
  NodeState& state = plan.State(node);
  state.operand = plan.strategy.gathers_inputs_again ? input : x.whole;
  const bool is_alone = kept == 0 && x.pieces.empty() && !SumsFirst(plan, node);
  std::optional<Tensor> sum =
      is_alone ? MultiplyAndScatter(plan, node, x.whole.buffer, weight, of_products) : std::nullopt;
  if (sum) {
    state.value = std::move(*sum);
    return;
  }
  Tensor y = builder.MakeTensor(shape.name, shape.rows, shape.columns, of_products);
  ForEachPart(plan, x, y, [&](BufferId of_x, BufferId of_y) {
    Multiply(plan, node, of_x, weight, of_y, false, is_again ? 1 - kept : 1);
  });
  if (kept > 0) KeepPart(plan, node, y.buffer, kept, is_again);
  state.value = SumsFirst(plan, node) ? std::move(y) : Rest(plan, layouts, std::move(y));
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
  const auto [input, x] = TakeOperand(plan, node);
  plan.State(node).operand = plan.strategy.gathers_inputs_again ? input : x.whole;
}

void InputGradientOfProduct(Plan& plan, uint32_t node, const Tensor& gradient) {
  const NetworkNode& shape = plan.Node(node);
  const uint32_t matrix = *shape.matrix;
  if (plan.strategy.products[matrix].summa) {
    InputGradientOfSumma(plan, node, gradient);
    return;
  }
  const ArrivingOperand arriving =
      ToOperand(plan, node, gradient, Resolved(plan.parameters.places[matrix].products.y),
                /*is_gradient=*/true);
  Tensor x = plan.State(node).operand;
  const bool is_frozen = plan.network.matrices[matrix].is_frozen;
  if (!plan.action.puts_off_weights && !is_frozen) x = OperandOfWeightGradient(plan, node, x);
  if (plan.Node(shape.inputs.front()).kind == NodeKind::kInput) {
    plan.PassToWeight(node, {x, arriving.whole});
    plan.parameters.gathering.Release(matrix, plan.action);
    return;
  }
  std::optional<Tensor> dx = MakeInputGradient(plan, node, x, arriving);
  plan.parameters.gathering.Release(matrix, plan.action);
  if (dx) plan.PassBack(node, std::move(*dx));
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
