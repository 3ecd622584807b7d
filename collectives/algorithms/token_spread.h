// How many machines and ranks a token goes to when several experts want it.
//
// Experts are dealt evenly to the ranks in order, ranks evenly to machines. Routing is uniform,
// every expert wanted as often as every other, unless it is said how often each is wanted. With
// group-limited routing the experts form equal groups, in order too, and a token goes to experts of
// at most so many groups: those of its best experts, as DeepSeek-V2 picks them (arXiv 2405.04434,
// section 2.2.2; DeepSeek-V3 takes the groups with the highest sum over their best few experts,
// which differs little).
//
// Going down a token's list of experts, each next one is drawn at random from those that are left,
// and skipped if its group is not among the first so many. So what has been met after the k-th that
// counts follows from what was met before it: a Markov chain over (groups met, ranks met), whose
// means are exact.
//
// Where experts are wanted unequally often, expert e with the chance w_e, a token passes a machine
// (or rank) by with the chance of all of its experts being passed by, (product of 1 - w_e)^g. The
// exponent g is what makes this exact where all are wanted alike: it stands for the other
// experts that the token does want. That is an approximation: up to 1 % for w_e up to 0.5
// (TokenSpreadTest draws tokens).
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/quantity.h"
#include "sim/schedule/schedule.h"

namespace rehearse {

struct TokenRouting {
  uint32_t experts = 0;  // that tokens are routed to: without shared ones
  uint32_t top_k = 0;
  uint32_t ranks = 0;  // that experts are dealt to
  uint32_t machines = 0;
  uint32_t groups = 1;          // of experts
  uint32_t limited_groups = 1;  // that a token may go to; if all, there is no limit
  // How often a token wants each expert, at most once; their sum is top_k. Empty: all alike.
  std::vector<double> wanted = {};
};

// Where one token goes, in the mean.
struct TokenSpread {
  double ranks = 0;
  double machines = 0;
};

// Throws Error if experts cannot be dealt or grouped evenly, there are fewer than a token wants, or
// neither groups nor ranks (or machines) lie within the other.
TokenSpread SpreadOf(const TokenRouting& routing);

// Sets the shares of an all-to-all's bytes that deepep sends (Collective::rank_share,
// machine_share). Its blocks must hold a token once for every expert.
void SendOnce(const TokenRouting& routing, Collective* collective);

// What a token takes on the wire: its elements and, in 8 bits, a scale of 4 bytes for each 128 of
// them (DeepSeek-V3, section 3.3.2).
Bytes TokenBytes(uint64_t hidden, DType dtype);

}  // namespace rehearse
