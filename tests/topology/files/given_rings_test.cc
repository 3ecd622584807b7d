#include "topology/files/given_rings.h"

#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collectives/algorithms/channels.h"
#include "sim/base/error.h"
#include "sim/base/json_document.h"
#include "topology/files/cluster_export.h"
#include "topology/files/cluster_file.h"

namespace rehearse {
namespace given_rings_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::unique_ptr<Cluster> ClusterOf(const std::string& text) {
  const JsonDocument document = JsonDocument::FromText(text, "machine.json");
  return ReadCluster(document.Root());
}

std::unique_ptr<Cluster> Perlmutter(uint32_t nodes, const std::string& rings) {
  return ClusterOf(R"({"preset": "perlmutter", "nodes": )" + std::to_string(nodes) + ", " + rings +
                   "}");
}

std::vector<Channel> ChannelsOf(const Cluster& cluster, uint32_t ranks) {
  Router router(cluster);
  std::vector<uint32_t> group(ranks);
  std::iota(group.begin(), group.end(), 0u);
  std::vector<Channel> channels = ChannelFinder(router).Find(group);
  SetIdleRates(cluster, channels);
  for (Channel& channel : channels) channel.edges.clear();  // they point into the router
  return channels;
}

double RateOf(const Cluster& cluster, uint32_t ranks) {
  Router router(cluster);
  std::vector<uint32_t> group(ranks);
  std::iota(group.begin(), group.end(), 0u);
  return TotalRate(cluster, ChannelFinder(router).Find(group)).value();
}

TEST(GivenRingsTest, AreTheOnesThatAMachineGoes) {
  // A full mesh of four carries three pairs' rates on its six rings; a single ring carries one
  // pair's.
  const auto searched = ClusterOf(R"({"preset": "perlmutter", "nodes": 1})");
  const auto given = Perlmutter(1, R"("rings": [[0, 2, 1, 3]])");
  EXPECT_NEAR(RateOf(*given, 4), RateOf(*searched, 4) / 3, 1);
  const std::vector<Channel> channels = ChannelsOf(*given, 4);
  ASSERT_EQ(channels.size(), 1u);
  EXPECT_THAT(channels[0].ranks, ElementsAre(0, 2, 1, 3));
  // For a group that is not a whole machine, rings are searched for.
  EXPECT_EQ(RateOf(*given, 3), RateOf(*searched, 3));
}

TEST(GivenRingsTest, ARingThatIsListedTwiceCarriesTwiceAsMuch) {
  const auto given = Perlmutter(1, R"("rings": [[0, 1, 2, 3], [3, 2, 1, 0], [0, 1, 2, 3]])");
  const std::vector<Channel> channels = ChannelsOf(*given, 4);
  ASSERT_EQ(channels.size(), 2u);
  EXPECT_NEAR(channels[0].share, 2.0 / 3, 1e-12);
  EXPECT_NEAR(channels[1].share, 1.0 / 3, 1e-12);
}

TEST(GivenRingsTest, AcrossMachinesTheyLeadFromTheFirstDeviceToTheLast) {
  const auto given = Perlmutter(2, R"("rings": [[1, 0, 3, 2]])");
  const std::vector<Channel> channels = ChannelsOf(*given, 8);
  ASSERT_EQ(channels.size(), 1u);
  EXPECT_THAT(channels[0].ranks, ElementsAre(1, 0, 3, 2, 5, 4, 7, 6));
}

TEST(GivenRingsTest, StayInAClusterThatIsWrittenAndRead) {
  const auto given = Perlmutter(1, R"("rings": [[0, 2, 1, 3], [3, 1, 2, 0]])");
  const auto again = ClusterOf(ClusterToText(*given, ""));
  EXPECT_EQ(again->rings(), given->rings());
}

TEST(GivenRingsTest, WhatIsNoRingOfAMachineIsAMistake) {
  const auto mistake = [](const std::string& rings) -> std::string {
    try {
      Perlmutter(1, "\"rings\": " + rings);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(mistake("[[0, 1, 2]]"),
              HasSubstr("/rings/0: found a ring of 3 devices, expected all 4 of a machine"));
  EXPECT_THAT(mistake("[[0, 1, 2, 2]]"), HasSubstr("/rings/0/3: found device 2 a second time"));
  EXPECT_THAT(mistake("[[0, 1, 2, 4]]"), HasSubstr("/rings/0/3: found device 4, expected each"));
  EXPECT_THAT(mistake("[0, 1, 2, 3]"), HasSubstr("/rings/0"));
}

}  // namespace given_rings_test
}  // namespace rehearse
