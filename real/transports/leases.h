// Numbers 0, 1, 2 and so on, dealt out to the ranks of a run, none twice: who has one does the
// piece of work of that number, so that quick ranks do more of them.
#pragma once

#include <cstdint>
#include <memory>

#include "real/transports/transport.h"

namespace rehearse {

class Leases {
 public:
  virtual ~Leases() = default;
  // The next one that no rank has. May be called from several threads.
  virtual uint64_t Next() = 0;
  // All ranks call it, when none of them calls Next() any more. Not where a rank is lost.
  virtual void Close() = 0;
};

// A counter in rank 0's memory that MPI's one-sided atomics advance: nobody serves it. All ranks
// call this; `transport` is that of JoinMpi (real/transports/transport_mpi.h).
std::unique_ptr<Leases> MakeMpiLeases(Transport& transport);

}  // namespace rehearse
