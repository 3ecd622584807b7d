// Ranks as processes that MPI connects (mpirun, srun with PMIx), watched by a roll call
// (real/transports/roll_call.h).
//
// Messages are MPI's, at most 2 GiB each. The library's own collectives can be used in place of
// ours, to compare them.
#pragma once

#include <memory>

#include "real/transports/collective_run.h"
#include "real/transports/launcher.h"
#include "real/transports/transport.h"
#include "sim/schedule/schedule.h"

namespace rehearse {

// Whether this program was built with MPI.
bool HasMpi();

// Starts MPI; once in a process. Throws Error when the program has no MPI, when a rank does not
// start within 8 seconds, or when MPI knows of other ranks than the launcher says.
std::unique_ptr<Transport> JoinMpi(const Launch& launch);

// MPI's collectives on the schedule's communicators. All ranks must call it. `transport` must be
// that of JoinMpi and outlive the result.
std::unique_ptr<Collectives> MakeMpiCollectives(Transport& transport, const Schedule& schedule);

}  // namespace rehearse
