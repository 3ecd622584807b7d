// The kinds of files that Rehearse reads and writes, with the tables of their keys.
#pragma once

#include <vector>

#include "sim/base/shape_print.h"

namespace rehearse {

const std::vector<DocumentShape>& Documents();

}  // namespace rehearse
