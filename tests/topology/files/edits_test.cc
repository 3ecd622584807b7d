#include "topology/files/edits.h"

#include <regex>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "sim/base/json_document.h"
#include "tests/topology/same_cluster.h"
#include "topology/cluster/selectors.h"
#include "topology/fabrics/router.h"
#include "topology/files/cluster_file.h"
#include "topology/presets/presets.h"

namespace rehearse {
namespace edits_test {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::unique_ptr<Cluster> DgxBoxes(uint32_t nodes) {
  return BuildPreset("dgx-a100", {{"nodes", nodes}}, Place());
}

std::unique_ptr<Cluster> Edited(const Cluster& cluster, const std::string& edits) {
  const JsonDocument document = JsonDocument::FromText(edits, "edits.json");
  return ApplyEdits(cluster, ReadEdits(document.Root()));
}

std::string ErrorOf(const Cluster& cluster, const std::string& edits) {
  try {
    Edited(cluster, edits);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

ClusterLink LinkNamed(const Cluster& cluster, const std::string& name) {
  for (uint32_t i = 0; i < cluster.link_count(); ++i)
    if (cluster.LinkName(i) == name) return cluster.Link(i);
  throw Error("no link " + name);
}

// ---- Patterns -----------------------------------------------------------------------------------

TEST(PatternTest, AStarStaysWithinOnePartOfTheName) {
  EXPECT_TRUE(MatchesPattern("node3/nic*", "node3/nic0"));
  EXPECT_TRUE(MatchesPattern("node3/nic*", "node3/nic"));
  EXPECT_FALSE(MatchesPattern("node3/nic*", "node30/nic0"));
  EXPECT_FALSE(MatchesPattern("node3/*", "node3/board/nic0"));
  EXPECT_FALSE(MatchesPattern("*", "node3/nic0"));
  EXPECT_TRUE(MatchesPattern("*/nic?", "node3/nic0"));
  EXPECT_FALSE(MatchesPattern("node3?nic0", "node3/nic0"));
}

TEST(PatternTest, TwoStarsAreAnyText) {
  EXPECT_TRUE(MatchesPattern("**", ""));
  EXPECT_TRUE(MatchesPattern("rail0/**", "rail0/pod1/leaf2"));
  EXPECT_FALSE(MatchesPattern("rail0/**", "rail0"));
  EXPECT_TRUE(MatchesPattern("**0", "node3/nic0"));
  EXPECT_TRUE(MatchesPattern("***x", "a/b/x"));
}

TEST(PatternTest, ManyStarsDoNotTakeForever) {
  std::string pattern;
  for (int i = 0; i < 200; ++i) pattern += "**a";
  EXPECT_FALSE(MatchesPattern(pattern + "b", std::string(2000, 'a')));
}

// The same with regular expressions.
bool MatchesByRegex(const std::string& pattern, const std::string& name) {
  std::string expression;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern.compare(i, 2, "**") == 0) {
      expression += "[^]*";
      ++i;
    } else if (pattern[i] == '*') {
      expression += "[^/]*";
    } else if (pattern[i] == '?') {
      expression += "[^/]";
    } else {
      expression += pattern[i];
    }
  }
  return std::regex_match(name, std::regex(expression));
}

RC_GTEST_PROP(PatternPropertyTest, AgreesWithRegularExpressions, ()) {
  const auto pattern = *rc::gen::container<std::string>(rc::gen::element('a', 'b', '/', '*', '?'));
  const auto name = *rc::gen::container<std::string>(rc::gen::element('a', 'b', '/'));
  RC_ASSERT(MatchesPattern(pattern, name) == MatchesByRegex(pattern, name));
}

// ---- What edits do ------------------------------------------------------------------------------

TEST(EditsTest, ABandwidthMayBeAbsoluteAFactorOrADifference) {
  const auto cluster = DgxBoxes(1);
  const auto rate = [&](const char* value) {
    const auto edited =
        Edited(*cluster, fmt::format(R"([{{"links": "node0/nic0", "bandwidth": "{}"}}])", value));
    return LinkNamed(*edited, "node0/nic0->fabric").bandwidth.value();
  };
  // A NIC of the box has 25 GB/s.
  EXPECT_EQ(rate("10GBps"), 10e9);
  EXPECT_EQ(rate("0.5x"), 12.5e9);
  EXPECT_EQ(rate("+5GBps"), 30e9);
  EXPECT_EQ(rate("-5GBps"), 20e9);
}

TEST(EditsTest, TheEfficiencyStays) {
  const auto cluster = DgxBoxes(1);
  const auto edited = Edited(*cluster, R"([{"links": "node0/nic0", "bandwidth": "10GBps"}])");
  EXPECT_EQ(LinkNamed(*edited, "fabric->node0/nic0").efficiency, 0.955);
}

TEST(EditsTest, ALatencyIsAddedTo) {
  const auto cluster = DgxBoxes(1);
  const auto edited = Edited(*cluster, R"([{"links": "node0/nic*", "latency": "+2us"}])");
  // A NIC's cable has 3.5 us.
  EXPECT_DOUBLE_EQ(LinkNamed(*edited, "node0/nic7->fabric").latency.value(), 5.5e-6);
}

TEST(EditsTest, LaterEditsSeeWhatEarlierOnesLeft) {
  const auto cluster = DgxBoxes(1);
  const auto edited = Edited(*cluster, R"([{"links": "node0/nic*", "bandwidth": "0.5x"},
                                           {"links": "node0/nic0", "bandwidth": "+1GBps"}])");
  EXPECT_EQ(LinkNamed(*edited, "node0/nic0->fabric").bandwidth.value(), 13.5e9);
  EXPECT_EQ(LinkNamed(*edited, "node0/nic1->fabric").bandwidth.value(), 12.5e9);
}

TEST(EditsTest, AnArrowSelectsByBothEndsInBothDirections) {
  const auto cluster = DgxBoxes(2);
  const auto edited = Edited(*cluster, R"([{"links": "node1/nic*->fabric", "bandwidth": "0.5x"}])");
  EXPECT_EQ(LinkNamed(*edited, "node1/nic3->fabric").bandwidth.value(), 12.5e9);
  EXPECT_EQ(LinkNamed(*edited, "fabric->node1/nic3").bandwidth.value(), 12.5e9);
  EXPECT_EQ(LinkNamed(*edited, "node1/pcie1->node1/nic3").bandwidth.value(), 31.5e9);
}

TEST(EditsTest, OneWayLeavesTheOtherDirection) {
  const auto cluster = DgxBoxes(1);
  const auto edited = Edited(
      *cluster, R"([{"links": "node0/nic3->fabric", "bandwidth": "0.5x", "one_way": true}])");
  EXPECT_EQ(LinkNamed(*edited, "node0/nic3->fabric").bandwidth.value(), 12.5e9);
  EXPECT_EQ(LinkNamed(*edited, "fabric->node0/nic3").bandwidth.value(), 25e9);
}

TEST(EditsTest, ASlowDeviceHasLowerPeaksAndANameOfItsOwn) {
  const auto cluster = DgxBoxes(1);
  const auto edited = Edited(*cluster, R"([{"devices": "node0/gpu2", "compute": "0.8x"}])");
  const DeviceSpec& slow = edited->DeviceOf(2);
  const DeviceSpec& other = edited->DeviceOf(3);
  EXPECT_EQ(other.name, "a100-40g");
  EXPECT_EQ(slow.name, "a100-40g (compute 0.8x)");
  EXPECT_EQ(slow.matrix_peak_16, 0.8 * other.matrix_peak_16);
  EXPECT_EQ(slow.matrix_peak_32, 0.8 * other.matrix_peak_32);
  EXPECT_EQ(slow.vector_peak_32, 0.8 * other.vector_peak_32);
  EXPECT_EQ(slow.vector_peak_64, 0.8 * other.vector_peak_64);
  EXPECT_EQ(slow.memory_bandwidth, other.memory_bandwidth);
  // A measured shape, far from the memory bound: it takes 1/0.8 of the time, except for the launch.
  Compute gemm;
  gemm.kind = ComputeKind::kGemm;
  gemm.gemm = {.m = 4096, .n = 8192, .k = 8192};
  gemm.flops = FlopsOf(gemm.gemm);
  gemm.bytes = BytesOf(gemm.gemm, gemm.dtype);
  const Seconds slow_time = ComputeTime(slow, gemm, false) - slow.launch_overhead;
  const Seconds time = ComputeTime(other, gemm, false) - other.launch_overhead;
  EXPECT_NEAR(slow_time / time, 1.25, 1e-9);
}

TEST(EditsTest, DevicesEditedAlikeShareOneSpec) {
  const auto cluster = DgxBoxes(4);
  const auto edited = Edited(*cluster, R"([{"devices": "**", "memory_bandwidth": "0.9x"}])");
  EXPECT_EQ(edited->device_specs().size(), cluster->device_specs().size() + 1);
  EXPECT_EQ(edited->DeviceOf(31).memory_bandwidth, 0.9 * cluster->DeviceOf(31).memory_bandwidth);
}

TEST(EditsTest, TrafficGoesRoundALinkThatIsDown) {
  const auto cluster = DgxBoxes(2);
  const auto edited = Edited(*cluster, R"([{"links": "node0/nic0", "down": true}])");
  // Two links to the fabric's side and two to the PCIe switch's are gone.
  EXPECT_EQ(edited->link_count(), cluster->link_count() - 4);
  Router router(*edited);
  // GPU 0 shares a PCIe switch with NIC 1 too.
  std::string path;
  for (const uint32_t link : router.Between(0, 8).links) path += edited->LinkName(link) + " ";
  EXPECT_THAT(path, HasSubstr("node0/nic1->fabric"));
}

TEST(EditsTest, AClusterFileMayHaveEdits) {
  const JsonDocument document = JsonDocument::FromText(
      R"({"preset": "dgx-a100", "nodes": 2,
          "edits": [{"links": "node1/nic*", "bandwidth": "0.5x"}]})",
      "cluster.json");
  const auto cluster = ReadCluster(document.Root());
  EXPECT_EQ(LinkNamed(*cluster, "node1/nic0->fabric").bandwidth.value(), 12.5e9);
}

