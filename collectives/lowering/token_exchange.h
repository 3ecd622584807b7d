// What a dispatch of experts, or a combine, takes alone: tokens, not bytes, are given.
//
// By "deepep" tokens come once to a machine and once to a rank of it
// (collectives/algorithms/algorithm_deepep.cc); by any other algorithm of an all-to-all they are
// sent once for every expert. Loads are those of uniform routing in the mean.
#pragma once

#include <cstdint>

#include "collectives/algorithms/token_spread.h"
#include "collectives/lowering/trial.h"

namespace rehearse {

struct TokenExchange {
  TokenRouting routing;  // of a group of the trial
  Bytes token;           // one token on the wire (TokenBytes)
};

struct ExchangeTime {
  Seconds time;
  // Of what tokens come to, their own place among it, as DeepEP's tests count: copies to machines
  // where there are several, else copies to ranks. A flat exchange counts the copy of each expert.
  BytesPerSecond bandwidth;
};

// How many machines the trial's first group is on.
uint32_t MachinesOf(const Trial& trial, const Cluster& cluster);

// The trial is an all-to-all; its shares follow from the routing. `tokens` of each rank.
ExchangeTime TimeOf(const TokenExchange& exchange, uint64_t tokens, const Trial& trial,
                    const Cluster& cluster);

}  // namespace rehearse
