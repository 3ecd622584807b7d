// Where things stand in a picture of a step, read back from the SVG: bars where their times are, in
// their lanes, within the frame; texts beside what they name, none upon another.
#include <cmath>
#include <sstream>

#include <boost/property_tree/ptree.hpp>
#include <boost/property_tree/xml_parser.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/units.h"
#include "sim/report/span_classes.h"
#include "sim/report/svg.h"
#include "sim/report/trace.h"
#include "tests/sim/sample_step.h"

namespace rehearse {
namespace picture_geometry_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Tree = boost::property_tree::ptree;

constexpr double kHair = 0.51;  // between neighbours, and rounding to a hundredth

struct Box {
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;
  std::string fill;
  std::string title;

  double right() const { return x + width; }
  double bottom() const { return y + height; }
  double middle() const { return x + width / 2; }
};

struct Text {
  std::string kind;  // its class
  std::string text;
  std::string ink;
  double x = 0;
  double y = 0;  // the baseline
  double size = 0;
  double left = 0;
  double right = 0;
};

struct Drawing {
  double width = 0;
  double height = 0;
  std::vector<Box> lanes;     // backgrounds
  std::vector<Box> bars;      // ops, waits, exposed pieces: strokes of a colour
  std::vector<Box> titled;    // unseen, to point at
  std::vector<Box> swatches;  // of the legend
  std::vector<Box> gaps;      // in the brackets of phases
  std::vector<Box> brackets;
  std::vector<Box> grid;  // lines of the time axis
  std::vector<Text> texts;

