#include "sim/report/data_table.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <rapidcheck/gtest.h>

#include "sim/base/error.h"

namespace rehearse {
namespace data_table_test {

using Json = nlohmann::ordered_json;

DataTable Example() {
  DataTable table({{"name", CellKind::kText},
                   {"seconds", CellKind::kNumber},
                   {"ranks", CellKind::kInteger},
                   {"held", CellKind::kTruth}});
  table.Add({"plain", 0.1, 8, true});
  table.Add({"a \"b\", c", 1e-7, std::optional<uint32_t>(), false});
  return table;
}

TEST(DataTableTest, CsvQuotesWhatHasToBeAndLeavesNothingEmpty) {
  EXPECT_EQ(ToCsv(Example()),
            "name,seconds,ranks,held\n"
            "plain,0.1,8,true\n"
            "\"a \"\"b\"\", c\",1e-07,,false\n");
}

TEST(DataTableTest, JsonLinesHaveTheSameKeysAndNull) {
  EXPECT_EQ(ToJsonLines(Example()),
            "{\"name\": \"plain\", \"seconds\": 0.1, \"ranks\": 8, \"held\": true}\n"
            "{\"name\": \"a \\\"b\\\", c\", \"seconds\": 1e-07, \"ranks\": null, "
            "\"held\": false}\n");
  EXPECT_EQ(ToJson(Example())[1]["seconds"], 1e-7);
}

// What a terminal would obey is escaped; a JSON reader gets the original text.
TEST(DataTableTest, NoSpreadsheetRunsTextOfACsv) {
  DataTable table({{"name", CellKind::kText}, {"value", CellKind::kNumber}});
  for (const char* name : {"=cmd|' /C calc'!A0", "@SUM(1)", "+1", "-1", "a=b"})
    table.Add({name, -1.0});
  EXPECT_EQ(ToCsv(table),
            "name,value\n'=cmd|' /C calc'!A0,-1\n'@SUM(1),-1\n'+1,-1\n'-1,-1\na=b,-1\n");
}

TEST(DataTableTest, TextIsVisibleInCsvAndItselfInJson) {
  const std::string text = "red\x1b[31m\nnext";
  DataTable table({{"name"}});
  table.Add({text});
  EXPECT_EQ(ToCsv(table), "name\nred\\x1b[31m\\nnext\n");
  EXPECT_EQ(Json::parse(ToJsonLines(table))["name"], text);
}

TEST(DataTableTest, WordsCannotStandAmongNumbers) {
  DataTable table({{"seconds", CellKind::kNumber}});
  EXPECT_THROW(table.Add({"impossible"}), InternalError);
  EXPECT_THROW(table.Add({1.5, 2.5}), InternalError);
  table.Add({std::numeric_limits<double>::infinity()});
  table.Add({7});
  EXPECT_EQ(ToCsv(table), "seconds\n\n7\n");
}

TEST(DataTableTest, NamesAreKeys) {
  const DataTable table({{"point"}, {"seconds"}, {"seconds"}, {"seconds_2"}});
  EXPECT_EQ(ToCsv(table), "point,seconds,seconds_2,seconds_2_2\n");
}

RC_GTEST_PROP(DataTableProperty, NumbersAreReadBackToTheBit, ()) {
  const auto bits = *rc::gen::arbitrary<uint64_t>();
  double value = 0;
  static_assert(sizeof value == sizeof bits);
  std::memcpy(&value, &bits, sizeof value);
  RC_PRE(std::isfinite(value));
  DataTable table({{"x", CellKind::kNumber}});
  table.Add({value});
  const std::string csv = ToCsv(table);
  RC_ASSERT(std::strtod(csv.c_str() + 2, nullptr) == value);
  RC_ASSERT(Json::parse(ToJsonLines(table))["x"].get<double>() == value);
}

TEST(DataTableTest, AnObjectBecomesARowOfItsLeaves) {
  const DataTable table =
      FlatTable({Json::parse(R"({"a": {"b": 1, "c": "x"}, "d": [1, 2], "e": 2})"),
                 Json::parse(R"({"a": {"b": 1.5, "c": 7}, "f": true})")});
  EXPECT_EQ(ToCsv(table),
            "a.b,a.c,e,f\n"
            "1,x,2,\n"
            "1.5,7,,true\n");
  EXPECT_EQ(Json::parse(ToJsonLines(table).substr(0, ToJsonLines(table).find('\n')))["a.c"], "x");
}

}  // namespace data_table_test
}  // namespace rehearse
