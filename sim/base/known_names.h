// What there is instead of a name that is not known.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rehearse {

// The end of a message: the nearest first, as DidYouMean() says it (sim/base/error.h), then what
// there is: `; did you mean "ring"? Known are auto, ring and tree`. Of many only some are named;
// `all_in` says where the rest is, such as "rehearse list clusters". "" where there is nothing.
std::string KnownNames(const std::string& word, const std::vector<std::string>& names,
                       std::string_view all_in = "");

}  // namespace rehearse
