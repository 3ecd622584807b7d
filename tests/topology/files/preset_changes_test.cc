#include "topology/files/preset_changes.h"

#include <memory>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/json_document.h"
#include "tests/topology/same_cluster.h"
#include "topology/fabrics/structure.h"
#include "topology/files/cluster_file.h"
#include "topology/presets/presets.h"

namespace rehearse {
namespace preset_changes_test {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kChanged =
    "dgx-h100:nodes=32,nics=4,nic=200Gbps,fabric=rails,oversubscription=2,radix=16,device=h200";

std::string ErrorOf(const std::string& cluster) {
  try {
    ReadClusterArgument(cluster);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(PresetChangesTest, NicsAndFabricOfAPresetAreChangedInOneLine) {
  const auto cluster = ReadClusterArgument(kChanged);
  EXPECT_EQ(cluster->device_count(), 256u);
  EXPECT_EQ(cluster->DeviceOf(0).name, "h200");
  const ClusterStructure& structure = *cluster->structure();
  EXPECT_EQ(structure.ports(), 4u);
  for (uint32_t link = 0; link < cluster->link_count(); ++link)
    if (cluster->KindOf(link) == LinkKind::kNetwork) {
      ASSERT_EQ(cluster->Link(link).bandwidth, BytesPerSecond(25e9)) << cluster->LinkName(link);
    }
  const auto& clos = std::get<Clos>(structure.fabric->kind);
  EXPECT_TRUE(clos.rails);
  EXPECT_EQ(clos.levels.front().parents, 5u);  // of 16 ports, at 2:1
}

TEST(PresetChangesTest, AFileAndItsSubObjectsSayTheSame) {
  const auto cluster = ReadClusterArgument(kChanged);
  for (const char* text :
       {R"({"preset": "dgx-h100", "nodes": 32, "nics": 4, "nic": "200Gbps", "fabric": "rails",
            "oversubscription": 2, "radix": 16, "device": "h200"})",
        R"({"preset": "dgx-h100", "nodes": 32, "node": {"nics": 4, "nic": "200Gbps"},
            "fabric": {"oversubscription": 2, "radix": 16}, "device": "h200"})"}) {
    const auto same = ReadCluster(JsonDocument::FromText(text, "cluster.json").Root());
    ExpectSameCluster(*same, *cluster);
  }
  // Set from outside, as --set does it.
  JsonDocument scenario =
      JsonDocument::FromText(R"({"cluster": "dgx-h100:nodes=32,device=h200"})", "scenario.json");
  for (const char* change : {"cluster.node.nics=4", "cluster.nic=200Gbps",
                             "cluster.fabric.oversubscription=2", "cluster.radix=16"})
    scenario.Set(change);
  ExpectSameCluster(*ReadCluster(scenario.Root().At("cluster")), *cluster);
}

TEST(PresetChangesTest, AFabricInFullReplacesThePresets) {
  const auto cluster = ReadCluster(
      JsonDocument::FromText(R"({"preset": "aws-p5", "nodes": 4, "fabric": {"kind": "torus",
          "dimensions": [{"size": 4, "link": {"bandwidth": "50GBps", "latency": "1us"}}]},
          "nics": 1})",
                             "cluster.json")
          .Root());
  EXPECT_TRUE(std::holds_alternative<Torus>(cluster->structure()->fabric->kind));
}

TEST(PresetChangesTest, EveryPresetTakesThemOrSaysWhyNot) {
  for (const ClusterPreset& preset : ClusterPresets()) {
    for (const char* change : {"nics=4", "nic=100Gbps", "fabric=fat-tree", "oversubscription=2"}) {
      const std::string message = ErrorOf(preset.name + ":" + change);
      if (message.empty()) continue;
      EXPECT_THAT(message, ::testing::AnyOf(HasSubstr("no NICs"), HasSubstr("fabric of"),
                                            HasSubstr("one machine alone"), HasSubstr("rails")))
          << preset.name << ":" << change;
    }
  }
}

TEST(PresetChangesTest, WrongOnesAreRefused) {
  EXPECT_THAT(ErrorOf("dgx-h100:nodes=8,nics=0"), HasSubstr("/nics: found 0"));
  EXPECT_THAT(ErrorOf("dgx-h100:nodes=8,nick=4"),
              AllOf(HasSubstr("has no parameter \"nick\""), HasSubstr("did you mean \"nic")));
  EXPECT_THAT(ErrorOf("dgx-h100:nodes=8,nic=fast"), HasSubstr("/nic: found \"fast\""));
  EXPECT_THAT(ErrorOf("dgx-h100:fabric=dragonfly"), HasSubstr("expected switch, fat-tree"));
  EXPECT_THAT(ErrorOf("tpu-v4:nics=4"), HasSubstr("cables end at their devices"));
  EXPECT_THAT(ErrorOf("aws-p5:nodes=4,radix=64"), HasSubstr("is one switch, which has no"));
  EXPECT_THAT(ErrorOf("perlmutter:nodes=4,levels=2"), HasSubstr("is a dragonfly"));
  EXPECT_THAT(ErrorOf("dgx-h100:nodes=8,radix=7"), HasSubstr("even radix"));
  EXPECT_THAT(ErrorOf("dgx-h100:nodes=8,nics=4,node.nics=4"), HasSubstr("a second time"));
}

}  // namespace preset_changes_test
}  // namespace rehearse
