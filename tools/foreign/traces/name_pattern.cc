#include "tools/foreign/traces/name_pattern.h"

#include <algorithm>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/visible_text.h"

namespace rehearse {

NamePattern::NamePattern(const char* option, const std::string& pattern) {
  if (pattern.empty()) return;
  try {
    pattern_.emplace(pattern, std::regex::ECMAScript | std::regex::nosubs | std::regex::optimize);
  } catch (const std::regex_error& error) {
    throw Error(fmt::format("{}: found \"{}\", expected a regular expression: {}", option,
                            VisibleText(pattern), error.what()));
  }
}

bool NamePattern::IsIn(const std::string& name) const {
  // The library goes one call deeper for each character; no kernel's own name is longer.
  constexpr size_t kLongest = 4096;
  const auto end = name.begin() + static_cast<std::ptrdiff_t>(std::min(name.size(), kLongest));
  return pattern_ && std::regex_search(name.begin(), end, *pattern_);
}

}  // namespace rehearse
