#include "scenarios/sweeping/sweep.h"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cmath>
#include <exception>
#include <filesystem>
#include <mutex>
#include <set>
#include <thread>

#include <fmt/format.h>

#include "scenarios/playing/prepare.h"
#include "scenarios/playing/rehearsal.h"
#include "sim/base/error.h"
#include "sim/base/fnv.h"
#include "sim/base/input_record.h"
#include "sim/base/interruption.h"
#include "sim/base/json_parse.h"
#include "sim/base/known_names.h"
#include "sim/base/output_file.h"
#include "sim/base/threads.h"
#include "sim/base/version.h"

namespace rehearse {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kSchema = "rehearse.point.v2";

// Letters, digits and a few signs stand for themselves, a slash is ~, all else is %XX; long names
// end in their hash.
std::string FileName(const std::string& point) {
  constexpr size_t kLongest = 150;
  std::string name;
  for (const char c : point) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                       std::string_view("-_=+,").find(c) != std::string_view::npos ||
                       (c == '.' && !name.empty());
    if (c == '/')
      name += '~';
    else
      name += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  if (name.size() > kLongest) {
    Fnv1a hash;
    hash.Add(point);
    name = fmt::format("{}-{:016x}", name.substr(0, kLongest), hash.hash());
  }
  return name + ".json";
}

// Scenarios that were read, and a hash of all that their results follow from: what they say, what
// the files that they name say, and the build.
struct ReadyPoint {
  std::vector<Scenario> scenarios;  // as ScenariosOf
  std::string hash;
};

ReadyPoint ReadPoint(const std::vector<JsonDocument>& documents, const std::string& build) {
  const InputRecord inputs;
  ReadyPoint point;
  for (const JsonDocument& document : documents) {
    point.scenarios.push_back(ReadScenario(document));
  }
  Fnv1a hash;
  const auto add = [&](const std::string& text) {
    hash.Add(uint64_t{text.size()});
    hash.Add(text);
  };
  add(build);
  for (const JsonDocument& document : documents) add(document.value().dump());
  for (const InputFile& file : inputs.files()) hash.Add(file.hash);
  point.hash = fmt::format("{:016x}", hash.hash());
  return point;
}

// Of all but itself.
std::string ChecksumOf(json kept) {
  kept.erase("checksum");
  Fnv1a hash;
  hash.Add(kept.dump());
  return fmt::format("{:016x}", hash.hash());
}

// What is known of all points that are done and being played.
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

// Of one point, which may take several plays; ends them when the sweep is stopped.
class PointObserver : public ProgressObserver {
 public:
  // `points` is null where plays do not count.
  PointObserver(const std::function<bool()>& is_stopped, PointsObserver* points)
      : is_stopped_(is_stopped), points_(points) {}

  void Expect(size_t plays) { plays_ = static_cast<double>(plays); }
  void Begin(std::string_view what, std::string_view /*parts*/, uint64_t all) override {
    all_ = what == kSimulating ? static_cast<double>(all) : 0;
    Tell(0);
  }
  void Done(double parts) override { Tell(all_ > 0 ? std::min(parts / all_, 1.0) : 0); }
  void EndPlay() { ++ended_; }
  void EndPoint() {
    if (points_ != nullptr) points_->Advance(1 - told_);
    told_ = 1;
  }

 private:
  void Tell(double share_of_play) {
    if (is_stopped_()) throw Stopped("a point is not done");
    const double share = (ended_ + share_of_play) / plays_;
    if (points_ != nullptr && share > told_) {
      points_->Advance(share - told_);
      told_ = share;
    }
  }

  const std::function<bool()>& is_stopped_;
  PointsObserver* const points_;
  double plays_ = 1;
  double ended_ = 0;
  double all_ = 0;
  double told_ = 0;
};

class Player {
 public:
  Player(const Study& study, const SweepOptions& options)
      : study_(study), options_(options), points_(study, *options.observer) {
    sweep_.points.resize(study.points.size());
    sweep_.calibrated.resize(study.groups.size());
    if (options.folder.empty()) return;
    MakeFolder(options.folder);
    RemoveAbandonedFiles(options.folder);
  }

  Sweep Play() {
    CheckKeptFiles();
    CheckAxes();
    Calibrate();
    options_.observer->Begin("sweeping", "points", study_.points.size());
    InParallel(study_.points.size(), options_.threads, [&](size_t point) { PlayPoint(point); });
    for (const PointOutcome& outcome : sweep_.points) sweep_.left_out += outcome.left_out ? 1 : 0;
    if (!sweep_.points.empty() && sweep_.left_out == sweep_.points.size())
      throw Stopped("no point was done");
    for (size_t i = 0; i < study_.points.size(); ++i) CheckPoint(i);
    CheckThatSomethingCame();
    return std::move(sweep_);
  }

