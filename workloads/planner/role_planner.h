// Plans the role of one rank of a pipeline: the actions of its stages in turn, and what repeats.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "sim/base/error.h"
#include "workloads/planner/actions.h"
#include "workloads/planner/plan.h"
#include "workloads/planner/repeated_block.h"
#include "workloads/planner/stage_planner.h"
#include "workloads/planner/stages.h"

namespace rehearse {

class RolePlanner {
 public:
  // The stages of the rank, lowest first. All arguments must outlive the planner.
  RolePlanner(const StepSetup& step, const std::vector<const Stage*>& stages,
              StepCommunicators* communicators, const Place& place);
  RolePlanner(const RolePlanner&) = delete;
  RolePlanner& operator=(const RolePlanner&) = delete;

  // `actions` are those of the rank, in a possible order (CheckActions). Of the actions that
  // repeat, blocks are planned until two are alike; the other blocks except the last are then
  // copies (Repeat). Returns nothing if what follows them cannot be expressed that way. Called
  // once.
  std::optional<Role> Run(const std::vector<Action>& actions,
                          const std::optional<PeriodicActions>& period = std::nullopt);
  // So far.
  const Role& role() const { return builder_.role(); }
  // What slots named after each forward pass.
  const std::vector<std::pair<StateSlot, BufferId>>& noted() const { return noted_; }
  void set_notes_slots() { notes_slots_ = true; }

 private:
  // By actions, which of the rank's stages are gathered before them and summed after them.
  struct DataTraffic {
    std::multimap<size_t, uint32_t> gathers;
    std::multimap<size_t, uint32_t> sums;
  };
  DataTraffic DataTrafficOf(const std::vector<Action>& actions) const;
  // Begins what is due at the action in this position.
  void BeginGathers(const Action& action, size_t position, DataTraffic* traffic);
  void BeginSums(size_t position, DataTraffic* traffic);
  // The state of the role between two blocks.
  struct Mark {
    uint32_t op = 0;
    uint32_t buffer = 0;
    std::vector<std::vector<uint32_t>> micro_batches;  // by stage: under way
  };

  // What all stages keep of their messages begins, or ceases to live.
  void TouchMessages(const char* what, std::vector<BufferId>* kept);
  StagePlanner& PlannerOf(const Action& action);
  void Do(const Action& action, bool makes_last_gradients);
  // Whether the two take turns.
  bool ArePaired(const Action& forward, const Action& backward) const;
  void AwaitFrom(const std::vector<Action>& actions, size_t next);
  // One of the two passes that go side by side, in parts.
  struct Side;
  void DoNext(Side* side);
  void DoTogether(const Action& forward, const Action& backward, bool makes_last_gradients);
  void TakeTurns(Side* sides);
  void FollowOrder(Side* sides);
  Mark MarkHere() const;
  std::optional<Repeat> BodyBetween(const std::vector<Mark>& marks,
                                    const PeriodicActions& period) const;

  const StepSetup& step_;
  PlanBuilder builder_;
  Parameters parameters_;
  Plan plan_;
  MessageStreams streams_;
  std::vector<StagePlanner> stages_;
  bool notes_slots_ = false;
  std::vector<std::pair<StateSlot, BufferId>> noted_;
};

}  // namespace rehearse
