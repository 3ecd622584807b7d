// AutoDDL's Fig. 4 (arXiv 2301.06813, section 3.3): its formula puts eight layouts of a transformer
// in the order of their communication, on two machines. scenarios/studies/autoddl-fig4.md
#include <gtest/gtest.h>

#include "scenarios/searching/search.h"
#include "scenarios/searching/search_quality.h"
#include "tests/support/places.h"

namespace rehearse {
namespace autoddl_fig4_test {

struct Layouts {
  SearchQuality quality;
  double most_below = 0;  // of the formula, from the simulation
  double most_above = 0;
};

Layouts LayoutsOf(const std::string& machine) {
  const Search search = ReadSearch(
      JsonDocument::FromFile(SourceDir() + "/scenarios/search-autoddl-fig4-" + machine + ".json"));
  const FoundPoints found = RunSearch(search, {.threads = 2});
  EXPECT_EQ(found.simulated, 8u);
  EXPECT_EQ(search.space.NameOf(found.points.front().point), "data parallel");
  Layouts layouts;
  layouts.quality = ComputeQuality(search, found);
  for (const FoundPoint& point : found.points) {
    const double off = *point.formula / point.simulated->values.front() - 1;
    layouts.most_below = std::min(layouts.most_below, off);
    layouts.most_above = std::max(layouts.most_above, off);
  }
  return layouts;
}

// "The performance model is accurate enough to capture the ordering": all 28 pairs. Each rank has a
// NIC of its own.
TEST(AutoddlFig4Test, OnPizDaintTheFormulaHasTheOrder) {
  const Layouts layouts = LayoutsOf("piz-daint");
  EXPECT_EQ(layouts.quality.kendall_tau, 1);
  EXPECT_GT(layouts.most_below, -0.1);
  EXPECT_LT(layouts.most_above, 0.01);
}

// 25 pairs right and 3 wrong: (25 - 3) / 28. Eight pairs of GPUs share a NIC, and the formula has
// them ten times too fast.
TEST(AutoddlFig4Test, OnA100sItDoesNotSeeThatGroupsShareANic) {
  const Layouts layouts = LayoutsOf("a100");
  EXPECT_NEAR(layouts.quality.kendall_tau, 22.0 / 28, 1e-12);
  EXPECT_NEAR(layouts.most_below, -0.9, 0.02);
  EXPECT_LT(layouts.most_above, 0.05);
}

}  // namespace autoddl_fig4_test
}  // namespace rehearse
