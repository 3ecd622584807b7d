// Plans the role of one stage of a step, action by action.
//
// What is known of a micro-batch between its first action and its last is kept apart for each, so
// that several may be under way. What crosses to a neighbouring stage does so in its resting
// layout, each rank to the one with the same coordinates; it is awaited from one action ahead, and
// nothing waits for what is sent, so that messages travel beside the work on other micro-batches.
// Messages of each kind have a stream of their own, in which they keep the order of the actions.
//
// Where a strategy works in chunks they take turns block by block (ATP, arXiv 2301.08658, Fig. 8):
// a turn ends with the first product whose result has to be communicated, so that this happens
// while the other chunks have theirs. In Megatron-LM's layer these are the attention block and the
// MLP.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <vector>

#include "sim/base/error.h"
#include "workloads/planner/actions.h"
#include "workloads/planner/plan.h"
#include "workloads/planner/repeated_block.h"
#include "workloads/planner/stages.h"

namespace rehearse {

// What all stages of a step have in common.
struct StepSetup {
  Network network;    // for one chunk of a micro-batch
  Strategy strategy;  // in whose layouts axes of size 1 say nothing
  Training training;
  std::vector<Layout> rests;  // by node: how its value lies between its producer and its consumers
};

class StagePlanner {
 public:
  // All that is given must outlive the planner.
  StagePlanner(const StepSetup& step, const Stage& stage, StepCommunicators* communicators,
               const Place& place);
  StagePlanner(const StagePlanner&) = delete;
  StagePlanner& operator=(const StagePlanner&) = delete;

  // `actions` are those of the stage, in a possible order (CheckActions). Of those that are said to
  // repeat, blocks are planned until two are alike; the other blocks but the last are then copies
  // (Repeat). Nothing where what follows them cannot be said like that. Called once.
  std::optional<Role> Run(const std::vector<Action>& actions,
                          const std::optional<PeriodicActions>& period = std::nullopt);

 private:
  enum MessageKind : uint8_t {
    kReceiveValues,
    kSendValues,
    kReceiveGradients,
    kSendGradients,
    kMessageKinds
  };
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

  // The role so far, between two blocks.
  struct Mark {
    uint32_t op = 0;
    uint32_t buffer = 0;
    std::vector<uint32_t> micro_batches;  // under way
  };

  Mark MarkHere() const;
  std::optional<Repeat> BodyBetween(const std::vector<Mark>& marks, uint32_t micro_batches) const;
  bool HoldsOnlyFrom(uint32_t first_buffer) const;
  void SkipMicroBatches(uint32_t count);
  bool Recomputes() const { return step_.training.recomputation == Recomputation::kFull; }
  void Await(const Action& action);
  void Do(const Action& action);
  void RunForward();
  void RecomputeAll();
  void RunBackward(bool puts_off_weights);
  void RunWeights();
  void MakeInputs();
  std::vector<Visit> VisitsOf(const Unit& unit) const;
  std::vector<Visit> AllVisits() const;
  void Forward(Phase phase, const std::vector<Visit>& visits);
  void Backward(const std::vector<Visit>& visits);
  bool EndsTurn(uint32_t node, size_t first_op) const;
  void Choose(uint32_t micro_batch, Phase phase);
  void SetPhase(Phase phase, int32_t layer);
  StreamId StreamOf(MessageKind kind);
  template <typename Work>
  void ForEachChunk(const Work& work);
  template <typename Work>
  void TakeTurns(Phase phase, const std::vector<Visit>& visits, const Work& work);
  template <typename Work>
  void ForEachCrossing(const std::vector<uint32_t>& nodes, Phase phase, const Work& work);

  const StepSetup& step_;
  const Stage& stage_;
  PlanBuilder builder_;
  Parameters parameters_;
  Plan plan_;
  std::map<uint32_t, MicroBatch> micro_batches_;  // those under way
  MicroBatch* current_ = nullptr;
  std::array<StreamId, kMessageKinds> message_streams_;
};

}  // namespace rehearse
