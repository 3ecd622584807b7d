// Steps of many equal micro-batches, played with few of them where that comes to the same.
//
// A schedule that keeps micro-batches once (Repeat in sim/schedule/schedule.h) is lowered and
// played with as many copies fewer on every rank, and the engine says whether its state comes back
// (sim/engine/recurrence.h). If it does, the timeline is that of all copies, to the last bit, and
// so are the links' bytes. If not, nothing has been lost but the time.
//
// Only where micro-batches may stand for each other (scenarios/playing/alike_parts.h), in one step
// of one job, with one repeat a role of as many micro-batches each. And only where most ops are
// left out.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/engine/recurrence.h"
#include "sim/schedule/schedule.h"

namespace rehearse {

// How many copies of each repeat may be left out; 0 if that is not possible or not worthwhile.
uint32_t CopiesToLeaveOut(const Schedule& schedule);

// What each rank does, of a schedule that copies may be left out of.
std::vector<CopiedOps> CopiedOpsOf(const Schedule& schedule);

// While it exists, the schedule has so many copies fewer.
class FewCopies {
 public:
  FewCopies(Schedule* schedule, uint32_t left_out);
  ~FewCopies();
  FewCopies(const FewCopies&) = delete;
  FewCopies& operator=(const FewCopies&) = delete;

 private:
  Schedule& schedule_;
  uint32_t left_out_;
};

}  // namespace rehearse
