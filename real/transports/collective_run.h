// Runs one collective on real memory, by our own steps (collectives/algorithms/steps.h) over a
// Transport.
//
// All ranks of the group call it with the same kind, sizes and tag. Buffers are dense; what they
// hold follows sim/schedule/schedule.h:
//   all-reduce, broadcast, reduce   `from` and `to` are equally long; `to` may be `from`
//   all-gather                      `to` has room for p times `from`
//   reduce-scatter                  `from` has p times `to`
//   all-to-all                      equally long, p equal blocks, not the same memory;
//                                   or blocks as pair_bytes says, one after the other
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "real/transports/transport.h"
#include "sim/schedule/schedule.h"

namespace rehearse {

// The group of one rank.
struct Group {
  std::vector<uint32_t> ranks;  // by member
  uint32_t member = 0;          // this rank's position

  uint32_t size() const { return static_cast<uint32_t>(ranks.size()); }
};
// Throws Error if the rank is in no group of the communicator.
Group GroupOf(const Communicator& communicator, uint32_t rank);

template <typename T>
struct CollectiveCall {
  const Collective* collective = nullptr;
  const Group* group = nullptr;  // of collective->communicator
  uint32_t tag = 0;
  const T* from = nullptr;
  uint64_t from_elements = 0;
  T* to = nullptr;
  uint64_t to_elements = 0;
};

template <typename T>
void RunCollective(Transport& transport, const CollectiveCall<T>& call);

// Runs the collectives of a step: as our own steps, or as the collectives of a library. May be used
// from several threads.
class Collectives {
 public:
  virtual ~Collectives() = default;
  virtual const char* name() const = 0;  // "own", "mpi"
  virtual void Run(const CollectiveCall<float>& call) = 0;
  virtual void Run(const CollectiveCall<double>& call) = 0;
};
std::unique_ptr<Collectives> MakeOwnCollectives(Transport& transport);

}  // namespace rehearse
