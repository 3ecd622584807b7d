#include "collectives/lowering/folding.h"

#include <algorithm>
#include <map>
#include <numeric>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sim/base/error.h"
#include "tests/collectives/schedules.h"
#include "tests/support/random_program.h"
#include "tests/support/sanitizers.h"
#include "topology/cluster/builder.h"

namespace rehearse {
namespace folding_test {

using testing::OneCollective;
using testing::Preset;
using testing::RandomCluster;

std::vector<uint32_t> Range(uint32_t first, uint32_t count) {
  std::vector<uint32_t> ranks(count);
  std::iota(ranks.begin(), ranks.end(), first);
  return ranks;
}

Timeline Play(const Schedule& schedule, const Cluster& cluster, Fidelity fidelity, bool fold,
              uint32_t* classes = nullptr, const Perturbation& perturbation = {}) {
  Router router(cluster, {}, FailingLinks(perturbation, cluster.link_count()));
  LowerOptions options;
  options.fidelity = fidelity;
  options.fold = fold;
  options.perturbation = perturbation;
  Lowered lowered = Lower(schedule, router, options);
  Timeline timeline = Simulate(lowered.program, schedule.ranks()).timeline;
  timeline.representative = lowered.representative;
  if (classes) *classes = lowered.rank_classes;
  return timeline;
}

// Every span of every rank within 1e-9 of the step, or one tick of the clock per op.
void ExpectSameSpans(const Timeline& folded, const Timeline& unfolded) {
  const Timeline all = Unfolded(folded);
  ASSERT_EQ(all.spans.size(), unfolded.spans.size());
  const int64_t tolerance =
      static_cast<int64_t>(1e-9 * static_cast<double>(unfolded.step.picoseconds())) + 50;
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

TEST(FoldingTest, ARingOnASwitchIsOneRank) {
  const auto cluster = Preset("switch", "devices", 16);
  const Schedule schedule = OneCollective(CollectiveKind::kAllReduce, 1e6, {Range(0, 16)});
  for (const Fidelity fidelity : {Fidelity::kFormula, Fidelity::kFluid, Fidelity::kStep}) {
    uint32_t classes = 0;
    const Timeline folded = Play(schedule, *cluster, fidelity, true, &classes);
    EXPECT_EQ(classes, 1u) << Name(fidelity);
    ExpectSameSpans(folded, Play(schedule, *cluster, fidelity, false));
  }
}

TEST(FoldingTest, GroupsOfOneCommunicatorAreEqualThoughTheirRanksDiffer) {
  const auto cluster = Preset("perlmutter", "nodes", 4);
  std::vector<std::vector<uint32_t>> groups(4);
  for (uint32_t rank = 0; rank < 16; ++rank) groups[rank % 4].push_back(rank);
  uint32_t classes = 0;
  Play(OneCollective(CollectiveKind::kAllReduce, 1e6, groups), *cluster, Fidelity::kFluid, true,
       &classes);
  EXPECT_EQ(classes, 1u);
}

TEST(FoldingTest, ASlowDeviceSplitsOnlyTheClassesItTouches) {
  // 4 groups of 4 on a switch; one device of group 0 is another kind. Its group's other three ranks
  // wait for it and are a class, the device is another, and the ranks of the other groups stay one
  // class: 3.
  ClusterBuilder builder("switch");
  const auto preset = Preset("switch", "devices", 16);
  const uint32_t usual = builder.AddDeviceSpec(preset->DeviceOf(0));
  DeviceSpec slow = preset->DeviceOf(0);
  slow.name = "slow";
  const uint32_t special = builder.AddDeviceSpec(slow);
  Vertex fabric;
  fabric.name = "fabric";
  fabric.kind = VertexKind::kSwitch;
  const auto center = builder.AddVertex(fabric);
  for (uint32_t i = 0; i < 16; ++i) {
    Vertex vertex;
    vertex.name = fmt::format("gpu{}", i);
    vertex.node = vertex.name;
    ClusterLink link;
    link.bandwidth = BytesPerSecond(25e9);
    builder.AddLinks(builder.AddVertex(vertex, i == 2 ? special : usual), center, link);
  }
  const Cluster cluster = builder.Finish();
  uint32_t classes = 0;
  const Schedule schedule = OneCollective(CollectiveKind::kAllReduce, 1e6,
                                          {Range(0, 4), Range(4, 4), Range(8, 4), Range(12, 4)});
  Play(schedule, cluster, Fidelity::kFluid, true, &classes);
  EXPECT_EQ(classes, 3u);
  // Step by step the position in the ring matters: the 4 ranks of group 0 are all different.
  Play(schedule, cluster, Fidelity::kStep, true, &classes);
  EXPECT_EQ(classes, 5u);
}

// Random roles over a mesh of two axes: collectives on both, sends around one of them, compute
// between.
Schedule RandomSchedule(Random& random, uint32_t columns, uint32_t rows) {
  Schedule schedule;
  schedule.communicators.push_back(
      Communicator::Strided("column", {{columns, 1}}, {{rows, columns}}));
  schedule.communicators.push_back(Communicator::Strided("row", {{rows, columns}}, {{columns, 1}}));
  // One role per row when there is a pipeline along the rows, else one for all.
  const bool pipeline = rows > 1 && random.Below(2) == 0;
  const uint32_t roles = pipeline ? rows : 1;
  const uint32_t ops = 3 + random.Below(6);
  std::vector<uint32_t> kinds;
  std::vector<double> sizes;
  for (uint32_t i = 0; i < ops; ++i) {
    kinds.push_back(random.Below(pipeline ? 2 : 3));
    sizes.push_back(1e5 * (1 + random.Below(50)));
  }
  for (uint32_t r = 0; r < roles; ++r) {
    Role role;
    role.name = fmt::format("stage{}", r);
    role.streams = {{"compute", StreamKind::kCompute},
                    {"column", StreamKind::kCommunication},
                    {"row", StreamKind::kCommunication}};
    const auto add = [&](uint32_t stream, Work work, bool wait) {
      Op op;
      op.name = fmt::format("op{}", role.ops.size());
      op.stream = StreamId(stream);
      op.work = std::move(work);
      if (wait && !role.ops.empty()) {
        op.after.push_back(OpId(static_cast<uint32_t>(role.ops.size() - 1)));
      }
      role.ops.push_back(op);
    };
    if (pipeline && r > 0) add(2, Receive{CommunicatorId(1), r - 1, Bytes(3e6)}, false);
    for (uint32_t i = 0; i < ops; ++i) {
      if (kinds[i] == 0) {
        Compute compute;
        compute.bytes = Bytes(sizes[i] * 100);
        add(0, compute, i % 2 == 0);
      } else {
        Collective collective;
        collective.kind = i % 2 == 0 ? CollectiveKind::kAllReduce : CollectiveKind::kAllGather;
        collective.communicator = CommunicatorId(kinds[i] - 1);
        collective.bytes = Bytes(sizes[i]);
        add(kinds[i], collective, i % 3 != 0);
      }
    }
    if (pipeline && r + 1 < rows) add(2, Send{CommunicatorId(1), r + 1, Bytes(3e6)}, true);
    schedule.roles.push_back(std::move(role));
  }
  for (uint32_t rank = 0; rank < columns * rows; ++rank) {
    schedule.role_of_rank.push_back(pipeline ? rank / columns : 0);
  }
  return schedule;
}

TEST(FoldingTest, FoldedEqualsUnfoldedOnHundredsOfRandomMachinesAndSchedules) {
  constexpr uint64_t kSeeds = kIsSanitized ? 100 : 400;
  uint32_t folded_somewhere = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Random random(seed);
    const uint32_t columns = 1 + random.Below(6);
    const uint32_t rows = 1 + random.Below(4);
    const auto cluster = RandomCluster(random, columns * rows);
    const Schedule schedule = RandomSchedule(random, columns, rows);
    for (const Fidelity fidelity : {Fidelity::kFormula, Fidelity::kFluid, Fidelity::kStep}) {
      SCOPED_TRACE(fmt::format("seed {} {}", seed, Name(fidelity)));
      uint32_t classes = 0;
      const Timeline folded = Play(schedule, *cluster, fidelity, true, &classes);
      ExpectSameSpans(folded, Play(schedule, *cluster, fidelity, false));
      if (::testing::Test::HasFatalFailure()) return;
      if (classes < columns * rows) ++folded_somewhere;
    }
  }
  EXPECT_GT(folded_somewhere,
            3 * kSeeds / 4);  // of 3 for each: the test must have had something to fold
}

TEST(FoldingTest, FoldedEqualsUnfoldedWhenComputeAndCommunicationInterfereAndShareHosts) {
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    Random random(seed);
    const uint32_t columns = 1 + random.Below(6);
    const uint32_t rows = 1 + random.Below(4);
    const auto plain = RandomCluster(random, columns * rows);
    const Schedule schedule = RandomSchedule(random, columns, rows);
    // The same machine with devices that interfere; every third shares its host's cores.
    Figures figures = plain->figures();
    for (DeviceSpec& spec : figures.device_specs) {
      spec.slowdown = {.gemm = 0.1, .attention = 0.2, .memory = 0.3, .communication = 0.25};
      if (seed % 3 == 0) spec.host_cores = seed % 2 == 0 ? 1.5 : 0.75;
    }
    const Cluster cluster = plain->With(figures);
    for (const Fidelity fidelity : {Fidelity::kFluid, Fidelity::kStep}) {
      SCOPED_TRACE(fmt::format("seed {} {}", seed, Name(fidelity)));
      ExpectSameSpans(Play(schedule, cluster, fidelity, true),
                      Play(schedule, cluster, fidelity, false));
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

// Everything at once, and links fail for a while: half a step at most, since there is no way round
// them.
Perturbation RandomPerturbation(Random& random, const Cluster& cluster, Time step) {
  Perturbation perturbation;
  perturbation.seed = random.Below(1000);
  if (random.Chance(25)) perturbation.compute_jitter = 0.1;
  if (random.Chance(25)) perturbation.link_jitter = 0.1;
  if (random.Chance(50)) {
    perturbation.straggling.assign(cluster.device_count(), 1.0);
    perturbation.straggling[random.Below(cluster.device_count())] = 1.5;
  }
  for (uint32_t count = random.Below(4); count > 0; --count) {
    const uint32_t link = random.Below(cluster.link_count());
    const Time at(
        static_cast<int64_t>(random.Fraction() * static_cast<double>(step.picoseconds())));
    perturbation.events.push_back({at, link, random.Chance(50) ? 0.0 : 0.3});
    perturbation.events.push_back({at + Time(step.picoseconds() / 2), link, 1});
  }
  return perturbation;
}

TEST(FoldingTest, FoldedEqualsUnfoldedWhenKernelsAndLinksArePerturbed) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    const uint32_t columns = 1 + random.Below(6);
    const uint32_t rows = 1 + random.Below(4);
    const auto cluster = RandomCluster(random, columns * rows);
    const Schedule schedule = RandomSchedule(random, columns, rows);
    const Time step = Play(schedule, *cluster, Fidelity::kFluid, true).step;
    const Perturbation perturbation = RandomPerturbation(random, *cluster, step);
    for (const Fidelity fidelity : {Fidelity::kFluid, Fidelity::kStep}) {
      SCOPED_TRACE(fmt::format("seed {} {}", seed, Name(fidelity)));
      ExpectSameSpans(Play(schedule, *cluster, fidelity, true, nullptr, perturbation),
                      Play(schedule, *cluster, fidelity, false, nullptr, perturbation));
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(FoldingTest, AnEventSplitsOnlyWhatCrossesItsLink) {
  // 4 groups of 4 on a switch, and the first rank's link to the switch becomes slow: as with an
  // edit, its group is a class of its own, and at fidelity step the ranks of that group all differ.
  // 2 and 5 classes.
  const auto cluster = Preset("switch", "devices", 16);
  const Schedule schedule = OneCollective(CollectiveKind::kAllReduce, 1e6,
                                          {Range(0, 4), Range(4, 4), Range(8, 4), Range(12, 4)});
  Perturbation perturbation;
  Router router(*cluster);
  perturbation.events = {{Time(1'000'000), router.Between(0, 1).links.front(), 0.5}};
  uint32_t classes = 0;
  Play(schedule, *cluster, Fidelity::kFluid, true, &classes, perturbation);
  EXPECT_EQ(classes, 2u);
  Play(schedule, *cluster, Fidelity::kStep, true, &classes, perturbation);
  EXPECT_EQ(classes, 5u);
}

TEST(FoldingTest, FoldedLinksCarryWhatEachLinkOfTheirClassCarries) {
  const auto cluster = Preset("perlmutter", "nodes", 4);
  const Schedule schedule = OneCollective(CollectiveKind::kAllReduce, 1e8, {Range(0, 16)});
  std::map<std::string, double> bytes;
  for (const LinkRecord& link : Play(schedule, *cluster, Fidelity::kFluid, false).links) {
    bytes[link.name] = link.bytes.value();
  }
  for (const LinkRecord& link : Play(schedule, *cluster, Fidelity::kFluid, true).links) {
    EXPECT_NEAR(link.bytes.value(), bytes.at(link.name), 1e-6 * bytes.at(link.name)) << link.name;
  }
}

}  // namespace folding_test
}  // namespace rehearse
