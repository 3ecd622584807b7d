#include "sim/base/visible_text.h"

#include <gtest/gtest.h>

#include "sim/base/error.h"

namespace rehearse {
namespace visible_text_test {

TEST(VisibleTextTest, WhatCanBeReadStays) {
  for (const char* text : {"", "gpu0 -> nic\\1 \"a\"", "Größe µs → 東京 🚀", "\xef\xbf\xbd"})
    EXPECT_EQ(VisibleText(text), text);
}

TEST(VisibleTextTest, WhatATerminalObeysIsWrittenOut) {
  EXPECT_EQ(VisibleText("a\x1b[31mb\x7f"), "a\\x1b[31mb\\x7f");
  EXPECT_EQ(VisibleText("a\nb\tc\rd"), "a\\nb\\tc\\rd");
  EXPECT_EQ(VisibleText(std::string_view("\0", 1)), "\\x00");
  EXPECT_EQ(VisibleText("\xc2\x9f\xc2\xa0"), "\\u009f\xc2\xa0");  // the last one, and a wide blank
  EXPECT_EQ(VisibleText("\xc2\x9b"
                        "31m"),
            "\\u009b31m");  // CSI in one character
  EXPECT_EQ(VisibleText("a\xe2\x80\xae"
                        "b"),
            "a\\u202eb");  // from right to left
  EXPECT_EQ(VisibleText("a\xe2\x80\xa8"
                        "b"),
            "a\\u2028b");                             // a line's end
  EXPECT_EQ(VisibleText("\xef\xbf\xbf"), "\\uffff");  // not legal in XML
}

TEST(VisibleTextTest, BytesThatAreNoUtf8AreWrittenOut) {
  EXPECT_EQ(VisibleText("a\xff"
                        "b"),
            "a\\xffb");
  EXPECT_EQ(VisibleText("\xc3"), "\\xc3");  // cut off
  EXPECT_EQ(VisibleText("\xe2\x82"), "\\xe2\\x82");
  EXPECT_EQ(VisibleText("\xc0\xaf"), "\\xc0\\xaf");  // longer than needed
  EXPECT_EQ(VisibleText("\xe0\x80\x80"), "\\xe0\\x80\\x80");
  EXPECT_EQ(VisibleText("\xed\xa0\x80"), "\\xed\\xa0\\x80");           // half of a pair
  EXPECT_EQ(VisibleText("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");  // beyond U+10FFFF
  EXPECT_EQ(VisibleText("\xc3\xa4\x80"), "\xc3\xa4\\x80");             // one too many
}

TEST(VisibleTextTest, AgainChangesNothing) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  const std::string once = VisibleText(all);
  EXPECT_EQ(VisibleText(once), once);
  for (const char c : once) EXPECT_TRUE(c >= ' ' && c <= '~');
}

TEST(VisibleTextTest, ErrorsKeepTheirLinesAndNothingElse) {
  const Error error({"x\xff.json", 3, "/na\x1bme"}, "found \x1b[2J\ntry another");
  EXPECT_STREQ(error.what(), "x\\xff.json:3: /na\\x1bme: found \\x1b[2J\ntry another");
  EXPECT_STREQ(Error("a\x1b").what(), "a\\x1b");
}

}  // namespace visible_text_test
}  // namespace rehearse