TEST(EditsTest, AGraphMayHaveEdits) {
  const JsonDocument document = JsonDocument::FromText(
      R"({"name": "two", "device": "a100-40g",
          "vertices": [{"name": "g0", "kind": "device"}, {"name": "g1", "kind": "device"}],
          "links": [{"between": ["g0", "g1"], "kind": "nvlink", "bandwidth": "300GBps",
                     "latency": "1us"}],
          "edits": [{"links": "g0", "latency": "3us"}]})",
      "cluster.json");
  EXPECT_EQ(ReadCluster(document.Root())->Link(1).latency.value(), 3e-6);
}

// ---- An edit changes only what it selects -------------------------------------------------------

// One vertex name with some of its parts replaced by wildcards.
std::string RandomPattern(const Cluster& cluster) {
  const auto vertices = cluster.vertex_count();
  std::string name = cluster.VertexAt(*rc::gen::inRange<size_t>(0, vertices)).name;
  switch (*rc::gen::inRange(0, 5)) {
    case 0:
      return name;
    case 1:
      return name.substr(0, name.size() - 1) + "?";
    case 2:
      return name.substr(0, *rc::gen::inRange<size_t>(0, name.size())) + "**";
    case 3:
      return name.substr(0, name.find('/') + 1) + "*";
    default:
      return "*" + name.substr(name.find('/') == std::string::npos ? name.size() : name.find('/'));
  }
}

