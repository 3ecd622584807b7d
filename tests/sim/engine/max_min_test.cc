#include "sim/engine/max_min.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "tests/support/random_program.h"
#include "tests/support/reference_engine.h"

namespace rehearse {
namespace max_min_test {

// Each flow is a list of {link, multiplicity}.
struct Problem {
  std::vector<double> capacities;
  std::vector<std::vector<LinkUse>> flows;

  std::vector<std::span<const LinkUse>> Spans() const { return {flows.begin(), flows.end()}; }
  std::vector<double> Solve() const { return SolveMaxMin({capacities, Spans()}); }
};

LinkUse Use(uint32_t link, uint32_t multiplicity = 1) { return {LinkId(link), multiplicity}; }

TEST(MaxMinTest, EqualFlowsSplitALink) {
  // 10 / 2.
  EXPECT_EQ((Problem{{10}, {{Use(0)}, {Use(0)}}}).Solve(), (std::vector<double>{5, 5}));
}

TEST(MaxMinTest, AFlowThatCrossesTwiceGetsTheSameRateAndTakesTwice) {
  // 2r + r = 9.
  EXPECT_EQ((Problem{{9}, {{Use(0, 2)}, {Use(0)}}}).Solve(), (std::vector<double>{3, 3}));
}

TEST(MaxMinTest, WhatOneLinkHoldsBackOthersMayUse) {
  // Link 0 (2): flows 0 and 1 get 1 each. Link 1 (10): flow 1 takes 1 of it, flow 2 the other 9.
  EXPECT_EQ((Problem{{2, 10}, {{Use(0)}, {Use(0), Use(1)}, {Use(1)}}}).Solve(),
            (std::vector<double>{1, 1, 9}));
}

TEST(MaxMinTest, ParkingLot) {
  // A long flow over three links of 6, 4 and 6, one short flow on each. Link 1 fills first, at 2:
  // the long flow and short flow 1 get 2. On links 0 and 2, 6 - 2 is left.
  EXPECT_EQ((Problem{{6, 4, 6}, {{Use(0), Use(1), Use(2)}, {Use(0)}, {Use(1)}, {Use(2)}}}).Solve(),
            (std::vector<double>{2, 4, 2, 4}));
}

TEST(MaxMinTest, ThreeLevels) {
  // Link 0: 3/3 = 1 for flows 0, 1, 2. Link 1 (7): flow 2 takes 1, flow 3 and 4: 3 each. Link 2
  // (20): flow 4 takes 3, flow 5 the rest.
  EXPECT_EQ((Problem{{3, 7, 20},
                     {{Use(0)}, {Use(0)}, {Use(0), Use(1)}, {Use(1)}, {Use(1), Use(2)}, {Use(2)}}})
                .Solve(),
            (std::vector<double>{1, 1, 1, 3, 3, 17}));
}

TEST(MaxMinTest, LinksThatFillTogetherFreezeTogether) {
  // Both links fill at 1/3, which no double equals: solved one after the other, (1 - 1/3)/2 would
  // give the flows of the second link a rate that differs in the last bit.
  const std::vector<double> rates =
      Problem{{1, 1}, {{Use(0)}, {Use(0)}, {Use(0), Use(1)}, {Use(1)}, {Use(1)}}}.Solve();
  for (const double rate : rates) EXPECT_EQ(rate, 1.0 / 3);
}

TEST(MaxMinTest, AFlowWithoutLinksIsNotHeldBack) {
  const std::vector<double> rates = Problem{{1}, {{}, {Use(0)}}}.Solve();
  EXPECT_EQ(rates[0], std::numeric_limits<double>::infinity());
  EXPECT_EQ(rates[1], 1);
  EXPECT_EQ((Problem{{1}, {{}}}).Solve()[0], std::numeric_limits<double>::infinity());
}

TEST(MaxMinTest, NoFlowsNoRates) {
  EXPECT_TRUE((Problem{{1, 2}, {}}).Solve().empty());
  EXPECT_TRUE((Problem{{}, {}}).Solve().empty());
}

TEST(MaxMinTest, ASolverForgetsTheProblemBefore) {
  MaxMinSolver solver;
  const std::vector<double> capacities = {6, 4};
  const std::vector<uint32_t> use_begin = {0, 2, 3, 4};
  const std::vector<LinkUse> uses = {Use(0), Use(1), Use(0), Use(1)};
  std::vector<double> rates(3);
  solver.Solve(capacities, use_begin, uses, rates);
  EXPECT_EQ(rates, (std::vector<double>{2, 4, 2}));
  EXPECT_EQ(solver.loads()[0], 6);
  EXPECT_EQ(solver.loads()[1], 4);
  const std::vector<double> one_capacity = {5};
  const std::vector<uint32_t> one_begin = {0, 1};
  const std::vector<LinkUse> one_use = {Use(0, 2)};
  std::vector<double> one_rate(1);
  solver.Solve(one_capacity, one_begin, one_use, one_rate);
  EXPECT_EQ(one_rate[0], 2.5);
  ASSERT_EQ(solver.loads().size(), 1u);
  EXPECT_EQ(solver.loads()[0], 5);
}

// Progressive filling in rationals, which is exact. Levels are multiples of 1 / (product over the
// rounds of the multiplicities still growing): with 4 links, hence at most 4 rounds, and 10 flows
// of multiplicity up to 4, of 1/40^4, so 64 bits are plenty.
struct Rational {
  int64_t numerator = 0;
  int64_t denominator = 1;

