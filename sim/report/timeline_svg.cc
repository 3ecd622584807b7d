#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/units.h"
#include "sim/report/kernel_name.h"
#include "sim/report/lanes.h"
#include "sim/report/span_classes.h"
#include "sim/report/stacked_timelines.h"
#include "sim/report/svg.h"
#include "sim/report/trace.h"

namespace rehearse {
namespace {

using svg::Escape;
using svg::Pixels;

// Pixels.
constexpr double kMargin = 24;
constexpr double kTitleHeight = 64;
constexpr double kPhaseHeight = 26;
constexpr double kComputeLane = 34;
constexpr double kCommunicationLane = 24;
constexpr double kMicroBatchLane = 18;
constexpr double kLaneGap = 5;
constexpr double kRankHeading = 24;
constexpr double kRankGap = 10;
constexpr double kAxisHeight = 30;
constexpr double kLegendRow = 24;
constexpr double kBusyWidth = 58;
constexpr double kLabelSize = 12;
constexpr double kSpanTextSize = 10.5;
constexpr double kNarrow = 1;      // spans below are merged
constexpr double kTitled = 3;      // bars from here on say what they are
constexpr double kFaintest = 0.6;  // least width of merged spans that stand alone

constexpr const char* kComputes = "computes";
constexpr const char* kMovesData = "moves data";
constexpr const char* kMicroBatch = "micro-batch";

constexpr const char* kStyle =
    "text{font-family:-apple-system,'Segoe UI',Helvetica,Arial,'DejaVu "
    "Sans',sans-serif;fill:#24313f}"
    ".t{font-size:20px;font-weight:600}.s{font-size:13px;fill:#5d6b7a}"
    ".b{font-size:20px;font-weight:600;text-anchor:end}.e{text-anchor:end}"
    ".l{font-size:12px}.h{font-size:12px;font-weight:600}.n{font-size:10.5px;text-anchor:middle}"
    ".a{font-size:11px;fill:#5d6b7a;text-anchor:middle}.p{font-size:11px;fill:#5d6b7a;"
    "text-anchor:middle;letter-spacing:.4px}.k{font-size:12px;fill:#5d6b7a}"
    ".o{stroke:#000;stroke-opacity:0}";

// Boxes of one colour: as text, a stroke as thick as the lane is half as long as a rectangle.
class Boxes {
 public:
  void Add(double x, double y, double width, double height) {
    path_of_height_[height] +=
        fmt::format("M{} {}h{}", Pixels(x), Pixels(y + height / 2), Pixels(width));
  }
  bool empty() const { return path_of_height_.empty(); }

  std::string Draw(const std::string& color) const {
    std::string out;
    for (const auto& [height, path] : path_of_height_) {
      out += fmt::format("<path stroke=\"{}\" stroke-width=\"{}\" d=\"{}\"/>\n", color,
                         Pixels(height), path);
    }
    return out;
  }

 private:
  std::map<double, std::string> path_of_height_;
};

// Narrow spans of one lane that fall into the same pixel become one box, as wide as they are
// together and in the colour of the class that takes up most of it.
class NarrowSpans {
 public:
  explicit NarrowSpans(size_t classes) : width_of_class_(classes, 0) {}

  // Spans come in order of x. Calls draw(class, x, width) for each box once it is complete.
  template <typename Draw>
  void Add(size_t span_class, double x, double width, Draw&& draw) {
    if (std::floor(x) != pixel_) Flush(draw);
    if (total_ == 0) start_ = x;
    pixel_ = std::floor(x);
    width_of_class_[span_class] += width;
    total_ += width;
  }

  template <typename Draw>
  void Flush(Draw&& draw) {
    if (total_ > 0) {
      const auto most = std::max_element(width_of_class_.begin(), width_of_class_.end());
      // One that stands alone is drawn wide enough to be seen; many in a row are not, else a lane
      // that is seldom active would look full.
      const double width = std::max(total_, std::min(kFaintest, 0.2 * (start_ - previous_end_)));
      draw(static_cast<size_t>(most - width_of_class_.begin()), start_, width);
      previous_end_ = start_ + width;
    }
    std::fill(width_of_class_.begin(), width_of_class_.end(), 0);
    total_ = 0;
  }

