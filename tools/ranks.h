// Reading lists of ranks from the command line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rehearse {

// Reads "0,4-7" as 0 4 5 6 7, in the order given. Throws Error naming `option` for anything else
// and for ranks that are not below `devices`.
std::vector<uint32_t> ParseRanks(const std::string& option, const std::string& text,
                                 uint32_t devices);

}  // namespace rehearse
