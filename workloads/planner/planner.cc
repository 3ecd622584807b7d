#include "workloads/planner/planner.h"

#include <algorithm>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "sim/schedule/expert_routing.h"
#include "workloads/planner/role_planner.h"
#include "workloads/planner/split_check.h"
#include "workloads/planner/stages.h"
#include "workloads/strategies/strategy_presets.h"

namespace rehearse {
namespace {

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
  if (result.shard) {
    std::erase_if(result.shard->axes, [&](uint32_t axis) { return sizes[axis] == 1; });
    if (result.shard->axes.empty()) result.shard.reset();
  }
  if (result.context && sizes[result.context->axis] == 1) result.context.reset();
  return result;
}

// The data come in the layout that the first product to take them wants.
const Layout& InputLayout(const Network& network, const Strategy& strategy, uint32_t input) {
  const auto takes = [&](const NetworkNode& node) {
    return node.kind == NodeKind::kProduct && node.inputs.front() == input;
  };
  const auto product = std::find_if(network.nodes.begin(), network.nodes.end(), takes);
  CHECK(product != network.nodes.end());
  return strategy.products[*product->matrix].x;
}

// The layout in which each node's value rests: a product's is the strategy's choice, others keep
// that of their last input (a residual, that of the stream it adds to), joined heads that of the
// queries.
std::vector<Layout> RestsOf(const Network& network, const Strategy& strategy) {
  std::vector<Layout> rests;
  for (uint32_t i = 0; i < network.nodes.size(); ++i) {
    const NetworkNode& node = network.nodes[i];
    if (node.matrix) {
      rests.push_back(strategy.products[*node.matrix].rest);
    } else if (node.kind == NodeKind::kInput) {
      rests.push_back(InputLayout(network, strategy, i));
    } else {
      const bool is_join = node.kind == NodeKind::kJoinHeads;
      rests.push_back(rests[is_join ? node.inputs.front() : node.inputs.back()]);
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
Network Divided(const Network& network, uint32_t parts) {
  Network part = network;
  for (NetworkNode& node : part.nodes) node.rows /= parts;
  return part;
}

// How many blocks the ops of one may refer back to.
uint32_t BlocksBack(const std::vector<Action>& own, uint32_t of_block) {
  return std::max(1u, (MostInFlight(own) + of_block - 1) / of_block);
}

// Whether the rank has blocks of so many micro-batches, and enough of them for what is planned to
// be shorter than what is copied.
bool HasShortBlocks(const std::vector<Action>& own, uint32_t of_block, uint32_t copies) {
  constexpr uint32_t kAround = 4;  // two that are compared, one copied and the last
  const std::optional<PeriodicActions> period = FindPeriod(own, of_block, copies);
  return period &&
         (period->end - period->begin) / period->length >= BlocksBack(own, of_block) + kAround;
}

// How many micro-batches a repeating block is taken to have, the same on all ranks: one if that
// will do. If ranks have several stages, orders may go in rounds of as many micro-batches as there
// are ranks. If passes go in pairs, blocks are as long as they can be, because none goes across
// their ends.
uint32_t MicroBatchesOfBlock(const std::vector<std::vector<Action>>& actions_of_rank,
                             const StagePlaces& places, bool pairs_passes) {
  for (const uint32_t few : {1u, places.ranks}) {
    const auto has_short = [&](const std::vector<Action>& own) {
      return HasShortBlocks(own, few, places.copies);
    };
    if (!pairs_passes && std::all_of(actions_of_rank.begin(), actions_of_rank.end(), has_short))
      return few;
  }
  uint32_t most = 0;
  for (const std::vector<Action>& own : actions_of_rank) most = std::max(most, MostInFlight(own));
  if (!places.HasSeveralOnARank()) return most;
  return (most + places.ranks - 1) / places.ranks * places.ranks;
}

uint32_t ExpertRanks(const Strategy& strategy) {
  uint32_t ranks = 1;
  for (const uint32_t axis : strategy.experts->axes) ranks *= strategy.mesh.AxisSize(axis);
  return ranks;
}

// The part of the experts that the rank has.
uint32_t ExpertRankOf(const Strategy& strategy, uint32_t rank) {
  uint32_t part = 0;
  for (const uint32_t axis : strategy.experts->axes) {
    const uint32_t size = strategy.mesh.AxisSize(axis);
    part = part * size + rank / strategy.mesh.Stride(axis) % size;
  }
  return part;
}

// Whether ranks of the stages with other experts have more or fewer rows for them.
bool HasUnevenExperts(const StepSetup& step, const std::vector<const Stage*>& stages) {
  if (!step.strategy.experts || step.strategy.experts->axes.empty()) return false;
  for (const Stage* stage : stages) {
    for (uint32_t i = stage->node_begin(); i < stage->node_end(); ++i) {
      const NetworkNode& node = step.network.nodes[i];
      if (node.kind == NodeKind::kRoute && !MakeRouting(node.attributes).IsEven()) return true;
    }
  }
  return false;
}

// How values go to other ranks: if ranks hold the same rows, in parts.
std::vector<Layout> CrossingsOf(const StepSetup& step, const std::vector<uint32_t>& scattered) {
  std::vector<Layout> crossings = step.rests;
  std::vector<uint32_t> sizes;
  for (const MeshAxis& axis : step.strategy.mesh.axes()) sizes.push_back(axis.size);
  for (size_t node = 0; node < crossings.size(); ++node) {
    for (const uint32_t axis : scattered) {
      Layout cut = crossings[node];
      if (cut[axis] != B()) continue;
      uint8_t level = 0;
      for (const Placement& placement : cut) level += IsSplit(placement, 0) ? 1 : 0;
      cut[axis] = S(0, level);
      if (step.network.nodes[node].rows % Pieces(cut, sizes, 0) == 0) crossings[node] = cut;
    }
  }
  return crossings;
}

// Checked before anything is planned; the limit is a gigabyte or two. Going through the network
// once, forward and back, is a pass.
void CheckSize(const StepSetup& step, uint32_t passes, const Place& place) {
  constexpr uint64_t kMost = 100'000;
  const uint64_t visits = uint64_t{step.network.nodes.size()} * passes * step.strategy.chunks;
  if (visits <= kMost) return;
  const std::string chunks =
      step.strategy.chunks > 1 ? fmt::format(" x {} chunks", step.strategy.chunks) : "";
  throw Error(
      place,
      fmt::format("the step is too large to be planned: found {} values of the network"
                  " ({} layers) x {} micro-batches{} = {}, expected at most {}",
                  step.network.nodes.size(), step.network.layers, passes, chunks, visits, kMost));
}

Role PlanRole(const StepSetup& step, const std::vector<const Stage*>& stages,
              const std::vector<Action>& own, uint32_t of_block, uint32_t copies,
              StepCommunicators* communicators, const Place& place, const KeptCheck& check_kept) {
  std::optional<PeriodicActions> period;
  if (of_block > 0) period = FindPeriod(own, of_block, copies);
  if (period) period->blocks_back = BlocksBack(own, of_block);
  RolePlanner planner(step, stages, communicators, place);
  if (check_kept) check_kept(planner.role());
  std::optional<Role> role = planner.Run(own, period);
  if (!role) {
    CheckSize(step, step.network.micro_batches, place);
    role = RolePlanner(step, stages, communicators, place).Run(own);
  }
  return std::move(*role);
}

// What the rank's layers keep for their way back: seen in a step of one micro-batch.
KeptOfLayers KeptBy(const StepSetup& step, const std::vector<const Stage*>& stages,
                    StepCommunicators communicators, const Place& place) {
  StepSetup alone = step;
  alone.offloaded.clear();
  alone.pairs_passes = false;
  RolePlanner planner(alone, stages, &communicators, place);
  planner.set_notes_slots();
  std::vector<Action> actions;
  for (const Stage* stage : stages) actions.push_back({stage->index, 0, ActionKind::kForward});
  for (size_t i = stages.size(); i-- > 0;)
    actions.push_back({stages[i]->index, 0, ActionKind::kBackward});
  for (const ActionKind kind : {ActionKind::kSynchronize, ActionKind::kUpdate})
    actions.push_back({stages.front()->index, 0, kind});
  const std::optional<Role> role = planner.Run(actions);
  CHECK(role.has_value());
  return FindKept(*role, planner.noted());
}

void CheckOffloadedLayers(const Training& training, const std::vector<Stage>& stages,
                          const Place& place) {
  if (training.offloaded_layers == 0) return;
  for (const Stage& stage : stages) {
    const auto layers = std::count_if(stage.units.begin(), stage.units.end(),
                                      [](const Unit& unit) { return unit.layer >= 0; });
    if (layers > training.offloaded_layers) continue;
    throw Error(place,
                fmt::format("the activations of {} layers are offloaded, but stage {} has {}; "
                            "expected fewer than it has, since the way back through the last "
                            "one follows at once",
                            training.offloaded_layers, stage.index, layers));
  }
}

void CheckRecomputedLayers(const Training& training, const StagePlaces& places,
                           const Place& place) {
  const size_t found = training.recomputed_layers.size();
  if (found <= 1 || found == places.stages()) return;
  throw Error(place, fmt::format("recomputed layers of {} stages, expected one number for all, or "
                                 "{}, one for each",
                                 found, places.stages()));
}

// By layer: whether its stage computes it again. Stages of a second copy do the same as those of
// the first.
std::vector<bool> LayersAgain(const Training& training, const std::vector<Stage>& stages) {
  std::vector<bool> again;
  for (const Stage& stage : stages) {
    uint32_t layer_of_stage = 0;
    for (const Unit& unit : stage.units) {
      if (unit.layer < 0) continue;
      const auto layer = static_cast<size_t>(unit.layer);
      if (again.size() <= layer) again.resize(layer + 1, false);
      again[layer] = training.ComputesAgain(stage.index, layer_of_stage);
      ++layer_of_stage;
    }
  }
  return again;
}

}  // namespace

Schedule PlanPipeline(const Network& network, const Training& training, const Strategy& strategy,
                      const StagePipeline& pipeline, const Place& place, uint32_t few_micro_batches,
                      ProgressObserver& observer, const KeptCheck& check_kept) {
  const std::vector<Action>& actions = pipeline.actions;
  const StagePlaces& places = pipeline.places;
  std::optional<Network> divided;
  if (strategy.chunks > 1) divided = Divided(network, strategy.chunks);
  StepSetup step{divided ? *divided : network,
                 Normalized(strategy),
                 training,
                 {},
                 {},
                 pipeline.overlaps_messages,
                 pipeline.batches_messages,
                 pipeline.keeps_messages,
                 pipeline.pairs_passes,
                 pipeline.pair_order,
                 pipeline.validation,
                 places.IsLooped()};
  if (step.pairs_passes && strategy.experts && strategy.experts->pieces > 1) {
    throw Error(
        place,
        "\"expert_pieces\" with \"pair_passes\": tokens travel beside the other pass of a pair "
        "already; expected one of them");
  }
  // Of micro-batches that are kept once, some are still planned.
  CheckSize(step, std::min(network.micro_batches, few_micro_batches), place);
  step.rests = RestsOf(network, step.strategy);
  step.crossings = CrossingsOf(step, pipeline.scattered_axes);
  CheckSplits(network, step.strategy, step.rests, place);
  const std::vector<Stage> stages =
      CutIntoStages(step.network, pipeline.units_of_stage, places, place);
  CheckRecomputedLayers(training, places, place);
  CheckOffloadedLayers(training, stages, place);
  CheckActions(actions, places, network.micro_batches, place);
  const bool recomputes = training.recomputation == Recomputation::kFull;
  for (const Action& action : actions) {
    if (recomputes || action.kind != ActionKind::kRecompute) continue;
    throw Error(place,
                fmt::format("{}: this training keeps what it needs; expected full recomputation",
                            Describe(action)));
  }

  StepCommunicators communicators(step.strategy.mesh, ModelAxes(step.strategy), places, place);
  std::vector<std::vector<Action>> actions_of_rank;
  for (uint32_t rank = 0; rank < places.ranks; ++rank)
    actions_of_rank.push_back(OfRank(actions, places, rank));
  const uint32_t of_block =
      network.micro_batches > few_micro_batches
          ? MicroBatchesOfBlock(actions_of_rank, places, pipeline.pairs_passes)
          : 0;
  Schedule schedule;
  observer.Begin("planning", "ranks of the pipeline", places.ranks);
  for (uint32_t rank = 0; rank < places.ranks; ++rank) {
    std::vector<const Stage*> own;
    for (const uint32_t stage : places.StagesOf(rank)) own.push_back(&stages[stage]);
    const bool differ = HasUnevenExperts(step, own);
    const auto first = static_cast<uint32_t>(schedule.roles.size());
    const uint32_t kinds = differ ? ExpertRanks(step.strategy) : 1;
    for (step.expert_rank = 0; step.expert_rank < kinds; ++step.expert_rank) {
      if (training.offloaded_layers > 0) step.offloaded = KeptBy(step, own, communicators, place);
      schedule.roles.push_back(PlanRole(step, own, actions_of_rank[rank], of_block, places.copies,
                                        &communicators, place, check_kept));
      if (differ) schedule.roles.back().name += fmt::format(", experts {}", step.expert_rank);
      observer.Done(rank + (step.expert_rank + 1.0) / kinds);
    }
    for (uint32_t in_mesh = 0; in_mesh < step.strategy.mesh.size(); ++in_mesh) {
      const uint32_t kind = differ ? ExpertRankOf(step.strategy, in_mesh) : 0;
      schedule.role_of_rank.push_back(first + kind);
    }
  }
  schedule.communicators = communicators.all();
  schedule.tokens = network.tokens;
  schedule.token_name = network.token_name;
  schedule.model_flops = network.model_flops;
  schedule.hardware_flops =
      network.model_flops + RecomputedFlops(network, training, LayersAgain(training, stages));
  return schedule;
}

Schedule PlanStages(const Network& network, const Training& training, const Strategy& strategy,
                    const std::vector<uint32_t>& units_of_stage, const std::vector<Action>& actions,
                    const Place& place, uint32_t few_micro_batches) {
  const auto stages = static_cast<uint32_t>(units_of_stage.size());
  return PlanPipeline(network, training, strategy, {OneStageARank(stages), units_of_stage, actions},
                      place, few_micro_batches);
}

Schedule PlanStep(const Network& network, const Training& training, const Strategy& strategy,
                  const Place& place, const KeptCheck& check_kept) {
  const auto units = static_cast<uint32_t>(UnitsOf(network).size());
  return PlanPipeline(network, training, strategy,
                      {OneStageARank(1), {units}, OneAfterAnother(1, network.micro_batches)}, place,
                      kFewMicroBatches, NoObserver(), check_kept);
}

Schedule PlanSerialStep(const Network& network, const Training& training, uint32_t chunks) {
  Network serial = Divided(network, chunks);
  serial.micro_batches *= chunks;
  Training alone = training;  // where parameters and state lie changes no number
  alone.optimizer_on_host = alone.parameters_on_host = false;
  return PlanStep(serial, alone, MakeCombined(DataParallelPreset(), serial));
}

}  // namespace rehearse
