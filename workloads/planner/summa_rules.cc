// Products by SUMMA (van de Geijn and Watts 1997; Optimus, arXiv 2104.05343; Tesseract, arXiv
// 2105.14500): on q×q ranks X, W and Y all lie as blocks, rows on axis i, columns on axis j, and q
// rounds move panels of them.
//
//   Y(i,j)  = sum over l of X(i,l)·W(l,j)      broadcast X(i,l) along j and W(l,j) along i from l
//   dX(i,l) = sum over j of dY(i,j)·W(l,j)^T   broadcast W(l,j) along i from l, reduce along j to l
//   dW(l,j) = sum over i of X(i,l)^T·dY(i,j)   broadcast X(i,l) along j from l, reduce along i to l
//
// The next round's panels may travel during this round's product.
#include <fmt/format.h>

#include "workloads/planner/local_product.h"
#include "workloads/planner/node_rules.h"

namespace rehearse {
namespace {

using Issue = PlanBuilder::Issue;

class SummaProduct {
 public:
  SummaProduct(Plan& plan, uint32_t node)
      : plan_(plan),
        builder_(plan.builder),
        node_(node),
        shape_(plan.Node(node)),
        summa_(*plan.strategy.products[*shape_.matrix].summa),
        rounds_(builder_.sizes()[summa_.row_axis]) {}

  void Forward(const Tensor& x, const Buffer& weight, BufferId weight_id, const Tensor& y) {
    std::vector<BufferId> x_panels;
    std::vector<BufferId> w_panels;
    Rounds(
        [&](uint32_t l) {
          x_panels.push_back(
              Broadcast(l, builder_.BufferOf(x.buffer), x.buffer, x.name, summa_.column_axis));
          w_panels.push_back(Broadcast(l, weight, weight_id, shape_.op, summa_.row_axis));
        },
        [&](uint32_t l) { Multiply(plan_, node_, x_panels[l], w_panels[l], y.buffer, l > 0); });
  }

  void InputGradient(const Tensor& dy, const Buffer& weight, BufferId weight_id, const Tensor& dx) {
    std::vector<BufferId> panels;
    Rounds(
        [&](uint32_t l) {
          panels.push_back(Broadcast(l, weight, weight_id, shape_.op, summa_.row_axis));
        },
        [&](uint32_t l) {
          const BufferId part = MakePanel(builder_.BufferOf(dx.buffer), dx.name + " part");
          MultiplyForInputGradient(plan_, node_, dy.buffer, panels[l], part);
          Move(CollectiveKind::kReduce, l, dx.name, summa_.column_axis, part, dx.buffer);
        });
  }

  // Writes `block`, or adds to what it already holds.
  void WeightGradient(const Tensor& x, const Tensor& dy, BufferId block, bool adds) {
    std::vector<BufferId> panels;
    const Buffer shape = builder_.BufferOf(block);
    const BufferId sum = adds ? MakePanel(shape, shape_.op + " dW") : block;
    Rounds(
        [&](uint32_t l) {
          panels.push_back(
              Broadcast(l, builder_.BufferOf(x.buffer), x.buffer, x.name, summa_.column_axis));
        },
        [&](uint32_t l) {
          const BufferId part = MakePanel(shape, shape_.op + " dW part");
          MultiplyForWeightGradient(plan_, node_, dy.buffer, panels[l], part, false);
          Move(CollectiveKind::kReduce, l, shape_.op + " dW", summa_.row_axis, part, sum);
        });
    if (!adds) return;
    builder_.AddMemoryOp("accumulate " + shape_.op + " dW", Kernel::kAccumulate,
                         3 * shape.bytes.value(), {sum, block}, {block});
  }

 private:
  // `fetch` issues the collectives that round l needs, `compute` its product.
  template <typename Fetch, typename Compute>
  void Rounds(const Fetch& fetch, const Compute& compute) {
    fetch(0);
    for (uint32_t l = 0; l < rounds_; ++l) {
      if (summa_.prefetch && l + 1 < rounds_) fetch(l + 1);
      compute(l);
      if (!summa_.prefetch && l + 1 < rounds_) fetch(l + 1);
    }
  }

