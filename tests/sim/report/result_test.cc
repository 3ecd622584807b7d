#include "sim/report/result.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sim/base/error.h"
#include "tests/sim/sample_step.h"

namespace rehearse {
namespace result_test {

using ::testing::ElementsAre;

constexpr double kMicro = 1e-6;
const FlopsPerSecond kPeak(1e12);

std::vector<std::string> KeysOf(const nlohmann::ordered_json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  return keys;
}

// Rank 0 computes for 10 + 4 us, moves data alone in 10..20 and does nothing in 24..26: 14 + 10 +
// 2. Rank 1 computes for 12 + 6 us and moves data alone in 12..20: 18 + 8 + 0.
TEST(SummarizeTest, BreakdownIsTheMeanOverRanks) {
  const TwoRankStep step;
  const Result result = Summarize(step.schedule, step.timeline, kPeak);
  EXPECT_EQ(result.ranks, 2u);
  EXPECT_DOUBLE_EQ(result.step.value(), 26 * kMicro);
  EXPECT_DOUBLE_EQ(result.breakdown.compute.value(), 16 * kMicro);
  EXPECT_DOUBLE_EQ(result.breakdown.exposed_communication.value(), 9 * kMicro);
  EXPECT_DOUBLE_EQ(result.breakdown.idle.value(), 1 * kMicro);
}

// On both ranks a transfer is active in 5..20, 15 us; 10 and 8 of them are exposed: (30 - 18) / 30.
TEST(SummarizeTest, OverlapIsTheHiddenShareOfCommunication) {
  const TwoRankStep step;
  const Result result = Summarize(step.schedule, step.timeline, kPeak);
  EXPECT_DOUBLE_EQ(result.communication.value(), 15 * kMicro);
  EXPECT_DOUBLE_EQ(result.overlap_fraction, 0.4);
}

// Rank 0, exposed: the column alone in 10..12, both in 12..16, the row alone in 16..20, so the row
// has 2 + 4 and the column 2 + 2 us. Rank 1: both in 12..16, the row alone in 16..20: 2 + 4 and 2.
TEST(SummarizeTest, AxesShareWhatTheyExposeTogether) {
  const TwoRankStep step;
  const Result result = Summarize(step.schedule, step.timeline, kPeak);
  ASSERT_EQ(result.axes.size(), 3u);
  EXPECT_EQ(result.axes[0].name, "row");
  EXPECT_EQ(result.axes[0].operations, 1);
  EXPECT_EQ(result.axes[0].bytes, Bytes(1000));
  EXPECT_DOUBLE_EQ(result.axes[0].seconds.value(), 8 * kMicro);
  EXPECT_DOUBLE_EQ(result.axes[0].exposed.value(), 6 * kMicro);
  EXPECT_EQ(result.axes[1].name, "column");
  EXPECT_EQ(result.axes[1].bytes, Bytes(600));
  EXPECT_DOUBLE_EQ(result.axes[1].seconds.value(), 11 * kMicro);
  EXPECT_DOUBLE_EQ(result.axes[1].exposed.value(), 3 * kMicro);
}

TEST(SummarizeTest, ACommunicatorOfOneRankCountsAsNothing) {
  const TwoRankStep step;
  const AxisUse solo = Summarize(step.schedule, step.timeline, kPeak).axes[2];
  EXPECT_EQ(solo.name, "solo");
  EXPECT_EQ(solo.operations, 0);
  EXPECT_EQ(solo.bytes, Bytes(0));
  EXPECT_EQ(solo.seconds, Seconds(0));
}

TEST(SummarizeTest, ACollectiveThatTakesNoTimeCountsAsNothing) {
  TwoRankStep step;
  for (Span& span : step.timeline.spans) {
    if (span.op == 2) span.end = span.begin;
  }
  const Result result = Summarize(step.schedule, step.timeline, kPeak);
  EXPECT_EQ(result.axes[1].operations, 0);
  EXPECT_EQ(result.axes[1].bytes, Bytes(0));
  EXPECT_EQ(result.communication.value(), result.axes[0].seconds.value());
}

// 6e6 and 8e6 flops of 26 us x 2 ranks x 1e12 flop/s = 52e6; 13 tokens in 26 us are 500,000 a
// second.
TEST(SummarizeTest, UtilisationRefersToThePeakOfAllRanks) {
  const TwoRankStep step;
  const Result result = Summarize(step.schedule, step.timeline, kPeak);
  EXPECT_DOUBLE_EQ(result.model_flops_utilization, 6.0 / 52);
  EXPECT_DOUBLE_EQ(result.hardware_flops_utilization, 8.0 / 52);
  EXPECT_DOUBLE_EQ(result.tokens_per_second, 500'000);
  EXPECT_EQ(result.peak, kPeak);
  EXPECT_EQ(result.peak_dtype, "bf16");
}

// In 26 us a link of 1 GB/s could carry 26,000 B.
TEST(SummarizeTest, TheBusiestLinkComesFirstAndIdleOnesNotAtAll) {
  TwoRankStep step;
  const auto link = [](const char* name, double bytes) {
    LinkRecord record;
    record.name = name;
    record.capacity = BytesPerSecond(1e9);
    record.bytes = Bytes(bytes);
    return record;
  };
  step.timeline.links = {link("a", 13), link("idle", 0), link("b", 13000), link("c", 13)};
  step.timeline.links[2].count = 8;
  const Result result = Summarize(step.schedule, step.timeline, kPeak);
  ASSERT_EQ(result.links.size(), 3u);
  EXPECT_EQ(result.links[0].name, "b");
  EXPECT_DOUBLE_EQ(result.links[0].utilization, 0.5);
  EXPECT_EQ(result.links[0].count, 8u);
  EXPECT_EQ(result.links[1].name, "a");  // ties in the order of the links
  EXPECT_EQ(result.links[2].name, "c");
}

TEST(SummarizeTest, ARankWithoutSpansIsIdle) {
  TwoRankStep step;
  std::erase_if(step.timeline.spans, [](const Span& span) { return span.rank == 1; });
  const Result result = Summarize(step.schedule, step.timeline, kPeak);
  EXPECT_DOUBLE_EQ(result.breakdown.compute.value(), 14 * kMicro / 2);
  EXPECT_DOUBLE_EQ(result.breakdown.idle.value(), (2 + 26) * kMicro / 2);
}

TEST(SummarizeTest, AnEmptyTimelineHasNoTime) {
  Schedule schedule;
  const Result result = Summarize(schedule, Timeline(), kPeak);
  EXPECT_EQ(result.step, Seconds(0));
  EXPECT_EQ(result.model_flops_utilization, 0);
}

// Three times one operation in bf16, then two in fp32, which are not repeated, after one before.
TEST(MainDTypeTest, IsThatOfMostOperationsCopiesIncluded) {
  const auto compute = [](DType dtype, double flops) {
    Op op;
    Compute work;
    work.dtype = dtype;
    work.flops = Flops(flops);
    op.work = work;
    return op;
  };
  Schedule schedule;
  Role role;
  role.ops = {compute(DType::kFp16, 2), compute(DType::kBf16, 1), compute(DType::kFp32, 2)};
  role.repeats = {{.begin = 1, .end = 2, .times = 2}};
  schedule.roles = {role};
  EXPECT_EQ(MainDType(schedule), DType::kBf16);
  schedule.roles[0].repeats[0].times = 0;
  EXPECT_NE(MainDType(schedule), DType::kBf16);
  for (Op& op : schedule.roles[0].ops) std::get<Compute>(op.work).flops = Flops(0);
  EXPECT_FALSE(MainDType(schedule).has_value());
}

TEST(SummarizeTest, SpansThatOutlastTheStepAreOurFault) {
  TwoRankStep step;
  step.timeline.step = Time(25 * kMicrosecond);
  EXPECT_THROW(Summarize(step.schedule, step.timeline, kPeak), InternalError);
}

TEST(SummarizeTest, PartsSumToTheWholeOnRandomSteps) {
  for (uint32_t seed = 1; seed <= 50; ++seed) {
    const RandomStep step(8, 60, seed);
    const Result result = Summarize(step.schedule, step.timeline, kPeak);
    const Breakdown& parts = result.breakdown;
    EXPECT_NEAR((parts.compute + parts.exposed_communication + parts.idle).value(),
                result.step.value(), 1e-15);
    EXPECT_GE(parts.idle, Seconds(0));
    Seconds exposed;
    for (const AxisUse& axis : result.axes) {
      EXPECT_LE(axis.exposed, axis.seconds);
      exposed += axis.exposed;
    }
    EXPECT_NEAR(exposed.value(), parts.exposed_communication.value(), 1e-15);
  }
}

// The definition, picosecond by picosecond in intervals between all the times that occur.
TEST(SummarizeTest, AgreesWithTheDefinitionOnRandomSteps) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    const RandomStep step(4, 40, seed);  // 4 ranks: the groups of "z" have one member
    double compute = 0;
    double exposed = 0;
    std::vector<double> exposed_on(3, 0);
    for (uint32_t rank = 0; rank < 4; ++rank) {
      const auto [first, last] = step.timeline.SpansOf(rank);
      std::vector<int64_t> times;
      for (size_t i = first; i < last; ++i) {
        times.push_back(step.timeline.spans[i].begin.picoseconds());
        times.push_back(step.timeline.spans[i].end.picoseconds());
      }
      std::sort(times.begin(), times.end());
      for (size_t t = 0; t + 1 < times.size(); ++t) {
        bool computes = false;
        std::vector<bool> moves(3, false);
        for (size_t i = first; i < last; ++i) {
          const Span& span = step.timeline.spans[i];
          if (span.begin.picoseconds() > times[t] || span.end.picoseconds() <= times[t]) continue;
          const CommunicatorId id = CommunicatorOf(step.schedule.roles[0].ops[span.op].work);
          if (!id.IsSet()) {
            computes = true;
          } else if (step.schedule.communicators[id.index()].size() > 1) {
            moves[id.index()] = true;
          }
        }
        const auto length = static_cast<double>(times[t + 1] - times[t]);
        const auto together = std::count(moves.begin(), moves.end(), true);
        if (computes) compute += length;
        if (computes || together == 0) continue;
        exposed += length;
        for (size_t axis = 0; axis < 3; ++axis) {
          if (moves[axis]) exposed_on[axis] += length / static_cast<double>(together);
        }
      }
    }
    const Result result = Summarize(step.schedule, step.timeline, kPeak);
    EXPECT_NEAR(result.breakdown.compute.value(), compute / 4e12, 1e-15);
    EXPECT_NEAR(result.breakdown.exposed_communication.value(), exposed / 4e12, 1e-15);
    for (size_t axis = 0; axis < 3; ++axis) {
      EXPECT_NEAR(result.axes[axis].exposed.value(), exposed_on[axis] / 4e12, 1e-15);
    }
  }
}

TEST(ResultJsonTest, HasTheKeysOfTheSchemaInTheirOrder) {
  TwoRankStep step;
  LinkRecord link;
  link.name = "gpu0 -> switch";
  link.kind = "nvlink";
  link.capacity = BytesPerSecond(1e9);
  link.bytes = Bytes(1600);
  step.timeline.links = {link};
  Result result = Summarize(step.schedule, step.timeline, kPeak);
  EXPECT_THAT(KeysOf(ToJson(result)["memory"]),
              ElementsAre("parameters", "gradients", "optimizer", "activations", "buffers"));
  result.memory_capacity = Bytes(1000);
  const nlohmann::ordered_json json = ToJson(result);
  EXPECT_THAT(KeysOf(json),
              ElementsAre("schema", "scenario", "fidelity", "ranks", "step_seconds", "breakdown",
                          "communication_seconds", "overlap_fraction", "by_axis",
                          "model_flops_utilization", "hardware_flops_utilization",
                          "tokens_per_second", "memory", "links", "simulator", "timeline_hash"));
  EXPECT_EQ(json["schema"], "rehearse.result.v1");
  EXPECT_THAT(KeysOf(json["breakdown"]),
              ElementsAre("compute_seconds", "exposed_communication_seconds", "idle_seconds"));
  EXPECT_THAT(KeysOf(json["by_axis"]), ElementsAre("row", "column", "solo"));
  EXPECT_THAT(KeysOf(json["by_axis"]["row"]),
              ElementsAre("operations", "bytes", "seconds", "exposed_seconds"));
  EXPECT_THAT(KeysOf(json["memory"]), ElementsAre("parameters", "gradients", "optimizer",
                                                  "activations", "buffers", "capacity", "rank"));
  ASSERT_EQ(json["links"].size(), 1u);
  EXPECT_THAT(
      KeysOf(json["links"][0]),
      ElementsAre("name", "kind", "bytes", "capacity_bytes_per_second", "utilization", "count"));
  EXPECT_EQ(json["links"][0]["bytes"], 1600);
  EXPECT_THAT(KeysOf(json["simulator"]),
              ElementsAre("wall_seconds", "events", "transfers", "classes", "peak_rss_bytes"));
  EXPECT_EQ(json["timeline_hash"], HashOf(step.timeline));
}

TEST(ResultJsonTest, NumbersSurviveARoundTrip) {
  const TwoRankStep step;
  const Result result = Summarize(step.schedule, step.timeline, kPeak);
  const auto json = nlohmann::json::parse(ToJson(result).dump());
  EXPECT_EQ(json["step_seconds"].get<double>(), result.step.value());
  EXPECT_EQ(json["overlap_fraction"].get<double>(), result.overlap_fraction);
}

TEST(ResultJsonTest, ANumberThatIsNotFiniteIsOurFault) {
  Result result;
  result.tokens_per_second = std::numeric_limits<double>::infinity();
  EXPECT_THROW(ToJson(result), InternalError);
}

TEST(ResultJsonTest, TwoAxesOfOneNameAreOurFault) {
  Result result;
  result.axes.resize(2);
  EXPECT_THROW(ToJson(result), InternalError);
}

}  // namespace result_test
}  // namespace rehearse
