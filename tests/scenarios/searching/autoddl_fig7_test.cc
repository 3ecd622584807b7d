// AutoDDL's Fig. 7 (arXiv 2301.06813, section 4.5.3): where VGG13's three dense layers go on 32
// GPUs. scenarios/studies/autoddl-fig4.md
#include <gtest/gtest.h>

#include "scenarios/playing/rehearsal.h"
#include "scenarios/searching/search.h"
#include "tests/support/places.h"

namespace rehearse {
namespace autoddl_fig7_test {

JsonDocument Scenario7() {
  return JsonDocument::FromFile(SourceDir() + "/scenarios/search-autoddl-fig7.json");
}

// "Notice that the weight matrices are not replicated": p0 is 1 in all three of the best ten.
TEST(AutoddlFig7Test, TheFormulasBestReplicateNoWeight) {
  JsonDocument document = Scenario7();
  document.Set("search.decide=formula");
  const Search search = ReadSearch(document);
  const FoundPoints found = RunSearch(search, {.threads = 1});
  ASSERT_EQ(found.points.size(), 21u * 21 * 21);
  EXPECT_EQ(search.space.NameOf(found.points.front().point), "fc 1 1 4 8, fc 2 1 8 4, fc 3 1 4 8");
  for (size_t i = 0; i < 10; ++i)
    for (const auto& [path, placement] : search.space.ChangesOf(found.points[i].point))
      EXPECT_EQ(placement[0].get<int>(), 1) << search.space.NameOf(found.points[i].point);
}

// 1,000 columns split evenly over 8 ranks, so the last layer has 4 copies. The placement is what
// the scenario itself plays, in less than half of data parallelism's time.
TEST(AutoddlFig7Test, TheBestThatCanBePlannedHasFourCopiesOfTheLast) {
  const Search search = ReadSearch(Scenario7());
  const FoundPoints found = RunSearch(search, {.threads = 2});
  EXPECT_EQ(search.space.NameOf(found.points.front().point), "fc 1 1 4 8, fc 2 1 8 4, fc 3 4 1 8");
  const double best = found.points.front().simulated->step.value();
  EXPECT_EQ(Rehearse(ReadScenario(Scenario7())).result.step.value(), best);
  JsonDocument data_parallel = Scenario7();
  data_parallel.Set(R"(strategy.products={"default": [32, 1, 1]})");
  EXPECT_NEAR(Rehearse(ReadScenario(data_parallel)).result.step.value() / best, 2.34, 0.02);
}

}  // namespace autoddl_fig7_test
}  // namespace rehearse