  BufferId MakePanel(const Buffer& like, const std::string& name) {
    return builder_.AddBuffer(
        {.name = builder_.Label(name),
         .kind = BufferKind::kBuffer,
         .bytes = static_cast<double>(like.rows * like.columns) * SizeOf(builder_.precision()),
         .dtype = builder_.precision(),
         .rows = like.rows,
         .columns = like.columns});
  }

  BufferId Broadcast(uint32_t root, const Buffer& block, BufferId from, const std::string& name,
                     uint32_t axis) {
    const BufferId panel = MakePanel(block, name + " panel");
    Move(CollectiveKind::kBroadcast, root, name, axis, from, panel);
    return panel;
  }

  void Move(CollectiveKind kind, uint32_t root, const std::string& name, uint32_t axis,
            BufferId from, BufferId to) {
    const Buffer& block = builder_.BufferOf(to);
    Collective collective;
    collective.kind = kind;
    collective.communicator = CommunicatorId(axis);
    collective.bytes =
        static_cast<double>(block.rows * block.columns) * SizeOf(builder_.precision());
    collective.dtype = builder_.precision();
    collective.root = root;
    builder_.AddCollective(fmt::format("{} {}", Name(kind), name), collective,
                           summa_.prefetch ? Issue::kAsynchronous : Issue::kBlocking, {from}, {to});
  }

  Plan& plan_;
  PlanBuilder& builder_;
  const uint32_t node_;
  const NetworkNode& shape_;
  const SummaAxes& summa_;
  const uint32_t rounds_;
};

}  // namespace

void ForwardSumma(Plan& plan, uint32_t node) {
  const NetworkNode& shape = plan.Node(node);
  const uint32_t matrix = *shape.matrix;
  const ProductLayouts& layouts = plan.strategy.products[matrix];
  const Tensor x = plan.builder.Redistribute(plan.Input(node), layouts.x);
  const BufferId weight = plan.parameters.gathering.Fetch(matrix, plan.action);
  const Tensor y = plan.builder.MakeTensor(shape.name, shape.rows, shape.columns,
                                           plan.parameters.places[matrix].products.y);
  SummaProduct(plan, node).Forward(x, Buffer(plan.builder.BufferOf(weight)), weight, y);
  plan.State(node).operand = x;
  plan.State(node).value = plan.builder.Redistribute(y, layouts.rest);
}

void InputGradientOfSumma(Plan& plan, uint32_t node, const Tensor& gradient) {
  const NetworkNode& shape = plan.Node(node);
  const uint32_t matrix = *shape.matrix;
  const MatmulResult& places = plan.parameters.places[matrix].products;
  const Tensor dy = plan.builder.Redistribute(gradient, places.y);
  const BufferId weight = plan.parameters.gathering.FetchBackward(matrix, plan.action);
  const uint32_t input = shape.inputs.front();
  Tensor dx;
  if (plan.Node(input).kind != NodeKind::kInput) {
    dx = plan.MakeGradient(input, places.dx);
    SummaProduct(plan, node).InputGradient(dy, Buffer(plan.builder.BufferOf(weight)), weight, dx);
  }
  plan.PassToWeight(node, {plan.State(node).operand, dy});
  plan.parameters.gathering.Release(matrix, plan.action);
  if (dx.buffer.IsSet()) plan.PassBack(node, std::move(dx));
}

void WeightGradientOfSumma(Plan& plan, uint32_t node, const WeightOperands& operands) {
  const uint32_t matrix = *plan.Node(node).matrix;
  bool adds = false;
  const BufferId block = plan.parameters.gradients.Begin(matrix, &adds);
  SummaProduct(plan, node).WeightGradient(operands.x, operands.dy, block, adds);
  plan.parameters.gradients.End(matrix, plan.action);
}

}  // namespace rehearse
