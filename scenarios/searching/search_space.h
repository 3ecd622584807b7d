// What a search may choose from: axes of choices, each of which makes some changes to the scenario.
// A point takes one choice from every axis, and must meet the constraints.
//
// By default the ranks are written in all ways as a product of the axes of the scenario's strategy
// (for "combined", those that the scenario names; with a "pipeline", its stages too), and
// micro-batches are all divisors of the batch. The order of axes in the mesh is the strategy's;
// "strategy.order" of "combined" may be a separate axis.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/evaluating/axes.h"
#include "sim/base/json_document.h"
#include "sim/base/json_reader.h"

namespace rehearse {

// A choice of every axis.
using SpacePoint = std::vector<uint32_t>;

struct SearchSpace {
  std::vector<SpaceAxis> axes;
  std::vector<SpaceConstraint> constraints;

  // The number of points, without constraints; a double, since there may be more than an integer
  // holds.
  double Size() const;
  SpacePoint PointAt(uint64_t index) const;  // the last axis fastest
  uint64_t IndexOf(const SpacePoint& point) const;
  Changes ChangesOf(const SpacePoint& point) const;
  std::string NameOf(const SpacePoint& point) const;
  // The first constraint that the scenario at this point breaks; nothing if it meets all.
  // `scenario` has the changes made.
  std::optional<std::string> Broken(const nlohmann::json& scenario) const;
};

// All ways to write `product` as a product of this many factors, in order, with the first factor
// falling: 4 as two factors is {4, 1}, {2, 2}, {1, 4}.
std::vector<std::vector<uint32_t>> Factorisations(uint32_t product, size_t factors);

// The axes of a scenario's "search", and its default ones. The document has been read as a scenario
// with `ranks` ranks. Throws Error (file, line, pointer, found, expected), also if an axis has no
// choices or if the default axes of this strategy are not known. `open` is the scenario as it was
// written if it says no strategy: its default axes are all that is known (wide_space.h).
SearchSpace ReadSpace(const JsonDocument& document, uint32_t ranks,
                      const JsonDocument* open = nullptr);

}  // namespace rehearse
