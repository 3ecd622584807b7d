#include "scenarios/sweeping/sweep.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <set>

#include <fmt/format.h>

#include "scenarios/evaluating/point_folder.h"
#include "scenarios/playing/prepare.h"
#include "sim/base/error.h"
#include "sim/base/interruption.h"
#include "sim/base/known_names.h"
#include "sim/base/threads.h"

namespace rehearse {
namespace {

using nlohmann::json;

// Progress over all points that are done or being played.
class PointsObserver {
 public:
  PointsObserver(const Study& study, ProgressObserver& observer)
      : study_(study), observer_(observer), more_is_better_(MoreIsBetter(study.metric.value)) {}

  void Advance(double points) {
    const std::lock_guard lock(mutex_);
    done_ += points;
    observer_.Done(done_);
  }
  void End(const StudyPoint& point, const PointOutcome& outcome) {
    const std::lock_guard lock(mutex_);
    if (outcome.kept) observer_.Had(++had_);
    const auto metric =
        outcome.error.empty() ? study_.metric.Of(outcome.result) : std::optional<double>();
    if (!metric || (best_ && (*metric > *best_) != more_is_better_)) return;
    best_ = metric;
    observer_.Note(fmt::format("best {} {:.4g} ({})", study_.metric.Title(), *metric, point.name));
  }

 private:
  const Study& study_;
  ProgressObserver& observer_;
  const bool more_is_better_;
  std::mutex mutex_;
  double done_ = 0;
  double had_ = 0;
  std::optional<double> best_;
};

class Player {
 public:
  Player(const Study& study, const SweepOptions& options)
      : study_(study), options_(options), points_(study, *options.observer) {
    sweep_.points.resize(study.points.size());
    sweep_.calibrated.resize(study.groups.size());
    if (!options.folder.empty()) folder_.emplace(options.folder, options.warn);
    std::vector<PointStore*> stores = options.stores;
    if (folder_) stores.insert(stores.begin(), &*folder_);
    engine_.emplace(EngineOptions{.stores = std::move(stores),
                                  .again = options.again,
                                  .build = options.build,
                                  .is_stopped = options.is_stopped});
  }

  Sweep Play() {
    if (folder_)
      for (const StudyPoint& point : study_.points) folder_->Check(point.name);
    CheckAxes();
    Calibrate();
    const std::vector<bool> is_own = options_.shard.Own(study_.points.size());
    std::vector<size_t> own;
    for (size_t i = 0; i < is_own.size(); ++i)
      is_own[i] ? own.push_back(i) : LeaveOut(i, "belongs to another shard");
    options_.observer->Begin("sweeping", "points", own.size());
    if (options_.leases != nullptr)
      for (const size_t i : own) LeaveOut(i, "belongs to another rank");
    ForLeased(own.size(), options_.threads, options_.leases, [&](size_t i) { PlayPoint(own[i]); });
    sweep_.shard = options_.shard;
    sweep_.left_out = sweep_.points.size() - own.size();
    for (const size_t i : own) sweep_.interrupted += sweep_.points[i].left_out ? 1 : 0;
    sweep_.left_out += sweep_.interrupted;
    if (!own.empty() && sweep_.interrupted == own.size() && options_.leases == nullptr)
      throw Stopped("no point was done");
    for (size_t i = 0; i < study_.points.size(); ++i) CheckPoint(i);
    CheckThatSomethingCame();
    return std::move(sweep_);
  }

 private:
  void Calibrate() {
    options_.observer->Begin("calibrating", "", 0);
    // First the calibrations on a point of their own group; other groups share what they find.
    InParallel(study_.groups.size(), options_.threads, [&](size_t group) {
      if (CalibratorOf(group) == group) Calibrate(group);
    });
    for (size_t group = 0; group < study_.groups.size(); ++group)
      if (const auto calibrator = CalibratorOf(group))
        sweep_.calibrated[group] = sweep_.calibrated[*calibrator];
  }

