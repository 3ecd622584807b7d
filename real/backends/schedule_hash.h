// A fingerprint of what ranks are about to do, so that ranks that would do different things notice.
#pragma once

#include <string>

#include "sim/schedule/schedule.h"

namespace rehearse {

// 16 hexadecimal digits over communicators, roles, ops with everything in them, and buffers. They
// are the same on any machine.
std::string HashOf(const Schedule& schedule);

}  // namespace rehearse
