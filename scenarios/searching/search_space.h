// What a search may choose from: axes of choices, each of which is some changes of the scenario. A
// point takes one choice of every axis, and must keep the constraints.
//
// By default the ranks are written in all ways as a product of the axes of the scenario's own kind
// of strategy (of "combined", of those that the scenario names; with a "pipeline", of its stages as
// well), and micro-batches are all divisors of the batch. The order of axes in the mesh is the
// strategy's; "strategy.order" of "combined" may be an axis of its own.
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

  // Points, constraints aside; a double, since there may be more than can be counted.
  double Size() const;
  SpacePoint PointAt(uint64_t index) const;  // the last axis fastest
  Changes ChangesOf(const SpacePoint& point) const;
  std::string NameOf(const SpacePoint& point) const;
  // The first constraint that the scenario at this point breaks; nothing where it keeps all.
  // `scenario` has the changes made.
  std::optional<std::string> Broken(const nlohmann::json& scenario) const;
};

// All ways to write `product` as a product of so many factors, in order, the first fastest falling:
// 4 in two is {4, 1}, {2, 2}, {1, 4}.
std::vector<std::vector<uint32_t>> Factorisations(uint32_t product, size_t factors);

// The axes of a scenario's "search", and its default ones. The document has been read as a scenario
// of so many ranks. Throws Error (file, line, pointer, found, expected), also where an axis has no
// choices and where the default axes of this strategy are not known.
SearchSpace ReadSpace(const JsonDocument& document, uint32_t ranks);

}  // namespace rehearse