  long double value() const { return static_cast<long double>(numerator) / denominator; }
};

Rational Reduced(int64_t numerator, int64_t denominator) {
  const int64_t divisor = std::gcd(numerator, denominator);
  return {numerator / divisor, denominator / divisor};
}
Rational operator/(Rational a, int64_t divisor) {
  return Reduced(a.numerator, a.denominator * divisor);
}
Rational operator*(Rational a, int64_t factor) {
  return Reduced(a.numerator * factor, a.denominator);
}
Rational operator-(Rational a, Rational b) {
  return Reduced(a.numerator * b.denominator - b.numerator * a.denominator,
                 a.denominator * b.denominator);
}
bool operator<(Rational a, Rational b) {
  return a.numerator * b.denominator < b.numerator * a.denominator;
}

std::vector<Rational> SolveExactly(const Problem& problem) {
  std::vector<Rational> left;
  for (const double capacity : problem.capacities) {
    left.push_back({static_cast<int64_t>(capacity), 1});
  }
  std::vector<Rational> rates(problem.flows.size());
  std::vector<bool> frozen(problem.flows.size(), false);
  for (;;) {
    std::vector<int64_t> growing(left.size(), 0);
    for (size_t flow = 0; flow < rates.size(); ++flow) {
      for (const LinkUse& use : problem.flows[flow]) {
        if (!frozen[flow]) growing[use.link.index()] += use.multiplicity;
      }
    }
    size_t first = left.size();
    for (size_t link = 0; link < left.size(); ++link) {
      if (growing[link] == 0) continue;
      if (first == left.size() || left[link] / growing[link] < left[first] / growing[first]) {
        first = link;
      }
    }
    if (first == left.size()) return rates;
    const Rational level = left[first] / growing[first];
    for (size_t flow = 0; flow < rates.size(); ++flow) {
      const auto crosses_first = [first](const LinkUse& use) { return use.link.index() == first; };
      if (frozen[flow] ||
          std::none_of(problem.flows[flow].begin(), problem.flows[flow].end(), crosses_first)) {
        continue;
      }
      frozen[flow] = true;
      rates[flow] = level;
      for (const LinkUse& use : problem.flows[flow])
        left[use.link.index()] = left[use.link.index()] - level * use.multiplicity;
    }
  }
}

Problem RandomProblem(Random& random, uint32_t max_links, uint32_t max_flows, bool integers) {
  Problem problem;
  const uint32_t links = random.Between(1, max_links);
  for (uint32_t i = 0; i < links; ++i) {
    problem.capacities.push_back(integers ? random.Between(1, 100)
                                          : 1e9 * (1 + 99 * random.Fraction()));
  }
  const uint32_t flows = random.Between(1, max_flows);
  for (uint32_t i = 0; i < flows; ++i) {
    std::vector<LinkUse> uses;
    for (uint32_t link = 0; link < links; ++link) {
      if (random.Chance(30)) uses.push_back(Use(link, random.Between(1, 4)));
    }
    if (uses.empty()) uses.push_back(Use(random.Below(links)));
    problem.flows.push_back(uses);
  }
  return problem;
}

TEST(MaxMinTest, AgreesWithRationals) {
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    Random random(seed);
    const Problem problem = RandomProblem(random, 4, 10, true);
    const std::vector<double> rates = problem.Solve();
    const std::vector<Rational> exact = SolveExactly(problem);
    for (size_t flow = 0; flow < rates.size(); ++flow) {
      const double expected = static_cast<double>(exact[flow].value());
      ASSERT_NEAR(rates[flow], expected, 1e-13 * expected) << "seed " << seed << ", flow " << flow;
    }
  }
}

TEST(MaxMinTest, TheReferenceSolverAgreesWithRationals) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    Random random(seed);
    const Problem problem = RandomProblem(random, 4, 10, true);
    const std::vector<long double> capacities(problem.capacities.begin(), problem.capacities.end());
    const std::vector<long double> rates = FillProgressively(capacities, problem.Spans());
    const std::vector<Rational> exact = SolveExactly(problem);
    for (size_t flow = 0; flow < rates.size(); ++flow) {
      const long double expected = exact[flow].value();
      ASSERT_NEAR(rates[flow], expected, 1e-15L * expected) << "seed " << seed << ", flow " << flow;
    }
  }
}

