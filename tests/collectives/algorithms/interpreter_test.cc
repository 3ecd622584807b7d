#include "tests/support/interpreter.h"

#include <numeric>
#include <random>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "sim/base/error.h"
#include "tests/support/sanitizers.h"

namespace rehearse {
namespace interpreter_test {

// ---- What a collective means, written down without any algorithm --------------------------------

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
      case CollectiveKind::kToHost:  // no message
      case CollectiveKind::kFromHost:
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

// ---- How ranks can stand, without a machine -----------------------------------------------------

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

// The parts that an algorithm may be asked to play: every grid, several pieces, members in any
// order. The root, where there is one, stands first.
std::vector<std::vector<Part>> Arrangements(const Algorithm& algorithm, CollectiveKind kind,
                                            uint32_t p, uint32_t root, uint64_t seed) {
  const std::string name = algorithm.name();
  const bool has_two_trees = name == "tree" || name == "nvls-tree";
  const bool on_grid = has_two_trees || name == "pxn" || name == "deepep" || name == "collnet" ||
                       name == "hierarchical";
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
      if (has_two_trees || name == "bucket") {
        const uint32_t variants = has_two_trees ? 2 : static_cast<uint32_t>(grid.size());
        std::vector<Part> parts;
        for (uint32_t variant = 0; variant < variants; ++variant) {
          part.input.variant = variant;
          part.share = 1.0 / variants;
          if (has_two_trees) {
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
  const Algorithm& algorithm = FindAlgorithm(ParseAlgorithm(GetParam()));
  std::vector<uint32_t> sizes;
  for (uint32_t p = 2; p <= (kIsSanitized ? 9 : 17); ++p) sizes.push_back(p);
  if (!kIsSanitized) sizes.insert(sizes.end(), {24, 32, 64});
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
  for (const Algorithm& algorithm : Algorithms()) names.emplace_back(algorithm.name());
  return names;
}

INSTANTIATE_TEST_SUITE_P(Algorithms, EveryAlgorithmTest, ::testing::ValuesIn(Names()),
                         [](const auto& parameter) {
                           std::string name = parameter.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(InterpreterTest, AnyArrangementComputesTheRightThing) {
  const std::vector<std::string> names = Names();
  rc::check("random algorithm, kind, size, root, order and schedule", [&] {
    const Algorithm& algorithm = FindAlgorithm(ParseAlgorithm(*rc::gen::elementOf(names)));
    std::vector<CollectiveKind> kinds;
    for (const CollectiveKind kind : kAllKinds) {
      if (algorithm.kinds.Has(kind)) kinds.push_back(kind);
    }
    DataProblem problem;
    problem.kind = *rc::gen::elementOf(kinds);
    problem.members = *rc::gen::inRange(2u, 41u);
    problem.elements = *rc::gen::inRange<uint64_t>(0, 2000);
    problem.root = *rc::gen::inRange(0u, problem.members);
    const auto seed = *rc::gen::arbitrary<uint64_t>();
    const bool uneven = problem.kind == CollectiveKind::kAllToAll &&
                        std::string(algorithm.name()) != "bruck" && *rc::gen::arbitrary<bool>();
    if (uneven) {
      std::mt19937_64 random(seed);
      for (uint32_t i = 0; i < problem.members * problem.members; ++i) {
        problem.pair_elements.push_back(random() % 7);
      }
    }
    const auto arrangements =
        Arrangements(algorithm, problem.kind, problem.members, problem.root, seed);
    const auto& parts = *rc::gen::elementOf(arrangements);
    const Data inputs = RandomInputs(problem, seed);
    RC_ASSERT(Interpret(algorithm, parts, problem, inputs, seed) == Expected(problem, inputs));
  });
}

// ---- What is sent -------------------------------------------------------------------------------

uint64_t TotalElements(const Traffic& traffic) {
  uint64_t sum = 0;
  for (const auto& [pair, between] : traffic.by_pair) sum += between.elements;
  return sum;
}

struct TrafficCase {
  const char* algorithm;
  CollectiveKind kind;
  std::vector<uint32_t> extents;  // of a grid of 16 members
  double elements;                // all members together send so many times n
  uint32_t steps;                 // without pipelining
};

TEST(InterpreterTest, EveryByteIsSentAsOftenAsTheClosedFormSays) {
  using enum CollectiveKind;
  // p = 16: reducing or gathering moves (p-1) n in all, which is the least there can be.
  const TrafficCase cases[] = {
      {"ring", kAllReduce, {16}, 30, 30},
      {"ring", kAllGather, {16}, 15, 15},
      {"ring", kReduceScatter, {16}, 15, 15},
      {"ring", kBroadcast, {16}, 15, 15},
      {"ring-both", kAllReduce, {16}, 30, 30},
      {"chain", kReduce, {16}, 15, 15},
      // Trees have p-1 edges; 16 labels are 4 hops high.
      {"tree", kAllReduce, {1, 16}, 30, 8},
      {"tree", kBroadcast, {1, 16}, 15, 4},
      {"tree",
       kReduce,
       {4, 4},
       15,
       5},  // 3 hops up the chain, 3 machines below the root's: 1 + 1 hops
      {"halving-doubling", kAllReduce, {16}, 30, 8},
      {"halving-doubling", kReduceScatter, {16}, 15, 4},
      {"doubling", kAllGather, {16}, 15, 4},
      {"doubling", kAllReduce, {16}, 64, 4},  // everybody everything, 4 times
      {"direct", kAllReduce, {16}, 30, 2},
      {"direct", kAllToAll, {16}, 15, 1},
      {"pairwise", kAllToAll, {16}, 15, 15},
      {"bruck", kAllToAll, {16}, 32, 4},  // half of everything, 4 times
      // 4 machines of 4: 3/4 of all stays inside, 3/4 of all goes across.
      {"pxn", kAllToAll, {4, 4}, 24, 2},
      {"deepep", kAllToAll, {4, 4}, 24, 2},  // the same, the other way about
      {"hierarchical", kAllReduce, {4, 4}, 30, 12},
      {"bucket", kAllReduce, {4, 4}, 30, 12},
      // To the switch and back: 16 n and n up, n and 16 n down.
      {"nvls", kAllReduce, {16}, 34, 4},
      {"nvls", kReduceScatter, {16}, 17, 2},
      // A switch of 4: 16 n up, 4 n down, and back again; across n/4 over 3 edges of 4 trees, up
      // and down.
      {"nvls-tree", kAllReduce, {4, 4}, 46, 8},
      {"pat", kAllGather, {16}, 15, 4},
      {"pat", kReduceScatter, {16}, 15, 4},
      // Inside 3/4 n for each of 16, twice; n/4 up and down for each.
      {"collnet", kAllReduce, {4, 4}, 32, 4},
  };
  for (const TrafficCase& expected : cases) {
    SCOPED_TRACE(fmt::format("{} {}", expected.algorithm, Name(expected.kind)));
    const Algorithm& algorithm = FindAlgorithm(ParseAlgorithm(expected.algorithm));
    DataProblem problem;
    problem.kind = expected.kind;
    problem.members = 16;
    problem.elements = 16 * 16;
    for (const uint32_t pieces : {1u, 4u}) {
      Part part;
      part.input.kind = expected.kind;
      part.input.extents = expected.extents;
      part.input.pieces = algorithm.pipelined.Has(expected.kind) ? pieces : 1;
      part.order.resize(16);
      std::iota(part.order.begin(), part.order.end(), 0u);
      Traffic traffic;
      Interpret(algorithm, {part}, problem, RandomInputs(problem, 1), 1, &traffic);
      EXPECT_EQ(static_cast<double>(TotalElements(traffic)), expected.elements * 16 * 16);
      EXPECT_EQ(traffic.steps, expected.steps + part.input.pieces - 1);
    }
  }
}

TEST(InterpreterTest, RingsAndRecursionsLoadEverybodyAlike) {
  for (const char* name : {"ring", "halving-doubling", "direct", "hierarchical", "bucket"}) {
    DataProblem problem;
    problem.members = 12;
    problem.elements = 12 * 12;
    Part part;
    part.input.extents = {12};
    if (std::string(name) == "hierarchical" || std::string(name) == "bucket") {
      part.input.extents = {3, 4};
    }
    part.order.resize(12);
    std::iota(part.order.begin(), part.order.end(), 0u);
    Traffic traffic;
    Interpret(FindAlgorithm(ParseAlgorithm(name)), {part}, problem, RandomInputs(problem, 1), 1,
              &traffic);
    std::map<uint32_t, uint64_t> sent;
    for (const auto& [pair, between] : traffic.by_pair) sent[pair.first] += between.elements;
    // 2(p-1)/p of 144 elements each.
    for (uint32_t member = 0; member < 12; ++member) EXPECT_EQ(sent[member], 264u) << name;
  }
}

TEST(InterpreterTest, StepsOfOneMemberOfAThousandAreFew) {
  // What a member does is planned without looking at the others: its list is only as long as what
  // it has to do.
  StepInput input;
  input.extents = {1024};
  EXPECT_EQ(StepsOf(FindAlgorithm(ParseAlgorithm("ring")), input, 512).size(), 4u);
  EXPECT_EQ(StepsOf(FindAlgorithm(ParseAlgorithm("halving-doubling")), input, 512).size(), 40u);
  EXPECT_EQ(MessagesOf(FindAlgorithm(ParseAlgorithm("ring")), input, 512).size(), 4u * 1023);
}

TEST(InterpreterTest, AnAlgorithmThatForgetsAMessageIsFound) {
  // The ring without its first step: chunks arrive with the wrong sums, or somebody waits forever.
  Algorithm broken = FindAlgorithm(ParseAlgorithm("ring"));
  broken.steps = [](const StepInput& input, uint32_t position, std::vector<Leg>* legs) {
    FindAlgorithm(ParseAlgorithm("ring")).steps(input, position, legs);
    for (Leg& leg : *legs) {
      if (leg.step > 0 || leg.from != 1) continue;
      leg.step = 1;
      leg.steps -= 1;
      leg.read.first = leg.write.first = leg.read.At(1, 0);
    }
  };
  DataProblem problem;
  problem.members = 4;
  problem.elements = 8;
  Part part;
  part.input.extents = {4};
  part.order = {0, 1, 2, 3};
  const Data inputs = RandomInputs(problem, 3);
  EXPECT_NE(Interpret(broken, {part}, problem, inputs), Expected(problem, inputs));
}

}  // namespace interpreter_test
}  // namespace rehearse
