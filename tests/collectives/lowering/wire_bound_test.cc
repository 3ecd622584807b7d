#include "collectives/lowering/wire_bound.h"

#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "collectives/lowering/trial.h"
#include "topology/presets/presets.h"

namespace rehearse {
namespace wire_bound_test {

std::vector<uint32_t> RanksBelow(uint32_t count) {
  std::vector<uint32_t> ranks(count);
  std::iota(ranks.begin(), ranks.end(), 0u);
  return ranks;
}

constexpr Bytes kSize(64.0 * (1 << 20));

TEST(WireBoundTest, ASwitchOfEqualPortsIsBoundByEachDevice) {
  // 4 devices on a switch, 25 GB/s each way.
  const auto cluster = BuildPreset("switch", {{"devices", 4}}, Place());
  const BytesPerSecond port = cluster->Link(0).Capacity();
  const WireBounds bounds(*cluster, RanksBelow(4));
  const auto time_of = [&](CollectiveKind kind, Switches switches = Switches::kPass) {
    return bounds.Of(kind, kSize, 1, switches).time.value();
  };
  const double whole = (kSize / port).value();
  const double tolerance = 1e-6 * whole;  // flows are counted in whole bytes per second
  EXPECT_NEAR(time_of(CollectiveKind::kAllReduce, Switches::kAdd), whole, tolerance);
  // Where nothing but devices adds, what all of them send together: 2·3·n over 4 ports.
  EXPECT_NEAR(time_of(CollectiveKind::kAllReduce), 1.5 * whole, tolerance);
  EXPECT_EQ(bounds.Of(CollectiveKind::kAllReduce, kSize, 1).cut, "all devices");
  EXPECT_NEAR(time_of(CollectiveKind::kBroadcast), whole, tolerance);
  EXPECT_NEAR(time_of(CollectiveKind::kReduce), whole, tolerance);
  EXPECT_NEAR(time_of(CollectiveKind::kAllGather), 0.75 * whole, tolerance);
  EXPECT_NEAR(time_of(CollectiveKind::kReduceScatter), 0.75 * whole, tolerance);
  EXPECT_NEAR(time_of(CollectiveKind::kAllToAll), 0.75 * whole, tolerance);
  EXPECT_EQ(bounds.Of(CollectiveKind::kAllReduce, kSize, 1, Switches::kAdd).cut,
            cluster->DeviceName(0));
}

TEST(WireBoundTest, BoxesAreBoundByTheirNics) {
  // Two boxes: 8 NICs carry what leaves a box, less than NVLink carries out of a device.
  const auto cluster = BuildPreset("dgx-h100", {{"nodes", 2}}, Place());
  const WireBound bound =
      WireBounds(*cluster, RanksBelow(16)).Of(CollectiveKind::kAllReduce, kSize, 0, Switches::kAdd);
  BytesPerSecond nics;
  for (uint32_t link = 0; link < cluster->link_count(); ++link)
    if (cluster->KindOf(link) == LinkKind::kNetwork &&
        cluster->VertexAt(cluster->SourceOf(link)).node == cluster->NodeOf(0))
      nics += cluster->Link(link).Capacity();
  EXPECT_EQ(bound.cut, cluster->NodeOf(0));
  EXPECT_NEAR(bound.carries / nics, 1, 1e-6);
  EXPECT_NEAR(bound.time.value(), (kSize / nics).value(), 1e-6 * bound.time.value());
}

// Single devices, four a leaf, whose cables to the leaf are ten times as fast as the leaf's up.
TEST(WireBoundTest, WhatLeadsOnFromALeafBindsItsMachines) {
  ClosSpec spec;
  spec.radix = 8;
  spec.levels = 2;
  spec.cable = MakeLink(LinkKind::kNetwork, BytesPerSecond(10e9), 1, Seconds(1e-6));
  NodeSpec node;
  node.cable = MakeLink(LinkKind::kNetwork, BytesPerSecond(100e9), 1, Seconds(1e-6));
  const auto whole = BuildMachine({"tree", node, 16, spec, {}}, FindDevice("a100-40g"));
  // Of the third leaf's four cables up, one is left.
  Figures figures = whole->figures();
  figures.ChangeLinks([&](uint32_t link, LinkFigures& changed) {
    const std::string name = whole->LinkName(link);
    if (name.starts_with("leaf2->spine") && !name.ends_with("0"))
      changed.bandwidth = BytesPerSecond(1.0);
  });
  const Cluster slower = whole->With(std::move(figures));
  // One member a leaf: the third is unlike the others.
  const WireBound one = WireBounds(slower, {0, 4, 8, 12}).Of(CollectiveKind::kAllGather, kSize, 0);
  EXPECT_EQ(one.cut, slower.DeviceName(8));
  EXPECT_NEAR(one.carries.value(), 10e9, 10);
  // All members: what leaves the leaf leaves for all four.
  const WireBound all = WireBounds(slower, RanksBelow(16)).Of(CollectiveKind::kAllGather, kSize, 0);
  EXPECT_EQ(all.cut, "node8 and 3 more");
  EXPECT_NEAR(all.carries.value(), 10e9, 10);
}

// Single devices on a torus of 8 by 2 or 2 by 8: its tightest half is cut along the dimension of 8,
// in whichever order the dimensions are given: 2 links in each of 2 places.
TEST(WireBoundTest, ATorusIsCutAlongEachDimension) {
  const ClusterLink link = MakeLink(LinkKind::kNetwork, BytesPerSecond(10e9), 1, Seconds(1e-6));
  NodeSpec node;
  node.cable = MakeLink(LinkKind::kNetwork, BytesPerSecond(100e9), 1, Seconds(1e-6));
  const auto bound_of = [&](uint32_t first, uint32_t second) {
    TorusSpec torus;
    torus.dimensions = {{first, true, link}, {second, true, link}};
    const auto cluster = BuildMachine({"torus", node, 16, torus, {}}, FindDevice("a100-40g"));
    return WireBounds(*cluster, RanksBelow(16)).Of(CollectiveKind::kAllToAll, kSize, 0);
  };
  const WireBound long_first = bound_of(8, 2);
  const WireBound long_last = bound_of(2, 8);
  EXPECT_EQ(long_first.cut, "half of the nodes, along dimension 0");
  EXPECT_EQ(long_last.cut, "half of the nodes, along dimension 1");
  for (const WireBound& bound : {long_first, long_last}) {
    EXPECT_NEAR(bound.carries.value(), 40e9, 10);
    EXPECT_NEAR(bound.time.value(), 4 * kSize.value() / 40e9, 1e-6 * bound.time.value());
  }
}

// Single devices on a switch, of which the third sends at a tenth of the others' rate: a root is a
// member of the group, whatever its rank.
TEST(WireBoundTest, ARootIsAMemberOfTheGroup) {
  const auto whole = BuildPreset("switch", {{"devices", 4}}, Place());
  Figures figures = whole->figures();
  figures.ChangeLinks([&](uint32_t link, LinkFigures& changed) {
    if (whole->LinkName(link).starts_with("node2/gpu0->"))
      changed.bandwidth = 0.1 * whole->Link(link).bandwidth;
  });
  const Cluster slower = whole->With(std::move(figures));
  const WireBounds bounds(slower, {3, 2, 1});
  const auto time_from = [&](uint32_t root) {
    return bounds.Of(CollectiveKind::kBroadcast, kSize, root).time /
           (kSize / slower.Link(0).Capacity());
  };
  EXPECT_NEAR(time_from(0), 1, 1e-6);
  EXPECT_NEAR(time_from(1), 10, 1e-5);
  EXPECT_NEAR(time_from(2), 1, 1e-6);
}

TEST(WireBoundTest, NothingPredictedIsBelowIt) {
  for (const ClusterPreset& preset : ClusterPresets()) {
    std::map<std::string, uint32_t> parameters;
    for (const PresetParameter& parameter : preset.parameters)
      if (parameter.name == "nodes" && parameter.maximum >= 4) parameters["nodes"] = 4;
    const auto cluster = BuildPreset(preset.name, parameters, Place());
    if (cluster->device_count() < 2 || cluster->device_count() > 64) continue;
    std::vector<uint32_t> box;
    for (uint32_t rank = 0; rank < cluster->device_count(); ++rank)
      if (cluster->NodeIndexOf(rank) == 0) box.push_back(rank);
    for (const std::vector<uint32_t>& ranks : {box, RanksBelow(cluster->device_count())}) {
      if (ranks.size() < 2) continue;
      const WireBounds bounds(*cluster, ranks);
      for (const CollectiveKind kind :
           {CollectiveKind::kAllReduce, CollectiveKind::kAllGather, CollectiveKind::kReduceScatter,
            CollectiveKind::kAllToAll, CollectiveKind::kBroadcast}) {
        Trial trial;
        trial.kind = kind;
        trial.groups = {ranks};
        trial.algorithm = AlgorithmId::kAuto;
        trial.protocol = Protocol::kAuto;
        Router router(*cluster);
        const double time = TimeOf(trial, kSize, router).value();
        // "auto" may let switches add.
        const WireBound bound = bounds.Of(kind, kSize, 0, Switches::kAdd);
        EXPECT_GE(time, bound.time.value() * (1 - 1e-6))
            << preset.name << ", " << ranks.size() << " ranks, " << Name(kind);
        if (kind != CollectiveKind::kAllReduce) continue;
        trial.algorithm = AlgorithmId::kRing;
        const WireBound by_devices = bounds.Of(kind, kSize, 0);
        EXPECT_GE(TimeOf(trial, kSize, router).value(), by_devices.time.value() * (1 - 1e-6))
            << preset.name << ", " << ranks.size() << " ranks, a ring";
      }
    }
  }
}

}  // namespace wire_bound_test
}  // namespace rehearse
