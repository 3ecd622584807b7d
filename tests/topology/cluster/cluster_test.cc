#include "topology/cluster/cluster.h"

#include <limits>
#include <memory>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "topology/cluster/builder.h"

namespace rehearse {
namespace cluster_test {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Two devices of machine "a" and one of "b", each on a link to one switch.
class ClusterTest : public ::testing::Test {
 protected:
  ClusterTest() : builder_("test") {
    builder_.AddDeviceSpec(FindDevice("a100-40g"));
    hub_ = builder_.AddVertex({"hub", VertexKind::kSwitch, ""});
    Device("b/gpu0", "b");
    Device("a/gpu0", "a");
    Device("b/gpu1", "b");
  }

  VertexId Device(const std::string& name, const std::string& node) {
    return builder_.AddVertex({name, VertexKind::kDevice, node});
  }

  static ClusterLink Cable(double bandwidth = 25e9) {
    ClusterLink link;
    link.bandwidth = BytesPerSecond(bandwidth);
    link.latency = Seconds(1e-6);
    return link;
  }

  void JoinAll() {
    for (const auto device : builder_.devices()) builder_.AddLinks(device, hub_, Cable());
  }

  // What the error says; "" if there is none.
  template <typename Function>
  static std::string ErrorOf(Function function) {
    try {
      function();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  ClusterBuilder builder_;
  VertexId hub_ = 0;
};

TEST_F(ClusterTest, DevicesAreRankedInTheOrderOfAdding) {
  JoinAll();
  const Cluster cluster = builder_.Finish();
  ASSERT_EQ(cluster.device_count(), 3u);
  EXPECT_EQ(cluster.DeviceName(0), "b/gpu0");
  EXPECT_EQ(cluster.DeviceName(1), "a/gpu0");
  EXPECT_EQ(cluster.DeviceOf(2).name, "a100-40g");
}

TEST_F(ClusterTest, MachinesAreNumberedByTheirFirstDevice) {
  JoinAll();
  const Cluster cluster = builder_.Finish();
  // Ranks 0, 1, 2 are on b, a, b.
  EXPECT_EQ(cluster.node_count(), 2u);
  EXPECT_EQ(cluster.NodeIndexOf(0), 0u);
  EXPECT_EQ(cluster.NodeIndexOf(1), 1u);
  EXPECT_EQ(cluster.NodeIndexOf(2), 0u);
  EXPECT_EQ(cluster.NodeOf(1), "a");
}

TEST_F(ClusterTest, LinksAreNamedAndCountedInTheOrderOfAdding) {
  JoinAll();
  const Cluster cluster = builder_.Finish();
  // Two directions for each of three devices.
  ASSERT_EQ(cluster.link_count(), 6u);
  EXPECT_EQ(cluster.LinkName(2), "a/gpu0->hub");
  EXPECT_EQ(cluster.LinkName(3), "hub->a/gpu0");
  for (uint32_t i = 0; i < 6; ++i) EXPECT_EQ(cluster.Link(i).index, i);
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
                builder_.AddVertex({"x", VertexKind::kDevice, ""}, 1);
              }),
              HasSubstr("\"x\" is a device of a kind that was not added"));
}

TEST_F(ClusterTest, ALinkWithoutPositiveBandwidthIsRefused) {
  for (const double bandwidth : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN(),
                                 std::numeric_limits<double>::infinity()})
    EXPECT_THAT(ErrorOf([&] { builder_.AddLinks(1, hub_, Cable(bandwidth)); }),
                AllOf(HasSubstr("b/gpu0->hub"), HasSubstr("expected more than 0")));
}

TEST_F(ClusterTest, ALinkMoreThanFullyEfficientIsRefused) {
  ClusterLink link = Cable();
  for (const double efficiency : {0.0, -0.5, 1.01}) {
    link.efficiency = efficiency;
    EXPECT_THAT(ErrorOf([&] { builder_.AddLink(1, hub_, link); }), HasSubstr("efficiency"));
  }
}

TEST_F(ClusterTest, ALatencyIsNeitherNegativeNorAbsurd) {
  ClusterLink link = Cable();
  for (const double latency : {-1e-6, 101.0, std::numeric_limits<double>::quiet_NaN()}) {
    link.latency = Seconds(latency);
    EXPECT_THAT(ErrorOf([&] { builder_.AddLink(1, hub_, link); }), HasSubstr("latency"));
  }
}

TEST_F(ClusterTest, ALinkHasTwoEndsThatExist) {
  EXPECT_THAT(ErrorOf([&] { builder_.AddLink(1, 1, Cable()); }), HasSubstr("to itself"));
  EXPECT_THAT(ErrorOf([&] { builder_.AddLink(1, 99, Cable()); }), HasSubstr("there are only 4"));
}

TEST_F(ClusterTest, ADisconnectedDeviceIsNamedWithOneThatMissesIt) {
  builder_.AddLinks(1, hub_, Cable());
  builder_.AddLinks(2, hub_, Cable());
  EXPECT_THAT(ErrorOf([&] { builder_.Finish(); }),
              AllOf(HasSubstr("\"b/gpu0\" has no path to"), HasSubstr("\"b/gpu1\"")));
}

TEST_F(ClusterTest, AOneWayStreetIsNoConnection) {
  builder_.AddLinks(1, hub_, Cable());
  builder_.AddLinks(2, hub_, Cable());
  builder_.AddLink(3, hub_, Cable());  // b/gpu1 sends, and receives nothing
  EXPECT_THAT(ErrorOf([&] { builder_.Finish(); }), HasSubstr("has no path to device \"b/gpu1\""));
}

