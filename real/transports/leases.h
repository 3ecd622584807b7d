// Numbers 0, 1, 2 and so on, each given to only one rank of a run, which does the piece of work
// with that number, so that quick ranks do more.
#pragma once

#include <cstdint>
#include <memory>

#include "real/transports/transport.h"

namespace rehearse {

class Leases {
 public:
  virtual ~Leases() = default;
  // The next number that no rank has. May be called from several threads.
  virtual uint64_t Next() = 0;
  // All ranks call it once none of them calls Next() any more, but not if a rank is lost.
  virtual void Close() = 0;
};

// A counter in rank 0's memory that MPI's one-sided atomics advance, so that no rank has to serve
// it. All ranks call this; `transport` is that of JoinMpi (real/transports/transport_mpi.h).
std::unique_ptr<Leases> MakeMpiLeases(Transport& transport);

}  // namespace rehearse
