#include <algorithm>
#include <cmath>
#include <regex>
#include <set>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/report/result.h"
#include "sim/report/span_classes.h"
#include "sim/report/text_page.h"

namespace rehearse {
namespace result_text_test {

using ::testing::HasSubstr;
using ::testing::Not;

Result Sample() {
  Result result;
  result.scenario = "axonn-gpt20b-perlmutter";
  result.fidelity = "fluid";
  result.ranks = 16;
  result.step = Seconds(2);
  result.breakdown = {Seconds(1.5), Seconds(0.4), Seconds(0.1)};
  result.communication = Seconds(0.8);
  result.overlap_fraction = 0.5;
  result.axes = {{"row", 192, Bytes(1024.0 * 1024 * 1024), Seconds(0.5), Seconds(0.3)},
                 {"unused", 0, Bytes(0), Seconds(0), Seconds(0)},
                 {"depth", 272, Bytes(2048.0 * 1024 * 1024), Seconds(0.4), Seconds(0.1)}};
  result.model_flops_utilization = 0.461;
  result.hardware_flops_utilization = 0.612;
  result.peak = FlopsPerSecond(312e12);
  result.peak_dtype = "bf16";
  result.tokens_per_second = 16384;
  const double gib = 1024.0 * 1024 * 1024;
  result.memory = {Bytes(5 * gib), Bytes(5 * gib), Bytes(15 * gib),
                   Bytes(4 * gib), Bytes(1 * gib), Bytes(0)};
  result.memory_capacity = Bytes(40 * gib);
  for (int i = 0; i < 7; ++i) {
    result.links.push_back({"node" + std::to_string(i) + "/nic0 -> switch", "network", Bytes(1e9),
                            BytesPerSecond(25e9), 0.9 - 0.1 * i, i == 0 ? 1008u : 1u});
  }
  result.simulator = {Seconds(0.118), 123456, 43210, 16, Bytes(4e7)};
  result.timeline_hash = "0123456789abcdef";
  return result;
}

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// In characters, not bytes.
size_t Columns(const std::string& line) {
  return static_cast<size_t>(std::count_if(line.begin(), line.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

TEST(ResultTextTest, SaysWhatTheStepTakesAndWhere) {
  const std::string text = ToText(Sample(), false);
  EXPECT_THAT(text, HasSubstr("axonn-gpt20b-perlmutter   16 ranks, fidelity fluid\n"));
  EXPECT_THAT(text, HasSubstr("One step takes 2 s, 16,384 tokens/s\n"));
  // 1.5, 0.4 and 0.1 of 2 s.
  EXPECT_TRUE(std::regex_search(text, std::regex("compute +1.5 s +75.0 %")));
  EXPECT_TRUE(std::regex_search(text, std::regex("exposed communication +400 ms +20.0 %")));
  EXPECT_TRUE(std::regex_search(text, std::regex("idle +100 ms +5.0 %")));
}

TEST(ResultTextTest, SaysWhatEachUsedAxisExposes) {
  const std::string text = ToText(Sample(), false);
  EXPECT_THAT(text, HasSubstr("active for 800 ms, 50.0 % of it hidden behind compute"));
  // 0.3 of 2 s.
  EXPECT_TRUE(std::regex_search(text, std::regex("row +192 +1 GiB +500 ms +300 ms +15.0 %")));
  EXPECT_THAT(text, Not(HasSubstr("unused")));
}

TEST(ResultTextTest, NamesThePeakThatUtilisationRefersTo) {
  EXPECT_THAT(ToText(Sample(), false),
              HasSubstr("HFU 61.2 % / MFU 46.1 % of 312 TFLOP/s (bf16 peak of one device)"));
}

TEST(ResultTextTest, SaysHowCloseSuchPredictionsWere) {
  Result result = Sample();
  EXPECT_THAT(ToText(result, false), Not(HasSubstr("Validated")));
  result.trust = Trust{};
  EXPECT_THAT(ToText(result, false), HasSubstr("Validated   against no published step"));
  result.trust->like = "a100 with axonn";
  result.trust->rows = 17;
  result.trust->fewest = 4;
  result.trust->most = 64;
  result.trust->mean_error = 0.08;
  result.trust->bias = -0.05;
  EXPECT_THAT(ToText(result, false),
              HasSubstr("Validated   a100 with axonn: 17 published steps, on 4 to 64 devices, "
                        "8.0 % off in the mean (-5.0 % bias)"));
}

TEST(ResultTextTest, LeavesOutRolesInTheMiddle) {
  Result result = Sample();
  for (int i = 0; i < 16; ++i)
    result.roles.push_back({"stage " + std::to_string(i), 1, result.breakdown});
  std::string text = ToText(result, false);
  EXPECT_THAT(text, HasSubstr("stage 8 "));
  EXPECT_THAT(text, Not(HasSubstr("more\n  stage")));
  result.roles.push_back({"stage 16", 1, result.breakdown});
  text = ToText(result, false);
  EXPECT_THAT(text, HasSubstr("  … and 1 more\n  stage 9 "));
  EXPECT_THAT(text, HasSubstr("stage 7 "));
  EXPECT_THAT(text, HasSubstr("stage 16 "));
}

// 5 + 5 + 15 + 4 + 1 = 30 of 40 GiB.
TEST(ResultTextTest, ShowsMemoryBesideTheCapacity) {
  EXPECT_THAT(ToText(Sample(), false),
              HasSubstr("30 GiB of 40 GiB (75.0 %) on the fullest rank\n"));
}

TEST(ResultTextTest, SaysWhenTheMemoryDoesNotFit) {
  Result result = Sample();
  result.memory_capacity = Bytes(24.0 * 1024 * 1024 * 1024);
  EXPECT_THAT(ToText(result, false),
              HasSubstr("30 GiB of 24 GiB (125.0 %) on the fullest rank: does not fit\n"));
}

// 30 and 6 of 40 GiB are 90 %.
TEST(ResultTextTest, WarnsWhenTheMemoryIsNearlyFull) {
  Result result = Sample();
  EXPECT_THAT(ToText(result, false), Not(HasSubstr("besides")));
  const double gib = 1024.0 * 1024 * 1024;
  result.memory_reserve = Bytes(5.9 * gib);
  EXPECT_THAT(ToText(result, false), HasSubstr("in addition, about        5.9 GiB    14.8 %"));
  EXPECT_THAT(ToText(result, false), Not(HasSubstr("nearly full")));
  result.memory_reserve = Bytes(6 * gib);
  EXPECT_THAT(ToText(result, false), HasSubstr("nearly full"));
}

TEST(ResultTextTest, ListsTheFiveBusiestLinks) {
  const std::string text = ToText(Sample(), false);
  EXPECT_TRUE(std::regex_search(
      text, std::regex("node0/nic0 -> switch +network +[0-9.]+ MiB +25 GB/s +90.0 % +1,007\n")));
  EXPECT_TRUE(std::regex_search(text, std::regex("node1/nic0 .* +80.0 % +0\n")));
  EXPECT_THAT(text, HasSubstr("node4/nic0"));
  EXPECT_THAT(text, Not(HasSubstr("node5/nic0")));
}

TEST(ResultTextTest, EndsWithTheSimulatorsCost) {
  EXPECT_EQ(Lines(ToText(Sample(), false)).back(),
            "Simulated in 118 ms: 123,456 events, 43,210 transfers; timeline 0123456789abcdef");
}

// Where columns end, in characters: of each word, or of words with single blanks between.
std::vector<size_t> Ends(const std::string& line) {
  std::vector<size_t> ends;
  size_t column = 0;
  size_t last = 0;  // end of the latest word
  for (size_t i = 0; i < line.size(); ++i) {
    if ((static_cast<unsigned char>(line[i]) & 0xc0) == 0x80) continue;
    ++column;
    if (line[i] == ' ') continue;
    if (last > 0 && column > last + 2) ends.push_back(last);
    last = column;
  }
  if (last > 0) ends.push_back(last);
  return ends;
}

// Figures end below the words of their columns, whatever the numbers.
TEST(ResultTextTest, FiguresEndBelowTheirHeadings) {
  Result result = Sample();
  result.roles = {{"first stage", 4, {Seconds(1), Seconds(0.25), Seconds(0.75)}},
                  {"last", 12'000, {Seconds(1.9999), Seconds(1e-6), Seconds(0.0001)}}};
  result.axes[0].bytes = Bytes(7);
  const std::vector<std::string> lines = Lines(ToText(result, false));
  const auto expect_below = [&](const std::string& heading, size_t rows, size_t columns) {
    const auto at = std::find_if(lines.begin(), lines.end(), [&](const std::string& line) {
      return line.starts_with(heading);
    });
    ASSERT_NE(at, lines.end()) << heading;
    const std::vector<size_t> wanted = Ends(*at);
    ASSERT_EQ(wanted.size(), columns) << *at;
    for (size_t row = 1; row <= rows; ++row) {
      std::vector<size_t> ends = Ends(*(at + static_cast<ptrdiff_t>(row)));
      ASSERT_GE(ends.size(), columns) << *(at + static_cast<ptrdiff_t>(row));
      // But for the first column, which begins below its heading.
      EXPECT_TRUE(std::equal(wanted.begin() + 1, wanted.end(), ends.begin() + 1))
          << *at << "\n"
          << *(at + static_cast<ptrdiff_t>(row));
    }
  };
  expect_below("  role", 2, 6);
  expect_below("  axis", 2, 6);
}

// A line of figures, and a bar as long as the share: 34 cells are the whole, an eighth of a cell is
// the least that is shown.
TEST(ResultTextTest, BarsAreAsLongAsShares) {
  Result result = Sample();
  result.breakdown = {Seconds(1.5), Seconds(0.49999), Seconds(0.00001)};
  const double gib = 1024.0 * 1024 * 1024;
  result.memory.parameters = Bytes(40 * gib);
  const auto eighths = [](const std::string& line) {
    static const std::string kParts[] = {"▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"};
    int sum = 0;
    for (size_t i = 0; i + 3 <= line.size(); ++i) {
      for (int part = 0; part < 8; ++part)
        if (line.compare(i, 3, kParts[part]) == 0) sum += part + 1;
    }
    return sum;
  };
  const auto line_of = [&](const std::string& name) {
    for (const std::string& line : Lines(ToText(result, false)))
      if (line.starts_with("  " + name + " ")) return line;
    ADD_FAILURE() << name;
    return std::string();
  };
  EXPECT_EQ(eighths(line_of("compute")), 0.75 * 34 * 8);
  EXPECT_EQ(eighths(line_of("exposed communication")), 0.25 * 34 * 8);
  EXPECT_EQ(eighths(line_of("idle")), 1);
  // 40 + 5 + 15 + 4 + 1 = 65 GiB, more than there is: bars are shares of what is needed.
  EXPECT_EQ(eighths(line_of("parameters")), std::lround(40.0 / 65 * 34 * 8));
  EXPECT_EQ(eighths(line_of("buffers")), std::lround(1.0 / 65 * 34 * 8));
  result.memory.parameters = Bytes(5 * gib);  // 30 of 40 GiB: of what there is
  EXPECT_EQ(eighths(line_of("optimizer")), 15.0 / 40 * 34 * 8);
}

// Parts of the page are apart: each begins after one empty line, with its heading.
TEST(ResultTextTest, PartsAreApart) {
  Result result = Sample();
  result.roles = {{"all", 16, result.breakdown}};
  result.chosen = {{"row", "all-reduce", Bytes(1024), "ring", "ll", 4}};
  result.trust = Trust{};
  result.notes = {"a note"};
  const std::vector<std::string> lines = Lines(ToText(result, false));
  std::vector<std::string> begins;
  for (size_t i = 1; i < lines.size(); ++i) {
    if (lines[i - 1].empty()) begins.push_back(lines[i].substr(0, lines[i].find("  ")));
    EXPECT_FALSE(lines[i].empty() && lines[i - 1].empty());
  }
  EXPECT_THAT(begins, ::testing::ElementsAre(
                          "One step takes 2 s, 16,384 tokens/s", "Where the time goes",
                          "Stages and other roles", "Communication", "How collectives run",
                          "Utilisation", "Validated", "Memory", "Busiest links", "a note",
                          "Simulated in 118 ms: 123,456 events, 43,210 transfers; timeline "
                          "0123456789abcdef"));
}

// 2 s instead of 1.9 s if packets were sprayed.
TEST(ResultTextTest, SaysWhatCollisionsCost) {
  Result result = Sample();
  RouteSpread spread;
  spread.routing = "ecmp";
  spread.seed = 7;
  spread.sprayed = Seconds(1.9);
  spread.worst_link = "leaf0->spine1";
  spread.worst_share = 2.5;
  result.routes = spread;
  EXPECT_THAT(ToText(result, false),
              HasSubstr("  ecmp, seed 7; sprayed it would take 1.9 s\n"
                        "  collisions cost 100 ms: leaf0->spine1 carries 2.5 times its share\n"));
  result.routes->worst_link.clear();  // nothing collided
  EXPECT_THAT(ToText(result, false), Not(HasSubstr("collisions")));
  result.routes = spread;
  result.routes->sprayed = Seconds(1.999);  // less than a thousandth
  EXPECT_THAT(ToText(result, false), Not(HasSubstr("collisions")));
}

TEST(ResultTextTest, FitsAScreenWhateverTheNames) {
  Result result = Sample();
  const std::string long_name(200, 'x');
  result.scenario = long_name;
  result.axes.clear();
  for (int i = 0; i < 20; ++i) {
    result.axes.push_back({long_name, 1e6, Bytes(1e15), Seconds(1e4), Seconds(1e4)});
  }
  for (LinkSummary& link : result.links) link.name = link.kind = long_name;
  result.simulator = {Seconds(12345), 10'000'000'000, 10'000'000'000, 1, Bytes(1)};
  for (const Result& shown : {Sample(), result}) {
    for (const std::string& line : Lines(ToText(shown, false)))
      EXPECT_LE(Columns(line), 100u) << line;
  }
  EXPECT_LE(Lines(ToText(Sample(), false)).size(), 35u);
  EXPECT_THAT(ToText(result, false), HasSubstr("… and 13 more axes"));
}

TEST(ResultTextTest, ColoursOnlyWhenAskedAndOnlyColours) {
  const std::string plain = ToText(Sample(), false);
  const std::string colored = ToText(Sample(), true);
  EXPECT_THAT(plain, Not(HasSubstr("\x1b")));
  EXPECT_THAT(colored, HasSubstr("\x1b[1m"));
  EXPECT_EQ(std::regex_replace(colored, std::regex("\x1b\\[[0-9]+m"), ""), plain);
}

TEST(ResultTextTest, NamesCannotMoveATerminal) {
  Result result = Sample();
  result.scenario = "a\x1b[2Jb\xff";
  result.axes[0].name = "row\nfake\x1b[31m";
  result.notes = {
      "of \xc2\x9b"
      "31mothers"};
  for (const bool color : {false, true}) {
    const std::string text = ToText(result, color);
    EXPECT_THAT(text, HasSubstr("a\\x1b[2Jb\\xff"));
    EXPECT_THAT(text, HasSubstr("row\\nfake\\x1b[31m"));
    EXPECT_THAT(text, HasSubstr("of \\u009b31mothers"));
    EXPECT_THAT(text, Not(HasSubstr("\x1b[2J")));
  }
}

TEST(ResultTextTest, NothingIsAShareOfNothing) {
  EXPECT_EQ(Share(5, 0), 0);
  EXPECT_EQ(Share(1, 4), 0.25);
}

TEST(ResultTextTest, AnEmptyResultHasNoNonsense) {
  const std::string text = ToText(Result(), false);
  EXPECT_THAT(text, Not(HasSubstr("nan")));
  EXPECT_THAT(text, Not(HasSubstr("inf")));
  EXPECT_THAT(text, HasSubstr("Communication   none"));
}

// Up to so many axes stand in the schedule's order; of more, those that cost most come first.
TEST(ResultTextTest, TheLargestAxesComeFirstWhereNotAllAreShown) {
  const auto shown = [](size_t count) {
    Result result = Sample();
    result.axes.clear();
    for (size_t i = 0; i < count; ++i) {
      result.axes.push_back({"axis" + std::to_string(i), 1, Bytes(1), Seconds(0.1),
                             Seconds(0.001 * static_cast<double>(i))});
    }
    std::vector<std::string> names;
    for (const std::string& line : Lines(ToText(result, false))) {
      if (line.starts_with("  axis") && line[6] != ' ')
        names.push_back(line.substr(2, line.find(' ', 2) - 2));
    }
    return names;
  };
  EXPECT_EQ(shown(3), (std::vector<std::string>{"axis0", "axis1", "axis2"}));
  const std::vector<std::string> some = shown(100);
  ASSERT_LT(some.size(), 100u);
  for (size_t i = 0; i < some.size(); ++i) EXPECT_EQ(some[i], "axis" + std::to_string(99 - i));
}

TEST(ResultTextTest, SaysNothingOfUtilisationWhereNoArithmeticIsKnown) {
  Result result = Sample();
  result.hardware_flops_utilization = result.model_flops_utilization = 0;
  EXPECT_THAT(ToText(result, false), Not(HasSubstr("Utilisation")));
}

// Means over ranks need not be whole bytes.
TEST(ResultTextTest, BytesAreWholeInJsonOnlyWhereTheyAre) {
  Result result = Sample();
  result.axes[0].bytes = Bytes(2.5);
  result.axes[2].bytes = Bytes(3);
  const auto json = ToJson(result);
  EXPECT_EQ(json["by_axis"]["row"]["bytes"].dump(), "2.5");
  EXPECT_EQ(json["by_axis"]["depth"]["bytes"].dump(), "3");
}

// Names that have all the colours to themselves leave others one of theirs.
TEST(SpanClassesTest, MoreAxesThanColours) {
  const SpanClasses classes(
      {"column", "row", "depth", "data", "model", "stages", "context", "replica", "x", "y", "z"});
  std::set<std::string> fills;
  for (uint32_t i = 0; i < 8; ++i) fills.insert(classes.all()[SpanClasses::OfAxis(i)].fill);
  EXPECT_EQ(fills.size(), 8u);
}

}  // namespace result_text_test
}  // namespace rehearse
