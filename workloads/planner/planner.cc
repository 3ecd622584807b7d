#include "workloads/planner/planner.h"

#include <algorithm>
#include <array>

#include "workloads/planner/node_rules.h"
#include "workloads/planner/split_check.h"
#include "workloads/strategies/strategy_zero.h"

namespace rehearse {
namespace {

// Nodes [begin, end) of one layer, with their matrices.
struct Unit {
  int32_t layer = -1;
  uint32_t begin = 0;
  uint32_t end = 0;
  uint32_t first_matrix = 0;
  uint32_t matrix_end = 0;
};

std::vector<Unit> UnitsOf(const Network& network) {
  std::vector<Unit> units;
  uint32_t matrix = 0;
  for (uint32_t node = 0; node < network.nodes.size(); ++node) {
    const NetworkNode& shape = network.nodes[node];
    if (units.empty() || units.back().layer != shape.layer) {
      units.push_back({shape.layer, node, node, matrix, matrix});
    }
    if (shape.matrix) {
      CHECK_EQ(*shape.matrix, matrix);
      ++matrix;
    }
    units.back().end = node + 1;
    units.back().matrix_end = matrix;
  }
  return units;
}

// Layouts without axes of size 1, so that strategies that mean the same plan the same.
Strategy Normalized(const Strategy& strategy) {
  Strategy result = strategy;
  std::vector<uint32_t> sizes;
  for (const MeshAxis& axis : strategy.mesh.axes()) sizes.push_back(axis.size);
  for (ProductLayouts& product : result.products) {
    for (Layout* layout : {&product.x, &product.w, &product.rest}) {
      *layout = Normalized(*layout, sizes);
    }
    for (Layout& layout : product.by_way_of) layout = Normalized(layout, sizes);
  }
  if (result.shard && sizes[result.shard->axis] == 1) result.shard.reset();
  return result;
}

// The data come as the first product that takes them wants them.
const Layout& InputLayout(const Network& network, const Strategy& strategy, uint32_t input) {
  const auto takes = [&](const NetworkNode& node) {
    return node.kind == NodeKind::kProduct && node.inputs.front() == input;
  };
  const auto product = std::find_if(network.nodes.begin(), network.nodes.end(), takes);
  CHECK(product != network.nodes.end());
  return strategy.products[*product->matrix].x;
}

// The layout in which each node's value rests: a product's is the strategy's choice, others keep
// that of their last input (a residual that of the stream it adds to).
std::vector<Layout> RestsOf(const Network& network, const Strategy& strategy) {
  std::vector<Layout> rests;
  for (uint32_t i = 0; i < network.nodes.size(); ++i) {
    const NetworkNode& node = network.nodes[i];
    if (node.matrix) {
      rests.push_back(strategy.products[*node.matrix].rest);
    } else if (node.kind == NodeKind::kInput) {
      rests.push_back(InputLayout(network, strategy, i));
    } else {
      rests.push_back(rests[node.inputs.back()]);
    }
  }
  return rests;
}

std::vector<uint32_t> ModelAxes(const Strategy& strategy) {
  const std::vector<uint32_t> data = PureDataAxes(strategy);
  std::vector<uint32_t> axes;
  for (uint32_t axis = 0; axis < strategy.mesh.axes().size(); ++axis) {
    if (std::find(data.begin(), data.end(), axis) == data.end()) axes.push_back(axis);
  }
  return axes;
}

// The network for one of so many equal parts of a micro-batch.
Network Divided(Network network, uint32_t parts) {
  for (NetworkNode& node : network.nodes) node.rows /= parts;
  return network;
}

class Planner {
 public:
  Planner(const Network& network, const Training& training, const Strategy& strategy,
          const Place& place)
      : network_(Divided(network, strategy.chunks)),
        strategy_(Normalized(strategy)),
        training_(training),
        units_(UnitsOf(network)),
        rests_(RestsOf(network, strategy_)),
        builder_(strategy_.mesh, ModelAxes(strategy_), training.precision, strategy_.costs, place) {
    builder_.set_runs_chunks(strategy_.chunks > 1);
    CheckSplits(network, strategy_, rests_, place);
    parameters_.emplace(network_, strategy_, training_, rests_, &builder_);
    plan_.emplace(Plan{network_, strategy_, training_, builder_, *parameters_});
  }

