// Where tokens lie when several ranks share sequences (context parallelism).
//
// Each of `parts` ranks has an equal part of every sequence: the p-th run of its tokens, or,
// balanced, the p-th and the p-th last of 2·parts runs, so that a causal mask leaves as much work
// to each ("zig-zag" of Megatron-LM and Ring Flash Attention). Rows of an array over all these
// ranks are numbered as they are held: block after block (what the axes outside this cut leave
// together), within a block part after part, within a part sequence after sequence, token after
// token. nvcc reads this too: plain C++17.
#pragma once

#include <cstdint>

namespace rehearse {

struct SequenceOrder {
  uint64_t sequence = 0;  // tokens
  uint64_t parts = 1;     // 1: rows are numbered sequence after sequence, as everywhere else
  uint64_t block = 0;     // rows; a multiple of `sequence`
  bool balanced = false;

  // How many tokens of a sequence each part has.
  constexpr uint64_t Length() const { return sequence / parts; }
  // Which token of its sequence is the part's index-th.
  constexpr uint64_t TokenOf(uint64_t part, uint64_t index) const {
    if (!balanced) return part * Length() + index;
    const uint64_t half = Length() / 2;
    return index < half ? part * half + index : (2 * parts - 1 - part) * half + (index - half);
  }
  // The number of a row where sequences are numbered one after the other.
  constexpr uint64_t InSequences(uint64_t row) const {
    if (parts <= 1) return row;
    const uint64_t of_part = block / parts;
    const uint64_t in_block = row % block;
    const uint64_t in_part = in_block % of_part;
    return row - in_block + in_part / Length() * sequence +
           TokenOf(in_block / of_part, in_part % Length());
  }

  friend constexpr bool operator==(const SequenceOrder& a, const SequenceOrder& b) {
    return a.sequence == b.sequence && a.parts == b.parts && a.block == b.block &&
           a.balanced == b.balanced;
  }
};

}  // namespace rehearse
