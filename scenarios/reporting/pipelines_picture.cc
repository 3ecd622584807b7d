#include "scenarios/reporting/pipelines_picture.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <compare>
#include <map>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/units.h"
#include "sim/report/lanes.h"
#include "sim/report/svg.h"

namespace rehearse {
namespace {

using svg::Escape;
using svg::Pixels;

// Pixels.
constexpr double kWidth = 1200;
constexpr double kEdge = 24;
constexpr double kNames = 96;
constexpr double kShares = 64;
constexpr double kHeading = 34;
constexpr double kRowHeight = 24;
constexpr double kRowGap = 3;
constexpr double kRunGap = 14;
constexpr double kAxis = 30;
constexpr double kLegend = 28;
constexpr double kNumberSize = 11;

struct PieceColor {
  unsigned red = 0, green = 0, blue = 0;
};
// By work; of the first copy of the model, and of the one that begins at the other end. The page
// has the same (tools/viewer/src/pipelines.ts).
constexpr std::array<std::array<PieceColor, 4>, 2> kColorOfWork = {
    {{{{0x2f, 0x7f, 0xd1}, {0x1d, 0x42, 0x89}, {0x2f, 0x9e, 0x63}, {0x1d, 0x42, 0x89}}},
     {{{0xe0, 0x8a, 0x1e}, {0x8f, 0x3d, 0x0f}, {0xa8, 0x9a, 0x1c}, {0x8f, 0x3d, 0x0f}}}}};

// Later chunks are paler, half as much of the colour each.
std::string FillOf(PipelineWork work, uint32_t chunk, bool from_end) {
  const PieceColor& full = kColorOfWork[from_end ? 1 : 0][static_cast<size_t>(work)];
  const double share = std::max(0.3, 1 - 0.35 * chunk);
  const auto pale = [&](unsigned value) {
    return static_cast<unsigned>(std::lround(255 - (255 - value) * share));
  };
  return fmt::format("#{:02x}{:02x}{:02x}", pale(full.red), pale(full.green), pale(full.blue));
}

const char* InkOf(PipelineWork work, uint32_t chunk) {
  const bool is_dark = work == PipelineWork::kInputGradient || work == PipelineWork::kBackward;
  return chunk == 0 || (is_dark && chunk == 1) ? "#ffffff" : "#16202b";
}

class PipelinesDrawing {
 public:
  PipelinesDrawing(Time from, Time to) : from_(from), to_(to) {}

  void Add(const ReportedRun& run) {
    const PipelineRows& pipeline = run.pipeline;
    out_ += fmt::format(
        "<text x=\"{}\" y=\"{}\" class=\"t\">{}</text><text x=\"{}\" y=\"{}\" class=\"e\">one step "
        "takes {}, bubble {:.1f} %</text>\n",
        Pixels(kEdge), Pixels(y_ + 22), Escape(run.record.title), Pixels(kWidth - kEdge),
        Pixels(y_ + 22), Print(ToSeconds(run.record.Median().step)), 100 * pipeline.Bubble());
    y_ += kHeading;
    for (const PipelineRow& row : pipeline.rows) AddRow(row);
    y_ += kRunGap;
  }

  std::string Finish(const std::string& title) {
    DrawAxis();
    DrawLegend();
    return fmt::format(
               "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
               "viewBox=\"0 0 {0} {1}\" role=\"img\">\n<title>{2}</title>\n"
               "<style>text{{font-family:-apple-system,'Segoe UI',Helvetica,Arial,'DejaVu "
               "Sans',sans-serif;font-size:12px;fill:#24313f}}.t{{font-size:15px;font-weight:600}}"
               ".e{{text-anchor:end}}.n{{font-size:{3}px;text-anchor:middle}}"
               ".a{{font-size:11px;fill:#5d6b7a;text-anchor:middle}}</style>\n"
               "<defs><pattern id=\"bubble\" width=\"6\" height=\"6\" "
               "patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(-45)\">"
               "<rect width=\"6\" height=\"6\" fill=\"#f1f3f5\"/>"
               "<rect width=\"1.4\" height=\"6\" fill=\"#9aa5b0\"/></pattern></defs>\n"
               "<rect width=\"{0}\" height=\"{1}\" fill=\"#fff\"/>\n",
               Pixels(kWidth), Pixels(y_), Escape(title), kNumberSize) +
           out_ + "</svg>\n";
  }

 private:
  static constexpr double kLeft = kEdge + kNames;
  static constexpr double kRight = kWidth - kEdge - kShares;

  double X(Time time) const {
    return kLeft + (kRight - kLeft) *
                       static_cast<double>((std::clamp(time, from_, to_) - from_).picoseconds()) /
                       static_cast<double>((to_ - from_).picoseconds());
  }