 private:
  std::vector<double> width_of_class_;
  double total_ = 0;
  double start_ = 0;
  double pixel_ = -1;
  double previous_end_ = -10;
};

class Picture {
 public:
  Picture(const Schedule& schedule, const Timeline& timeline, const TraceNames& names,
          const PictureOptions& options)
      : schedule_(schedule),
        timeline_(timeline),
        names_(names),
        from_(options.from),
        to_(options.to == Time() ? timeline.step : options.to),
        width_(options.width),
        classes_(schedule),
        boxes_(classes_.all().size()),
        waits_(classes_.all().size()) {
    CHECK_LE(400, options.width);
    CHECK(!options.ranks.empty());
    CHECK_LE(Time().picoseconds(), from_.picoseconds());
    CHECK_LE(from_.picoseconds(), to_.picoseconds());
    double widest = svg::TextWidth(kMovesData, kLabelSize);
    for (const uint32_t rank : options.ranks) {
      ranks_.push_back(LanesOf(schedule, timeline, rank));
      if (schedule.roles.size() > 1)
        widest = std::max(widest, svg::TextWidth(kMicroBatch, kLabelSize));
      for (const Lane& lane : ranks_.back().lanes) {
        widest = std::max(widest, svg::TextWidth(lane.name, kLabelSize));
      }
    }
    left_ = kMargin + std::min(widest, 180.0) + 12;
    right_ = width_ - kMargin - kBusyWidth;
  }

  double left() const { return left_; }
  double height() const { return height_; }

  // `left` is where the axis begins, no further left than left(); names of patterns begin with
  // `ids`, so that they are unique in a document.
  std::string Draw(double left, std::string ids) {
    left_ = left;
    ids_ = std::move(ids);
    double y = kTitleHeight;
    y = DrawPhases(y);
    const double top = y;
    for (const RankLanes& rank : ranks_) y = DrawRank(rank, y);
    const double bottom = y;
    y = DrawAxis(top, bottom);
    y = DrawLegend(y);
    height_ = y + kMargin / 2;
    return Assemble(height_);
  }

 private:
  const Op& OpOf(const Span& span) const {
    return schedule_.roles[schedule_.role_of_rank[span.rank]].At(span.op);
  }

  double Scale() const {
    const auto window = static_cast<double>((to_ - from_).picoseconds());
    return window > 0 ? (right_ - left_) / window : 0;
  }
  double X(Time time) const {
    return left_ +
           static_cast<double>((std::clamp(time, from_, to_) - from_).picoseconds()) * Scale();
  }

  // Shows where forward, backward and update of the first rank are, if they follow each other.
  double DrawPhases(double y) {
    const std::vector<PhaseExtent> phases = PhasesOf(schedule_, ranks_.front());
    const double line = y + 14;
    for (const PhaseExtent& phase : phases) {
      const double begin = X(phase.begin);
      const double end = X(phase.end);
      if (end - begin < 3) continue;
      back_ += fmt::format("<path d=\"M{0} {1}v-5H{2}v5\" fill=\"none\" stroke=\"#b4bfca\"/>",
                           Pixels(begin + 1), Pixels(line + 3), Pixels(end - 1));
      // The name stands in a gap of the bracket, or nowhere.
      const double room = svg::TextWidth(phase.name, 11) + 16;
      if (end - begin < room + 20) continue;
      const double middle = (begin + end) / 2;
      back_ += fmt::format(
          "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"10\" fill=\"#fff\"/>"
          "<text class=\"p\" x=\"{}\" y=\"{}\">{}</text>",
          Pixels(middle - room / 2), Pixels(line - 7), Pixels(room), Pixels(middle),
          Pixels(line + 2), phase.name);
    }
    return y + kPhaseHeight;
  }

