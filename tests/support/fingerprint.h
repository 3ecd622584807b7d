// One number for everything that a schedule says, for tests that compare it with a recorded one.
#pragma once

#include <string>

#include "sim/schedule/schedule.h"

namespace rehearse {

std::string FingerprintOf(const Schedule& schedule);

}  // namespace rehearse
