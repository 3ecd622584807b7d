#include "topology/view/cluster_layout.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/json_document.h"
#include "topology/files/cluster_file.h"
#include "topology/presets/presets.h"
#include "topology/view/cluster_svg.h"

namespace rehearse {
namespace cluster_layout_test {

std::unique_ptr<Cluster> Build(const std::string& name,
                               const std::map<std::string, uint32_t>& parameters = {}) {
  return BuildPreset(name, parameters, Place());
}

const PlacedBox& BoxOf(const ClusterLayout& layout, const std::string& title) {
  for (const PlacedBox& box : layout.boxes)
    if (box.title == title) return box;
  throw Error("no box " + title);
}

bool Overlap(const PlacedBox& a, const PlacedBox& b) {
  constexpr double kTouch = 0.01;
  return std::abs(a.center.x - b.center.x) < (a.width + b.width) / 2 - kTouch &&
         std::abs(a.center.y - b.center.y) < (a.height + b.height) / 2 - kTouch;
}

void ExpectTidy(const ClusterLayout& layout, const std::string& name) {
  EXPECT_GT(layout.width, 0) << name;
  for (size_t i = 0; i < layout.boxes.size(); ++i) {
    const PlacedBox& box = layout.boxes[i];
    EXPECT_GT(box.width, 3) << name << " " << box.title;
    EXPECT_GE(box.center.x - box.width / 2, 0) << name << " " << box.title;
    EXPECT_LE(box.center.x + box.width / 2, layout.width) << name << " " << box.title;
    EXPECT_GE(box.center.y - box.height / 2, 0) << name << " " << box.title;
    EXPECT_LE(box.center.y + box.height / 2, layout.height) << name << " " << box.title;
    for (size_t j = 0; j < i; ++j)
      EXPECT_FALSE(Overlap(box, layout.boxes[j]))
          << name << ": " << box.title << " lies on " << layout.boxes[j].title;
  }
  for (const PlacedLink& link : layout.links)
    EXPECT_TRUE(std::isfinite(link.from.x + link.from.y + link.to.x + link.to.y)) << name;
}

TEST(ClusterLayoutTest, NoPresetHasBoxesThatLieOnEachOtherOrOutside) {
  for (const ClusterPreset& preset : ClusterPresets()) {
    ExpectTidy(LayOutCluster(*Build(preset.name)), preset.name);
    for (const PresetParameter& parameter : preset.parameters)
      if (parameter.name == "nodes")
        for (const uint32_t nodes : {3u, 40u})
          if (nodes >= parameter.minimum && nodes <= parameter.maximum)
            ExpectTidy(LayOutCluster(*Build(preset.name, {{"nodes", nodes}})),
                       preset.name + " of several nodes");
  }
}

TEST(ClusterLayoutTest, AnNvSwitchBoxHasItsTiersAboveEachOther) {
  const ClusterLayout layout = LayOutCluster(*Build("dgx-a100"));
  // y grows downwards.
  const auto y = [&](const char* title) { return BoxOf(layout, title).center.y; };
  EXPECT_GT(y("node0/nvswitch"), y("node0/gpu0"));
  EXPECT_GT(y("node0/gpu0"), y("node0/pcie0"));
  EXPECT_GT(y("node0/pcie0"), y("node0/socket0"));
  EXPECT_GT(y("node0/socket0"), y("node0/nic0"));
  EXPECT_GT(y("node0/nic0"), y("fabric"));
  EXPECT_EQ(y("node0/gpu0"), y("node0/gpu7"));
  // A PCIe switch stands in the middle above its two devices.
  const auto x = [&](const char* title) { return BoxOf(layout, title).center.x; };
  EXPECT_NEAR(x("node0/pcie0"), (x("node0/gpu0") + x("node0/gpu1")) / 2, 0.01);
}

TEST(ClusterLayoutTest, OneMachineWithoutANameHasNoFrame) {
  const auto cluster = ReadCluster(JsonDocument::FromText(
                                       R"({"name": "one", "device": "a100-40g",
              "vertices": [{"name": "g0", "kind": "device"}, {"name": "g1", "kind": "device"}],
              "links": [{"between": ["g0", "g1"], "kind": "nvlink", "bandwidth": "25GBps",
                         "latency": "1us"}]})",
                                       "one.json")
                                       .Root());
  EXPECT_TRUE(LayOutCluster(*cluster).nodes.empty());
  EXPECT_EQ(LayOutCluster(*Build("dgx-a100")).nodes.size(), 1u);
}

