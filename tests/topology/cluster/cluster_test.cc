#include "topology/cluster/cluster.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rehearse {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Two devices of machine "a" and one of "b", each on a link to one switch.
class ClusterTest : public ::testing::Test {
 protected:
  ClusterTest() : cluster_("test") {
    cluster_.AddDeviceSpec(FindDevice("a100-40g"));
    hub_ = cluster_.AddVertex({"hub", VertexKind::kSwitch, "", 0});
    Device("b/gpu0", "b");
    Device("a/gpu0", "a");
    Device("b/gpu1", "b");
  }

  VertexId Device(const std::string& name, const std::string& node) {
    return cluster_.AddVertex({name, VertexKind::kDevice, node, 0});
  }

  static ClusterLink Cable(double bandwidth = 25e9) {
    ClusterLink link;
    link.bandwidth = BytesPerSecond(bandwidth);
    link.latency = Seconds(1e-6);
    return link;
  }

  void JoinAll() {
    for (const auto device : cluster_.devices()) cluster_.AddLinks(device, hub_, Cable());
  }

  // What the error says; "" when there is none.
  template <typename Function>
  static std::string ErrorOf(Function function) {
    try {
      function();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  Cluster cluster_;
  VertexId hub_ = 0;
};

TEST_F(ClusterTest, DevicesAreRankedInTheOrderOfAdding) {
  JoinAll();
  cluster_.Finish();
  ASSERT_EQ(cluster_.device_count(), 3u);
  EXPECT_EQ(cluster_.DeviceName(0), "b/gpu0");
  EXPECT_EQ(cluster_.DeviceName(1), "a/gpu0");
  EXPECT_EQ(cluster_.DeviceOf(2).name, "a100-40g");
}

TEST_F(ClusterTest, MachinesAreNumberedByTheirFirstDevice) {
  JoinAll();
  cluster_.Finish();
  // Ranks 0, 1, 2 are on b, a, b.
  EXPECT_EQ(cluster_.node_count(), 2u);
  EXPECT_EQ(cluster_.NodeIndexOf(0), 0u);
  EXPECT_EQ(cluster_.NodeIndexOf(1), 1u);
  EXPECT_EQ(cluster_.NodeIndexOf(2), 0u);
  EXPECT_EQ(cluster_.NodeOf(1), "a");
}

TEST_F(ClusterTest, LinksAreNamedAndCountedInTheOrderOfAdding) {
  JoinAll();
  // Two directions for each of three devices.
  ASSERT_EQ(cluster_.link_count(), 6u);
  EXPECT_EQ(cluster_.LinkName(2), "a/gpu0->hub");
  EXPECT_EQ(cluster_.LinkName(3), "hub->a/gpu0");
  for (uint32_t i = 0; i < 6; ++i) EXPECT_EQ(cluster_.Link(i).index, i);
}

TEST_F(ClusterTest, CapacityIsTheEfficientShareOfTheBandwidth) {
  ClusterLink link = Cable(100e9);
  link.efficiency = 0.75;
  EXPECT_DOUBLE_EQ(link.Capacity().value(), 75e9);
}

TEST_F(ClusterTest, ANameIsUsedOnce) {
  EXPECT_THAT(ErrorOf([&] { Device("a/gpu0", "a"); }), HasSubstr("two vertices named \"a/gpu0\""));
  EXPECT_THAT(ErrorOf([&] { Device("", "a"); }), HasSubstr("has no name"));
}

TEST_F(ClusterTest, ADeviceNeedsItsSpec) {
  EXPECT_THAT(ErrorOf([&] {
                cluster_.AddVertex({"x", VertexKind::kDevice, "", 1});
              }),
              HasSubstr("\"x\" is a device of a kind that was not added"));
}

TEST_F(ClusterTest, ALinkWithoutPositiveBandwidthIsRefused) {
  for (const double bandwidth : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN(),
                                 std::numeric_limits<double>::infinity()})
    EXPECT_THAT(ErrorOf([&] { cluster_.AddLinks(1, hub_, Cable(bandwidth)); }),
                AllOf(HasSubstr("b/gpu0->hub"), HasSubstr("expected more than 0")));
}

TEST_F(ClusterTest, ALinkMoreThanFullyEfficientIsRefused) {
  ClusterLink link = Cable();
  for (const double efficiency : {0.0, -0.5, 1.01}) {
    link.efficiency = efficiency;
    EXPECT_THAT(ErrorOf([&] { cluster_.AddLink(1, hub_, link); }), HasSubstr("efficiency"));
  }
}

TEST_F(ClusterTest, ALatencyIsNeitherNegativeNorAbsurd) {
  ClusterLink link = Cable();
  for (const double latency : {-1e-6, 101.0, std::numeric_limits<double>::quiet_NaN()}) {
    link.latency = Seconds(latency);
    EXPECT_THAT(ErrorOf([&] { cluster_.AddLink(1, hub_, link); }), HasSubstr("latency"));
  }
}

TEST_F(ClusterTest, ALinkHasTwoEndsThatExist) {
  EXPECT_THAT(ErrorOf([&] { cluster_.AddLink(1, 1, Cable()); }), HasSubstr("to itself"));
  EXPECT_THAT(ErrorOf([&] { cluster_.AddLink(1, 99, Cable()); }), HasSubstr("there are only 4"));
}

TEST_F(ClusterTest, ADisconnectedDeviceIsNamedWithOneThatMissesIt) {
  cluster_.AddLinks(1, hub_, Cable());
  cluster_.AddLinks(2, hub_, Cable());
  EXPECT_THAT(ErrorOf([&] { cluster_.Finish(); }),
              AllOf(HasSubstr("\"b/gpu0\" has no path to"), HasSubstr("\"b/gpu1\"")));
}

TEST_F(ClusterTest, AOneWayStreetIsNoConnection) {
  cluster_.AddLinks(1, hub_, Cable());
  cluster_.AddLinks(2, hub_, Cable());
  cluster_.AddLink(3, hub_, Cable());  // b/gpu1 sends, and receives nothing
  EXPECT_THAT(ErrorOf([&] { cluster_.Finish(); }), HasSubstr("has no path to device \"b/gpu1\""));
}

TEST_F(ClusterTest, APathThroughAnotherDeviceIsNoConnection) {
  // A chain of three: the ends would have to go through the middle.
  cluster_.AddLinks(1, 2, Cable());
  cluster_.AddLinks(2, 3, Cable());
  EXPECT_THAT(
      ErrorOf([&] { cluster_.Finish(); }),
      HasSubstr("\"b/gpu0\" has no path to device \"b/gpu1\" (a path may not pass through"));
}

TEST_F(ClusterTest, AFullMeshOfDevicesNeedsNoSwitch) {
  cluster_.AddLinks(1, 2, Cable());
  cluster_.AddLinks(2, 3, Cable());
  cluster_.AddLinks(1, 3, Cable());
  EXPECT_NO_THROW(cluster_.Finish());
}

TEST_F(ClusterTest, AClusterWithoutDevicesIsRefused) {
  Cluster empty("empty");
  EXPECT_THAT(ErrorOf([&] { empty.Finish(); }), HasSubstr("\"empty\" has no device"));
}

TEST_F(ClusterTest, AMisspeltVertexIsSuggested) {
  EXPECT_EQ(cluster_.FindVertex("hub"), hub_);
  EXPECT_THAT(ErrorOf([&] { cluster_.FindVertex("a/gpu9"); }),
              HasSubstr("did you mean \"a/gpu0\"?"));
}

TEST(ClusterNamesTest, KindsAreSpeltAsInClusterFiles) {
  EXPECT_STREQ(Name(VertexKind::kPcieSwitch), "pcie-switch");
  EXPECT_STREQ(Name(VertexKind::kNvSwitch), "nvswitch");
  EXPECT_STREQ(Name(LinkKind::kNvLink), "nvlink");
  EXPECT_STREQ(Name(LinkKind::kMemory), "memory");
}

}  // namespace
}  // namespace rehearse
