#include "scenarios/sweeping/study_picture.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/report/chart_scale.h"
#include "sim/report/svg.h"

namespace rehearse {
namespace {

constexpr double kPanelWidth = 400;
constexpr double kPanelHeight = 270;
constexpr double kPanelLeft = 58;  // around the plot
constexpr double kPanelRight = 12;
constexpr double kPanelTop = 28;
constexpr double kPanelBottom = 44;
constexpr double kLegendRow = 20;
constexpr size_t kMostPanelsBeside = 3;
constexpr double kNumberSize = 10;  // of the font; a bar too narrow for its number has none

using svg::TextAt;

std::string Short(double value) {
  return std::abs(value) >= 1000 ? fmt::format("{:.0f}", value) : fmt::format("{:.3g}", value);
}

// A panel at the origin.
class PanelDrawing {
 public:
  PanelDrawing(const Study& study, const Sweep& sweep, const StudyPanel& panel,
               const std::map<std::string, const char*>& colors)
      : study_(study), sweep_(sweep), panel_(panel), colors_(colors) {}

  std::string Draw() {
    out_ = TextAt(kPanelLeft, 17, panel_.title, "font-weight=\"bold\"");
    if (panel_.kind == PanelKind::kMap) {
      DrawMap();
    } else {
      ChooseScale();
      DrawAxes();
      panel_.kind == PanelKind::kBars ? DrawBars() : DrawLines();
    }
    if (!panel_.x_title.empty())
      out_ += TextAt(kPanelLeft + Width() / 2, kPanelHeight - 8, panel_.x_title,
                     "text-anchor=\"middle\"");
    return out_;
  }

 private:
  static double Width() { return kPanelWidth - kPanelLeft - kPanelRight; }
  static double Height() { return kPanelHeight - kPanelTop - kPanelBottom; }
  static double Bottom() { return kPanelTop + Height(); }

  std::optional<double> Ours(const PanelSeries& series, size_t i) const {
    return DrawnValue(study_, sweep_, panel_, series.points[i]);
  }
  std::optional<double> Published(const PanelSeries& series, size_t i) const {
    return DrawnFigure(study_, panel_, series.points[i]);
  }

  template <typename Visit>
  void ForEachValue(const Visit& visit) const {
    for (const PanelSeries& series : panel_.series)
      for (size_t i = 0; i < series.points.size(); ++i)
        for (const std::optional<double> value : {Ours(series, i), Published(series, i)})
          if (value) visit(*value);
  }

  void ChooseScale() {
    double least = 1e300;
    double most = 0;
    ForEachValue([&](double value) {
      if (value > 0) least = std::min(least, value);
      most = std::max(most, value);
    });
    scale_ = panel_.log_y && most > 0 ? LogChartScale(least, most) : LinearChartScale(most);
  }

  double Y(double value) const {
    return Bottom() - Height() * std::clamp(scale_.At(value), 0.0, 1.0);
  }
  double Place() const { return Width() / static_cast<double>(panel_.x.size()); }
  double X(size_t i) const { return kPanelLeft + Place() * (static_cast<double>(i) + 0.5); }

  void DrawAxes() {
    for (const double mark : scale_.marks) {
      out_ += svg::Line(kPanelLeft, Y(mark), kPanelLeft + Width(), Y(mark), "stroke=\"#e6e6e6\"");
      out_ +=
          TextAt(kPanelLeft - 6, Y(mark) + 4, fmt::format("{:.6g}", mark), "text-anchor=\"end\"");
    }
    out_ += svg::Line(kPanelLeft, Bottom(), kPanelLeft + Width(), Bottom(), "stroke=\"#555\"");
    DrawLabels();
    const std::string title = !panel_.y_title.empty() ? panel_.y_title
                              : panel_.ratios         ? "ratio"
                                                      : study_.metric.Title();
    const std::string middle = svg::Pixels(kPanelTop + Height() / 2);
    out_ += TextAt(14, kPanelTop + Height() / 2, title,
                   "text-anchor=\"middle\" transform=\"rotate(-90 14 " + middle + ")\"");
  }

  void DrawLabels() {
    for (size_t i = 0; i < panel_.x.size(); ++i)
      out_ += TextAt(X(i), Bottom() + 16, panel_.x[i], "text-anchor=\"middle\"");
  }

