// A block of GPU threads on one thread of the CPU: each has a stack of its own, and they take turns
// where they wait for each other.
//
// The blocks of a grid run one after the other, so that what only works because blocks happen to
// run together does not work here. Between two waits a thread runs alone, in the order of numbers;
// what another has written in between is seen, as if by luck: a missing barrier is not found.
#pragma once

#include <functional>
#include <string>

#include "real/cuda/libraries.h"

namespace rehearse::gpu_double {

// Runs `body` on every thread of every block. Returns what went wrong: threads that wait for ones
// that have ended.
std::string RunGrid(Dim3 grid, Dim3 block, const std::function<void()>& body);

// Where the body finds itself; and what it may call. One grid runs at a time.
struct Place {
  unsigned x = 0;
  unsigned y = 0;
  unsigned z = 0;
};
extern Place thread_place;
extern Place block_place;
extern Place block_size;
extern Place grid_size;
void WaitForBlock();                             // __syncthreads
float FromLane(float value, unsigned lane_xor);  // __shfl_xor_sync of all lanes

}  // namespace rehearse::gpu_double
