// Copies to and from the host as events on links.
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "collectives/lowering/lower.h"
#include "tests/collectives/schedules.h"

namespace rehearse {
namespace host_copy_test {

using testing::OneCollective;
using testing::Preset;
using testing::StepTime;

constexpr double kBytes = 256e6;

std::vector<std::vector<uint32_t>> Alone(const std::vector<uint32_t>& ranks) {
  std::vector<std::vector<uint32_t>> groups;
  for (const uint32_t rank : ranks) groups.push_back({rank});
  return groups;
}

Schedule Copies(CollectiveKind kind, uint32_t ranks) {
  std::vector<uint32_t> all(ranks);
  std::iota(all.begin(), all.end(), 0u);
  return OneCollective(kind, kBytes, Alone(all));
}

constexpr Fidelity kFidelities[] = {Fidelity::kFormula, Fidelity::kFluid, Fidelity::kStep};

// Two GPUs share a PCIe switch's uplink: x16 of generation 4.
TEST(HostCopyTest, TwoGpusShareTheirSwitchsUplink) {
  const auto cluster = Preset("dgx-a100", "nodes", 2);
  const ClusterLink up = cluster->Link([&] {
    uint32_t link = 0;
    while (cluster->LinkName(link) != "node0/pcie0->node0/socket0") ++link;
    return link;
  }());
  const double alone = kBytes / up.Capacity().value();
  for (const CollectiveKind kind : {CollectiveKind::kToHost, CollectiveKind::kFromHost}) {
    const Schedule schedule = Copies(kind, 16);
    for (const Fidelity fidelity : kFidelities) {
      const double shared = fidelity == Fidelity::kFormula ? 1 : 2;  // knows no contention
      EXPECT_NEAR(StepTime(schedule, *cluster, fidelity).value(), shared * alone, 1e-3 * alone)
          << Name(kind) << " " << Name(fidelity);
    }
  }
}

TEST(HostCopyTest, FoldedIsUnfolded) {
  const auto cluster = Preset("dgx-a100", "nodes", 4);
  const Schedule schedule = Copies(CollectiveKind::kToHost, 32);
  Router router(*cluster);
  const Lowered folded = Lower(schedule, router, {.fidelity = Fidelity::kFluid});
  const Lowered whole = Lower(schedule, router, {.fidelity = Fidelity::kFluid, .fold = false});
  EXPECT_EQ(folded.rank_classes, 1u);
  EXPECT_EQ(whole.rank_classes, 32u);
  EXPECT_EQ(Simulate(folded.program, 32).timeline.step, Simulate(whole.program, 32).timeline.step);
}

// Copies to the host cross the links that a gather on PCIe alone takes.
TEST(HostCopyTest, SharesItsLinksWithMessagesOverTheSameSwitch) {
  const auto cluster = Preset("rtx4090-pcie", "nodes", 1);
  const uint32_t ranks = cluster->device_count();
  Schedule schedule = Copies(CollectiveKind::kToHost, ranks);
  const double copies = StepTime(schedule, *cluster, Fidelity::kFluid).value();
  std::vector<uint32_t> all(ranks);
  std::iota(all.begin(), all.end(), 0u);
  const Schedule ring = OneCollective(CollectiveKind::kAllGather, kBytes, {all});
  const double gather = StepTime(ring, *cluster, Fidelity::kFluid).value();
  // Both on streams of their own.
  schedule.communicators.push_back(ring.communicators[0]);
  Role& role = schedule.roles[0];
  role.streams.push_back({"gather", StreamKind::kCommunication});
  Op op = ring.roles[0].ops[0];
  std::get<Collective>(op.work).communicator = CommunicatorId(1);
  op.stream = StreamId(1);
  role.ops.push_back(op);
  const double both = StepTime(schedule, *cluster, Fidelity::kFluid).value();
  EXPECT_GT(both, 1.05 * std::max(copies, gather));
  EXPECT_LT(both, 1.01 * (copies + gather));
}

}  // namespace host_copy_test
}  // namespace rehearse
