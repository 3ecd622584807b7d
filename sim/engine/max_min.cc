#include "sim/engine/max_min.h"

#include <algorithm>
#include <limits>

#include "sim/base/error.h"

namespace rehearse {
namespace {

constexpr double kStillGrowing = std::numeric_limits<double>::infinity();

}  // namespace

bool MaxMinSolver::FillsLater::operator()(const Filling& a, const Filling& b) const {
  return a.level != b.level ? a.level > b.level : a.link > b.link;
}

void MaxMinSolver::Solve(std::span<const double> capacities, std::span<const uint32_t> use_begin,
                         std::span<const LinkUse> uses, std::span<double> rates) {
  CHECK_EQ(rates.size() + 1, use_begin.size());
  const size_t link_count = capacities.size();
  load_.assign(link_count, 0.0);
  full_level_.assign(link_count, 0.0);
  if (rates.size() == 1) {
    SolveAlone(capacities, uses, rates.data());
    return;
  }
  IndexFlowsByLink(link_count, use_begin, uses);
  level_.resize(link_count);
  freezing_.assign(link_count, 0);
  std::fill(rates.begin(), rates.end(), kStillGrowing);

  heap_.clear();
  for (uint32_t link = 0; link < link_count; ++link) {
    if (unfrozen_[link] == 0) continue;
    level_[link] = capacities[link] / static_cast<double>(unfrozen_[link]);
    heap_.push_back({level_[link], link});
  }
  std::make_heap(heap_.begin(), heap_.end(), FillsLater());

  while (!heap_.empty()) {
    const double level = heap_.front().level;
    touched_.clear();
    uint32_t full;
    while (PopFullLink(level, &full)) {
      full_level_[full] = level;
      for (uint32_t i = flow_begin_[full]; i < flow_begin_[full + 1]; ++i) {
        const uint32_t flow = flow_[i];
        if (rates[flow] != kStillGrowing) continue;
        rates[flow] = level;
        for (uint32_t j = use_begin[flow]; j < use_begin[flow + 1]; ++j) {
          const uint32_t link = uses[j].link.index();
          if (freezing_[link] == 0) touched_.push_back(link);
          freezing_[link] += uses[j].multiplicity;
        }
      }
    }
    for (const uint32_t link : touched_) {
      load_[link] += level * static_cast<double>(freezing_[link]);
      unfrozen_[link] -= freezing_[link];
      freezing_[link] = 0;
      if (unfrozen_[link] == 0) continue;
      // Freezing some flows early leaves the others more, never less; rounding must not break that,
      // since the heap relies on levels that only grow.
      const double left = capacities[link] - load_[link];
      level_[link] = std::max(level_[link], left / static_cast<double>(unfrozen_[link]));
    }
  }
}

// A flow that nothing contends with, as most of a folded program are, grows until its first link is
// full.
void MaxMinSolver::SolveAlone(std::span<const double> capacities, std::span<const LinkUse> uses,
                              double* rate) {
  const auto level_of = [&](const LinkUse& use) {
    return capacities[use.link.index()] / static_cast<double>(use.multiplicity);
  };
  *rate = kStillGrowing;
  for (const LinkUse& use : uses) *rate = std::min(*rate, level_of(use));
  for (const LinkUse& use : uses) {
    load_[use.link.index()] = *rate * static_cast<double>(use.multiplicity);
    if (level_of(use) == *rate) full_level_[use.link.index()] = *rate;
  }
}

void MaxMinSolver::IndexFlowsByLink(size_t link_count, std::span<const uint32_t> use_begin,
                                    std::span<const LinkUse> uses) {
  unfrozen_.assign(link_count, 0);
  flow_begin_.assign(link_count + 1, 0);
  for (const LinkUse& use : uses) {
    unfrozen_[use.link.index()] += use.multiplicity;
    ++flow_begin_[use.link.index()];
  }
  // flow_begin_[l] becomes the end of link l's flows, and their begin once they are filled in
  // backwards.
  for (size_t link = 1; link <= link_count; ++link) flow_begin_[link] += flow_begin_[link - 1];
  flow_.resize(uses.size());
  for (size_t flow = use_begin.size() - 1; flow-- > 0;) {
    for (uint32_t i = use_begin[flow]; i < use_begin[flow + 1]; ++i) {
      flow_[--flow_begin_[uses[i].link.index()]] = static_cast<uint32_t>(flow);
    }
  }
}

// Takes the next link that is full at exactly `level` off the heap; false when there is none left.
// Corrects links whose level has grown since they were pushed, and drops those without growing
// flows.
bool MaxMinSolver::PopFullLink(double level, uint32_t* link) {
  while (!heap_.empty() && heap_.front().level == level) {
    std::pop_heap(heap_.begin(), heap_.end(), FillsLater());
    *link = heap_.back().link;
    if (unfrozen_[*link] == 0) {
      heap_.pop_back();
    } else if (level_[*link] != level) {
      heap_.back().level = level_[*link];
      std::push_heap(heap_.begin(), heap_.end(), FillsLater());
    } else {
      heap_.pop_back();
      return true;
    }
  }
  return false;
}

std::vector<double> SolveMaxMin(const MaxMinProblem& problem) {
  std::vector<uint32_t> use_begin = {0};
  std::vector<LinkUse> uses;
  for (const std::span<const LinkUse> flow : problem.flows) {
    uses.insert(uses.end(), flow.begin(), flow.end());
    use_begin.push_back(static_cast<uint32_t>(uses.size()));
  }
  std::vector<double> rates(problem.flows.size());
  MaxMinSolver().Solve(problem.capacities, use_begin, uses, rates);
  return rates;
}

}  // namespace rehearse