  double DrawRank(const RankLanes& rank, double y) {
    if (ranks_.size() > 1) {
      std::string name = DeviceName(names_, rank.rank);
      const bool has_node = rank.rank < names_.node_of_rank.size();
      const std::string node = has_node ? names_.node_of_rank[rank.rank] : "";
      if (!node.empty() && !name.starts_with(node)) name = node + " · " + name;
      if (schedule_.roles.size() > 1)
        name = schedule_.roles[schedule_.role_of_rank[rank.rank]].name + " · " + name;
      front_ += fmt::format("<text class=\"h\" x=\"{}\" y=\"{}\">{}</text>", Pixels(kMargin),
                            Pixels(y + kRankHeading - 8), Escape(name));
      y += kRankHeading;
    }
    if (schedule_.roles.size() > 1) y = DrawMicroBatches(rank, y);
    const std::vector<TimeInterval> computing = ComputingOf(schedule_, rank, from_, to_);
    for (const Lane& lane : rank.lanes) y = DrawLane(lane, computing, y);
    return y + (ranks_.size() > 1 ? kRankGap : 0);
  }

  // What a stage of a pipeline works on.
  double DrawMicroBatches(const RankLanes& rank, double y) {
    const std::vector<MicroBatchBlock> blocks = MicroBatchesOf(schedule_, rank);
    if (blocks.empty()) return y;
    const double height = kMicroBatchLane;
    front_ += fmt::format("<text class=\"l e\" x=\"{}\" y=\"{}\">{}</text>", Pixels(left_ - 10),
                          Pixels(y + height / 2 + 4), kMicroBatch);
    for (const MicroBatchBlock& block : blocks) {
      if (block.end <= from_ || block.begin >= to_) continue;
      const size_t span_class = SpanClasses::OfCompute(
          ComputeKind::kGemm, block.backward ? Phase::kBackward : Phase::kForward);
      const double begin = X(block.begin);
      const double width = X(block.end) - begin;
      used_.insert(span_class);
      boxes_[span_class].Add(begin, y, std::max(width - 0.5, 0.3), height);
      if (width >= kTitled)
        AddTitle(fmt::format("micro-batch {}, {}", block.micro_batch + 1,
                             block.backward ? "backward" : "forward"),
                 block.begin, block.end, {begin, y, width, height});
      const std::string number = fmt::format("{}", block.micro_batch + 1);
      if (svg::TextWidth(number, kSpanTextSize) + 2 > width) continue;
      front_ += fmt::format("<text class=\"n\" x=\"{}\" y=\"{}\" style=\"fill:{}\">{}</text>",
                            Pixels(begin + width / 2), Pixels(y + height / 2 + 3.7),
                            classes_.all()[span_class].ink, number);
    }
    return y + height + kLaneGap;
  }

  std::string NameOf(const Span& span, const Op& op) const {
    const Tag tag = schedule_.roles[schedule_.role_of_rank[span.rank]].TagAt(span.op);
    std::string text = op.name;
    if (tag.layer >= 0) text += fmt::format(", layer {}", tag.layer);
    const bool is_of_one = tag.phase != Phase::kSynchronize && tag.phase != Phase::kUpdate;
    if (schedule_.roles.size() > 1 && is_of_one)
      text += fmt::format(", micro-batch {}", tag.micro_batch + 1);
    return text;
  }

  struct Bar {
    double x, y, width, height;
  };
  // Says what a bar is when someone points at it.
  void AddTitle(const std::string& text, Time begin, Time end, const Bar& bar) {
    titles_[bar.height] +=
        fmt::format("<path d=\"M{} {}h{}\"><title>{}: {} from {}</title></path>", Pixels(bar.x),
                    Pixels(bar.y + bar.height / 2), Pixels(bar.width), Escape(text),
                    Print(ToSeconds(end - begin)), Print(ToSeconds(begin)));
  }

  // Adds the part of the span that no kernel of the rank hides. Pieces that touch, of spans too
  // narrow to be told apart, become one.
  void AddExposed(const Span& span, const std::vector<TimeInterval>& computing,
                  std::vector<TimeInterval>* pieces) const {
    constexpr double kTouch = 0.1;  // pixels
    Time begin = std::max(span.begin, from_);
    const Time end = std::min(span.end, to_);
    const auto add = [&](Time last) {
      if (last <= begin) return;
      if (!pieces->empty() && X(begin) - X(pieces->back().end) < kTouch)
        pieces->back().end = std::max(pieces->back().end, last);
      else
        pieces->push_back({begin, last});
    };
    auto hiding = std::upper_bound(
        computing.begin(), computing.end(), span.begin,
        [](Time time, const TimeInterval& interval) { return time < interval.end; });
    for (; hiding != computing.end() && hiding->begin < end; ++hiding) {
      add(hiding->begin);
      begin = std::max(begin, hiding->end);
    }
    add(end);
  }

