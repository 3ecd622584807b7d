// A search that prunes finds what a search of everything finds, on small spaces.
#include <algorithm>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "scenarios/searching/search.h"
#include "sim/base/error.h"
#include "sim/base/json_document.h"
#include "tests/invariants/cases.h"
#include "tests/support/random_scenario.h"

namespace rehearse {
namespace searches_test {

using Json = nlohmann::json;

// The best point's step and how many were simulated; nothing if the space is empty or a strategy
// has no axes of its own.
std::optional<std::pair<double, size_t>> BestOf(Json scenario, const char* decide, double keep) {
  scenario["search"] = {{"decide", decide}, {"method", "exhaustive"}};
  if (keep > 0) scenario["search"].update({{"keep", keep}, {"keep_at_least", 3}});
  try {
    const Search search = ReadSearch(JsonDocument::FromText(scenario.dump(), "random.json"));
    const FoundPoints found = RunSearch(search, {.threads = 2, .allow_out_of_memory = true});
    return std::pair(found.points.front().simulated->values.front(), found.simulated);
  } catch (const Error&) {
    return std::nullopt;
  }
}

// If several points are equally good it need not be the same one, but it must take the same time.
// The formula may mislead, since it sees nothing of contention and overlap: such cases are counted
// and bounded.
TEST(SearchInvariantsTest, APrunedSearchFindsTheBestOfAll) {
  const Cases cases = CasesOf(20);
  uint64_t compared = 0;
  uint64_t missed = 0;
  double worst = 0;
  for (uint64_t seed = cases.first; seed < cases.end; ++seed) {
    const std::string text = DrawScenario(seed, {.jobs = false}).text;
    SCOPED_TRACE(text);
    const auto all = BestOf(Json::parse(text), "simulation", 0);
    if (!all || all->second > 80) continue;
    const auto pruned = BestOf(Json::parse(text), "both", 0.25);
    ASSERT_TRUE(pruned.has_value());
    ASSERT_GE(pruned->first, all->first);
    ++compared;
    const double loss = pruned->first / all->first - 1;
    if (loss > 1e-12) ++missed;
    worst = std::max(worst, loss);
  }
  std::fputs(
      ("pruned searches: " + std::to_string(compared) + " compared, " + std::to_string(missed) +
       " missed the best, by " + std::to_string(100 * worst) + " % at most\n")
          .c_str(),
      stdout);
  EXPECT_GT(compared, 0u);
  EXPECT_LE(worst, 0.05);
}

}  // namespace searches_test
}  // namespace rehearse
