// An algorithm as steps: who sends which chunks of its data to whom, and whether they are added
// there.
//
// Everything that plays a collective follows these steps: the interpreter on integers
// (tests/support/interpreter.h), the lowering to flows (collectives/lowering/rounds.h) and
// executors on real memory. They know positions in a group and chunks of data, but neither machines
// nor bytes, and are made member by member: working out what one member does takes time only for
// its own messages.
//
// Meaning. In each step a member first reads all that it sends, then takes in all that it receives.
// It begins a step when its messages of earlier steps, sent and received, are done; others may be
// ahead or behind. The k-th message sent from a to b is the k-th received. A receiver needs no room
// for messages of later steps: in simulated time a message begins when both its ends have reached
// its step. Around a ring (collectives/lowering/lower.h) the sender need not wait for the receiver.
//
// Data. A member's space is an array of chunks; what a chunk is depends on the kind. Of n elements:
//   all-reduce, broadcast, reduce  chunk c of C is the c-th part of the buffer, in place
//   all-gather, reduce-scatter     chunk i·p + c is piece i of the block of BlockOf(c), in place
//   all-to-all                     chunk j < p is what goes to position j, chunk p + j is what has
//                                  come from there; further ones are scratch
//   send-receive                   chunk 0 goes to the next member, chunk 1 comes from the previous
//   barrier                        messages without chunks
// Parts that do not divide evenly differ by one element: [c·n/C], [(c+1)·n/C).
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/quantity.h"
#include "sim/schedule/schedule.h"

namespace rehearse {

struct Algorithm;

// What an algorithm works on. Positions are numbered as the algorithm arranges its ranks: around a
// ring, along the axes of a grid.
struct StepInput {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  // The extents of a grid of positions, first axis fastest; one axis if it is not a grid.
  std::vector<uint32_t> extents;
  uint32_t root = 0;      // a position; broadcast, reduce
  uint32_t pieces = 1;    // pipelines: how many pieces follow each other
  uint32_t variant = 0;   // which of several different parts: the second tree, the first axis
  bool reversed = false;  // the other way around

  uint32_t ranks() const {
    uint32_t product = 1;
    for (const uint32_t extent : extents) product *= extent;
    return product;
  }
};

// The chunks of a message in each step: in the i-th step base + (first + i·stride + k·spacing) mod
// cycle, k < count.
struct Chunks {
  uint32_t base = 0;
  uint32_t cycle = 1;
  uint32_t first = 0;
  uint32_t count = 1;
  int32_t stride = 0;
  int32_t spacing = 1;

  uint32_t At(uint32_t i, uint32_t k) const {
    const int64_t place = int64_t{first} + int64_t{i} * stride + int64_t{k} * spacing;
    const int64_t modulus = cycle;
    return base + static_cast<uint32_t>((place % modulus + modulus) % modulus);
  }
};

enum class Combine : uint8_t { kCopy, kAdd };

// `from` sends `to` one message per step, in this many steps in a row. Legs with the same step,
// sender and receiver are pieces of one message; those with the same position as both copy within
// its memory.
struct Leg {
  uint32_t step = 0;  // the first
  uint32_t steps = 1;
  uint32_t from = 0;  // positions; p and above are switches that add and multicast
  uint32_t to = 0;
  Combine combine = Combine::kCopy;
  Chunks read;   // in the sender's space
  Chunks write;  // in the receiver's space; as many
};

// Where a chunk of an all-to-all comes from and goes to; for all-gather and reduce-scatter, whose
// it is (both are the same).
struct Block {
  uint32_t from = 0;
  uint32_t to = 0;
};

// How many chunks a member's space has.
uint32_t ChunkCount(const Algorithm& algorithm, const StepInput& input);
// CHECKs that the kind has blocks: all-gather, reduce-scatter, all-to-all.
Block BlockOf(const Algorithm& algorithm, const StepInput& input, uint32_t position,
              uint32_t chunk);

// The legs that `position` sends or receives, by step.
std::vector<Leg> StepsOf(const Algorithm& algorithm, const StepInput& input, uint32_t position);

// The same, one message at a time: legs of one step each, by step, in the order in which they are
// sent (or received).
std::vector<Leg> MessagesOf(const Algorithm& algorithm, const StepInput& input, uint32_t position);

}  // namespace rehearse
