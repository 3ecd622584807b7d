#include "sim/report/kernel_name.h"

#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace rehearse {

std::string ShortKernelName(const std::string& name) {
  std::string text = name;
  for (const std::string_view noise : {"(anonymous namespace)::", "void "}) {
    for (size_t at = text.find(noise); at != std::string::npos; at = text.find(noise, at))
      text.erase(at, noise.size());
  }
  // In C++ the arguments of templates and of functions follow their name without a space.
  std::string result;
  int depth = 0;
  for (const char c : text) {
    const bool follows = !result.empty() && result.back() != ' ';
    if (c == '(' && depth == 0 && follows) break;
    if (c == '<' && (depth > 0 || follows)) ++depth;
    if (depth == 0) result += c;
    if (c == '>' && depth > 0) --depth;
  }
  while (!result.empty() && result.back() == ' ') result.pop_back();
  return depth != 0 || result.empty() ? name : result;
}

const std::string& ShortNames::Of(const std::string& name) {
  const auto [at, is_new] = short_by_name_.try_emplace(name);
  if (!is_new) return at->second;
  const std::string plain = ShortKernelName(name);
  std::string own = plain;
  for (int number = 2; !taken_.insert(own).second; ++number)
    own = fmt::format("{} #{}", plain, number);
  at->second = std::move(own);
  return at->second;
}

}  // namespace rehearse