  double left() const { return lanes.front().x; }
  double right() const { return lanes.front().right(); }
  std::vector<Text> Of(const std::string& kind) const {
    std::vector<Text> found;
    for (const Text& text : texts)
      if (text.kind == kind) found.push_back(text);
    return found;
  }
  const Text& Named(const std::string& name) const {
    for (const Text& text : texts)
      if (text.text == name) return text;
    ADD_FAILURE() << "no text " << name;
    return texts.front();
  }
  std::vector<Box> BarsOf(const std::string& fill, const Box& lane) const {
    std::vector<Box> found;
    for (const Box& bar : bars)
      if (bar.fill == fill && std::abs(bar.y - lane.y) < 0.02) found.push_back(bar);
    return found;
  }
};

double Number(const Tree& element, const std::string& name) {
  return element.get<double>("<xmlattr>." + name);
}
std::string Attribute(const Tree& element, const std::string& name) {
  return element.get<std::string>("<xmlattr>." + name, "");
}

// "M10 20h30M50 20h5" at a stroke's width.
void AddStrokes(const Tree& path, double thick, const std::string& color, std::vector<Box>* boxes) {
  std::istringstream d(Attribute(path, "d"));
  char letter = 0;
  Box box;
  double middle = 0;
  while (d >> letter >> box.x >> middle >> letter >> box.width) {
    box.y = middle - thick / 2;
    box.height = thick;
    box.fill = color;
    box.title = path.get<std::string>("title", "");
    boxes->push_back(box);
  }
}

void AddText(const Tree& element, Drawing* drawing) {
  Text text;
  text.kind = Attribute(element, "class");
  text.text = element.data();
  text.ink = Attribute(element, "style");
  text.x = Number(element, "x");
  text.y = Number(element, "y");
  const char first = text.kind.front();
  text.size = first == 't' || first == 'b'   ? 20
              : first == 's'                 ? 13
              : first == 'n'                 ? 10.5
              : first == 'a' || first == 'p' ? 11
                                             : 12;
  const double width = svg::TextWidth(text.text, text.size);
  const bool ends = text.kind.ends_with("e") || first == 'b';
  const bool is_centred = first == 'n' || first == 'a' || first == 'p';
  text.left = text.x - (ends ? width : is_centred ? width / 2 : 0);
  text.right = text.left + width;
  drawing->texts.push_back(text);
}

void AddPath(const Tree& element, Drawing* drawing) {
  const std::string d = Attribute(element, "d");
  const std::string color = Attribute(element, "stroke");
  if (!Attribute(element, "stroke-width").empty())
    return AddStrokes(element, Number(element, "stroke-width"), color, &drawing->bars);
  std::istringstream in(d);
  char letter = 0;
  Box box;
  in >> letter >> box.x >> box.y >> letter;
  double to = 0;
  in >> to;
  if (letter == 'V') {  // a line from above to below
    box.height = to - box.y;
    drawing->grid.push_back(box);
  } else {  // "v-5H90v5"
    box.height = to;
    in >> letter >> to;
    box.width = to - box.x;
    drawing->brackets.push_back(box);
  }
}

Drawing Read(const std::string& svg) {
  std::istringstream stream(svg);
  Tree document;
  boost::property_tree::read_xml(stream, document);
  const Tree& root = document.get_child("svg");
  Drawing drawing;
  drawing.width = Number(root, "width");
  drawing.height = Number(root, "height");
  for (const auto& [name, element] : root) {
    if (name == "text") AddText(element, &drawing);
    if (name == "path") AddPath(element, &drawing);
    if (name == "g") {
      const double thick = Number(element, "stroke-width");
      for (const auto& [inner, path] : element)
        if (inner == "path") AddStrokes(path, thick, "", &drawing.titled);
    }
    if (name != "rect") continue;
    const std::string fill = Attribute(element, "fill");
    const Box box{Number(element, "x"),
                  Number(element, "y"),
                  Number(element, "width"),
                  Number(element, "height"),
                  fill,
                  ""};
    const bool is_rounded = !Attribute(element, "rx").empty();
    if (fill == "#f3f6f9") drawing.lanes.push_back(box);
    if (is_rounded && box.height == 12) drawing.swatches.push_back(box);
    if (!is_rounded && fill == "#fff") drawing.gaps.push_back(box);
  }
  return drawing;
}

Drawing Draw(const Schedule& schedule, const Timeline& timeline,
             const PictureOptions& options = {}) {
  TraceNames names;
  names.title = "a step";
  return Read(TimelineSvg(schedule, timeline, names, options));
}

// Two stages, each with two micro-batches forward, then backward: 4 us and 8 us apiece, in two
// products each, the second stage 4 us later.
struct TwoStages {
  TwoStages() {
    schedule.communicators = {Communicator::Explicit("stages", {{0, 1}})};
    for (const char* name : {"first", "last"}) {
      Role role;
      role.name = name;
      role.streams = {{"compute", StreamKind::kCompute}};
      for (const auto& [phase, micro_batch] :
           {std::pair{Phase::kForward, 0}, std::pair{Phase::kForward, 1},
            std::pair{Phase::kBackward, 0}, std::pair{Phase::kBackward, 1}}) {
        Op op = ComputeOp("gemm", ComputeKind::kGemm, phase, 1e6);
        op.tag.micro_batch = micro_batch;
        role.ops.push_back(op);
        role.ops.push_back(op);
      }
      schedule.roles.push_back(role);
    }
    schedule.role_of_rank = {0, 1};
    const auto add = [&](uint32_t rank, uint32_t op, int64_t begin, int64_t end) {
      timeline.spans.push_back(
          SpanAt(rank, op, begin * kMicrosecond, begin * kMicrosecond, end * kMicrosecond));
    };
    for (const uint32_t rank : {0u, 1u}) {
      const int64_t later = 4 * rank;
      for (const int64_t i : {0, 1, 2, 3})
        add(rank, static_cast<uint32_t>(i), later + 2 * i, later + 2 * i + 2);
      for (const int64_t i : {0, 1, 2, 3})
        add(rank, static_cast<uint32_t>(4 + i), later + 12 + 4 * i, later + 16 + 4 * i);
    }
    timeline.ranks = 2;
    timeline.step = Time(40 * kMicrosecond);
  }

