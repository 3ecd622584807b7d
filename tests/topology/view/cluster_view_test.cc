#include "topology/view/cluster_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sim/base/json_document.h"
#include "sim/base/visible_text.h"
#include "topology/files/cluster_file.h"
#include "topology/presets/presets.h"
#include "topology/view/cluster_dot.h"
#include "topology/view/cluster_svg.h"

namespace rehearse {
namespace cluster_view_test {

using ::testing::HasSubstr;

std::unique_ptr<Cluster> Read(const std::string& text) {
  return ReadCluster(JsonDocument::FromText(text, "graph.json").Root());
}

TEST(ClusterSummaryTest, LinksThatAreAlikeAreOneRow) {
  const auto cluster = Read(R"({"name": "three", "device": "a100-40g",
      "vertices": [{"name": "g0", "kind": "device"}, {"name": "g1", "kind": "device", "device": "a100-80g"},
                   {"name": "g2", "kind": "device"}, {"name": "s", "kind": "switch"}],
      "links": [{"between": ["g0", "s"], "kind": "nvlink", "bandwidth": "300GBps", "latency": "1us"},
                {"between": ["s", "g1"], "kind": "nvlink", "bandwidth": "300GBps", "latency": "1us"},
                {"from": "g2", "to": "s", "kind": "nvlink", "bandwidth": "300GBps", "latency": "1us"},
                {"from": "s", "to": "g2", "kind": "nvlink", "bandwidth": "150GBps", "latency": "1us"}]})");
  const ClusterSummary summary = SummarizeCluster(*cluster);
  ASSERT_EQ(summary.links.size(), 2u);
  // Wide ones first: three lead up at 300 GB/s, two down; one down at 150.
  EXPECT_EQ(summary.links[0].up, 3u);
  EXPECT_EQ(summary.links[0].down, 2u);
  EXPECT_EQ(summary.links[1].up, 0u);
  EXPECT_EQ(summary.links[1].down, 1u);
  ASSERT_EQ(summary.device_kinds.size(), 2u);
  EXPECT_EQ(summary.device_kinds[0].first.name, "a100-40g");
  EXPECT_EQ(summary.device_kinds[0].second, 2u);
  EXPECT_THAT(ToText(summary), HasSubstr("3 up, 2 down"));
}

TEST(ClusterSummaryTest, ATorusIsNamed) {
  EXPECT_THAT(ToText(SummarizeCluster(*BuildPreset("atp-ic6", {{"x", 8}, {"y", 4}}, Place()))),
              HasSubstr("a torus of 8 x 4"));
}

TEST(ClusterSummaryTest, OneDeviceAlone) {
  const auto cluster = Read(R"({"name": "one", "device": "a100-40g",
      "vertices": [{"name": "g0", "kind": "device"}], "links": []})");
  const std::string text = ToText(SummarizeCluster(*cluster));
  EXPECT_THAT(text, HasSubstr("one   1 device on 1 node"));
  EXPECT_TRUE(ToJson(SummarizeCluster(*cluster))["bisection_bytes_per_second"].is_null());
}

TEST(ClusterViewTest, NamesCannotMoveATerminal) {
  const auto cluster = Read(R"({"name": "c\u001b[2J", "device": "a100-40g", "notes": ["n\u0007"],
      "vertices": [{"name": "g\u001b[31m", "kind": "device"}, {"name": "g\u009b1", "kind": "device"}],
      "links": [{"between": ["g\u001b[31m", "g\u009b1"], "kind": "nvlink", "bandwidth": "300GBps",
                 "latency": "1us"}]})");
  Router router(*cluster);
  MatrixView view;
  view.pairs = Pairwise(router, {0, 1});
  const std::string texts[] = {ToText(SummarizeCluster(*cluster)), PathText(router, 0, 1),
                               ToText(view, *cluster), ClusterDot(*cluster), ClusterSvg(*cluster)};
  for (const std::string& text : texts) EXPECT_EQ(VisibleLines(text), text);
  EXPECT_THAT(texts[0], HasSubstr("c\\x1b[2J   2 devices"));
  EXPECT_THAT(texts[1], HasSubstr("g\\x1b[31m (rank 0) to g\\u009b1 (rank 1)"));
  EXPECT_THAT(texts[2], HasSubstr("g\\u009b1"));
  EXPECT_THAT(texts[3], HasSubstr("label=\"g\\\\x1b[31m\""));  // Graphviz reads \\ as one
  EXPECT_THAT(texts[4], HasSubstr("g\\x1b[31m"));
}

TEST(PathViewTest, TheNarrowestHopIsTheBottleneck) {
  const auto cluster = Read(R"({"name": "two", "device": "a100-40g",
      "vertices": [{"name": "g0", "kind": "device"}, {"name": "g1", "kind": "device"},
                   {"name": "s", "kind": "switch"}],
      "links": [{"between": ["g0", "s"], "kind": "pcie", "bandwidth": "20GBps", "latency": "1us"},
                {"between": ["s", "g1"], "kind": "network", "bandwidth": "25GBps", "efficiency": 0.5,
                 "latency": "2us"}]})");
  Router router(*cluster);
  const auto json = PathJson(router, 0, 1);
  // 25 GB/s x 0.5 is less than 20 GB/s.
  EXPECT_EQ(json["bandwidth_bytes_per_second"], 12.5e9);
  EXPECT_EQ(json["hops"][0]["bottleneck"], false);
  EXPECT_EQ(json["hops"][1]["bottleneck"], true);
  EXPECT_DOUBLE_EQ(json["latency_seconds"].get<double>(), 3e-6);
}

}  // namespace cluster_view_test
}  // namespace rehearse
