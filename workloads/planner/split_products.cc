#include "workloads/planner/split_products.h"

#include <string>
#include <utility>

#include <fmt/format.h>

namespace rehearse {
namespace {

// Transformer Engine's user buffers cut a product that is summed into so many (NVIDIA/
// TransformerEngine, module/base.py, initialize_ub: num_splits of the method "pipeline").
constexpr uint32_t kPipelinedPieces = 4;

// The only step of a path, if it is of this kind and moves rows along one axis.
const RedistributionStep* OnlyStep(const std::vector<RedistributionStep>& path, Move move) {
  if (path.size() != 1 || path.front().move != move || path.front().axes.size() != 1)
    return nullptr;
  const RedistributionStep& step = path.front();
  const bool has_rows = (move == Move::kAllGather ? step.from_dimension : step.to_dimension) == 0;
  return has_rows ? &step : nullptr;
}

// The piece of rows that reaches a rank in the i-th step.
BufferId PieceOf(Plan& plan, BufferId whole, CommunicatorId ring, uint32_t ranks, uint32_t i) {
  Buffer piece = plan.builder.BufferOf(whole);
  piece.bytes = Bytes(0);
  piece.rows /= ranks;
  piece.region = kNoRegion;
  piece.borrowed = false;
  piece.view = View{whole, 0, 0, {ring}, {}, (ranks - i) % ranks};
  return plan.builder.AddBuffer(std::move(piece));
}

// Each member's copy to the next one.
void AddExchange(Plan& plan, const std::string& name, const std::vector<uint32_t>& ring,
                 BufferId from, BufferId to) {
  const Buffer& sent = plan.builder.BufferOf(from);
  Collective collective;
  collective.kind = CollectiveKind::kSendReceive;
  collective.communicator = plan.builder.CommunicatorOf(ring);
  collective.bytes =
      static_cast<double>(sent.rows) * static_cast<double>(sent.columns) * SizeOf(sent.dtype);
  collective.dtype = sent.dtype;
  collective.copied = true;
  plan.builder.AddCollective("exchange " + name, collective, PlanBuilder::Issue::kAsynchronous,
                             {from}, {to});
}

// A product whose partial sums are reduce-scattered, and how it is cut.
class ScatteredProduct {
 public:
  // `y` lies as the product leaves it.
  ScatteredProduct(Plan& plan, uint32_t node, BufferId x, BufferId weight, const Tensor& y,
                   const RedistributionStep& step)
      : plan_(plan),
        builder_(plan.builder),
        name_(y.name),
        op_(plan.Node(node).op),
        x_(x),
        weight_(weight),
        axes_(step.axes),
        ranks_(builder_.SizeOfAxes(step.axes)),
        rows_(builder_.LocalRows(y)),
        columns_(builder_.LocalColumns(y)),
        k_(builder_.BufferOf(x).columns),
        y_(y),
        after_(step.after) {}

  // Columns of Y, each reduce-scattered by the library behind its product.
  std::optional<Tensor> ByColumns(uint32_t pieces) {
    const uint64_t columns = columns_ / pieces;
    if (columns == 0 || columns * pieces != columns_) return std::nullopt;
    std::vector<BufferId> weights;
    for (uint32_t i = 0; i < pieces; ++i) {
      const std::optional<BufferId> rows = builder_.ViewOfRows(weight_, i * columns, columns);
      if (!rows) return std::nullopt;
      weights.push_back(*rows);
    }
    Tensor sum = MakeSum();
    const uint64_t own_rows = rows_ / ranks_;
    const BufferId sums = MakePiece(name_ + " in pieces", own_rows * pieces, columns);
    const std::vector<BufferId> of_pieces = builder_.EqualRows(sums, pieces);
    for (uint32_t i = 0; i < pieces; ++i) {
      const BufferId partial = MakePiece("piece of " + name_, rows_, columns);
      Multiply(x_, weights[i], partial);
      builder_.AddCollective("reduce-scatter " + name_, CollectiveKind::kReduceScatter, axes_,
                             builder_.BufferOf(partial).bytes.value(), builder_.precision(),
                             PlanBuilder::Issue::kAsynchronous, {partial}, {of_pieces[i]});
    }
    // The library writes sums to where their columns belong.
    builder_.AddMemoryOp("join " + name_, Kernel::kUnstack, KernelCost{0, 0}, {sums}, {sum.buffer});
    return sum;
  }

  // The rows of each rank, the own ones last. Partial sums go round the ring, and each rank adds
  // its own; it takes as long as p of them being added at the end, each read once.
  std::optional<Tensor> ByRows() {
    if (builder_.BufferOf(x_).view || rows_ % ranks_ != 0) return std::nullopt;
    const CommunicatorId ring = builder_.CommunicatorOf(axes_);
    Tensor sum = MakeSum();
    const double moved = static_cast<double>(ranks_ + 1) / static_cast<double>(ranks_ - 1) *
                         builder_.BufferOf(sum.buffer).bytes.value();
    if (plan_.strategy.split_products == SplitProducts::kTiles) builder_.set_parts(ranks_, 1);
    BufferId arrived;
    for (uint32_t i = 1; i <= ranks_; ++i) {
      const bool is_own = i == ranks_;
      const BufferId partial =
          is_own ? sum.buffer : MakePiece("piece of " + name_, rows_ / ranks_, columns_);
      Multiply(PieceOf(plan_, x_, ring, ranks_, i), weight_, partial);
      if (arrived.IsSet())
        builder_.AddMemoryOp("add " + name_, Kernel::kAccumulate,
                             KernelCost{moved, is_own ? 1u : 0u}, {arrived, partial}, {partial});
      if (is_own) break;
      arrived = MakePiece("arrived " + name_, rows_ / ranks_, columns_);
      AddExchange(plan_, name_, axes_, partial, arrived);
    }
    builder_.set_parts(1, 1);
    return sum;
  }

