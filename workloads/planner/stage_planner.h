// Plans what the actions of one stage do; a rank of a pipeline has one or several of these
// (workloads/planner/role_planner.h), which write the same role.
//
// What is known about a micro-batch between its first and last action is kept separately for each,
// so that several may be under way. A value crosses to a neighbouring stage in its resting layout,
// each rank to the one with the same coordinates; on request, ranks along some axes that hold the
// same values send a part each, and the receivers gather them. With overlap, a message is awaited
// from one action ahead and nothing waits for what is sent, so messages travel beside the work on
// other micro-batches. Messages of each kind have a stream of their own, in which they keep the
// order of the actions. A stage on the same rank is handed the tensor itself.
//
// If a strategy works in chunks, they take turns block by block (ATP, arXiv 2301.08658, Fig. 8): a
// turn ends with the first product whose result must be communicated, so that this happens while
// the other chunks have their turns. In Megatron-LM's layer these are the attention block and the
// MLP.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "workloads/planner/actions.h"
#include "workloads/planner/layer_parts.h"
#include "workloads/planner/offload.h"
#include "workloads/planner/plan.h"
#include "workloads/planner/stages.h"

namespace rehearse {

// What all stages of a step have in common.
struct StepSetup {
  const Network& network;  // for one chunk of a micro-batch
  Strategy strategy;       // axes of size 1 say nothing in its layouts
  Training training;
  std::vector<Layout> rests;      // by node: how its value lies between producer and consumers
  std::vector<Layout> crossings;  // and how it travels to another rank of the pipeline
  bool overlaps_messages = true;
  bool batches_messages = false;
  bool keeps_messages = false;
  bool pairs_passes = false;
  PairOrder pair_order = {};  // empty: passes take turns wherever one has sent tokens
  AdamAgain validation = kAdamOnce;
  // Ranks begin to gather and to sum the parameters and gradients of whole stages, all at the same
  // time.
  bool aligns_data_traffic = false;
  uint32_t expert_rank = 0;     // which share of the experts the planned ranks have
  KeptOfLayers offloaded = {};  // by the planned ranks, of the layers that offload anything
};

// The streams of a role's messages, made when they are first asked for. A rank that sends to two
// others has a stream for each, so that one that is not ready does not hold up the other.
class MessageStreams {
 public:
  enum Kind : uint8_t { kReceiveValues, kSendValues, kReceiveGradients, kSendGradients, kKinds };
  explicit MessageStreams(PlanBuilder* builder) : builder_(*builder) {}
  StreamId Of(Kind kind, uint32_t other_rank);

 private:
  PlanBuilder& builder_;
  std::map<std::pair<Kind, uint32_t>, StreamId> streams_;
};

class StagePlanner {
 public:
  // All arguments must outlive the planner.
  StagePlanner(const StepSetup& step, const Stage& stage, Plan* plan, MessageStreams* streams);

  const Stage& stage() const { return stage_; }
  // A neighbour on the same rank.
  void set_before(StagePlanner* before) { before_ = before; }
  void set_behind(StagePlanner* behind) { behind_ = behind; }

  // Posts the receives of what the action needs from other ranks, unless they are already posted.
  void Await(const Action& action);
  // What is planned from now on belongs to the action.
  void Enter(const Action& action, bool makes_last_gradients, bool puts_off_weights = false);
  // All actions except those that end the step.
  void Do(const Action& action, bool makes_last_gradients);
  // The parts of a forward or backward pass, each to be done after Enter: parts of another action
  // may come in between. If `by_node`, for strategies without chunks, each node is a part.
  struct Part {
    PassPart kind = PassPart::kForwardAttention;
    std::function<void()> work;
  };
  std::vector<Part> PartsOf(const Action& action, bool by_node);
  // For a backward pass in parts that puts its weights' gradients off: makes those that it has put
  // off so far, and, once all parts are done, ends the pass.
  void MakePutOff();
  void EndApart(const Action& action);

  // Where messages and results of all micro-batches lie that are kept the whole step.
  std::vector<Tensor> KeptMessages() const;

