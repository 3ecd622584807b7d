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
        pieces_(policy_ != nullptr && ranks_ > 1 ? policy_->pieces : 1),
        runs_(tokens / routing_.period) {
    CHECK_EQ(tokens % (routing_.period * pieces_), 0u);
    CHECK(pieces_ == 1 || sharers_ == 1);
    CHECK_EQ(routing_.experts % ranks_, 0u);
  }

  const ExpertRouting& routing() const { return routing_; }
  uint32_t ranks() const { return ranks_; }
  uint32_t sharers() const { return sharers_; }
  uint32_t sources() const { return ranks_ * sharers_; }
  uint32_t experts() const { return routing_.experts / ranks_; }  // per rank
  uint32_t pieces() const { return pieces_; }  // equal ones, of runs, in which rows travel
  // Rows from one source for the experts of a rank, and for each of them.
  uint64_t RowsFor(uint32_t rank) const {
    uint64_t rows = 0;
    for (uint32_t i = 0; i < experts(); ++i) rows += routing_.loads[rank * experts() + i];
    return rows * runs_;
  }
  // Of one piece.
  std::vector<double> RowsOfExperts(uint32_t sources) const {
    std::vector<double> rows;
    for (uint32_t i = 0; i < experts(); ++i)
      rows.push_back(
          static_cast<double>(routing_.loads[own_ * experts() + i] * (runs_ / pieces_) * sources));
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
  uint32_t pieces_;
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

// What has to be done before each piece of an array is there.
using Steps = std::vector<std::function<void()>>;

Steps TakeArriving(Plan& plan, BufferId array) {
  const auto arriving = plan.chunk->arriving.find(array.index());
  if (arriving == plan.chunk->arriving.end()) return {};
  Steps steps = std::move(arriving->second);
  plan.chunk->arriving.erase(arriving);
  return steps;
}

void Await(Plan& plan, BufferId array) {
  for (const std::function<void()>& step : TakeArriving(plan, array)) step();
}

KernelCost PartOf(const KernelCost& cost, uint32_t parts) {
  return {cost.bytes / parts, cost.kernels, cost.strided / parts, cost.strided_bytes / parts};
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

  std::vector<BufferId> PiecesOf(BufferId array) const {
    return builder_.EqualRows(array, rows().pieces());
  }
  // The i-th piece of such an op.
  void AddMemoryPiece(const std::string& name, Kernel kernel, const KernelCost& cost, uint32_t i,
                      const std::vector<std::vector<BufferId>>& reads,
                      const std::vector<std::vector<BufferId>>& writes) const {
    const auto of_piece = [&](const std::vector<std::vector<BufferId>>& arrays) {
      std::vector<BufferId> pieces;
      for (const std::vector<BufferId>& array : arrays)
        pieces.push_back(array[array.size() > 1 ? i : 0]);
      return pieces;
    };
    AddMemory(name, kernel, PartOf(cost, rows().pieces()), of_piece(reads), of_piece(writes));
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

  // To the ranks that have the experts, or back from them, each piece when it has been made.
  Tensor Send(const Tensor& tensor, bool back,
              const std::function<void(uint32_t piece)>& make) const {
    if (rows().pieces() == 1) {
      make(0);
      return Send(tensor, back);
    }
    const bool is_narrow = !back && policy()->narrow_dispatch;
    const Tensor cast = is_narrow ? MakeCast(tensor, rows().sent()) : tensor;
    const Tensor arrived = MakeArrived(cast, back);
    const std::vector<BufferId> wide = PiecesOf(tensor.buffer);
    const std::vector<BufferId> sent = is_narrow ? PiecesOf(cast.buffer) : wide;
    const std::vector<BufferId> to = PiecesOf(arrived.buffer);
    for (uint32_t i = 0; i < rows().pieces(); ++i) {
      make(i);
      if (is_narrow)
        builder_.AddMemoryOp("cast " + cast.name, Kernel::kCopy,
                             KernelCost{BytesOfCast(tensor) / rows().pieces(), 1}, {wide[i]},
                             {sent[i]});
      AddExchange(cast, back, sent[i], to[i], Issue::kAsynchronous);
    }
    return arrived;
  }
  Tensor Send(const Tensor& tensor, bool back) const {
    if (rows().ranks() == 1) return tensor;
    const bool is_narrow = !back && policy()->narrow_dispatch;
    if (!is_narrow) return SendAsItIs(tensor, back);
    const Tensor cast = MakeCast(tensor, rows().sent());
    AddCast("cast ", tensor, cast);
    return SendAsItIs(cast, back);
  }

  // What products of experts make piece by piece, ordered by source and sent back.
  Tensor SpreadAndSend(const Tensor& tensor,
                       const std::function<void(uint32_t piece)>& make) const {
    Tensor ordered = tensor;
    if (IsOrdered())
      ordered = builder_.MakeTensor(tensor.name, tensor.rows, tensor.columns, tensor.layout,
                                    tensor.dtype, Bytes(plan_.element()));
    ordered.layout = spread_;
    const std::vector<BufferId> from = PiecesOf(tensor.buffer);
    const std::vector<BufferId> to = IsOrdered() ? PiecesOf(ordered.buffer) : from;
    return Send(ordered, /*back=*/true, [&](uint32_t i) {
      make(i);
      if (IsOrdered()) OrderStep(tensor, /*back=*/true, from[i], to[i])();
    });
  }

  // What has arrived on all ranks that share the experts, expert by expert. In pieces: when a
  // product takes them.
  Tensor Collect(Tensor tensor) const {
    if (rows().pieces() > 1) return CollectInPieces(tensor);
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
  bool IsOrdered() const { return rows().sources() > 1 && rows().experts() > 1; }

  Tensor CollectInPieces(const Tensor& tensor) const {
    const bool widens = IsNarrow(tensor.dtype) && !TakesNarrow();
    Tensor wide =
        widens ? MakeRows(tensor.name, rows().received(), tensor.columns, spread_) : tensor;
    Tensor ordered = wide;
    if (IsOrdered())
      ordered = builder_.MakeTensor(wide.name, wide.rows, wide.columns, wide.layout, wide.dtype,
                                    Bytes(IsNarrow(wide.dtype) ? kNarrowElement : plan_.element()));
    ordered.layout = gathered_;
    const std::vector<BufferId> arrived = PiecesOf(tensor.buffer);
    const std::vector<BufferId> widened = widens ? PiecesOf(wide.buffer) : arrived;
    const std::vector<BufferId> to = IsOrdered() ? PiecesOf(ordered.buffer) : widened;
    Steps steps;
    for (uint32_t i = 0; i < rows().pieces(); ++i) {
      std::function<void()> order = [] {};
      if (IsOrdered()) order = OrderStep(wide, /*back=*/false, widened[i], to[i]);
      steps.push_back([&builder = builder_, order, widens, name = "widen " + wide.name,
                       cost = KernelCost{BytesOfCast(wide) / rows().pieces(), 1}, from = arrived[i],
                       to = widened[i]] {
        if (widens) builder.AddMemoryOp(name, Kernel::kCopy, cost, {from}, {to});
        order();
      });
    }
    plan_.chunk->arriving[ordered.buffer.index()] = std::move(steps);
    return ordered;
  }

  bool IsEvenOverRanks() const {
    for (uint32_t rank = 1; rank < rows().ranks(); ++rank) {
      if (rows().RowsFor(rank) != rows().RowsFor(0)) return false;
    }
    return true;
  }

  // `row` is in bytes.
  void SetSizes(double row, bool back, Collective* collective) const {
    row /= rows().pieces();
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
    builder_.AddMemoryOp(name + to.name, Kernel::kCopy, KernelCost{BytesOfCast(from), 1},
                         {from.buffer}, {to.buffer});
  }
  double BytesOfCast(const Tensor& tensor) const {
    return builder_.LocalElements(tensor) * (plan_.element() + kNarrowElement);
  }

  Tensor MakeArrived(const Tensor& tensor, bool back) const {
    const uint64_t arriving = back ? rows().sent() : rows().received();
    return IsNarrow(tensor.dtype) ? MakeCast(tensor, arriving)
                                  : MakeRows(tensor.name, arriving, tensor.columns, spread_);
  }

  Tensor SendAsItIs(const Tensor& tensor, bool back) const {
    Tensor arrived = MakeArrived(tensor, back);
    AddExchange(tensor, back, tensor.buffer, arrived.buffer,
                policy()->overlaps_shared ? Issue::kAsynchronous : Issue::kBlocking);
    return arrived;
  }

  // A piece of the tensor, or all of it.
  void AddExchange(const Tensor& tensor, bool back, BufferId from, BufferId to, Issue issue) const {
    const bool is_narrow = IsNarrow(tensor.dtype);
    const double row =
        static_cast<double>(tensor.columns) * (is_narrow ? kNarrowElement : plan_.element());
    Collective collective;
    collective.kind = CollectiveKind::kAllToAll;
    collective.communicator = builder_.CommunicatorNamed(policy()->axes, kExpertRanks);
    collective.dtype = is_narrow ? tensor.dtype : builder_.precision();
    SetSizes(row, back, &collective);
    builder_.AddCollective(fmt::format("{} {}", back ? "combine" : "dispatch", tensor.name),
                           collective, issue, {from}, {to});
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
    if (!IsOrdered()) return tensor;
    const double element = IsNarrow(tensor.dtype) ? kNarrowElement : plan_.element();
    Tensor ordered = builder_.MakeTensor(tensor.name, tensor.rows, tensor.columns, tensor.layout,
                                         tensor.dtype, Bytes(element));
    OrderStep(tensor, back, tensor.buffer, ordered.buffer)();
    return ordered;
  }

  // Orders a piece of the tensor, or all of it.
  std::function<void()> OrderStep(const Tensor& tensor, bool back, BufferId from,
                                  BufferId to) const {
    const double element = IsNarrow(tensor.dtype) ? kNarrowElement : plan_.element();
    std::vector<double> attributes = {static_cast<double>(rows().sources()), back ? 1.0 : 0.0};
    for (const double of_source : rows().RowsOfExperts(1)) attributes.push_back(of_source);
    return [&builder = builder_, name = "order " + tensor.name, from, to, attributes,
            cost = PartOf(
                CostOfOrder(plan_.training, builder_.LocalElements(tensor), element, is_padded_),
                rows().pieces())] {
      builder.AddMemoryOp(name, Kernel::kOrderChunks, cost, {from}, {to}, attributes);
    };
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
  const Steps before_a = TakeArriving(plan, a);
  const Steps before_b = TakeArriving(plan, b);
  for (uint32_t i = 0; i < pieces; ++i) {
    for (const Steps* before : {&before_a, &before_b})
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
  Await(plan, tensor.buffer);
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
  Await(plan, results.all.buffer);
  const uint32_t experts = ExpertNode(&plan, node).rows().experts();
  const double elements = plan.builder.LocalElements(results.all);
  const KernelCost cost = back ? plan.costs().ExpertBiasBackward(elements, experts)
                               : plan.costs().ExpertBias(elements, experts);
  plan.builder.AddMemoryOp(shape.op + (back ? " bias backward" : " bias"), Kernel::kCopy,
                           PartOf(cost, results.pieces), {results.rows}, {results.rows});
}

// What experts have made one by one becomes one array.
void Join(Plan& plan, uint32_t node, const ResultRows& results) {
  if (!plan.training.sequential_experts) return;
  const ExpertNode experts(&plan, node);
  if (experts.rows().experts() == 1) return;
  const KernelCost cost{2 * experts.BytesOf(results.all), 1};
  plan.builder.AddMemoryOp("join " + results.all.name, Kernel::kCopy, PartOf(cost, results.pieces),
                           {results.rows}, {results.rows});
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
  const Steps before = TakeArriving(plan, a);
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
