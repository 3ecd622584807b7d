#include "sim/base/json_reader.h"

#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <rapidcheck/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "sim/base/input_record.h"
#include "sim/base/json_document.h"

namespace rehearse {
namespace json_reader_test {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using ::testing::StrEq;
using ::testing::ThrowsMessage;

JsonDocument Parse(std::string_view text) { return JsonDocument::FromText(text, "a.json"); }

// The message with which a text is refused.
std::string Refusal(std::string_view text) {
  try {
    Parse(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "was read";
}

std::string Brackets(size_t count) {
  std::string text;
  text.resize(count, '[');
  return text;
}

constexpr const char* kScenario = R"({
  // A comment.
  "name": "two nodes",
  "cluster": {
    "preset": "perlmutter", /* and
    another */ "nodes": 4,
    "links": [
      {"bandwidth": "25GBps"},
      {"bandwidth": "50GBps", "latency": "1.5us"}
    ]
  },
  "a/b": {"~c": 1}
})";

// ---- Lines and pointers -------------------------------------------------------------------------

TEST(JsonReaderTest, KnowsFileLineAndPointerOfEveryValue) {
  const JsonDocument document = Parse(kScenario);
  const JsonReader root = document.Root();
  const auto expect = [](const JsonReader& reader, int line, const std::string& pointer) {
    EXPECT_EQ(reader.place().file, "a.json");
    EXPECT_EQ(reader.place().line, line);
    EXPECT_EQ(reader.place().pointer, pointer);
  };
  expect(root, 1, "");
  expect(root.At("name"), 3, "/name");
  expect(root.At("cluster"), 4, "/cluster");
  expect(root.At("cluster").At("preset"), 5, "/cluster/preset");
  expect(root.At("cluster").At("nodes"), 6, "/cluster/nodes");  // behind a comment of two lines
  const auto links = root.At("cluster").At("links").Elements();
  ASSERT_EQ(links.size(), 2u);
  expect(links[0], 8, "/cluster/links/0");
  expect(links[1], 9, "/cluster/links/1");
  expect(links[1].At("latency"), 9, "/cluster/links/1/latency");
}

TEST(JsonReaderTest, PointersEscapeSlashAndTilde) {
  const JsonDocument document = Parse(kScenario);
  EXPECT_EQ(document.Root().At("a/b").At("~c").place().pointer, "/a~1b/~0c");
}

TEST(JsonReaderTest, ANumberBeforeTheEndOfItsLineHasItsOwnLine) {
  // The lexer must read the line's end to know that the number is over.
  const JsonDocument document = Parse("[1\n,2\n,\n3\n]");
  const auto elements = document.Root().Elements();
  EXPECT_EQ(elements[0].place().line, 1);
  EXPECT_EQ(elements[1].place().line, 2);
  EXPECT_EQ(elements[2].place().line, 4);
  EXPECT_EQ(Parse("\n\n7").Root().place().line, 3);
}

TEST(JsonReaderTest, AWindowsLineEndCountsOnce) {
  EXPECT_EQ(Parse("{\r\n\"a\":\r\n1\r\n}").Root().At("a").place().line, 3);
}

TEST(JsonReaderTest, TheValueIsWhatNlohmannReads) {
  EXPECT_EQ(Parse(kScenario).value(), nlohmann::json::parse(kScenario, nullptr, true, true));
}

// ---- Objects, arrays and typed values -----------------------------------------------------------

TEST(JsonReaderTest, UnknownKeySuggestsTheNearest) {
  const JsonDocument document = Parse("{\n\"cluster\": {\n\"nodez\": 4}}");
  EXPECT_THAT(
      [&] {
        document.Root().At("cluster").AllowKeys({"preset", "nodes"});
      },
      ThrowsMessage<Error>(
          StrEq("a.json:3: /cluster: unknown key \"nodez\"; did you mean \"nodes\"?")));
}

TEST(JsonReaderTest, UnknownKeyFarFromAllListsTheAllowed) {
  const JsonDocument document = Parse("{\"bandwidth\": 4}");
  EXPECT_THAT(
      [&] {
        document.Root().AllowKeys({"name", "preset", "nodes"});
      },
      ThrowsMessage<Error>(StrEq(
          "a.json:1: unknown key \"bandwidth\"; allowed are \"name\", \"preset\" and \"nodes\"")));
  EXPECT_THAT([&] { document.Root().AllowKeys({}); },
              ThrowsMessage<Error>(EndsWith("no key is allowed here")));
}

TEST(JsonReaderTest, AllowedKeysPass) {
  EXPECT_NO_THROW(Parse("{\"a\": 1, \"b\": 2}").Root().AllowKeys({"c", "b", "a"}));
}

TEST(JsonReaderTest, AMissingKeyIsNamed) {
  const JsonDocument document = Parse("{\"cluster\":\n{\"nodes\": 4}}");
  EXPECT_THAT([&] { document.Root().At("cluster").At("preset"); },
              ThrowsMessage<Error>(StrEq("a.json:2: /cluster: missing key \"preset\"")));
  EXPECT_FALSE(document.Root().Has("preset"));
  EXPECT_TRUE(document.Root().Has("cluster"));
}

TEST(JsonReaderTest, AnythingButAnObjectHasNoKeys) {
  const JsonDocument document = Parse("[1]");
  const auto refuses = ThrowsMessage<Error>(StrEq("a.json:1: found [1], expected an object"));
  EXPECT_THAT([&] { document.Root().AllowKeys({}); }, refuses);
  EXPECT_THAT([&] { document.Root().At("x"); }, refuses);
  EXPECT_THAT([&] { document.Root().Has("x"); }, refuses);
  EXPECT_THAT([&] { document.Root().Members(); }, refuses);
}

TEST(JsonReaderTest, AnythingButAnArrayHasNoElements) {
  const JsonDocument document = Parse("{}");
  EXPECT_THAT([&] { document.Root().Elements(); },
              ThrowsMessage<Error>(StrEq("a.json:1: found {}, expected an array")));
}

TEST(JsonReaderTest, MembersAreSortedByKey) {
  const JsonDocument document = Parse("{\"b\": 2, \"a\": 1}");
  const auto members = document.Root().Members();
  ASSERT_EQ(members.size(), 2u);
  EXPECT_EQ(members[0].first, "a");
  EXPECT_EQ(members[0].second.Integer(0, 9), 1);
  EXPECT_EQ(members[1].second.place().pointer, "/b");
}

TEST(JsonReaderTest, ReadsStringsAndBooleans) {
  const JsonDocument document = Parse("{\"s\": \"x\", \"b\": true}");
  EXPECT_EQ(document.Root().At("s").String(), "x");
  EXPECT_TRUE(document.Root().At("b").Bool());
  EXPECT_THAT([&] { document.Root().At("b").String(); },
              ThrowsMessage<Error>(StrEq("a.json:1: /b: found true, expected a string")));
  EXPECT_THAT([&] { document.Root().At("s").Bool(); },
              ThrowsMessage<Error>(StrEq("a.json:1: /s: found \"x\", expected true or false")));
}

TEST(JsonReaderTest, AnIntegerIsAWholeNumberInItsRange) {
  const auto read = [](const char* text) { return Parse(text).Root().Integer(-5, 65536); };
  EXPECT_EQ(read("-5"), -5);
  EXPECT_EQ(read("65536"), 65536);
  EXPECT_EQ(read("12.0"), 12);
  EXPECT_EQ(read("1e3"), 1000);
  for (const char* text : {"-6", "65537", "1.5", "true", "null", "\"4\"", "1e300", "[1]", "{}",
                           "18446744073709551615", "99999999999999999999"})
    EXPECT_THROW(read(text), Error) << text;
}

TEST(JsonReaderTest, AnIntegerOutOfRangeSaysTheRange) {
  const JsonDocument document = Parse("\"four\"");
  EXPECT_THAT([&] { document.Root().Integer(1, 65536); },
              ThrowsMessage<Error>(
                  StrEq("a.json:1: found \"four\", expected a whole number from 1 to 65536")));
  constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();
  constexpr int64_t kHighest = std::numeric_limits<int64_t>::max();
  EXPECT_THAT([&] { document.Root().Integer(0, kHighest); },
              ThrowsMessage<Error>(EndsWith("expected a whole number of at least 0")));
  EXPECT_THAT([&] { document.Root().Integer(kLowest, 0); },
              ThrowsMessage<Error>(EndsWith("expected a whole number of at most 0")));
  EXPECT_THAT([&] { document.Root().Integer(kLowest, kHighest); },
              ThrowsMessage<Error>(EndsWith("expected a whole number")));
}

TEST(JsonReaderTest, TheLargestIntegersAreRead) {
  constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();
  constexpr int64_t kHighest = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(Parse("9223372036854775807").Root().Integer(kLowest, kHighest), kHighest);
  EXPECT_EQ(Parse("-9223372036854775808").Root().Integer(kLowest, kHighest), kLowest);
  EXPECT_THROW(Parse("9223372036854775808").Root().Integer(kLowest, kHighest), Error);
  EXPECT_THROW(Parse("9.3e18").Root().Integer(kLowest, kHighest), Error);
}

TEST(JsonReaderTest, ANumberLiesInItsRange) {
  const JsonDocument document = Parse("1.5");
  EXPECT_EQ(document.Root().Number(0, 1.5), 1.5);
  EXPECT_THAT([&] { document.Root().Number(0, 1); },
              ThrowsMessage<Error>(StrEq("a.json:1: found 1.5, expected a number from 0 to 1")));
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_THAT([&] { document.Root().Number(2, kInfinity); },
              ThrowsMessage<Error>(EndsWith("expected a number of at least 2")));
  EXPECT_EQ(Parse("3").Root().Number(-kInfinity, kInfinity), 3);
  EXPECT_THROW(Parse("\"3\"").Root().Number(0, 9), Error);
  EXPECT_THROW(Parse("true").Root().Number(0, 9), Error);
}

TEST(JsonReaderTest, ReadsQuantitiesWithUnits) {
  EXPECT_EQ(Parse("\"200Gbps\"").Root().Bandwidth(), BytesPerSecond(25e9));
  EXPECT_EQ(Parse("\"1.5us\"").Root().Duration(), Seconds(1.5e-6));
  EXPECT_EQ(Parse("\"1KiB\"").Root().Size(), Bytes(1024));
  EXPECT_EQ(Parse("\"312TFLOPS\"").Root().FlopRate(), FlopsPerSecond(312e12));
}

TEST(JsonReaderTest, AMissingUnitIsAnErrorAtItsPlace) {
  const JsonDocument document = Parse("{\"bandwidth\": \"25\", \"latency\":\n1.5}");
  EXPECT_THAT([&] { document.Root().At("bandwidth").Bandwidth(); },
              ThrowsMessage<Error>(StrEq("a.json:1: /bandwidth: found \"25\", expected a bandwidth "
                                         "with its unit such as \"25GBps\"")));
  EXPECT_THAT([&] { document.Root().At("latency").Duration(); },
              ThrowsMessage<Error>(StrEq("a.json:2: /latency: found 1.5, expected a time with its "
                                         "unit such as \"1.5us\"")));
  EXPECT_THROW(Parse("4096").Root().Size(), Error);
  EXPECT_THROW(Parse("312e12").Root().FlopRate(), Error);
}

TEST(JsonReaderTest, ANegativeBandwidthIsAnErrorAtItsPlace) {
  EXPECT_THAT([] { Parse("\"-25GBps\"").Root().Bandwidth(); },
              ThrowsMessage<Error>(AllOf(StartsWith("a.json:1: found \"-25GBps\""),
                                         HasSubstr("a bandwidth above zero"))));
}

TEST(JsonReaderTest, OfManyChoicesSomeAreNamed) {
  std::vector<std::string> names;
  for (char c = 'a'; c < 'a' + 20; ++c) names.push_back(std::string("model-") + c + c + c);
  EXPECT_THAT(
      [&] { Parse("\"modle-bbb\"").Root().Choice(names); },
      ThrowsMessage<Error>(StrEq("a.json:1: found \"modle-bbb\"; did you mean \"model-bbb\"?")));
  // Twelve of twenty.
  EXPECT_THAT([&] { Parse("\"x\"").Root().Choice(names); },
              ThrowsMessage<Error>(AllOf(HasSubstr("found \"x\"; known are model-aaa, "),
                                         EndsWith("model-lll and 8 more"))));
}

TEST(JsonReaderTest, AChoiceIsOneOfTheNames) {
  const std::vector<std::string> names = {"formula", "fluid", "step"};
  EXPECT_EQ(Parse("\"fluid\"").Root().Choice(names), 1u);
  EXPECT_THAT([&] { Parse("\"fliud\"").Root().Choice(names); },
              ThrowsMessage<Error>(StrEq("a.json:1: found \"fliud\"; did you mean \"fluid\"? "
                                         "Expected \"formula\", \"fluid\" or \"step\"")));
  EXPECT_THAT([&] { Parse("7").Root().Choice(names); },
              ThrowsMessage<Error>(
                  StrEq("a.json:1: found 7, expected \"formula\", \"fluid\" or \"step\"")));
}

TEST(JsonReaderTest, ALongValueIsShortenedInMessages) {
  const JsonDocument document = Parse("\"" + std::string(100'000, 'x') + "\"");
  EXPECT_THAT([&] { document.Root().Bool(); }, ThrowsMessage<Error>(testing::Property(
                                                   "size", &std::string::size, testing::Lt(200u))));
}

// ---- Texts that are refused ---------------------------------------------------------------------

TEST(JsonReaderTest, SyntaxErrorsSayWhatWasFoundAndExpected) {
  EXPECT_EQ(Refusal("{\n  \"a\" 1\n}"), "a.json:2: found \"1\", expected ':' after the key");
  EXPECT_EQ(Refusal("{\"a\": 1\n\"b\": 2}"), R"(a.json:2: found "\"b\"", expected ',' or '}')");
  EXPECT_EQ(Refusal("[1\n2]"), "a.json:2: found \"2\", expected ',' or ']'");
  EXPECT_EQ(Refusal("{\"x\": [1, }"), "a.json:1: /x: found \"}\", expected a value");
  EXPECT_EQ(Refusal("{\"a\": 1,\n}"), "a.json:2: found \"}\", expected a key in double quotes");
  EXPECT_EQ(Refusal("{a: 1}"), "a.json:1: found \"a\", expected a key in double quotes");
  EXPECT_EQ(Refusal("{'a': 1}"), "a.json:1: found \"'a'\", expected a key in double quotes");
  EXPECT_EQ(Refusal("{\"a\": four}"), "a.json:1: found \"four\", expected a value");
  EXPECT_EQ(Refusal("{\"a\": 25GBps}"), "a.json:1: found \"25GBps\", expected ',' or '}'");
  EXPECT_EQ(Refusal("[tru\n]"), "a.json:1: found \"tru\", expected a value");
  EXPECT_EQ(Refusal("{}\n{}"),
            "a.json:2: found \"{\", expected nothing after the end of the document");
  EXPECT_EQ(Refusal("[1, true false]"), "a.json:1: found \"false\", expected ',' or ']'");
  EXPECT_EQ(Refusal("[1}"), "a.json:1: found \"}\", expected ',' or ']'");
  EXPECT_EQ(Refusal("[1.]"), "a.json:1: found \"1.\", expected a number");
  EXPECT_EQ(Refusal("[/ 1]"),
            "a.json:1: found a single '/', expected a comment such as // or /* */");
}

TEST(JsonReaderTest, NoMessageShowsTheLibrary) {
  for (const char* text : {"", "[", "{\"a\"", "nul", "\"a", "[1 2]", "{} x", "\"\\q\"", "1e999",
                           "\xff", "/*", "\"", "\xef\xbb", "[\"\n\"]", "-", "1e+", "\"\\ud800\""}) {
    EXPECT_THAT(Refusal(text), AllOf(StartsWith("a.json:1: "), Not(HasSubstr("exception")),
                                     Not(HasSubstr("parsing"))))
        << text;
  }
}

TEST(JsonReaderTest, ATruncatedTextIsAnError) {
  EXPECT_EQ(Refusal("{\n\"cluster\": {\n\"nodes\": 4,\n"),
            "a.json:3: /cluster: the text ends inside an object that begins in line 2; it may be "
            "truncated");
  EXPECT_EQ(Refusal("[1,\n2"),
            "a.json:2: the text ends inside an array that begins in line 1; it may be truncated");
  EXPECT_EQ(Refusal("{\"name\": \"two no"),
            "a.json:1: the text ends inside a string in an object that begins in line 1; it may be "
            "truncated");
  EXPECT_EQ(Refusal("/* a"), "a.json:1: the text ends inside a comment; it may be truncated");
}

TEST(JsonReaderTest, EveryTruncationOfAScenarioIsAnError) {
  const std::string whole = kScenario;
  for (size_t length = 0; length < whole.size(); ++length)
    EXPECT_THROW(Parse(whole.substr(0, length)), Error) << length;
}

TEST(JsonReaderTest, AnEmptyTextIsAnError) {
  EXPECT_EQ(Refusal(""), "a.json:1: found no JSON, expected a value");
  EXPECT_EQ(Refusal("  \n // nothing\n"), "a.json:2: found no JSON, expected a value");
}

// A file that a scenario names by mistake may hold secrets. Once an object or array has begun, it
// is JSON with a mistake in it, and is shown.
TEST(JsonReaderTest, ATextThatIsNoJsonIsNotShown) {
  EXPECT_EQ(Refusal("SECRET=x"),
            "a.json:1: found not JSON but a text with a letter, expected a value");
  EXPECT_EQ(
      Refusal("\n127.0.0.1 host"),
      "a.json:2: found not JSON but a text with a digit, expected nothing after the end of the "
      "document");
  EXPECT_EQ(Refusal("<xml>"), "a.json:1: found not JSON but a text with '<', expected a value");
  EXPECT_EQ(Refusal("\x7f"
                    "ELF"),
            "a.json:1: found not JSON but a text with the byte 0x7f, expected a value");
  EXPECT_EQ(Refusal("\"user\" \"password\""),
            "a.json:1: found not JSON but a text with '\"', expected nothing after the end of the "
            "document");
  EXPECT_EQ(Refusal("[SECRET]"), "a.json:1: found \"SECRET\", expected a value");
}

TEST(JsonReaderTest, ADuplicateKeyIsAnError) {
  EXPECT_EQ(Refusal("{\"cluster\": {\n\"nodes\": 1,\n\"nodes\": 2}}"),
            "a.json:3: /cluster: key \"nodes\" appears twice, first in line 2");
  EXPECT_EQ(Refusal("{\"a\": {\"a\": 1}}"), "was read");  // the same key at another level
}

TEST(JsonReaderTest, NestingIsAtMost64Deep) {
  const auto nested = [](size_t depth) {
    return std::string(depth, '[') + "\n" + std::string(depth, ']');
  };
  EXPECT_EQ(Refusal(nested(64)), "was read");
  EXPECT_EQ(Refusal(nested(65)), "a.json:1: found more than 64 levels of nesting");
  EXPECT_EQ(Refusal(Brackets(10'000'000)), "a.json:1: found more than 64 levels of nesting");
}

TEST(JsonReaderTest, ATextOfTooManyValuesIsAnError) {
  std::string text = "[0";
  for (int i = 0; i < 4'000'000; ++i) text += ",0";
  EXPECT_EQ(Refusal(text), "a.json:1: found more than 4000000 values");
}

TEST(JsonReaderTest, AKeyThatIsTooLongIsAnError) {
  EXPECT_EQ(Refusal("{\"" + std::string(1000, 'k') + "\": 1}"), "was read");
  EXPECT_EQ(Refusal("{\"" + std::string(1001, 'k') + "\": 1}"),
            "a.json:1: found a key of 1001 bytes, expected at most 1000");
}

TEST(JsonReaderTest, LongKeysInsideEachOtherDoNotFillTheMemory) {
  // 60 keys of 1,000 bytes around 100,000 lines: their pointers would take 6 GB.
  std::string text;
  for (int depth = 0; depth < 60; ++depth) text += "{\"" + std::string(1000, 'k') + "\":";
  text += "[0";
  for (int i = 0; i < 100'000; ++i) text += "\n,0";
  EXPECT_THAT(Refusal(text), EndsWith("found too many long keys inside each other"));
}

TEST(JsonReaderTest, NumbersThatAreNoneAreErrors) {
  EXPECT_EQ(Refusal("[NaN]"), "a.json:1: found \"NaN\", expected a value");
  EXPECT_EQ(Refusal("{\"x\": Infinity}"), "a.json:1: found \"Infinity\", expected a value");
  EXPECT_EQ(Refusal("[-Infinity]"), "a.json:1: found \"-Infinity\", expected a number");
  EXPECT_EQ(Refusal("[+1]"), "a.json:1: found \"+1\", expected a value");
  EXPECT_EQ(Refusal("[\n1e999\n]"), "a.json:2: found 1e999, expected a number below 1.8e308");
}

TEST(JsonReaderTest, PythonsNumbersAreStringsWhereAFileMayBePythons) {
  const auto read = [](std::string_view text) {
    return JsonDocument::FromText(text, "a.json", {.numbers = JsonNumbers::kOfPython})
        .value()
        .dump();
  };
  EXPECT_EQ(read("[NaN, Infinity ,-Infinity]"), R"(["NaN","Infinity","-Infinity"])");
  EXPECT_EQ(read("{\"a\":Infinity}"), R"({"a":"Infinity"})");
  EXPECT_EQ(read("Infinity"), R"("Infinity")");
  // Strings and comments stand as they are.
  EXPECT_EQ(read(R"(["NaN", "a \" Infinity \\", -1, 2])"), R"(["NaN","a \" Infinity \\",-1,2])");
  EXPECT_EQ(read("[1, // \" NaN\n \"Infinity\" /* \" */]"), R"([1,"Infinity"])");
  for (const char* broken :
       {"[Inf]", "[Infinity", "[\"Infinity", "[NaNs]", "[1 /*", "[1 //", "\"\\"})
    EXPECT_THROW(read(broken), Error) << broken;
  EXPECT_THAT([&] { read("[1,\nInfinity\nNaN]"); },
              ThrowsMessage<Error>(AllOf(StartsWith("a.json:3: found "), HasSubstr("NaN"),
                                         EndsWith("expected ',' or ']'"))));
}

TEST(JsonReaderTest, InvalidUtf8IsAnError) {
  EXPECT_EQ(Refusal("{\n\"a\": \"\xc3(\"}"),
            "a.json:2: found bytes that are not UTF-8, expected a text in UTF-8");
  EXPECT_EQ(Refusal("[\xff]"), "a.json:1: found \"\xef\xbf\xbd\", expected a value");
  // UTF-16 begins with a byte order mark and has NUL bytes.
  EXPECT_THAT(Refusal(std::string_view("\xff\xfe{\0}\0", 6)), StartsWith("a.json:1: found"));
}

TEST(JsonReaderTest, Utf8AndItsByteOrderMarkAreRead) {
  EXPECT_EQ(Parse("\xef\xbb\xbf[\"\xc3\xa4\"]").Root().Elements()[0].String(), "\xc3\xa4");
}

TEST(JsonReaderTest, ANulByteIsNotTheEnd) {
  EXPECT_EQ(Refusal(std::string_view("{}\0 junk", 8)),
            "a.json:1: found a NUL byte, expected a text in JSON");
  EXPECT_EQ(Refusal(std::string_view("[\n\0", 3)),
            "a.json:2: found a NUL byte, expected a text in JSON");
}

TEST(JsonReaderTest, BadStringsAreErrors) {
  EXPECT_EQ(Refusal("[\"a\n\"]"),
            "a.json:1: found the end of the line inside a string, expected its closing quote");
  EXPECT_THAT(Refusal("[\"a\tb\"]"), HasSubstr("a control character inside a string"));
  EXPECT_THAT(Refusal(R"(["C:\data"])"), HasSubstr("an unknown escape inside a string"));
  EXPECT_THAT(Refusal(R"(["\u12"])"), HasSubstr("a bad \\u escape"));
  EXPECT_THAT(Refusal(R"(["\ud800"])"), HasSubstr("a bad \\u escape"));
}

RC_GTEST_PROP(JsonReaderTest, AnyTextIsReadOrRefused, ()) {
  // Made of JSON's own characters, so that the reader gets somewhere.
  const auto text = *rc::gen::container<std::string>(
      rc::gen::elementOf(std::string("{}[]:,\"\\ab01-.eE/*\n \0\xc3\xa4tfn", 26)));
  try {
    Parse(text);
  } catch (const Error&) {
  }
}

// ---- Files --------------------------------------------------------------------------------------

class JsonFileTest : public testing::Test {
 protected:
  JsonFileTest()
      : path_(testing::TempDir() + "json_file_test_" + std::to_string(getpid()) + "_" +
              testing::UnitTest::GetInstance()->current_test_info()->name()) {
    fs::remove_all(path_);
  }
  void TearDown() override { fs::remove_all(path_); }

  void Write(std::string_view text) const { std::ofstream(path_, std::ios::binary) << text; }
  std::string Refusal() const {
    try {
      JsonDocument::FromFile(path_);
    } catch (const Error& error) {
      return error.what();
    }
    return "was read";
  }

  std::string path_;
};

TEST_F(JsonFileTest, IsReadAndNamed) {
  Write(kScenario);
  const JsonDocument document = JsonDocument::FromFile(path_);
  EXPECT_EQ(document.name(), path_);
  EXPECT_EQ(document.Root().At("cluster").place().file, path_);
}

TEST_F(JsonFileTest, AMissingFileIsAnError) {
  EXPECT_EQ(Refusal(), path_ + ": cannot be read: No such file or directory");
}

TEST_F(JsonFileTest, ADirectoryIsAnError) {
  fs::create_directory(path_);
  EXPECT_EQ(Refusal(), path_ + ": found a directory, expected a JSON file");
}

TEST_F(JsonFileTest, AnEmptyFileIsAnError) {
  Write("");
  EXPECT_EQ(Refusal(), path_ + ":1: found no JSON, expected a value");
}

TEST_F(JsonFileTest, ATruncatedFileIsAnError) {
  Write(std::string_view(kScenario).substr(0, 80));
  EXPECT_THAT(Refusal(), AllOf(StartsWith(path_ + ":"), HasSubstr("it may be truncated")));
}

TEST_F(JsonFileTest, AFileThatMayNotBeReadIsAnError) {
  if (geteuid() == 0) GTEST_SKIP() << "root may read everything";
  Write("{}");
  fs::permissions(path_, fs::perms::none);
  EXPECT_EQ(Refusal(), path_ + ": cannot be read: Permission denied");
}

TEST_F(JsonFileTest, AnEndlessFileIsAnError) {
  if (!fs::exists("/dev/zero")) GTEST_SKIP() << "this machine has no /dev/zero";
  EXPECT_THAT([] { JsonDocument::FromFile("/dev/zero"); },
              ThrowsMessage<Error>(HasSubstr("found more than 64 MiB")));
}

TEST_F(JsonFileTest, TwoHundredMegabytesOfBracketsAreRefusedUnread) {
  Write(std::string(1'000'000, '['));
  fs::resize_file(path_, 200'000'000);  // sparse: only the size matters
  struct rusage before {};
  getrusage(RUSAGE_SELF, &before);
  EXPECT_EQ(Refusal(), path_ + ": found more than 64 MiB, the largest JSON file that is read");
  struct rusage after {};
  getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 10'000);  // KiB
}

TEST_F(JsonFileTest, SixtyMegabytesOfBracketsAreTooDeep) {
  Write(Brackets(60'000'000));
  EXPECT_EQ(Refusal(), path_ + ":1: found more than 64 levels of nesting");
}

// ---- Set ----------------------------------------------------------------------------------------

TEST(JsonSetTest, ReplacesAValue) {
  JsonDocument document = Parse(kScenario);
  document.Set("cluster.nodes=8");
  const JsonReader nodes = document.Root().At("cluster").At("nodes");
  EXPECT_EQ(nodes.Integer(1, 100), 8);
  EXPECT_EQ(nodes.place().file, "--set");
  EXPECT_EQ(nodes.place().line, 0);
  EXPECT_THAT([&] { nodes.Integer(1, 4); },
              ThrowsMessage<Error>(
                  StrEq("--set: /cluster/nodes: found 8, expected a whole number from 1 to 4")));
}

TEST(JsonSetTest, KeepsTheOtherLines) {
  JsonDocument document = Parse(kScenario);
  document.Set("cluster.nodes=8");
  document.Set("cluster.links.0=null");
  const JsonReader cluster = document.Root().At("cluster");
  EXPECT_EQ(cluster.place().line, 4);
  EXPECT_EQ(cluster.At("preset").place().line, 5);
  EXPECT_EQ(cluster.At("links").Elements()[0].place().file, "--set");
  EXPECT_EQ(cluster.At("links").Elements()[1].place().line, 9);
  EXPECT_EQ(cluster.At("links").Elements()[1].At("latency").place().file, "a.json");
}

TEST(JsonSetTest, WhatIsBelowANewValueIsNewToo) {
  JsonDocument document = Parse(kScenario);
  document.Set(R"(cluster={"links": [{"bandwidth": "1GBps"}], "nodes": 1})");
  const JsonReader cluster = document.Root().At("cluster");
  EXPECT_EQ(cluster.At("nodes").place().file, "--set");
  EXPECT_EQ(cluster.At("links").Elements()[0].At("bandwidth").place().file, "--set");
  EXPECT_EQ(document.Root().At("name").place().line, 3);
  EXPECT_EQ(document.Root().At("a/b").At("~c").place().line, 12);
}

TEST(JsonSetTest, TextThatIsNotJsonIsAString) {
  JsonDocument document = Parse("{}");
  const auto set = [&](const std::string& text) {
    document.Set("x=" + text);
    return document.Root().At("x").value();
  };
  EXPECT_EQ(set("fluid"), "fluid");
  EXPECT_EQ(set("25GBps"), "25GBps");
  EXPECT_EQ(set("\"quoted\""), "quoted");
  EXPECT_EQ(set("true"), true);
  EXPECT_EQ(set("null"), nullptr);
  EXPECT_EQ(set("-1.5"), -1.5);
  EXPECT_EQ(set(""), "");
  EXPECT_EQ(set("a=b"), "a=b");
  EXPECT_EQ(set("[1, 2]"), nlohmann::json({1, 2}));
  EXPECT_EQ(set("//host/file"), "//host/file");
}

TEST(JsonSetTest, MakesMissingObjects) {
  JsonDocument document = Parse("{\"a\": 1}");
  document.Set("strategy.mesh.rows=2");
  EXPECT_EQ(document.value(), nlohmann::json::parse(R"({"a":1,"strategy":{"mesh":{"rows":2}}})"));
  EXPECT_EQ(document.Root().At("strategy").place().file, "--set");
  EXPECT_EQ(document.Root().At("a").place().line, 1);
}

TEST(JsonSetTest, NumbersIndexArrays) {
  JsonDocument document = Parse(kScenario);
  document.Set("cluster.links.1.bandwidth=1GBps");
  EXPECT_EQ(document.Root().At("cluster").At("links").Elements()[1].At("bandwidth").String(),
            "1GBps");
}

TEST(JsonSetTest, AnIndexBeyondTheArrayIsAnError) {
  JsonDocument document = Parse("{\"a\": [1, 2], \"empty\": []}");
  EXPECT_THAT([&] { document.Set("a.2=3"); },
              ThrowsMessage<Error>(StrEq("--set: /a: found [1,2], expected an index from 0 to 1 "
                                         "instead of \"2\" (to set \"a.2=3\")")));
  for (const char* assignment :
       {"a.-1=3", "a.x=3", "a.1x=3", "a.99999999999999999999=3", "empty.0=1"})
    EXPECT_THROW(document.Set(assignment), Error) << assignment;
  EXPECT_EQ(document.value()["a"], nlohmann::json({1, 2}));
}

TEST(JsonSetTest, APathThroughAScalarIsAnError) {
  JsonDocument document = Parse("{\"a\": {\"b\": 4}}");
  EXPECT_THAT(
      [&] { document.Set("a.b.c=1"); },
      ThrowsMessage<Error>(StrEq("--set: /a/b: found 4, expected an object with a key \"c\" "
                                 "(to set \"a.b.c=1\")")));
}

// ---- Set, inside of what a string names ---------------------------------------------------------

TEST(JsonSetTest, APathThroughAStringIsAnErrorWhenItIsRead) {
  JsonDocument document = Parse("{\"name\": \"x\"}");
  document.Set("name.a.b=1");
  EXPECT_THAT([&] { document.Root().At("name").String(); },
              ThrowsMessage<Error>(StrEq("--set: /name: found \"x\", expected an object with a key "
                                         "\"a\" (to set \"name.a.b=1\")")));
  EXPECT_THROW(document.Root().At("name").Choice({"x", "y"}), Error);
  EXPECT_EQ(document.Root().At("name").Text(), "x");
  document.Set("name=y");  // instead of all that was said before
  EXPECT_EQ(document.Root().At("name").String(), "y");
}

TEST(JsonSetTest, APathThroughAStringChangesWhatTheStringNames) {
  JsonDocument outer = Parse("{\"cluster\": \"my.json\"}");
  const auto record = std::make_shared<InputRecord>();
  outer.NoteIn(record);
  outer.Set("cluster.node.nics=8");
  const JsonReader reader = outer.Root().At("cluster");
  ASSERT_TRUE(reader.HasChanges());
  JsonDocument inner =
      JsonDocument::FromText("{\"nodes\": 2,\n \"node\": {\n  \"nics\": 4}}", "my.json");
  reader.Change(&inner, {"nodes=32"});
  const JsonReader nics = inner.Root().At("node").At("nics");
  EXPECT_EQ(nics.Integer(0, 100), 8);
  // Where the mistake is: in --set, and in the file that names this one.
  EXPECT_THAT([&] { nics.Integer(1, 4); },
              ThrowsMessage<Error>(StrEq(
                  "--set: /cluster/node/nics: found 8, expected a whole number from 1 to 4")));
  EXPECT_THAT([&] { inner.Root().At("nodes").Integer(1, 4); },
              ThrowsMessage<Error>(StrEq(
                  "a.json:1: /cluster/nodes: found 32, expected a whole number from 1 to 4")));
  EXPECT_THAT([&] { inner.Root().At("node").AllowKeys({"nic"}); },
              ThrowsMessage<Error>(
                  StrEq("--set: /cluster/node: unknown key \"nics\"; did you mean \"nic\"?")));
  ASSERT_EQ(record->changes.size(), 2u);
  EXPECT_EQ(ToText(record->changes[0]), "changed in my.json, line 1: nodes = 32, was 2");
  EXPECT_EQ(ToText(record->changes[1]), "changed in my.json, line 3: node.nics = 8, was 4");
}

TEST(JsonSetTest, WhatIsChangedIsToldUnlessItWasSo) {
  JsonDocument document = Parse("{\"a\": 1,\n\"b\": {}}");
  JsonDocument same = document;
  same.Set("a=1");
  EXPECT_TRUE(same.changes().empty());
  document.Set("a=2");
  document.Set("b.c=\"x\"");
  ASSERT_EQ(document.changes().size(), 2u);
  EXPECT_EQ(ToText(document.changes()[0]), "changed in a.json, line 1: a = 2, was 1");
  EXPECT_EQ(ToText(document.changes()[1]), "changed in a.json: b.c = \"x\", was not there");
  EXPECT_EQ(ToJson(document.changes()),
            nlohmann::ordered_json::parse(
                R"([{"file": "a.json", "line": 1, "path": "a", "was": 1, "is": 2},
                    {"file": "a.json", "path": "b.c", "is": "x"}])"));
}

TEST(JsonSetTest, AnAssignmentHasAPathAndAValue) {
  JsonDocument document = Parse("{}");
  EXPECT_THAT([&] { document.Set("nodes"); },
              ThrowsMessage<Error>(StrEq("--set: found \"nodes\", expected path=value such as "
                                         "cluster.nodes=8")));
  for (const char* assignment : {"", "=", "=8", ".=8", "a..b=8", "a.=8", ".a=8"})
    EXPECT_THROW(document.Set(assignment), Error) << assignment;
  EXPECT_THROW(document.Set(std::string(1000, '.')), Error);
}

TEST(JsonSetTest, WhatBeginsAsJsonIsNoText) {
  JsonDocument document = Parse("{}");
  // What a shell leaves of edits=[{"links": "a"}] without quotes.
  EXPECT_THAT([&] { document.Set("edits=[{links:"); },
              ThrowsMessage<Error>(StrEq("--set: found \"[{links:\", which begins as JSON does but "
                                         "is none; in a shell it stands between ' and '")));
  EXPECT_THROW(document.Set("cluster={preset: dgx-a100}"), Error);
  document.Set("name=a [draft]");
  EXPECT_EQ(document.value()["name"], "a [draft]");
}

TEST(JsonSetTest, WhatAFileMayNotHaveSetMayNotEither) {
  JsonDocument document = Parse("{}");
  EXPECT_THROW(document.Set("a=" + std::string(65, '[') + std::string(65, ']')), Error);
  EXPECT_THROW(document.Set(R"(a={"b": 1, "b": 2})"), Error);
  EXPECT_THROW(document.Set("a=\xff"), Error);
  EXPECT_THROW(document.Set("\xff=1"), Error);
  std::string deep = "a";
  for (int i = 0; i < 100; ++i) deep += ".a";
  EXPECT_THROW(document.Set(deep + "=1"), Error);
  EXPECT_EQ(document.value(), nlohmann::json::object());
}

// A value that is too long is shown from its beginning.
TEST(JsonReaderTest, LongValuesAreShownFromTheirBeginning) {
  const std::string shown = QuotedJson("first" + std::string(100, 'x'));
  EXPECT_THAT(shown, StartsWith("\"firstxxx"));
  EXPECT_THAT(shown, EndsWith("xxx..."));
}

}  // namespace json_reader_test
}  // namespace rehearse
