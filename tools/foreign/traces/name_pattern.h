// A user's regular expression of names in a trace: what communicates, what is a step.
#pragma once

#include <optional>
#include <regex>
#include <string>

namespace rehearse {

class NamePattern {
 public:
  NamePattern() = default;  // none: it matches nothing
  // "": none. Throws Error, naming the option, for what is no regular expression.
  NamePattern(const char* option, const std::string& pattern);

  explicit operator bool() const { return pattern_.has_value(); }
  // Whether the pattern is found anywhere in the name.
  bool IsIn(const std::string& name) const;

 private:
  std::optional<std::regex> pattern_;
};

}  // namespace rehearse
