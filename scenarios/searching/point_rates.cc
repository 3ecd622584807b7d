#include "scenarios/searching/point_rates.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/json_document.h"

namespace rehearse {
namespace {

constexpr const char* kPrice = "search.price";
constexpr const char* kPower = "search.power";

Rates RatesOf(const SpaceChoice& choice, const Place& place) {
  Rates rates;
  for (const auto& [path, value] : choice.changes) {
    if (!IsPathOfRates(path)) continue;
    const JsonDocument said = JsonDocument::FromText(value.dump(), place.file);
    if (path == kPrice) rates.price = ReadPrice(said.Root());
    if (path == kPower) rates.watts = ReadPower(said.Root());
  }
  return rates;
}

}  // namespace

bool IsPathOfRates(const std::string& path) { return path == kPrice || path == kPower; }

PointRates::PointRates(const SearchSpace& space, Rates search) : search_(std::move(search)) {
  if (search_.price) currency_ = search_.price->currency;
  for (const SpaceAxis& axis : space.axes) {
    std::vector<Rates> rates;
    for (const SpaceChoice& choice : axis.choices) rates.push_back(RatesOf(choice, axis.place));
    for (const Rates& one : rates) {
      if (!one.price) continue;
      if (currency_.empty()) currency_ = one.price->currency;
      if (one.price->currency != currency_)
        throw Error(axis.place, fmt::format("found prices in {} and in {}, expected one currency",
                                            currency_, one.price->currency));
    }
    by_axis_.push_back(std::move(rates));
  }
}

Rates PointRates::At(const SpacePoint& point) const {
  Rates rates = search_;
  for (size_t axis = 0; axis < point.size(); ++axis) {
    const Rates& said = by_axis_[axis][point[axis]];
    if (said.price) rates.price = said.price;
    if (said.watts) rates.watts = said.watts;
  }
  return rates;
}

bool PointRates::AllHavePrice() const {
  return search_.price || std::any_of(by_axis_.begin(), by_axis_.end(), [](const auto& choices) {
           return !choices.empty() && std::all_of(choices.begin(), choices.end(),
                                                  [](const Rates& one) { return one.price; });
         });
}

}  // namespace rehearse
