#include "tools/ranks.h"

#include <optional>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "tools/number_options.h"

namespace rehearse {
namespace {

// The number, or `devices` if the text is no number below it.
uint32_t ParseRank(const std::string& text, uint32_t devices) {
  const std::optional<uint64_t> number = WholeNumberIn(text);
  return number && *number < devices ? static_cast<uint32_t>(*number) : devices;
}

}  // namespace

std::vector<uint32_t> ParseRanks(const std::string& option, const std::string& text,
                                 uint32_t devices) {
  std::vector<uint32_t> ranks;
  for (const std::string& part : SplitAtCommas(text)) {
    const size_t dash = part.find('-');
    const uint32_t first = ParseRank(part.substr(0, dash), devices);
    const uint32_t last =
        dash == std::string::npos ? first : ParseRank(part.substr(dash + 1), devices);
    if (first >= devices || last >= devices || first > last) {
      throw Error(fmt::format("{}: found \"{}\", expected ranks from 0 to {} such as \"0,4-7\"",
                              option, text, devices - 1));
    }
    for (uint32_t rank = first; rank <= last; ++rank) ranks.push_back(rank);
  }
  return ranks;
}

}  // namespace rehearse