  Schedule Run() {
    for (uint32_t i = 0; i < network_.micro_batches; ++i) MicroBatch(i);
    parameters_->Synchronize();
    parameters_->Update();
    Schedule schedule = builder_.Build();
    schedule.tokens = network_.tokens;
    schedule.token_name = network_.token_name;
    schedule.model_flops = network_.model_flops;
    schedule.hardware_flops =
        Recomputes() ? network_.hardware_flops_recomputing : network_.model_flops;
    return schedule;
  }

 private:
  bool Recomputes() const { return training_.recomputation == Recomputation::kFull; }

  // Every node for each chunk in turn, before the next node.
  template <typename Work>
  void ForEachChunk(const Work& work) {
    Tag tag = builder_.tag();
    const int32_t first = tag.micro_batch;
    for (Chunk& chunk : chunks_) {
      const auto index = static_cast<int32_t>(&chunk - chunks_.data());
      tag.micro_batch = first + index;
      builder_.set_tag(tag);
      parameters_->set_is_last_chunk(index + 1 == static_cast<int32_t>(chunks_.size()));
      std::swap(plan_->states, chunk.states);
      std::swap(plan_->gradients, chunk.gradients);
      work();
      std::swap(plan_->states, chunk.states);
      std::swap(plan_->gradients, chunk.gradients);
    }
    tag.micro_batch = first;
    builder_.set_tag(tag);
  }

  void SetPhase(Phase phase, int32_t layer) {
    builder_.set_tag({phase, layer, builder_.tag().micro_batch});
  }

  void Forward(Phase phase, const Unit& unit) {
    SetPhase(phase, unit.layer);
    for (uint32_t node = unit.begin; node < unit.end; ++node) {
      ForEachChunk([&] { RuleOf(network_.nodes[node].kind).forward(*plan_, node); });
    }
  }

  void Backward(const Unit& unit) {
    SetPhase(Phase::kBackward, unit.layer);
    for (uint32_t node = unit.end; node-- > unit.begin;) {
      ForEachChunk([&] {
        std::optional<Tensor>& gradient = plan_->gradients[node];
        RuleOf(network_.nodes[node].kind).backward(*plan_, node, gradient.value_or(Tensor()));
        gradient.reset();
      });
    }
  }

  void MicroBatch(uint32_t index) {
    const auto matrices = static_cast<uint32_t>(network_.matrices.size());
    builder_.set_tag({Phase::kForward, -1, static_cast<int32_t>(index * strategy_.chunks)});
    parameters_->BeginMicroBatch(index + 1 == network_.micro_batches);
    chunks_.assign(strategy_.chunks, {std::vector<NodeState>(network_.nodes.size()),
                                      std::vector<std::optional<Tensor>>(network_.nodes.size())});
    plan_->prefetch_end = matrices;
    ForEachChunk([&] { MakeInputs(); });
    for (const Unit& unit : units_) {
      Forward(Phase::kForward, unit);
      parameters_->ReleaseAfterForward(unit.first_matrix, unit.matrix_end);
    }
    for (size_t i = units_.size(); i-- > 0;) {
      const Unit& unit = units_[i];
      if (Recomputes() && unit.layer >= 0) {
        plan_->prefetch_end = unit.matrix_end;
        Forward(Phase::kRecompute, unit);
      }
      Backward(unit);
    }
    parameters_->FinishMicroBatch();
  }

  // The data are there before the step.
  void MakeInputs() {
    for (uint32_t node = 0; node < network_.nodes.size(); ++node) {
      const NetworkNode& shape = network_.nodes[node];
      if (shape.kind != NodeKind::kInput) continue;
      plan_->states[node].value =
          builder_.MakeTensor(shape.name, shape.rows, shape.columns, rests_[node]);
    }
  }

