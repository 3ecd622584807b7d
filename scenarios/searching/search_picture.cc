#include "scenarios/searching/search_picture.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "scenarios/searching/search_quality.h"
#include "sim/base/error.h"
#include "sim/report/chart_scale.h"
#include "sim/report/svg.h"

namespace rehearse {
namespace {

constexpr double kWidth = 560;
constexpr double kHeight = 400;
constexpr double kLeft = 74;  // around the plot
constexpr double kRight = 20;
constexpr double kTop = 52;
constexpr double kBottom = 52;
constexpr double kDot = 4;
constexpr double kRing = 7;
constexpr size_t kFirst = 5;        // of the formula
constexpr double kMostLinear = 10;  // times the least value; above that, an axis is logarithmic

constexpr const char* kEfficient = "#2f6fb0";
constexpr const char* kOther = "#b9c4d0";
constexpr const char* kRingColor = "#d1622b";

struct Dot {
  double x = 0;
  double y = 0;
  std::string said;
  bool is_filled = false;
  bool has_ring = false;
};

ChartScale ScaleOf(const std::vector<Dot>& dots, double Dot::*value) {
  double least = dots.front().*value;
  double most = least;
  for (const Dot& dot : dots) {
    least = std::min(least, dot.*value);
    most = std::max(most, dot.*value);
  }
  return least > 0 && most > kMostLinear * least ? LogChartScale(least, most)
                                                 : TightChartScale(least, most);
}

double DrawnOf(const Objective& objective, double value) {
  constexpr double kGib = 1024.0 * 1024 * 1024;
  return objective.kind == ObjectiveKind::kMemory ? value / kGib : value;
}

std::string Said(const Search& search, const FoundPoint& point) {
  std::string said = search.space.NameOf(point.point) + ":";
  for (size_t i = 0; i < search.objectives.size(); ++i)
    said += (i == 0 ? " " : ", ") + Print(search.objectives[i], point.simulated->values[i]);
  if (point.formula) said += fmt::format("; formula {:.4g}", std::abs(*point.formula));
  return said;
}

// Simulated points come first, the best of all first.
std::vector<Dot> BesideTheFormula(const Search& search, const FoundPoints& found) {
  std::vector<Dot> dots;
  std::vector<double> costs;
  std::vector<double> formulas;
  for (const FoundPoint& point : found.points) {
    if (!point.simulated || !point.formula) continue;
    const double value = point.simulated->values.front();
    dots.push_back({std::abs(*point.formula), DrawnOf(search.objectives.front(), value),
                    Said(search, point), false, false});
    costs.push_back(search.objectives.front().CostOf(value));
    formulas.push_back(*point.formula);
  }
  if (dots.empty()) return dots;
  const double most = MostEfficientCost(costs);
  std::vector<double> order = formulas;
  std::stable_sort(order.begin(), order.end());
  const double last = order[std::min(kFirstOfFormula, order.size()) - 1];
  for (size_t i = 0; i < dots.size(); ++i) {
    dots[i].is_filled = costs[i] <= most;
    dots[i].has_ring = formulas[i] <= last;
  }
  return dots;
}

std::vector<Dot> ByObjectives(const Search& search, const FoundPoints& found) {
  std::vector<Dot> dots;
  for (const FoundPoint& point : found.points) {
    if (!point.simulated) continue;
    dots.push_back({DrawnOf(search.objectives[0], point.simulated->values[0]),
                    DrawnOf(search.objectives[1], point.simulated->values[1]), Said(search, point),
                    point.on_front, false});
  }
  return dots;
}

std::string TitleOf(const Objective& objective) {
  if (objective.kind == ObjectiveKind::kMemory) return "memory, GiB";
  return objective.unit.empty() ? objective.name : objective.name + ", " + objective.unit;
}

class Picture {
 public:
  explicit Picture(const std::vector<Dot>& dots)
      : dots_(dots), x_(ScaleOf(dots, &Dot::x)), y_(ScaleOf(dots, &Dot::y)) {}