  std::string Said(const PanelSeries& series, size_t i) const {
    const std::optional<double> ours = Ours(series, i);
    const std::optional<double> published = Published(series, i);
    return fmt::format("<title>{}: {}{}</title>", svg::Escape(study_.points[series.points[i]].name),
                       ours ? fmt::format("{:.4g}", *ours) : "none",
                       published ? fmt::format(", published {:.4g}", *published) : "");
  }

  const char* ColorOf(const PanelSeries& series) const { return colors_.at(series.name); }

  void DrawFigure(const PanelSeries& series, size_t i, double x) {
    const std::optional<double> published = Published(series, i);
    if (!published) return;
    out_ += fmt::format(
        "<path d=\"{}\" fill=\"#fff\" stroke=\"#111\" stroke-width=\"1.3\">{}"
        "</path>\n",
        svg::Diamond(x, Y(*published)), Said(series, i));
  }

  void DrawBars() {
    const double width = 0.8 * Place() / static_cast<double>(panel_.series.size());
    for (size_t s = 0; s < panel_.series.size(); ++s) {
      const PanelSeries& series = panel_.series[s];
      for (size_t i = 0; i < series.points.size(); ++i) {
        const double left = X(i) - 0.4 * Place() + width * static_cast<double>(s);
        if (const std::optional<double> ours = Ours(series, i)) {
          out_ += fmt::format(
              "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\">{}</rect>\n",
              svg::Pixels(left), svg::Pixels(Y(*ours)), svg::Pixels(width * 0.92),
              svg::Pixels(Bottom() - Y(*ours)), ColorOf(series), Said(series, i));
          const std::string number = Short(*ours);
          if (svg::TextWidth(number, kNumberSize) <= width * 0.92)
            out_ += TextAt(
                left + width * 0.46, Bottom() - 4, number,
                fmt::format("text-anchor=\"middle\" font-size=\"{}\" fill=\"#fff\"", kNumberSize));
        }
        DrawFigure(series, i, left + width * 0.46);
      }
    }
  }

  void DrawLines() {
    for (const PanelSeries& series : panel_.series) {
      std::string path;
      std::string dots;
      for (size_t i = 0; i < series.points.size(); ++i) {
        const std::optional<double> ours = Ours(series, i);
        if (!ours) continue;
        path += fmt::format("{}{} {}", path.empty() ? "M" : "L", svg::Pixels(X(i)),
                            svg::Pixels(Y(*ours)));
        dots +=
            fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"4\" fill=\"{}\">{}</circle>\n",
                        svg::Pixels(X(i)), svg::Pixels(Y(*ours)), ColorOf(series), Said(series, i));
      }
      if (!path.empty())
        out_ += fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"/>\n",
                            path, ColorOf(series));
      out_ += dots;
    }
    for (const PanelSeries& series : panel_.series)
      for (size_t i = 0; i < series.points.size(); ++i) DrawFigure(series, i, X(i));
  }

  // A row for each series; the darker, the more.
  void DrawMap() {
    double least = 1e300;
    double most = 0;
    for (const PanelSeries& series : panel_.series)
      for (size_t i = 0; i < series.points.size(); ++i)
        if (const std::optional<double> ours = Ours(series, i)) {
          least = std::min(least, *ours);
          most = std::max(most, *ours);
        }
    const double height = Height() / static_cast<double>(panel_.series.size());
    for (size_t s = 0; s < panel_.series.size(); ++s) {
      const PanelSeries& series = panel_.series[s];
      const double top = kPanelTop + height * static_cast<double>(s);
      out_ += TextAt(kPanelLeft - 6, top + height / 2 + 4, series.name, "text-anchor=\"end\"");
      for (size_t i = 0; i < series.points.size(); ++i) {
        const std::optional<double> ours = Ours(series, i);
        if (!ours) continue;
        const double share = most > least ? (*ours - least) / (most - least) : 0;
        out_ += fmt::format(
            "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"#2f6fb0\" "
            "fill-opacity=\"{:.3f}\" stroke=\"#fff\">{}</rect>\n",
            svg::Pixels(X(i) - Place() / 2), svg::Pixels(top), svg::Pixels(Place()),
            svg::Pixels(height), 0.1 + 0.8 * share, Said(series, i));
        out_ += TextAt(
            X(i), top + height / 2 + 4, fmt::format("{:.4g}", *ours),
            fmt::format("text-anchor=\"middle\" fill=\"{}\"", share > 0.5 ? "#fff" : "#111"));
      }
    }
    DrawLabels();
  }