  double DrawLane(const Lane& lane, const std::vector<TimeInterval>& computing, double y) {
    const double height = lane.kind == StreamKind::kCompute ? kComputeLane : kCommunicationLane;
    back_ += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"#f3f6f9\"/>",
                         Pixels(left_), Pixels(y), Pixels(right_ - left_), Pixels(height));
    front_ += fmt::format("<text class=\"l e\" x=\"{}\" y=\"{}\">{}</text>", Pixels(left_ - 10),
                          Pixels(y + height / 2 + 4), Escape(lane.name));

    NarrowSpans narrow(classes_.all().size());
    NarrowSpans narrow_waits(classes_.all().size());
    const auto box = [&](size_t span_class, double x, double width) {
      used_.insert(span_class);
      boxes_[span_class].Add(x, y, width, height);
    };
    const auto wait = [&](size_t span_class, double x, double width) {
      waits_[span_class].Add(x, y, width, height);
    };
    Time busy;
    Time free;
    std::vector<TimeInterval> exposed;
    for (const Span* span : lane.spans) {
      const Op& op = OpOf(*span);
      const size_t span_class = classes_.Of(op);
      const Time ready = std::max(span->ready, free);
      free = span->end;
      if (span->end <= from_ || ready >= to_) continue;
      busy += std::min(span->end, to_) - std::max(std::min(span->begin, to_), from_);
      const double begin = X(span->begin);
      const double end = X(span->end);
      if (classes_.all()[span_class].communication) AddExposed(*span, computing, &exposed);
      if (classes_.all()[span_class].communication && ready < span->begin) {
        const double wait_begin = X(ready);
        if (begin - wait_begin >= kNarrow) {
          narrow_waits.Flush(wait);
          wait(span_class, wait_begin, begin - wait_begin);
          if (begin - wait_begin >= kTitled)
            AddTitle(NameOf(*span, op) + " waits for the group", ready, span->begin,
                     {wait_begin, y, begin - wait_begin, height});
        } else {
          narrow_waits.Add(span_class, wait_begin, begin - wait_begin, wait);
        }
      }
      if (end - begin < kNarrow) {
        narrow.Add(span_class, begin, end - begin, box);
        continue;
      }
      narrow.Flush(box);
      // A hair of background keeps neighbours of one colour apart.
      const double hair = end - begin >= 4 ? 0.5 : 0;
      box(span_class, begin, end - begin - hair);
      if (end - begin >= kTitled)
        AddTitle(NameOf(*span, op), span->begin, span->end, {begin, y, end - begin, height});
      const std::string label = end - begin >= kTitled ? ShortKernelName(op.name) : op.name;
      if (svg::TextWidth(label, kSpanTextSize) + 6 <= end - begin) {
        front_ += fmt::format("<text class=\"n\" x=\"{}\" y=\"{}\" style=\"fill:{}\">{}</text>",
                              Pixels((begin + end) / 2), Pixels(y + height / 2 + 3.7),
                              classes_.all()[span_class].ink, Escape(label));
      }
    }
    narrow.Flush(box);
    narrow_waits.Flush(wait);
    for (const TimeInterval& piece : exposed) {
      const double width = X(piece.end) - X(piece.begin);
      if (width >= 1.5) exposed_.Add(X(piece.begin), y, width - 0.5, height);
    }

    const auto window = static_cast<double>((to_ - from_).picoseconds());
    const double share = window > 0 ? static_cast<double>(busy.picoseconds()) / window : 0;
    front_ += fmt::format("<text class=\"k e\" x=\"{}\" y=\"{}\">{:.0f} %</text>",
                          Pixels(width_ - kMargin), Pixels(y + height / 2 + 4), 100 * share);
    return y + height + kLaneGap;
  }

