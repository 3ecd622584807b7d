// Ranks as processes that MPI connects (mpirun, srun with PMIx), watched by a roll call
// (real/transports/roll_call.h).
//
// Messages are MPI's, at most 2 GiB each. MPI's own collectives can be used instead of ours, to
// compare them.
#pragma once

#include <memory>

#include "real/transports/collective_run.h"
#include "real/transports/launcher.h"
#include "real/transports/transport.h"
#include "sim/schedule/schedule.h"

namespace rehearse {

// Whether this program was built with MPI.
bool HasMpi();

// Starts MPI; once per process. Throws Error if the program has no MPI, if a rank does not start
// within 8 seconds, or if MPI and the launcher disagree about the ranks.
std::unique_ptr<Transport> JoinMpi(const Launch& launch);

// MPI's collectives on the schedule's communicators. All ranks must call it. `transport` must be
// that of JoinMpi and outlive the result.
std::unique_ptr<Collectives> MakeMpiCollectives(Transport& transport, const Schedule& schedule);

}  // namespace rehearse