bool SameSpec(const DeviceSpec& a, const DeviceSpec& b) {
  return a.name == b.name && a.matrix_peak_16 == b.matrix_peak_16 &&
         a.vector_peak_32 == b.vector_peak_32 && a.memory_bandwidth == b.memory_bandwidth &&
         a.memory == b.memory && a.launch_overhead == b.launch_overhead;
}

std::unique_ptr<Cluster> RandomPreset() {
  const ClusterPreset preset = *rc::gen::elementOf(ClusterPresets());
  std::map<std::string, uint32_t> parameters;
  for (const PresetParameter& parameter : preset.parameters)
    if (parameter.name == "nodes" && parameter.maximum >= 3)
      parameters["nodes"] = *rc::gen::inRange(parameter.minimum, 4u);
  return BuildPreset(preset.name, parameters, Place());
}

RC_GTEST_PROP(EditsPropertyTest, ALinkEditChangesOnlyTheLinksThatItSelects, ()) {
  const auto cluster = RandomPreset();
  Edit edit;
  edit.selector = RandomPattern(*cluster);
  const bool has_arrow = *rc::gen::arbitrary<bool>();
  std::string other_pattern;
  if (has_arrow) {
    other_pattern = RandomPattern(*cluster);
    edit.one_way = *rc::gen::arbitrary<bool>();
  }
  const std::string pattern = edit.selector;
  if (has_arrow) edit.selector += "->" + other_pattern;
  edit.bandwidth = Change{0.5, 0};
  edit.latency = Change{1, 2e-6};
  const auto selects = [&](const std::string& from, const std::string& to) {
    if (!has_arrow) return MatchesByRegex(pattern, from) || MatchesByRegex(pattern, to);
    return (MatchesByRegex(pattern, from) && MatchesByRegex(other_pattern, to)) ||
           (!edit.one_way && MatchesByRegex(pattern, to) && MatchesByRegex(other_pattern, from));
  };
  std::vector<bool> expected;
  for (uint32_t i = 0; i < cluster->link_count(); ++i) {
    expected.push_back(selects(cluster->VertexAt(cluster->SourceOf(i)).name,
                               cluster->VertexAt(cluster->TargetOf(i)).name));
  }
  std::unique_ptr<Cluster> edited;
  try {
    edited = ApplyEdits(*cluster, {edit});
  } catch (const Error&) {
    for (const bool selected : expected) RC_ASSERT(!selected);
    return;
  }
  RC_ASSERT(edited->link_count() == cluster->link_count());
  RC_ASSERT(edited->notes() == cluster->notes());
  RC_ASSERT(edited->step_overhead() == cluster->step_overhead());
  for (uint32_t i = 0; i < cluster->link_count(); ++i) {
    const ClusterLink& before = cluster->Link(i);
    const ClusterLink& after = edited->Link(i);
    RC_ASSERT(edited->LinkName(i) == cluster->LinkName(i));
    RC_ASSERT(after.kind == before.kind);
    RC_ASSERT(after.efficiency == before.efficiency);
    RC_ASSERT(after.bandwidth == (expected[i] ? 0.5 * before.bandwidth : before.bandwidth));
    RC_ASSERT(after.latency == (expected[i] ? before.latency + Seconds(2e-6) : before.latency));
  }
  RC_ASSERT(edited->devices() == cluster->devices());
  for (uint32_t rank = 0; rank < cluster->device_count(); ++rank) {
    RC_ASSERT(SameSpec(edited->DeviceOf(rank), cluster->DeviceOf(rank)));
    RC_ASSERT(edited->NodeOf(rank) == cluster->NodeOf(rank));
  }
}

