// How long a dispatch to experts, or a combine, takes on its own, given tokens rather than bytes.
//
// With "deepep", a token goes once to a machine and once to each rank there
// (collectives/algorithms/algorithm_deepep.cc); with any other all-to-all algorithm it is sent once
// for every expert. Loads are the means of uniform routing.
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
  // Counts the copies of tokens, those that stay in place included, as DeepEP's tests do: copies to
  // machines if there are several, else copies to ranks. A flat exchange counts one copy for each
  // expert.
  BytesPerSecond bandwidth;
};

// How many machines the trial's first group is on.
uint32_t MachinesOf(const Trial& trial, const Cluster& cluster);

// The trial is an all-to-all; its shares follow from the routing. `tokens` is per rank.
ExchangeTime TimeOf(const TokenExchange& exchange, uint64_t tokens, const Trial& trial,
                    const Cluster& cluster);

}  // namespace rehearse
