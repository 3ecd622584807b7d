#include "tools/foreign/machines/infragraph/infragraph_words.h"

#include <algorithm>

#include <fmt/format.h>

namespace rehearse {
namespace {

constexpr std::string_view kOurs = "rehearse:";

}  // namespace

InfraWords::InfraWords(std::string_view description) {
  if (!description.starts_with(kOurs)) return;
  std::string_view rest = description.substr(kOurs.size());
  while (!rest.empty()) {
    const std::string_view word = rest.substr(0, rest.find(' '));
    const size_t equals = word.find('=');
    if (!word.empty())
      words_[std::string(word.substr(0, equals))] =
          equals < word.size() ? word.substr(equals + 1) : std::string_view();
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
  }
}

std::string InfraWords::Text() const {
  if (words_.empty()) return "";
  std::string text(kOurs);
  for (const auto& [key, value] : words_) text += fmt::format(" {}={}", key, value);
  return text;
}

std::string InfraWords::At(std::string_view key) const {
  const auto word = words_.find(key);
  return word == words_.end() ? std::string() : word->second;
}

}  // namespace rehearse
