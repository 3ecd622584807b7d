// The smallest readers and writers on everything that is short: quantities, JSON, CSV, assignments,
// names, marks of an axis. What they make of it is beside a golden record.
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sim/base/csv_file.h"
#include "sim/base/error.h"
#include "sim/base/fnv.h"
#include "sim/base/json_document.h"
#include "sim/base/json_parse.h"
#include "sim/base/known_names.h"
#include "sim/base/units.h"
#include "sim/base/visible_text.h"
#include "sim/report/chart_scale.h"
#include "sim/report/text_page.h"
#include "tests/golden/record.h"

namespace rehearse {
namespace words_test {

using Write = std::function<std::string(const std::string&)>;

class Outcomes {
 public:
  void Add(const std::string& text, const Write& write) {
    ++tried_;
    std::string said;
    try {
      said = write(text);
    } catch (const Error& error) {
      ++refused_;
      said = error.what();
    }
    hash_.Add(said);
    hash_.Add("\n");
    if (example_.empty() || hash_.hash() % 97 == 0) example_ = said.substr(0, 60);
  }
  std::string Line() const {
    std::string example = example_;
    for (char& c : example)
      if (static_cast<uint8_t>(c) < 0x20 || static_cast<uint8_t>(c) >= 0x7f) c = '?';
    return fmt::format("{} tried, {} refused; {}{}\n", tried_, refused_, example,
                       DigestOf("said", hash_));
  }

 private:
  int tried_ = 0;
  int refused_ = 0;
  Fnv1a hash_;
  std::string example_;
};

// Of so many pieces at most.
std::string OfAll(const std::vector<std::string>& pieces, int most, const Write& write) {
  Outcomes outcomes;
  const std::function<void(const std::string&, int)> from = [&](const std::string& text, int left) {
    outcomes.Add(text, write);
    if (left == 0) return;
    for (const std::string& piece : pieces) from(text + piece, left - 1);
  };
  from("", most);
  return outcomes.Line();
}

// Under sanitizers only some entries are made.
class Entries {
 public:
  explicit Entries(const std::string& name) : record_(name) {}
  void Add(const std::string& key, const std::function<std::string()>& lines) {
    if (!record_.IsLeftOut(number_++)) record_.Add(key, lines());
  }
  void End() { record_.End(); }

