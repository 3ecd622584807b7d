// Of a long look at formulas, simulates the best so far after a second, and again now and then, so
// that there is always something to show.
#pragma once

#include <chrono>
#include <mutex>
#include <optional>

#include "scenarios/searching/evaluator.h"
#include "scenarios/searching/search.h"

namespace rehearse {

class EarlySimulations {
 public:
  EarlySimulations(const SearchRun& run, PointEvaluator* evaluator)
      : run_(run), evaluator_(*evaluator) {}

  // Threads may call it at the same time.
  void Note(const SpacePoint& point, std::optional<double> cost);

 private:
  const SearchRun& run_;
  PointEvaluator& evaluator_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
  double next_ = 1;  // seconds from the beginning
  bool is_busy_ = false;
  std::optional<double> least_;
  SpacePoint best_;  // that has not been simulated; empty if there is none
};

}  // namespace rehearse
