// What one rank does, with every name of the Schedule resolved: where its operands are in which
// memory, which piece of the global arrays they are, and which ranks it meets in each communication
// op. It is plain data, the same for every backend.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "real/kernels/array_piece.h"
#include "real/transports/collective_run.h"
#include "sim/schedule/schedule.h"

namespace rehearse {

// Where a buffer's elements are: in its own memory or, for a view, in another's. Sizes are in
// elements.
struct BufferPlan {
  uint32_t memory = 0;  // position in RankPlan::memories
  uint64_t offset = 0;  // of the first element
  uint64_t rows = 0;
  uint64_t columns = 0;
  uint64_t stride = 0;
  std::optional<ArrayPiece> place;

  uint64_t elements() const { return rows * columns; }
  bool IsDense() const { return stride == columns || rows <= 1; }
};

struct MemoryPlan {
  BufferId buffer;  // whose memory it is
  uint64_t elements =
      0;  // room, including the padding that collectives need beyond the buffer's end
};

struct OpPlan {
  uint32_t communicator = 0;  // of communication ops, as everything below
  uint32_t tag = 0;
  uint32_t peer = 0;  // rank; sends and receives
  // Index of the collective on the communicator, or of the message to (from) the peer.
  uint32_t meeting = 0;
};

struct RankPlan {
  const Schedule* schedule = nullptr;
  const Role* role = nullptr;
  uint32_t rank = 0;
  std::vector<BufferPlan> buffers;  // by BufferId
  std::vector<MemoryPlan> memories;
  std::vector<OpPlan> ops;                   // by OpId
  std::vector<std::optional<Group>> groups;  // by communicator, those that the rank is in
};

// The schedule must have passed CheckSchedule and outlive the plan. Throws Error, naming op and
// buffer, if the schedule does not say what to compute or on which data, or if a view is outside
// its buffer.
RankPlan PlanRank(const Schedule& schedule, uint32_t rank);

// By buffer: the array on the device that host copies bring to it or take from it, for buffers on
// the host; else itself.
std::vector<BufferId> HomesOf(const Role& role);

// Whether the buffer is itself an array of the network, with a name that all strategies know: it
// has a region, and is not a view of a buffer that has one.
bool IsNamedArray(const RankPlan& plan, BufferId id);

// The named arrays that a buffer is or consists of: itself, or its views (biases are stored one
// after the other).
std::vector<BufferId> NamedArraysOf(const RankPlan& plan, BufferId id);

// What the array is called in every strategy: ZeRO's "updated share of X" is X, its "gradient shard
// of X" the "gradient of X".
std::string ArrayName(const RankPlan& plan, BufferId id);

// How many moments the state of this optimizer has; 0 for other kernels.
uint64_t MomentsOf(Kernel kernel);
// The positions of the ops that take gradients into these moments (but not of those that do it
// again), which say what parameters, gradients and optimizer state are.
std::vector<uint32_t> OptimizerOps(const Role& role);

// The same schedule with all ops of a role on one stream, in list order: for ranks without a spare
// core for communication.
Schedule OnOneStream(const Schedule& schedule);
// The same if it finishes like that; nothing if a rank that sends must receive at the same time.
std::optional<Schedule> BlockingForm(const Schedule& schedule);
// Counts the streams of the role that has most of them; one that only waits does not count.
uint32_t StreamsInUse(const Schedule& schedule);

}  // namespace rehearse
