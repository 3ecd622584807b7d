#include "sim/base/known_names.h"

#include <algorithm>

#include <fmt/format.h>

#include "sim/base/error.h"

namespace rehearse {

std::string KnownNames(const std::string& word, const std::vector<std::string>& names,
                       std::string_view all_in) {
  constexpr size_t kMostNamed = 12;
  std::string text = DidYouMean(word, names);
  if (names.empty()) return text;
  if (!text.empty() && names.size() == 1) return text;
  if (!text.empty() && names.size() > kMostNamed) {
    if (!all_in.empty()) text += fmt::format(" All {}: {}", names.size(), all_in);
    return text;
  }
  text +=
      fmt::format("{} {} ", text.empty() ? "; known" : " Known", names.size() == 1 ? "is" : "are");
  const size_t named = std::min(names.size(), kMostNamed);
  for (size_t i = 0; i < named; ++i) {
    const bool is_last = i + 1 == names.size();
    text += fmt::format("{}{}", i == 0 ? "" : is_last ? " and " : ", ", names[i]);
  }
  if (named == names.size()) return text;
  text += fmt::format(" and {} more", names.size() - named);
  if (!all_in.empty()) text += fmt::format(": {}", all_in);
  return text;
}

}  // namespace rehearse
