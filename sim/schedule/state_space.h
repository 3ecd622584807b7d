// What a kernel of a state-space layer (Mamba-2: Dao and Gu 2024, arXiv 2405.21060) says about
// itself in its attributes (sim/schedule/kernel.h), and the sizes that follow.
//
// Heads come in groups that share B and C. A row has its columns group by group, so that ranks may
// have whole groups: z and x of the group's heads, B, C, and a number (dt) for each of its heads.
// What is convolved are x, B and C.
#pragma once

#include <cstdint>
#include <vector>

namespace rehearse {

// Positions in the attributes.
enum StateSpaceAttribute : uint8_t {
  kStateSequence,      // rows that depend on each other
  kStateGroups,        // on this rank
  kStateHeadsOfGroup,  // heads
  kStateHeadSize,      // columns of x
  kStateSize,          // columns of B and C
  kStateTaps,          // rows that a convolution sees, the last being its own
  kStateChunk,         // rows between which products take the place of the recurrence
  kStateAttributes,
};

struct StateSpacePart {
  uint64_t sequence = 0;
  uint64_t groups = 0;
  uint64_t heads_of_group = 0;
  uint64_t head = 0;
  uint64_t state = 0;
  uint64_t taps = 0;
  uint64_t chunk = 0;

  uint64_t Heads() const { return groups * heads_of_group; }
  uint64_t InnerOfGroup() const { return heads_of_group * head; }
  uint64_t MixedOfGroup() const { return InnerOfGroup() + 2 * state; }
  uint64_t ColumnsOfGroup() const { return 2 * InnerOfGroup() + 2 * state + heads_of_group; }
  uint64_t Inner() const { return groups * InnerOfGroup(); }      // columns of z, x and y
  uint64_t Mixed() const { return groups * MixedOfGroup(); }      // of x, B and C
  uint64_t Columns() const { return groups * ColumnsOfGroup(); }  // of all
  uint64_t ChunksOf(uint64_t rows) const {
    return rows / sequence * ((sequence + chunk - 1) / chunk);
  }
  // Floating-point operations for a row of the products that take the place of the recurrence: the
  // paper's section 6, with chunks of Q rows, states of N and heads of P columns. In a chunk C·Bᵀ
  // for each group (Q·N), and its product with x for each head (Q·P); states that chunks end with
  // and what those before a chunk add to its rows (N·P each). Twice as many as multiplications.
  double FlopsOfRow() const {
    const auto number = [](uint64_t value) { return static_cast<double>(value); };
    return 2 * (number(chunk) * number(state * groups) + number(chunk) * number(Inner()) +
                2 * number(state) * number(Inner()));
  }
};

inline StateSpacePart StateSpaceOf(const std::vector<double>& attributes) {
  const auto count = [&](StateSpaceAttribute i) { return static_cast<uint64_t>(attributes.at(i)); };
  return {count(kStateSequence), count(kStateGroups), count(kStateHeadsOfGroup),
          count(kStateHeadSize), count(kStateSize),   count(kStateTaps),
          count(kStateChunk)};
}

}  // namespace rehearse
