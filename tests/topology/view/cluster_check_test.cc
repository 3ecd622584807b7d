#include "topology/view/cluster_check.h"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/json_document.h"
#include "topology/fabrics/router.h"
#include "topology/files/cluster_file.h"
#include "topology/view/cluster_view.h"

namespace rehearse {
namespace cluster_check_test {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::vector<std::string> Findings(const std::string& json) {
  const JsonDocument document = JsonDocument::FromText(json, "mine.json");
  const JsonReader said = document.Root();
  std::vector<std::string> lines;
  for (const ClusterFinding& finding : CheckCluster(*ReadCluster(said), &said))
    lines.emplace_back(Error(finding.place, finding.message).what());
  return lines;
}

// The figure between the marks is changed.
std::string Boxes(const std::string& what, const std::string& now) {
  std::string text = R"({"name": "boxes", "nodes": 8,
 "fabric": {"kind": "fat-tree", "radix": 8, "oversubscription": 1,
            "cable": {"bandwidth": "25GBps", "latency": "0us"}},
 "node": {"kind": "nvswitch", "devices": 4, "device": "a100-80g",
          "nvlink": {"bandwidth": "300GBps", "latency": "1us"},
          "pcie": {"bandwidth": "31.5GBps", "latency": "1us"}, "sockets": 2, "pcie_switches": 2,
          "nics": 4, "cable": {"bandwidth": "25.0GBps", "latency": "1us"},
          "between_sockets": {"bandwidth": "96GBps", "latency": "0.5us"}}})";
  if (!what.empty()) text.replace(text.find(what), what.size(), now);
  return text;
}

TEST(ClusterCheckTest, WhatIsRightIsNotRemarkedOn) {
  EXPECT_THAT(Findings(Boxes("", "")), IsEmpty());
  for (const char* preset : {"dgx-h100", "dgx-1-v100", "perlmutter", "frontier", "gb200-nvl72"})
    EXPECT_THAT(Findings(std::string(R"({"preset": ")") + preset + R"("})"), IsEmpty()) << preset;
}

TEST(ClusterCheckTest, NicsThatDoNotFitTheirPcie) {
  EXPECT_THAT(Findings(Boxes("25.0GBps", "50GBps")),
              Contains(AllOf(HasSubstr("mine.json:7: /node/cable: the cable of node0/nic0 carries "
                                       "50 GB/s"),
                             HasSubstr("only 31.5 GB/s"))));
  EXPECT_THAT(Findings(Boxes("25.0GBps", "1GBps")), Contains(HasSubstr("31.5 times less")));
}

TEST(ClusterCheckTest, AFabricThatCannotBeFull) {
  EXPECT_THAT(Findings(Boxes("oversubscription\": 1", "oversubscription\": 3")),
              Contains(HasSubstr("mine.json:2: /fabric/oversubscription: the fabric cannot be "
                                 "full: machines send 100 GB/s to leaf0")));
}

TEST(ClusterCheckTest, AnOversubscriptionThatChangesNothing) {
  const std::string one_switch = R"({"preset": "dgx-h100", "nodes": 8, "oversubscription": 2})";
  EXPECT_THAT(
      Findings(one_switch),
      Contains(AllOf(HasSubstr("/oversubscription: the machines fit on one leaf switch, so"),
                     HasSubstr("oversubscription of 2 changes nothing"))));
  const auto cluster = ReadClusterArgument("dgx-h100:nodes=8,oversubscription=2");
  EXPECT_EQ(SummarizeCluster(*cluster).notes.back(),
            "The machines fit on one leaf switch, so that an oversubscription of 2 changes "
            "nothing.");
  EXPECT_THAT(Findings(R"({"preset": "dgx-h100", "nodes": 64, "oversubscription": 2})"),
              Each(Not(HasSubstr("changes nothing"))));
  EXPECT_THAT(Findings(R"({"preset": "dgx-h100", "nodes": 8, "fabric": "rail-only",
                           "oversubscription": 2})"),
              Contains(HasSubstr("one leaf switch of each rail, so")));
}

