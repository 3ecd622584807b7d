// Fake NCCL between processes of one machine: all meet in the process that made the unique id.
//
// That process listens on a socket, whose path is in the id, and has a communicator for every rank
// of another process. Each call is a connection of its own: a request, with the data that the rank
// gives, and an answer with what it gets. When a process is gone, its connections end, and
// operations on its communicators are faults.
#pragma once

#include "tests/doubles/nccl_meeting.h"

namespace rehearse::gpu_double {

// What a unique id says.
struct Invitation {
  uint64_t number = 0;
  int process = 0;
  char path[64] = "";  // empty where the process does not listen
};
// Listens, if REHEARSE_DOUBLE_PROCESSES is set.
NcclUniqueId WriteInvitation(uint64_t number);
Invitation ReadInvitation(const NcclUniqueId& id);

int JoinElsewhere(const Invitation& invitation, size_t size, int rank, Communicator** made);
int SplitElsewhere(Communicator* parent, int color, int key, Communicator** made);
void MeetElsewhere(Communicator* communicator, uint64_t number, Operation* own);
void AbortElsewhere(Communicator* communicator);
int FaultElsewhere(Communicator* communicator);

}  // namespace rehearse::gpu_double