  struct Chunk {
    std::vector<NodeState> states;
    std::vector<std::optional<Tensor>> gradients;
  };

  const Network network_;
  const Strategy strategy_;
  const Training training_;
  const std::vector<Unit> units_;
  const std::vector<Layout> rests_;
  PlanBuilder builder_;
  std::optional<Parameters> parameters_;
  std::optional<Plan> plan_;
  std::vector<Chunk> chunks_;  // of the current micro-batch
};

void NoForward(Plan&, uint32_t) {}
void NoBackward(Plan&, uint32_t, const Tensor&) {}

constexpr std::array<NodeRule, kNodeKinds> kRules = {{
    {NodeKind::kInput, NoForward, NoBackward},
    {NodeKind::kEmbedding, ForwardEmbedding, BackwardEmbedding},
    {NodeKind::kProduct, ForwardProduct, BackwardProduct},
    {NodeKind::kBias, ForwardBias, BackwardBias},
    {NodeKind::kBiasGelu, ForwardBiasGelu, BackwardBiasGelu},
    {NodeKind::kSwiGlu, ForwardSwiGlu, BackwardSwiGlu},
    {NodeKind::kRelu, ForwardRelu, BackwardRelu},
    {NodeKind::kDropout, ForwardDropout, BackwardDropout},
    {NodeKind::kNorm, ForwardNorm, BackwardNorm},
    {NodeKind::kRmsNorm, ForwardNorm, BackwardNorm},
    {NodeKind::kAttention, ForwardAttention, BackwardAttention},
    {NodeKind::kResidual, ForwardResidual, BackwardResidual},
    {NodeKind::kAdd, ForwardAdd, BackwardAdd},
    {NodeKind::kMaxPool, ForwardMaxPool, BackwardMaxPool},
    {NodeKind::kUpsample, ForwardUpsample, BackwardUpsample},
    {NodeKind::kFlatten, ForwardFlatten, BackwardFlatten},
    {NodeKind::kConcatenate, ForwardConcatenate, BackwardConcatenate},
    {NodeKind::kGroupNorm, ForwardGroupNorm, BackwardGroupNorm},
    {NodeKind::kModulate, ForwardModulate, BackwardModulate},
    {NodeKind::kCrossEntropy, ForwardCrossEntropy, BackwardCrossEntropy},
    {NodeKind::kSquaredError, ForwardSquaredError, BackwardSquaredError},
}};

}  // namespace

const NodeRule& RuleOf(NodeKind kind) {
  const NodeRule& rule = kRules[static_cast<size_t>(kind)];
  CHECK(rule.kind == kind);
  return rule;
}

void Plan::PassBack(uint32_t node, Tensor gradient, size_t i) {
  const uint32_t input = network.nodes[node].inputs[i];
  if (network.nodes[input].kind == NodeKind::kInput) return;
  gradient = builder.Redistribute(std::move(gradient), states[input].value.layout);
  std::optional<Tensor>& known = gradients[input];
  if (known) {
    Tensor sum = MakeGradient(input, gradient.layout);
    builder.AddMemoryOp("add " + sum.name, Kernel::kAdd, 3 * builder.LocalElements(sum) * element(),
                        {gradient.buffer, known->buffer}, {sum.buffer});
    gradient = std::move(sum);
  }
  known = std::move(gradient);
}

Schedule PlanStep(const Network& network, const Training& training, const Strategy& strategy,
                  const Place& place) {
  return Planner(network, training, strategy, place).Run();
}

Schedule PlanSerialStep(const Network& network, const Training& training, uint32_t chunks) {
  Network serial = Divided(network, chunks);
  serial.micro_batches *= chunks;
  return PlanStep(serial, training, MakeDataParallel(1, /*overlap_all_reduce=*/false, serial));
}

}  // namespace rehearse
