// Which names there are, where one was not known.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rehearse {

// The end of a message: the nearest first, as DidYouMean() says it (sim/base/error.h), then what
// there is: `; did you mean "ring"? Known are auto, ring and tree`. If there are many, only some
// are named, and `all_in` says where to find the rest, such as "rehearse list clusters". "" if
// there are none.
std::string KnownNames(const std::string& word, const std::vector<std::string>& names,
                       std::string_view all_in = "");

}  // namespace rehearse
