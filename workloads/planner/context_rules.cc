// The attention core where ranks share sequences (ContextPolicy, workloads/strategies/strategy.h).
//
// A rank has s/c tokens of each of its sequences. Ring: keys and values for the next step travel
// beside attention to those already there; they are copied out of X once, and gradients into dX
// when they have come home. All-gather and Ulysses are changes of layout before and after, so their
// collectives follow as everywhere else.
#include <optional>

#include <fmt/format.h>

#include "sim/schedule/attention_part.h"
#include "workloads/planner/attention_ops.h"
#include "workloads/planner/node_rules.h"

namespace rehearse {

Layout HeadsOverContext(Layout layout, uint32_t axis) {
  layout[axis] = S(1, static_cast<uint8_t>(SplitAxes(layout, 1).size()));
  return layout;
}

namespace {

using Issue = PlanBuilder::Issue;

constexpr int64_t kAllKeys = -1;

class SharedAttention {
 public:
  SharedAttention(Plan* plan, uint32_t node)
      : plan_(*plan),
        builder_(plan->builder),
        node_(node),
        shape_(plan->Node(node)),
        context_(*plan->strategy.context),
        parts_(builder_.sizes()[context_.axis]) {
    if (plan->training.FusesAttention()) return;
    throw Error(builder_.place(),
                fmt::format("unfused attention over sequences that {} ranks share: its scores are "
                            "those of whole sequences; expected \"attention\": \"fused\", or the "
                            "name of a fused kernel",
                            parts_));
  }

  void Forward() {
    const Tensor& x = plan_.Input(node_);
    TurnHeads(plan_, node_, x, /*back=*/false);
    if (context_.kind == ContextKind::kUlysses) {
      ForwardHeads(x);
      return;
    }
    NodeState& state = plan_.State(node_);
    state.value = plan_.MakeValue(node_, x);
    const Tensor sums = MakeSums(x.layout, BufferKind::kActivation);
    state.saved = {sums.buffer};
    if (context_.kind == ContextKind::kAllGather) {
      const Tensor keys = Gathered(TakeKeys(x));
      AddPart(x, keys, kAllKeys, {state.value, sums});
    } else {
      ForwardRing(x, {state.value, sums});
    }
  }

  void Backward(const Tensor& dy) {
    const Tensor& x = plan_.Input(node_);
    Tensor dx;
    if (context_.kind == ContextKind::kUlysses) {
      dx = BackwardHeads(dy);
    } else {
      dx = plan_.MakeGradient(shape_.inputs.front(), x.layout);
      PutKeys(context_.kind == ContextKind::kAllGather ? BackwardGathered(dy, x, dx)
                                                       : BackwardRing(dy, x, dx),
              dx);
    }
    TurnHeads(plan_, node_, dx, /*back=*/true);
    plan_.PassBack(node_, std::move(dx));
  }

 private:
  struct Output {
    Tensor o;
    Tensor sums;
  };

  double element() const { return plan_.element(); }
  uint64_t KeyColumns() const {
    return static_cast<uint64_t>(2 * shape_.attributes[kAttentionGroups] *
                                 shape_.attributes[kAttentionHeadSize]);
  }
  Tensor MakeBuffer(const std::string& name, const Tensor& x, uint64_t columns,
                    const Layout& layout) const {
    return builder_.MakeTensor(name, x.rows, columns, layout, builder_.precision(),
                               SizeOf(builder_.precision()), BufferKind::kBuffer);
  }
  Tensor MakeKeys(const std::string& name, const Tensor& x) const {
    return MakeBuffer(name, x, KeyColumns(), x.layout);
  }
  Tensor MakeSums(const Layout& layout, BufferKind kind) const {
    return builder_.MakeTensor(shape_.name + " sums", shape_.rows, HeadsOf(shape_), layout,
                               DType::kFp32, SizeOf(DType::kFp32), kind);
  }

  // ---- keys and values without queries ---------------------------------------------------------

  std::vector<double> KeyAttributes(const Tensor& x) const {
    const double groups = shape_.attributes[kAttentionGroups] /
                          static_cast<double>(Pieces(x.layout, builder_.sizes(), 1));
    return {groups, shape_.attributes[kAttentionHeadsOfGroup],
            shape_.attributes[kAttentionHeadSize]};
  }
  Tensor TakeKeys(const Tensor& x) const {
    Tensor keys = MakeKeys("k, v", x);
    builder_.AddMemoryOp("take k, v", Kernel::kTakeKeys,
                         2 * builder_.LocalElements(keys) * element(), {x.buffer}, {keys.buffer}, 1,
                         KeyAttributes(x));
    return keys;
  }
  void PutKeys(const Tensor& d_keys, const Tensor& dx) const {
    builder_.AddMemoryOp("put d k, v", Kernel::kPutKeys,
                         2 * builder_.LocalElements(d_keys) * element(), {d_keys.buffer, dx.buffer},
                         {dx.buffer}, 1, KeyAttributes(dx));
  }

