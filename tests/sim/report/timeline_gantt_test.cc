#include "sim/report/timeline_gantt.h"

#include <algorithm>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/error.h"
#include "sim/report/span_classes.h"
#include "tests/sim/sample_step.h"

namespace rehearse {
namespace timeline_gantt_test {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

// There are 27 characters beside the axis; with 26 more, each microsecond of the step of 26 is one
// character.
constexpr unsigned kOneForEachMicrosecond = 26 + 27;

std::string DrawLanes(const TwoRankStep& step, const GanttOptions& options) {
  return TimelineGantt(step.schedule, step.timeline, {}, options);
}

size_t Characters(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
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
      widest = std::max(widest, Characters(line));
    }
    EXPECT_EQ(widest, columns);
  }
}

// Lines of a picture, each as its characters with the colour that each has (-1: none).
struct Glyph {
  std::string text;
  int color = -1;
};
std::vector<std::vector<Glyph>> GlyphsOf(const std::string& picture) {
  std::vector<std::vector<Glyph>> lines;
  std::istringstream stream(picture);
  for (std::string line; std::getline(stream, line);) {
    std::vector<Glyph>& glyphs = lines.emplace_back();
    int color = -1;
    for (size_t i = 0; i < line.size();) {
      if (line[i] == '\x1b') {
        const size_t end = line.find('m', i);
        const std::string code = line.substr(i + 2, end - i - 2);
        if (code.starts_with("38;5;")) color = std::stoi(code.substr(5));
        if (code == "0") color = -1;
        i = end + 1;
        continue;
      }
      size_t next = i + 1;
      while (next < line.size() && (static_cast<unsigned char>(line[next]) & 0xc0) == 0x80) ++next;
      glyphs.push_back({line.substr(i, next - i), color});
      i = next;
    }
    EXPECT_EQ(color, -1) << "a colour goes on after the line's end";
  }
  return lines;
}

std::string TextOf(const std::vector<Glyph>& glyphs) {
  std::string text;
  for (const Glyph& glyph : glyphs) text += glyph.text;
  return text;
}

// A terminal's 216 colours have the levels 0, 95, 135, 175, 215 and 255 of red, green and blue.
int NearestColor(const std::string& hex) {
  constexpr int kLevels[] = {0, 95, 135, 175, 215, 255};
  int code = 16;
  int weight = 36;
  for (const size_t at : {1, 3, 5}) {
    const int value = std::stoi(hex.substr(at, 2), nullptr, 16);
    int best = 0;
    for (int i = 1; i < 6; ++i)
      if (std::abs(kLevels[i] - value) < std::abs(kLevels[best] - value)) best = i;
    code += weight * best;
    weight /= 6;
  }
  return code;
}

// Blocks have the colour of their class, everything else has none; without colours the lanes are
// the same.
TEST(TimelineGanttTest, BlocksHaveTheColoursOfTheirClasses) {
  const TwoRankStep step;
  const auto colored =
      GlyphsOf(DrawLanes(step, {.columns = kOneForEachMicrosecond, .color = true}));
  const auto plain = GlyphsOf(DrawLanes(step, {.columns = kOneForEachMicrosecond}));
  const SpanClasses classes(step.schedule);
  const auto color_of = [&](size_t op) {
    return NearestColor(classes.all()[classes.Of(step.schedule.roles[0].ops[op])].fill);
  };
  for (size_t i = 1; i < 7; ++i) EXPECT_EQ(TextOf(colored[i]), TextOf(plain[i]));
  const auto expect = [&](size_t line, size_t begin, size_t end, int color) {
    for (size_t i = begin; i < end; ++i)
      EXPECT_EQ(colored[line][10 + i].color, color) << "line " << line << ", character " << i;
  };
  // The product in 0..10, the norm in 20..24; the all-reduce waits from 10 and runs in 12..20; the
  // all-gather waits until 5 and runs until 16.
  expect(2, 0, 10, color_of(0));
  expect(2, 10, 20, -1);
  expect(2, 20, 24, color_of(3));
  expect(2, 24, 26, -1);
  expect(3, 0, 12, -1);
  expect(3, 12, 20, color_of(1));
  expect(3, 20, 26, -1);
  expect(4, 0, 5, -1);
  expect(4, 5, 16, color_of(2));
  // The legend shows each class in its colour.
  for (const size_t op : {0, 1, 2, 3}) {
    const SpanClass& span_class = classes.all()[classes.Of(step.schedule.roles[0].ops[op])];
    const std::string entry = "\x1b[38;5;" + std::to_string(color_of(op)) + "m█\x1b[0m ";
    EXPECT_THAT(DrawLanes(step, {.columns = kOneForEachMicrosecond, .color = true}),
                HasSubstr(entry + span_class.name));
  }
}

