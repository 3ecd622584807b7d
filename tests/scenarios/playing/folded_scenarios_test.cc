// Folded and unfolded, whole scenarios agree: random clusters, meshes, edits and perturbations.
#include <algorithm>
#include <optional>
#include <tuple>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/scenarios/small_scenario.h"
#include "tests/support/random_program.h"
#include "tests/support/sanitizers.h"

namespace rehearse {
namespace folded_scenarios_test {

struct Machine {
  const char* cluster;  // with a place for the nodes
  uint32_t devices;     // a node
  const char* nics;     // of node 1
};
constexpr Machine kMachines[] = {
    {"perlmutter:nodes={}", 4, "node1/nic*"},
    {"dgx-a100:nodes={}", 8, "node1/nic*"},
    {"leonardo:nodes={}", 4, "node1/nic*"},
    {"frontier:nodes={}", 8, "node1/nic*"},
};

// A mesh of column × row × depth × data with this many ranks; column and row divide the model.
std::string RandomStrategy(Random& random, uint32_t ranks) {
  uint32_t sizes[4] = {1, 1, 1, 1};
  for (uint32_t prime : {2u, 3u}) {
    for (; ranks % prime == 0; ranks /= prime) sizes[random.Below(4)] *= prime;
  }
  return fmt::format(
      R"(strategy={{"kind": "4d", "column": {}, "row": {}, "depth": {}, "data": {},
         "transpose_alternate_layers": true, "overlap_all_reduce": {}, "overlap_reduce_scatter": {},
         "overlap_all_gather": {}, "cached_layers": 0}})",
      sizes[0], sizes[1], sizes[2], sizes[3], random.Chance(50), random.Chance(50),
      random.Chance(50));
}

std::string RandomEdits(Random& random, const Machine& machine) {
  std::string edits;
  const auto add = [&](const std::string& edit) { edits += (edits.empty() ? "" : ", ") + edit; };
  if (random.Chance(25)) {
    add(fmt::format(R"({{"links": "{}", "bandwidth": "0.{}x"}})", machine.nics,
                    1 + random.Below(9)));
  }
  if (random.Chance(25)) add(R"({"devices": "node0/g??1", "compute": "0.7x"})");
  if (random.Chance(10)) add(R"({"links": "node0/g??0", "latency": "+3us"})");
  if (random.Chance(10)) add(R"({"links": "node1/nic0", "down": true})");
  return "edits=[" + edits + "]";
}

// Events lie within the first milliseconds, and each of these steps lasts at least as long.
std::string RandomPerturbation(Random& random, const Machine& machine) {
  std::string text = fmt::format(R"("seed": {})", random.Below(1000));
  if (random.Chance(8)) text += R"(, "compute_jitter": 0.05)";
  if (random.Chance(8)) text += R"(, "link_jitter": 0.1)";
  if (random.Chance(25)) {
    text += R"(, "stragglers": [{"devices": "node0/g???", "compute_time": "1.3x"},
                                {"devices": "node1/g??2", "compute_time": "1.1x"}])";
  }
  std::string events;
  const auto add = [&](const std::string& event) {
    events += (events.empty() ? "" : ", ") + event;
  };
  const auto at = [&] { return fmt::format("{}us", 100 + random.Below(3000)); };
  if (random.Chance(25)) {
    add(fmt::format(R"({{"at": "{}", "links": "{}", "bandwidth": "0.3x"}})", at(), machine.nics));
  }
  if (random.Chance(25)) {
    const std::string one = random.Chance(50) ? "node0/nic0" : "node1/nic1";
    add(fmt::format(R"({{"at": "{}", "links": "{}", "fail": true}})", at(), one));
    add(fmt::format(R"({{"at": "{}", "links": "{}", "recover": true}})", "4ms", one));
  }
  return "simulator.perturbation={" + text + R"(, "events": [)" + events + "]}";
}

// Every span of every rank: within 1e-9 of the step, or a few ticks of the clock.
void ExpectSameSpans(const Timeline& folded, const Timeline& unfolded) {
  const Timeline all = Unfolded(folded);
  ASSERT_EQ(all.spans.size(), unfolded.spans.size());
  const int64_t tolerance = unfolded.step.picoseconds() / 1'000'000'000 + 100;
  for (size_t i = 0; i < all.spans.size(); ++i) {
    const Span& a = all.spans[i];
    const Span& b = unfolded.spans[i];
    ASSERT_EQ(a.rank, b.rank);
    ASSERT_EQ(a.op, b.op);
    ASSERT_LE(std::abs((a.ready - b.ready).picoseconds()), tolerance) << a.rank << " " << a.op;
    ASSERT_LE(std::abs((a.begin - b.begin).picoseconds()), tolerance) << a.rank << " " << a.op;
    ASSERT_LE(std::abs((a.end - b.end).picoseconds()), tolerance) << a.rank << " " << a.op;
  }
}

