// Which schedules can be played: the rules of sim/schedule/schedule.h, checked before
// anything is lowered.
#pragma once

#include "sim/schedule/schedule.h"

namespace rehearse {

// Throws Error, naming the two ops in question, unless
//  - every stream, buffer, communicator, role and `after` entry exists, and `after` names earlier
//    ops;
//  - roots are members, sizes of pairs (one for each pair, none negative) agree with the bytes, and
//    barriers have none;
//  - the ranks of each group post the same sequence of collectives (kind, bytes, algorithm,
//    protocol, root, sizes of pairs) on it, and sends and receives pair up in order and size;
//  - the schedule finishes: no cycle of waits across ranks.
// Time grows with the number of ops and of distinct groups of roles, not of ranks, except that an
// apparent cycle is confirmed by walking all ranks.
void CheckSchedule(const Schedule& schedule);

}  // namespace rehearse