TEST_F(ClusterTest, APathThroughAnotherDeviceIsNoConnection) {
  // A chain of three: the ends would have to go through the middle.
  builder_.AddLinks(1, 2, Cable());
  builder_.AddLinks(2, 3, Cable());
  EXPECT_THAT(
      ErrorOf([&] { builder_.Finish(); }),
      HasSubstr("\"b/gpu0\" has no path to device \"b/gpu1\" (a path may not pass through"));
}

TEST_F(ClusterTest, AFullMeshOfDevicesNeedsNoSwitch) {
  builder_.AddLinks(1, 2, Cable());
  builder_.AddLinks(2, 3, Cable());
  builder_.AddLinks(1, 3, Cable());
  EXPECT_NO_THROW(builder_.Finish());
}

TEST_F(ClusterTest, AClusterWithoutDevicesIsRefused) {
  ClusterBuilder empty("empty");
  EXPECT_THAT(ErrorOf([&] { empty.Finish(); }), HasSubstr("\"empty\" has no device"));
}

TEST_F(ClusterTest, AMisspeltVertexIsSuggested) {
  JoinAll();
  const Cluster cluster = builder_.Finish();
  EXPECT_EQ(cluster.FindVertex("hub"), hub_);
  EXPECT_THAT(ErrorOf([&] { cluster.FindVertex("a/gpu9"); }),
              HasSubstr("did you mean \"a/gpu0\"?"));
}

// ---- Figures over the wiring --------------------------------------------------------------------

// The cluster with links of half the bandwidth.
Cluster Halved(const Cluster& cluster) {
  Figures figures = cluster.figures();
  figures.ChangeLinks([](uint32_t, LinkFigures& link) { link.bandwidth = 0.5 * link.bandwidth; });
  return cluster.With(std::move(figures));
}

TEST_F(ClusterTest, OtherFiguresLeaveTheClusterAsItWas) {
  JoinAll();
  const Cluster cluster = builder_.Finish();
  const Cluster halved = Halved(cluster);
  EXPECT_EQ(halved.Link(0).bandwidth, BytesPerSecond(12.5e9));
  EXPECT_EQ(halved.Link(0).latency, cluster.Link(0).latency);
  EXPECT_EQ(cluster.Link(0).bandwidth, BytesPerSecond(25e9));
}

TEST_F(ClusterTest, ClustersOfOtherFiguresShareTheirWiringAndKnowNothingOfEachOther) {
  JoinAll();
  const Cluster cluster = builder_.Finish();
  const Cluster halved = Halved(cluster);
  Figures figures = cluster.figures();
  figures.device_specs[0].name = "other";
  figures.step_overhead = Seconds(1e-6);
  const Cluster renamed = cluster.With(figures);
  EXPECT_EQ(halved.wiring(), cluster.wiring());
  EXPECT_EQ(renamed.wiring(), cluster.wiring());
  // What one changes does not appear in the other.
  EXPECT_EQ(halved.DeviceOf(0).name, "a100-40g");
  EXPECT_EQ(halved.step_overhead(), Seconds(0));
  EXPECT_EQ(renamed.DeviceOf(0).name, "other");
  EXPECT_EQ(renamed.Link(0).bandwidth, BytesPerSecond(25e9));
  // Nothing changed the links of `renamed`: they are not even copied.
  EXPECT_EQ(renamed.figures().links, cluster.figures().links);
}

TEST_F(ClusterTest, FiguresOutliveTheClusterThatTheyAreFrom) {
  JoinAll();
  auto cluster = std::make_unique<Cluster>(builder_.Finish());
  const Cluster halved = Halved(*cluster);
  const Cluster copy = *cluster;
  cluster.reset();
  EXPECT_EQ(halved.LinkName(0), "b/gpu0->hub");
  EXPECT_EQ(copy.DeviceName(2), "b/gpu1");
}

TEST_F(ClusterTest, EachDeviceMayBecomeAnother) {
  JoinAll();
  const Cluster cluster = builder_.Finish();
  Figures figures = cluster.figures();
  figures.device_specs.push_back(FindDevice("a100-80g"));
  figures.spec_of_rank[1] = 1;
  const Cluster mixed = cluster.With(figures);
  EXPECT_EQ(mixed.DeviceOf(0).name, "a100-40g");
  EXPECT_EQ(mixed.DeviceOf(1).name, "a100-80g");
  EXPECT_EQ(cluster.DeviceOf(1).name, "a100-40g");
}

TEST_F(ClusterTest, FiguresThatNoLinkCanHaveAreRefused) {
  JoinAll();
  const Cluster cluster = builder_.Finish();
  Figures figures = cluster.figures();
  figures.ChangeLinks([](uint32_t i, LinkFigures& link) {
    if (i == 3) link.efficiency = 1.5;
  });
  EXPECT_THAT(ErrorOf([&] { cluster.With(figures); }),
              AllOf(HasSubstr("hub->a/gpu0"), HasSubstr("efficiency 1.5")));
  figures = cluster.figures();
  figures.spec_of_rank.pop_back();
  EXPECT_THROW(cluster.With(figures), InternalError);  // a fault of ours
}

TEST(ClusterNamesTest, KindsAreSpeltAsInClusterFiles) {
  EXPECT_STREQ(Name(VertexKind::kPcieSwitch), "pcie-switch");
  EXPECT_STREQ(Name(VertexKind::kNvSwitch), "nvswitch");
  EXPECT_STREQ(Name(LinkKind::kNvLink), "nvlink");
  EXPECT_STREQ(Name(LinkKind::kMemory), "memory");
}

}  // namespace cluster_test
}  // namespace rehearse