 private:
  Tensor MakeSum() { return builder_.MakeTensor(name_, y_.rows, y_.columns, after_); }
  BufferId MakePiece(const std::string& name, uint64_t rows, uint64_t columns) {
    const double elements = static_cast<double>(rows) * static_cast<double>(columns);
    return builder_.AddBuffer({.name = builder_.Label(name),
                               .kind = BufferKind::kBuffer,
                               .bytes = Bytes(elements * plan_.element()),
                               .dtype = builder_.precision(),
                               .rows = rows,
                               .columns = columns});
  }
  void Multiply(BufferId x, BufferId weight, BufferId y) {
    const Buffer& result = builder_.BufferOf(y);
    builder_.AddGemm(op_, {.m = result.rows, .n = result.columns, .k = k_, .mode = GemmMode::kNT},
                     x, weight, y);
  }

  Plan& plan_;
  PlanBuilder& builder_;
  const std::string name_;
  const std::string op_;
  const BufferId x_;
  const BufferId weight_;
  const std::vector<uint32_t> axes_;
  const uint32_t ranks_;
  const uint64_t rows_;
  const uint64_t columns_;
  const uint64_t k_;
  const Tensor y_;
  const Layout after_;
};

}  // namespace

ArrivingOperand BringOperand(Plan& plan, Tensor tensor, const Layout& layout, bool lies_ready) {
  PlanBuilder& builder = plan.builder;
  // Transformer Engine has no user buffers for what is outside the layers.
  const bool is_split = plan.strategy.split_products == SplitProducts::kUserBuffers
                            ? builder.tag().layer >= 0
                            : plan.strategy.split_products != SplitProducts::kNone;
  if (!is_split || tensor.layout == layout)
    return {builder.Redistribute(std::move(tensor), layout)};
  const RedistributionStep* step = OnlyStep(builder.PathTo(tensor, layout), Move::kAllGather);
  if (step == nullptr) return {builder.Redistribute(std::move(tensor), layout)};

  const uint32_t ranks = builder.SizeOfAxes(step->axes);
  const CommunicatorId ring = builder.CommunicatorOf(step->axes);
  const double element = SizeOf(tensor.dtype).value();
  ArrivingOperand operand;
  operand.whole = builder.MakeTensor(tensor.name, tensor.rows, tensor.columns, step->after,
                                     tensor.dtype, Bytes(element));
  for (uint32_t i = 0; i < ranks; ++i)
    operand.pieces.push_back(PieceOf(plan, operand.whole.buffer, ring, ranks, i));
  const bool is_there = lies_ready && plan.strategy.split_products != SplitProducts::kAsyncTp;
  const double copied = 2 * builder.LocalElements(tensor) * element;
  builder.AddMemoryOp("place " + tensor.name, Kernel::kCopy,
                      is_there ? KernelCost{0, 0} : KernelCost{copied, 1}, {tensor.buffer},
                      {operand.pieces.front()});
  for (uint32_t i = 1; i < ranks; ++i)
    AddExchange(plan, tensor.name, step->axes, operand.pieces[i - 1], operand.pieces[i]);
  return operand;
}

void ForEachPart(Plan& plan, const ArrivingOperand& operand, const Tensor& result,
                 const std::function<void(BufferId operand, BufferId result)>& visit) {
  if (operand.pieces.empty()) {
    visit(operand.whole.buffer, result.buffer);
    return;
  }
  const CommunicatorId ring =
      plan.builder.BufferOf(operand.pieces.front()).view->rows_cut_by.front();
  const auto ranks = static_cast<uint32_t>(operand.pieces.size());
  if (plan.strategy.split_products == SplitProducts::kTiles) plan.builder.set_parts(ranks, 1);
  for (uint32_t i = 0; i < ranks; ++i)
    visit(operand.pieces[i], PieceOf(plan, result.buffer, ring, ranks, i));
  plan.builder.set_parts(1, 1);
}

std::optional<Tensor> MultiplyAndScatter(Plan& plan, uint32_t node, BufferId x, BufferId weight,
                                         const Layout& from) {
  if (plan.strategy.split_products == SplitProducts::kNone) return std::nullopt;
  const NetworkNode& shape = plan.Node(node);
  const ProductLayouts& layouts = plan.strategy.products[*shape.matrix];
  if (shape.window || !layouts.by_way_of.empty()) return std::nullopt;
  const Tensor y{shape.name, shape.rows, shape.columns, from, {}, plan.builder.precision()};
  const RedistributionStep* step =
      OnlyStep(plan.builder.PathTo(y, layouts.rest), Move::kReduceScatter);
  if (step == nullptr) return std::nullopt;
  ScatteredProduct product(plan, node, x, weight, y, *step);
  return plan.strategy.split_products == SplitProducts::kUserBuffers
             ? product.ByColumns(kPipelinedPieces)
             : product.ByRows();
}

}  // namespace rehearse
