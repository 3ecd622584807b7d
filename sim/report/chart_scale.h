// An axis of a chart: where a value is along it, and which values have a mark.
#pragma once

#include <vector>

namespace rehearse {

struct ChartScale {
  bool is_log = false;
  double low = 0;
  double high = 1;
  std::vector<double> marks;

  double At(double value) const;  // 0 at `low`, 1 at `high`
};

// From 0 to a little more than `most`, in steps of 1, 2 or 5 times a power of ten.
ChartScale LinearChartScale(double most);
// From a little less than `least`, above 0, to a little more than `most`.
ChartScale LogChartScale(double least, double most);
// Linear, from a little less than `least`.
ChartScale TightChartScale(double least, double most);

}  // namespace rehearse
