#include "sim/report/kept_ranks.h"

#include <algorithm>
#include <map>
#include <utility>

namespace rehearse {

std::vector<uint32_t> RanksToKeep(const Schedule& schedule, const Timeline& timeline,
                                  const std::vector<uint32_t>& asked, const KeepLimits& limits) {
  std::vector<uint32_t> stands_for(timeline.ranks, 0);
  for (uint32_t rank = 0; rank < timeline.ranks; ++rank)
    ++stands_for[timeline.RepresentativeOf(rank)];
  struct Candidate {
    bool is_first = false;  // of its role
    uint32_t stands_for = 0;
    uint32_t rank = 0;
  };
  std::vector<Candidate> candidates;
  std::vector<bool> has_rank(schedule.roles.size());
  for (uint32_t rank = 0; rank < timeline.ranks; ++rank) {
    if (stands_for[rank] == 0) continue;
    const uint32_t role = schedule.role_of_rank.at(rank);
    candidates.push_back({!has_rank[role], stands_for[rank], rank});
    has_rank[role] = true;
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) {
                     if (a.is_first || b.is_first) return a.is_first && !b.is_first;
                     return a.stands_for > b.stands_for;
                   });

  std::vector<uint32_t> kept = asked;
  size_t spans = 0;
  size_t ranks = 0;
  for (const Candidate& candidate : candidates) {
    const auto [first, last] = timeline.SpansOf(candidate.rank);
    spans += last - first;
    if (!candidate.is_first && (ranks >= limits.ranks || spans > limits.spans)) break;
    kept.push_back(candidate.rank);
    ++ranks;
  }
  std::sort(kept.begin(), kept.end());
  kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
  return kept;
}

std::vector<uint32_t> KeepOnly(const std::vector<uint32_t>& kept, const Schedule& schedule,
                               Timeline* timeline) {
  std::vector<bool> has_spans(timeline->ranks);
  std::map<uint32_t, uint32_t> first_of_role;
  for (const uint32_t rank : kept) {
    const uint32_t own = timeline->RepresentativeOf(rank);
    has_spans[own] = true;
    first_of_role.emplace(schedule.role_of_rank.at(rank), own);
  }
  std::vector<uint32_t> representative(timeline->ranks);
  std::vector<uint32_t> left_out;
  for (uint32_t rank = 0; rank < timeline->ranks; ++rank) {
    representative[rank] = timeline->RepresentativeOf(rank);
    if (has_spans[representative[rank]]) continue;
    left_out.push_back(rank);
    const auto other = first_of_role.find(schedule.role_of_rank.at(rank));
    if (other != first_of_role.end()) representative[rank] = other->second;
  }
  if (left_out.empty()) return left_out;
  std::erase_if(timeline->spans, [&](const Span& span) { return !has_spans[span.rank]; });
  timeline->representative = std::move(representative);
  return left_out;
}

}  // namespace rehearse