RC_GTEST_PROP(EditsPropertyTest, ADeviceEditChangesOnlyTheDevicesThatItSelects, ()) {
  const auto cluster = RandomPreset();
  Edit edit;
  edit.target = Edit::Target::kDevices;
  edit.selector = RandomPattern(*cluster);
  edit.compute = Change{0.5, 0};
  std::vector<bool> expected;
  bool any = false;
  for (const auto device : cluster->devices()) {
    expected.push_back(MatchesByRegex(edit.selector, cluster->VertexAt(device).name));
    any = any || expected.back();
  }
  if (!any) {
    RC_ASSERT_THROWS_AS(ApplyEdits(*cluster, {edit}), Error);
    return;
  }
  const auto edited = ApplyEdits(*cluster, {edit});
  for (uint32_t i = 0; i < cluster->link_count(); ++i) {
    RC_ASSERT(edited->Link(i).bandwidth == cluster->Link(i).bandwidth);
    RC_ASSERT(edited->Link(i).latency == cluster->Link(i).latency);
  }
  for (uint32_t rank = 0; rank < cluster->device_count(); ++rank) {
    const DeviceSpec& before = cluster->DeviceOf(rank);
    const DeviceSpec& after = edited->DeviceOf(rank);
    RC_ASSERT(SameSpec(after, before) != expected[rank]);
    RC_ASSERT(after.matrix_peak_16 == (expected[rank] ? 0.5 : 1.0) * before.matrix_peak_16);
  }
}

