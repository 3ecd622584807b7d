#include "collectives/interpreter.h"

#include <numeric>
#include <random>
#include <set>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "sim/error.h"

namespace rehearse {
namespace {

// ---- What a collective means, written down without any algorithm -------------------------------------

std::vector<int64_t> Sum(const Data& inputs) {
  std::vector<int64_t> sum(inputs.front().size(), 0);
  for (const auto& input : inputs) {
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += input[i];
  }
  return sum;
}

Data Expected(const DataProblem& problem, const Data& inputs) {
  const uint32_t p = problem.members;
  Data outputs(p);
  for (uint32_t member = 0; member < p; ++member) {
    std::vector<int64_t>& own = outputs[member];
    switch (problem.kind) {
      case CollectiveKind::kAllReduce:
        own = Sum(inputs);
        break;
      case CollectiveKind::kReduce:
        if (member == problem.root) own = Sum(inputs);
        break;
      case CollectiveKind::kBroadcast:
        own = inputs[problem.root];
        break;
      case CollectiveKind::kReduceScatter: {
        const std::vector<int64_t> sum = Sum(inputs);
        for (uint64_t i = member * problem.elements / p; i < (member + 1) * problem.elements / p;
             ++i) {
          own.push_back(sum[i]);
        }
        break;
      }
      case CollectiveKind::kAllGather:
        for (const auto& input : inputs) own.insert(own.end(), input.begin(), input.end());
        break;
      case CollectiveKind::kAllToAll:
        for (uint32_t from = 0; from < p; ++from) {
          uint64_t begin = 0;
          for (uint32_t to = 0; to < member; ++to) begin += PairElements(problem, from, to);
          for (uint64_t i = 0; i < PairElements(problem, from, member); ++i) {
            own.push_back(inputs[from][begin + i]);
          }
        }
        break;
      case CollectiveKind::kSendReceive:
        own = inputs[(member + p - 1) % p];
        break;
      case CollectiveKind::kBarrier:
        break;
    }
  }
  return outputs;
}

Data RandomInputs(const DataProblem& problem, uint64_t seed) {
  std::mt19937_64 random(seed);
  Data inputs(problem.members);
  for (uint32_t member = 0; member < problem.members; ++member) {
    uint64_t size = problem.elements;
    if (problem.kind == CollectiveKind::kAllGather) {
      size = (member + 1) * problem.elements / problem.members -
             member * problem.elements / problem.members;
    } else if (problem.kind == CollectiveKind::kAllToAll) {
      size = 0;
      for (uint32_t to = 0; to < problem.members; ++to) size += PairElements(problem, member, to);
    }
    for (uint64_t i = 0; i < size; ++i) {
      inputs[member].push_back(static_cast<int64_t>(random() % 1000000));
    }
  }
  return inputs;
}

// ---- How ranks can stand, without a machine ----------------------------------------------------------

std::vector<uint32_t> Shuffled(uint32_t p, uint64_t seed) {
  std::vector<uint32_t> order(p);
  std::iota(order.begin(), order.end(), 0u);
  std::mt19937_64 random(seed);
  std::shuffle(order.begin(), order.end(), random);
  return order;
}

// All ways to write p as a product of `axes` factors.
std::vector<std::vector<uint32_t>> Grids(uint32_t p, uint32_t axes) {
  if (axes == 1) return {{p}};
  std::vector<std::vector<uint32_t>> grids;
  for (uint32_t first = 1; first <= p; ++first) {
    if (p % first != 0) continue;
    for (std::vector<uint32_t> rest : Grids(p / first, axes - 1)) {
      rest.insert(rest.begin(), first);
      grids.push_back(std::move(rest));
    }
  }
  return grids;
}

// The parts that an algorithm may be asked to play: every grid, several pieces, members in any order. The
// root, where there is one, stands first.
std::vector<std::vector<Part>> Arrangements(const Algorithm& algorithm, CollectiveKind kind,
                                            uint32_t p, uint32_t root, uint64_t seed) {
  const std::string name = algorithm.name;
  const bool on_grid =
      name == "tree" || name == "pxn" || name == "collnet" || name == "hierarchical";
  std::vector<std::vector<uint32_t>> grids = {{p}};
  if (on_grid) grids = Grids(p, 2);
  if (name == "bucket") {
    grids = Grids(p, 2);
    for (auto& grid : Grids(p, 3)) grids.push_back(grid);
  }
  std::vector<std::vector<Part>> result;
  for (const auto& grid : grids) {
    for (const uint32_t pieces : {1u, 3u, 8u}) {
      if (!algorithm.pipelined.Has(kind) && pieces > 1) continue;
      Part part;
      part.input.kind = kind;
      part.input.extents = grid;
      part.input.pieces = pieces;
      part.order = Shuffled(p, seed);
      // The next member of a send-receive is the group's, not the algorithm's.
      if (kind == CollectiveKind::kSendReceive) std::iota(part.order.begin(), part.order.end(), 0u);
      std::iter_swap(part.order.begin(), std::find(part.order.begin(), part.order.end(), root));
      if (kind == CollectiveKind::kSendReceive) std::iota(part.order.begin(), part.order.end(), 0u);
      if (name == "tree" || name == "bucket") {
        const uint32_t variants = name == "tree" ? 2 : static_cast<uint32_t>(grid.size());
        std::vector<Part> parts;
        for (uint32_t variant = 0; variant < variants; ++variant) {
          part.input.variant = variant;
          part.share = 1.0 / variants;
          if (name == "tree") {
            parts.push_back(part);
            continue;
          }
          part.share /= 2;
          for (const bool reversed : {false, true}) {
            part.input.reversed = reversed;
            parts.push_back(part);
          }
        }
        result.push_back(parts);
        continue;
      }
      result.push_back({part});
    }
  }
  return result;
}

void ExpectRightData(const Algorithm& algorithm, const std::vector<Part>& parts,
                     const DataProblem& problem, uint64_t seed) {
  const Data inputs = RandomInputs(problem, seed);
  const Data outputs = Interpret(algorithm, parts, problem, inputs, seed);
  EXPECT_EQ(outputs, Expected(problem, inputs));
}

constexpr CollectiveKind kAllKinds[] = {CollectiveKind::kAllReduce,     CollectiveKind::kAllGather,
                                        CollectiveKind::kReduceScatter, CollectiveKind::kAllToAll,
                                        CollectiveKind::kBroadcast,     CollectiveKind::kReduce,
                                        CollectiveKind::kSendReceive,   CollectiveKind::kBarrier};

std::string GridText(const Part& part) {
  return fmt::format("{} pieces {}", fmt::join(part.input.extents, "x"), part.input.pieces);
}

class EveryAlgorithmTest : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryAlgorithmTest, ComputesWhatTheKindMeansForAnyNumberOfRanks) {
  const Algorithm& algorithm = FindAlgorithm(GetParam());
  std::vector<uint32_t> sizes;
  for (uint32_t p = 2; p <= 17; ++p) sizes.push_back(p);
  sizes.insert(sizes.end(), {24, 32, 64});
  for (const uint32_t p : sizes) {
    for (const CollectiveKind kind : kAllKinds) {
      if (!algorithm.kinds.Has(kind)) continue;
      // Fewer elements than ranks, none that divides evenly, some that does.
      for (const uint64_t elements : {uint64_t{1}, uint64_t{3} * p + 1, uint64_t{4} * p}) {
        const uint32_t root = (p * 2 / 3) % p;
        for (const auto& parts : Arrangements(algorithm, kind, p, root, p + elements)) {
          SCOPED_TRACE(
              fmt::format("{} p {} n {} grid {}", Name(kind), p, elements, GridText(parts[0])));
          DataProblem problem;
          problem.kind = kind;
          problem.members = p;
          problem.elements = elements;
          problem.root = root;
          ExpectRightData(algorithm, parts, problem, p);
          if (::testing::Test::HasFailure()) return;
        }
      }
    }
  }
}

std::vector<std::string> Names() {
  std::vector<std::string> names;
  for (const Algorithm& algorithm : Algorithms()) names.emplace_back(algorithm.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Algorithms, EveryAlgorithmTest, ::testing::ValuesIn(Names()),
                         [](const auto& parameter) {
                           std::string name = parameter.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace rehearse
