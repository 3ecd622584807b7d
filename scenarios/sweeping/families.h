// Measured steps by who published them, each source judged by all others: what would be left of its
// errors if predictions were corrected by the mean error of the others on its devices. A source
// that is good by itself and bad in this way had constants read off it; one that is bad in both has
// a cause of its own.
#pragma once

#include <string>
#include <vector>

#include "scenarios/sweeping/validation.h"

namespace rehearse {

// Whoever published the source: "mosaicml/llm-foundry", "Narayanan et al. 2021".
std::string FamilyOf(const std::string& source);

struct ValidatedFamily {
  std::string name;
  size_t rows = 0;
  double mean = 0;  // of the absolute errors
  double bias = 0;
  // The same once predictions are divided by 1 + the mean error of other families' rows on the same
  // device, or of all their rows if there are none on it.
  double left_mean = 0;
  double left_bias = 0;
};

// In the order of their first rows; none if all rows are of one.
std::vector<ValidatedFamily> FamiliesOf(const ValidationTable& table, const Validation& validation);

}  // namespace rehearse
