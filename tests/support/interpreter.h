// The interpreter: plays the steps of a collective on integers, to see what they do to data.
//
// Members are processes that only exchange messages. Each goes through its own steps
// (collectives/algorithms/steps.h); a seed decides the order among members, and the result does not
// depend on it. What is sent is counted. Sending a chunk that a member does not have, receiving
// another length than it expects, and waiting forever are faults of the algorithm: InternalError.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "collectives/algorithms/algorithm.h"

namespace rehearse {

// n counts elements as the kind does (sim/schedule/schedule.h); data need not divide evenly.
struct DataProblem {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  uint32_t members = 1;
  uint64_t elements = 0;
  uint32_t root = 0;
  std::vector<uint64_t> pair_elements;  // as Collective::pair_bytes; empty: equal blocks
};

using Data = std::vector<std::vector<int64_t>>;  // by member

struct Traffic {
  struct Between {
    uint64_t elements = 0;
    uint64_t messages = 0;  // one for each step with legs
  };
  std::map<std::pair<uint32_t, uint32_t>, Between> by_pair;  // members; p and above are switches
  uint32_t steps = 0;                                        // the most that any member had
};

// The element range that member `index` of `count` gets of n.
struct Range {
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t size() const { return end - begin; }
};
Range PartOf(uint64_t n, uint64_t index, uint64_t count);  // [index·n/count), [(index+1)·n/count)

// How many elements member i has for j in an all-to-all.
uint64_t PairElements(const DataProblem& problem, uint32_t from, uint32_t to);

// `inputs`: all-reduce, reduce-scatter, broadcast, reduce, send-receive: n of each member (only the
// root's counts in broadcast); all-gather: each member's block; all-to-all: its blocks one after
// another. Returns what each member has in the end: its block after reduce-scatter, nothing after
// reduce except at the root, else the whole. In `traffic`, switches that several parts share are
// kept apart by part.
Data Interpret(const Algorithm& algorithm, const std::vector<Part>& parts,
               const DataProblem& problem, const Data& inputs, uint64_t seed = 1,
               Traffic* traffic = nullptr);

}  // namespace rehearse