TEST(ClusterLayoutTest, ATorusIsAGridWithLinksAround) {
  const ClusterLayout layout = LayOutCluster(*Build("atp-ic6", {{"x", 4}, {"y", 4}}));
  ASSERT_EQ(layout.boxes.size(), 16u);
  // Rank 6 is the third of the second row.
  EXPECT_EQ(layout.boxes[6].center.x, layout.boxes[2].center.x);
  EXPECT_EQ(layout.boxes[6].center.y, layout.boxes[4].center.y);
  // 4 x 4 x 2 links, of which each row and column has one that wraps around.
  EXPECT_EQ(layout.links.size(), 32u);
  size_t around = 0;
  for (const PlacedLink& link : layout.links) around += link.around ? 1 : 0;
  EXPECT_EQ(around, 8u);
}

TEST(ClusterLayoutTest, ManyNodesBecomeBlocksAndTheRestIsCounted) {
  const ClusterLayout layout = LayOutCluster(*Build("dgx-a100", {{"nodes", 64}}));
  size_t blocks = 0;
  for (const PlacedBox& box : layout.boxes) {
    if (box.dots == 0) continue;
    ++blocks;
    EXPECT_EQ(box.dots, 8u);
    EXPECT_TRUE(box.has_nvswitch);
  }
  EXPECT_EQ(blocks, 32u);
  std::string captions;
  for (const Caption& caption : layout.captions) captions += caption.text + "\n";
  EXPECT_THAT(captions, ::testing::HasSubstr("and 32 more nodes"));
}

// 16 machines on 8 rails of 64 ports: 8 leaves of 32 cables up, one to each of 32 spines.
TEST(ClusterLayoutTest, SwitchesThatAreJoinedToTheSameOnesBelowAreOneBox) {
  const ClusterLayout layout = LayOutCluster(*Build("dgx-h100", {{"nodes", 16}}));
  std::vector<std::string> switches;
  for (const PlacedBox& box : layout.boxes) {
    if (box.dots == 0) switches.push_back(box.label);
  }
  EXPECT_EQ(switches.size(), 9u);
  EXPECT_THAT(switches, ::testing::Contains("32 × spine"));
  size_t up = 0;
  for (const PlacedLink& link : layout.links) {
    if (link.count != 32) continue;
    ++up;
    EXPECT_FALSE(link.one_way);
  }
  EXPECT_EQ(up, 8u);
  EXPECT_EQ(layout.links.size(), 8u + 8 * 16);
}

// The 8 leaves of those rails share all nodes: bars over them, above each other, and a node's
// cables go straight up, each to its own.
TEST(ClusterLayoutTest, LeavesThatShareNodesAreRailsAboveEachOther) {
  const ClusterLayout layout = LayOutCluster(*Build("dgx-h100", {{"nodes", 16}}));
  const PlacedBox& first = BoxOf(layout, "node0");
  const PlacedBox& last = BoxOf(layout, "node15");
  for (int rail = 0; rail < 8; ++rail) {
    const PlacedBox& leaf = BoxOf(layout, "rail" + std::to_string(rail) + "/leaf0");
    EXPECT_NEAR(leaf.center.x - leaf.width / 2, first.center.x - first.width / 2, 0.01);
    EXPECT_NEAR(leaf.center.x + leaf.width / 2, last.center.x + last.width / 2, 0.01);
    if (rail == 0) continue;
    EXPECT_LT(leaf.center.y, BoxOf(layout, "rail" + std::to_string(rail - 1) + "/leaf0").center.y);
  }
  for (const PlacedLink& link : layout.links) EXPECT_EQ(link.from.x, link.to.x) << link.title;
}