  void Axes(const std::string& x_title, const std::string& y_title) {
    for (const double mark : x_.marks) {
      out_ += svg::Line(X(mark), kTop, X(mark), kHeight - kBottom, "stroke=\"#e6e6e6\"");
      out_ += svg::TextAt(X(mark), kHeight - kBottom + 16, fmt::format("{:.6g}", mark),
                          "text-anchor=\"middle\"");
    }
    for (const double mark : y_.marks) {
      out_ += svg::Line(kLeft, Y(mark), kWidth - kRight, Y(mark), "stroke=\"#e6e6e6\"");
      out_ +=
          svg::TextAt(kLeft - 6, Y(mark) + 4, fmt::format("{:.6g}", mark), "text-anchor=\"end\"");
    }
    out_ +=
        svg::TextAt((kLeft + kWidth - kRight) / 2, kHeight - 12, x_title, "text-anchor=\"middle\"");
    const std::string middle = svg::Pixels((kTop + kHeight - kBottom) / 2);
    out_ += svg::TextAt(16, (kTop + kHeight - kBottom) / 2, y_title,
                        "text-anchor=\"middle\" transform=\"rotate(-90 16 " + middle + ")\"");
  }

  void Legend(const std::string& filled, const std::string& ring) {
    double x = kLeft;
    const auto entry = [&](const std::string& mark, const std::string& text) {
      out_ += mark + svg::TextAt(x + 14, 38, text);
      x += 14 + svg::TextWidth(text, 12) + 18;
    };
    entry(Circle(x + 4, 34, kDot, Fill(kEfficient)), filled);
    entry(Circle(x + 4, 34, kDot, Fill(kOther)), "the others");
    if (!ring.empty()) entry(Circle(x + 4, 34, kRing, Stroke()), ring);
  }

  // From point to point along the first axis.
  void Front() {
    std::vector<const Dot*> front;
    for (const Dot& dot : dots_)
      if (dot.is_filled) front.push_back(&dot);
    std::sort(front.begin(), front.end(), [](const Dot* a, const Dot* b) { return a->x < b->x; });
    std::string points;
    for (const Dot* dot : front)
      points += svg::Pixels(X(dot->x)) + "," + svg::Pixels(Y(dot->y)) + " ";
    out_ += "<polyline points=\"" + points + "\" fill=\"none\" stroke=\"" + kEfficient + "\"/>\n";
  }

  // The best ones last, over the others.
  void Dots() {
    for (size_t i = dots_.size(); i-- > 0;) {
      const Dot& dot = dots_[i];
      out_ += "<g><title>" + svg::Escape(dot.said) + "</title>";
      if (dot.has_ring) out_ += Circle(X(dot.x), Y(dot.y), kRing, Stroke());
      out_ += Circle(X(dot.x), Y(dot.y), kDot, Fill(dot.is_filled ? kEfficient : kOther));
      out_ += "</g>\n";
    }
  }

  std::string Done(const std::string& title) const {
    return svg::Begin(kWidth, kHeight) + svg::TextAt(kLeft, 18, title, "font-weight=\"bold\"") +
           out_ + "</svg>\n";
  }

 private:
  static std::string Fill(const char* color) { return fmt::format("fill=\"{}\"", color); }
  static std::string Stroke() {
    return fmt::format("fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\"", kRingColor);
  }
  static std::string Circle(double x, double y, double radius, const std::string& style) {
    return fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"{}\" {}/>", svg::Pixels(x), svg::Pixels(y),
                       svg::Pixels(radius), style);
  }
  double X(double value) const { return kLeft + (kWidth - kLeft - kRight) * x_.At(value); }
  double Y(double value) const {
    return kHeight - kBottom - (kHeight - kTop - kBottom) * y_.At(value);
  }

  const std::vector<Dot>& dots_;
  const ChartScale x_;
  const ChartScale y_;
  std::string out_;
};

}  // namespace

std::string SearchSvg(const Search& search, const FoundPoints& found) {
  const bool is_front = search.objectives.size() > 1;
  const std::vector<Dot> dots =
      is_front ? ByObjectives(search, found) : BesideTheFormula(search, found);
  if (dots.empty())
    throw Error(
        "a picture needs points with the formula's number and a simulation; expected \"decide\": "
        "\"both\", or --quality");
  Picture picture(dots);
  const Objective& first = search.objectives.front();
  if (is_front) {
    picture.Axes(TitleOf(first), TitleOf(search.objectives[1]));
    picture.Legend("Pareto front", "");
    picture.Front();
  } else {
    picture.Axes(std::string("formula (") + Name(search.formula) + ")",
                 "simulated " + TitleOf(first));
    picture.Legend("efficient", "the formula's first five");
  }
  picture.Dots();
  return picture.Done(search.name);
}

}  // namespace rehearse
