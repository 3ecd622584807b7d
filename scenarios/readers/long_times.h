// Quantities of runs that last for weeks, as files say them: times up to years ("10min", "3h",
// "54 days"), rates of failure of one part ("2.4e-5/h", or as the mean time between two of them:
// "12 years"), numbers of tokens ("15T").
//
// sim/base/units.h has the units of a step, whose times fit the simulated clock of 106 days.
#pragma once

#include <string>
#include <string_view>

#include "sim/base/json_fields.h"
#include "sim/base/quantity.h"

namespace rehearse {

// How often a part fails, whatever its age.
struct FailureRate {
  double per_second = 0;  // 0: never

  friend bool operator==(const FailureRate&, const FailureRate&) = default;
};

// Each throws Error("found ..., expected ...").
Seconds ParseLongTime(std::string_view text);
FailureRate ParseFailureRate(std::string_view text);
double ParseCount(std::string_view text);

// "54.2 days", "3.1 h", "9.8 min", "12 s": three digits.
std::string PrintLongTime(Seconds time);
// "15T", "1.5G": four digits.
std::string PrintCount(double count);

// Shapes of rows.
FieldShape ALongTime();                 // of Seconds
FieldShape AFailureRate();              // of FailureRate
FieldShape ACountOf(const char* what);  // of double

}  // namespace rehearse