  // The group whose point calibrates this group.
  std::optional<size_t> CalibratorOf(size_t group) const {
    const auto& calibration = study_.groups[group].calibration;
    if (!calibration) return std::nullopt;
    return study_.points[calibration->point].group;
  }

  // ---- Before the first point -------------------------------------------------------------------

  // The axes as results name them; nothing if the point is impossible.
  std::optional<std::set<std::string>> AxesOf(const StudyPoint& point) const {
    const auto& calibration = study_.groups[point.group].calibration;
    try {
      const std::vector<JsonDocument> scenarios =
          ScenariosOf(study_, point, calibration ? std::optional(calibration->from) : std::nullopt);
      const std::vector<Job> jobs = Prepare(ReadScenario(scenarios.front()));
      std::set<std::string> axes;
      for (const Job& job : jobs)
        for (const Communicator& communicator : job.schedule.communicators)
          axes.insert(JointName(jobs, job, communicator.name()));
      return axes;
    } catch (const Error&) {
      return std::nullopt;
    }
  }

  // Which axes there are is known only when a step is planned, which is a small part of playing it.
  // Every point must have the metric's axis, and some point a column's.
  void CheckAxes() const {
    std::vector<const StudyMetric*> wanted;
    for (const StudyMetric& column : study_.columns)
      if (column.Axis()) wanted.push_back(&column);
    const std::optional<std::string> of_metric = study_.metric.Axis();
    std::set<std::string> seen;
    for (const StudyPoint& point : study_.points) {
      if (!of_metric && wanted.empty()) return;
      if (options_.is_stopped()) throw Stopped("no point was done");
      const std::optional<std::set<std::string>> axes = AxesOf(point);
      if (!axes) continue;
      seen.insert(axes->begin(), axes->end());
      if (of_metric && axes->count(*of_metric) == 0)
        throw Error(study_.metric.place,
                    fmt::format("point \"{}\" has no axis \"{}\"{}", point.name, *of_metric,
                                KnownNames(*of_metric, {axes->begin(), axes->end()})));
      wanted.erase(std::remove_if(
                       wanted.begin(), wanted.end(),
                       [&](const StudyMetric* column) { return axes->count(*column->Axis()) > 0; }),
                   wanted.end());
    }
    if (wanted.empty() || seen.empty()) return;
    const std::string axis = *wanted.front()->Axis();
    throw Error(wanted.front()->place, fmt::format("no point has an axis \"{}\"{}", axis,
                                                   KnownNames(axis, {seen.begin(), seen.end()})));
  }

  // ---- Points -----------------------------------------------------------------------------------

  double Metric(size_t point, double value) {
    const PointOutcome outcome = Evaluated(study_.points[point], value, true, {});
    const StudyCalibration& calibration = *study_.groups[study_.points[point].group].calibration;
    if (!outcome.error.empty())
      throw Error(calibration.place,
                  fmt::format("with {} for {{value}}: {}", value, outcome.error));
    const auto metric = study_.metric.Of(outcome.result);
    if (!metric) FailMetric(point);
    return *metric;
  }

  [[noreturn]] void FailMetric(size_t point) const {
    throw Error(study_.metric.place, fmt::format("the result of point \"{}\" has no number \"{}\"",
                                                 study_.points[point].name, study_.metric.value));
  }

