#include "collectives/algorithms/algorithm.h"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "collectives/algorithms/algorithm_rows.h"
#include "sim/base/error.h"

namespace rehearse {
namespace {

const std::vector<Algorithm>& Table() {
  static const std::vector<Algorithm> table = {
      RingRow(),     BothWaysRingRow(), TreeRow(),         HalvingDoublingRow(),
      DoublingRow(), DirectRow(),       PairwiseRow(),     BruckRow(),
      PxnRow(),      DeepEpRow(),       NvlsRow(),         NvlsTreeRow(),
      CollnetRow(),  PatRow(),          HierarchicalRow(), BucketRow(),
      ChainRow(),
  };
  return table;
}

}  // namespace

std::span<const Algorithm> Algorithms() { return Table(); }

const Algorithm& FindAlgorithm(AlgorithmId id) {
  for (const Algorithm& row : Table()) {
    if (row.id == id) return row;
  }
  throw Error(
      fmt::format("algorithm \"{}\" says nothing about steps; expected one of `rehearse "
                  "list algorithms`",
                  Name(id)));
}

void CheckKind(const Algorithm& algorithm, CollectiveKind kind) {
  if (algorithm.kinds.Has(kind)) return;
  std::vector<std::string> able;
  for (const Algorithm& row : Table()) {
    if (row.kinds.Has(kind)) able.emplace_back(row.name());
  }
  throw Error(fmt::format("algorithm \"{}\" cannot do {}; {} can", algorithm.name(), Name(kind),
                          fmt::join(able, ", ")));
}

// ---- What the rows share ------------------------------------------------------------------------

uint32_t CeilLog2(uint32_t n) { return static_cast<uint32_t>(std::bit_width(n - 1)); }

Leg InPlace(uint32_t step, uint32_t steps, uint32_t from, uint32_t to, Combine combine,
            const Chunks& chunks) {
  return {step, steps, from, to, combine, chunks, chunks};
}

uint32_t NoSwitches(const StepInput& /*input*/) { return 0; }
uint32_t ChunkOfEach(const StepInput& input) { return input.ranks(); }
uint32_t ChunkOfPieces(const StepInput& input) { return input.pieces; }

Part AsTheyAre(const GroupOnMachine& group) {
  Part part;
  part.input.kind = group.kind;
  part.input.root = group.root;
  part.input.extents = {static_cast<uint32_t>(group.ranks.size())};
  part.order.resize(group.ranks.size());
  std::iota(part.order.begin(), part.order.end(), 0u);
  return part;
}

std::vector<std::vector<uint32_t>> MembersByMachine(const GroupOnMachine& group) {
  std::vector<std::vector<uint32_t>> members;
  std::map<uint32_t, size_t> place;
  for (uint32_t i = 0; i < group.ranks.size(); ++i) {
    const uint32_t machine = group.router.cluster().NodeIndexOf(group.ranks[i]);
    const auto [it, is_new] = place.emplace(machine, members.size());
    if (is_new) members.emplace_back();
    members[it->second].push_back(i);
  }
  return members;
}

std::vector<std::vector<uint32_t>> MembersByEqualMachine(const GroupOnMachine& group,
                                                         const char* algorithm) {
  std::vector<std::vector<uint32_t>> members = MembersByMachine(group);
  for (const std::vector<uint32_t>& machine : members) {
    const std::vector<uint32_t>& first = members.front();
    if (machine.size() == first.size()) continue;
    throw Error(
        fmt::format("algorithm \"{}\" needs equally many ranks of the group in every machine, but "
                    "{} has {} and {} has {}",
                    algorithm, group.router.cluster().NodeOf(group.ranks[first[0]]), first.size(),
                    group.router.cluster().NodeOf(group.ranks[machine[0]]), machine.size()));
  }
  return members;
}

const Pace& PaceOf(std::span<const Pace> paces, size_t round) {
  CHECK(!paces.empty());
  if (paces.size() == 1) return paces[0];
  CHECK_LT(round, paces.size());
  return paces[round];
}

Seconds RoundTime(const Pace& pace, double steps, Bytes bytes) {
  return steps * (pace.latency + bytes / pace.rate);
}

Seconds PipelineTime(uint32_t pieces, uint32_t hops, Bytes unit, std::span<const Pace> paces) {
  Seconds time;
  for (uint32_t step = 0; step < pieces + hops - 1; ++step) {
    time += RoundTime(PaceOf(paces, step), 1, unit / pieces);
  }
  return time;
}

}  // namespace rehearse
