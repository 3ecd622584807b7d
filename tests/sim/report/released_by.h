// What released each span of an unfolded timeline, by positions: for tests.
#pragma once

#include <algorithm>
#include <vector>

#include "sim/report/release.h"

namespace rehearse {

inline constexpr uint32_t kNotReleased = 0xffffffffu;

inline std::vector<uint32_t> ReleasedBy(const Schedule& schedule, const Timeline& timeline) {
  Releases releases(schedule, timeline);
  std::vector<uint32_t> released_by;
  for (const Span& span : timeline.spans) {
    const auto source = releases.Of({span.rank, span.op});
    const auto at = std::find_if(timeline.spans.begin(), timeline.spans.end(), [&](const Span& s) {
      return source && s.rank == source->rank && s.op == source->op;
    });
    released_by.push_back(at == timeline.spans.end()
                              ? kNotReleased
                              : static_cast<uint32_t>(at - timeline.spans.begin()));
  }
  return released_by;
}

}  // namespace rehearse