  Schedule schedule;
  Timeline timeline;
};

std::vector<Drawing> ManyDrawings() {
  std::vector<Drawing> all;
  const TwoRankStep two;
  const TwoStages stages;
  const RandomStep few(4, 40, 1);
  const RandomStep many(8, 3000, 2);
  for (const int width : {400, 640, 1200, 2400}) {
    PictureOptions options;
    options.width = width;
    all.push_back(Draw(two.schedule, two.timeline, options));
    options.ranks = {1, 0};
    all.push_back(Draw(two.schedule, two.timeline, options));
    all.push_back(Draw(stages.schedule, stages.timeline, options));
    all.push_back(Draw(few.schedule, few.timeline, options));
    all.push_back(Draw(many.schedule, many.timeline, options));
    options.from = Time(3 * kMicrosecond);
    options.to = Time(19 * kMicrosecond);
    all.push_back(Draw(two.schedule, two.timeline, options));
    all.push_back(Draw(many.schedule, many.timeline, options));
  }
  return all;
}

TEST(PictureGeometryTest, EverythingIsWithinTheFrame) {
  for (const Drawing& drawing : ManyDrawings()) {
    for (const Text& text : drawing.texts) {
      const bool is_title = text.y < 60;  // as long as it is
      EXPECT_GE(text.left, 10) << text.text;
      EXPECT_TRUE(is_title || text.right <= drawing.width - 10) << text.text;
      EXPECT_GE(text.y - text.size, 0) << text.text;
      EXPECT_LE(text.y, drawing.height - 10) << text.text;
    }
    for (const Box& box : drawing.swatches) {
      EXPECT_GE(box.x, 20);
      EXPECT_LE(box.right(), drawing.width - 20);
      EXPECT_LE(box.bottom(), drawing.height - 10);
    }
    // Nothing but the margin below the legend.
    EXPECT_LE(drawing.height, drawing.swatches.back().bottom() + 30);
  }
}

TEST(PictureGeometryTest, NoTextStandsUponAnother) {
  for (const Drawing& drawing : ManyDrawings()) {
    for (size_t i = 0; i < drawing.texts.size(); ++i) {
      const Text& a = drawing.texts[i];
      for (size_t j = i + 1; j < drawing.texts.size(); ++j) {
        const Text& b = drawing.texts[j];
        if (std::max(a.y, b.y) < 60 && drawing.width < 1000) continue;  // long titles
        const bool on_one_line = std::abs(a.y - b.y) < 0.8 * std::min(a.size, b.size);
        EXPECT_FALSE(on_one_line && a.left < b.right && b.left < a.right)
            << a.text << " and " << b.text << ", width " << drawing.width;
      }
    }
  }
}

// Lanes have one axis and stand one below the other, a little apart; bars are as high as their lane
// (or as the row of micro-batches) and do not leave it.
TEST(PictureGeometryTest, LanesAreApartAndBarsInThem) {
  for (const Drawing& drawing : ManyDrawings()) {
    for (size_t i = 0; i < drawing.lanes.size(); ++i) {
      const Box& lane = drawing.lanes[i];
      EXPECT_EQ(lane.x, drawing.left());
      EXPECT_EQ(lane.right(), drawing.right());
      EXPECT_GT(lane.width, 0.5 * drawing.width);
      if (i > 0) {
        EXPECT_GE(lane.y, drawing.lanes[i - 1].bottom() + 4);
        EXPECT_LE(lane.y, drawing.lanes[i - 1].bottom() + 70);
      }
    }
    for (const Box& bar : drawing.bars) {
      EXPECT_GE(bar.x, drawing.left() - 0.01);
      EXPECT_LE(bar.right(), drawing.right() + 0.61);  // a hair of an op is drawn wider than it is
      const auto is_its = [&](const Box& lane) {
        return std::abs(lane.y - bar.y) < 0.02 && std::abs(lane.height - bar.height) < 0.02;
      };
      const bool is_in_lane = std::any_of(drawing.lanes.begin(), drawing.lanes.end(), is_its);
      EXPECT_TRUE(is_in_lane || bar.height == 18) << bar.y << " " << bar.height;
    }
  }
}

// Bars of ops (not waits and exposed pieces, which lie upon them) in a lane follow each other.
TEST(PictureGeometryTest, BarsOfALaneDoNotOverlap) {
  for (const Drawing& drawing : ManyDrawings()) {
    std::map<double, std::vector<Box>> by_lane;
    for (const Box& bar : drawing.bars)
      if (bar.fill.starts_with("#")) by_lane[bar.y].push_back(bar);
    for (auto& [y, bars] : by_lane) {
      // What takes hardly any time comes before what begins in the same hundredth of a pixel.
      std::sort(bars.begin(), bars.end(), [](const Box& a, const Box& b) {
        return std::pair(a.x, a.width) < std::pair(b.x, b.width);
      });
      for (size_t i = 1; i < bars.size(); ++i)
        EXPECT_GE(bars[i].x, bars[i - 1].right() - 0.7) << "in the lane at " << y;
    }
  }
}

// Every op of TwoRankStep, with its wait: at its time, on its lane.
TEST(PictureGeometryTest, BarsStandWhereTheirTimesAre) {
  const TwoRankStep step;
  const SpanClasses classes(step.schedule);
  for (const int64_t from : {0, 3}) {
    for (const int64_t to : {26, 19, 40}) {
      PictureOptions options;
      options.ranks = {0, 1};
      options.from = Time(from * kMicrosecond);
      options.to = Time(to * kMicrosecond);
      const Drawing drawing = Draw(step.schedule, step.timeline, options);
      ASSERT_EQ(drawing.lanes.size(), 8u);
      const double scale = (drawing.right() - drawing.left()) / static_cast<double>(to - from);
      const auto x = [&](Time time) {
        const double at = 1e-6 * static_cast<double>(time.picoseconds());
        const double shown = std::clamp(at, static_cast<double>(from), static_cast<double>(to));
        return drawing.left() + scale * (shown - static_cast<double>(from));
      };
      size_t bars = 0;
      for (const Span& span : step.timeline.spans) {
        if (span.ready.picoseconds() >= to * kMicrosecond ||
            span.end.picoseconds() <= from * kMicrosecond)
          continue;
        const Op& op = step.schedule.roles[0].ops[span.op];
        const size_t span_class = classes.Of(op);
        const Box& lane = drawing.lanes[4 * span.rank + op.stream.index()];
        const auto found = [&](const std::string& fill, double begin, double end) {
          const std::vector<Box> of_class = drawing.BarsOf(fill, lane);
          return std::any_of(of_class.begin(), of_class.end(), [&](const Box& bar) {
            return std::abs(bar.x - begin) < 0.02 && end - bar.right() < kHair &&
                   bar.right() - end < 0.02;
          });
        };
        const double begin = x(span.begin);
        const double end = x(span.end);
        if (end - begin > 1) {
          ++bars;
          EXPECT_TRUE(found(classes.all()[span_class].fill, begin, end))
              << op.name << " of rank " << span.rank;
        }
        if (begin - x(span.ready) > 1) {
          ++bars;
          EXPECT_TRUE(found("url(#w" + std::to_string(span_class) + ")", x(span.ready), begin))
              << "before " << op.name << " of rank " << span.rank;
        }
      }
      const auto drawn = std::count_if(drawing.bars.begin(), drawing.bars.end(),
                                       [](const Box& bar) { return bar.fill != "url(#x)"; });
      EXPECT_EQ(static_cast<size_t>(drawn), bars);
    }
  }
}

// Rank 0's kernels run in 0..10 and 20..24 us: of the all-reduce in 12..20 all is exposed, of the
// all-gather in 5..16 what comes after 10, and of the one in 1..9 that moves nothing, nothing.
TEST(PictureGeometryTest, WhatIsExposedIsHatchedWhereNoKernelRuns) {
  const TwoRankStep step;
  const Drawing drawing = Draw(step.schedule, step.timeline);
  const double scale = (drawing.right() - drawing.left()) / 26;
  std::vector<std::pair<double, double>> hatched;
  for (const size_t lane : {0, 1, 2, 3}) {
    for (const Box& bar : drawing.BarsOf("url(#x)", drawing.lanes[lane]))
      hatched.emplace_back(std::round((bar.x - drawing.left()) / scale * 10) / 10,
                           std::round((bar.right() - drawing.left()) / scale * 10) / 10);
  }
  EXPECT_THAT(hatched, ElementsAre(std::pair(12, 20), std::pair(10, 16)));
}

// 2,600 all-reduces of 10 ns each, a third of a pixel, one after the other from 0 to 26 us, beside
// nothing: all is hatched.
TEST(PictureGeometryTest, ExposedPiecesTooNarrowToSeeAreHatchedTogether) {
  TwoRankStep step;
  step.schedule.roles[0].ops.assign(2600, step.schedule.roles[0].ops[1]);
  for (Op& op : step.schedule.roles[0].ops) op.after.clear();
  step.timeline.spans.clear();
  for (const uint32_t rank : {0u, 1u}) {
    for (uint32_t i = 0; i < 2600; ++i) {
      const int64_t begin = i * kMicrosecond / 100;
      step.timeline.spans.push_back(SpanAt(rank, i, begin, begin, begin + kMicrosecond / 100));
    }
  }
  const Drawing drawing = Draw(step.schedule, step.timeline);
  const std::vector<Box> hatched = drawing.BarsOf("url(#x)", drawing.lanes[0]);
  ASSERT_EQ(hatched.size(), 1u);
  EXPECT_NEAR(hatched[0].x, drawing.left(), 0.02);
  EXPECT_NEAR(hatched[0].right(), drawing.right(), kHair);
}

// Names end left of the axis and percentages at the right margin, both in the middle of the lane:
// the baseline of letters of 12 pixels is some 4 below it. Rank 0 computes 14 of 26 us, reduces 8,
// gathers 11, and the collective of one rank takes 8.
TEST(PictureGeometryTest, LanesAreNamedOnTheLeftAndCountedOnTheRight) {
  const TwoRankStep step;
  const Drawing drawing = Draw(step.schedule, step.timeline);
  const char* const kNames[] = {"compute", "row", "column", "solo"};
  const char* const kActive[] = {"54 %", "31 %", "42 %", "31 %"};
  for (size_t i = 0; i < 4; ++i) {
    const double baseline = drawing.lanes[i].y + drawing.lanes[i].height / 2 + 4;
    size_t names = 0;
    size_t figures = 0;
    for (const Text& text : drawing.texts) {
      if (std::abs(text.y - baseline) > 0.5) continue;
      if (text.text == kNames[i] && std::abs(text.right - (drawing.left() - 10)) < 0.5) ++names;
      if (text.text == kActive[i] && std::abs(text.right - (drawing.width - 24)) < 0.5) ++figures;
    }
    EXPECT_EQ(names, 1u) << kNames[i];
    EXPECT_EQ(figures, 1u) << kActive[i];
  }
  // The heading of that column.
  EXPECT_NEAR(drawing.Named("active").right, drawing.width - 24, 0.5);
  EXPECT_LT(drawing.Named("active").y, drawing.lanes[0].y);
  EXPECT_GT(drawing.Named("active").y, drawing.lanes[0].y - 15);
}

TEST(PictureGeometryTest, TicksStandAtTheirTimes) {
  for (const auto& [from, to] : {std::pair{0, 26}, std::pair{3, 19}, std::pair{5, 7}}) {
    const TwoRankStep step;
    PictureOptions options;
    options.from = Time(from * kMicrosecond);
    options.to = Time(to * kMicrosecond);
    const Drawing drawing = Draw(step.schedule, step.timeline, options);
    const std::vector<Text> ticks = drawing.Of("a");
    ASSERT_GE(ticks.size(), 3u);
    ASSERT_EQ(ticks.size(), drawing.grid.size());
    for (size_t i = 0; i < ticks.size(); ++i) {
      const double microseconds = 1000 * std::stod(ticks[i].text);
      const double share = (microseconds - from) / (to - from);
      EXPECT_NEAR(ticks[i].x, drawing.left() + share * (drawing.right() - drawing.left()), 0.02);
      EXPECT_EQ(drawing.grid[i].x, ticks[i].x);
      // From above the first lane to below the last, the label right under it.
      EXPECT_LT(drawing.grid[i].y, drawing.lanes.front().y);
      EXPECT_GT(drawing.grid[i].y, drawing.lanes.front().y - 5);
      EXPECT_GT(drawing.grid[i].bottom(), drawing.lanes.back().bottom());
      EXPECT_LT(drawing.grid[i].bottom(), drawing.lanes.back().bottom() + 10);
      EXPECT_GT(ticks[i].y - ticks[i].size, drawing.grid[i].bottom() - 1);
      EXPECT_LT(ticks[i].y, drawing.grid[i].bottom() + 20);
    }
    EXPECT_EQ(drawing.Named("ms").y, ticks[0].y);
  }
}

// Each colour that is drawn, and no other, has a sample, and its name right of it.
TEST(PictureGeometryTest, TheLegendNamesTheColours) {
  const TwoRankStep step;
  const SpanClasses classes(step.schedule);
  for (const int width : {400, 1200}) {
    PictureOptions options;
    options.width = width;
    const Drawing drawing = Draw(step.schedule, step.timeline, options);
    std::map<std::string, std::string> name_of;
    for (const Box& swatch : drawing.swatches) {
      EXPECT_EQ(swatch.width, 16);
      for (const Text& text : drawing.Of("l")) {
        if (text.y > swatch.y && text.y < swatch.bottom() && text.left > swatch.right() &&
            text.left < swatch.right() + 10)
          name_of[swatch.fill] = text.text;
      }
      for (const Box& other : drawing.swatches)
        EXPECT_TRUE(&other == &swatch || std::abs(other.y - swatch.y) > 20 ||
                    std::abs(other.x - swatch.x) > 40);
    }
    std::map<std::string, std::string> expected = {{"url(#w)", "waits for the group"},
                                                   {"url(#x)", "exposed: no kernel runs"}};
    for (const Op& op : step.schedule.roles[0].ops) {
      const SpanClass& span_class = classes.all()[classes.Of(op)];
      expected[span_class.fill] = span_class.name;
    }
    EXPECT_EQ(name_of, expected);
    EXPECT_EQ(drawing.swatches.size(), expected.size());  // each once
    for (const Box& swatch : drawing.swatches)
      EXPECT_GT(swatch.y, drawing.Named("ms").y + 4) << "below the axis and its figures";
    // Two rows or more: what computes first, then what moves data, headed left of the axis.
    const Text& computes = drawing.Named("computes");
    const Text& moves = drawing.Named("moves data");
    EXPECT_EQ(drawing.swatches.front().x, drawing.left());
    EXPECT_GT(moves.y, computes.y + 15);
    for (const Text* heading : {&computes, &moves}) {
      EXPECT_NEAR(heading->right, drawing.left() - 10, 0.5);
      const auto is_beside = [&](const Box& swatch) {
        return swatch.x == drawing.left() && swatch.y < heading->y && heading->y < swatch.bottom();
      };
      EXPECT_TRUE(std::any_of(drawing.swatches.begin(), drawing.swatches.end(), is_beside));
    }
  }
}

// Rank 0's forward pass takes 0..10, the backward pass 20..24 of 26 us.
TEST(PictureGeometryTest, PhasesAreBracketed) {
  const TwoRankStep step;
  const Drawing drawing = Draw(step.schedule, step.timeline);
  const double scale = (drawing.right() - drawing.left()) / 26;
  ASSERT_EQ(drawing.brackets.size(), 2u);
  const std::pair<double, double> kTimes[] = {{0, 10}, {20, 24}};
  const std::vector<Text> names = drawing.Of("p");
  ASSERT_EQ(names.size(), 2u);
  EXPECT_EQ(names[0].text, "forward");
  EXPECT_EQ(names[1].text, "backward");
  for (size_t i = 0; i < 2; ++i) {
    const Box& bracket = drawing.brackets[i];
    EXPECT_NEAR(bracket.x, drawing.left() + scale * kTimes[i].first, 1.1);
    EXPECT_NEAR(bracket.right(), drawing.left() + scale * kTimes[i].second, 1.1);
    EXPECT_LT(bracket.y, drawing.lanes[0].y);
    EXPECT_LT(bracket.height, 0);  // its ends point down, to the lanes
    EXPECT_NEAR(names[i].x, bracket.middle(), 0.02);
    // The line is broken where the name stands, and only there.
    const Box& gap = drawing.gaps[i];
    EXPECT_LT(gap.x, names[i].left);
    EXPECT_GT(gap.right(), names[i].right);
    EXPECT_GT(gap.x, bracket.x);
    EXPECT_LT(gap.right(), bracket.right());
    EXPECT_LT(gap.y, bracket.y + bracket.height);
    EXPECT_GT(gap.bottom(), bracket.y + bracket.height);
  }
}

TEST(PictureGeometryTest, ANameOfAPhaseStandsOnlyWhereThereIsRoom) {
  for (const Drawing& drawing : ManyDrawings()) {
    ASSERT_EQ(drawing.Of("p").size(), drawing.gaps.size());
    for (const Box& gap : drawing.gaps) {
      const auto is_within = [&](const Box& bracket) {
        return bracket.x + 5 < gap.x && gap.right() < bracket.right() - 5;
      };
      EXPECT_TRUE(std::any_of(drawing.brackets.begin(), drawing.brackets.end(), is_within));
    }
  }
}

// An op's name stands in the middle of its bar, in the ink of its class, if it fits; who points at
// the bar reads more.
TEST(PictureGeometryTest, BarsAreNamedInTheirMiddle) {
  const TwoRankStep step;
  const SpanClasses classes(step.schedule);
  const Drawing drawing = Draw(step.schedule, step.timeline);
  const auto is_wait = [](const Box& bar) {
    return bar.title.find("waits for the group") != std::string::npos;
  };
  ASSERT_EQ(drawing.titled.size(), 7u);
  EXPECT_EQ(std::count_if(drawing.titled.begin(), drawing.titled.end(), is_wait), 2);
  size_t i = 0;
  for (const Text& name : drawing.Of("n")) {
    const Op& op =
        *std::find_if(step.schedule.roles[0].ops.begin(), step.schedule.roles[0].ops.end(),
                      [&](const Op& one) { return one.name == name.text; });
    EXPECT_EQ(name.ink, std::string("fill:") + classes.all()[classes.Of(op)].ink);
    const auto bar = std::find_if(drawing.titled.begin(), drawing.titled.end(), [&](const Box& b) {
      return b.title.starts_with(op.name) && std::abs(b.middle() - name.x) < 0.3;
    });
    ASSERT_NE(bar, drawing.titled.end()) << op.name;
    EXPECT_GE(name.left, bar->x);
    EXPECT_LE(name.right, bar->right());
    EXPECT_NEAR(name.y, bar->y + bar->height / 2 + 3.7, 0.1);
    ++i;
  }
  EXPECT_EQ(i, 5u);
  const auto title = [&](const std::string& name) {
    for (const Box& bar : drawing.titled)
      if (bar.title.starts_with(name) && !is_wait(bar)) return bar.title;
    return std::string();
  };
  EXPECT_EQ(title("gemm"), "gemm, layer 0: 10 us from 0 s");
  EXPECT_EQ(title("all-gather w"), "all-gather w: 11 us from 5 us");
  const char* const waits = "all-gather w waits for the group: 5 us from 0 s";
  EXPECT_TRUE(std::any_of(drawing.titled.begin(), drawing.titled.end(),
                          [&](const Box& bar) { return bar.title == waits; }));
  // In 400 pixels the bars of 4 us have no room for their names.
  PictureOptions narrow;
  narrow.width = 400;
  for (const Text& name : Draw(step.schedule, step.timeline, narrow).Of("n"))
    EXPECT_NE(name.text, "all-reduce alone");
}

// A stage's micro-batches stand above its lanes: of the first, 0..4 us the first one and 4..8 the
// second, forward, then 12..20 and 20..28 backward; the second stage 4 us later.
TEST(PictureGeometryTest, StagesShowTheirMicroBatches) {
  const TwoStages step;
  PictureOptions options;
  options.ranks = {0, 1};
  const Drawing drawing = Draw(step.schedule, step.timeline, options);
  const double scale = (drawing.right() - drawing.left()) / 40;
  std::map<double, std::vector<Box>> rows;
  for (const Box& bar : drawing.bars)
    if (bar.height == 18) rows[bar.y].push_back(bar);
  ASSERT_EQ(rows.size(), 2u);
  const std::string forward =
      SpanClasses(step.schedule)
          .all()[SpanClasses::OfCompute(ComputeKind::kGemm, Phase::kForward)]
          .fill;
  const std::string backward =
      SpanClasses(step.schedule)
          .all()[SpanClasses::OfCompute(ComputeKind::kGemm, Phase::kBackward)]
          .fill;
  size_t stage = 0;
  for (auto& row : rows) {
    const auto y = row.first;
    auto& bars = row.second;
    std::sort(bars.begin(), bars.end(), [](const Box& a, const Box& b) { return a.x < b.x; });
    ASSERT_EQ(bars.size(), 4u);
    const double later = 4.0 * static_cast<double>(stage);
    const double kBegins[] = {0, 4, 12, 20};
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_NEAR(bars[i].x, drawing.left() + scale * (later + kBegins[i]), 0.02);
      EXPECT_NEAR(bars[i].width, scale * (i < 2 ? 4 : 8) - 0.5, 0.02);
      EXPECT_EQ(bars[i].fill, i < 2 ? forward : backward);
      const auto names_it = [&](const Text& text) {
        return text.kind == "n" && text.text == (i % 2 == 0 ? "1" : "2") &&
               std::abs(text.x - bars[i].middle()) < 0.6 &&
               std::abs(text.y - (bars[i].y + 9 + 3.7)) < 0.1;
      };
      EXPECT_EQ(std::count_if(drawing.texts.begin(), drawing.texts.end(), names_it), 1);
    }
    // Right above the lane of the same stage, and named left of it.
    EXPECT_NEAR(drawing.lanes[stage].y, y + 18 + 5, 0.02);
    const auto heads_it = [&](const Text& text) {
      return text.text == "micro-batch" && std::abs(text.right - (drawing.left() - 10)) < 0.5 &&
             std::abs(text.y - (y + 9 + 4)) < 0.1;
    };
    EXPECT_EQ(std::count_if(drawing.texts.begin(), drawing.texts.end(), heads_it), 1);
    ++stage;
  }
  // The ranks' headings: above the row, the first one too.
  EXPECT_EQ(drawing.Named("first · rank 0").x, 24);
  EXPECT_NEAR(drawing.Named("first · rank 0").y, rows.begin()->first - 8, 0.1);
  EXPECT_NEAR(drawing.Named("last · rank 1").y, rows.rbegin()->first - 8, 0.1);
  bool says_micro_batch = false;
  for (const Box& bar : drawing.titled)
    says_micro_batch =
        says_micro_batch || bar.title == "gemm, layer 0, micro-batch 2: 4 us from 28 us";
  EXPECT_TRUE(says_micro_batch);
}

