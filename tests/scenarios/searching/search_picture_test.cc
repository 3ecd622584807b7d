#include "scenarios/searching/search_picture.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/error.h"
#include "tests/support/places.h"

namespace rehearse {
namespace search_picture_test {

using ::testing::HasSubstr;
using ::testing::Not;

Search Shipped(const std::string& change) {
  JsonDocument document =
      JsonDocument::FromFile(SourceDir() + "/scenarios/search-gpt40b-perlmutter.json");
  document.Set("search.keep_at_least=6");
  document.Set("search.keep=0.01");
  document.Set(change);
  return ReadSearch(document);
}

size_t Count(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// A dot for each simulated point; five efficient ones, of which the legend has one more, and five
// with rings.
TEST(SearchPictureTest, DrawsSimulationsBesideTheFormula) {
  const Search search = Shipped("search.seed=1");
  const FoundPoints found = RunSearch(search, {});
  const std::string picture = SearchSvg(search, found);
  EXPECT_EQ(Count(picture, "<title>"), found.simulated);
  EXPECT_EQ(Count(picture, "fill=\"none\" stroke=\"#d1622b\""), 6u);
  EXPECT_GE(Count(picture, "fill=\"#2f6fb0\""), 6u);
  EXPECT_THAT(picture, HasSubstr("formula (axonn)"));
  EXPECT_THAT(picture, HasSubstr("simulated time, s"));
  EXPECT_THAT(picture, HasSubstr("<title>" + search.space.NameOf(found.points[0].point)));
}

TEST(SearchPictureTest, DrawsTwoObjectivesWithTheirFront) {
  const Search search = Shipped("search.objective=[\"time\",\"memory\"]");
  const FoundPoints found = RunSearch(search, {});
  const std::string picture = SearchSvg(search, found);
  EXPECT_EQ(Count(picture, "<polyline"), 1u);
  EXPECT_THAT(picture, HasSubstr("memory, GiB"));
  EXPECT_THAT(picture, HasSubstr("Pareto front"));
  EXPECT_THAT(picture, Not(HasSubstr("first five")));
}

TEST(SearchPictureTest, NeedsBothNumbers) {
  const Search search = Shipped("search.decide=\"formula\"");
  EXPECT_THROW(SearchSvg(search, RunSearch(search, {})), Error);
}

}  // namespace search_picture_test
}  // namespace rehearse