  double DrawAxis(double top, double bottom) {
    const double begin = 1e-9 * static_cast<double>(from_.picoseconds());  // ms
    const double end = 1e-9 * static_cast<double>(to_.picoseconds());
    if (end > begin) {
      constexpr double kApart = 110;
      const Ticks ticks = TicksBetween(begin, end, (end - begin) * kApart / (right_ - left_));
      for (const double at : ticks.at) {
        const double x = left_ + (at - begin) / (end - begin) * (right_ - left_);
        back_ += fmt::format("<path d=\"M{} {}V{}\" stroke=\"#dde4ea\"/>", Pixels(x),
                             Pixels(top - 2), Pixels(bottom + 2));
        front_ += fmt::format("<text class=\"a\" x=\"{}\" y=\"{}\">{}</text>", Pixels(x),
                              Pixels(bottom + 17), ticks.Label(at));
      }
    }
    front_ += fmt::format("<text class=\"k e\" x=\"{}\" y=\"{}\">ms</text>",
                          Pixels(width_ - kMargin), Pixels(bottom + 17));
    front_ += fmt::format("<text class=\"k e\" x=\"{}\" y=\"{}\">active</text>",
                          Pixels(width_ - kMargin), Pixels(top - 9));
    return bottom + kAxisHeight;
  }

  double DrawLegend(double y) {
    y += 8;
    for (const bool communication : {false, true}) {
      double x = kMargin;
      const auto entry = [&](const std::string& fill, const std::string& name) {
        const double room = 16 + 7 + svg::TextWidth(name, kLabelSize) + 22;
        if (x + room > width_ - kMargin) {
          x = left_;
          y += kLegendRow;
        }
        front_ += fmt::format(
            "<rect x=\"{}\" y=\"{}\" width=\"16\" height=\"12\" rx=\"2\" fill=\"{}\"/>"
            "<text class=\"l\" x=\"{}\" y=\"{}\">{}</text>",
            Pixels(x), Pixels(y), fill, Pixels(x + 23), Pixels(y + 10), Escape(name));
        x += room;
      };
      bool any = false;
      const auto heading = [&] {
        if (any) return;
        any = true;
        front_ += fmt::format("<text class=\"k e\" x=\"{}\" y=\"{}\">{}</text>", Pixels(left_ - 10),
                              Pixels(y + 10), communication ? kMovesData : kComputes);
        x = left_;
      };
      for (const size_t used : used_) {
        const SpanClass& span_class = classes_.all()[used];
        if (span_class.communication != communication) continue;
        heading();
        entry(span_class.fill, span_class.name);
      }
      if (communication && AnyWait()) {
        heading();
        entry(fmt::format("url(#{}w)", ids_), "waits for the group");
      }
      if (communication && !exposed_.empty()) {
        heading();
        entry(fmt::format("url(#{}x)", ids_), "exposed: no kernel runs");
      }
      if (any) y += kLegendRow;
    }
    return y;
  }

  bool AnyWait() const {
    return std::any_of(waits_.begin(), waits_.end(),
                       [](const Boxes& boxes) { return !boxes.empty(); });
  }

  std::string Hatch(const std::string& id, const std::string& color) const {
    return fmt::format(
        "<pattern id=\"{0}\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\" "
        "patternTransform=\"rotate(45)\"><rect width=\"5\" height=\"5\" fill=\"{1}\" "
        "fill-opacity=\".1\"/><rect width=\"1.6\" height=\"5\" fill=\"{1}\" fill-opacity=\".55\"/>"
        "</pattern>",
        id, color);
  }

