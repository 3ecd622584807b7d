#include "workloads/planner/pipeline.h"

#include <algorithm>

#include <fmt/format.h>

#include "sim/schedule/attention_part.h"

namespace rehearse {

const std::vector<PipelineScheduleFacts>& PipelineSchedules() {
  using Schedule = PipelineSchedule;
  static const std::vector<PipelineScheduleFacts> schedules = {
      {Schedule::kGPipe, "gpipe", "all micro-batches forward, then all backward",
       "Huang et al. 2019, arXiv 1811.06965", 1, 1},
      {Schedule::kOneForwardOneBackward, "1f1b", "one forward and one backward in turn",
       "Narayanan et al. 2021, arXiv 2104.04473 (PipeDream-Flush)", 1, 1},
      {Schedule::kInterleaved, "interleaved", "1f1b over several stages of each rank",
       "Narayanan et al. 2021, arXiv 2104.04473, section 2.2", 2, 0},
      {Schedule::kBreadthFirst, "breadth-first", "all micro-batches through a stage of each rank",
       "Lamy-Poirier 2023, arXiv 2211.05953", 1, 0},
      {Schedule::kZeroBubbleH1, "zb-h1", "weight gradients fill the end; memory of 1f1b",
       "Qi et al. 2023, arXiv 2401.10241", 1, 1},
      {Schedule::kZeroBubbleH2, "zb-h2", "weight gradients fill both ends; twice the memory",
       "Qi et al. 2023, arXiv 2401.10241", 1, 1},
      {Schedule::kZeroBubble1p, "zb-1p", "weight gradients by times, memory of 1f1b",
       "Qi et al. 2023, arXiv 2401.10241, section 3.1", 1, 1},
      {Schedule::kZeroBubble2p, "zb-2p", "weight gradients by times, twice the memory",
       "Qi et al. 2023, arXiv 2401.10241, section 3.1", 1, 1},
      {Schedule::kZeroBubbleV, "zb-v", "down and back up the ranks, weight gradients separate",
       "Qi et al. 2024, arXiv 2405.15362", 2, 2},
      {Schedule::kDualPipe, "dualpipe", "from both ends, on two copies of the model",
       "DeepSeek-V3 2024, arXiv 2412.19437, section 3.2.1", 1, 1},
      {Schedule::kDualPipeV, "dualpipev", "dualpipe on one copy that goes down and back up",
       "DeepSeek 2025, github.com/deepseek-ai/DualPipe", 2, 2},
  };
  return schedules;
}

namespace {

const PipelineScheduleFacts& FactsOf(PipelineSchedule schedule) {
  const auto& all = PipelineSchedules();
  return *std::find_if(all.begin(), all.end(),
                       [&](const auto& facts) { return facts.schedule == schedule; });
}

void CheckNumbers(PipelineSchedule schedule, uint32_t ranks, uint32_t a_rank,
                  uint32_t micro_batches, const Place& place) {
  const PipelineScheduleFacts& facts = FactsOf(schedule);
  const auto fail = [&](const std::string& found, const std::string& expected) {
    throw Error(place,
                fmt::format("schedule \"{}\": found {}, expected {}", facts.name, found, expected));
  };
  const std::string stages_found = fmt::format("{} stages per rank", a_rank);
  if (a_rank < facts.fewest_stages_a_rank) {
    fail(stages_found, fmt::format("\"virtual\": {}{}", facts.fewest_stages_a_rank,
                                   facts.most_stages_a_rank == 0 ? " or more" : ""));
  }
  if (facts.most_stages_a_rank > 0 && a_rank > facts.most_stages_a_rank) {
    std::string others;
    for (const PipelineScheduleFacts& other : PipelineSchedules()) {
      const bool takes = a_rank >= other.fewest_stages_a_rank &&
                         (other.most_stages_a_rank == 0 || a_rank <= other.most_stages_a_rank);
      if (takes) others += fmt::format("{}\"{}\"", others.empty() ? "" : ", ", other.name);
    }
    fail(stages_found, fmt::format("{}; {} take{} that many", facts.most_stages_a_rank, others,
                                   others.find(',') == std::string::npos ? "s" : ""));
  }
  const std::string found = fmt::format("{} micro-batches", micro_batches);
  if (schedule == PipelineSchedule::kInterleaved && micro_batches % ranks != 0) {
    fail(found, fmt::format("a multiple of the {} ranks of the pipeline", ranks));
  }
  const bool takes_both_ways = schedule == PipelineSchedule::kZeroBubbleV ||
                               schedule == PipelineSchedule::kDualPipe ||
                               schedule == PipelineSchedule::kDualPipeV;
  if (takes_both_ways && micro_batches < 2 * ranks) {
    fail(found, fmt::format("at least {}, twice the ranks of the pipeline", 2 * ranks));
  }
  if (schedule != PipelineSchedule::kDualPipe) return;
  if (ranks % 2 != 0) fail(fmt::format("{} stages", ranks), "an even number of stages");
  if (micro_batches % 2 != 0) fail(found, "an even number, half of them from each end");
}

}  // namespace

PipelineOrder OrderOf(PipelineSchedule schedule, uint32_t ranks, uint32_t a_rank,
                      uint32_t micro_batches, const StageTimes& times, const Place& place,
                      bool pairs_passes) {
  CheckNumbers(schedule, ranks, a_rank, micro_batches, place);
  const StagePlaces one = OneStageARank(ranks);
  switch (schedule) {
    case PipelineSchedule::kGPipe:
      return {one, GPipe(ranks, micro_batches)};
    case PipelineSchedule::kOneForwardOneBackward:
      return {one, pairs_passes ? OneForwardOneBackwardInPairs(ranks, micro_batches)
                                : OneForwardOneBackward(ranks, micro_batches)};
    case PipelineSchedule::kInterleaved:
      return {Looped(ranks, a_rank), pairs_passes ? InterleavedInPairs(ranks, a_rank, micro_batches)
                                                  : Interleaved(ranks, a_rank, micro_batches)};
    case PipelineSchedule::kBreadthFirst:
      return {Looped(ranks, a_rank), BreadthFirst(ranks, a_rank, micro_batches)};
    case PipelineSchedule::kZeroBubbleH1:
      return {one, ZeroBubbleH1(ranks, micro_batches)};
    case PipelineSchedule::kZeroBubbleH2:
      return {one, ZeroBubbleH2(ranks, micro_batches)};
    case PipelineSchedule::kZeroBubble1p:
      return {one, ZeroBubbleByTimes(ranks, micro_batches, ranks, times)};
    case PipelineSchedule::kZeroBubble2p:
      return {one, ZeroBubbleByTimes(ranks, micro_batches, 2 * ranks, times)};
    case PipelineSchedule::kZeroBubbleV:
      return {VShaped(ranks), ZeroBubbleV(ranks, micro_batches)};
    case PipelineSchedule::kDualPipe:
      return {BothWays(ranks), DualPipe(ranks, micro_batches)};
    case PipelineSchedule::kDualPipeV:
      return {VShaped(ranks), DualPipeV(ranks, micro_batches)};
  }
  internal::FailCheck(__FILE__, __LINE__, "unknown schedule of a pipeline");
}

StageTimes TimesByFlops(const Network& network, const Training& training) {
  Network products = network;
  std::erase_if(products.nodes,
                [](const NetworkNode& node) { return node.kind == NodeKind::kAttention; });
  const double of_products = ForwardFlops(products).value();
  const double forward = ForwardFlops(network).value();
  const double attention = forward - of_products;
  const double again = RecomputedFlops(network, training).value();
  // Each gradient of a product takes as long as the product; those of a core two and a half times
  // as long.
  return {1, (of_products + 2.5 * attention + again) / forward, of_products / forward, 0,
          KeptForWeights(network, training)};
}

double KeptForWeights(const Network& network, const Training& training) {
  if (training.FusesAttention() || training.recomputation != Recomputation::kNone) return 1;
  const double element = SizeOf(training.precision).value();
  double products = 0;  // bytes
  double scores = 0;
  for (const NetworkNode& node : network.nodes) {
    const double rows = static_cast<double>(node.rows);
    if (node.kind == NodeKind::kProduct && node.layer >= 0) {
      const NetworkMatrix& matrix = network.matrices[*node.matrix];
      products += rows * static_cast<double>(matrix.k + matrix.n) * element;
    }
    if (node.kind != NodeKind::kAttention) continue;
    // As workloads/planner/attention_rules.cc stores them: two results and a mask.
    scores += rows * node.attributes[kAttentionSequence] * node.attributes[kAttentionGroups] *
              node.attributes[kAttentionHeadsOfGroup] * (2 * element + 1);
  }
  return products > 0 ? products / (products + scores) : 1;
}

}  // namespace rehearse
