#include "collectives/lowering/lower.h"

#include <cmath>
#include <map>
#include <numeric>

#include <gtest/gtest.h>

#include "collectives/algorithms/ring.h"
#include "sim/base/error.h"
#include "tests/collectives/schedules.h"
#include "workloads/cost_models/axonn_model.h"

namespace rehearse {
namespace lower_test {

using testing::OneCollective;
using testing::Preset;
using testing::StepTime;

std::vector<uint32_t> Range(uint32_t count) {
  std::vector<uint32_t> ranks(count);
  std::iota(ranks.begin(), ranks.end(), 0u);
  return ranks;
}

// As collectives/lowering/lower.h has it: on an idle symmetric machine the three fidelities
// agree to 0.1 %.
struct FidelityCase {
  CollectiveKind kind;
  uint32_t ranks;
  double bytes;
};

class FidelityTest : public ::testing::TestWithParam<FidelityCase> {};

TEST_P(FidelityTest, ClosedFormFluidAndStepAgreeOnAnIdleSwitch) {
  const auto [kind, ranks, bytes] = GetParam();
  const auto cluster = Preset("switch", "devices", ranks);
  const Schedule schedule = OneCollective(kind, bytes, {Range(ranks)});
  // Two links per path, each 1 us; 25 GB/s; one channel.
  const double expected =
      RingTime(kind, ranks, Bytes(bytes), BytesPerSecond(25e9), Seconds(2e-6)).value();
  for (const Fidelity fidelity : {Fidelity::kFormula, Fidelity::kFluid, Fidelity::kStep}) {
    EXPECT_NEAR(StepTime(schedule, *cluster, fidelity).value(), expected, 1e-3 * expected)
        << Name(fidelity);
  }
}

std::vector<FidelityCase> FidelityCases() {
  std::vector<FidelityCase> cases;
  for (const CollectiveKind kind :
       {CollectiveKind::kAllReduce, CollectiveKind::kAllGather, CollectiveKind::kReduceScatter}) {
    for (uint32_t ranks = 2; ranks <= 16; ++ranks) {
      for (const double bytes : {1.0, 12345.0, 1048577.0, 1e9 + 7}) {
        cases.push_back({kind, ranks, bytes});
      }
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(RanksAndSizes, FidelityTest, ::testing::ValuesIn(FidelityCases()));

TEST(LowerTest, FidelitiesAgreeWithSeveralChannelsToo) {
  for (const auto& [name, nodes] :
       std::map<std::string, uint32_t>{{"perlmutter", 4}, {"dgx-a100", 2}}) {
    const auto cluster = Preset(name, "nodes", nodes);
    const Schedule schedule =
        OneCollective(CollectiveKind::kAllReduce, 1e9, {Range(cluster->device_count())});
    const double formula = StepTime(schedule, *cluster, Fidelity::kFormula).value();
    EXPECT_NEAR(StepTime(schedule, *cluster, Fidelity::kFluid).value(), formula, 1e-3 * formula);
    // Step by step a rank's edges inside the node are done sooner than those across nodes, so
    // latencies overlap: the last step may end a little before the closed form.
    EXPECT_NEAR(StepTime(schedule, *cluster, Fidelity::kStep).value(), formula, 1e-2 * formula);
  }
}

TEST(LowerTest, TwoRingsThatShareNicsGetHalfEach) {
  // 2 nodes of 4: the NIC of every GPU lies on all 4 channels of the one group. A second
  // communicator over the same ranks doubles the load of every NIC, so both take twice as long as
  // one alone.
  const auto cluster = Preset("perlmutter", "nodes", 2);
  Schedule schedule = OneCollective(CollectiveKind::kAllReduce, 1e9, {Range(8)});
  const double alone = StepTime(schedule, *cluster, Fidelity::kFluid).value();
  schedule.communicators.push_back(Communicator::Explicit("second", {Range(8)}));
  Role& role = schedule.roles[0];
  role.streams.push_back({"second", StreamKind::kCommunication});
  Op op = role.ops[0];
  op.stream = StreamId(1);
  std::get<Collective>(op.work).communicator = CommunicatorId(1);
  role.ops.push_back(op);
  const double both = StepTime(schedule, *cluster, Fidelity::kFluid).value();
  // The latency (14 steps of 14 us) is spent side by side, so take it out before comparing.
  const double latency = 14 * 14e-6;
  EXPECT_NEAR(both - latency, 2 * (alone - latency), 1e-6 * both);
}

TEST(LowerTest, AGroupOfAnOuterAxisSeesTheShareOfTheNodesBandwidthThatAxonnStates) {
  // AxoNN section V: beta_inter / min(product of inner sizes, GPUs of a node). Groups of an axis of
  // size 4 on 16 or more GPUs of Perlmutter, `inner` ranks nested inside, all groups at once.
  const AxonnBandwidths& table = PerlmutterBandwidths();
  for (const uint32_t inner : {1u, 2u, 4u, 8u}) {
    const uint32_t size = inner == 1 ? 8 : 4;  // an innermost group must be larger than a node
    const uint32_t ranks = 4 * inner * size < 16 ? 16 : inner * size;
    const auto cluster = Preset("perlmutter", "nodes", ranks / 4);
    std::vector<std::vector<uint32_t>> groups;
    for (uint32_t outer = 0; outer < ranks / (inner * size); ++outer) {
      for (uint32_t i = 0; i < inner; ++i) {
        groups.emplace_back();
        for (uint32_t member = 0; member < size; ++member) {
          groups.back().push_back(outer * inner * size + member * inner + i);
        }
      }
    }
    const double bytes = 16e9;  // long enough for the latency not to matter
    const Schedule schedule = OneCollective(CollectiveKind::kAllReduce, bytes, groups);
    const Seconds time = StepTime(schedule, *cluster, Fidelity::kFluid);
    const double busbw = BusBandwidth(CollectiveKind::kAllReduce, size, Bytes(bytes), time).value();
    const double paper = AxonnBandwidth(table, inner, size).value();
    EXPECT_NEAR(busbw, paper, 1e-3 * paper) << "inner " << inner;
  }
}

TEST(LowerTest, BytesOnTheLinksAreTheBytesOfTheRing) {
  // All-gather of n bytes over 6 ranks: each of 6 edges carries (p-1)/p n, over two links each.
  const auto cluster = Preset("switch", "devices", 6);
  const Schedule schedule = OneCollective(CollectiveKind::kAllGather, 6e6, {Range(6)});
  for (const Fidelity fidelity : {Fidelity::kFluid, Fidelity::kStep}) {
    Router router(*cluster);
    const Simulation simulation = Simulate(
        Lower(schedule, router, {.fidelity = fidelity, .channels = 0, .fold = false}).program, 6);
    double sum = 0;
    for (const LinkRecord& link : simulation.timeline.links) sum += link.bytes.value();
    EXPECT_NEAR(sum, 6 * 2 * 5e6, 1e-3);
  }
}

TEST(LowerTest, AStepBeyondTheMachinesMemoryIsRefusedBeforeItIsThere) {
  const auto cluster = Preset("switch", "devices", 32);
  const Schedule schedule = OneCollective(CollectiveKind::kAllGather, 6e6, {Range(32)});
  const auto lower = [&](bool fold, uint64_t free_memory) {
    Router router(*cluster);
    return Lower(schedule, router,
                 {.fidelity = Fidelity::kStep, .fold = fold, .free_memory = free_memory});
  };
  try {
    lower(false, 1000);
    FAIL() << "it was lowered";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("32 of 32 ranks"), std::string::npos) << error.what();
  }
  EXPECT_EQ(lower(false, 1'000'000).rank_classes, 32u);
  EXPECT_EQ(lower(true, 1000).rank_classes, 1u) << "one rank stands for all";
}

TEST(LowerTest, ARankWaitsForTheOthersOfItsGroup) {
  // Rank 1 computes 1 s first; the all-reduce of rank 0 is ready at 0 but begins when
  // rank 1 is there.
  const auto cluster = Preset("switch", "devices", 2);
  Schedule schedule = OneCollective(CollectiveKind::kAllReduce, 1e6, {Range(2)});
  Role late = schedule.roles[0];
  late.streams.push_back({"compute", StreamKind::kCompute});
  Op work;
  work.name = "work";
  work.stream = StreamId(1);
  Compute compute;
  compute.kind = ComputeKind::kMemory;
  compute.bytes =
      Bytes(cluster->DeviceOf(0).memory_bandwidth.value() * cluster->DeviceOf(0).memory_efficiency);
  work.work = compute;
  late.ops.insert(late.ops.begin(), work);
  late.ops[1].after.push_back(OpId(0));
  schedule.roles.push_back(late);
  schedule.role_of_rank[1] = 1;
  Router router(*cluster);
  const Timeline timeline = Simulate(Lower(schedule, router).program, 2).timeline;
  const Span& early = timeline.spans[0];
  EXPECT_EQ(early.rank, 0u);
  EXPECT_EQ(early.ready, Time(0));
  EXPECT_NEAR(ToSeconds(early.begin).value(), 1, 1e-4);
  EXPECT_EQ(early.end, timeline.step);
}

// A kernel of memory, 1 s long, beside an all-reduce of 25 GB on two ranks at 25 GB/s, 1 s and two
// steps of 2 us. With 0.5 in addition for communication beside kernels it takes half as long again.
// Copy engines are not slowed down.
TEST(LowerTest, KernelsSlowDownTheCommunicationBesideThem) {
  const auto cluster = Preset("switch", "devices", 2);
  Schedule schedule = OneCollective(CollectiveKind::kAllReduce, 25e9, {Range(2)});
  Role& role = schedule.roles[0];
  role.streams.push_back({"compute", StreamKind::kCompute});
  Op work;
  work.name = "work";
  work.stream = StreamId(1);
  Compute compute;
  compute.kind = ComputeKind::kMemory;
  const DeviceSpec& device = cluster->DeviceOf(0);
  compute.bytes = Bytes(2 * device.memory_bandwidth.value() * device.memory_efficiency);
  work.work = compute;
  role.ops.push_back(work);  // 2 s, longer than the collective
  Router router(*cluster);
  LowerOptions options;
  const auto collective = [&] {
    const Timeline timeline = Simulate(Lower(schedule, router, options).program, 2).timeline;
    return ToSeconds(timeline.spans.front().end).value();
  };
  EXPECT_NEAR(collective(), 1 + 4e-6, 1e-8);
  options.slowdown = Slowdown{.communication = 0.5};
  EXPECT_NEAR(collective(), 1.5, 1e-4);
  options.copy_engines = {"group"};
  EXPECT_NEAR(collective(), 1 + 4e-6, 1e-8);
  options.copy_engines = {"others"};
  EXPECT_NEAR(collective(), 1.5, 1e-4);
}

// A library's latency is spent by its kernels, as the time is in which bytes move. A kernel that
// takes 1 s alone, and twice as long beside a collective of C seconds, has done C/2 of its work
// when that ends: it takes 1 s + C/2, however much of C is latency.
TEST(LowerTest, KernelsAreSlowedForAsLongAsACollectiveLastsLatencyAndAll) {
  const auto cluster = Preset("dgx-a100", "nodes", 4);
  for (const double bytes : {4.0, 1e6, 1e9}) {
    Schedule schedule = OneCollective(CollectiveKind::kAllGather, bytes, {Range(32)});
    Role& role = schedule.roles[0];
    auto& collective = std::get<Collective>(role.ops[0].work);
    collective.algorithm = AlgorithmId::kAuto;
    collective.protocol = Protocol::kAuto;
    role.streams.push_back({"compute", StreamKind::kCompute});
    Op work;
    work.name = "work";
    work.stream = StreamId(1);
    Compute compute;
    compute.kind = ComputeKind::kMemory;
    const DeviceSpec& device = cluster->DeviceOf(0);
    compute.bytes = Bytes(device.memory_bandwidth.value() * device.memory_efficiency);
    work.work = compute;
    role.ops.push_back(work);
    Router router(*cluster);
    for (const Fidelity fidelity : {Fidelity::kFluid, Fidelity::kStep}) {
      LowerOptions options;
      options.fidelity = fidelity;
      const auto ends = [&] {
        const Timeline timeline = Simulate(Lower(schedule, router, options).program, 32).timeline;
        return std::pair(ToSeconds(timeline.spans[0].end).value(),
                         ToSeconds(timeline.spans[1].end).value());
      };
      options.slowdown = Slowdown();
      const double alone = ends().second;
      options.slowdown = Slowdown{.memory = 1};
      const auto [communicated, worked] = ends();
      EXPECT_NEAR(worked, alone + communicated / 2, 1e-11) << bytes << " " << Name(fidelity);
    }
  }
}

TEST(LowerTest, CopyEnginesOfACommunicatorLeaveMessagesAlone) {
  const auto cluster = Preset("switch", "devices", 2);
  Schedule schedule = OneCollective(CollectiveKind::kAllReduce, 1, {Range(2)});
  schedule.roles.push_back(schedule.roles[0]);
  schedule.role_of_rank[1] = 1;
  schedule.roles[0].ops[0].work = Send{CommunicatorId(0), 1, Bytes(1e9)};
  schedule.roles[1].ops[0].work = Receive{CommunicatorId(0), 0, Bytes(1e9)};
  Router router(*cluster);
  LowerOptions options;
  options.slowdown = Slowdown{.communication = 0.5};
  options.copy_engines = {"others"};
  const Timeline timeline = Simulate(Lower(schedule, router, options).program, 2).timeline;
  EXPECT_NEAR(ToSeconds(timeline.step).value(), 40e-3 + 2e-6, 1e-9);
}

// Closed forms know nothing of links that change.
TEST(LowerTest, ClosedFormsAreNotAskedForLinksThatChange) {
  const auto cluster = Preset("switch", "devices", 2);
  Router router(*cluster);
  const Schedule schedule = OneCollective(CollectiveKind::kAllReduce, 1, {Range(2)});
  LowerOptions options;
  options.fidelity = Fidelity::kFormula;
  options.perturbation.link_jitter = 0.1;
  EXPECT_THROW(Lower(schedule, router, options), InternalError);
}

TEST(LowerTest, ASendMeetsItsReceiveAndTakesOnePath) {
  // 1 GB over 25 GB/s = 40 ms and two hops of 1 us; every fidelity.
  const auto cluster = Preset("switch", "devices", 2);
  for (const Fidelity fidelity : {Fidelity::kFormula, Fidelity::kFluid, Fidelity::kStep}) {
    Schedule schedule = OneCollective(CollectiveKind::kAllReduce, 1, {Range(2)});
    schedule.roles.push_back(schedule.roles[0]);
    schedule.role_of_rank[1] = 1;
    schedule.roles[0].ops[0].work = Send{CommunicatorId(0), 1, Bytes(1e9)};
    schedule.roles[1].ops[0].work = Receive{CommunicatorId(0), 0, Bytes(1e9)};
    EXPECT_NEAR(StepTime(schedule, *cluster, fidelity).value(), 40e-3 + 2e-6, 1e-9);
  }
}

TEST(LowerTest, AScheduleForOtherRanksThanTheClusterIsRefused) {
  const auto cluster = Preset("switch", "devices", 4);
  Router router(*cluster);
  EXPECT_THROW(Lower(OneCollective(CollectiveKind::kAllReduce, 1, {Range(2)}), router), Error);
}

TEST(LowerTest, CollectivesAreNoHostCopies) {
  const auto cluster = Preset("switch", "devices", 2);
  Router router(*cluster);
  Schedule schedule = OneCollective(CollectiveKind::kAllReduce, 1, {Range(2)});
  std::get<Collective>(schedule.roles[0].ops[0].work).algorithm = AlgorithmId::kCopy;
  EXPECT_THROW(Lower(schedule, router), Error);
}

TEST(LowerTest, FlowsOfOpsAreNotedWhereTheyAreAskedFor) {
  const auto cluster = Preset("switch", "devices", 2);
  Router router(*cluster);
  const Schedule schedule = OneCollective(CollectiveKind::kAllReduce, 1e6, {Range(2)});
  EXPECT_TRUE(Lower(schedule, router).flows_of_ops.empty());
  const Lowered noted = Lower(schedule, router, {.note_flows = true});
  ASSERT_FALSE(noted.flows_of_ops.empty());
  EXPECT_EQ(noted.flows_of_ops.front().begin, 0u);
  EXPECT_EQ(noted.flows_of_ops.back().end, noted.program.flows.size());
}

// More ranks that differ than a table of classes begins with: each has a kernel of its own length.
TEST(LowerTest, ThousandsOfDifferentRanksAreThousandsOfClasses) {
  constexpr uint32_t kRanks = 1500;
  const auto cluster = Preset("switch", "devices", kRanks);
  Schedule schedule;
  for (uint32_t rank = 0; rank < kRanks; ++rank) {
    Role role;
    role.name = fmt::format("rank {}", rank);
    role.streams = {{"compute", StreamKind::kCompute}};
    Op op;
    op.name = "work";
    op.stream = StreamId(0);
    Compute compute;
    compute.kind = ComputeKind::kFixed;
    compute.duration = Seconds(1e-6 * (rank + 1));
    op.work = compute;
    role.ops.push_back(op);
    schedule.roles.push_back(role);
    schedule.role_of_rank.push_back(rank);
  }
  Router router(*cluster);
  const Lowered lowered = Lower(schedule, router);
  EXPECT_EQ(lowered.rank_classes, kRanks);
  const Timeline timeline = Simulate(lowered.program, kRanks).timeline;
  EXPECT_NEAR(ToSeconds(timeline.step).value(), 1e-6 * kRanks, 1e-12);
}

// Two collectives of one group, one after the other: each is played by its own algorithm.
TEST(LowerTest, CollectivesOfAGroupAreEachTheirOwn) {
  const auto cluster = Preset("dgx-a100", "nodes", 2);
  const auto schedule_of = [](const std::vector<const char*>& algorithms) {
    Schedule schedule = OneCollective(CollectiveKind::kAllReduce, 64e6,
                                      {{0, 1, 2, 3, 4, 5, 6, 7}, {8, 9, 10, 11, 12, 13, 14, 15}});
    Role& role = schedule.roles[0];
    const Op op = role.ops[0];
    role.ops.clear();
    for (const char* algorithm : algorithms) {
      role.ops.push_back(op);
      std::get<Collective>(role.ops.back().work).algorithm = ParseAlgorithm(algorithm);
    }
    return schedule;
  };
  for (const Fidelity fidelity : {Fidelity::kFormula, Fidelity::kFluid}) {
    const auto time = [&](const std::vector<const char*>& algorithms) {
      return StepTime(schedule_of(algorithms), *cluster, fidelity).value();
    };
    const double ring = time({"ring"});
    const double doubling = time({"doubling"});
    EXPECT_GT(std::abs(ring - doubling), 0.1 * ring);  // they differ
    EXPECT_NEAR(time({"ring", "doubling"}), ring + doubling, 1e-6 * ring);
    EXPECT_NEAR(time({"doubling", "ring"}), ring + doubling, 1e-6 * ring);
  }
}

// On two machines DeepEP sends across and inside side by side: both latencies, and the longer of
// the two moves. Closed form and flows agree.
TEST(LowerTest, DeepEpTakesTheLongerOfAcrossAndInside) {
  const auto cluster = Preset("perlmutter", "nodes", 2);
  Schedule schedule = OneCollective(CollectiveKind::kAllToAll, 1e9, {Range(8)});
  std::get<Collective>(schedule.roles[0].ops[0].work).algorithm = AlgorithmId::kDeepEp;
  const double formula = StepTime(schedule, *cluster, Fidelity::kFormula).value();
  EXPECT_NEAR(StepTime(schedule, *cluster, Fidelity::kFluid).value(), formula, 0.02 * formula);
}

}  // namespace lower_test
}  // namespace rehearse