// The definition: no link above its capacity, and for each flow a full link on which no flow has a
// larger rate. There is only one solution, so this shows that the rates are right without solving
// anything.
void ExpectMaxMinFair(const Problem& problem, const std::vector<double>& rates) {
  constexpr double kTolerance = 1e-9;
  std::vector<double> load(problem.capacities.size(), 0);
  std::vector<double> largest(problem.capacities.size(), 0);
  for (size_t flow = 0; flow < rates.size(); ++flow) {
    for (const LinkUse& use : problem.flows[flow]) {
      load[use.link.index()] += rates[flow] * use.multiplicity;
      largest[use.link.index()] = std::max(largest[use.link.index()], rates[flow]);
    }
  }
  for (size_t link = 0; link < load.size(); ++link) {
    RC_ASSERT(load[link] <= problem.capacities[link] * (1 + kTolerance));
  }
  for (size_t flow = 0; flow < rates.size(); ++flow) {
    const auto holds_back = [&](const LinkUse& use) {
      const uint32_t link = use.link.index();
      return load[link] >= problem.capacities[link] * (1 - kTolerance) &&
             rates[flow] >= largest[link] * (1 - kTolerance);
    };
    RC_ASSERT(std::any_of(problem.flows[flow].begin(), problem.flows[flow].end(), holds_back));
  }
}

TEST(MaxMinTest, EveryFlowIsHeldBackByAFullLinkWhereItIsAmongTheFastest) {
  EXPECT_TRUE(rc::check([] {
    Random random(*rc::gen::arbitrary<uint64_t>());
    const Problem problem = RandomProblem(random, 20, 40, *rc::gen::arbitrary<bool>());
    ExpectMaxMinFair(problem, problem.Solve());
  }));
}

// Capacities over nine orders of magnitude and large multiplicities, as folded programs have.
TEST(MaxMinTest, HoldsForWideRangesToo) {
  EXPECT_TRUE(rc::check([] {
    Random random(*rc::gen::arbitrary<uint64_t>());
    Problem problem = RandomProblem(random, 10, 20, false);
    for (double& capacity : problem.capacities) capacity = std::pow(10, 3 + 9 * random.Fraction());
    for (std::vector<LinkUse>& uses : problem.flows) {
      for (LinkUse& use : uses) use.multiplicity = random.Between(1, 1000);
    }
    ExpectMaxMinFair(problem, problem.Solve());
  }));
}