  // ---- parts of the core -----------------------------------------------------------------------

  AttentionPart PartAt(int64_t step) const {
    AttentionPart part = PartOf(shape_.attributes);
    part.parts = parts_;
    part.balanced = context_.balanced;
    part.step = step;
    return part;
  }
  // False if a window leaves none of these keys on any rank.
  bool HasWork(int64_t step) const { return MostPairs(PartAt(step)) > 0; }

  Compute MakePart(Kernel kernel, const Tensor& y, const Tensor& keys, int64_t step, double passes,
                   double traffic) const {
    const AttentionPart part = PartAt(step);
    // Of X only the queries are read: as many elements as Y has.
    const double elements = 2 * builder_.LocalElements(y) + builder_.LocalElements(keys);
    Compute compute = MakeAttention(plan_, node_, kernel, y,
                                    {passes, MostPairs(part) / part.Length(), traffic * elements});
    compute.attributes.resize(kAttentionWindow + 1);
    for (const double attribute :
         {static_cast<double>(parts_), context_.balanced ? 1.0 : 0.0, static_cast<double>(step)})
      compute.attributes.push_back(attribute);
    return compute;
  }

  void AddPart(const Tensor& x, const Tensor& keys, int64_t step, const Output& output) const {
    builder_.AddCompute(shape_.op, MakePart(Kernel::kAttentionPart, output.o, keys, step, 1, 1),
                        {x.buffer, keys.buffer}, {output.o.buffer, output.sums.buffer});
  }

  void AddPartBackward(const Tensor& dy, const Tensor& x, const Tensor& keys, int64_t step,
                       const Tensor& dx, const Tensor& d_keys) const {
    const NodeState& state = plan_.State(node_);
    std::vector<BufferId> reads = {dy.buffer, x.buffer, keys.buffer, state.value.buffer,
                                   state.saved.front()};
    if (step > 0) reads.push_back(dx.buffer);
    builder_.AddCompute(
        shape_.op + " backward",
        MakePart(Kernel::kAttentionPartBackward, state.value, keys, step, kFusedBackwardPasses, 2),
        reads, {dx.buffer, d_keys.buffer});
  }

  // ---- all-gather ------------------------------------------------------------------------------

  Tensor Gathered(Tensor keys) const {
    Layout whole = keys.layout;
    whole[context_.axis] = B();
    return builder_.Redistribute(std::move(keys), whole);
  }

  Tensor BackwardGathered(const Tensor& dy, const Tensor& x, const Tensor& dx) const {
    const Tensor keys = Gathered(TakeKeys(x));
    Layout partial = x.layout;
    partial[context_.axis] = P();
    Tensor d_keys = MakeBuffer("d k, v", x, KeyColumns(), partial);
    AddPartBackward(dy, x, keys, kAllKeys, dx, d_keys);
    return builder_.Redistribute(std::move(d_keys), x.layout);
  }

  // ---- ring ------------------------------------------------------------------------------------

  // Passes to the next rank, from the previous one.
  Tensor Pass(const Tensor& keys, const Tensor& x) const {
    Tensor next = MakeKeys(keys.name, x);
    builder_.AddCollective("send-receive " + keys.name, CollectiveKind::kSendReceive,
                           {context_.axis}, builder_.LocalElements(keys) * element(),
                           builder_.precision(), Issue::kAsynchronous, {keys.buffer},
                           {next.buffer});
    return next;
  }

  void ForwardRing(const Tensor& x, const Output& whole) const {
    Tensor keys = TakeKeys(x);
    for (uint32_t step = 0; step < parts_; ++step) {
      std::optional<Tensor> next;
      if (step + 1 < parts_) next = Pass(keys, x);
      if (step == 0) {
        AddPart(x, keys, step, whole);
      } else if (HasWork(step)) {
        const Output part = {MakeBuffer(shape_.name + " of a part", x, shape_.columns, x.layout),
                             MakeSums(x.layout, BufferKind::kBuffer)};
        AddPart(x, keys, step, part);
        Merge(part, whole);
      }
      if (next) keys = std::move(*next);
    }
  }

  void Merge(const Output& part, const Output& whole) const {
    const double sums = builder_.LocalElements(whole.sums) * SizeOf(DType::kFp32).value();
    builder_.AddMemoryOp("merge " + shape_.name, Kernel::kAttentionMerge,
                         3 * (builder_.LocalElements(whole.o) * element() + sums),
                         {part.o.buffer, part.sums.buffer, whole.o.buffer, whole.sums.buffer},
                         {whole.o.buffer, whole.sums.buffer});
  }

