// The clock of CPU ranks.
#pragma once

#include <cstdint>

namespace rehearse {

// It is monotonic, and the same for all processes of a machine.
int64_t NowNanoseconds();

}  // namespace rehearse
