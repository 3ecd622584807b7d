// The points of a search as far as they are known: what the formula says about each, what its
// simulation came to, or why it is impossible. Points may be asked for by any number of threads.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "scenarios/evaluating/engine.h"
#include "scenarios/playing/paper_models.h"
#include "scenarios/searching/composed_step.h"
#include "scenarios/searching/point_conditions.h"
#include "scenarios/searching/point_rates.h"
#include "scenarios/searching/search.h"
#include "scenarios/searching/space_formula.h"

namespace rehearse {

// The text of an error without its place.
std::string WithoutPlace(std::string text);

class PointEvaluator {
 public:
  // Both must outlive it.
  PointEvaluator(const Search& search, const SearchRun& run);

  // Stopped by its user, or out of time.
  const std::function<bool()>& is_over() const { return is_over_; }

  // Whether no condition on the numbers of its choices excludes it.
  bool IsAllowed(const SpacePoint& point) const { return conditions_.Allow(point); }
  // Nor what a composed formula knows of sizes.
  bool IsPlausible(const SpacePoint& point) const {
    return IsAllowed(point) && (composed_ == nullptr || composed_->Excluded(point) == nullptr);
  }
  // The formula's number; nothing if the point is impossible.
  std::optional<double> Formula(const SpacePoint& point);
  // By objective.
  std::optional<std::vector<double>> Simulate(const SpacePoint& point);
  // Tells the user what the point comes to. When this is asked depends on time, and so the result
  // only counts if the search ends early, or if the point is simulated anyway. Returns whether the
  // point is possible.
  bool SimulateEarly(const SpacePoint& point);

  void BeginSimulations(size_t most);
  void EndOne();

  // Possible points with a number from the formula, the best first; those that hardly fit by a
  // composed estimate come after all others.
  std::vector<std::pair<double, SpacePoint>> ByFormula();
  bool IsSimulated(const SpacePoint& point) const;
  // Null if the formula is another.
  ComposedSteps* composed() const { return composed_.get(); }
  // By the first objective; of equal ones, the first point.
  std::optional<SpacePoint> Best() const;
  // In no order of merit. Simulations are moved there.
  FoundPoints Found();

 private:
  static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

  struct Entry {
    std::optional<double> formula;
    std::optional<SimulatedPoint> simulated;
    std::string error;
    std::string reason;

    bool IsOpen() const { return error.empty(); }  // not known to be impossible
  };

  bool IsOver() const;
  // The scenario of a point that meets the constraints.
  JsonDocument DocumentOf(const SpacePoint& point) const;
  EvaluationKey KeyOf(const SpacePoint& point) const;
  double ClosedForms(const SpacePoint& point, Scenario scenario);
  std::optional<double> Composed(const SpacePoint& point);
  void CheckMemory(const Result& result) const;
  SimulatedPoint SimulatedOf(const SpacePoint& point, const Result& result,
                             const std::string& device);
  Rates RatesAt(const SpacePoint& point, const Scenario& scenario, const Result& result) const;
  // What an objective of a run comes to by a formula's step.
  double RunByFormula(const SpacePoint& point, const Result& result);
  // Counts a point that a condition excludes, and says whether one does.
  bool IsBroken(const SpacePoint& point);
  void Note(const SpacePoint& point, double number);
  void NoteExcluded(const std::string* reason);
  // The same text, for as long as this object lives.
  const std::string* Kept(const std::string& reason);
  // What is known about each point, in order.
  template <typename Visit>
  void ForEach(const Visit& visit);
  Entry Known(const SpacePoint& point);
  // Notes what `make` finds out about the point's scenario, or why it is impossible, and returns
  // all that is then known. Two threads may find the same thing about a point. Nothing is noted if
  // the search is over before that.
  template <typename Make>
  Entry Add(const SpacePoint& point, const Make& make);
  void NoteBest(const SpacePoint& point, double value);
  SimulatedPoint Simulated(const SpacePoint& point);

  const Search& search_;
  const SearchRun& run_;
  const PointConditions conditions_;
  const PointRates rates_;
  const std::chrono::steady_clock::time_point begin_;
  const std::function<bool()> is_over_;
  Engine engine_;
  PaperModels papers_;
  std::optional<SpaceFormula> paper_;                 // nothing if the formula is no paper's
  std::unique_ptr<ComposedSteps> composed_;           // null if the formula is another
  std::map<const std::string*, size_t> not_planned_;  // points by why they are impossible
  std::set<std::string> reasons_;                     // of these, where no formula keeps them
  std::map<SpacePoint, SimulatedPoint> early_;
  std::once_flag is_priced_;
  Scenario priced_;  // its cluster and costs, for an objective of a run's costs
  std::mutex mutex_;
  std::map<SpacePoint, Entry> entries_;
  // By the number of the point, of all points if there are not too many: what the paper's formula
  // says; most of them have no entry.
  std::vector<std::atomic<double>> numbers_;
  std::vector<std::atomic<size_t>> broken_;  // points that each condition excludes
  std::optional<double> best_;
  size_t done_ = 0;
};

}  // namespace rehearse
