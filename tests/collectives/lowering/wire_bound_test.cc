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
  const auto time_of = [&](CollectiveKind kind) { return bounds.Of(kind, kSize, 1).time.value(); };
  const double whole = (kSize / port).value();
  const double tolerance = 1e-6 * whole;  // flows are counted in whole bytes per second
  EXPECT_NEAR(time_of(CollectiveKind::kAllReduce), whole, tolerance);
  EXPECT_NEAR(time_of(CollectiveKind::kBroadcast), whole, tolerance);
  EXPECT_NEAR(time_of(CollectiveKind::kReduce), whole, tolerance);
  EXPECT_NEAR(time_of(CollectiveKind::kAllGather), 0.75 * whole, tolerance);
  EXPECT_NEAR(time_of(CollectiveKind::kReduceScatter), 0.75 * whole, tolerance);
  EXPECT_NEAR(time_of(CollectiveKind::kAllToAll), 0.75 * whole, tolerance);
  EXPECT_EQ(bounds.Of(CollectiveKind::kAllReduce, kSize, 1).cut, cluster->DeviceName(0));
}

TEST(WireBoundTest, BoxesAreBoundByTheirNics) {
  // Two boxes: 8 NICs carry what leaves a box, less than NVLink carries out of a device.
  const auto cluster = BuildPreset("dgx-h100", {{"nodes", 2}}, Place());
  const WireBound bound =
      WireBounds(*cluster, RanksBelow(16)).Of(CollectiveKind::kAllReduce, kSize, 0);
  BytesPerSecond nics;
  for (uint32_t link = 0; link < cluster->link_count(); ++link)
    if (cluster->KindOf(link) == LinkKind::kNetwork &&
        cluster->VertexAt(cluster->SourceOf(link)).node == cluster->NodeOf(0))
      nics += cluster->Link(link).Capacity();
  EXPECT_EQ(bound.cut, cluster->NodeOf(0));
  EXPECT_NEAR(bound.carries / nics, 1, 1e-6);
  EXPECT_NEAR(bound.time.value(), (kSize / nics).value(), 1e-6 * bound.time.value());
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
        trial.algorithm = "auto";
        trial.protocol = "auto";
        trial.root = ranks.front();
        Router router(*cluster);
        const double time = TimeOf(trial, kSize, router).value();
        EXPECT_GE(time, bounds.Of(kind, kSize, ranks.front()).time.value() * (1 - 1e-6))
            << preset.name << ", " << ranks.size() << " ranks, " << Name(kind);
      }
    }
  }
}

}  // namespace wire_bound_test
}  // namespace rehearse
