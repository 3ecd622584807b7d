// A step while it is being planned: what the rules of the nodes read and write.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/schedule/expert_routing.h"
#include "workloads/networks/network.h"
#include "workloads/networks/training.h"
#include "workloads/planner/action_context.h"
#include "workloads/planner/kernel_costs.h"
#include "workloads/planner/parameters.h"
#include "workloads/planner/plan_builder.h"
#include "workloads/planner/stages.h"
#include "workloads/strategies/strategy.h"

namespace rehearse {

// What the forward pass of a node leaves for its consumers and for its backward pass.
struct NodeState {
  Tensor value;
  Tensor operand;               // of a product: X as it was multiplied
  std::vector<BufferId> saved;  // masks, statistics of norms, ...
};

// What the gradient of a node's matrix is made of; if it is put off, both are kept alive.
struct WeightOperands {
  Tensor x;  // of a product
  Tensor dy;
};

// An operand that several products of a norm take (NetworkNode::shares), as the first of them had
// it brought there.
struct SharedOperand {
  BufferId of;  // as it rests
  Phase phase = Phase::kForward;
  Tensor cast;
  Tensor operand;
};

// What a chunk has on the host, of the layers of a stage that are offloaded
// (workloads/planner/offload.h).
struct ActivationsOnHost {
  // By offloaded layer, then by array: where it lay on the device, and where it is on the host.
  std::vector<std::vector<std::pair<BufferId, BufferId>>> arrays;
  OpId may_begin;               // the next layer's copies, after this
  uint32_t returned = 0;        // so many, the last first
  OpId returning;               // the copies that may still be under way
  uint32_t next = 0xffffffffu;  // ways back of layers from this one on have begun
};

// The nodes that a stage has to do with, numbered from 0: its own, its data, and what arrives from
// other stages. Few of those of a deep network.
class NodesOfStage {
 public:
  NodesOfStage(const Network& network, const Stage& stage);

  uint32_t count() const { return count_; }
  std::vector<uint32_t> All() const;
  bool Has(uint32_t node) const { return numbers_[node] < count_; }
  uint32_t NumberOf(uint32_t node) const {
    CHECK_LT(numbers_[node], count_);
    return numbers_[node];
  }

 private:
  std::vector<uint32_t> numbers_;  // by node
  uint32_t count_ = 0;
};

// What has to be done before each piece of an array is there.
using PieceSteps = std::vector<std::function<void()>>;

// A micro-batch (or one chunk of it) between its forward pass and its last gradient. Several may be
// alive at once.
struct ChunkState {
  explicit ChunkState(const NodesOfStage& known)
      : stage_nodes(&known), nodes(known.count()), gradients(known.count()) {}

  NodeState& StateOf(uint32_t node) { return nodes[stage_nodes->NumberOf(node)]; }
  std::optional<Tensor>& GradientOf(uint32_t node) {
    return gradients[stage_nodes->NumberOf(node)];
  }

  // Those of an array of rows of experts, which are then the caller's to do; none if it is there.
  PieceSteps TakeArriving(BufferId array) {
    const auto found = arriving.find(array.index());
    if (found == arriving.end()) return {};
    PieceSteps steps = std::move(found->second);
    arriving.erase(found);
    return steps;
  }

  const NodesOfStage* stage_nodes;
  std::vector<NodeState> nodes;                              // by number in the stage
  std::vector<std::optional<Tensor>> gradients;              // that of its value, as far as known
  std::vector<std::pair<uint32_t, WeightOperands>> put_off;  // by node, in the order of their dX
  std::map<uint32_t, SharedOperand> shared_operands;         // by the first node that takes them
  std::map<uint32_t, Tensor> shared_gradients;
  std::map<uint32_t, PieceSteps> arriving;  // by buffer
  // What products of experts have sent on, piece by piece, by the node that would send it.
  std::map<uint32_t, Tensor> sent_ahead;
  ActivationsOnHost on_host;
};

struct Plan {
  const Network& network;
  const Strategy& strategy;
  const Training& training;
  PlanBuilder& builder;
  Parameters& parameters;
  ChunkState* chunk = nullptr;  // the one being worked on
  ActionContext action = {};    // whose it is
  uint32_t expert_rank = 0;     // which share of the experts this rank has
  // By node and micro-batch, of those asked for so far.
  std::map<std::pair<uint32_t, int32_t>, ExpertRouting> routings = {};

  const NetworkNode& Node(uint32_t node) const { return network.nodes[node]; }
  NodeState& State(uint32_t node) const { return chunk->StateOf(node); }
  std::optional<Tensor>& Gradient(uint32_t node) const { return chunk->GradientOf(node); }
  const Tensor& Input(uint32_t node, size_t i = 0) const {
    return State(network.nodes[node].inputs[i]).value;
  }
  // What the tokens of the micro-batch (or chunk of one) that is being worked on choose; good until
  // that of another is asked for.
  const ExpertRouting& RoutingOf(uint32_t route);
  // Those of a node that routes, for the same micro-batch.
  std::vector<double> RoutingAttributes(uint32_t node) const;
  double element() const { return builder.element(); }
  ElementwiseCosts costs() const { return {training.kernels, element()}; }
  // A tensor for the value of a node that lies like `like`.
  Tensor MakeValue(uint32_t node, const Tensor& like) {
    const NetworkNode& shape = network.nodes[node];
    const uint64_t rows = shape.of_choices ? like.rows : shape.rows;
    return builder.MakeTensor(shape.name, rows, shape.columns, like.layout);
  }
  // A tensor for the gradient of a node's value, named "d NAME".
  Tensor MakeGradient(uint32_t node, const Layout& layout) {
    const NetworkNode& shape = network.nodes[node];
    const uint64_t rows = shape.of_choices ? State(node).value.rows : shape.rows;
    return builder.MakeTensor("d " + shape.name, rows, shape.columns, layout);
  }
  // Adds to the gradient of an input of `node`, in the layout in which its value rests.
  void PassBack(uint32_t node, Tensor gradient, size_t i = 0);
  // The gradient of the node's matrix: made here and now, or put off.
  void PassToWeight(uint32_t node, WeightOperands operands);
};

}  // namespace rehearse
