#include "tools/ranks.h"

#include <algorithm>

#include <fmt/format.h>

#include "sim/base/error.h"

namespace rehearse {
namespace {

// The number, or `devices` when the text is none (which is out of range as well).
uint32_t ParseRank(const std::string& text, uint32_t devices) {
  if (text.empty() || text.size() > 9 ||
      text.find_first_not_of("0123456789") != std::string::npos) {
    return devices;
  }
  return static_cast<uint32_t>(std::stoul(text));
}

}  // namespace

std::vector<uint32_t> ParseRanks(const std::string& option, const std::string& text,
                                 uint32_t devices) {
  std::vector<uint32_t> ranks;
  size_t begin = 0;
  while (begin <= text.size()) {
    const size_t comma = std::min(text.find(',', begin), text.size());
    const std::string part = text.substr(begin, comma - begin);
    const size_t dash = part.find('-');
    const uint32_t first = ParseRank(part.substr(0, dash), devices);
    const uint32_t last =
        dash == std::string::npos ? first : ParseRank(part.substr(dash + 1), devices);
    if (first >= devices || last >= devices || first > last) {
      throw Error(fmt::format("{}: found \"{}\", expected ranks from 0 to {} such as \"0,4-7\"",
                              option, text, devices - 1));
    }
    for (uint32_t rank = first; rank <= last; ++rank) ranks.push_back(rank);
    begin = comma + 1;
  }
  return ranks;
}

}  // namespace rehearse
