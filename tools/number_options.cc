#include "tools/number_options.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/units.h"

namespace rehearse {
namespace {

namespace po = boost::program_options;

constexpr Bytes kLargestSize(0x1p50);  // 1024T
constexpr Seconds kShortestWait(1e-3);
constexpr Seconds kLongestWait(1e6);
constexpr double kLargestFactor = 1e6;
constexpr double kMostDays = 36500;
constexpr Flops kLeastFlops(1e9);
constexpr Flops kMostFlops(1e18);

class TextSemantic : public po::value_semantic {
 public:
  TextSemantic(std::function<boost::any(const std::string&)> read, const char* name,
               const char* standard)
      : read_(std::move(read)), name_(name), standard_(standard) {}

  std::string name() const override {
    return standard_ == nullptr ? name_ : fmt::format("{} (={})", name_, standard_);
  }
  unsigned min_tokens() const override { return 1; }
  unsigned max_tokens() const override { return 1; }
  bool is_composing() const override { return false; }
  bool is_required() const override { return false; }

  void parse(boost::any& value, const std::vector<std::string>& tokens,
             bool /*utf8*/) const override {
    po::validators::check_first_occurrence(value);
    try {
      value = read_(po::validators::get_single_string(tokens, /*allow_empty=*/true));
    } catch (const Error& error) {
      throw OptionMistake(error.what());
    }
  }
  bool apply_default(boost::any& value) const override {
    if (standard_ == nullptr) return false;
    value = read_(standard_);
    return true;
  }
  void notify(const boost::any& /*value*/) const override {}

