#include "collectives/algorithms/token_spread.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "sim/base/error.h"

namespace rehearse {
namespace {

constexpr uint64_t kElementsOfScale = 128;
constexpr Bytes kScale(4);

// The mean number of `cells` equal cells in which a token's experts lie. The chain's state is how
// many groups and how many cells were met so far.
double MeanCells(const TokenRouting& routing, uint32_t cells) {
  const uint32_t limit = std::min(routing.limited_groups, routing.groups);
  const double experts = routing.experts;
  const double of_group = experts / routing.groups;
  const double of_cell = experts / cells;
  const uint32_t most = std::min(cells, routing.top_k);
  const size_t width = size_t{most} + 1;
  std::vector<double> chance((limit + size_t{1}) * width, 0.0);
  chance[0] = 1;
  for (uint32_t drawn = 0; drawn < routing.top_k; ++drawn) {
    std::vector<double> next(chance.size(), 0.0);
    for (uint32_t groups = 0; groups <= limit; ++groups) {
      for (uint32_t met = 0; met <= most; ++met) {
        const double here = chance[groups * width + met];
        if (here == 0) continue;
        const bool is_open = groups < limit;
        const double left = (is_open ? experts : groups * of_group) - drawn;
        // How many experts are left, by what each would be the first in.
        double of_new_group = 0;
        double of_new_group_and_cell = 0;
        double of_new_cell = 0;
        if (cells >= routing.groups) {  // cells lie within groups
          const double cells_of_group = static_cast<double>(cells) / routing.groups;
          if (is_open) of_new_group_and_cell = experts - groups * of_group;
          of_new_cell = (groups * cells_of_group - met) * of_cell;
        } else if (is_open) {  // groups lie within cells
          of_new_group_and_cell = experts - met * of_cell;
          of_new_group = met * of_cell - groups * of_group;
        }
        const auto add = [&](uint32_t more_groups, uint32_t more_cells, double count) {
          if (count <= 0) return;
          next[(groups + more_groups) * width + met + more_cells] += here * count / left;
        };
        add(1, 1, of_new_group_and_cell);
        add(1, 0, of_new_group);
        add(0, 1, of_new_cell);
        add(0, 0, left - of_new_group_and_cell - of_new_group - of_new_cell);
      }
    }
    chance = std::move(next);
  }
  double mean = 0;
  for (uint32_t groups = 0; groups <= limit; ++groups) {
    for (uint32_t met = 0; met <= most; ++met) mean += met * chance[groups * width + met];
  }
  return mean;
}

// The mean number of cells where experts are wanted unequally often.
double MeanUnequalCells(const TokenRouting& routing, uint32_t cells, double mean_if_equal) {
  const double passed_by = 1 - mean_if_equal / cells;
  if (passed_by <= 0 || routing.top_k == routing.experts) return mean_if_equal;
  const size_t of_cell = routing.experts / cells;
  const double share = static_cast<double>(routing.top_k) / routing.experts;
  const double exponent = std::log(passed_by) / (static_cast<double>(of_cell) * std::log1p(-share));
  double mean = 0;
  for (size_t first = 0; first < routing.experts; first += of_cell) {
    double all_passed_by = 1;
    for (size_t i = first; i < first + of_cell; ++i)
      all_passed_by *= std::max(0.0, 1 - routing.wanted[i]);
    mean += 1 - std::pow(all_passed_by, exponent);
  }
  return mean;
}

void CheckEven(uint32_t whole, const char* of, uint32_t parts, const char* into) {
  if (parts == 0 || whole % parts != 0)
    throw Error(fmt::format("{} {} cannot be dealt evenly to {} {}", whole, of, parts, into));
}

void CheckRouting(const TokenRouting& routing) {
  CheckEven(routing.experts, "experts", routing.ranks, "ranks");
  CheckEven(routing.ranks, "ranks", routing.machines, "machines");
  CheckEven(routing.experts, "experts", routing.groups, "groups");
  if (routing.limited_groups == 0 || routing.limited_groups > routing.groups)
    throw Error(fmt::format("a token goes to {} groups of experts, expected 1 to {}",
                            routing.limited_groups, routing.groups));
  const uint32_t reached = routing.experts / routing.groups * routing.limited_groups;
  if (routing.top_k == 0 || routing.top_k > reached)
    throw Error(fmt::format("a token goes to {} experts, expected 1 to {}, the most that it may",
                            routing.top_k, reached));
  if (routing.limited_groups == routing.groups) return;
  for (const uint32_t cells : {routing.ranks, routing.machines}) {
    const uint32_t larger = std::max(cells, routing.groups);
    if (larger % std::min(cells, routing.groups) != 0)
      throw Error(
          fmt::format("{} groups of experts lie across {} ranks or machines; expected a multiple "
                      "or a divisor of that",
                      routing.groups, cells));
  }
}

}  // namespace

TokenSpread SpreadOf(const TokenRouting& routing) {
  CheckRouting(routing);
  TokenRouting asked = routing;
  if (asked.limited_groups == asked.groups) asked.groups = asked.limited_groups = 1;
  TokenSpread spread{MeanCells(asked, asked.ranks), MeanCells(asked, asked.machines)};
  if (asked.wanted.empty()) return spread;
  CHECK_EQ(asked.wanted.size(), size_t{asked.experts});
  spread.ranks = MeanUnequalCells(asked, asked.ranks, spread.ranks);
  spread.machines = MeanUnequalCells(asked, asked.machines, spread.machines);
  return spread;
}

void SendOnce(const TokenRouting& routing, Collective* collective) {
  CHECK(collective->kind == CollectiveKind::kAllToAll);
  const TokenSpread spread = SpreadOf(routing);
  collective->algorithm = AlgorithmId::kDeepEp;
  collective->rank_share = spread.ranks / routing.top_k;
  collective->machine_share = spread.machines / routing.top_k;
}

Bytes TokenBytes(uint64_t hidden, DType dtype) {
  Bytes bytes = static_cast<double>(hidden) * SizeOf(dtype);
  if (dtype == DType::kFp8) {
    const uint64_t scales = (hidden + kElementsOfScale - 1) / kElementsOfScale;
    bytes += static_cast<double>(scales) * kScale;
  }
  return bytes;
}

}  // namespace rehearse
