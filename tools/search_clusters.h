// --clusters of `rehearse search` and of the page that it makes.
#pragma once

#include <string>

#include "sim/base/json_document.h"

namespace rehearse {

// An axis of clusters in place of those that the search may have, and the best of each.
void SetClusters(const std::string& text, JsonDocument* document);

}  // namespace rehearse
