// Devices held and jobs waiting over time, and each job's slow-down over its size.
#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "scenarios/queueing/queue_result.h"
#include "scenarios/readers/long_times.h"
#include "sim/report/chart_scale.h"
#include "sim/report/svg.h"
#include "sim/report/text_page.h"

namespace rehearse {
namespace {

constexpr double kWidth = 960;
constexpr double kHeight = 620;
constexpr double kLeft = 80;
constexpr double kChartWidth = kWidth - kLeft - 20;
constexpr size_t kMostPoints = 3000;

struct TimeUnit {
  double seconds;
  const char* name;
};

TimeUnit UnitFor(double end) {
  if (end > 3 * 86400) return {86400, "days"};
  if (end > 3 * 3600) return {3600, "hours"};
  return end > 180 ? TimeUnit{60, "minutes"} : TimeUnit{1, "seconds"};
}

struct Chart {
  double top = 0;
  double height = 0;
  ChartScale x;
  ChartScale y;

  double X(double value) const { return kLeft + kChartWidth * std::clamp(x.At(value), 0.0, 1.0); }
  double Y(double value) const { return top + height * (1 - std::clamp(y.At(value), 0.0, 1.0)); }

  std::string Axes(const std::string& title, const std::string& x_title) const {
    std::string out = svg::TextAt(kLeft, top - 10, title, "font-weight=\"bold\"");
    for (const double mark : y.marks) {
      out += svg::Line(kLeft, Y(mark), kLeft + kChartWidth, Y(mark), "stroke=\"#e6e6e6\"");
      out +=
          svg::TextAt(kLeft - 6, Y(mark) + 4, fmt::format("{:.6g}", mark), "text-anchor=\"end\"");
    }
    const double bottom = top + height;
    for (const double mark : x.marks) {
      out += svg::Line(X(mark), bottom, X(mark), bottom + 4, "stroke=\"#555\"");
      out +=
          svg::TextAt(X(mark), bottom + 17, fmt::format("{:.6g}", mark), "text-anchor=\"middle\"");
    }
    out += svg::Line(kLeft, bottom, kLeft + kChartWidth, bottom, "stroke=\"#555\"");
    return out +
           svg::TextAt(kLeft + kChartWidth / 2, bottom + 33, x_title, "text-anchor=\"middle\"");
  }
};

// A line of steps, from moment to moment; of many, the highest of each stretch.
std::string Steps(const Queue& queue, const Chart& chart, const TimeUnit& unit,
                  uint32_t Queue::Moment::*value, const char* color) {
  std::string path;
  const size_t stride = queue.moments.size() / kMostPoints + 1;
  double last = chart.Y(0);
  for (size_t i = 0; i < queue.moments.size(); i += stride) {
    uint32_t most = 0;
    for (size_t j = i; j < std::min(i + stride, queue.moments.size()); ++j)
      most = std::max(most, queue.moments[j].*value);
    const double x = chart.X(queue.moments[i].time / unit.seconds);
    path += fmt::format("{}{} {}", path.empty() ? "M" : "L", svg::Pixels(x), svg::Pixels(last));
    last = chart.Y(most);
    path += fmt::format("L{} {}", svg::Pixels(x), svg::Pixels(last));
  }
  return fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.4\"/>\n", path,
                     color);
}

std::string Dots(const Queue& queue, const Chart& chart) {
  std::string out;
  const size_t stride = queue.jobs.size() / kMostPoints + 1;
  for (size_t i = 0; i < queue.jobs.size(); i += stride) {
    const QueuedJob& job = queue.jobs[i];
    out += fmt::format(
        "<circle cx=\"{}\" cy=\"{}\" r=\"3\" fill=\"{}\" fill-opacity=\"0.5\"><title>{}: {} GPUs "
        "on "
        "{} machines, {:.3f} by placement, {:.3f} by sharing</title></circle>\n",
        svg::Pixels(chart.X(job.devices)), svg::Pixels(chart.Y(job.SlowDown())), svg::kColors[2],
        svg::Escape(job.name), job.devices, job.machines, job.by_placement, job.by_sharing);
  }
  return out;
}

}  // namespace

std::string QueueSvg(const Queue& queue, const std::string& title) {
  const TimeUnit unit = UnitFor(queue.end);
  double most = 1;
  double least_devices = queue.devices;
  double most_devices = 1;
  for (const QueuedJob& job : queue.jobs) {
    most = std::max(most, job.SlowDown());
    least_devices = std::min<double>(least_devices, job.devices);
    most_devices = std::max<double>(most_devices, job.devices);
  }
  const ChartScale time = LinearChartScale(std::max(queue.end / unit.seconds, 1e-9));
  const Chart held = {70, 150, time, LinearChartScale(queue.devices)};
  const Chart waiting = {290, 90, time, LinearChartScale(std::max<double>(queue.most_waiting, 1))};
  const Chart slow = {460, 110, LogChartScale(least_devices, std::max(most_devices, 2.0)),
                      TightChartScale(1, std::max(most, 1.05))};
  std::string out = svg::Begin(kWidth, kHeight);
  out += svg::TextAt(kLeft, 26,
                     fmt::format("{}: {} jobs in {}", Shortened(title, 60),
                                 Grouped(queue.jobs.size()), PrintLongTime(Seconds(queue.end))),
                     "font-size=\"15\" font-weight=\"bold\"");
  out += held.Axes(fmt::format("GPUs held, of {}", Grouped(queue.devices)), "");
  out += Steps(queue, held, unit, &Queue::Moment::held, svg::kColors[0]);
  out += waiting.Axes("Jobs that wait", unit.name);
  out += Steps(queue, waiting, unit, &Queue::Moment::waiting, svg::kColors[1]);
  out += slow.Axes("Times as long as alone on the best devices", "GPUs of a job");
  out += Dots(queue, slow);
  return out + "</svg>\n";
}

}  // namespace rehearse