 private:
  GoldenRecord record_;
  size_t number_ = 0;
};

// 1, 1.5, 9.9995 and others times powers of ten, and what lies next to them.
std::vector<double> Numbers(int least, int most) {
  std::vector<double> numbers = {0};
  for (int power = least; power <= most; ++power) {
    for (const double digits :
         {1.0, 1.00049, 1.0005, 1.024, 1.5, 2.0, 4.999999, 5.0, 9.99, 9.9949, 9.995, 9.9999999}) {
      numbers.push_back(digits * std::pow(10, power));
    }
  }
  return numbers;
}

template <typename Quantity>
std::string Printed(int least, int most) {
  Outcomes outcomes;
  for (const double number : Numbers(least, most))
    outcomes.Add("", [&](const std::string&) { return Print(Quantity(number)); });
  return outcomes.Line();
}

template <typename Quantity, typename Parse>
std::string PrintedExactly(int least, int most, const Parse& parse) {
  Outcomes outcomes;
  for (const double number : Numbers(least, most)) {
    outcomes.Add("", [&](const std::string&) {
      const std::string text = PrintExactly(Quantity(number));
      return fmt::format("{} {}", text, parse(text).value());
    });
  }
  return outcomes.Line();
}

TEST(GoldenWordsTest, QuantitiesAreReadAndPrintedAsRecorded) {
  Entries record("words-quantities");
  const std::vector<std::string> pieces = {"1", "0", ".", "-", "+", "e", " "};
  const auto all = [&](const char* name, std::vector<std::string> units, const auto& parse) {
    record.Add(name, [&] {
      std::string lines = OfAll(pieces, 4, [&](const std::string& text) {
        return fmt::format("{:.9g}", parse(text + units[0]).value());
      });
      for (const char* number : {"1", "0", "1e-30", "1e30", "1e300", "3.5", "1 "}) {
        lines += OfAll(units, 2, [&](const std::string& text) {
          return fmt::format("{:.9g}", parse(number + text).value());
        });
      }
      return lines;
    });
  };
  all("bandwidth", {"GBps", "Gbps", "MB/s", "KiB/s", "B", "T", "k", "s", "GB/s"}, ParseBandwidth);
  all("duration", {"us", "ms", "s", "ns", "m", "h", "ps", "min", "d"}, ParseDuration);
  all("size", {"MiB", "MB", "kB", "KB", "B", "G", "GiB", "b", "TiB"}, ParseSize);
  all("rate", {"TFLOPS", "GFLOP/s", "FLOP", "PFLOP/s", "/s", "T"}, ParseFlopRate);
  all("flops", {"TFLOP", "GFLOP", "FLOP", "PFLOP", "s", "EFLOP"}, ParseFlops);
  record.Add("printed", [&] {
    return Printed<BytesPerSecond>(-3, 20) + Printed<Seconds>(-14, 9) + Printed<Bytes>(0, 20) +
           Printed<FlopsPerSecond>(0, 20);
  });
  record.Add("printed exactly", [&] {
    return PrintedExactly<Seconds>(-12, 5, ParseDuration) +
           PrintedExactly<Bytes>(0, 18, ParseSize) + PrintedExactly<Flops>(0, 20, ParseFlops);
  });
  record.Add("patterns", [&] {
    return BandwidthPattern() + "\n" + DurationPattern() + "\n" + SizePattern() + "\n" +
           FlopRatePattern() + "\n" + FlopsPattern() + "\n";
  });
  record.End();
}

std::string Read(const JsonDocument& document) {
  return document.value().dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

TEST(GoldenWordsTest, TextsAreReadAsRecorded) {
  Entries record("words-texts");
  record.Add("json", [&] {
    return OfAll({"{", "}", "[", "]", ",", "\"a\"", ":", "1", "\n", "/*", "*/", "//"}, 4,
                 [](const std::string& text) { return Read(JsonDocument::FromText(text, "x")); });
  });
  record.Add("strings", [&] {
    return OfAll({"a", "\\", "\"", "u", "n", "00e4", "\xc3", "\xa4", "\xff", "\t"}, 4,
                 [](const std::string& text) {
                   return Read(JsonDocument::FromText("[\"" + text + "\"]", "x"));
                 });
  });
  record.Add("numbers", [&] {
    return OfAll({"1", "0", ".", "-", "+", "e", "5"}, 4, [](const std::string& text) {
      return Read(JsonDocument::FromText("[" + text + "]", "x"));
    });
  });
  record.Add("assignments", [&] {
    return OfAll(
        {"a", "b", ".", "0", "1", "=", "{}", "[2]", "-", "\""}, 4, [](const std::string& text) {
          JsonDocument document =
              JsonDocument::FromText(R"({"a": [1, {"b": 2}], "b": {"a": "x", "0": 3}})", "x");
          document.Set(text);
          return Read(document);
        });
  });
  const auto csv = [](const std::string& before) {
    return OfAll({"a", ",", "\"", "\n", "b", " ", "#", "\r", "\t"}, 4,
                 [&](const std::string& text) {
                   const CsvFile file = ParseCsvFile(before + text, "x");
                   std::string all = fmt::format("{}|{}", file.line, fmt::join(file.columns, "|"));
                   for (const CsvRow& row : file.rows)
                     all += fmt::format("\n{}:{}", row.line, fmt::join(row.cells, "|"));
                   return all;
                 });
  };
  record.Add("csv", [&] { return csv("") + csv("a,b\n") + csv("a\n\"b"); });
  record.Add("visible", [&] {
    return OfAll(
        {"a", "\n", "\x1b", "\x7f", "\xc3", "\xa4", "\xe2\x80", "\xae", "\xf0", "\x9f\x98",
         "\xed\xa0", "\x80", "\xff"},
        4, [](const std::string& text) { return VisibleText(text) + "|" + VisibleLines(text); });
  });
  record.Add("shortened", [&] {
    return OfAll({"a", "\xc3\xa4", " ", "bcdefgh"}, 5, [](const std::string& text) {
      std::string all;
      for (const size_t width : {1, 2, 3, 5, 8, 12}) all += Shortened(text, width) + "|";
      return all;
    });
  });
  record.Add("pointers", [&] {
    return OfAll({"a", "/", "~", "0"}, 5, [](const std::string& text) {
      std::string pointer = "/b";
      AppendToPointer(pointer, text);
      return pointer + QuotedJson(text);
    });
  });
  record.Add("did you mean", [&] {
    return OfAll({"a", "b", "c"}, 5, [](const std::string& text) {
      return KnownNames(text, {"abc", "bca", "a", "cccc", "ab-cd"}) +
             DidYouMean(text, std::vector<std::string>{"abcab", "bb", "caa"});
    });
  });
  record.End();
}

std::string MarksOf(const ChartScale& scale) {
  std::string text = fmt::format("{:.9g} {:.9g} {}:", scale.low, scale.high, scale.is_log);
  for (const double mark : scale.marks) text += fmt::format(" {:.9g} {:.9g}", mark, scale.At(mark));
  return text;
}

TEST(GoldenWordsTest, NumbersAreShownAsRecorded) {
  Entries record("words-numbers");
  const std::vector<double> numbers = Numbers(-4, 4);
  Outcomes linear;
  Outcomes log;
  Outcomes tight;
  Outcomes percent;
  for (const double most : numbers) {
    linear.Add("", [&](const std::string&) { return MarksOf(LinearChartScale(most)); });
    percent.Add("", [&](const std::string&) { return Percent(most) + Percent(-most); });
    if (most == 0) continue;
    for (const double ratio : {1.0, 0.999, 0.97, 0.5, 0.4, 0.1, 0.013}) {
      log.Add("", [&](const std::string&) { return MarksOf(LogChartScale(most * ratio, most)); });
      tight.Add("",
                [&](const std::string&) { return MarksOf(TightChartScale(most * ratio, most)); });
      tight.Add("",
                [&](const std::string&) { return MarksOf(TightChartScale(-most * ratio, most)); });
    }
  }
  record.Add("scales", [&] { return linear.Line() + log.Line() + tight.Line(); });
  record.Add("percent", [&] { return percent.Line(); });
  Outcomes grouped;
  for (uint64_t value = 1; value < uint64_t{1} << 60; value = value * 3 + 1)
    grouped.Add("", [&](const std::string&) { return Grouped(value); });
  record.Add("grouped", [&] { return grouped.Line(); });
  Outcomes shown;
  for (const char* text :
       {"{}", "[]", "1", "-1.5", "true", "null", "\"a\"", "[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15]",
        R"({"a": {"b": [1, 2, {"c": "d"}]}, "e": "ffffffffffffffffffffffffffffffffffffffffffff"})",
        R"("0123456789012345678901234567890123456789012345678901234567")",
        R"("01234567890123456789012345678901234567890123456789012345678")",
        R"("0123456789012345678901234567890123456789012345678901234567890123")",
        "\"\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4"
        "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4"
        "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\"",
        R"({"a":[{"a":[{"a":[{"a":[{"a":[1,2,3]},4]},5]},6]}]})"}) {
    shown.Add("", [&](const std::string&) { return ShortenedJson(nlohmann::json::parse(text)); });
  }
  record.Add("shortened json", [&] { return shown.Line(); });
  record.End();
}

}  // namespace words_test
}  // namespace rehearse
