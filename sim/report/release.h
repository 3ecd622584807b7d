// What each communication op was waiting for.
//
// A communication op begins when the last member of its rendezvous (the group of a collective, the
// two ends of a send) is ready, and that member was ready when its own last predecessor had ended.
// That predecessor released the op: for members that themselves were ready last it is one of their
// own ops, for all others an op of another rank. Pictures and traces draw an arrow from it.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine/timeline.h"
#include "sim/schedule/schedule.h"

namespace rehearse {

inline constexpr uint32_t kNotReleased = 0xffffffffu;

// For each span of the timeline the position of the span that released it; kNotReleased for compute
// ops, for ops that nothing came before, and on communicators of one rank. The schedule must be
// valid (sim/schedule/schedule_check.h). Takes n log n in the spans.
std::vector<uint32_t> ReleasedBy(const Schedule& schedule, const Timeline& timeline);

}  // namespace rehearse
