// Options whose value is a number: one reader for all commands, called when the command line is
// parsed. A value that does not fit is
//   Error("--repeat: found \"x\", expected a whole number from 1 to 100000").
//
// Each function makes what boost::program_options calls the semantic of an option; the options own
// it. `name` is what the help calls the value; `standard` is the text of its default, nullptr if
// there is none.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/any.hpp>
#include <boost/program_options.hpp>

#include "sim/base/quantity.h"

namespace rehearse {

// Reads an option's text by a function that throws Error("found ..., expected ...").
boost::program_options::value_semantic* ReadBy(
    std::function<boost::any(const std::string& text)> read, const char* name,
    const char* standard);

// The text as a whole number from `least` to `most`.
uint64_t ParseWhole(const std::string& text, uint64_t least, uint64_t most);

// A whole number; as<T>().
template <std::unsigned_integral T>
boost::program_options::value_semantic* Whole(const char* name, const char* standard, T least,
                                              T most) {
  return ReadBy(
      [=](const std::string& text) {
        return boost::any(static_cast<T>(ParseWhole(text, least, most)));
      },
      name, standard);
}

// Whole numbers such as "2,4"; as<std::vector<uint32_t>>().
boost::program_options::value_semantic* Wholes(const char* name, const char* standard,
                                               uint32_t least, uint32_t most);
// A number above 1, by which sizes grow; as<double>().
boost::program_options::value_semantic* Factor(const char* name, const char* standard);
// A number of days, up to a century; as<double>().
boost::program_options::value_semantic* Days(const char* name, const char* standard);
// A size of whole bytes up to 1024T: bare as in "8", with nccl-tests' K, M, G, T (powers of 1,024)
// or with a unit (sim/base/units.h); as<Bytes>().
boost::program_options::value_semantic* Size(const char* name, const char* standard);
// The same, always with a unit; as<Bytes>().
boost::program_options::value_semantic* SizeWithUnit(const char* name, const char* standard);
// A time from 1 ms to 11 days: seconds as in "10" and "0.5", or with a unit; as<Seconds>().
boost::program_options::value_semantic* Wait(const char* name, const char* standard);
// Work of at least one GFLOP: GFLOP as in "2" and "0.5", or with a unit; as<Flops>().
boost::program_options::value_semantic* Gigaflops(const char* name, const char* standard);

// Adds --threads, for commands that simulate many `parts` ("points", "rows") at a time.
void AddThreadsOption(boost::program_options::options_description* options, const char* parts);
// 0 stands for one per core. At most four per core: more are no quicker, and each takes memory.
unsigned ThreadsOption(const boost::program_options::variables_map& values);

// At most this many ranks are threads of this process.
inline constexpr uint32_t kMostThreadRanks = 65'536;

// The number, if the whole text is digits and in the range of the type.
std::optional<uint64_t> WholeNumberIn(std::string_view text);
// Makes "a" and "b" of "a,b": always one more part than there are commas.
std::vector<std::string> SplitAtCommas(const std::string& text);

// What an option's semantic throws; boost puts the option's name in.
class OptionMistake : public boost::program_options::error_with_option_name {
 public:
  explicit OptionMistake(const std::string& what);
  ~OptionMistake() noexcept override = default;

  // "--repeat: found ...".
  std::string Message() const;

 private:
  std::string what_;
};

}  // namespace rehearse