// The links in use, where a folded row stands for several: as many of each kind and capacity, which
// carry the same except for rounding.
void ExpectSameLinks(const Result& folded, const Result& unfolded) {
  using Carried = std::tuple<std::string, double, double>;  // kind, capacity, bytes
  const auto links_of = [](const Result& result) {
    std::vector<Carried> links;
    for (const LinkSummary& link : result.links) {
      links.insert(links.end(), link.count, {link.kind, link.capacity.value(), link.bytes.value()});
    }
    std::sort(links.begin(), links.end());
    return links;
  };
  const std::vector<Carried> a = links_of(folded);
  const std::vector<Carried> b = links_of(unfolded);
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(std::get<0>(a[i]), std::get<0>(b[i]));
    ASSERT_EQ(std::get<1>(a[i]), std::get<1>(b[i]));
    ASSERT_NEAR(std::get<2>(a[i]), std::get<2>(b[i]), 1e-6 * std::get<2>(b[i]));
  }
}

// 8 nodes of 4 GPUs on one axis: a ring leaves each node by one NIC and enters it by another, each
// on one class of links.
TEST(FoldedScenariosTest, ALinkOfAFoldedRunStandsForAllThatDoTheSame) {
  const Result folded = testing::Play({"cluster=perlmutter:nodes=8",
                                       R"(strategy={"kind": "fsdp", "shard": 32, "replicas": 1,
                        "overlap_gradients": true, "overlap_reduce_scatter": true, "prefetch": 1,
                        "reshard_after_forward": true})",
                                       "training.batch=32"})
                            .result;
  Scenario scenario = testing::ReadSmall(
      {"cluster=perlmutter:nodes=8",
       R"(strategy={"kind": "fsdp", "shard": 32, "replicas": 1, "overlap_gradients": true,
          "overlap_reduce_scatter": true, "prefetch": 1, "reshard_after_forward": true})",
       "training.batch=32"});
  scenario.lowering.fold = false;
  const Result unfolded = Rehearse(scenario).result;
  ExpectSameLinks(folded, unfolded);
  EXPECT_LT(4 * folded.links.size(), unfolded.links.size());
}

constexpr uint64_t kLots = 10;
constexpr uint64_t kLot = 13;

// A random scenario, as changes of the small one.
std::vector<std::string> RandomChanges(uint64_t seed) {
  Random random(seed);
  const Machine& machine = kMachines[random.Below(std::size(kMachines))];
  const uint32_t nodes = 2u << random.Below(2);
  return {"cluster=" + fmt::format(fmt::runtime(machine.cluster), nodes),
          "training.batch=72",
          R"(model={"layers": 2, "hidden": 1152, "heads": 144, "vocabulary": 4608})",
          RandomStrategy(random, nodes * machine.devices),
          RandomEdits(random, machine),
          std::string("simulator.fidelity=") + (random.Chance(33) ? "step" : "fluid"),
          RandomPerturbation(random, machine)};
}

// In ten lots, which run in parallel; fewer scenarios where sanitizers make each ten times as slow.
constexpr uint64_t kComparedOfALot = kIsSanitized ? 5 : kLot;
class FoldedScenariosLotTest : public ::testing::TestWithParam<uint64_t> {};

TEST_P(FoldedScenariosLotTest, FoldedEqualsUnfolded) {
  for (uint64_t i = 1; i <= kComparedOfALot; ++i) {
    const uint64_t seed = GetParam() * kLot + i;
    const std::vector<std::string> changes = RandomChanges(seed);
    SCOPED_TRACE(fmt::format("seed {}\n{}", seed, fmt::join(changes, "\n")));
    std::optional<Scenario> scenario;
    std::optional<Rehearsal> folded;
    try {
      scenario.emplace(testing::ReadSmall(changes));
      folded.emplace(Rehearse(*scenario));
    } catch (const Error&) {  // a model that this mesh does not divide, a cut in two
      continue;
    }
    scenario->lowering.fold = false;
    const Rehearsal unfolded = Rehearse(*scenario);
    ExpectSameSpans(folded->timeline, unfolded.timeline);
    ExpectSameLinks(folded->result, unfolded.result);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

// Over all lots, most of what is drawn is possible, and has something to fold.
TEST(FoldedScenariosTest, RandomScenariosFold) {
  uint32_t possible = 0;
  uint32_t classes = 0;
  uint32_t ranks = 0;
  for (uint64_t seed = 1; seed <= kLots * kLot; ++seed) {
    try {
      const PlayedScenario played = PlayScenario(testing::ReadSmall(RandomChanges(seed)));
      ++possible;
      ranks += played.schedule().ranks();
      classes += played.lowered.rank_classes;
    } catch (const Error&) {
    }
  }
  EXPECT_GT(possible, 100u);
  EXPECT_LT(4 * classes, 3 * ranks);
}

INSTANTIATE_TEST_SUITE_P(Lots, FoldedScenariosLotTest, ::testing::Range<uint64_t>(0, kLots));

}  // namespace folded_scenarios_test
}  // namespace rehearse
