#include "scenarios/searching/early_simulations.h"

#include <algorithm>
#include <utility>

namespace rehearse {

void EarlySimulations::Note(const SpacePoint& point, std::optional<double> cost) {
  if (!cost || run_.IsPart()) return;
  std::unique_lock lock(mutex_);
  if (!least_ || *cost < *least_) {
    least_ = cost;
    best_ = point;
  }
  const std::chrono::duration<double> past = std::chrono::steady_clock::now() - begin_;
  if (past.count() < next_ || is_busy_ || best_.empty()) return;
  const SpacePoint tried = std::exchange(best_, {});
  is_busy_ = true;
  lock.unlock();
  const bool is_possible = evaluator_.SimulateEarly(tried);
  lock.lock();
  is_busy_ = false;
  if (!is_possible) {
    least_.reset();  // the next one is as good as any
    return;
  }
  const std::chrono::duration<double> now = std::chrono::steady_clock::now() - begin_;
  next_ = std::max(10.0, 3 * now.count());
}

}  // namespace rehearse
