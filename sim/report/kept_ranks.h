// Which ranks of a step are written to files: one of each class of ranks that do the same, unless
// there are too many or more are asked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/engine/timeline.h"
#include "sim/schedule/schedule.h"

namespace rehearse {

struct KeepLimits {
  size_t ranks = 16;
  size_t spans = 400'000;  // of all kept ranks together
};

// Ranks, ascending. Of the ranks that have spans of their own (Timeline::representative) the first
// of each role, whatever the limits say, so that every role counts; then those that stand for most
// ranks, then the lowest, as far as the limits go; and `asked`, in any case.
std::vector<uint32_t> RanksToKeep(const Schedule& schedule, const Timeline& timeline,
                                  const std::vector<uint32_t>& asked,
                                  const KeepLimits& limits = {});

// Removes the spans of all other ranks, except of those that represent kept ones. A rank that loses
// its spans (or those that it shared) is from now on represented by the first kept rank of its
// role, where there is one. Returns these ranks, ascending.
std::vector<uint32_t> KeepOnly(const std::vector<uint32_t>& kept, const Schedule& schedule,
                               Timeline* timeline);

}  // namespace rehearse
