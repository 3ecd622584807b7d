#include "sim/report/chart_scale.h"

#include <algorithm>
#include <cmath>

namespace rehearse {
namespace {

// The largest of 1, 2, 5 times a power of ten that is at most `value`.
double NiceBelow(double value) {
  const double power = std::pow(10, std::floor(std::log10(value)));
  for (const double digit : {5.0, 2.0})
    if (digit * power <= value * (1 + 1e-9)) return digit * power;
  return power;
}

}  // namespace

double ChartScale::At(double value) const {
  if (!is_log) return (value - low) / (high - low);
  return std::log10(value / low) / std::log10(high / low);
}

ChartScale LinearChartScale(double most) {
  constexpr double kMarks = 5;
  ChartScale scale;
  const double step = NiceBelow(std::max(most, 1e-300) / kMarks * 2);
  const auto steps = static_cast<int>(std::ceil(most * 1.04 / step));
  scale.high = steps * step;
  for (int mark = 0; mark <= steps; ++mark) scale.marks.push_back(mark * step);
  return scale;
}

ChartScale TightChartScale(double least, double most) {
  constexpr double kMarks = 4;
  const double range = std::max(most - least, std::max(std::abs(most), 1e-300) * 0.05);
  const double step = NiceBelow(range / kMarks);
  ChartScale scale;
  scale.low = std::floor((least - 0.02 * range) / step) * step;
  const double steps = std::ceil((most + 0.02 * range - scale.low) / step);
  scale.high = scale.low + steps * step;
  for (int mark = 0; mark <= static_cast<int>(steps); ++mark)
    scale.marks.push_back(scale.low + mark * step);
  return scale;
}

ChartScale LogChartScale(double least, double most) {
  ChartScale scale;
  scale.is_log = true;
  scale.low = NiceBelow(least * 0.98);
  double mark = scale.low;
  while (true) {
    scale.marks.push_back(mark);
    if (mark >= most * 1.02) break;
    mark = NiceBelow(mark * 2.6);
  }
  scale.high = mark;
  return scale;
}

}  // namespace rehearse