RC_GTEST_PROP(EditsPropertyTest, ACutTakesAwayOnlyTheLinksThatItSelects, ()) {
  const auto cluster = RandomPreset();
  Edit edit;
  edit.selector = RandomPattern(*cluster);
  edit.down = true;
  std::vector<std::string> expected;
  for (uint32_t i = 0; i < cluster->link_count(); ++i) {
    if (!MatchesByRegex(edit.selector, cluster->VertexAt(cluster->SourceOf(i)).name) &&
        !MatchesByRegex(edit.selector, cluster->VertexAt(cluster->TargetOf(i)).name))
      expected.push_back(cluster->LinkName(i));
  }
  std::unique_ptr<Cluster> edited;
  try {
    edited = ApplyEdits(*cluster, {edit});
  } catch (const Error& error) {
    RC_ASSERT(std::string(error.what()).find("has no path to") != std::string::npos);
    return;
  }
  std::vector<std::string> left;
  for (uint32_t i = 0; i < edited->link_count(); ++i) left.push_back(edited->LinkName(i));
  RC_ASSERT(left == expected);
}

// ---- What is edited -----------------------------------------------------------------------------

TEST(EditsTest, TheClusterThatIsEditedStaysAsItWas) {
  const auto cluster = DgxBoxes(2);
  const auto other = DgxBoxes(2);
  const auto edited = Edited(*cluster, R"([{"links": "node1/nic*", "bandwidth": "0.5x"},
                                           {"devices": "node0/gpu2", "compute": "0.8x"}])");
  ExpectSameCluster(*cluster, *other);
  EXPECT_EQ(edited->wiring(), cluster->wiring());
  EXPECT_NE(edited->DeviceOf(2).name, cluster->DeviceOf(2).name);
}

TEST(EditsTest, ACutIsAnotherWiringAndKeepsTheOtherFigures) {
  const auto cluster = DgxBoxes(2);
  Figures figures = cluster->figures();
  figures.calibration_origin = CalibrationOrigin{.machine = "test, 2 cores", .date = ""};
  figures.collective_overhead = Seconds(20e-6);
  const Cluster calibrated = cluster->With(figures);
  const auto edited = Edited(calibrated, R"([{"links": "node1/nic0", "down": true},
                                             {"links": "node1/nic1", "bandwidth": "0.5x"}])");
  EXPECT_NE(edited->wiring(), cluster->wiring());
  EXPECT_EQ(edited->collective_overhead(), Seconds(20e-6));
  ASSERT_TRUE(edited->calibration_origin().has_value());
  EXPECT_EQ(edited->calibration_origin()->machine, "test, 2 cores");
  EXPECT_EQ(LinkNamed(*edited, "node1/nic1->fabric").bandwidth,
            0.5 * LinkNamed(*cluster, "node1/nic1->fabric").bandwidth);
  EXPECT_EQ(LinkNamed(*edited, "node0/nic1->fabric").bandwidth,
            LinkNamed(*cluster, "node0/nic1->fabric").bandwidth);
}

// ---- Mistakes -----------------------------------------------------------------------------------

TEST(EditsMistakeTest, ASelectorThatMatchesNothingSuggestsAVertex) {
  const auto cluster = DgxBoxes(2);
  EXPECT_THAT(ErrorOf(*cluster, R"([{"links": "nod1/nic*", "bandwidth": "0.5x"}])"),
              AllOf(HasSubstr("edits.json:1: /0"), HasSubstr("\"nod1/nic*\" matches no vertex"),
                    HasSubstr("did you mean \"node1/nic0\"?")));
  EXPECT_THAT(ErrorOf(*cluster, R"([{"links": "node1", "down": true}])"),
              HasSubstr("did you mean \"node1/**\"?"));
  EXPECT_THAT(ErrorOf(*cluster, R"([{"links": "fabrik->node1/nic0", "down": true}])"),
              HasSubstr("did you mean \"fabric\"?"));
  EXPECT_THAT(ErrorOf(*cluster, R"([{"devices": "node1/nic0", "compute": "0.5x"}])"),
              AllOf(HasSubstr("matches no device"), HasSubstr("did you mean")));
}

