// The orders of pipelines: that they can be carried out, how long ranks idle, what they keep.
//
// Idle times are found by a small player of actions that knows nothing of schedules or clusters,
// and compared with closed forms and with what the authors of zero bubble computed from their own
// profiled times.
#include "workloads/planner/pipeline_orders.h"

#include <algorithm>
#include <map>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "workloads/planner/pipeline.h"

namespace rehearse {
namespace pipeline_orders_test {

struct Played {
  double step = 0;     // from the first action of all to the last
  double longest = 0;  // from the first to the last of the rank for which that is longest
};

// Times are those of all stages of a rank (of one copy).
Played Play(const PipelineOrder& order, const StageTimes& times) {
  const StagePlaces& places = order.places;
  const double share = static_cast<double>(places.stages_of_copy()) / places.ranks;
  std::vector<std::vector<Action>> of_rank;
  for (uint32_t rank = 0; rank < places.ranks; ++rank) {
    of_rank.push_back(OfRank(order.actions, places, rank));
  }
  std::vector<size_t> next(places.ranks);
  std::vector<double> free(places.ranks);
  std::vector<double> begin(places.ranks, -1);
  std::map<std::pair<uint32_t, uint32_t>, double> values;
  std::map<std::pair<uint32_t, uint32_t>, double> gradients;
  Played played;
  for (bool advances = true; advances;) {
    advances = false;
    for (uint32_t rank = 0; rank < places.ranks; ++rank) {
      for (; next[rank] < of_rank[rank].size(); ++next[rank], advances = true) {
        const Action& action = of_rank[rank][next[rank]];
        const bool forward = action.kind == ActionKind::kForward;
        const bool back =
            action.kind == ActionKind::kBackward || action.kind == ActionKind::kInputGradient;
        double ready = 0;
        const bool ends =
            forward ? places.IsFirstOfCopy(action.stage) : places.IsLastOfCopy(action.stage);
        if ((forward || back) && !ends) {
          const uint32_t from = forward ? action.stage - 1 : action.stage + 1;
          const auto& made = forward ? values : gradients;
          const auto found = made.find({from, action.micro_batch});
          if (found == made.end()) break;
          ready = found->second + (places.rank_of[from] != rank ? times.message : 0);
        }
        double time = forward ? times.forward : back ? times.input_gradient : 0;
        if (action.kind == ActionKind::kBackward || action.kind == ActionKind::kWeightGradient) {
          time += times.weight_gradient;
        }
        const double starts = std::max(free[rank], ready);
        if (begin[rank] < 0) begin[rank] = starts;
        free[rank] = starts + time / share;
        if (forward) values[{action.stage, action.micro_batch}] = free[rank];
        if (back) gradients[{action.stage, action.micro_batch}] = free[rank];
      }
    }
  }
  for (uint32_t rank = 0; rank < places.ranks; ++rank) {
    EXPECT_EQ(next[rank], of_rank[rank].size());
    played.step = std::max(played.step, free[rank]);
    played.longest = std::max(played.longest, free[rank] - begin[rank]);
  }
  return played;
}

double Work(uint32_t micro_batches, const StageTimes& times) {
  return micro_batches * (times.forward + times.input_gradient + times.weight_gradient);
}

// How many stages of a rank each schedule is tried with.
std::vector<uint32_t> StagesOfARank(const PipelineScheduleFacts& facts) {
  if (facts.most_stages_a_rank > 0) return {facts.most_stages_a_rank};
  return {facts.fewest_stages_a_rank, 2, 3};
}

TEST(PipelineOrdersTest, EveryScheduleCanBeDone) {
  for (const PipelineScheduleFacts& facts : PipelineSchedules()) {
    for (const uint32_t ranks : {2u, 4u, 8u}) {
      for (const uint32_t micro_batches : {2 * ranks, 3 * ranks, 8 * ranks}) {
        for (const uint32_t a_rank : StagesOfARank(facts)) {
          SCOPED_TRACE(fmt::format("{}, {} ranks, {} micro-batches, {} stages a rank", facts.name,
                                   ranks, micro_batches, a_rank));
          const PipelineOrder order = OrderOf(facts.schedule, ranks, a_rank, micro_batches, {});
          EXPECT_NO_THROW(CheckActions(order.actions, order.places, micro_batches));
        }
      }
    }
  }
}

// ---- closed forms -------------------------------------------------------------------------------

TEST(PipelineOrdersTest, InterleavedIdlesForAsManyTimesLess) {
  // (p-1)/(v·m + p-1) of the step (Narayanan et al. 2021, section 2.2).
  const StageTimes times = {1, 1.25, 0.75, 0};
  for (const PipelineSchedule schedule :
       {PipelineSchedule::kInterleaved, PipelineSchedule::kBreadthFirst}) {
    for (const uint32_t ranks : {2u, 4u, 8u}) {
      for (const uint32_t a_rank : {2u, 3u, 4u}) {
        const uint32_t micro_batches = 4 * ranks;
        const PipelineOrder order = OrderOf(schedule, ranks, a_rank, micro_batches, times);
        const double step = Play(order, times).step;
        const double bubble = (ranks - 1.0) / (a_rank * micro_batches + ranks - 1.0);
        EXPECT_NEAR((step - Work(micro_batches, times)) / step, bubble, 1e-12);
      }
    }
  }
}

TEST(PipelineOrdersTest, WithEqualTimesZeroBubbleLeavesNone) {
  for (const PipelineSchedule schedule :
       {PipelineSchedule::kZeroBubbleH2, PipelineSchedule::kZeroBubbleV}) {
    for (const uint32_t ranks : {2u, 4u, 8u}) {
      const uint32_t micro_batches = 3 * ranks;
      const PipelineOrder order = OrderOf(
          schedule, ranks, schedule == PipelineSchedule::kZeroBubbleV ? 2 : 1, micro_batches, {});
      EXPECT_NEAR(Play(order, {}).longest, Work(micro_batches, {}), 1e-9) << ranks;
    }
  }
}

TEST(PipelineOrdersTest, DualPipeIdlesNoLongerThanItsPaperSays) {
  // (p/2 - 1)·(F&B + B - 3W) (arXiv 2412.19437, table 2): B is a whole backward pass, F&B a forward
  // and a backward pass as one, after which both results are there. Here the forward pass comes
  // first and hands on its result before the other begins: (p/2 - 1)·(F + B - 2W).
  constexpr double kForward = 1;
  constexpr double kBackward = 2;
  constexpr double kWeight = 1;
  for (const uint32_t ranks : {2u, 4u, 8u}) {
    const uint32_t micro_batches = 3 * ranks;
    const PipelineOrder order = OrderOf(PipelineSchedule::kDualPipe, ranks, 1, micro_batches, {});
    const double idle = Play(order, {}).step - Work(micro_batches, {});
    EXPECT_NEAR(idle, (ranks / 2 - 1.0) * (kForward + kBackward - 2 * kWeight), 1e-9) << ranks;
    EXPECT_LE(idle, (ranks / 2 - 1.0) * (kForward + kBackward + kBackward - 3 * kWeight));
  }
}

uint32_t MostKept(const PipelineOrder& order, uint32_t rank) {
  uint32_t now = 0;
  uint32_t most = 0;
  for (const Action& action : OfRank(order.actions, order.places, rank)) {
    if (action.kind == ActionKind::kForward) most = std::max(most, ++now);
    const bool ends =
        action.kind == ActionKind::kBackward || action.kind == ActionKind::kWeightGradient;
    if (ends) --now;
  }
  return most;
}

TEST(PipelineOrdersTest, RanksKeepWhatThePapersSay) {
  const auto most = [](PipelineSchedule schedule, uint32_t a_rank, uint32_t rank) {
    return MostKept(OrderOf(schedule, 4, a_rank, 16, {}), rank);
  };
  EXPECT_EQ(most(PipelineSchedule::kZeroBubbleH2, 1, 0), 7u);  // 2p - 1
  EXPECT_EQ(most(PipelineSchedule::kZeroBubble1p, 1, 3), 4u);  // p
  EXPECT_EQ(most(PipelineSchedule::kZeroBubble2p, 1, 0), 8u);  // 2p
  // 2p of stages half as large.
  EXPECT_EQ(most(PipelineSchedule::kZeroBubbleV, 2, 0), 8u);
  EXPECT_EQ(most(PipelineSchedule::kDualPipeV, 2, 0), 9u);  // 2p + 1
  // Narayanan et al.: (p-1)·2 + (v-1)·p ahead, and one under way.
  EXPECT_EQ(most(PipelineSchedule::kInterleaved, 2, 0), 11u);
  EXPECT_EQ(most(PipelineSchedule::kBreadthFirst, 2, 0), 32u);
}

// ---- published ----------------------------------------------------------------------------------

// Profiled times (ms) and the rates computed from them: arXiv 2401.10241, tables 9 and 5.
struct PublishedRates {
  const char* model;
  uint32_t ranks;
  uint32_t micro_batches;
  uint32_t layers;  // per rank: as many stages when interleaved
  StageTimes times;
  // A layer's micro-batch of b sequences of s = 1,024 tokens takes b·s·h·(34 + 5·heads·s/h) bytes
  // (Korthikanti et al. 2022), of which 32·b·s·h are the operands of its weight gradients
  // (Qi et al. 2023, table 1).
  double heads;
  double hidden;
  double one_f_one_b;
  double interleaved;
  double h1;
  double h2;
  double by_times_1p;
  double by_times_2p;
};
const PublishedRates kPublished[] = {
    {"1.5B",
     8,
     24,
     3,
     {18.522, 18.086, 9.337, 0.601},
     24,
     2304,
     0.2431,
     0.1055,
     0.1585,
     0.1083,
     0.1585,
     0.0433},
    {"1.5B",
     8,
     32,
     3,
     {18.513, 18.086, 9.331, 0.626},
     24,
     2304,
     0.1985,
     0.0818,
     0.1242,
     0.0837,
     0.1242,
     0.0039},
    {"1.5B",
     8,
     64,
     3,
     {18.546, 18.097, 9.321, 0.762},
     24,
     2304,
     0.124,
     0.0443,
     0.0674,
     0.0444,
     0.0674,
     0.0026},
    {"6.2B",
     8,
     24,
     4,
     {29.718, 29.444, 19.927, 0.527},
     32,
     4096,
     0.2347,
     0.0808,
     0.1323,
     0.0698,
     0.1323,
     0.0029},
    {"6.2B",
     8,
     32,
     4,
     {29.802, 29.428, 19.53, 0.577},
     32,
     4096,
     0.1898,
     0.0628,
     0.1045,
     0.0559,
     0.1045,
     0.0022},
    {"6.2B",
     8,
     64,
     4,
     {29.935, 29.621, 19.388, 0.535},
     32,
     4096,
     0.1091,
     0.032,
     0.0554,
     0.0294,
     0.0554,
     0.001},
    {"14.6B",
     16,
     48,
     3,
     {11.347, 11.248, 8.132, 0.377},
     40,
     5120,
     0.2552,
     0.1104,
     0.1397,
     0.0672,
     0.1397,
     0.0066},
    {"14.6B",
     16,
     64,
     3,
     {11.307, 11.254, 8.101, 0.379},
     40,
     5120,
     0.2082,
     0.0852,
     0.1088,
     0.0516,
     0.1088,
     0.0054},
    {"14.6B",
     16,
     128,
     3,
     {11.325, 11.308, 8.109, 0.378},
     40,
     5120,
     0.1251,
     0.0445,
     0.0576,
     0.0266,
     0.0576,
     0.0028},
    {"28.3B",
     32,
     96,
     2,
     {10.419, 10.207, 7.715, 0.408},
     48,
     6144,
     0.2646,
     0.1493,
     0.1421,
     0.0641,
     0.1421,
     0.0038},
    {"28.3B",
     32,
     128,
     2,
     {10.408, 10.204, 7.703, 0.408},
     48,
     6144,
     0.2168,
     0.1164,
     0.1106,
     0.049,
     0.1106,
     0.0029},
    {"28.3B",
     32,
     256,
     2,
     {10.402, 10.248, 7.698, 0.46},
     48,
     6144,
     0.1352,
     0.0624,
     0.0594,
     0.0257,
     0.0594,
     0.0018},
};

double BubbleRate(PipelineSchedule schedule, const PublishedRates& row) {
  const bool interleaves = schedule == PipelineSchedule::kInterleaved;
  StageTimes times = row.times;
  times.kept_for_weights = 32 / (34 + 5 * row.heads * 1024 / row.hidden);
  const PipelineOrder order =
      OrderOf(schedule, row.ranks, interleaves ? row.layers : 1, row.micro_batches, times);
  const double cost = Play(order, row.times).longest;
  return 1 - Work(row.micro_batches, row.times) / cost;
}

TEST(PipelineOrdersTest, BubbleRatesAreThoseThatZeroBubblesAuthorsComputed) {
  for (const PublishedRates& row : kPublished) {
    SCOPED_TRACE(fmt::format("{}, {} micro-batches", row.model, row.micro_batches));
    // Printed with four digits.
    constexpr double kPrinted = 5.1e-5;
    EXPECT_NEAR(BubbleRate(PipelineSchedule::kOneForwardOneBackward, row), row.one_f_one_b,
                kPrinted);
    EXPECT_NEAR(BubbleRate(PipelineSchedule::kZeroBubbleH1, row), row.h1, kPrinted);
    EXPECT_NEAR(BubbleRate(PipelineSchedule::kZeroBubbleH2, row), row.h2, kPrinted);
    EXPECT_NEAR(BubbleRate(PipelineSchedule::kZeroBubble1p, row), row.by_times_1p, kPrinted);
    // Found by their solver; half of ours are the same or idle less.
    EXPECT_NEAR(BubbleRate(PipelineSchedule::kZeroBubble2p, row), row.by_times_2p, 0.006);
    // One stage per layer; they do not say how they count messages of the last round.
    EXPECT_NEAR(BubbleRate(PipelineSchedule::kInterleaved, row), row.interleaved, 0.004);
  }
}

// Where passes go in pairs, a forward pass never comes before the backward pass of its own
// micro-batch, on no rank.
TEST(PipelineOrdersTest, PairsAreOfTwoMicroBatches) {
  for (const uint32_t ranks : {1u, 2u, 4u}) {
    for (const uint32_t a_rank : {1u, 2u, 3u}) {
      const PipelineSchedule schedule =
          a_rank == 1 ? PipelineSchedule::kOneForwardOneBackward : PipelineSchedule::kInterleaved;
      const PipelineOrder order = OrderOf(schedule, ranks, a_rank, 12, {}, {}, true);
      CheckActions(order.actions, order.places, 12);
      for (uint32_t rank = 0; rank < ranks; ++rank) {
        const std::vector<Action> own = OfRank(order.actions, order.places, rank);
        uint32_t pairs = 0;
        for (size_t i = 0; i + 1 < own.size(); ++i) {
          if (own[i].kind != ActionKind::kForward || own[i + 1].kind != ActionKind::kBackward)
            continue;
          ++pairs;
          EXPECT_NE(own[i].micro_batch, own[i + 1].micro_batch) << ranks << " " << a_rank;
        }
        EXPECT_GT(pairs, 0u);
      }
    }
  }
}

}  // namespace pipeline_orders_test
}  // namespace rehearse
