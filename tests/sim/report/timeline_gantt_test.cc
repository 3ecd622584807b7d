#include "sim/report/timeline_gantt.h"

#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/error.h"
#include "tests/sim/sample_step.h"

namespace rehearse {
namespace timeline_gantt_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// There are 27 characters beside the axis; with 26 more, each microsecond of the step of 26 is one
// character.
constexpr unsigned kOneForEachMicrosecond = 26 + 27;

std::string DrawLanes(const TwoRankStep& step, const GanttOptions& options) {
  return TimelineGantt(step.schedule, step.timeline, {}, options);
}

TEST(TimelineGanttTest, ACharacterIsSolidWhereItComputesOrCommunicatesExposed) {
  // The row's all-reduce waits from 10 to 12 and nothing hides it; the column's all-gather waits
  // until 5, hides behind the gemm until 10 and is exposed until 16. "solo" moves nothing.
  EXPECT_EQ(DrawLanes({}, {.columns = kOneForEachMicrosecond}),
            "Timeline   rank 0; a character is 1 us\n"
            "          ├────────┤          ├──┤    active  exposed\n"
            "  compute ██████████          ████      54 %\n"
            "  row               ··████████          31 %     31 %\n"
            "  column  ·····▒▒▒▒▒██████              42 %     23 %\n"
            "          ┴───────────────────┴─────\n"
            "          0                   20     us\n"
            "  █ computes, or communicates exposed\n"
            "  ▁ the same in a part of the time\n"
            "  ░▒ communicates behind compute\n"
            "  · waits for the group\n");
}

TEST(TimelineGanttTest, SeveralRanksHaveTheirNames) {
  const TwoRankStep step;
  TraceNames names;
  names.node_of_rank = {"node0", "node1"};
  names.device_of_rank = {"gpu0", "gpu0"};
  const std::string text = TimelineGantt(step.schedule, step.timeline, names,
                                         {.ranks = {1, 0}, .columns = kOneForEachMicrosecond});
  EXPECT_THAT(text, HasSubstr("Timeline   2 ranks; a character is 1 us\n"));
  EXPECT_THAT(text, HasSubstr("  node1 gpu0 (rank 1)\n"
                              "  compute ████████████        ██████    69 %\n"
                              "  row                 ████████          31 %     31 %\n"));
  EXPECT_THAT(text, HasSubstr("  node0 gpu0 (rank 0)\n"
                              "  compute ██████████          ████      54 %\n"));
}

// From 9 to 14 us in 40 characters: a character is 1/8 us. The all-gather is hidden for one of
// five microseconds.
TEST(TimelineGanttTest, AWindowIsAllThereIs) {
  GanttOptions options{.columns = 40 + 27};
  options.from = Time(9 * kMicrosecond);
  options.to = Time(14 * kMicrosecond);
  const std::string text = DrawLanes({}, options);
  EXPECT_THAT(text, HasSubstr("rank 0, from 9 us to 14 us; a character is 125 ns\n"));
  EXPECT_THAT(text, HasSubstr("  compute ████████                                    20 %\n"));
  EXPECT_THAT(text, HasSubstr("  row             ················████████████████"
                              "    40 %     40 %\n"));
  EXPECT_THAT(text, HasSubstr("  column  ▒▒▒▒▒▒▒▒████████████████████████████████"
                              "   100 %     80 %\n"));
  EXPECT_THAT(text, HasSubstr(" 10 "));
}

// Two and a half microseconds, and a quarter of one.
TEST(TimelineGanttTest, HeightsAreSharesOfACharacter) {
  TwoRankStep step;
  step.timeline.spans = {SpanAt(0, 0, 0, 0, 5 * kMicrosecond / 2),
                         SpanAt(0, 3, 0, 4 * kMicrosecond, 17 * kMicrosecond / 4)};
  EXPECT_THAT(DrawLanes(step, {.columns = kOneForEachMicrosecond}),
              HasSubstr("  compute ██▄ ▂                         11 %\n"));
}

TEST(TimelineGanttTest, ALittleIsSeenAndALotHidesIt) {
  TwoRankStep step;
  const int64_t hundredth = kMicrosecond / 100;
  // A hundredth of a character each: compute at 0, exposed at 2, and at 4 hidden except for a
  // hundredth.
  step.timeline.spans = {SpanAt(0, 0, 0, 0, hundredth),
                         SpanAt(0, 1, 0, 2 * kMicrosecond, 2 * kMicrosecond + hundredth),
                         SpanAt(0, 2, 4 * kMicrosecond, 4 * kMicrosecond, 5 * kMicrosecond),
                         SpanAt(0, 3, 0, 4 * kMicrosecond, 5 * kMicrosecond - hundredth)};
  const std::string text = DrawLanes(step, {.columns = kOneForEachMicrosecond});
  EXPECT_THAT(text, HasSubstr("  compute ▁   █ "));
  EXPECT_THAT(text, HasSubstr("  row     ··▁ "));
  EXPECT_THAT(text, HasSubstr("  column      ▒ "));
}

TEST(TimelineGanttTest, ColoursAreOnlyThereWhenAskedFor) {
  const std::string plain = DrawLanes({}, {});
  const std::string colored = DrawLanes({}, {.color = true});
  EXPECT_THAT(plain, Not(HasSubstr("\x1b")));
  EXPECT_THAT(colored, AllOf(HasSubstr("\x1b[38;5;"), HasSubstr("forward"), HasSubstr("column")));
}

TEST(TimelineGanttTest, LinesAreAsWideAsTheTerminal) {
  const RandomStep step(4, 20'000, 7);
  for (const unsigned columns : {48u, 80u, 100u, 231u}) {
    std::istringstream text(
        TimelineGantt(step.schedule, step.timeline, {}, {.ranks = {0, 3}, .columns = columns}));
    size_t widest = 0;
    for (std::string line; std::getline(text, line);) {
      const auto characters = std::count_if(line.begin(), line.end(), [](char c) {
        return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
      });
      widest = std::max(widest, static_cast<size_t>(characters));
    }
    EXPECT_EQ(widest, columns);
  }
}

TEST(TimelineGanttTest, AnEmptyStepIsAnEmptyPicture) {
  TwoRankStep step;
  step.timeline.spans.clear();
  step.timeline.step = Time();
  EXPECT_THAT(DrawLanes(step, {}), HasSubstr("Timeline"));
}

TEST(TimelineGanttTest, ARankThatDoesNotExistIsOurFault) {
  EXPECT_THROW(DrawLanes({}, {.ranks = {2}}), InternalError);
}

}  // namespace timeline_gantt_test
}  // namespace rehearse
