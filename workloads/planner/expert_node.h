// Rows of experts: how many a rank has, where they lie, and the ops that send, order and collect
// them, all at once or in equal pieces. Which nodes do what: workloads/planner/expert_rules.cc.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "sim/schedule/expert_routing.h"
#include "workloads/planner/casts.h"
#include "workloads/planner/plan.h"

namespace rehearse {

inline constexpr const char* kExpertRanks = "expert";
inline constexpr const char* kRanksOfExpert = "expert tensor";
inline constexpr const char* kAllExpertRanks = "experts";
inline constexpr double kBytesOfNumber = 4;  // a count, a score in fp32

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
    const uint64_t runs = runs_ / pieces_;
    std::vector<double> rows;
    for (uint32_t i = 0; i < experts(); ++i)
      rows.push_back(static_cast<double>(routing_.loads[own_ * experts() + i] * runs * sources));
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
inline uint32_t LastOfKind(const Plan& plan, uint32_t node, NodeKind kind) {
  while (plan.Node(node).kind != kind) {
    CHECK_GT(node, 0u);
    --node;
  }
  return node;
}

inline void AwaitPieces(Plan& plan, BufferId array) {
  for (const std::function<void()>& step : plan.chunk->TakeArriving(array)) step();
}

inline KernelCost CostOfPiece(const KernelCost& cost, uint32_t parts) {
  return {cost.bytes / parts, cost.kernels, cost.strided / parts, cost.strided_bytes / parts};
}

inline bool HasCapacity(const NetworkNode& route) { return route.attributes[kRoutingCapacity] > 0; }

// A node among those of a layer's experts: how its arrays lie, and what moves them.
class ExpertNode {
 public:
  using Issue = PlanBuilder::Issue;

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
    AddMemory(name, kernel, CostOfPiece(cost, rows().pieces()), of_piece(reads), of_piece(writes));
  }

  // Tells how many rows each rank will get, before they are sent.
  std::vector<BufferId> GatherCounts() const {
    if (rows().sources() == 1) return {};
    std::vector<uint32_t> axes = policy()->axes;
    axes.insert(axes.end(), policy()->tensor_axes.begin(), policy()->tensor_axes.end());
    const uint64_t experts = rows().routing().experts;
    const double bytes = kBytesOfNumber * static_cast<double>(experts) * rows().sources();
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
    Tensor arrived = MakeArrived(cast, back);
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
    PieceSteps steps;
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
            cost = CostOfPiece(
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

}  // namespace rehearse