// Two machines a leaf, two leaves and three spines, of which the last may be slower to reach.
std::string LeavesAndSpines(const std::string& latency_of_others, bool is_leaf_to_leaf) {
  std::string vertices;
  std::string links;
  const auto join = [&](const std::string& a, const std::string& b, const std::string& latency) {
    links += fmt::format(R"({{"between": ["{}", "{}"], "kind": "network", "bandwidth": "25GBps",
                             "latency": "{}"}},)",
                         a, b, latency);
  };
  for (const char* leaf : {"leaf0", "leaf1"}) {
    vertices += fmt::format(R"({{"name": "{}", "kind": "switch"}},)", leaf);
    for (const char* side : {"a", "b"}) {
      const std::string device = fmt::format("{}{}", leaf, side);
      vertices += fmt::format(R"({{"name": "{0}", "kind": "device", "node": "n{0}"}},)", device);
      join(device, leaf, "1us");
    }
    for (const char* spine : {"spine0", "spine1", "spine2"})
      join(leaf, spine, spine == std::string("spine0") ? "1us" : latency_of_others);
  }
  for (const char* spine : {"spine0", "spine1", "spine2"})
    vertices += fmt::format(R"({{"name": "{}", "kind": "switch"}},)", spine);
  if (is_leaf_to_leaf) join("leaf0", "leaf1", "1us");
  vertices.pop_back();
  links.pop_back();
  return fmt::format(R"({{"name": "drawn", "device": "a100-40g", "vertices": [{}],
                         "links": [{}]}})",
                     vertices, links);
}

TEST(ClusterCheckTest, EqualRoutesOfADrawnGraphTakeOneSwitch) {
  const std::string equal = LeavesAndSpines("1us", false);
  EXPECT_THAT(Findings(equal),
              Contains(AllOf(HasSubstr("/vertices/6: equal routes lead from leaf0 to leaf1 over "
                                       "spine0 to spine2, but"),
                             HasSubstr("all traffic between these takes spine0;"))));
  // They do take it.
  const auto cluster = ReadCluster(JsonDocument::FromText(equal, "mine.json").Root());
  Router router(*cluster);
  for (const uint32_t from : {0u, 1u})
    for (const uint32_t to : {2u, 3u})
      EXPECT_EQ(cluster->LinkName(router.Between(from, to).links[1]), "leaf0->spine0");
  // Others are longer, or there is a cable.
  EXPECT_THAT(Findings(LeavesAndSpines("2us", false)), Each(Not(HasSubstr("equal routes"))));
  EXPECT_THAT(Findings(LeavesAndSpines("1us", true)), Each(Not(HasSubstr("equal routes"))));
}

TEST(ClusterCheckTest, LinksOfAnotherDevice) {
  EXPECT_THAT(Findings(Boxes("a100-80g", "h100")),
              Contains(AllOf(HasSubstr("/node/device: node0/gpu0 is of kind h100"),
                             HasSubstr("450 GB/s"), HasSubstr("as those of a100-40g"))));
}

TEST(ClusterCheckTest, NicsWithoutCablesAndDevices) {
  const std::string up = R"("between_sockets": {"bandwidth": "96GBps", "latency": "0.5us"}}})";
  EXPECT_THAT(Findings(Boxes(up, up.substr(0, up.size() - 1) +
                                     R"(, "edits": [{"links": "node0/nic1", "down": true}]})")),
              Contains(HasSubstr("mine.json:8: /edits: node0/nic1 has no cable")));
}

TEST(ClusterCheckTest, OneRouteThatLeavesNvLink) {
  // Three devices, of which two are not joined; the other pairs are.
  const std::string text = R"({"name": "mesh", "device": "a100-40g", "vertices": [
      {"name": "a", "kind": "device", "node": "n"}, {"name": "b", "kind": "device", "node": "n"},
      {"name": "c", "kind": "device", "node": "n"}, {"name": "d", "kind": "device", "node": "n"},
      {"name": "s", "kind": "socket", "node": "n"}],
    "links": [)";
  std::string links;
  for (const char* pair :
       {"\"a\", \"b\"", "\"a\", \"c\"", "\"a\", \"d\"", "\"b\", \"c\"", "\"b\", \"d\""})
    links += std::string("{\"between\": [") + pair +
             R"(], "kind": "nvlink", "bandwidth": "100GBps", "latency": "1us"},)";
  for (const char* device : {"a", "b", "c", "d"})
    links += std::string("{\"between\": [\"") + device +
             R"(", "s"], "kind": "pcie", "bandwidth": "25GBps", "latency": "1us"},)";
  links.back() = ']';
  EXPECT_THAT(Findings(text + links + "}"),
              Contains(HasSubstr("/vertices/2: the route from c to d leaves NVLink by c->s, at 25 "
                                 "GB/s; 2 of 12 routes")));
}

}  // namespace cluster_check_test
}  // namespace rehearse
