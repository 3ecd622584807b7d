// What the "search" of a scenario says (scenarios/searching/search.h says what is done with it),
// and the tables of what studies and searches choose from.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/readers/memory_options.h"
#include "sim/base/json_fields.h"

namespace rehearse {

// A condition on the product of some numbers in the scenario.
struct SpaceConstraint {
  std::vector<std::string> product;  // paths
  std::optional<uint64_t> equals = {};
  std::optional<uint64_t> at_least = {};
  std::optional<uint64_t> at_most = {};
  std::optional<uint64_t> divides = {};
  std::optional<MemoryBound> memory = {};  // instead of a product: of what a simulated step needs

  bool Allows(uint64_t value) const;
  std::string Text() const;  // "strategy.column * strategy.row is at most 8"
};
const Fields<SpaceConstraint>& ConstraintFields();

enum class WalkMethod : uint8_t { kExhaustive, kRandom, kDescent, kMetropolis, kAnnealing };
const char* Name(WalkMethod method);

// scenarios/searching/walk.h says what they mean.
struct WalkOptions {
  WalkMethod method = WalkMethod::kExhaustive;
  uint64_t evaluations = 2000;
  uint32_t starts = 8;
  double temperature = 0.05;
  uint64_t seed = 1;
};

enum class Decision : uint8_t { kBoth, kSimulation, kFormula };
enum class FormulaKind : uint8_t {
  kAxonn,
  kAxonnAgnostic,
  kAutoddl,
  kAtp,
  kClosedForms,
  kComposed,
  kAuto
};
const char* Name(FormulaKind formula);

// Axes and objectives are read by hand: they depend on the scenario, and on each other.
struct SearchOptions {
  bool default_axes = true;
  std::vector<SpaceConstraint> where;
  std::optional<uint32_t> most_p0;
  Decision decide = Decision::kBoth;
  FormulaKind formula = FormulaKind::kAuto;
  double keep = 0.25;
  uint64_t keep_at_least = 20;
  WalkOptions walk;
  std::optional<double> seconds;
  std::optional<uint32_t> gpus;    // at most so many of each cluster's
  std::optional<std::string> per;  // a path of an axis: the best of each of its choices
};
const Fields<SearchOptions>& SearchFields();

JsonShape ChangesShape();
const ObjectShape& ValuesShape();
const ObjectShape& ChoicesShape();
const ObjectShape& ChoiceShape();
const ObjectShape& FactorsShape();
const ObjectShape& SbpPlacementShape();

}  // namespace rehearse
