// Roles that keep what they repeat once (Repeat in sim/schedule/schedule.h), written out, and
// with fewer copies.
//
// Copies are equal except for their position, so what holds for a few holds for all: checks and
// memory look at kCopiesThatShowAll of them.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/schedule/schedule.h"

namespace rehearse {

// One copy shows what an op has to do with the copy before it; the others lie on either side of it.
inline constexpr uint32_t kCopiesThatShowAll = 4;

bool HasRepeats(const Schedule& schedule);

// The role with an op and a buffer for each copy, and no repeats. Positions are then places; the
// timeline is the same.
Role Expanded(const Role& role);
Schedule Expanded(const Schedule& schedule);

// The repeats of the role, none of more than `copies` copies.
std::vector<Repeat> FewerCopies(const Role& role, uint32_t copies);
// The same for all roles at once: roles whose ops meet leave out equally many copies, so that the
// remaining ops still match. If roles have different numbers of repeats, so that leaving copies out
// could take different ops from them, nothing is left out.
std::vector<std::vector<Repeat>> FewerCopies(const Schedule& schedule, uint32_t copies);

// Copies in the middle of what a role repeats: positions [begin, end).
struct MiddleCopies {
  uint32_t begin = 0;
  uint32_t end = 0;
  uint32_t copies = 0;
  int32_t micro_batches = 0;
};
// What to leave out of the role, in order, to keep about `most` ops, where that is possible: each
// repeat keeps its share of copies, half at the start and half at the end, and at least four.
std::vector<MiddleCopies> MiddleCopiesOf(const Role& role, uint32_t most);

// Throws Error, naming the role, for repeats that are not in order, empty, beyond the ops or
// buffers, or whose ops wait for something further back than the pieces before the body.
void CheckRepeats(const Role& role);

}  // namespace rehearse
