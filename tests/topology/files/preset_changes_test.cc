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
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

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

TEST(PresetChangesTest, TheFabricThatAPresetHasChangesNothing) {
  // Four rails for the 72 NICs of a rack.
  ExpectSameCluster(*ReadClusterArgument("gb200-nvl72:racks=4,fabric=rails"),
                    *ReadClusterArgument("gb200-nvl72:racks=4"));
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

// What the notes say of a fabric is true of what is drawn, or is not said.
TEST(PresetChangesTest, NotesOfAFabricGoWhereItIsChanged) {
  const auto notes_of = [](const std::string& cluster) {
    std::string all;
    const auto built = ReadClusterArgument(cluster);
    for (const std::string& note : built->notes()) all += note + "\n";
    return all;
  };
  for (const char* same : {"dgx-h100:nodes=8", "dgx-h100:nodes=8,nics=4", "dgx-h100:fabric=rails"})
    EXPECT_THAT(notes_of(same), HasSubstr("Rails on a fat tree without oversubscription")) << same;
  for (const char* change :
       {"oversubscription=2", "fabric=fat-tree", "fabric=switch", "levels=3"}) {
    const std::string notes = notes_of(std::string("dgx-h100:nodes=8,") + change);
    EXPECT_THAT(notes, Not(HasSubstr("fat tree"))) << change;
    EXPECT_THAT(notes, HasSubstr("The NVSwitches are one vertex")) << change;
  }
  for (const ClusterPreset& preset : ClusterPresets()) {
    const std::string changed = preset.name + ":fabric=fat-tree,oversubscription=1.5";
    if (!ErrorOf(changed).empty()) continue;
    EXPECT_THAT(notes_of(changed),
                Not(AnyOf(HasSubstr("fabric is one switch"), HasSubstr("without oversubscription"),
                          HasSubstr("four rails"), HasSubstr("switches of a group"))))
        << preset.name;
  }
}

TEST(PresetChangesTest, WrongOnesAreRefused) {
  EXPECT_THAT(ErrorOf("dgx-h100:nodes=8,nics=0"), HasSubstr("/nics: found 0"));
  EXPECT_THAT(ErrorOf("dgx-h100:nodes=8,nick=4"),
              AllOf(HasSubstr("has no parameter \"nick\""), HasSubstr("did you mean \"nic")));
  EXPECT_THAT(ErrorOf("dgx-h100:nodes=8,nic=fast"), HasSubstr("/nic: found \"fast\""));
  EXPECT_THAT(ErrorOf("dgx-h100:fabric=dragonfly"), HasSubstr("expected switch, fat-tree"));
  EXPECT_THAT(ErrorOf("tpu-v4:nics=4"), HasSubstr("cables end at their devices"));
  EXPECT_THAT(ErrorOf("aws-p5:nodes=4,radix=64"),
              HasSubstr("is one switch, which has no \"radix\"; give another \"fabric\""));
  EXPECT_THAT(ErrorOf("dgx-h100:nodes=8,fabric=switch,routing=ecmp"),
              HasSubstr("is one switch, whose paths leave no choice for \"routing\""));
  EXPECT_THAT(ErrorOf("perlmutter:nodes=4,routing=minimal,levels=2"),
              HasSubstr("is a dragonfly, which has no \"levels\""));
  EXPECT_THAT(ErrorOf("dgx-h100:nodes=8,radix=7"), HasSubstr("even radix"));
  EXPECT_THAT(ErrorOf("dgx-h100:nodes=8,nics=4,node.nics=4"), HasSubstr("a second time"));
}

}  // namespace preset_changes_test
}  // namespace rehearse
