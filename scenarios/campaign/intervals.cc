#include "scenarios/campaign/intervals.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace rehearse {
namespace {

// From an eighth of Young's to eight times, in quarters of a doubling.
constexpr int kReach = 12;
constexpr double kQuarter = 1.189207115002721;  // 2^(1/4)

// Where the parabola through three points, whose places are -1, 0 and 1, has its top.
double TopOf(double left, double middle, double right) {
  const double bend = left - 2 * middle + right;
  return bend < 0 ? std::clamp(0.5 * (left - right) / bend, -1.0, 1.0) : 0;
}

// 2^(x/4) for x from -1 to 1, with the same bits everywhere.
double QuarterTo(double x) {
  constexpr double kLogOfQuarter = 0.17328679513998632;  // log(2)/4
  const double y = x * kLogOfQuarter;
  return 1 + y * (1 + y / 2 * (1 + y / 3 * (1 + y / 4 * (1 + y / 5))));
}

}  // namespace

double YoungInterval(double stall, double between_failures) {
  return std::sqrt(2 * stall * between_failures);
}

double DalyInterval(double stall, double between_failures) {
  const double ratio = stall / (2 * between_failures);
  if (ratio >= 1) return between_failures;
  return YoungInterval(stall, between_failures) * (1 + std::sqrt(ratio) / 3 + ratio / 9) - stall;
}

double WholeSteps(double seconds, double step) {
  return std::max(1.0, std::round(seconds / step)) * step;
}

double EffectiveShare(RunModel model, double interval, uint64_t first_seed, uint32_t seeds) {
  model.interval = interval;
  double training = 0;
  double elapsed = 0;
  for (uint32_t i = 0; i < seeds; ++i) {
    const RunRecord record = PlayRun(model, first_seed + i);
    if (!record.is_done) return 0;
    training += record.times.useful;
    elapsed += record.times.Elapsed();
  }
  return training / elapsed;
}

IntervalChoice ChooseInterval(const RunModel& model, double step, uint64_t first_seed,
                              uint32_t seeds, ProgressObserver& observer) {
  IntervalChoice choice;
  const double rate = model.FailuresPerSecond();
  // What is still being written is lost, too; it bounds the search where nothing stands still.
  const double stall = std::max(model.stall, 1e-3 * step);
  if (!(rate > 0)) {
    choice.best = model.training;
    return choice;
  }
  double interval = std::min(YoungInterval(stall, 1 / rate), model.training);
  for (int i = 0; i < kReach; ++i) interval /= kQuarter;
  for (int i = -kReach; i <= kReach && interval < model.training * kQuarter; ++i) {
    observer.Done(0);
    const double whole = std::min(WholeSteps(interval, step), model.training);
    interval *= kQuarter;
    if (!choice.tried.empty() && whole <= choice.tried.back().seconds) continue;
    choice.tried.push_back({whole, EffectiveShare(model, whole, first_seed, seeds)});
  }
  const std::vector<TriedInterval>& tried = choice.tried;
  const auto top = std::max_element(
      tried.begin(), tried.end(),
      [](const TriedInterval& a, const TriedInterval& b) { return a.effective < b.effective; });
  const auto at = static_cast<size_t>(top - tried.begin());
  double best = top->seconds;
  if (at > 0 && at + 1 < tried.size())
    best *= QuarterTo(TopOf(tried[at - 1].effective, top->effective, tried[at + 1].effective));
  choice.best = std::min(WholeSteps(best, step), model.training);
  return choice;
}

}  // namespace rehearse