  // Gradients follow their keys, one step behind, and go one step further when these stop.
  Tensor BackwardRing(const Tensor& dy, const Tensor& x, const Tensor& dx) const {
    Tensor keys = TakeKeys(x);
    Tensor d_keys;  // for the keys at hand, as far as other ranks have made it
    for (uint32_t step = 0; step < parts_; ++step) {
      std::optional<Tensor> next;
      if (step > 0) d_keys = Pass(d_keys, x);
      if (step + 1 < parts_) next = Pass(keys, x);
      if (step == 0) {
        d_keys = MakeKeys("d k, v", x);
        AddPartBackward(dy, x, keys, step, dx, d_keys);
      } else if (HasWork(step)) {
        const Tensor own = MakeKeys("d k, v", x);
        AddPartBackward(dy, x, keys, step, dx, own);
        Tensor sum = MakeKeys("d k, v", x);
        builder_.AddMemoryOp("add d k, v", Kernel::kAdd,
                             3 * builder_.LocalElements(sum) * element(),
                             {d_keys.buffer, own.buffer}, {sum.buffer});
        d_keys = std::move(sum);
      }
      if (next) keys = std::move(*next);
    }
    return Pass(d_keys, x);
  }

  // ---- Ulysses ---------------------------------------------------------------------------------

  // To heads with all their tokens, and back. A rank's sequences arrive in parts, rank by rank.
  Tensor ToHeads(const Tensor& tensor) const {
    Tensor heads = builder_.Redistribute(tensor, HeadsOverContext(tensor.layout, context_.axis));
    return Ordered(std::move(heads), /*back=*/false);
  }
  Tensor ToTokens(Tensor tensor, const Layout& layout) const {
    return builder_.Redistribute(Ordered(std::move(tensor), /*back=*/true), layout);
  }
  Tensor Ordered(Tensor tensor, bool back) const {
    if (builder_.LocalRows(tensor) == static_cast<uint64_t>(shape_.attributes.front()))
      return tensor;
    Tensor ordered = builder_.MakeTensor(tensor.name, tensor.rows, tensor.columns, tensor.layout);
    builder_.AddMemoryOp(
        "order " + tensor.name, Kernel::kOrderSequences,
        2 * builder_.LocalElements(tensor) * element(), {tensor.buffer}, {ordered.buffer}, 1,
        {shape_.attributes.front(), static_cast<double>(parts_), 0, back ? 1.0 : 0.0});
    return ordered;
  }
  Compute MakeWhole(Kernel kernel, const Tensor& y, const Tensor& x, double passes,
                    double traffic) const {
    const double elements = builder_.LocalElements(x) + builder_.LocalElements(y);
    return MakeAttention(plan_, node_, kernel, y,
                         {passes, PairsOfToken(shape_), traffic * elements});
  }

  void ForwardHeads(const Tensor& input) const {
    NodeState& state = plan_.State(node_);
    const Layout rest = input.layout;
    const Tensor x = ToHeads(input);
    const Tensor y = builder_.MakeTensor(shape_.name, shape_.rows, shape_.columns, x.layout);
    const Tensor sums = MakeSums(x.layout, BufferKind::kActivation);
    builder_.AddCompute(shape_.op, MakeWhole(Kernel::kAttention, y, x, 1, 1), {x.buffer},
                        {y.buffer, sums.buffer});
    state.operand = x;
    state.saved = {sums.buffer, y.buffer};
    state.value = ToTokens(y, rest);
  }

  Tensor BackwardHeads(const Tensor& gradient) const {
    const NodeState& state = plan_.State(node_);
    const Tensor& x = state.operand;
    const Tensor dy = ToHeads(gradient);
    const Tensor dx = plan_.MakeGradient(shape_.inputs.front(), x.layout);
    builder_.AddCompute(shape_.op + " backward",
                        MakeWhole(Kernel::kAttentionBackward, dy, x, kFusedBackwardPasses, 2),
                        {dy.buffer, x.buffer, state.saved.back(), state.saved.front()},
                        {dx.buffer});
    return ToTokens(dx, plan_.Input(node_).layout);
  }

  Plan& plan_;
  PlanBuilder& builder_;
  const uint32_t node_;
  const NetworkNode& shape_;
  const ContextPolicy& context_;
  const uint32_t parts_;
};

}  // namespace

void ForwardSharedAttention(Plan& plan, uint32_t node) { SharedAttention(&plan, node).Forward(); }

void BackwardSharedAttention(Plan& plan, uint32_t node, const Tensor& dy) {
  SharedAttention(&plan, node).Backward(dy);
}

}  // namespace rehearse
