// Max-min fair sharing as a pure function: how flows that contend for links share them.
//
// Flow v has rate r_v and takes a_lv·r_v of link l. The solution is the one where
//   sum_v a_lv·r_v <= C_l for every link, and every flow is held back by at least one full link on
//   which no other flow has a larger rate.
// It is found by progressive filling: all rates grow together; the link that fills first (smallest
// (C_l - frozen load) / sum of unfrozen multiplicities) freezes its flows, and links that fill at
// the same level freeze theirs together.
//
// To the last bit, the rates do not depend on the order of links or flows, nor on flows that share
// no link with them, even indirectly: each step of the filling adds up integers before it touches a
// link. So solving one component alone gives the same as solving everything. Flows with an empty
// use set get an infinite rate. Assumes 0 < C_l < infinity. Loads exceed capacities by rounding at
// most.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/engine/program.h"

namespace rehearse {

struct MaxMinProblem {
  std::span<const double> capacities;           // per link, bytes per second
  std::vector<std::span<const LinkUse>> flows;  // per flow, links by position in `capacities`
};

// One rate per flow, bytes per second.
std::vector<double> SolveMaxMin(const MaxMinProblem& problem);

// The same for callers that solve often: keeps its working memory, so that problems no larger than
// an earlier one allocate nothing. Not thread-safe. Cost: O(uses + rounds·log links), where a round
// is one level at which links fill.
class MaxMinSolver {
 public:
  // Flow i crosses uses[use_begin[i] .. use_begin[i+1]), links by position in `capacities`, no link
  // twice. Writes one rate per flow; `rates` has one entry fewer than `use_begin`.
  void Solve(std::span<const double> capacities, std::span<const uint32_t> use_begin,
             std::span<const LinkUse> uses, std::span<double> rates);

  // What each link carried in the last solution: sum_v a_lv·r_v.
  std::span<const double> loads() const { return load_; }
  // The level at which each link was full in the last solution: the rate of the flows that it held
  // back. 0 for a link that held back none.
  std::span<const double> full_levels() const { return full_level_; }

 private:
  struct Filling {
    double level;  // the common rate at which the link is full; never more than the true one
    uint32_t link;
  };
  struct FillsLater {
    bool operator()(const Filling& a, const Filling& b) const;
  };

  void SolveAlone(std::span<const double> capacities, std::span<const LinkUse> uses, double* rate);
  void IndexFlowsByLink(size_t link_count, std::span<const uint32_t> use_begin,
                        std::span<const LinkUse> uses);
  bool PopFullLink(double level, uint32_t* link);

  std::vector<double> load_;          // of frozen flows, per link
  std::vector<double> level_;         // where the link will be full, per link
  std::vector<double> full_level_;    // where the link was full, per link; 0: not
  std::vector<uint64_t> unfrozen_;    // sum of multiplicities of flows that still grow, per link
  std::vector<uint64_t> freezing_;    // sum of multiplicities frozen in this round, per link
  std::vector<uint32_t> touched_;     // links with freezing_ > 0
  std::vector<uint32_t> flow_begin_;  // link l is crossed by flow_[flow_begin_[l] .. [l+1])
  std::vector<uint32_t> flow_;
  std::vector<Filling> heap_;  // by level, then link; levels may be outdated (too low)
};

}  // namespace rehearse