TEST(MaxMinTest, TheOrderOfFlowsAndLinksDoesNotChangeABit) {
  EXPECT_TRUE(rc::check([] {
    Random random(*rc::gen::arbitrary<uint64_t>());
    const Problem problem = RandomProblem(random, 10, 20, random.Chance(50));
    const uint32_t links = static_cast<uint32_t>(problem.capacities.size());
    // Flow i of the mirrored problem is flow n-1-i, link l is link m-1-l.
    Problem mirrored;
    mirrored.capacities.assign(problem.capacities.rbegin(), problem.capacities.rend());
    for (auto flow = problem.flows.rbegin(); flow != problem.flows.rend(); ++flow) {
      std::vector<LinkUse> uses;
      for (const LinkUse& use : *flow) {
        uses.push_back(Use(links - 1 - use.link.index(), use.multiplicity));
      }
      mirrored.flows.push_back(uses);
    }
    std::vector<double> rates = mirrored.Solve();
    std::reverse(rates.begin(), rates.end());
    RC_ASSERT(rates == problem.Solve());
  }));
}

TEST(MaxMinTest, AProblemBesideItDoesNotChangeABit) {
  EXPECT_TRUE(rc::check([] {
    Random random(*rc::gen::arbitrary<uint64_t>());
    const Problem one = RandomProblem(random, 8, 16, random.Chance(50));
    const Problem other = RandomProblem(random, 8, 16, random.Chance(50));
    Problem both = one;
    const uint32_t offset = static_cast<uint32_t>(one.capacities.size());
    both.capacities.insert(both.capacities.end(), other.capacities.begin(), other.capacities.end());
    for (std::vector<LinkUse> uses : other.flows) {
      for (LinkUse& use : uses) use.link = LinkId(use.link.index() + offset);
      both.flows.push_back(uses);
    }
    std::vector<double> apart = one.Solve();
    for (const double rate : other.Solve()) apart.push_back(rate);
    RC_ASSERT(both.Solve() == apart);
  }));
}

// Twice 3 of link 0, and 3 of link 1 and of link 3, which are full at once; link 2 is another's.
TEST(MaxMinTest, AFlowThatIsAloneGrowsUntilItsFirstLinksAreFull) {
  const std::vector<double> capacities = {8, 3, 5, 3};
  const std::vector<uint32_t> begin = {0, 3};
  const std::vector<LinkUse> uses = {Use(0, 2), Use(1), Use(3)};
  std::vector<double> rates(1);
  MaxMinSolver solver;
  solver.Solve(capacities, begin, uses, rates);
  EXPECT_EQ(rates[0], 3);
  const auto list = [](std::span<const double> values) {
    return std::vector<double>(values.begin(), values.end());
  };
  EXPECT_EQ(list(solver.loads()), (std::vector<double>{6, 3, 0, 3}));
  EXPECT_EQ(list(solver.full_levels()), (std::vector<double>{0, 3, 0, 3}));
}

// A flow of 4 of link 0, held back by link 1, which is full at 3: link 0 holds back nobody.
TEST(MaxMinTest, OnlyFullLinksHaveALevel) {
  const std::vector<double> capacities = {4, 3};
  const std::vector<uint32_t> begin = {0, 2};
  const std::vector<LinkUse> uses = {Use(0), Use(1)};
  std::vector<double> rates(1);
  MaxMinSolver solver;
  solver.Solve(capacities, begin, uses, rates);
  EXPECT_EQ(rates[0], 3);
  EXPECT_EQ(solver.full_levels()[0], 0);
  EXPECT_EQ(solver.full_levels()[1], 3);
}

}  // namespace max_min_test
}  // namespace rehearse
