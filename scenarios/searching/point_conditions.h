// Which of a space's conditions a point breaks, told from the numbers of its choices alone: no
// scenario is written or read for a point that "where" excludes.
#pragma once

#include <cstdint>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "scenarios/searching/search_space.h"

namespace rehearse {

class PointConditions {
 public:
  // `space` must outlive it; `scenario` is what its changes are made to.
  PointConditions(const SearchSpace& space, const nlohmann::json& scenario);

  // The number of the first condition that the point breaks, kNone if it breaks none that is known
  // here. Conditions on what an axis replaces as a whole ("strategy") are not: they are left to
  // SearchSpace::Broken.
  static constexpr size_t kNone = SIZE_MAX;
  size_t BrokenBy(const SpacePoint& point) const;
  bool Allow(const SpacePoint& point) const { return BrokenBy(point) == kNone; }

 private:
  struct Factor {
    size_t axis = 0;
    std::vector<uint64_t> by_choice;
  };
  struct Condition {
    size_t number = 0;      // in the space's constraints
    uint64_t constant = 1;  // the product of what no axis changes
    std::vector<Factor> factors;
  };

  const SearchSpace& space_;
  std::vector<Condition> conditions_;
};

}  // namespace rehearse
