// What money and energy of a point are counted with: its choices may say a price and a power of
// their own ("search.price", "search.power"), as machines differ in both; else the search's.
#pragma once

#include <vector>

#include "scenarios/searching/objective.h"
#include "scenarios/searching/search_space.h"

namespace rehearse {

// Whether a choice may set this path of the search itself.
bool IsPathOfRates(const std::string& path);

class PointRates {
 public:
  // Throws Error for prices in two currencies.
  PointRates(const SearchSpace& space, Rates search);

  Rates At(const SpacePoint& point) const;
  // Whether every point has a price.
  bool AllHavePrice() const;
  const std::string& currency() const { return currency_; }  // "" without any price

 private:
  Rates search_;
  std::string currency_;
  std::vector<std::vector<Rates>> by_axis_;  // by choice; of axes that say none, empty
};

}  // namespace rehearse
