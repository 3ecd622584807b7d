#include "scenarios/campaign/campaign_picture.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "scenarios/readers/long_times.h"
#include "sim/report/chart_scale.h"
#include "sim/report/svg.h"
#include "sim/report/text_page.h"

namespace rehearse {
namespace {

constexpr double kWidth = 960;
constexpr double kHeight = 560;
constexpr double kTop = 66;   // of the upper chart
constexpr double kLeft = 70;  // of charts
constexpr double kUpperHeight = 210;
constexpr double kLowerTop = 366;
constexpr double kLowerHeight = 140;
constexpr double kLowerWidth = 380;
constexpr double kSecondLeft = 550;
constexpr double kMarkHeight = 9;
constexpr double kSecondsOfADay = 86400;
constexpr size_t kMostPoints = 4000;  // of the line

struct ChartBox {
  double left;
  double top;
  double width;
  double height;

  double bottom() const { return top + height; }
  double X(const ChartScale& scale, double value) const {
    return left + width * std::clamp(scale.At(value), 0.0, 1.0);
  }
  double Y(const ChartScale& scale, double value) const {
    return bottom() - height * std::clamp(scale.At(value), 0.0, 1.0);
  }
};

std::string AxesOf(const ChartBox& box, const ChartScale& x, const ChartScale& y,
                   const std::string& x_title, const std::string& y_title) {
  std::string out;
  for (const double mark : y.marks) {
    const double at = box.Y(y, mark);
    out += svg::Line(box.left, at, box.left + box.width, at, "stroke=\"#e6e6e6\"");
    out += svg::TextAt(box.left - 6, at + 4, fmt::format("{:.6g}", mark), "text-anchor=\"end\"");
  }
  for (const double mark : x.marks) {
    const double at = box.X(x, mark);
    out += svg::Line(at, box.bottom(), at, box.bottom() + 4, "stroke=\"#555\"");
    out +=
        svg::TextAt(at, box.bottom() + 17, fmt::format("{:.6g}", mark), "text-anchor=\"middle\"");
  }
  out += svg::Line(box.left, box.bottom(), box.left + box.width, box.bottom(), "stroke=\"#555\"");
  out +=
      svg::TextAt(box.left + box.width / 2, box.bottom() + 33, x_title, "text-anchor=\"middle\"");
  const double middle = box.top + box.height / 2;
  out += svg::TextAt(18, middle, y_title,
                     fmt::format("text-anchor=\"middle\" transform=\"rotate(-90 {} {})\"",
                                 svg::Pixels(18), svg::Pixels(middle)));
  return out;
}

std::string PathOf(const std::vector<std::pair<double, double>>& points) {
  std::string path;
  for (const auto& [x, y] : points)
    path += fmt::format("{}{} {}", path.empty() ? "M" : "L", svg::Pixels(x), svg::Pixels(y));
  return fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.6\"/>\n", path,
                     svg::kColors[0]);
}

const char* ColorOf(PartKind kind) { return svg::kColors[static_cast<size_t>(kind)]; }

// Tokens over days; each interruption is a mark below, in the colour of its part.
std::string DrawProgress(const Campaign& campaign) {
  const RunOutcome& outcome = campaign.outcome;
  const RunRecord& run = campaign.typical;
  const ChartBox box = {kLeft, kTop, kWidth - kLeft - 20, kUpperHeight};
  const double elapsed = run.times.Elapsed();
  const ChartScale days =
      LinearChartScale(std::max(elapsed, outcome.seconds.high) / kSecondsOfADay);
  const ChartScale share = LinearChartScale(96);
  std::string out =
      AxesOf(box, days, share, "days",
             fmt::format("{}, % of {}", outcome.token_name, PrintCount(outcome.tokens)));
  const auto x = [&](double seconds) { return box.X(days, seconds / kSecondsOfADay); };
  const auto y = [&](double training) {
    return box.Y(share, 100 * training / campaign.model.training);
  };
  out += fmt::format(
      "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\" fill-opacity=\"0.12\">"
      "<title>10 % to 90 % of the runs end here</title></rect>\n",
      svg::Pixels(x(outcome.seconds.low)), svg::Pixels(box.top),
      svg::Pixels(std::max(1.0, x(outcome.seconds.high) - x(outcome.seconds.low))),
      svg::Pixels(box.height), svg::kColors[0]);
  std::vector<std::pair<double, double>> points = {{x(0), y(0)}};
  const size_t stride = run.marks.size() / kMostPoints + 1;
  for (size_t i = 0; i < run.marks.size(); i += stride) {
    const RunMark& mark = run.marks[i];
    points.emplace_back(x(mark.at), y(mark.training));
    points.emplace_back(x(mark.at), y(mark.kept));
    out += svg::Line(x(mark.at), box.bottom() - kMarkHeight, x(mark.at), box.bottom(),
                     fmt::format("stroke=\"{}\" stroke-width=\"1\"", ColorOf(mark.kind)));
  }
  points.emplace_back(x(elapsed), y(campaign.model.training));
  return out + PathOf(points);
}

std::string DrawLegend(const RunOutcome& outcome) {
  std::string out;
  double x = kLeft;
  for (size_t i = 0; i < outcome.parts.size(); ++i) {
    const RunPart& part = outcome.parts[i];
    if (!(part.interruptions > 0)) continue;
    const std::string text = fmt::format("{} {:.3g}", part.name, part.interruptions);
    out += fmt::format("<rect x=\"{}\" y=\"42\" width=\"10\" height=\"10\" fill=\"{}\"/>\n",
                       svg::Pixels(x), svg::kColors[i]);
    out += svg::TextAt(x + 14, 51, text);
    x += 30 + svg::TextWidth(text, 12);
  }
  return out;
}

std::string DrawShares(const RunOutcome& outcome) {
  const RunShares& shares = outcome.shares;
  const std::array<std::pair<const char*, double>, 6> rows = {{{"done again", shares.lost},
                                                               {"checkpoints", shares.checkpoints},
                                                               {"detection", shares.detection},
                                                               {"restarts", shares.restart},
                                                               {"waiting", shares.waiting},
                                                               {"slower steps", shares.slow}}};
  double most = 1e-6;
  for (const auto& [name, share] : rows) most = std::max(most, 100 * share);
  constexpr double kNames = 90;
  constexpr double kNumbers = 60;
  const double width = kLowerWidth - kNames - kNumbers;
  std::string out = svg::TextAt(kLeft, kLowerTop - 16, "What is no training, % of the time",
                                "font-weight=\"bold\"");
  const double row = kLowerHeight / static_cast<double>(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto& [name, share] = rows[i];
    const double top = kLowerTop + row * static_cast<double>(i);
    const double length = width * 100 * share / most;
    out += svg::TextAt(kLeft + kNames - 6, top + row / 2 + 4, name, "text-anchor=\"end\"");
    out += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"/>\n",
                       svg::Pixels(kLeft + kNames), svg::Pixels(top + 3), svg::Pixels(length),
                       svg::Pixels(row - 6), svg::kColors[1]);
    out += svg::TextAt(kLeft + kNames + length + 5, top + row / 2 + 4,
                       fmt::format("{:.2g} %", 100 * share));
  }
  return out;
}