  const Study& study_;
  const Sweep& sweep_;
  const StudyPanel& panel_;
  const std::map<std::string, const char*>& colors_;
  ChartScale scale_;
  std::string out_;
};

// The series of all panels that have colours, each name once.
std::vector<std::string> SeriesOf(const Study& study) {
  std::vector<std::string> names;
  for (const StudyPanel& panel : study.panels) {
    if (panel.kind == PanelKind::kMap) continue;
    for (const PanelSeries& series : panel.series)
      if (std::find(names.begin(), names.end(), series.name) == names.end())
        names.push_back(series.name);
  }
  return names;
}

bool HasFigures(const Study& study) {
  for (const StudyPanel& panel : study.panels)
    for (const PanelSeries& series : panel.series)
      for (const size_t point : series.points)
        if (panel.kind != PanelKind::kMap && DrawnFigure(study, panel, point)) return true;
  return false;
}

}  // namespace

std::optional<double> DrawnValue(const Study& study, const Sweep& sweep, const StudyPanel& panel,
                                 size_t point) {
  const auto metric = [&](size_t position) -> std::optional<double> {
    if (!sweep.points[position].error.empty()) return std::nullopt;
    return study.metric.Of(sweep.points[position].result);
  };
  const std::optional<double> own = metric(point);
  if (!panel.ratios || !own) return own;
  const std::optional<size_t> other = study.points[point].relative_to;
  if (!other) return 1;
  const std::optional<double> reference = metric(*other);
  if (!reference || *reference == 0) return std::nullopt;
  return *own / *reference;
}

std::optional<double> DrawnFigure(const Study& study, const StudyPanel& panel, size_t point) {
  const StudyPoint& drawn = study.points[point];
  return drawn.relative_to.has_value() == panel.ratios ? drawn.published : std::nullopt;
}

std::string StudySvg(const Study& study, const Sweep& sweep) {
  CHECK(!study.panels.empty());
  const size_t count = study.panels.size();
  const size_t beside = count == 4 ? 2 : std::min(count, kMostPanelsBeside);
  const size_t rows = (count + beside - 1) / beside;
  const std::vector<std::string> names = SeriesOf(study);
  std::map<std::string, const char*> colors;
  for (const std::string& name : names)
    colors.emplace(name, svg::kColors[colors.size() % svg::kColors.size()]);

  const double width = kPanelWidth * static_cast<double>(beside);
  std::string legend;
  double x = kPanelLeft;
  double y = 15;
  const auto entry = [&](const std::string& mark, const std::string& name) {
    const double length = 20 + svg::TextWidth(name, 12) + 18;
    if (x + length > width && x > kPanelLeft) {
      x = kPanelLeft;
      y += kLegendRow;
    }
    legend += fmt::format("<g transform=\"translate({} {})\">{}</g>\n", svg::Pixels(x),
                          svg::Pixels(y), mark);
    legend += TextAt(x + 18, y, name);
    x += length;
  };
  for (const std::string& name : names)
    entry(fmt::format("<rect y=\"-10\" width=\"12\" height=\"12\" fill=\"{}\"/>", colors.at(name)),
          name);
  if (HasFigures(study))
    entry("<path d=\"" + svg::Diamond(6, -4) +
              "\" fill=\"#fff\" stroke=\"#111\" stroke-width=\"1.3\"/>",
          "published");
  const double top = names.empty() ? 0 : y + 10;

  const double height = top + kPanelHeight * static_cast<double>(rows);
  std::string picture = svg::Begin(width, height);
  picture += legend;
  for (size_t i = 0; i < count; ++i) {
    const size_t row = i / beside;
    picture += fmt::format("<g transform=\"translate({} {})\">\n{}</g>\n",
                           svg::Pixels(kPanelWidth * static_cast<double>(i % beside)),
                           svg::Pixels(top + kPanelHeight * static_cast<double>(row)),
                           PanelDrawing(study, sweep, study.panels[i], colors).Draw());
  }
  return picture + "</svg>\n";
}

}  // namespace rehearse
