#include "scenarios/diagnosing/words.h"

#include <fmt/format.h>

namespace rehearse {

std::string ChanceWords(double chance) {
  if (chance < 1e-4) return "fewer than 1 in 10,000";
  if (chance > 0.5) return "more than half of all";
  return fmt::format("1 in {:.0f}", 1 / chance);
}

std::string ProbabilityWords(double probability) {
  if (probability > 0.99) return "> 99 %";
  if (probability < 0.01) return "< 1 %";
  return fmt::format("{:.0f} %", 100 * probability);
}

std::string UnexplainedWords(double nothing_wrong, double something_else) {
  return fmt::format(
      "That nothing is wrong: {}; that it is something not known here, or several things at once: "
      "{}.\n{}",
      ProbabilityWords(nothing_wrong), ProbabilityWords(something_else),
      something_else > 0.5 ? "So none of the causes below explains it well.\n" : "");
}

std::string SummaryWords(const std::string& summary, const std::string& strength, const char* of,
                         const std::string& low, const std::string& high) {
  if (strength.empty()) return summary;
  return fmt::format("{} ({}{}{}{})", summary, strength, of[0] == '\0' ? "" : " ", of,
                     low == high ? "" : fmt::format("; {} to {} fit about as well", low, high));
}

std::string PairWords(const std::string& first, const std::string& second) {
  return fmt::format("two at once: {}, and {}", first, second);
}

}  // namespace rehearse