// Micro-batches of 0..4, 4..8, 12..20 and 20..28 us, 4 us later on the other stage: from 9 to 19 us
// only the third is to be seen, of the last stage also what is left of the second.
TEST(PictureGeometryTest, AWindowShowsOnlyItsMicroBatches) {
  const TwoStages step;
  PictureOptions options;
  options.ranks = {0, 1};
  options.from = Time(9 * kMicrosecond);
  options.to = Time(19 * kMicrosecond);
  const Drawing drawing = Draw(step.schedule, step.timeline, options);
  std::map<double, size_t> rows;
  for (const Box& bar : drawing.bars) {
    if (bar.height != 18) continue;
    ++rows[bar.y];
    EXPECT_GE(bar.x, drawing.left() - 0.02);
    EXPECT_LE(bar.right(), drawing.right() + 0.02);
  }
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows.begin()->second, 1u);
  EXPECT_EQ(rows.rbegin()->second, 2u);
}

// The title above, what is shown below it; on the right how long the step takes.
TEST(PictureGeometryTest, TheTitleSaysWhatIsShown) {
  const TwoRankStep step;
  const Drawing drawing = Draw(step.schedule, step.timeline);
  EXPECT_EQ(drawing.Named("a step").x, 24);
  EXPECT_EQ(drawing.Named("Simulated step on 2 ranks, rank 0 shown").x, 24);
  EXPECT_EQ(drawing.Named("26 us").right, drawing.width - 24);
  EXPECT_EQ(drawing.Named("one step").right, drawing.width - 24);
  EXPECT_LT(drawing.Named("one step").y, drawing.brackets[0].y - 10);
  PictureOptions both;
  both.ranks = {0, 1};
  both.to = Time(20 * kMicrosecond);
  TwoRankStep measured;
  measured.timeline.provenance = Provenance::kMeasured;
  Draw(measured.schedule, measured.timeline, both)
      .Named("Measured step on 2 ranks, 2 of them shown; from 0 s to 20 us");
}