  std::string Assemble(double height) const {
    const std::string title = names_.title.empty() ? "One training step" : names_.title;
    const bool whole = from_ == Time() && to_ == timeline_.step;
    std::string subtitle =
        fmt::format("{} step on {} {}, {} shown",
                    timeline_.provenance == Provenance::kSimulated ? "Simulated" : "Measured",
                    timeline_.ranks, timeline_.ranks == 1 ? "rank" : "ranks",
                    ranks_.size() == 1 ? DeviceName(names_, ranks_.front().rank)
                                       : fmt::format("{} of them", ranks_.size()));
    if (!whole) {
      subtitle += fmt::format("; from {} to {}", Print(ToSeconds(from_)), Print(ToSeconds(to_)));
    }

    std::string out = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
        "viewBox=\"0 0 {0} {1}\" role=\"img\">\n<title>{2}: one step takes {3}</title>\n"
        "<style>{4}</style>\n",
        width_, Pixels(height), Escape(title), Print(ToSeconds(timeline_.step)), kStyle);
    out += "<defs>" + Hatch(ids_ + "w", "#6b7885");
    for (size_t i = 0; i < waits_.size(); ++i) {
      if (!waits_[i].empty()) out += Hatch(fmt::format("{}w{}", ids_, i), classes_.all()[i].fill);
    }
    if (!exposed_.empty())
      out += fmt::format(
          "<pattern id=\"{}x\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" "
          "patternTransform=\"rotate(-45)\"><rect width=\"1.7\" height=\"6\" "
          "fill-opacity=\".6\"/></pattern>",
          ids_);
    out += "</defs>\n";
    out += fmt::format(
        "<rect x=\".5\" y=\".5\" width=\"{}\" height=\"{}\" rx=\"10\" fill=\"#fff\" "
        "stroke=\"#d5dde5\"/>\n",
        width_ - 1, Pixels(height - 1));
    out += fmt::format(
        "<text class=\"t\" x=\"{0}\" y=\"36\">{1}</text><text class=\"s\" x=\"{0}\" "
        "y=\"56\">{2}</text>"
        "<text class=\"b\" x=\"{3}\" y=\"36\">{4}</text><text class=\"s e\" x=\"{3}\" y=\"56\">one "
        "step</text>\n",
        Pixels(kMargin), Escape(title), Escape(subtitle), Pixels(width_ - kMargin),
        Print(ToSeconds(timeline_.step)));
    out += back_ + "\n";
    for (size_t i = 0; i < waits_.size(); ++i) {
      out += waits_[i].Draw(fmt::format("url(#{}w{})", ids_, i));
    }
    for (size_t i = 0; i < boxes_.size(); ++i) {
      out += boxes_[i].Draw(classes_.all()[i].fill);
    }
    out += exposed_.Draw(fmt::format("url(#{}x)", ids_));
    out += front_ + "\n";
    for (const auto& [lane_height, titles] : titles_)
      out +=
          fmt::format("<g class=\"o\" stroke-width=\"{}\">{}</g>\n", Pixels(lane_height), titles);
    return out + "</svg>\n";
  }

  const Schedule& schedule_;
  const Timeline& timeline_;
  const TraceNames& names_;
  const Time from_;
  const Time to_;
  const int width_;
  const SpanClasses classes_;
  std::vector<RankLanes> ranks_;
  double left_ = 0;  // of the time axis
  double right_ = 0;
  double height_ = 0;
  std::string ids_;
  std::vector<Boxes> boxes_;  // by class
  std::vector<Boxes> waits_;
  Boxes exposed_;
  std::map<double, std::string> titles_;  // by the lane's height
  std::set<size_t> used_;                 // classes, for the legend
  std::string back_;                      // below the boxes
  std::string front_;                     // above them
};

}  // namespace

std::string TimelineSvg(const Schedule& schedule, const Timeline& timeline, const TraceNames& names,
                        const PictureOptions& options) {
  CHECK_EQ(schedule.ranks(), timeline.ranks);
  Picture picture(schedule, timeline, names, options);
  return picture.Draw(picture.left(), "");
}

std::string StackedTimelinesSvg(const std::vector<PicturedStep>& steps, Time from, Time to) {
  CHECK(!steps.empty());
  if (to == Time())
    for (const PicturedStep& step : steps) to = std::max(to, step.timeline->step);
  PictureOptions options;
  options.from = from;
  options.to = to;
  std::vector<Picture> pictures;
  pictures.reserve(steps.size());
  double left = 0;
  for (const PicturedStep& step : steps) {
    options.ranks = step.ranks;
    pictures.emplace_back(*step.schedule, *step.timeline, step.names, options);
    left = std::max(left, pictures.back().left());
  }
  std::string all;
  std::string title;
  double y = 0;
  for (size_t i = 0; i < pictures.size(); ++i) {
    const std::string drawn = pictures[i].Draw(left, fmt::format("p{}", i));
    all += fmt::format("<svg y=\"{}\"{}", Pixels(y), drawn.substr(4));
    y += pictures[i].height() + kLaneGap;
    title += (title.empty() ? "" : " above ") + Escape(steps[i].names.title);
  }
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
             "viewBox=\"0 0 {0} {1}\" role=\"img\">\n<title>{2}</title>\n",
             options.width, Pixels(y - kLaneGap), title) +
         all + "</svg>\n";
}

}  // namespace rehearse
