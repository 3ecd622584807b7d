#include "sim/base/csv_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/error.h"

namespace rehearse {
namespace csv_file_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string MistakeIn(const std::string& text) {
  try {
    ParseCsvFile(text, "t.csv");
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

TEST(CsvFileTest, QuotesHoldCommasLineBreaksAndDoubledQuotes) {
  const CsvFile file =
      ParseCsvFile("# a comment\n\na, b\r\n\"1,\n2\",\"say \"\"x\"\"\"\n3 ,\n", "t.csv");
  EXPECT_EQ(file.line, 3);
  EXPECT_THAT(file.columns, ElementsAre("a", "b"));
  ASSERT_EQ(file.rows.size(), 2u);
  EXPECT_THAT(file.rows[0].cells, ElementsAre("1,\n2", "say \"x\""));
  EXPECT_EQ(file.rows[0].line, 4);
  // The quoted line break counts: the next row is in line 6.
  EXPECT_THAT(file.rows[1].cells, ElementsAre("3", ""));
  EXPECT_EQ(file.rows[1].line, 6);
}

TEST(CsvFileTest, MistakesNameFileAndLine) {
  EXPECT_THAT(MistakeIn("a,b\n1,2\n1\n"), HasSubstr("t.csv:3: found 1 cells, expected 2"));
  EXPECT_THAT(MistakeIn("a,a\n"), HasSubstr("t.csv:1: two columns are called \"a\""));
  EXPECT_THAT(MistakeIn("a,\n"), HasSubstr("t.csv:1: column 2 has no name"));
  EXPECT_THAT(MistakeIn("a\n\"1\n2\n"), HasSubstr("t.csv:2: found a quote that is never closed"));
  EXPECT_THAT(MistakeIn("a\n\"1\"2\n"), HasSubstr("t.csv:2: found text after a closing quote"));
  EXPECT_THAT(MistakeIn("# nothing\n"), HasSubstr("t.csv: found no line of column names"));
}

// A file that a scenario names by mistake may hold secrets.
TEST(CsvFileTest, WhatIsNoTableIsNotShown) {
  EXPECT_EQ(MistakeIn(std::string("SECRET=1\0", 9)),
            "t.csv:1: found the byte 0x00, expected a CSV file: this is not text");
  EXPECT_EQ(MistakeIn("a\n\x1b[1m"),
            "t.csv:2: found the byte 0x1b, expected a CSV file: this is not text");
  EXPECT_EQ(MistakeIn("a,b\n1,2\n1,\xe9\n"),
            "t.csv:3: found bytes that are not UTF-8, expected a text in UTF-8");
  EXPECT_EQ(MistakeIn("a,password: x\n"),
            "t.csv:1: column 2 has a name with ':', expected letters, digits, '.', '_' and '-'");
  EXPECT_EQ(MistakeIn("a," + std::string(100, 'x')), "none");
  EXPECT_EQ(MistakeIn("a," + std::string(101, 'x')),
            "t.csv:1: column 2 has a name of 101 bytes, expected at most 100");
}

}  // namespace csv_file_test
}  // namespace rehearse