  void AddRow(const PipelineRow& row) {
    out_ += fmt::format(
        "<text x=\"{}\" y=\"{}\" class=\"e\">{}</text><text x=\"{}\" y=\"{}\" class=\"e\">{:.1f} "
        "%</text><rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"url(#bubble)\"/>\n",
        Pixels(kLeft - 10), Pixels(y_ + kRowHeight / 2 + 4), Escape(row.name),
        Pixels(kWidth - kEdge), Pixels(y_ + kRowHeight / 2 + 4), 100 * row.Bubble(),
        Pixels(X(row.from)), Pixels(y_), Pixels(X(row.to) - X(row.from)), Pixels(kRowHeight));
    for (const PipelinePiece& piece : row.pieces) {
      if (piece.end <= from_ || piece.begin >= to_) continue;
      const double begin = X(piece.begin);
      const double width = X(piece.end) - begin;
      const std::string fill = FillOf(piece.work, piece.chunk, piece.from_end);
      out_ += fmt::format(
          "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"><title>{} of micro-batch "
          "{}: {} from {}</title></rect>",
          Pixels(begin), Pixels(y_), Pixels(std::max(width - 0.6, 0.4)), Pixels(kRowHeight), fill,
          Name(piece.work), piece.micro_batch + 1, Print(ToSeconds(piece.end - piece.begin)),
          Print(ToSeconds(piece.begin)));
      used_[{piece.from_end, piece.chunk, piece.work}] = fill;
      const std::string number = fmt::format("{}", piece.micro_batch + 1);
      if (svg::TextWidth(number, kNumberSize) + 1 > width) continue;
      out_ += fmt::format("<text class=\"n\" x=\"{}\" y=\"{}\" style=\"fill:{}\">{}</text>",
                          Pixels(begin + width / 2), Pixels(y_ + kRowHeight / 2 + 4),
                          InkOf(piece.work, piece.chunk), number);
    }
    out_ += "\n";
    y_ += kRowHeight + kRowGap;
  }

  void DrawAxis() {
    constexpr double kTicks = 8;
    constexpr double kMilliseconds = 1e9;
    const double begin = static_cast<double>(from_.picoseconds()) / kMilliseconds;
    const double end = static_cast<double>(to_.picoseconds()) / kMilliseconds;
    const Ticks ticks = TicksBetween(begin, end, (end - begin) / kTicks);
    for (const double at : ticks.at) {
      const double x = kLeft + (kRight - kLeft) * (at - begin) / (end - begin);
      out_ += svg::Line(x, y_ - kRunGap / 2, x, y_, "stroke=\"#9aa5b0\"");
      out_ += fmt::format("<text class=\"a\" x=\"{}\" y=\"{}\">{} ms</text>\n", Pixels(x),
                          Pixels(y_ + 14), ticks.Label(at));
    }
    y_ += kAxis;
  }

  void DrawLegend() {
    double x = kEdge;
    const auto add = [&](const std::string& fill, const std::string& name) {
      const double wide = 20 + svg::TextWidth(name, 12) + 18;
      if (x + wide > kWidth - kEdge) {
        x = kEdge;
        y_ += kLegend - 6;
      }
      out_ += fmt::format(
          "<rect x=\"{}\" y=\"{}\" width=\"14\" height=\"14\" fill=\"{}\"/><text x=\"{}\" "
          "y=\"{}\">{}</text>\n",
          Pixels(x), Pixels(y_), fill, Pixels(x + 20), Pixels(y_ + 12), name);
      x += wide;
    };
    const bool has_chunks = std::any_of(used_.begin(), used_.end(),
                                        [](const auto& one) { return one.first.chunk > 0; });
    for (const auto& [key, fill] : used_) {
      std::string name = Name(key.work);
      if (key.from_end) name += " from the other end";
      if (has_chunks && !key.from_end) name += fmt::format(", chunk {}", key.chunk + 1);
      add(fill, name);
    }
    add("url(#bubble)", "bubble");
    y_ += kLegend;
  }

  struct UsedColor {
    bool from_end = false;
    uint32_t chunk = 0;
    PipelineWork work = PipelineWork::kForward;
    auto operator<=>(const UsedColor&) const = default;
  };

  const Time from_;
  const Time to_;
  double y_ = 8;
  std::string out_;
  std::map<UsedColor, std::string> used_;
};

}  // namespace

std::string PipelinesPicture(const std::vector<ReportedRun>& runs, Time from, Time to) {
  CHECK(!runs.empty());
  if (to == Time())
    for (const ReportedRun& run : runs)
      for (const PipelineRow& row : run.pipeline.rows) to = std::max(to, row.to);
  PipelinesDrawing drawing(from, to);
  std::string title;
  for (const ReportedRun& run : runs) {
    CHECK(!run.pipeline.rows.empty());
    drawing.Add(run);
    title += (title.empty() ? "" : " above ") + run.record.title;
  }
  return drawing.Finish(title);
}

}  // namespace rehearse