 private:
  void Calibrate() {
    options_.observer->Begin("calibrating", "", 0);
    // First those on a point of their own group; others share what they find.
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

  std::string FileOf(const StudyPoint& point) const {
    return options_.folder + "/" + FileName(point.name);
  }

  // A folder could not be replaced, and a pipe would be waited for.
  void CheckKeptFiles() const {
    if (options_.folder.empty()) return;
    for (const StudyPoint& point : study_.points) {
      std::error_code missing;
      const fs::file_status status = fs::status(FileOf(point), missing);
      if (fs::exists(status) && !fs::is_regular_file(status))
        throw Error(
            {FileOf(point), 0, ""},
            fmt::format("is no regular file; expected the result of point \"{}\" or nothing",
                        point.name));
    }
  }

  // As results name them; nothing where the point is impossible.
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

  // Which axes there are is only known when a step is planned, but that is a small part of playing
  // it. The metric's is to be everywhere, a column's somewhere.
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

  // From the file if that is its result, else by simulation.
  PointOutcome ReadOrSimulate(const StudyPoint& point, std::optional<double> value,
                              const std::string& file, PointObserver& observer) {
    PointOutcome outcome;
    try {
      const ReadyPoint ready = ReadPoint(ScenariosOf(study_, point, value), options_.build);
      outcome.scenario_hash = ready.hash;
      if (!file.empty() && !options_.again && ReadKept(file, outcome)) return outcome;
      const InputRecord later;
      observer.Expect(ready.scenarios.size());
      const auto play = [&observer](const Scenario& scenario) {
        json result = json::parse(
            ToJson(Rehearse(scenario, {.observer = &observer, .threads = 1}).result).dump());
        observer.EndPlay();
        return result;
      };
      outcome.result = play(ready.scenarios.front());
      if (ready.scenarios.size() > 1) outcome.result["minus"] = play(ready.scenarios.back());
      CHECK(later.files().empty());  // they would be missing in the hash
    } catch (const Error& error) {
      outcome.error = error.what();
    }
    return outcome;
  }

  double Metric(size_t point, double value) {
    PointObserver observer(options_.is_stopped, nullptr);
    const PointOutcome outcome = ReadOrSimulate(study_.points[point], value, "", observer);
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
          fmt::format("the metric of \"{}\" is {:.5g} with {} and {:.5g} with {}; expected "
                      "limits that enclose the published {:.5g}",
                      study_.points[calibration.point].name, at_from, from, at_to, to, wanted));
    const bool rises = at_to > at_from;
    // 4 digits need no more halvings than this unless the limits are far apart.
    for (int i = 0; i < 60 && std::abs(to - from) > 2e-5 * std::abs(to + from); ++i) {
      const double middle = from + (to - from) / 2;
      (Metric(calibration.point, middle) < wanted) == rises ? from = middle : to = middle;
    }
    sweep_.calibrated[group] = std::stod(fmt::format("{:.4g}", from + (to - from) / 2));
  }

  void PlayPoint(size_t i) {
    const StudyPoint& point = study_.points[i];
    const std::optional<double>& value = sweep_.calibrated[point.group];
    PointOutcome& outcome = sweep_.points[i];
    const std::string file = options_.folder.empty() ? "" : FileOf(point);
    PointObserver observer(options_.is_stopped, &points_);
    try {
      if (options_.is_stopped()) throw Stopped("no play began");
      outcome = ReadOrSimulate(point, value, file, observer);
    } catch (const Stopped&) {
      outcome = {};
      outcome.error = "the sweep was stopped before";
      outcome.left_out = true;
      return;
    }
    points_.End(point, outcome);
    observer.EndPoint();
    if (file.empty() || outcome.kept) return;
    nlohmann::ordered_json kept = {{"schema", kSchema},
                                   {"study", study_.name},
                                   {"point", point.name},
                                   {"scenario_hash", outcome.scenario_hash}};
    if (value) kept["calibrated"] = *value;
    outcome.error.empty() ? kept["result"] = outcome.result : kept["error"] = outcome.error;
    kept["checksum"] = ChecksumOf(json(kept));
    WriteFileAtomically(file, kept.dump(2) + "\n");
  }

  // A finished point of this very scenario; others, and those of earlier versions, are out of date.
  bool ReadKept(const std::string& file, PointOutcome& outcome) {
    std::error_code missing;
    if (!fs::exists(file, missing)) return false;
    json kept;
    try {
      kept = ParseJson(ReadJsonText(file), file, JsonComments::kRefused).value;
    } catch (const Error& error) {
      SimulateAgain(error.what());
      return false;
    }
    const auto text = [&](const char* key) {
      return kept.is_object() && kept.contains(key) && kept[key].is_string()
                 ? kept[key].get<std::string>()
                 : "";
    };
    if (text("schema").starts_with("rehearse.point.") && text("schema") != kSchema) return false;
    if (text("checksum").empty() || text("checksum") != ChecksumOf(kept)) {
      SimulateAgain(file + ": the checksum does not fit");
      return false;
    }
    if (text("scenario_hash") != outcome.scenario_hash || !kept.contains("result")) return false;
    outcome.result = kept["result"];
    outcome.kept = true;
    return true;
  }

  void SimulateAgain(const std::string& reason) {
    const std::lock_guard lock(mutex_);
    options_.warn(reason + "; its point is simulated again");
  }

  void CheckPoint(size_t i) const {
    const StudyPoint& point = study_.points[i];
    const PointOutcome& outcome = sweep_.points[i];
    if (outcome.left_out) return;
    if (!outcome.error.empty() && !point.may_fail)
      throw Error(point.place, fmt::format("point \"{}\": {}", point.name, outcome.error));
    if (outcome.error.empty() && !study_.metric.Of(outcome.result)) FailMetric(i);
  }

  // A mistake in a grid is one of all its points.
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
  std::mutex mutex_;  // of what is warned of
};

}  // namespace

std::string ThisBuild() { return fmt::format("{} {}", Version(), BuildCommit()); }

Sweep PlayStudy(const Study& study, const SweepOptions& options) {
  return Player(study, options).Play();
}

}  // namespace rehearse