// A tick of the axis stands at its time, and its label begins below it.
TEST(TimelineGanttTest, TicksStandAtTheirTimes) {
  for (const auto& [from, to] : {std::pair{0, 26}, std::pair{4, 24}, std::pair{9, 14}}) {
    for (const unsigned columns : {67u, 100u, 127u}) {
      GanttOptions options{.columns = columns};
      options.from = Time(from * kMicrosecond);
      options.to = Time(to * kMicrosecond);
      const auto lines = GlyphsOf(DrawLanes({}, options));
      const auto axis = std::find_if(lines.begin(), lines.end(), [](const auto& line) {
        return TextOf(line).find("┴") != std::string::npos;
      });
      ASSERT_NE(axis, lines.end());
      const std::string labels = TextOf(*(axis + 1));
      EXPECT_THAT(labels, EndsWith(" us"));
      const size_t width = columns - 27;
      EXPECT_EQ(axis->size(), 10 + width);
      for (size_t x = 10; x < axis->size(); ++x)
        EXPECT_TRUE((*axis)[x].text == "─" || (*axis)[x].text == "┴") << x;
      size_t ticks = 0;
      for (size_t x = 0; x < width; ++x) {
        if ((*axis)[10 + x].text != "┴") continue;
        ++ticks;
        const double time =
            from + static_cast<double>((to - from) * x) / static_cast<double>(width);
        const double character = static_cast<double>(to - from) / static_cast<double>(width);
        size_t label = std::min(10 + x, labels.find_last_of("0123456789"));
        while (labels[label - 1] != ' ') --label;  // the last one may have to begin further left
        const double shown = std::stod(labels.substr(label));
        EXPECT_NEAR(shown, time, 1.01 * character) << "from " << from << " in " << columns;
      }
      EXPECT_GE(ticks, 2u);
    }
  }
}

// Names are cut in the middle to 16 characters, counted as characters, and the lanes begin below
// each other.
TEST(TimelineGanttTest, LanesBeginBelowEachOther) {
  TwoRankStep step;
  step.schedule.roles[0].streams[1].name = "größe";
  step.schedule.roles[0].streams[2].name = "a name that is much longer than all the others";
  const auto lines = GlyphsOf(DrawLanes(step, {.columns = 26 + 27 + 9}));
  // "  " + 16 characters + " ", then 26 characters for 26 us.
  EXPECT_EQ(TextOf(lines[2]).find("█"), 19u);
  EXPECT_EQ(TextOf({lines[3].begin(), lines[3].begin() + 19}), "  größe            ");
  EXPECT_EQ(TextOf({lines[4].begin(), lines[4].begin() + 19}), "  a name …e others ");
  for (const size_t line : {2, 3, 4})
    EXPECT_EQ(TextOf({lines[line].end() - 2, lines[line].end()}), " %");
  EXPECT_EQ(lines[3].size(), lines[4].size());
}

// In few columns the legend needs several lines, none of them longer than the picture, and no entry
// is cut; in many it stands on one.
TEST(TimelineGanttTest, TheLegendIsBrokenBetweenEntries) {
  const TwoRankStep step;
  for (const unsigned columns : {48u, 53u, 60u, 72u, 90u, 120u, 200u}) {
    const std::string text = DrawLanes(step, {.columns = columns});
    const size_t begin = text.find("  █ computes, or");
    ASSERT_NE(begin, std::string::npos);
    std::istringstream legend(text.substr(begin));
    size_t used = 0;
    size_t lines = 0;
    for (std::string line; std::getline(legend, line); ++lines) {
      EXPECT_LE(Characters(line), columns);
      // The first entry of this line had no room on the one before.
      const std::string entry = line.substr(0, line.find("  ", 2));
      if (lines > 0) {
        EXPECT_GT(used + Characters(entry), columns) << line;
      }
      used = Characters(line);
    }
    if (columns == 200) {
      EXPECT_EQ(lines, 1u);
    }
    for (const char* entry : {"▁ the same in a part of the time", "░▒ communicates behind compute",
                              "· waits for the group"})
      EXPECT_THAT(text, HasSubstr(std::string("  ") + entry));
  }
}

// A bracket of a phase covers what it takes: forward 0..10 of 26 us, backward 20..24; named where
// the name has room.
TEST(TimelineGanttTest, PhasesAreBracketed) {
  const auto lines = GlyphsOf(DrawLanes({}, {.columns = 2 * 26 + 27}));
  EXPECT_EQ(TextOf({lines[1].begin() + 10, lines[1].begin() + 10 + 52}),
            "├─ forward ────────┤                    ├──────┤    ");
  EXPECT_THAT(TextOf(lines[1]), EndsWith("  active  exposed"));
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
