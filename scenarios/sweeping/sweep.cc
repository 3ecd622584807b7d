#include "scenarios/sweeping/sweep.h"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cmath>
#include <exception>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include <fmt/format.h>

#include "scenarios/playing/rehearsal.h"
#include "sim/base/error.h"
#include "sim/base/fnv.h"
#include "sim/base/json_parse.h"
#include "sim/base/output_file.h"

namespace rehearse {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kSchema = "rehearse.point.v1";

// Calls work(0) to work(count - 1), in any order, on several threads. The first exception by index
// is thrown again when all are done.
void InParallel(size_t count, unsigned threads, const std::function<void(size_t)>& work) {
  if (threads == 0) threads = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::exception_ptr> faults(count);
  std::atomic<size_t> next = 0;
  const auto loop = [&] {
    for (size_t i = next++; i < count; i = next++) {
      try {
        work(i);
      } catch (...) {
        faults[i] = std::current_exception();
      }
    }
  };
  std::vector<std::thread> others;
  for (size_t i = 1; i < std::min<size_t>(threads, count); ++i) others.emplace_back(loop);
  loop();
  for (std::thread& other : others) other.join();
  for (const std::exception_ptr& fault : faults)
    if (fault) std::rethrow_exception(fault);
}

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

std::string HashOf(const JsonDocument& scenario, const std::string& version) {
  Fnv1a hash;
  hash.Add(version);
  hash.Add(scenario.value().dump());
  const json& root = scenario.value();
  if (root.is_object() && root.contains("cluster") && root["cluster"].is_string()) {
    fs::path file = root["cluster"].get<std::string>();
    if (file.is_relative()) file = fs::path(scenario.name()).parent_path() / file;
    std::error_code missing;
    if (fs::is_regular_file(file, missing)) hash.Add(ReadJsonText(file.string()));
  }
  return fmt::format("{:016x}", hash.hash());
}

class Player {
 public:
  Player(const Study& study, const SweepOptions& options) : study_(study), options_(options) {
    sweep_.points.resize(study.points.size());
    sweep_.calibrated.resize(study.groups.size());
    if (options.folder.empty()) return;
    std::error_code error;
    fs::create_directories(options.folder, error);
    if (error)
      throw Error(fmt::format("cannot make folder {}: {}", options.folder, error.message()));
  }

  Sweep Play() {
    // First those on a point of their own group; others share what they find.
    InParallel(study_.groups.size(), options_.threads, [&](size_t group) {
      if (CalibratorOf(group) == group) Calibrate(group);
    });
    for (size_t group = 0; group < study_.groups.size(); ++group)
      if (const auto calibrator = CalibratorOf(group))
        sweep_.calibrated[group] = sweep_.calibrated[*calibrator];
    std::mutex mutex;
    size_t done = 0;
    InParallel(study_.points.size(), options_.threads, [&](size_t point) {
      PlayPoint(point);
      const std::lock_guard lock(mutex);
      options_.progress(++done, study_.points.size());
    });
    for (size_t i = 0; i < study_.points.size(); ++i) CheckPoint(i);
    CheckThatSomethingCame();
    return std::move(sweep_);
  }

 private:
  // The group whose point calibrates this group.
  std::optional<size_t> CalibratorOf(size_t group) const {
    const auto& calibration = study_.groups[group].calibration;
    if (!calibration) return std::nullopt;
    return study_.points[calibration->point].group;
  }

  PointOutcome Simulate(const StudyPoint& point, std::optional<double> value) const {
    PointOutcome outcome;
    try {
      const JsonDocument document = ScenarioOf(study_, point, value);
      outcome.scenario_hash = HashOf(document, options_.version);
      outcome.result = json::parse(ToJson(Rehearse(ReadScenario(document)).result).dump());
    } catch (const Error& error) {
      outcome.error = error.what();
    }
    return outcome;
  }

  double Metric(size_t point, double value) const {
    const PointOutcome outcome = Simulate(study_.points[point], value);
    const StudyCalibration& calibration = *study_.groups[study_.points[point].group].calibration;
    if (!outcome.error.empty())
      throw Error(calibration.place,
                  fmt::format("with {} for {{value}}: {}", value, outcome.error));
    const auto metric = study_.metric.Of(outcome.result);
    if (!metric) FailMetric(point);
    return *metric;
  }

  [[noreturn]] void FailMetric(size_t point) const {
    throw Error(study_.points[point].place,
                fmt::format("the result of point \"{}\" has no number \"{}\"",
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
    const std::string file =
        options_.folder.empty() ? "" : options_.folder + "/" + FileName(point.name);
    if (!file.empty() && !options_.again && ReadKept(point, value, file, outcome)) return;
    outcome = Simulate(point, value);
    if (file.empty()) return;
    nlohmann::ordered_json kept = {{"schema", kSchema},
                                   {"study", study_.name},
                                   {"point", point.name},
                                   {"scenario_hash", outcome.scenario_hash}};
    if (value) kept["calibrated"] = *value;
    outcome.error.empty() ? kept["result"] = outcome.result : kept["error"] = outcome.error;
    WriteFileAtomically(file, kept.dump(2) + "\n");
  }

  // Whatever is not exactly a finished point of this scenario is simulated anew.
  bool ReadKept(const StudyPoint& point, std::optional<double> value, const std::string& file,
                PointOutcome& outcome) const {
    std::ifstream stream(file);
    const json kept = json::parse(stream, nullptr, false);
    if (!kept.is_object() || !kept.contains("result") || kept.value("schema", json()) != kSchema)
      return false;
    try {
      outcome.scenario_hash = HashOf(ScenarioOf(study_, point, value), options_.version);
    } catch (const Error&) {
      return false;
    }
    if (kept.value("scenario_hash", json()) != outcome.scenario_hash) return false;
    outcome.result = kept["result"];
    outcome.kept = true;
    return true;
  }

  void CheckPoint(size_t i) const {
    const StudyPoint& point = study_.points[i];
    const PointOutcome& outcome = sweep_.points[i];
    if (!outcome.error.empty() && !point.may_fail)
      throw Error(point.place, fmt::format("point \"{}\": {}", point.name, outcome.error));
    if (outcome.error.empty() && !study_.metric.Of(outcome.result)) FailMetric(i);
  }

  // A mistake in a grid or in a column is one of all its points.
  void CheckThatSomethingCame() const {
    const auto is_possible = [](const PointOutcome& outcome) { return outcome.error.empty(); };
    if (study_.points.empty()) return;
    if (std::none_of(sweep_.points.begin(), sweep_.points.end(), is_possible)) {
      throw Error(study_.points[0].place,
                  fmt::format("no point is possible; \"{}\": {}", study_.points[0].name,
                              sweep_.points[0].error));
    }
    for (const StudyMetric& column : study_.columns) {
      const auto has_it = [&](const PointOutcome& outcome) {
        return outcome.error.empty() && column.Of(outcome.result).has_value();
      };
      if (std::any_of(sweep_.points.begin(), sweep_.points.end(), has_it)) continue;
      throw Error(study_.points[0].place,
                  fmt::format("no point's result has the column's number \"{}\"", column.value));
    }
  }

  const Study& study_;
  const SweepOptions& options_;
  Sweep sweep_;
};

}  // namespace

Sweep PlayStudy(const Study& study, const SweepOptions& options) {
  return Player(study, options).Play();
}

}  // namespace rehearse