// 3,000 ops, most too narrow to be seen alone: a lane is as full as it is active.
TEST(PictureGeometryTest, AFullLaneLooksFullAndAnEmptyOneEmpty) {
  TwoRankStep step;
  step.schedule.roles[0].ops.assign(2600, step.schedule.roles[0].ops[0]);
  step.timeline.spans.clear();
  // In the first half of the step each 10 ns begin with 9 of compute, in the second with 0.1.
  for (uint32_t i = 0; i < 2600; ++i) {
    const int64_t begin = i * kMicrosecond / 100;
    const int64_t length = i < 1300 ? 9000 : 100;
    step.timeline.spans.push_back(SpanAt(0, i, begin, begin, begin + length));
  }
  for (uint32_t i = 0; i < 2600; ++i) {
    step.timeline.spans.push_back(SpanAt(1, i, 0, 0, 0));
  }
  const Drawing drawing = Draw(step.schedule, step.timeline);
  const double middle = (drawing.left() + drawing.right()) / 2;
  double first_half = 0;
  double second_half = 0;
  for (const Box& bar : drawing.bars) (bar.x < middle ? first_half : second_half) += bar.width;
  const double half = middle - drawing.left();
  EXPECT_NEAR(first_half / half, 0.9, 0.01);
  // 1 % is drawn, and at most a fifth of what is between, so that it can be seen.
  EXPECT_GE(second_half / half, 0.01);
  EXPECT_LE(second_half / half, 0.2);
}

}  // namespace picture_geometry_test
}  // namespace rehearse
