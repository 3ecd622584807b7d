// Roles that keep what they repeat once (Repeat in sim/schedule/schedule.h), written out, and
// with fewer copies.
//
// Copies are equal but for where they stand, so that what holds of a few holds of all: checks and
// memory look at kCopiesThatShowAll of them.
#pragma once

#include "sim/schedule/schedule.h"

namespace rehearse {

// One for what an op of a copy has to do with the copy before it, and others on either side.
inline constexpr uint32_t kCopiesThatShowAll = 4;

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

// Throws Error, naming the role, for repeats that are not in order, empty, beyond the ops or
// buffers, or whose ops wait for what lies further back than the piece before the body.
void CheckRepeats(const Role& role);

}  // namespace rehearse
