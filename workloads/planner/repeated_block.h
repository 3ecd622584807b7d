// Which part of a list of actions repeats, and whether the ops planned for it do.
//
// A schedule keeps equal micro-batches once (Repeat in sim/schedule/schedule.h). Whether they are
// equal is not reasoned out but seen: blocks of actions are planned until one gives the same ops as
// the block before it, up to the shifts that a Repeat allows. A block may be as short as one
// micro-batch: a stage that has many under way refers to as many blocks before it (Repeat::back).
// Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/schedule/schedule.h"
#include "workloads/planner/actions.h"

namespace rehearse {

// The most micro-batches that a stage has begun and not ended. Blocks of that many refer only to
// what their own ops or those of the previous block have made, and shorter ones to what is in as
// many more blocks before them.
uint32_t MostInFlight(const std::vector<Action>& own);

// Actions [begin, end) of one rank, in which each block of `length` is the previous one with
// micro-batch numbers higher by `micro_batches`.
struct PeriodicActions {
  uint32_t begin = 0;
  uint32_t end = 0;
  uint32_t length = 0;
  uint32_t micro_batches = 0;
  uint32_t blocks_back = 1;  // that the ops of one may refer to
};
// The longest such part, of blocks of `of_block` micro-batches (of each copy of the model); nothing
// if it has fewer than four.
std::optional<PeriodicActions> FindPeriod(const std::vector<Action>& own, uint32_t of_block,
                                          uint32_t copies = 1);

// Whether the ops and buffers of a repeat's body are those of the equally long piece before it,
// except for what differs between copies, and those of the pieces that it refers to except for what
// they refer to themselves.
bool IsLikePiecesBefore(const Role& role, const Repeat& repeat);

// Whether what comes after the body refers to nothing in the first of the pieces before it, of
// which a Repeat has no copy to name.
bool CanBeSaid(const Role& role, const Repeat& repeat);

}  // namespace rehearse
