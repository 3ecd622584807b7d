// How many random scenarios each property is tried on: 200, or REHEARSE_CASES (100000 for a soak),
// from the seed REHEARSE_FIRST_CASE on; a dozen under sanitizers.
#pragma once

#include <cstdint>
#include <cstdlib>

#include "tests/support/sanitizers.h"

namespace rehearse {

struct Cases {
  uint64_t first = 0;
  uint64_t end = 0;

  uint64_t count() const { return end - first; }
};

// `share`: properties that take long are tried on only one case in so many.
inline Cases CasesOf(uint64_t share = 1) {
  uint64_t count = kIsSanitized ? 12 : 200;
  Cases cases;
  if (const char* given = std::getenv("REHEARSE_CASES")) count = std::strtoull(given, nullptr, 10);
  if (const char* given = std::getenv("REHEARSE_FIRST_CASE"))
    cases.first = std::strtoull(given, nullptr, 10);
  cases.end = cases.first + (count + share - 1) / share;
  return cases;
}

}  // namespace rehearse
