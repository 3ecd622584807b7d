// Networks of ASTRA-sim and SimAI as clusters.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/foreign/machines/imported.h"
#include "tools/foreign/machines/astra_sim/import_network.h"
#include "tools/foreign/machines/infragraph/yaml_text.h"

namespace rehearse {
namespace import_astra_network_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

ImportedCluster Network(const std::string& text, const std::string& device = "") {
  return ImportAstraNetwork(text, "network.yml", device);
}
std::string NetworkErrorOf(const std::string& text) {
  return ErrorThrownBy([&] { Network(text); });
}

class AstraNetworkTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!HasYaml()) GTEST_SKIP() << "built without yaml-cpp";
  }
};

TEST_F(AstraNetworkTest, ARingJoinsEachWithTheNextAtGigabytesOf2To30Bytes) {
  const ImportedCluster imported = Network(
      "topology: [ Ring ]\nnpus_count: [ 4 ]\nbandwidth: [ 50.0 ] # GB/s\nlatency: [ 500.0 ] # ns");
  const Cluster& cluster = *imported.cluster;
  EXPECT_EQ(cluster.device_count(), 4u);
  EXPECT_EQ(cluster.link_count(), 8u);  // four, both ways
  EXPECT_DOUBLE_EQ(cluster.Link(0).bandwidth.value(), 50 * 1073741824.0);
  EXPECT_DOUBLE_EQ(cluster.Link(0).latency.value(), 500e-9);
  EXPECT_THAT(imported.remarks, ElementsAre(HasSubstr("not said; taken for h100")));
  ExpectComesBack(cluster);
}

TEST_F(AstraNetworkTest, ARingOfTwoIsOneLink) {
  const ImportedCluster imported =
      Network("topology: [Ring]\nnpus_count: [2]\nbandwidth: [50]\nlatency: [0]\n", "a100-80g");
  EXPECT_EQ(imported.cluster->link_count(), 2u);
  EXPECT_TRUE(imported.remarks.empty());
}

TEST_F(AstraNetworkTest, DimensionsAreMultipliedAndTheFirstIsTheNearest) {
  // Two groups of 3, each fully connected; 3 switches that join those of the same place.
  const ImportedCluster imported = Network(
      "topology: [FullyConnected, Switch]\nnpus_count: [3, 2]\nbandwidth: [100, 25]\n"
      "latency: [10, 20]\n");
  const Cluster& cluster = *imported.cluster;
  EXPECT_EQ(cluster.device_count(), 6u);
  EXPECT_EQ(CountOf(cluster, VertexKind::kNvSwitch), 3u);
  EXPECT_EQ(cluster.link_count(), 2u * (2 * 3 + 3 * 2));
  EXPECT_DOUBLE_EQ(BandwidthBetween(cluster, 0, 2), 100 * 1073741824.0);
  EXPECT_DOUBLE_EQ(BandwidthBetween(cluster, 0, 3), 25 * 1073741824.0);
  ExpectComesBack(cluster);
}

TEST_F(AstraNetworkTest, ADimensionOfOneHasNoLinks) {
  const ImportedCluster imported =
      Network("topology: [Ring, Ring]\nnpus_count: [3, 1]\nbandwidth: [50, 50]\nlatency: [0, 0]\n");
  EXPECT_EQ(imported.cluster->link_count(), 6u);
}

TEST(AstraLinksTest, ServersOfSimAiHaveNvSwitchesAndAFabric) {
  const ImportedCluster imported = Network(
      "7 2 2 1 8 H100\n4 5 6\n0 4 2880Gbps 0.000025ms 0\n1 4 2880Gbps 0.000025ms 0\n"
      "2 5 2880Gbps 0.000025ms 0\n3 5 2880Gbps 0.000025ms 0\n0 6 400Gbps 0.0005ms 0\n"
      "1 6 400Gbps 0.0005ms 0\n2 6 400Gbps 0.0005ms 0\n3 6 400Gbps 0.0005ms 0.1\n");
  const Cluster& cluster = *imported.cluster;
  EXPECT_EQ(cluster.device_count(), 4u);
  EXPECT_EQ(cluster.VertexAt(2).name, "node1/gpu0");
  EXPECT_EQ(CountOf(cluster, LinkKind::kNvLink), 8u);
  EXPECT_EQ(CountOf(cluster, LinkKind::kNetwork), 8u);
  EXPECT_DOUBLE_EQ(BandwidthBetween(cluster, 0, 1), 360e9);
  EXPECT_DOUBLE_EQ(BandwidthBetween(cluster, 1, 2), 50e9);
  EXPECT_THAT(imported.remarks, ElementsAre(HasSubstr("lost packets")));
  ExpectComesBack(cluster);
}

TEST(AstraLinksTest, LinksOfNs3AreANetwork) {
  const ImportedCluster imported =
      Network("3 1 2\n2\n0 2 100Gbps 0.0005ms 0\n1 2 100Gbps 0.0005ms 0\n", "a100-40g");
  EXPECT_EQ(CountOf(*imported.cluster, VertexKind::kSwitch), 1u);
  EXPECT_DOUBLE_EQ(BandwidthBetween(*imported.cluster, 0, 1), 12.5e9);
}

TEST_F(AstraNetworkTest, WhatIsNoNetworkIsRefusedAtItsPlace) {
  EXPECT_THAT(NetworkErrorOf("topology: [Ring]\nnpus_count: [4, 2]\nbandwidth: [1]\nlatency: [1]"),
              HasSubstr("network.yml:2: /npus_count: found 2 values, expected 1"));
  EXPECT_THAT(NetworkErrorOf("topology: [Rings]\nnpus_count: [4]\nbandwidth: [1]\nlatency: [1]"),
              HasSubstr("did you mean \"Ring\"?"));
  EXPECT_THAT(NetworkErrorOf("topology: [Ring]\nnpus_count: [4]\nbandwidth: [tbd]\nlatency: [1]"),
              HasSubstr("network.yml:3: /bandwidth/0: found \"tbd\""));
  EXPECT_THAT(NetworkErrorOf("{\"logical-dims\": [\"8\"]}"), HasSubstr("logical dimensions"));
  EXPECT_THAT(NetworkErrorOf("a: 1\n"), HasSubstr("expected topology, npus_count"));
}

TEST(AstraLinksTest, CountsThatDoNotFitAreRefusedAtTheirLine) {
  EXPECT_THAT(NetworkErrorOf("3 3 2\n"), StartsWith("network.yml:1: expected fewer switches"));
  EXPECT_THAT(NetworkErrorOf("3 1 2\n0\n"), HasSubstr("switches come last"));
  EXPECT_THAT(NetworkErrorOf("3 1 2\n2\n0 2 100Gbps 1ns 0\n"),
              HasSubstr("found 1 links, expected 2"));
  EXPECT_THAT(NetworkErrorOf("3 1 2\n2\n0 2 100 1ns 0\n"), StartsWith("network.yml:3: "));
}

}  // namespace import_astra_network_test
}  // namespace rehearse
