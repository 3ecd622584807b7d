// Which Rehearse this is.
#pragma once

#include <string_view>

namespace rehearse {

std::string_view Version();  // "0.1.0"

// The commit that was built: "a166719"; with uncommitted changes to the sources, "a166719-dirty-"
// and eight digits that tell such changes apart; "unknown" without git or outside a repository.
// Asked at each build (sim/base/version.cmake).
std::string_view BuildCommit();

}  // namespace rehearse