// 1,024 machines in 6 groups of 20 switches, some of the last one's without machines: a box for
// each group, above its first 5 machines, and an arc between each two that are not next to each
// other, the higher the farther.
TEST(ClusterLayoutTest, GroupsOfADragonflyAreBoxesJoinedByArcs) {
  const ClusterLayout layout = LayOutCluster(*Build("leonardo", {{"nodes", 1024}}));
  size_t nodes = 0;
  for (const PlacedBox& box : layout.boxes) nodes += box.dots > 0 ? 1 : 0;
  EXPECT_EQ(nodes, 6u * 5);
  EXPECT_EQ(layout.boxes.size(), nodes + 6);
  for (int group = 0; group < 6; ++group) {
    const std::string name = "group" + std::to_string(group);
    EXPECT_EQ(BoxOf(layout, name).label, name + ", 20 switches");
    EXPECT_EQ(layout.shown_by.at(name + "/switch19"), name);
  }
  std::map<std::string, double> pulls;
  for (const PlacedLink& link : layout.links)
    if (link.title.starts_with("group0 - group")) pulls[link.title] = -link.from_pull.y;
  EXPECT_EQ(pulls.size(), 5u);
  EXPECT_EQ(pulls["group0 - group1"], 0);
  EXPECT_GT(pulls["group0 - group2"], 0);
  for (const std::string further : {"3", "4", "5"}) {
    const std::string nearer(1, static_cast<char>(further[0] - 1));
    EXPECT_GT(pulls["group0 - group" + further], pulls["group0 - group" + nearer] + 10);
  }
}

TEST(ClusterLayoutTest, ATorusOfNodesIsAGridOfThem) {
  const std::string link = R"({"bandwidth": "50GBps", "latency": "1us"})";
  const std::string row = R"({"size": 4, "link": )" + link + "}";
  const auto cluster = ReadCluster(
      JsonDocument::FromText(
          R"({"name": "torus", "nodes": 16, "node": {"kind": "nvswitch", "devices": 4,
                "device": "h100", "nics": 1, "nvlink": )" +
              link + R"(, "pcie": )" + link + R"(, "cable": )" + link +
              R"(}, "fabric": {"kind": "torus", "dimensions": [)" + row + ", " + row + "]}}",
          "torus.json")
          .Root());
  const ClusterLayout layout = LayOutCluster(*cluster);
  ExpectTidy(layout, "torus of nodes");
  ASSERT_EQ(layout.boxes.size(), 16u);
  EXPECT_EQ(layout.boxes[6].center.x, layout.boxes[2].center.x);
  EXPECT_EQ(layout.boxes[6].center.y, layout.boxes[4].center.y);
  EXPECT_EQ(layout.boxes[6].title, "node6");
  EXPECT_EQ(layout.boxes[6].dots, 4u);
  EXPECT_EQ(layout.links.size(), 32u);
  // What the routers carry is what the nodes' boxes show.
  EXPECT_EQ(layout.shown_by.size(), 16u);
}

TEST(ClusterSvgTest, TheLegendListsEachNumberOfCables) {
  // 288 NICs on leaves of 32 ports down: a rack of 72 has 32, 32 and 8 of them, and so on.
  const JsonDocument racks = JsonDocument::FromText(
      R"({"name": "racks", "node": "gb200-nvl72", "nodes": 4,
          "fabric": {"kind": "fat-tree", "radix": 64,
                     "cable": {"bandwidth": "50GBps", "latency": "0us"}}})",
      "racks.json");
  const std::string svg = ClusterSvg(*ReadCluster(racks.Root()));
  for (const char* entry : {"×8 = 400 GB/s", "×16 = 800 GB/s", "×24 = 1.2 TB/s", "×32 = 1.6 TB/s"})
    EXPECT_THAT(svg, ::testing::HasSubstr(entry));
}

// Three levels: the spines of each pod are one box, and so are the cores above all of them.
TEST(ClusterLayoutTest, CoresOverJoinedSpinesAreOneBoxToo) {
  const ClusterLayout layout = LayOutCluster(*Build("selene", {{"nodes", 64}}));
  std::vector<double> rows;
  for (const PlacedBox& box : layout.boxes) {
    if (box.dots == 0) rows.push_back(box.center.y);
  }
  const double top = *std::min_element(rows.begin(), rows.end());
  EXPECT_LE(std::count(rows.begin(), rows.end(), top), 2);
}

TEST(ClusterSvgTest, TheSameClusterGivesTheSameBytes) {
  EXPECT_EQ(ClusterSvg(*Build("perlmutter", {{"nodes", 8}})),
            ClusterSvg(*Build("perlmutter", {{"nodes", 8}})));
}

}  // namespace cluster_layout_test
}  // namespace rehearse
