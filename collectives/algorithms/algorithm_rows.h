// The rows of the table of algorithms, in algorithm_*.cc, gathered in algorithm.cc; and what they
// share.
#pragma once

#include <span>
#include <vector>

#include "collectives/algorithms/algorithm.h"

namespace rehearse {

Algorithm RingRow();
Algorithm BothWaysRingRow();
Algorithm TreeRow();
Algorithm HalvingDoublingRow();
Algorithm DoublingRow();
Algorithm DirectRow();
Algorithm PairwiseRow();
Algorithm BruckRow();
Algorithm PxnRow();
Algorithm DeepEpRow();
Algorithm NvlsRow();
Algorithm NvlsTreeRow();
Algorithm PatRow();
Algorithm CollnetRow();
Algorithm HierarchicalRow();
Algorithm BucketRow();
Algorithm ChainRow();

// ---- Steps --------------------------------------------------------------------------------------

// The smallest k with 2^k >= n.
uint32_t CeilLog2(uint32_t n);

// A leg whose chunks have the same numbers on both sides.
Leg InPlace(uint32_t step, uint32_t steps, uint32_t from, uint32_t to, Combine combine,
            const Chunks& chunks);

// A pipeline of pieces along positions first, first + 1, ... around all p (broadcast, to the last)
// or the other way around it (reduce, to `first`): the legs at `position`.
void ChainSteps(const StepInput& input, uint32_t position, std::vector<Leg>* legs);

// All-gather by doubling distances (collectives/algorithms/algorithm_doubling.cc) from `step` on;
// if the kind is a barrier, its messages carry no data.
void DisseminationSteps(const StepInput& input, uint32_t position, uint32_t step,
                        std::vector<Leg>* legs);

uint32_t NoSwitches(const StepInput& input);
uint32_t ChunkOfEach(const StepInput& input);    // p
uint32_t ChunkOfPieces(const StepInput& input);  // as many as pieces

// ---- How ranks are arranged ---------------------------------------------------------------------

// One part: members as they are, along one axis.
Part AsTheyAre(const GroupOnMachine& group);

// The members of the group by machine, machines in the order in which the group meets them.
std::vector<std::vector<uint32_t>> MembersByMachine(const GroupOnMachine& group);

// The same, if all machines have equally many; else throws Error, naming two machines.
std::vector<std::vector<uint32_t>> MembersByEqualMachine(const GroupOnMachine& group,
                                                         const char* algorithm);

// ---- Closed forms -------------------------------------------------------------------------------

// The pace of a round. If there is one pace for all rounds, it is that one.
const Pace& PaceOf(std::span<const Pace> paces, size_t round);

// steps·(latency + bytes/rate)
Seconds RoundTime(const Pace& pace, double steps, Bytes bytes);

// m pieces over `hops` hops of a pipeline: m + hops - 1 steps, each with its own pace; `unit` is
// what a message at that pace carries, of all pieces together.
Seconds PipelineTime(uint32_t pieces, uint32_t hops, Bytes unit, std::span<const Pace> paces);

}  // namespace rehearse
