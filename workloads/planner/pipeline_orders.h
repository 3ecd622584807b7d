// The orders in which pipelines work: who published them, and how long a rank idles.
//
// p ranks, m micro-batches, F, B and W the times of a stage's forward pass, its input gradients and
// its weight gradients. Idle times are for equal stages and messages that cost nothing. Pure
// functions; every list is one that CheckActions accepts.
#pragma once

#include <cstdint>
#include <vector>

#include "workloads/planner/actions.h"

namespace rehearse {

// ---- one stage per rank -------------------------------------------------------------------------

// One micro-batch after the other through all stages and back.
std::vector<Action> OneAfterAnother(uint32_t stages, uint32_t micro_batches);

// All forward, then all back (Huang et al. 2019, GPipe). A stage idles for p-1 of m+p-1 forward and
// backward passes.
std::vector<Action> GPipe(uint32_t stages, uint32_t micro_batches);

// Stage s keeps at most p-s micro-batches: it takes one back before it takes the next (Narayanan et
// al. 2021, PipeDream-Flush). Takes as long as GPipe.
std::vector<Action> OneForwardOneBackward(uint32_t stages, uint32_t micro_batches);
// For passes that go in pairs: the last stage takes one more forward pass at first, so that the two
// of each pair are of different micro-batches there, too, and every other stage two more than the
// next one, which takes what a pair has made in its own next pair. With one more, as above, each
// stage would wait a whole pair for its neighbour in every pair. Keeps 2(p-s) micro-batches.
std::vector<Action> OneForwardOneBackwardInPairs(uint32_t stages, uint32_t micro_batches);

// The same with separate weight gradients, those of stage s put off by s micro-batches, so that
// every stage keeps equally many (Qi et al. 2023, ZB-H1, arXiv 2401.10241): the last stages fill
// their waiting time with them. A stage idles for (p-1)·(F + B - W) instead of (p-1)·(F + B + W).
std::vector<Action> ZeroBubbleH1(uint32_t stages, uint32_t micro_batches);

// Times of a stage, in any unit.
struct StageTimes {
  double forward = 1;
  double input_gradient = 1;
  double weight_gradient = 1;
  double message = 0;
  // What share of a micro-batch's memory is kept from its input gradient until its weight gradient:
  // inputs of products and gradients of their results, but no attention scores.
  double kept_for_weights = 1;
};
// Weight gradients wherever a rank would wait, and memory for at most `most` micro-batches between
// their forward pass and their weight gradients (Qi et al. 2023, section 3.1: ZB-1p with p of them,
// ZB-2p with 2p). Takes the best of a few rules of thumb, the one whose longest rank is shortest.
std::vector<Action> ZeroBubbleByTimes(uint32_t stages, uint32_t micro_batches, uint32_t most,
                                      const StageTimes& times);
// ZB-H2: with 2p-1 of them and equal times, a rank does not idle at all between its first and last
// action; so nothing in a step may wait for all ranks.
std::vector<Action> ZeroBubbleH2(uint32_t stages, uint32_t micro_batches);

// ---- several stages per rank --------------------------------------------------------------------

// 1F1B over `a_rank` stages of each rank, p micro-batches at a time (Narayanan et al. 2021, section
// 2.2; Megatron-LM). A rank idles for (p-1)·(F + B + W)/a_rank, with F, B, W of all its stages.
// `micro_batches` is a multiple of p. On Looped(ranks, a_rank).
std::vector<Action> Interleaved(uint32_t ranks, uint32_t a_rank, uint32_t micro_batches);
// With one more forward pass at first, as above.
std::vector<Action> InterleavedInPairs(uint32_t ranks, uint32_t a_rank, uint32_t micro_batches);

// All micro-batches through one stage of a rank before the next (Lamy-Poirier 2023, arXiv
// 2211.05953). Takes as long, and keeps all of them. With one stage per rank it is GPipe. On
// Looped(ranks, a_rank).
std::vector<Action> BreadthFirst(uint32_t ranks, uint32_t a_rank, uint32_t micro_batches);

// ZB-V (Qi et al. 2024, arXiv 2405.15362): with F = B = W a rank does not idle, and keeps as much
// as 1F1B does on its first rank. At least 2p micro-batches. On VShaped(ranks).
std::vector<Action> ZeroBubbleV(uint32_t ranks, uint32_t micro_batches);

// DualPipe (DeepSeek-V3, arXiv 2412.19437, Fig. 5): micro-batches come in from both ends, on two
// copies of the model. Even `ranks`, an even number of micro-batches, at least 2p. On
// BothWays(ranks).
std::vector<Action> DualPipe(uint32_t ranks, uint32_t micro_batches);

// DualPipeV (DeepSeek, "cut-in-half"): the same on one copy that goes down and back up. At least 2p
// micro-batches. On VShaped(ranks).
std::vector<Action> DualPipeV(uint32_t ranks, uint32_t micro_batches);

}  // namespace rehearse