  // What the slots of a micro-batch under way name, of its first chunk.
  std::vector<std::pair<StateSlot, BufferId>> NotedSlots(uint32_t micro_batch);

  // ---- for blocks that repeat: the micro-batches under way ----
  std::vector<uint32_t> UnderWay() const;
  bool HasNone() const { return micro_batches_.empty(); }
  // Whether all buffers that they keep come from this one on.
  bool HoldsOnlyFrom(uint32_t first_buffer) const;
  // From now on their numbers are higher by `count`.
  void SkipMicroBatches(uint32_t count);

 private:
  struct MicroBatch {
    std::vector<ChunkState> chunks;
    bool ran_forward = false;
    bool awaits_gradients = false;
    bool is_recomputed = false;
  };
  struct Visit {
    uint32_t node = 0;
    const Unit* unit = nullptr;
  };

  void EnterGraphOf(uint32_t node);
  std::vector<uint32_t> Results() const;
  bool Recomputes() const { return step_.training.recomputation == Recomputation::kFull; }
  // The place of the unit among the stage's layers; nothing if it is no layer.
  std::optional<uint32_t> LayerOfStage(const Unit& unit) const;
  uint32_t OffloadedLayers() const;
  void OffloadAfter(const Unit& unit);
  void ReturnBefore(const Unit& unit);
  void ReturnOfAllChunks(const Unit& unit);
  // Whether the unit is a layer that is fully recomputed.
  bool ComputesAgain(const Unit& unit) const;
  void FreeCached(const Visit& visit);
  void RecomputeOps(const Unit& unit, const std::vector<Visit>& visits);
  void CastAgain(const Unit& unit, uint32_t value);
  void TakeOperandOfLast(const Unit& unit);
  void ForwardAgain(const Unit& unit, const std::vector<Visit>& visits);
  MicroBatch& Begin(uint32_t micro_batch);
  void BeginForward();
  void EndForward();
  void BeginBackward();
  void EndBackward();
  std::vector<Part> PartsOfForward(bool by_node);
  std::vector<Part> PartsOfBackward(const Action& action, bool by_node);
  void AddWayBack(const Unit& unit, bool recomputes_layers, bool recomputes_ops, bool by_node,
                  std::vector<Part>* parts);
  bool EndsSumsWithLayer() const;
  void RecomputeAll();
  void MakeInputs();
  static std::vector<Visit> VisitsOf(const Unit& unit);
  // Those that full recomputation of a layer comes to.
  std::vector<Visit> VisitsAgain(const Unit& unit) const;
  std::vector<Visit> AllVisits() const;
  void Forward(Phase phase, const std::vector<Visit>& visits);
  void Backward(const std::vector<Visit>& visits);
  bool EndsTurn(uint32_t node, size_t first_op) const;
  void Choose(uint32_t micro_batch, Phase phase);
  void SetPhase(Phase phase, int32_t layer);
  PlanBuilder::Issue SendIssue() const;
  Tensor AsItCrosses(uint32_t node, const Tensor& tensor);
  template <typename Work>
  void ForEachChunk(const Work& work);
  template <typename Work>
  void TakeTurns(Phase phase, const std::vector<Visit>& visits, const Work& work);
  template <typename Work>
  void ForEachCrossing(const std::vector<uint32_t>& nodes, Phase phase, const Work& work);

  const StepSetup& step_;
  const Stage& stage_;
  std::unique_ptr<const NodesOfStage> nodes_;
  const std::vector<uint32_t> graphs_;  // by node (workloads/planner/layer_graphs.h)
  uint32_t layers_ = 0;
  Plan& plan_;
  PlanBuilder& builder_;
  ParameterGathering& gathering_;
  GradientSums& gradients_;
  MessageStreams& streams_;
  StagePlanner* before_ = nullptr;
  StagePlanner* behind_ = nullptr;
  std::map<uint32_t, MicroBatch> micro_batches_;  // those under way
  MicroBatch* current_ = nullptr;
  size_t way_back_begin_ = 0;  // the first op of the way back through the unit at hand
};

}  // namespace rehearse
