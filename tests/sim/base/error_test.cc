#include "sim/base/error.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/visible_text.h"

namespace rehearse {
namespace error_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(ErrorTest, SaysWhereTheMistakeLies) {
  EXPECT_STREQ(Error({"a.json", 12, "/cluster/nodes"}, "found 0").what(),
               "a.json:12: /cluster/nodes: found 0");
}

TEST(ErrorTest, LeavesOutWhatIsNotKnown) {
  EXPECT_STREQ(Error({"a.json", 0, "/x"}, "found 0").what(), "a.json: /x: found 0");
  EXPECT_STREQ(Error({"a.json", 3, ""}, "found 0").what(), "a.json:3: found 0");
  EXPECT_STREQ(Error({"", 0, "/x"}, "found 0").what(), "/x: found 0");
  EXPECT_STREQ(Error("found 0").what(), "found 0");
}

// A message may quote what others wrote, which may be a file.
TEST(ErrorTest, LeavesOutTheMiddleOfWhatIsLong) {
  const std::string message =
      Error("found \"" + std::string(1'000'000, 'x') + "\", expected y").what();
  EXPECT_LT(message.size(), 2000u);
  EXPECT_THAT(message,
              AllOf(testing::StartsWith("found \"xxx"), testing::EndsWith("xxx\", expected y"),
                    HasSubstr("x ... (998120 bytes left out) ... x")));
  // As much as may be is shown as it is.
  EXPECT_EQ(Error(std::string(2000, 'x')).what(), std::string(2000, 'x'));
  EXPECT_THAT(Error(std::string(2001, 'x')).what(), HasSubstr("x ... (101 bytes left out) ... x"));
  // Never in the middle of a character: 3,000 times two bytes after one or two others.
  for (const char* begin : {"a", "ab"}) {
    std::string text = begin;
    for (int i = 0; i < 3000; ++i) text += "\u00e9";
    const std::string shown = Error(text).what();
    EXPECT_EQ(VisibleText(shown), shown);
  }
}

TEST(CheckTest, PrintsBothValues) {
  const int links = 3;
  EXPECT_THAT([&] { CHECK_EQ(links, 4); },
              ThrowsMessage<InternalError>(AllOf(
                  HasSubstr("error_test.cc"), HasSubstr("links == 4"), HasSubstr("3 against 4"))));
}

TEST(CheckTest, PrintsTheCondition) {
  EXPECT_THAT([] { CHECK(1 + 1 == 3); },
              ThrowsMessage<InternalError>(HasSubstr("check failed: 1 + 1 == 3")));
}

TEST(CheckTest, PassesQuietlyWhenTrue) {
  int evaluated = 0;
  CHECK(true);
  CHECK_EQ(++evaluated, 1);
  CHECK_NE(1, 2);
  CHECK_LT(1, 2);
  CHECK_LE(2, 2);
  CHECK_GT(2, 1);
  CHECK_GE(2, 2);
  EXPECT_EQ(evaluated, 1);  // each operand once
}

TEST(DidYouMeanTest, FindsTheNearest) {
  const std::vector<std::string> keys = {"name", "nodes", "preset"};
  EXPECT_EQ(DidYouMean("nodez", keys), "; did you mean \"nodes\"?");
  EXPECT_EQ(DidYouMean("prest", keys), "; did you mean \"preset\"?");
}

TEST(DidYouMeanTest, IsSilentWhenNothingIsNear) {
  const std::vector<std::string> keys = {"name", "nodes", "preset"};
  EXPECT_EQ(DidYouMean("bandwidth", keys), "");
  EXPECT_EQ(DidYouMean("node", std::vector<std::string>{}), "");
}

TEST(DidYouMeanTest, AllowsOneEditForEveryThreeLetters) {
  // 9 letters: up to 3 edits; here exactly 3 and exactly 4.
  EXPECT_EQ(DidYouMean("abcdefghi", std::vector<std::string>{"abcdefxyz"}),
            "; did you mean \"abcdefxyz\"?");
  EXPECT_EQ(DidYouMean("abcdefghi", std::vector<std::string>{"abcdewxyz"}), "");
}

TEST(DidYouMeanTest, OneEditIsAlwaysAllowed) {
  EXPECT_EQ(DidYouMean("k", std::vector<std::string>{"K"}), "; did you mean \"K\"?");
}

TEST(DidYouMeanTest, TheFirstOfEquallyNearWins) {
  EXPECT_EQ(DidYouMean("cat", std::vector<std::string>{"bat", "rat"}), "; did you mean \"bat\"?");
}

TEST(EditDistanceTest, CountsEdits) {
  EXPECT_EQ(internal::EditDistance("", ""), 0);
  EXPECT_EQ(internal::EditDistance("", "abc"), 3);
  EXPECT_EQ(internal::EditDistance("abc", ""), 3);
  EXPECT_EQ(internal::EditDistance("kitten", "sitting"), 3);  // k->s, e->i, +g
  EXPECT_EQ(internal::EditDistance("rnig", "ring"), 1);       // swapped neighbours
}

}  // namespace error_test
}  // namespace rehearse
