// What others leave free on a busy cluster.
#include "scenarios/readers/busy_cluster.h"

#include <algorithm>
#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/readers/device_floor.h"
#include "tests/scenarios/small_scenario.h"
#include "topology/files/cluster_file.h"

namespace rehearse {
namespace busy_cluster_test {

using ::rehearse::testing::ErrorOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(DeviceFloorTest, JobsBelowAUnitShareTheFullestThatHasRoom) {
  const auto cluster = ReadClusterArgument("perlmutter:nodes=3");
  DeviceFloor floor(*cluster, UsualUnit(*cluster));
  EXPECT_EQ(floor.unit(), 4u);
  floor.Take({0, 4, 5});  // 3 are free in the first machine, 2 in the second, 4 in the third
  EXPECT_THAT(floor.FreeFor(1), ElementsAre(6));
  EXPECT_THAT(floor.FreeFor(2), ElementsAre(6, 7));
  EXPECT_THAT(floor.FreeFor(3), ElementsAre(1, 2, 3));
  EXPECT_THAT(floor.FreeFor(4), ElementsAre(8, 9, 10, 11));
  EXPECT_THAT(floor.FreeFor(5), IsEmpty());
  EXPECT_EQ(floor.free_devices(), 9u);
  floor.Leave({4, 5});
  EXPECT_THAT(floor.FreeFor(8), ElementsAre(4, 5, 6, 7, 8, 9, 10, 11));
}

TEST(DeviceFloorTest, ARackIsGivenOutInTrays) {
  const auto rack = ReadClusterArgument("gb200-nvl72:racks=1");
  EXPECT_EQ(UsualUnit(*rack), 4u);
  const auto boxes = ReadClusterArgument("gcp-a2-megagpu-16g:nodes=2,gpus=16");
  EXPECT_EQ(UsualUnit(*boxes), 16u);
}

// On 32 machines of 4: whole machines, in order, the same for the same seed.
TEST(BusyClusterTest, AStepHasWholeMachinesThatOthersLeave) {
  const auto cluster = ReadClusterArgument("perlmutter:nodes=32");
  BusyCluster busy;
  busy.busy = 0.6;
  std::set<std::vector<uint32_t>> draws;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    const std::vector<uint32_t> placement = DrawPlacement(busy, *cluster, 32, seed);
    ASSERT_EQ(placement.size(), 32u);
    EXPECT_EQ(placement, DrawPlacement(busy, *cluster, 32, seed));
    std::map<uint32_t, int> of_machine;
    for (const uint32_t device : placement) ++of_machine[device / 4];
    EXPECT_EQ(of_machine.size(), 8u);
    EXPECT_TRUE(std::is_sorted(placement.begin(), placement.end()));
    draws.insert(placement);
  }
  EXPECT_GT(draws.size(), 4u);
}

TEST(BusyClusterTest, NobodyElseLeavesTheFirstDevices) {
  const auto cluster = ReadClusterArgument("perlmutter:nodes=8");
  EXPECT_THAT(DrawPlacement({}, *cluster, 8, 5), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  BusyCluster even;
  even.takes = PlacementOrder::kRoundRobin;
  EXPECT_THAT(DrawPlacement(even, *cluster, 8, 5), ElementsAre(0, 4, 8, 12, 16, 20, 24, 28));
}

TEST(BusyClusterTest, AStepBelowAMachineIsPutBesideOthers) {
  const auto cluster = ReadClusterArgument("perlmutter:nodes=16");
  BusyCluster busy;
  busy.busy = 0.5;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    const std::vector<uint32_t> placement = DrawPlacement(busy, *cluster, 2, seed);
    ASSERT_EQ(placement.size(), 2u);
    EXPECT_EQ(placement[0] / 4, placement[1] / 4);
  }
}

// However busy: others end until there is room.
TEST(BusyClusterTest, AStepWaitsUntilWholeMachinesAreFree) {
  const auto cluster = ReadClusterArgument("perlmutter:nodes=16");
  BusyCluster busy;
  busy.busy = 0.5;
  for (uint64_t seed = 0; seed < 8; ++seed)
    EXPECT_EQ(DrawPlacement(busy, *cluster, 32, seed).size(), 32u);
}

TEST(BusyClusterTest, MistakesAreSaidWhereTheyStand) {
  EXPECT_THAT(ErrorOf({R"(placement={"busy": 0.5})"}),
              HasSubstr("/placement/busy: others hold 4 of 8 devices"));
  EXPECT_THAT(ErrorOf({R"(placement={"busy": 1.5})"}),
              HasSubstr("/placement/busy: found 1.5, expected a number from 0 to 0.999"));
  EXPECT_THAT(ErrorOf({"cluster=perlmutter:nodes=3", R"(placement={"busy": 0, "unit": 8})"}),
              HasSubstr("/placement/unit: 8 devices are given out together"));
  EXPECT_THAT(
      ErrorOf({"cluster=perlmutter:nodes=3", "training.batch=10",
               R"(strategy={"kind": "data-parallel", "data": 5, "overlap_gradients": true})",
               R"(placement={"busy": 0, "takes": "even"})"}),
      HasSubstr("/placement/takes: 5 ranks cannot be spread evenly"));
  EXPECT_THAT(ErrorOf({R"(placement={"bussy": 0.5})"}), HasSubstr("did you mean \"busy\"?"));
  EXPECT_THAT(ErrorOf({R"(placement={"busy": 0.5, "takes": "0-7"})"}),
              HasSubstr("/placement/takes: found \"0-7\", expected \"block\""));
}

}  // namespace busy_cluster_test
}  // namespace rehearse
