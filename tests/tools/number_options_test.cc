#include "tools/number_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/error.h"
#include "tools/command.h"
#include "tools/ranks.h"

namespace rehearse {
namespace number_options_test {

namespace po = boost::program_options;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

po::variables_map Parse(const std::vector<std::string>& arguments) {
  CommandSyntax syntax;
  syntax.usage = "rehearse measure [options]";
  syntax.options.add_options()("repeat,n", Whole("N", "5", 1u, 100'000u), "")(
      "seed", Whole("N", nullptr, uint64_t{0}, UINT64_MAX), "")(
      "ranks", Wholes("N,...", nullptr, 2, 16), "")("by", Factor("X", "2"), "")(
      "size,b", Size("SIZE", "32M"), "")("patience", Wait("SECONDS", "10"), "")(
      "work", Gigaflops("GFLOP", nullptr), "")("from", Days("X", nullptr), "");
  po::variables_map values;
  EXPECT_TRUE(ParseCommandLine(syntax, arguments, &values));
  return values;
}

template <typename T>
T Read(const std::string& option, const std::string& text) {
  return Parse({"--" + option, text})[option].as<T>();
}

std::string Mistake(const std::vector<std::string>& arguments) {
  try {
    Parse(arguments);
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

std::string Mistake(const std::string& option, const std::string& text) {
  if (text.starts_with('-')) return Mistake({"--" + option + "=" + text});
  return Mistake({"--" + option, text});
}

TEST(NumberOptionsTest, DefaultsAreReadAsWhatIsGiven) {
  const po::variables_map values = Parse({});
  EXPECT_EQ(values["repeat"].as<uint32_t>(), 5u);
  EXPECT_TRUE(values["repeat"].defaulted());
  EXPECT_EQ(values["by"].as<double>(), 2);
  EXPECT_EQ(values["size"].as<Bytes>(), Bytes(32 << 20));
  EXPECT_EQ(values["patience"].as<Seconds>(), Seconds(10));
  EXPECT_EQ(values.count("seed"), 0u);
  EXPECT_EQ(values.count("work"), 0u);
}

TEST(NumberOptionsTest, HelpShowsNamesAndDefaults) {
  EXPECT_EQ(std::unique_ptr<po::value_semantic>(Whole("N", "5", 1u, 9u))->name(), "N (=5)");
  EXPECT_EQ(std::unique_ptr<po::value_semantic>(Size("SIZE", nullptr))->name(), "SIZE");
}

TEST(NumberOptionsTest, WholeNumbersAreDigitsInTheirRange) {
  EXPECT_EQ(Read<uint32_t>("repeat", "1"), 1u);
  EXPECT_EQ(Read<uint32_t>("repeat", "100000"), 100'000u);
  EXPECT_EQ(Read<uint64_t>("seed", "18446744073709551615"), UINT64_MAX);
  EXPECT_THAT(Read<std::vector<uint32_t>>("ranks", "2,16,4"), ElementsAre(2u, 16u, 4u));
  for (const char* text : {"", "0", "100001", "-1", "+1", " 1", "1 ", "1.5", "0x10", "1e3", "x",
                           "99999999999999999999999"}) {
    EXPECT_EQ(Mistake("repeat", text), std::string("--repeat: found \"") + text +
                                           "\", expected a whole number from 1 to 100000");
  }
  for (const char* text : {"", "2,", ",2", "2,,4", "1,2", "2;4", "17"}) {
    EXPECT_EQ(Mistake("ranks", text),
              std::string("--ranks: found \"") + text +
                  "\", expected whole numbers from 2 to 16 such as \"2,4\"");
  }
}

TEST(NumberOptionsTest, SizesAreBareOrInNcclTestsLettersOrWithAUnit) {
  EXPECT_EQ(Read<Bytes>("size", "8"), Bytes(8));
  EXPECT_EQ(Read<Bytes>("size", "64K"), Bytes(64 << 10));
  EXPECT_EQ(Read<Bytes>("size", "1.5M"), Bytes(3 << 19));
  EXPECT_EQ(Read<Bytes>("size", "1024T"), Bytes(0x1p50));
  EXPECT_EQ(Read<Bytes>("size", "4MiB"), Bytes(4 << 20));
  EXPECT_EQ(Read<Bytes>("size", "4MB"), Bytes(4e6));
  for (const char* text : {"", "0", "1.5", "1025T", "1E", "1KK", "K", "nan", "inf", "1e400", "-1K",
                           "9223372036854775808", "64KiB/s", "1MiBK"}) {
    EXPECT_EQ(Mistake("size", text),
              std::string("--size: found \"") + text +
                  "\", expected a size of whole bytes from 1 to 1024T such as 8, 64K, 128M, 1G or "
                  "4MiB");
  }
}

TEST(NumberOptionsTest, FactorsSecondsAndGigaflops) {
  EXPECT_EQ(Read<double>("by", "1.25"), 1.25);
  EXPECT_EQ(Mistake({"--by", "1"}),
            "--by: found \"1\", expected a number above 1, at most 1000000");
  EXPECT_THAT(Mistake({"--by", "nan"}), HasSubstr("found \"nan\""));
  EXPECT_THAT(Mistake({"--by", "2x"}), HasSubstr("found \"2x\""));

  EXPECT_EQ(Read<Seconds>("patience", "0.5"), Seconds(0.5));
  EXPECT_EQ(Read<Seconds>("patience", "250ms"), Seconds(0.25));
  for (const char* text : {"", "0", "-1", "1h", "2000000", "1e999"}) {
    EXPECT_EQ(Mistake("patience", text),
              std::string("--patience: found \"") + text +
                  "\", expected seconds from 0.001 to 1000000 such as 10, 0.5 or 500ms");
  }

  EXPECT_EQ(Read<Flops>("work", "2"), Flops(2e9));
  EXPECT_EQ(Read<Flops>("work", "20TFLOP"), Flops(2e13));
  EXPECT_THAT(Mistake({"--work", "0.5"}), HasSubstr("expected GFLOP from 1"));
}

TEST(NumberOptionsTest, DaysMayBePartsOfOne) {
  EXPECT_EQ(Read<double>("from", "0"), 0);
  EXPECT_EQ(Read<double>("from", "12.5"), 12.5);
  for (const char* text : {"", "-1", "1d", "36501", "nan"}) {
    EXPECT_EQ(Mistake("from", text), std::string("--from: found \"") + text +
                                         "\", expected a number of days from 0 to 36500");
  }
}

TEST(NumberOptionsTest, ShortNamesAndRepeatsAreToldByTheLongName) {
  EXPECT_EQ(Parse({"-n", "7"})["repeat"].as<uint32_t>(), 7u);
  EXPECT_EQ(Mistake({"-n", "x"}),
            "--repeat: found \"x\", expected a whole number from 1 to 100000");
  EXPECT_EQ(Mistake({"-nx"}), "--repeat: found \"x\", expected a whole number from 1 to 100000");
  EXPECT_THAT(Mistake({"-n", "1", "-n", "2"}), HasSubstr("more than once"));
  EXPECT_THAT(Mistake({"--repeat"}), HasSubstr("--repeat"));
}

TEST(NumberOptionsTest, RanksAreNumbersAndRangesOfThem) {
  EXPECT_THAT(ParseRanks("--ranks", "0,4-6,3", 8), ElementsAre(0u, 4u, 5u, 6u, 3u));
  for (const char* text : {"", "8", "0-8", "3-1", "1-", "-1", "0,,1", "x", "4294967296"}) {
    EXPECT_THROW(ParseRanks("--ranks", text, 8), Error) << text;
  }
}

}  // namespace number_options_test
}  // namespace rehearse
