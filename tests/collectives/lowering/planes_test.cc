// Collectives on several trees side by side: planes and separate rails.
#include <gtest/gtest.h>

#include "collectives/lowering/lower.h"
#include "collectives/lowering/trial.h"
#include "sim/engine/simulate.h"
#include "tests/topology/fabrics/small_fabrics.h"

namespace rehearse {
namespace planes_test {

constexpr uint32_t kNodes = 16;

// 4 devices on NVSwitch, each with a NIC of `ports` ports of `gigabytes`.
std::unique_ptr<Cluster> Machines(const ClosSpec& fabric, uint32_t ports, double gigabytes) {
  Host host;
  host.switches = host.nics = 4;
  host.nic_ports = ports;
  host.device = host.root_port = host.nic = Cable(200);
  NodeSpec node;
  node.devices = 4;
  node.nvswitch = MakeLink(LinkKind::kNvLink, BytesPerSecond(300e9), 1, Seconds(0.5e-6));
  node.host = host;
  node.cable = Cable(gigabytes);
  return BuildMachine({"machines", node, kNodes, fabric, {}}, FindDevice("h100"));
}

ClosSpec Tree(double gigabytes, uint32_t planes = 1) {
  ClosSpec spec = ClosOf(16, 3, 2);
  spec.cable = Cable(gigabytes);
  spec.planes = planes;
  return spec;
}

Trial Of(CollectiveKind kind, const char* algorithm) {
  Trial trial;
  trial.kind = kind;
  trial.algorithm = ParseAlgorithm(algorithm);
  trial.groups.resize(4);  // by the place in the machine, two of each four machines apart
  for (uint32_t node = 0; node < kNodes; ++node)
    for (uint32_t place = 0; place < 4; ++place) trial.groups[place].push_back(4 * node + place);
  return trial;
}

Trial All(CollectiveKind kind, const char* algorithm) {
  Trial trial = Of(kind, algorithm);
  std::vector<uint32_t> everyone;
  for (uint32_t rank = 0; rank < 4 * kNodes; ++rank) everyone.push_back(rank);
  trial.groups = {everyone};
  return trial;
}

std::vector<Trial> Trials() {
  return {Of(CollectiveKind::kAllReduce, "ring"), All(CollectiveKind::kAllReduce, "ring"),
          Of(CollectiveKind::kAllReduce, "tree"), All(CollectiveKind::kAllToAll, "direct"),
          Of(CollectiveKind::kAllToAll, "pairwise")};
}

TEST(PlanesTest, TwoPlanesAreOneOfTwiceTheBandwidth) {
  const auto one = Machines(Tree(20), 1, 20);
  const auto two = Machines(Tree(10, 2), 2, 10);
  for (const Trial& trial : Trials()) {
    Router on_one(*one);
    Router on_two(*two);
    EXPECT_EQ(on_two.ways(), 2u);
    const double expected = TimeOf(trial, Bytes(1e9), on_one).value();
    EXPECT_NEAR(TimeOf(trial, Bytes(1e9), on_two).value(), expected, 1e-6 * expected)
        << Name(trial.algorithm) << ", " << trial.groups.size() << " groups";
  }
}

TEST(PlanesTest, FoldedIsUnfolded) {
  ClosSpec rail_only = ClosOf(8, 2);
  rail_only.rail_only = true;
  for (const auto& cluster : {Machines(Tree(10, 2), 2, 10), Machines(rail_only, 1, 10)}) {
    for (const Trial& trial : Trials()) {
      const Schedule schedule = TrialSchedule(trial, {Bytes(1e9)}, cluster->device_count());
      std::vector<Time> steps;
      for (const bool fold : {true, false}) {
        Router router(*cluster);
        const Lowered lowered = Lower(schedule, router, {.fold = fold});
        steps.push_back(Simulate(lowered.program, schedule.ranks()).timeline.step);
      }
      EXPECT_EQ(steps[0], steps[1])
          << Name(trial.algorithm) << ", " << trial.groups.size() << " groups";
    }
  }
}

// Traffic that keeps to its rail does not miss the spines that would join the rails.
TEST(RailOnlyTest, CollectivesOfARailTakeWhatTheyTakeOnJoinedRails) {
  ClosSpec joined = ClosOf(8, 3, 1, true);
  ClosSpec separate = ClosOf(8, 2);
  separate.rail_only = true;
  const auto with = Machines(joined, 1, 10);
  const auto without = Machines(separate, 1, 10);
  for (const char* algorithm : {"ring", "tree"}) {
    const Trial trial = Of(CollectiveKind::kAllReduce, algorithm);
    Router on_joined(*with);
    Router on_separate(*without);
    // The third level of switches costs its hops.
    const double expected = TimeOf(trial, Bytes(8e9), on_joined).value();
    EXPECT_NEAR(TimeOf(trial, Bytes(8e9), on_separate).value(), expected, 1e-3 * expected)
        << algorithm;
  }
}

// All to all, every rank 1 GB: 60 of 64 parts leave the machine, over the NIC of the receiver's
// rail. Each NIC sends what the machine's 4 devices have for the 15 others of its rail:
// 4 · 15 · 1/64 GB at 10 GB/s.
TEST(RailOnlyTest, AllToAllCrossesRailsOverNvLink) {
  ClosSpec separate = ClosOf(8, 2);
  separate.rail_only = true;
  const auto cluster = Machines(separate, 1, 10);
  Router router(*cluster);
  const Trial trial = All(CollectiveKind::kAllToAll, "direct");
  const double seconds = TimeOf(trial, Bytes(1e9), router).value();
  EXPECT_NEAR(seconds, 4 * 15 / 64. * 1e9 / 10e9, 1e-3 * seconds);
}

}  // namespace planes_test
}  // namespace rehearse
