#include "sim/base/known_names.h"

#include <gtest/gtest.h>

namespace rehearse {
namespace known_names_test {

TEST(KnownNamesTest, TheNearestComesFirst) {
  const std::vector<std::string> names = {"text", "json", "csv"};
  EXPECT_EQ(KnownNames("jsn", names), "; did you mean \"json\"? Known are text, json and csv");
  EXPECT_EQ(KnownNames("picture", names), "; known are text, json and csv");
  EXPECT_EQ(KnownNames("x", {"text"}), "; known is text");
  EXPECT_EQ(KnownNames("tex", {"text"}), "; did you mean \"text\"?");
  EXPECT_EQ(KnownNames("x", {}), "");
}

TEST(KnownNamesTest, OfManySomeAreNamed) {
  std::vector<std::string> names;
  for (int i = 10; i < 59; ++i) names.push_back("cluster-" + std::to_string(i));
  // Twelve of 49.
  EXPECT_EQ(KnownNames("x", names, "rehearse list clusters"),
            "; known are cluster-10, cluster-11, cluster-12, cluster-13, cluster-14, cluster-15, "
            "cluster-16, cluster-17, cluster-18, cluster-19, cluster-20, cluster-21 and 37 more: "
            "rehearse list clusters");
  EXPECT_EQ(KnownNames("cluste-20", names, "rehearse list clusters"),
            "; did you mean \"cluster-20\"? All 49: rehearse list clusters");
}

}  // namespace known_names_test
}  // namespace rehearse
