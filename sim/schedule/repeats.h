// Roles that keep what they repeat once (Repeat in sim/schedule/schedule.h), written out, and
// with fewer copies.
//
// Copies are equal but for where they stand, so that what holds of a few holds of all: checks and
// memory look at kCopiesThatShowAll of them.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/schedule/schedule.h"

namespace rehearse {

// One for what an op of a copy has to do with the copy before it, and others on either side.
inline constexpr uint32_t kCopiesThatShowAll = 4;

// Where a position is kept: in a repeat or after it (its number counts those that lie before), and
// which copy it is.
struct KeptOp {
  uint32_t op = 0;
  uint32_t copy = 0;
  size_t repeats_before = 0;   // wholly
  uint32_t copied_before = 0;  // ops that those add
};
KeptOp KeptAt(const std::vector<Repeat>& repeats, uint32_t position);

bool HasRepeats(const Schedule& schedule);

// With an op and a buffer for each copy and no repeats. Positions are then places; the
// timeline is the same.
Role Expanded(const Role& role);
Schedule Expanded(const Schedule& schedule);

// With no repeat of more than `copies` copies.
Role WithFewerCopies(const Role& role, uint32_t copies);
// The same for all roles at once: those that meet leave out equally many, so that as many ops
// meet as do. Nothing where roles repeat differently, and leaving out could take different
// ops from them.
Schedule WithFewerCopies(const Schedule& schedule, uint32_t copies);

// Copies in the middle of what a role repeats: positions [begin, end).
struct MiddleCopies {
  uint32_t begin = 0;
  uint32_t end = 0;
  uint32_t copies = 0;
  int32_t micro_batches = 0;
};
// What to leave out of the role, in order, for some `most` ops to be left, where that is possible:
// each repeat keeps its share of copies, half of them first and half last, and four at least.
std::vector<MiddleCopies> MiddleCopiesOf(const Role& role, uint32_t most);

// Throws Error, naming the role, for repeats that are not in order, empty, beyond the ops or
// buffers, or whose ops wait for what lies further back than the piece before the body.
void CheckRepeats(const Role& role);

}  // namespace rehearse
