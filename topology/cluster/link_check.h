// What a link's figures must be; for the files of this room.
#pragma once

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/units.h"
#include "topology/cluster/figures.h"

namespace rehearse {

// `name` makes the link's name for a message.
template <typename NameOf>
void CheckLink(const LinkFigures& link, NameOf name) {
  if (!(link.bandwidth.value() > 0) || !(link.bandwidth <= kMostBandwidth))
    throw Error(fmt::format("link {} has bandwidth {} B/s, expected more than 0 and at most {}",
                            name(), link.bandwidth.value(), kMostBandwidth.value()));
  if (!(link.efficiency > 0 && link.efficiency <= 1))
    throw Error(fmt::format("link {} has efficiency {}, expected above 0 and at most 1", name(),
                            link.efficiency));
  if (link.bandwidth * link.efficiency < kLeastBandwidth)
    throw Error(
        fmt::format("link {} reaches {} B/s ({} B/s at efficiency {}), expected at least {}",
                    name(), (link.bandwidth * link.efficiency).value(), link.bandwidth.value(),
                    link.efficiency, kLeastBandwidth.value()));
  if (!(link.latency >= Seconds(0) && link.latency <= kLongestLatency))
    throw Error(fmt::format("link {} has latency {} s, expected 0 to {} s", name(),
                            link.latency.value(), kLongestLatency.value()));
}

}  // namespace rehearse
