// A schedule as GOAL (Group Operation Assembly Language: Hoefler, Siebert, Lumsdaine, ICPP 2009),
// the text that LogGOPSim and htsim read (by txt2bin), and that schedgen and ATLAHS write: what
// every rank computes, sends and receives, and what waits for what. Collectives are written as the
// messages of their algorithm.
//
//   num_ranks N
//   rank R {
//   lI: calc NANOSECONDS cpu STREAM          compute; 0: where an op begins or ends
//   lI: send BYTESb to R tag T cpu STREAM
//   lI: recv BYTESb from R tag T cpu STREAM
//   lI requires lJ                           begins when that has ended
//   lI irequires lJ                          begins when that has begun
//   }
//
// An op of the schedule begins when everything that it is after, and the op before it on its
// stream, have ended, and a rank begins a step of a collective when its messages of earlier steps
// have. GOAL has no words for the following, which is lost: which links a message takes, a
// library's start-up time and what it adds to the wire, compute slowed down by communication, and
// fractions of a nanosecond. A message of no bytes gets one.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/lowering/transfers.h"
#include "sim/schedule/schedule.h"
#include "topology/fabrics/router.h"

namespace rehearse {

struct GoalText {
  std::string text;
  uint64_t computations = 0;
  uint64_t messages = 0;  // each is sent and received
};

// How long a compute op takes on the rank's device.
using ComputeTimes = std::function<Seconds(uint32_t rank, const Op& op)>;

inline constexpr size_t kLargestGoal = size_t{1} << 30;  // bytes

// The schedule must have passed CheckSchedule. Throws Error for switches that add (NVLS, SHARP),
// for which GOAL has no word, and for a text of more than kLargestGoal.
GoalText WriteGoal(const Schedule& schedule, Router& router, uint32_t channels,
                   const NcclSettings& nccl, const ComputeTimes& time);

// What others wrote becomes a schedule in which computing takes as long as it says, one thing at a
// time on each `cpu` of a rank, and messages take the time that the simulation gives them, buffered
// as in LogGOPSim: a send does not wait for its receive. What a message costs a cpu, and which NIC
// it takes, is the simulation's as well. `name` is the file's in messages. Throws Error with line
// or rank; appends to `remarks`.
Schedule ReadGoal(std::string_view text, const std::string& name,
                  std::vector<std::string>* remarks);
// Whether the text begins as GOAL does.
bool IsGoal(std::string_view text);

}  // namespace rehearse