  void Calibrate(size_t group) {
    const StudyCalibration& calibration = *study_.groups[group].calibration;
    const double wanted = *study_.points[calibration.point].published;
    double from = calibration.from;
    double to = calibration.to;
    const double at_from = Metric(calibration.point, from);
    const double at_to = Metric(calibration.point, to);
    if ((at_from - wanted) * (at_to - wanted) > 0)
      throw Error(
          calibration.place,
          fmt::format("the metric of \"{}\" is {:.5g} with {} and {:.5g} with {}; expected limits "
                      "that enclose the published {:.5g}",
                      study_.points[calibration.point].name, at_from, from, at_to, to, wanted));
    const bool rises = at_to > at_from;
    // 4 digits need no more halvings than this unless the limits are far apart.
    for (int i = 0; i < 60 && std::abs(to - from) > 2e-5 * std::abs(to + from); ++i) {
      const double middle = from + (to - from) / 2;
      (Metric(calibration.point, middle) < wanted) == rises ? from = middle : to = middle;
    }
    sweep_.calibrated[group] = std::stod(fmt::format("{:.4g}", from + (to - from) / 2));
  }

  static PointOutcome OutcomeOf(const Evaluation& evaluation) {
    PointOutcome outcome;
    if (evaluation.error.empty())
      outcome.result = json::parse(ResultJson(evaluation.results).dump());
    outcome.error = evaluation.error;
    outcome.scenario_hash = evaluation.hash;
    outcome.kept = evaluation.kept;
    return outcome;
  }

  void LeaveOut(size_t i, const char* why) {
    sweep_.points[i] = {};
    sweep_.points[i].error = why;
    sweep_.points[i].left_out = true;
  }

  void PlayPoint(size_t i) {
    const StudyPoint& point = study_.points[i];
    const std::optional<double>& value = sweep_.calibrated[point.group];
    PointOutcome& outcome = sweep_.points[i];
    double told = 0;
    const auto tell = [&](double share) {
      if (share > told) points_.Advance(share - told);
      told = std::max(told, share);
    };
    try {
      if (options_.is_stopped()) throw Stopped("no point was begun");
      outcome = Evaluated(point, value, false, tell);
    } catch (const Stopped&) {
      LeaveOut(i, "the sweep was stopped before it");
      return;
    }
    points_.End(point, outcome);
    tell(1);
  }

  // A point that is played separately is not kept.
  PointOutcome Evaluated(const StudyPoint& point, const std::optional<double>& value, bool apart,
                         const std::function<void(double)>& tell) {
    std::vector<JsonDocument> scenarios;
    try {
      scenarios = ScenariosOf(study_, point, value);
    } catch (const Error& error) {
      PointOutcome outcome;  // for a change that cannot be made
      outcome.error = error.what();
      return outcome;
    }
    if (apart) return OutcomeOf(engine_->EvaluateApart(scenarios));
    const EvaluationKey key = {.study = study_.name,
                               .point = point.name,
                               .parameters = OwnChanges(study_, point),
                               .calibrated = value};
    return OutcomeOf(engine_->Evaluate(key, scenarios, tell));
  }

  void CheckPoint(size_t i) const {
    const StudyPoint& point = study_.points[i];
    const PointOutcome& outcome = sweep_.points[i];
    if (outcome.left_out) return;
    if (!outcome.error.empty() && !point.may_fail)
      throw Error(point.place, fmt::format("point \"{}\": {}", point.name, outcome.error));
    if (outcome.error.empty() && !study_.metric.Of(outcome.result)) FailMetric(i);
  }

  // A mistake in a grid affects all its points.
  void CheckThatSomethingCame() const {
    const auto is_possible = [](const PointOutcome& outcome) { return outcome.error.empty(); };
    if (study_.points.empty() || sweep_.left_out > 0) return;
    if (std::none_of(sweep_.points.begin(), sweep_.points.end(), is_possible)) {
      throw Error(study_.points[0].place,
                  fmt::format("no point is possible; \"{}\": {}", study_.points[0].name,
                              sweep_.points[0].error));
    }
  }

  const Study& study_;
  const SweepOptions& options_;
  Sweep sweep_;
  PointsObserver points_;
  std::optional<PointFolder> folder_;
  std::optional<Engine> engine_;
};

}  // namespace

Sweep PlayStudy(const Study& study, const SweepOptions& options) {
  return Player(study, options).Play();
}

}  // namespace rehearse
