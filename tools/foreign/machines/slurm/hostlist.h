// Lists of names as Slurm writes them: "tux[0-3,12],login", "node[001-016]", "rack[0-1]n[1-2]".
//
// A range counts up with as many digits as its first number has ("[08-10]" is 08, 09, 10). Several
// brackets in a name are all combinations, the last counting fastest.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace rehearse {

// Throws through `fail` for what is not such a list, for brackets in brackets, for names of more
// than 64 bytes and for more than `most` names.
std::vector<std::string> ExpandHostlist(std::string_view text, size_t most,
                                        const std::function<void(const std::string&)>& fail);

}  // namespace rehearse