TEST(EditsMistakeTest, EndsWithoutALinkBetweenThem) {
  EXPECT_THAT(ErrorOf(*DgxBoxes(1), R"([{"links": "node0/gpu0->fabric", "down": true}])"),
              HasSubstr("selects no link"));
  EXPECT_THAT(ErrorOf(*DgxBoxes(2), R"([{"links": "node0/nic0", "down": true},
                                        {"links": "node0/nic0", "latency": "1us"}])"),
              AllOf(HasSubstr("/1:"), HasSubstr("selects no link")));
}

TEST(EditsMistakeTest, ACutThatDisconnectsSaysWhichRanksAndWhichEdit) {
  EXPECT_THAT(ErrorOf(*DgxBoxes(3), R"([{"links": "node2/nic0", "down": true},
                                        {"links": "node1/nic*", "down": true},
                                        {"links": "node2/nic1", "down": true}])"),
              AllOf(HasSubstr("edits.json:2: /1"), HasSubstr("without node1/nic*"),
                    HasSubstr("cut off from the others: ranks 8-15")));
}

TEST(EditsMistakeTest, ValuesOutOfRange) {
  const auto cluster = DgxBoxes(1);
  EXPECT_THAT(ErrorOf(*cluster, R"([{"links": "**", "bandwidth": "-30GBps"}])"),
              HasSubstr("a bandwidth of -"));
  EXPECT_THAT(ErrorOf(*cluster, R"([{"links": "**", "latency": "-3us"}])"),
              HasSubstr("a latency of -"));
  EXPECT_THAT(ErrorOf(*cluster, R"([{"links": "**", "latency": "200s"}])"),
              HasSubstr("0 to 100 s"));
  EXPECT_THAT(ErrorOf(*cluster, R"([{"devices": "**", "memory_bandwidth": "-90TBps"}])"),
              HasSubstr("memory bandwidth of -"));
  EXPECT_THAT(ErrorOf(*cluster, R"([{"links": "**", "bandwidth": "1e300x"},
                                    {"links": "**", "bandwidth": "1e300x"}])"),
              HasSubstr("a bandwidth of inf"));
}

TEST(EditsMistakeTest, EditsThatAreNoEdits) {
  const auto cluster = DgxBoxes(1);
  const auto error = [&](const char* edit) { return ErrorOf(*cluster, edit); };
  EXPECT_THAT(error(R"({"links": "**"})"), HasSubstr("expected"));
  EXPECT_THAT(error(R"(["node0"])"), HasSubstr("/0"));
  EXPECT_THAT(error(R"([{"links": "**"}])"), HasSubstr("changes nothing"));
  EXPECT_THAT(error(R"([{"devices": "**"}])"), HasSubstr("changes nothing"));
  EXPECT_THAT(error(R"([{"bandwidth": "2x"}])"), HasSubstr("\"links\" or \"devices\""));
  EXPECT_THAT(error(R"([{"links": "*", "devices": "*", "compute": "2x"}])"),
              HasSubstr("\"links\" or \"devices\""));
  EXPECT_THAT(error(R"([{"links": "**", "compute": "2x"}])"), HasSubstr("compute"));
  EXPECT_THAT(error(R"([{"links": "**", "down": false}])"), HasSubstr("expected true"));
  EXPECT_THAT(error(R"([{"links": "**", "down": true, "latency": "2x"}])"), HasSubstr("down"));
  EXPECT_THAT(error(R"([{"links": "**", "latency": "2x", "one_way": true}])"),
              HasSubstr("/one_way"));
  EXPECT_THAT(error(R"([{"links": "", "latency": "2x"}])"), HasSubstr("pattern"));
  EXPECT_THAT(error(R"([{"links": "**", "latency": 2}])"), HasSubstr("/latency"));
  EXPECT_THAT(error(R"([{"links": "**", "latency": "2"}])"),
              AllOf(HasSubstr("0.5x"), HasSubstr("+2us"), HasSubstr("1.5us")));
  EXPECT_THAT(error(R"([{"links": "**", "bandwidth": "0x"}])"), HasSubstr("bandwidth"));
  EXPECT_THAT(error(R"([{"links": "**", "bandwidth": "infx"}])"), HasSubstr("bandwidth"));
  EXPECT_THAT(error(R"([{"devices": "**", "compute": "9TFLOPS"}])"), HasSubstr("0.8x"));
}

}  // namespace edits_test
}  // namespace rehearse