std::string DrawIntervals(const RunOutcome& outcome) {
  std::vector<std::pair<double, double>> values;
  for (const RunInterval& one : outcome.by_interval)
    if (one.effective > 0) values.emplace_back(one.length.value() / 60, 100 * one.effective);
  if (values.size() < 2) return "";
  double low = 100;
  double high = 0;
  for (const auto& [minutes, effective] : values) {
    low = std::min(low, effective);
    high = std::max(high, effective);
  }
  const ChartBox box = {kSecondLeft, kLowerTop, kLowerWidth, kLowerHeight};
  const ChartScale x = LogChartScale(values.front().first, values.back().first);
  const ChartScale y = TightChartScale(low, high);
  std::string out = svg::TextAt(kSecondLeft, kLowerTop - 16,
                                "Effective training time, %, by interval between checkpoints",
                                "font-weight=\"bold\"");
  out += AxesOf(box, x, y, "minutes of training", "");
  std::vector<std::pair<double, double>> points;
  for (const auto& [minutes, effective] : values)
    points.emplace_back(box.X(x, minutes), box.Y(y, effective));
  out += PathOf(points);
  const std::array<std::pair<const char*, const RunInterval*>, 4> marked = {
      {{"used", &outcome.used},
       {"best", &outcome.best},
       {"Young", &outcome.young},
       {"Daly", &outcome.daly}}};
  for (size_t i = 0; i < marked.size(); ++i) {
    const auto& [name, interval] = marked[i];
    if (!(interval->effective > 0)) continue;
    const double at = box.X(x, interval->length.value() / 60);
    const double height = box.Y(y, 100 * interval->effective);
    out += fmt::format("<path d=\"{}\" fill=\"{}\"><title>{}: {}, {}</title></path>\n",
                       svg::Diamond(at, height), svg::kColors[i], name,
                       PrintLongTime(interval->length), Percent(interval->effective));
    out += svg::TextAt(box.left + 8 + 60 * static_cast<double>(i), box.bottom() - 8, name,
                       fmt::format("fill=\"{}\"", svg::kColors[i]));
  }
  return out;
}

}  // namespace

std::string CampaignSvg(const Campaign& campaign, const std::string& title) {
  const RunOutcome& outcome = campaign.outcome;
  std::string out = svg::Begin(kWidth, kHeight);
  out += svg::TextAt(kLeft, 24,
                     fmt::format("{}: {} {} in {}, {} of it effective training",
                                 Shortened(title, 50), PrintCount(outcome.tokens),
                                 outcome.token_name, PrintLongTime(Seconds(outcome.seconds.median)),
                                 Percent(outcome.effective.median)),
                     "font-size=\"15\" font-weight=\"bold\"");
  out += DrawLegend(outcome);
  out += DrawProgress(campaign);
  out += DrawShares(outcome);
  out += DrawIntervals(outcome);
  return out + "</svg>\n";
}

}  // namespace rehearse
