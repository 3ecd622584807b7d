#include "workloads/networks/parameter_text.h"

#include <fmt/format.h>

namespace rehearse {

std::string ParameterText(double parameters) {
  // From where three digits of billions round to a thousand.
  const bool is_large = parameters >= 999.5e9;
  return fmt::format("{:.3g} {}", parameters / (is_large ? 1e12 : 1e9),
                     is_large ? "trillion" : "billion");
}

}  // namespace rehearse
