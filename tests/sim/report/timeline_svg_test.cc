#include <algorithm>
#include <sstream>

#include <boost/property_tree/ptree.hpp>
#include <boost/property_tree/xml_parser.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/error.h"
#include "sim/report/span_classes.h"
#include "sim/report/stacked_timelines.h"
#include "sim/report/svg.h"
#include "sim/report/trace.h"
#include "tests/sim/sample_step.h"

namespace rehearse {
namespace timeline_svg_test {

using ::testing::HasSubstr;
using ::testing::Not;

std::string Draw(const Schedule& schedule, const Timeline& timeline,
                 const PictureOptions& options = {}) {
  TraceNames names;
  names.title = "A & B <two ranks>";
  return TimelineSvg(schedule, timeline, names, options);
}

void ExpectWellFormed(const std::string& svg) {
  std::istringstream stream(svg);
  boost::property_tree::ptree tree;
  EXPECT_NO_THROW(boost::property_tree::read_xml(stream, tree));
  EXPECT_EQ(tree.count("svg"), 1u);
}

// How wide the strokes of one colour are together, in pixels. (std::regex recurses once per
// character, too deep for paths as long as these.)
double Drawn(const std::string& svg, const std::string& color) {
  const std::string stroke = "<path stroke=\"" + color + "\" stroke-width=";
  double sum = 0;
  for (size_t path = svg.find(stroke); path != std::string::npos;
       path = svg.find(stroke, path + 1)) {
    const size_t begin = svg.find(" d=\"", path) + 4;
    const size_t end = svg.find('"', begin);
    for (size_t at = svg.find('h', begin); at < end; at = svg.find('h', at + 1)) {
      sum += std::stod(svg.substr(at + 1, 12));
    }
  }
  return sum;
}

TEST(TimelineSvgTest, IsWellFormedWhateverTheNames) {
  TwoRankStep step;
  step.schedule.roles[0].streams[1].name = "row <\"1\" & '2'>";
  const std::string svg = Draw(step.schedule, step.timeline);
  ExpectWellFormed(svg);
  EXPECT_THAT(svg, HasSubstr("A &amp; B &lt;two ranks&gt;"));
  EXPECT_THAT(svg, HasSubstr("row &lt;&quot;1&quot; &amp; '2'&gt;"));
}

TEST(TimelineSvgTest, WhatXmlForbidsIsWrittenOut) {
  TwoRankStep step;
  step.schedule.roles[0].streams[1].name = "a\x1b[31mb\xff\xef\xbf\xbf";
  const std::string svg = Draw(step.schedule, step.timeline);
  ExpectWellFormed(svg);
  EXPECT_THAT(svg, HasSubstr("a\\x1b[31mb\\xff\\uffff"));
}

TEST(TimelineSvgTest, NamesTheStepTheLanesAndTheColours) {
  const TwoRankStep step;
  const std::string svg = Draw(step.schedule, step.timeline);
  EXPECT_THAT(svg, HasSubstr(">26 us</text>"));
  for (const char* name :
       {"compute", "row", "column", "forward", "memory-bound", "gemm", "waits for the group"}) {
    EXPECT_THAT(svg, HasSubstr(">" + std::string(name) + "</text>"));
  }
  EXPECT_THAT(svg, Not(HasSubstr(">recompute</text>")));  // there is none
}

// Rank 0's norm takes 4 of the 26 us, its gemm 10: in the picture 2.5 times as wide, except for the
// half pixel that keeps neighbours apart.
TEST(TimelineSvgTest, WidthsAreInProportion) {
  const TwoRankStep step;
  const std::string svg = Draw(step.schedule, step.timeline);
  const SpanClasses classes(step.schedule);
  const auto width = [&](size_t op) {
    return Drawn(svg, classes.all()[classes.Of(step.schedule.roles[0].ops[op])].fill) + 0.5;
  };
  EXPECT_NEAR(width(0) / width(3), 2.5, 0.01);
}

// In 2..6 us rank 0 computes all the time, waits for its all-gather until 5 and then runs it: 3 to
// 1.
TEST(TimelineSvgTest, AWindowCutsSpansAndWaits) {
  const TwoRankStep step;
  PictureOptions options;
  options.from = Time(2 * kMicrosecond);
  options.to = Time(6 * kMicrosecond);
  const std::string svg = Draw(step.schedule, step.timeline, options);
  ExpectWellFormed(svg);
  EXPECT_THAT(svg, HasSubstr("from 2 us to 6 us"));
  EXPECT_THAT(svg, HasSubstr(">100 %</text>"));
  const SpanClasses classes(step.schedule);
  const size_t column = classes.Of(step.schedule.roles[0].ops[2]);
  const double moves = Drawn(svg, classes.all()[column].fill) + 0.5;
  const double waits = Drawn(svg, "url(#w" + std::to_string(column) + ")");
  EXPECT_NEAR(waits / moves, 3, 0.01);
}

// Rank 0 computes 14 of 26 us, and the all-gather runs 11 of them.
TEST(TimelineSvgTest, SaysHowMuchOfTheTimeALaneIsActive) {
  const TwoRankStep step;
  const std::string svg = Draw(step.schedule, step.timeline);
  EXPECT_THAT(svg, HasSubstr(">54 %</text>"));
  EXPECT_THAT(svg, HasSubstr(">42 %</text>"));
}

TEST(TimelineSvgTest, SeveralRanksAreNamed) {
  const TwoRankStep step;
  PictureOptions options;
  options.ranks = {1, 0};
  TraceNames names;
  names.node_of_rank = {"node0", "node1"};
  names.device_of_rank = {"gpu0", "gpu0"};
  const std::string svg = TimelineSvg(step.schedule, step.timeline, names, options);
  ExpectWellFormed(svg);
  EXPECT_THAT(svg, HasSubstr("node1 · gpu0 (rank 1)"));
  EXPECT_THAT(svg, HasSubstr("node0 · gpu0 (rank 0)"));
}

TEST(TimelineSvgTest, StaysSmallHoweverManySpans) {
  const RandomStep step(4, 60'000, 5);
  PictureOptions options;
  options.ranks = {0, 1};
  const std::string svg = Draw(step.schedule, step.timeline, options);
  ExpectWellFormed(svg);
  EXPECT_LT(svg.size(), 300'000u);
}

// Merging keeps the amount of everything: random ops alternate between two classes.
TEST(TimelineSvgTest, MergedSpansAreAsWideAsTheyAreTogether) {
  const RandomStep step(4, 30'000, 9);
  const std::string svg = Draw(step.schedule, step.timeline);
  const SpanClasses classes(step.schedule);
  double drawn = 0;
  for (const SpanClass& span_class : classes.all()) {
    if (!span_class.communication) drawn += Drawn(svg, span_class.fill);
  }
  double busy = 0;
  const auto [first, last] = step.timeline.SpansOf(0);
  for (size_t i = first; i < last; ++i) {
    const Span& span = step.timeline.spans[i];
    if (CommunicatorOf(step.schedule.roles[0].ops[span.op].work).IsSet()) continue;
    busy += static_cast<double>((span.end - span.begin).picoseconds());
  }
  // The axis begins right of the labels and ends left of the percentages.
  const size_t background = svg.find("\" height=\"34\" fill=\"#f3f6f9\"");
  ASSERT_NE(background, std::string::npos);
  const double axis = std::stod(svg.substr(svg.rfind("width=\"", background) + 7));
  EXPECT_NEAR(drawn / axis, busy / static_cast<double>(step.timeline.step.picoseconds()), 0.03);
}

// The hatched share of what moves data is the share of its time in which no kernel runs.
TEST(TimelineSvgTest, WhatNoKernelHidesIsHatched) {
  const TwoRankStep step;
  const std::string svg = Draw(step.schedule, step.timeline);
  const SpanClasses classes(step.schedule);
  double exposed = 0;
  const auto [first, last] = step.timeline.SpansOf(0);
  std::vector<const Span*> kernels;
  for (size_t i = first; i < last; ++i)
    if (!CommunicatorOf(step.schedule.roles[0].ops[step.timeline.spans[i].op].work).IsSet())
      kernels.push_back(&step.timeline.spans[i]);
  double moved = 0;
  for (size_t i = first; i < last; ++i) {
    const Span& span = step.timeline.spans[i];
    if (!CommunicatorOf(step.schedule.roles[0].ops[span.op].work).IsSet()) continue;
    moved += static_cast<double>((span.end - span.begin).picoseconds());
    // Going by picoseconds would take long; everything begins and ends at whole microseconds.
    for (Time at = span.begin; at < span.end; at = at + Time(kMicrosecond)) {
      const bool hidden = std::any_of(kernels.begin(), kernels.end(), [&](const Span* kernel) {
        return kernel->begin <= at && at < kernel->end;
      });
      if (!hidden) exposed += static_cast<double>(kMicrosecond);
    }
  }
  double drawn = 0;
  for (const SpanClass& one : classes.all())
    if (one.communication) drawn += Drawn(svg, one.fill) + 0.5;
  EXPECT_NEAR(Drawn(svg, "url(#x)") / drawn, exposed / moved, 0.02);
  EXPECT_THAT(svg, HasSubstr(">exposed: no kernel runs</text>"));
}

TEST(TimelineSvgTest, BarsSayWhatTheyAre) {
  const TwoRankStep step;
  const std::string svg = Draw(step.schedule, step.timeline);
  EXPECT_THAT(svg, HasSubstr("<title>" + step.schedule.roles[0].ops[0].name));
}

// A window may end after the step: the step then takes its share of the width.
TEST(TimelineSvgTest, AWindowBeyondTheEndIsKept) {
  const TwoRankStep step;
  const SpanClasses classes(step.schedule);
  const std::string fill = classes.all()[classes.Of(step.schedule.roles[0].ops[0])].fill;
  PictureOptions options;
  options.to = Time(52 * kMicrosecond);
  const double half = Drawn(Draw(step.schedule, step.timeline, options), fill) + 0.5;
  EXPECT_NEAR(half / (Drawn(Draw(step.schedule, step.timeline), fill) + 0.5), 0.5, 0.01);
}

TEST(TimelineSvgTest, StackedStepsShareAnAxis) {
  const TwoRankStep step;
  TwoRankStep longer;
  longer.timeline.step = Time(52 * kMicrosecond);
  PicturedStep upper{&step.schedule, &step.timeline, {"a<b", {}, {}}};
  PicturedStep lower{&longer.schedule, &longer.timeline, {"twice", {}, {}}};
  const std::string svg = StackedTimelinesSvg({upper, lower});
  ExpectWellFormed(svg);
  EXPECT_THAT(svg, HasSubstr("<title>a&lt;b above twice</title>"));
  EXPECT_THAT(svg, HasSubstr("<svg y=\"0\""));
  // The same op is as wide in both, though one step is twice as long.
  const SpanClasses classes(step.schedule);
  const std::string fill = classes.all()[classes.Of(step.schedule.roles[0].ops[0])].fill;
  const size_t second = svg.find("<svg y=", svg.find("<svg y=") + 1);
  EXPECT_NEAR(Drawn(svg.substr(0, second), fill), Drawn(svg.substr(second), fill), 0.02);
}

TEST(TimelineSvgTest, AnEmptyStepIsAnEmptyPicture) {
  TwoRankStep step;
  step.timeline.spans.clear();
  step.timeline.step = Time();
  ExpectWellFormed(Draw(step.schedule, step.timeline));
}

TEST(TimelineSvgTest, ARankThatDoesNotExistIsOurFault) {
  const TwoRankStep step;
  PictureOptions options;
  options.ranks = {2};
  EXPECT_THROW(Draw(step.schedule, step.timeline, options), InternalError);
}

TEST(SvgTest, CoordinatesAreShort) {
  EXPECT_EQ(svg::Pixels(12), "12");
  EXPECT_EQ(svg::Pixels(12.5), "12.5");
  EXPECT_EQ(svg::Pixels(12.504), "12.5");
  EXPECT_EQ(svg::Pixels(-0.001), "0");
}

}  // namespace timeline_svg_test
}  // namespace rehearse