 private:
  std::function<boost::any(const std::string&)> read_;
  std::string name_;
  const char* standard_;
};

[[noreturn]] void FailNumber(const std::string& text, const std::string& expected) {
  throw Error(fmt::format("found \"{}\", expected {}", text, expected));
}

// The number that the text begins with, and what follows it; nothing if it begins with no digit.
struct Beginning {
  double number = 0;
  std::string rest;
};
std::optional<Beginning> NumberAtBeginOf(const std::string& text) {
  if (text.empty() || text[0] < '0' || text[0] > '9') return std::nullopt;  // inf, nan, -1
  const char* const end = text.data() + text.size();
  Beginning beginning;
  const auto [stop, error] = std::from_chars(text.data(), end, beginning.number);
  if (error != std::errc()) return std::nullopt;
  beginning.rest.assign(stop, end);
  return beginning;
}

// The quantity of a bare number, which is in `unit`, or of one with its own unit.
template <typename Quantity>
Quantity ParseBareOrWithUnit(const std::string& text, Quantity unit,
                             Quantity (*parse)(std::string_view), Quantity least, Quantity most,
                             const char* expected) {
  const std::optional<Beginning> beginning = NumberAtBeginOf(text);
  if (!beginning) FailNumber(text, expected);
  Quantity value;
  if (beginning->rest.empty()) {
    value = beginning->number * unit;
  } else {
    try {
      value = parse(text);
    } catch (const Error&) {
      FailNumber(text, expected);
    }
  }
  if (!(value >= least && value <= most)) FailNumber(text, expected);
  return value;
}

Bytes ParseWholeBytes(const std::string& text) {
  constexpr const char* kExpected =
      "a size of whole bytes from 1 to 1024T such as 8, 64K, 128M, 1G or 4MiB";
  constexpr std::string_view kLetters = "KMGT";
  const std::optional<Beginning> beginning = NumberAtBeginOf(text);
  const size_t power = beginning && beginning->rest.size() == 1 ? kLetters.find(beginning->rest)
                                                                : std::string_view::npos;
  Bytes size;
  if (power == std::string_view::npos) {
    size = ParseBareOrWithUnit(text, Bytes(1), ParseSize, Bytes(1), kLargestSize, kExpected);
  } else {
    size = Bytes(beginning->number * std::pow(1024.0, static_cast<double>(power + 1)));
  }
  if (!(size >= Bytes(1) && size <= kLargestSize) || size.value() != std::floor(size.value()))
    FailNumber(text, kExpected);
  return size;
}

double ParseFactor(const std::string& text) {
  const std::optional<Beginning> beginning = NumberAtBeginOf(text);
  if (!beginning || !beginning->rest.empty() || !(beginning->number > 1) ||
      beginning->number > kLargestFactor) {
    FailNumber(text, "a number above 1, at most 1000000");
  }
  return beginning->number;
}

double ParseDays(const std::string& text) {
  const std::optional<Beginning> beginning = NumberAtBeginOf(text);
  if (!beginning || !beginning->rest.empty() || !(beginning->number >= 0) ||
      beginning->number > kMostDays) {
    FailNumber(text, "a number of days from 0 to 36500");
  }
  return beginning->number;
}

}  // namespace

OptionMistake::OptionMistake(const std::string& what)
    : po::error_with_option_name("%canonical_option%"), what_(what) {}

std::string OptionMistake::Message() const {
  return fmt::format("--{}: {}", m_substitutions.at("option"), what_);
}

po::value_semantic* ReadBy(std::function<boost::any(const std::string&)> read, const char* name,
                           const char* standard) {
  return new TextSemantic(std::move(read), name, standard);  // boost's options own it
}

std::optional<uint64_t> WholeNumberIn(std::string_view text) {
  uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

uint64_t ParseWhole(const std::string& text, uint64_t least, uint64_t most) {
  const std::optional<uint64_t> value = WholeNumberIn(text);
  if (!value || *value < least || *value > most)
    FailNumber(text, fmt::format("a whole number from {} to {}", least, most));
  return *value;
}

std::vector<std::string> SplitAtCommas(const std::string& text) {
  std::vector<std::string> parts;
  size_t begin = 0;
  for (size_t comma = text.find(','); comma != std::string::npos; comma = text.find(',', begin)) {
    parts.push_back(text.substr(begin, comma - begin));
    begin = comma + 1;
  }
  parts.push_back(text.substr(begin));
  return parts;
}

po::value_semantic* Wholes(const char* name, const char* standard, uint32_t least, uint32_t most) {
  return ReadBy(
      [=](const std::string& text) {
        std::vector<uint32_t> numbers;
        for (const std::string& part : SplitAtCommas(text)) {
          const std::optional<uint64_t> number = WholeNumberIn(part);
          if (!number || *number < least || *number > most) {
            FailNumber(text,
                       fmt::format("whole numbers from {} to {} such as \"2,4\"", least, most));
          }
          numbers.push_back(static_cast<uint32_t>(*number));
        }
        return boost::any(std::move(numbers));
      },
      name, standard);
}

po::value_semantic* Days(const char* name, const char* standard) {
  return ReadBy([](const std::string& text) { return boost::any(ParseDays(text)); }, name,
                standard);
}

po::value_semantic* Factor(const char* name, const char* standard) {
  return ReadBy([](const std::string& text) { return boost::any(ParseFactor(text)); }, name,
                standard);
}

po::value_semantic* Size(const char* name, const char* standard) {
  return ReadBy([](const std::string& text) { return boost::any(ParseWholeBytes(text)); }, name,
                standard);
}

po::value_semantic* SizeWithUnit(const char* name, const char* standard) {
  return ReadBy([](const std::string& text) { return boost::any(ParseSize(text)); }, name,
                standard);
}

po::value_semantic* Wait(const char* name, const char* standard) {
  return ReadBy(
      [](const std::string& text) {
        return boost::any(
            ParseBareOrWithUnit(text, Seconds(1), ParseDuration, kShortestWait, kLongestWait,
                                "seconds from 0.001 to 1000000 such as 10, 0.5 or 500ms"));
      },
      name, standard);
}

po::value_semantic* Gigaflops(const char* name, const char* standard) {
  return ReadBy(
      [](const std::string& text) {
        return boost::any(ParseBareOrWithUnit(text, Flops(1e9), ParseFlops, kLeastFlops, kMostFlops,
                                              "GFLOP from 1 to 1000000000 such as 2, or 2TFLOP"));
      },
      name, standard);
}

void AddThreadsOption(po::options_description* options, const char* parts) {
  constexpr unsigned kMostThreads = 1024;
  options->add_options()(
      "threads", Whole("N", "0", 0u, kMostThreads),
      fmt::format("how many {} to simulate at a time, at most four per core; 0 is one per core",
                  parts)
          .c_str());
}

unsigned ThreadsOption(const po::variables_map& values) {
  constexpr unsigned kMostOfACore = 4;
  return std::min(values["threads"].as<unsigned>(),
                  kMostOfACore * std::max(1u, std::thread::hardware_concurrency()));
}

}  // namespace rehearse
