// Clusters from InfraGraph, Keysight's schema of infrastructures.
#include "tools/foreign/machines/infragraph/import_infragraph.h"

#include <map>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/foreign/machines/imported.h"
#include "tests/foreign/machines/infragraph_files.h"
#include "tools/foreign/machines/infragraph/yaml_text.h"

namespace rehearse {
namespace import_infragraph_test {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

ImportedCluster Infra(const std::string& text, const std::string& device = "") {
  return ImportInfraGraph(text, "infra.yaml", device);
}
std::string InfraErrorOf(const std::string& text) {
  return ErrorThrownBy([&] { Infra(text); });
}

// The text with a part replaced, which must be there.
std::string With(std::string text, const std::string& part, const std::string& by) {
  const size_t at = text.find(part);
  EXPECT_NE(at, std::string::npos) << part;
  return at == std::string::npos ? text : text.replace(at, part.size(), by);
}

ClusterLink LinkBetween(const Cluster& cluster, const std::string& name) {
  for (uint32_t i = 0; i < cluster.link_count(); ++i)
    if (cluster.LinkName(i) == name) return cluster.Link(i);
  throw Error("there is no link " + name);
}
std::vector<std::string> NamesOf(const Cluster& cluster, VertexKind kind) {
  std::vector<std::string> names;
  for (VertexId id = 0; id < cluster.vertex_count(); ++id)
    if (cluster.KindOfVertex(id) == kind) names.push_back(cluster.VertexAt(id).name);
  return names;
}

class InfraYamlTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!HasYaml()) GTEST_SKIP() << "built without yaml-cpp";
  }
};

// ---- What becomes what --------------------------------------------------------------------------

TEST_F(InfraYamlTest, InstancesBecomeMachinesUnderSwitches) {
  const ImportedCluster imported = Infra(kInfraClos);
  const Cluster& cluster = *imported.cluster;
  EXPECT_EQ(cluster.name(), "two tiers");
  EXPECT_EQ(cluster.device_count(), 16u);
  EXPECT_EQ(cluster.node_count(), 4u);
  EXPECT_EQ(cluster.DeviceName(0), "host0/xpu0");
  EXPECT_EQ(cluster.DeviceName(15), "host3/xpu3");
  EXPECT_EQ(cluster.NodeOf(4), "host1");
  EXPECT_EQ(cluster.DeviceOf(0).name, "a100-40g");
  EXPECT_EQ(CountOf(cluster, VertexKind::kNic), 16u);
  EXPECT_EQ(CountOf(cluster, VertexKind::kSocket), 4u);
  EXPECT_EQ(CountOf(cluster, VertexKind::kPcieSwitch), 16u);  // the slots
  ExpectComesBack(cluster);
}

TEST_F(InfraYamlTest, EqualSwitchesAreDrawnAsOneWithTheSumOfTheirLinks) {
  const ImportedCluster imported = Infra(kInfraClos);
  const Cluster& cluster = *imported.cluster;
  EXPECT_THAT(NamesOf(cluster, VertexKind::kSwitch), ElementsAre("leaf0", "leaf1", "spine0+2"));
  EXPECT_EQ(LinkBetween(cluster, "leaf0->spine0+2").bandwidth.value(), 300e9);
  EXPECT_EQ(LinkBetween(cluster, "leaf0->spine0+2").latency.value(), 0);
  EXPECT_EQ(CountOf(cluster, VertexKind::kNvSwitch), 4u);
  // 12 NVLinks of 25 GB/s, two to each of six switches.
  EXPECT_DOUBLE_EQ(LinkBetween(cluster, "host2/xpu1->host2/fast0+5").bandwidth.value(), 300e9);
}

TEST_F(InfraYamlTest, RatesAreThoseOfTheFileOrOfWhatItsLinksAreCalled) {
  const ImportedCluster imported = Infra(kInfraClos);
  const Cluster& cluster = *imported.cluster;
  const ClusterLink cable = LinkBetween(cluster, "host1/card3->leaf0");
  EXPECT_EQ(cable.kind, LinkKind::kNetwork);
  EXPECT_EQ(cable.bandwidth.value(), 25e9);
  EXPECT_EQ(cable.latency.value(), 1e-6);
  const ClusterLink bus = LinkBetween(cluster, "host0/cpu->host0/xpu2");
  EXPECT_EQ(bus.kind, LinkKind::kPcie);
  EXPECT_EQ(bus.bandwidth.value(), 31.5e9);
  EXPECT_EQ(bus.latency.value(), 2.85e-6);
}

TEST_F(InfraYamlTest, WhatIsFilledInOrLeftOutIsSaid) {
  EXPECT_THAT(Infra(kInfraClos).remarks,
              AllOf(Contains(AllOf(StartsWith("link xpu_fabric"), HasSubstr("12 NVLinks"))),
                    Contains(AllOf(HasSubstr("dram"), HasSubstr("memory is left out"))),
                    Contains(AllOf(HasSubstr("usb"), HasSubstr("no edge uses"))),
                    Contains(AllOf(HasSubstr("xpu: "), HasSubstr("a100-40g"))),
                    Contains(HasSubstr("drawn as one"))));
}

TEST_F(InfraYamlTest, YamlAndJsonSayTheSame) {
  const std::string json = ReadYaml(kInfraClos, "infra.yaml").value().dump();
  EXPECT_EQ(ClusterToText(*Infra(json).cluster), ClusterToText(*Infra(kInfraClos).cluster));
}

TEST_F(InfraYamlTest, AnAliasIsWhatItStandsFor) {
  EXPECT_EQ(ReadYaml("a: &x [1, {b: c}]\nd: *x\n", "x.yaml").value().dump(),
            R"({"a":[1,{"b":"c"}],"d":[1,{"b":"c"}]})");
}

TEST_F(InfraYamlTest, ScalarsAreReadAsJsonHasThem) {
  EXPECT_EQ(ReadYaml("{i: 3, d: 2.5, t: true, n: ~, e: , q: \"3\", w: gen4, v: 1_0, "
                     "l: [[1], [2, [3]]]}",
                     "x")
                .value(),
            nlohmann::json::parse(R"({"i": 3, "d": 2.5, "t": true, "n": null, "e": null,
                                      "q": "3", "w": "gen4", "v": "1_0",
                                      "l": [[1], [2, [3]]]})"));
}

TEST_F(InfraYamlTest, BytesThatAreNoUtf8AreReplaced) {
  EXPECT_EQ(ReadYaml("a: \"b\xff\"\n", "x").value()["a"], "b\xef\xbf\xbd");
}

TEST(ImportInfraGraphTest, JsonNeedsNoYaml) {
  const ImportedCluster imported = Infra(kInfraPair);
  EXPECT_EQ(imported.cluster->name(), "infra");
  EXPECT_EQ(imported.cluster->device_count(), 2u);
  EXPECT_THAT(NamesOf(*imported.cluster, VertexKind::kNic), ElementsAre("a0/nic", "a1/nic"));
  EXPECT_THAT(NamesOf(*imported.cluster, VertexKind::kSwitch), ElementsAre("s"));
  EXPECT_THAT(imported.remarks,
              AllOf(Contains(AllOf(HasSubstr("xpu"), HasSubstr("kind that is not known"))),
                    Contains(AllOf(StartsWith("link bus"), HasSubstr("PCIe of 16 GT/s"))),
                    Contains(AllOf(StartsWith("link cable"), HasSubstr("200 Gbit/s")))));
}

TEST(ImportInfraGraphTest, TheUserKnowsTheDevice) {
  EXPECT_EQ(Infra(kInfraPair, "h100").cluster->DeviceOf(1).name, "h100");
  EXPECT_EQ(Infra(kInfraPair, "h100").cluster->Link(0).bandwidth.value(), 63e9);
  EXPECT_THAT(ErrorThrownBy([] { Infra(kInfraPair, "h10"); }), HasSubstr("did you mean"));
}

TEST(ImportInfraGraphTest, OlderSpellingsAreRead) {
  std::string old = With(kInfraPair, R"("choice": "xpu")", R"("type": "npu")");
  old = With(old, R"("scheme": "many2many")", R"("many2many": true)");
  old = With(old, R"({"name": "bus"})",
             R"({"name": "bus", "bandwidth": {"giga_bytes_per_second": 32}})");
  const ImportedCluster imported = Infra("{\"infrastructure\": " + old + "}");
  EXPECT_EQ(imported.cluster->Link(0).bandwidth.value(), 32e9);
  EXPECT_EQ(imported.cluster->device_count(), 2u);
}

// Two hosts of two XPUs with a NIC each, under a switch; the numbers say how many there are.
constexpr const char* kInfraOfConnections = R"({"infrastructure": {"name": "old",
  "devices": [
    {"name": "host", "components": [{"name": "xpu", "type": "xpu"},
      {"name": "nic", "type": "nic", "external": true}, {"name": "nvlsw", "type": "custom",
       "description": "NVLink Switch"}],
     "links": [{"name": "pcie", "bandwidth": {"choice": "gigabytes_per_second",
                "gigabytes_per_second": 32}}, {"name": "nvlink", "bandwidth":
                {"gigabytes_per_second": 128}}],
     "connections": ["xpu.0.pcie.nic.0", "xpu.1.pcie.nic.1", "xpu.0.nvlink.nvlsw.0",
                     "xpu.1.nvlink.nvlsw.0"]},
    {"name": "box", "components": [{"name": "asic", "type": "custom", "description": "switch"},
      {"name": "port", "type": "nic"}], "links": [{"name": "ic"}],
     "connections": ["asic.0.ic.port.0", "asic.0.ic.port.1", "asic.0.ic.port.2",
                     "asic.0.ic.port.3"]}],
  "instances": [{"name": "server", "device": "host"}, {"name": "leaf", "device": "box"}],
  "links": [{"name": "eth", "bandwidth": {"gigabytes_per_second": 50}}],
  "connections": ["server.0.nic.0.eth.leaf.0.port.0", "server.0.nic.1.eth.leaf.0.port.1",
                  "server.1.nic.0.eth.leaf.0.port.2", "server.1.nic.1.eth.leaf.0.port.3"]}})";

TEST(ImportInfraGraphTest, ConnectionsOfTheSchemaBeforeAreRead) {
  const ImportedCluster imported = Infra(kInfraOfConnections);
  const Cluster& cluster = *imported.cluster;
  EXPECT_EQ(cluster.device_count(), 4u);
  EXPECT_EQ(cluster.node_count(), 2u);
  EXPECT_EQ(CountOf(cluster, VertexKind::kNic), 4u);
  std::map<double, uint32_t> links;  // one way, by bandwidth
  for (uint32_t i = 0; i < cluster.link_count(); ++i) ++links[cluster.Link(i).bandwidth.value()];
  EXPECT_EQ(links[128e9], 8u);  // both ways of four NVLinks
  EXPECT_EQ(links[32e9], 8u);
  EXPECT_EQ(links[50e9], 8u);
  ExpectComesBack(cluster);
}

TEST(ImportInfraGraphTest, ConnectionsThatAreNoneAreRefused) {
  const auto refused = [](const char* by) {
    return InfraErrorOf(With(kInfraOfConnections, "\"xpu.0.pcie.nic.0\"", by));
  };
  for (const char* by : {"\"xpu.0.bus.nic.0\"", "\"xpu.0.pcie\"", "\"pcie.nic.0\"", "\"\"",
                         "\"xpu.0.pcie.nic.0.pcie.xpu.1\"", "\"..\""})
    EXPECT_THAT(refused(by), HasSubstr("/devices/0/connections/0")) << by;
  EXPECT_THAT(refused("\"xpu.77777.pcie.nic.0\""),
              HasSubstr("a \"xpu\" numbered 77777, but no more than 4 connections"));
}

TEST(ImportInfraGraphTest, PortsAreAPartOfWhatTheyLeadTo) {
  std::string ports = With(kInfraPair, R"({"name": "nic", "count": 1, "choice": "nic"}])",
                           R"({"name": "nic", "count": 1, "choice": "nic"},
                              {"name": "port", "count": 2, "choice": "port"},
                              {"name": "plug", "count": 2, "choice": "port"}])");
  ports = With(ports, R"("edges": [{"ep1": {"component": "xpu"})",
               R"("edges": [{"ep1": {"component": "nic"}, "ep2": {"component": "port"},
                             "scheme": "many2many", "link": "bus"},
                            {"ep1": {"component": "port"}, "ep2": {"component": "plug"},
                             "scheme": "one2one", "link": "bus"},
                            {"ep1": {"component": "xpu"})");
  ports = With(ports, R"("instance": "a", "component": "nic")",
               R"("instance": "a", "component": "plug")");
  ports = With(ports, R"({"name": "cable"})", R"({"name": "cable", "description": "100GbE"})");
  const ImportedCluster imported = Infra(ports);
  EXPECT_EQ(CountOf(*imported.cluster, VertexKind::kNic), 2u);
  EXPECT_EQ(LinkBetween(*imported.cluster, "a0/nic->s").bandwidth.value(), 25e9);  // two ports
}

TEST(ImportInfraGraphTest, DevicesOfARackThatHaveXpusAndHostsAreMachines) {
  const std::string rack = R"({"devices": [
    {"name": "tray", "components": [{"name": "xpu", "count": 2, "choice": "xpu"},
                                    {"name": "cpu", "count": 1, "choice": "cpu"}],
     "links": [{"name": "pcie"}],
     "edges": [{"ep1": {"component": "xpu"}, "ep2": {"component": "cpu"}, "scheme": "many2many",
                "link": "pcie"}]},
    {"name": "rack", "components": [{"name": "tray", "count": 3, "choice": "device"},
                                    {"name": "nvswitch", "count": 2, "choice": "switch"}],
     "links": [{"name": "nvlink"}],
     "edges": [{"ep1": {"component": "tray.xpu"}, "ep2": {"component": "nvswitch"},
                "scheme": "many2many", "link": "nvlink"}]}],
    "links": [], "edges": [],
    "instances": [{"name": "r", "device": "rack", "count": 1}]})";
  const ImportedCluster imported = Infra(rack, "b200");
  EXPECT_EQ(imported.cluster->node_count(), 3u);
  EXPECT_EQ(imported.cluster->DeviceName(5), "r/tray2/xpu1");
  EXPECT_EQ(imported.cluster->NodeOf(5), "r/tray2");
  EXPECT_THAT(NamesOf(*imported.cluster, VertexKind::kNvSwitch), ElementsAre("r/nvswitch0+1"));
  EXPECT_DOUBLE_EQ(LinkBetween(*imported.cluster, "r/tray0/xpu0->r/nvswitch0+1").bandwidth.value(),
                   18 * 50e9);
}

TEST(ImportInfraGraphTest, WhatIsNotUnderstoodIsListed) {
  EXPECT_THAT(Infra(With(kInfraPair, R"("name": "cable")",
                         R"("name": "cable", "colour": "blue",
                            "physical": {"bandwidth": {"furlongs": 3}})"))
                  .remarks,
              AllOf(Contains(AllOf(HasSubstr("colour"), HasSubstr("not understood"))),
                    Contains(HasSubstr("furlongs"))));
}

// ---- Mistakes -----------------------------------------------------------------------------------

TEST(ImportInfraGraphTest, MistakesNameTheirPlace) {
  struct Mistake {
    std::string part;
    std::string by;
    std::vector<std::string> told;
  };
  const std::vector<Mistake> mistakes = {
      {R"("device": "box")", R"("device": "bax")", {":11: /instances/0", "bax", "did you mean"}},
      {R"("component": "nic"})", R"("component": "nick"})", {"/ep2", "nick", "nic"}},
      {R"("s[0]")", R"("t[0]")", {"/edges/0/ep2", "no instance \"t\""}},
      {R"("s[0]")", R"("s[1]")", {"/edges/0/ep2", "1 to 2", "0 to 1"}},
      {R"("s[0]")", R"("s[0")", {"/edges/0/ep2/instance", "slices"}},
      {R"("s[0]")", R"("s[0:1:0]")", {"slices"}},
      {R"("s[0]")", R"("s[-1]")", {"slices"}},
      {R"("many2many", "link")", R"("ring", "link")", {"/scheme", "ring", "one2one"}},
      {R"("link": "cable")", R"("link": "cabel")", {"/edges/0/link", "did you mean \"cable\""}},
      {R"("choice": "xpu")", R"("choice": "gpu")", {"/choice", "gpu"}},
      {R"("count": 1, "choice": "xpu")", R"("count": -1, "choice": "xpu")", {"/count"}},
      {R"("count": 1, "choice": "xpu")", R"("count": 0, "choice": "xpu")", {"0 to 0"}},
      {R"("choice": "xpu")", R"("choice": "memory")", {"no xpu"}},
      {R"({"name": "tor")", R"({"name": "box")", {"another device \"box\""}},
      {R"({"name": "s",)", R"({"name": "a",)", {"another instance \"a\""}},
      {R"({"name": "nic",)", R"({"name": "xpu",)", {"another component \"xpu\""}},
      {R"("name": "xpu", "count": 1, "choice": "xpu")",
       R"("name": "box", "count": 1, "choice": "device")",
       {"/devices/0/components/0", "within itself"}},
      {R"({"name": "cable"})",
       R"({"name": "cable", "physical": {"bandwidth": {"gigabits_per_second": 0}}})",
       {"/links/0/physical/bandwidth/gigabits_per_second", "found 0"}},
      {R"({"name": "cable"})",
       R"({"name": "cable", "description": "rehearse: kind=string"})",
       {"/links/0", "\"string\"", "nvlink, xgmi"}},
      {R"({"name": "cable"})",
       R"({"name": "cable", "description": "rehearse: kind=network efficiency=2"})",
       {"efficiency=\"2\""}},
      {R"({"devices")",
       R"({"description": "rehearse: step_overhead=3", "devices")",
       {"step_overhead", "\"3\""}},
  };
  for (const Mistake& mistake : mistakes) {
    const std::string told = InfraErrorOf(With(kInfraPair, mistake.part, mistake.by));
    EXPECT_THAT(told, StartsWith("infra.yaml")) << mistake.by;
    for (const std::string& part : mistake.told) EXPECT_THAT(told, HasSubstr(part)) << mistake.by;
  }
  EXPECT_THAT(InfraErrorOf("{}"), HasSubstr("no xpu"));
  EXPECT_THAT(InfraErrorOf(" \n"), HasSubstr("the file is empty"));
  EXPECT_THAT(InfraErrorOf(R"({"devices": 3})"), HasSubstr("infra.yaml:1: /devices: found 3"));
  EXPECT_THAT(InfraErrorOf(With(kInfraPair, R"("many2many", "link": "cable")",
                                R"("one2one", "link": "cable")")),
              HasSubstr("a1/xpu"));  // is cut off
}

TEST(ImportInfraGraphTest, CountsThatWouldBecomeMillionsAreRefused) {
  EXPECT_THAT(InfraErrorOf(With(kInfraPair, R"("count": 2)", R"("count": 900000)")),
              AllOf(HasSubstr("/instances/0"), HasSubstr("more than 1000000 parts")));
  EXPECT_THAT(InfraErrorOf(With(kInfraPair, R"("count": 2)", R"("count": 4000000000)")),
              HasSubstr("/instances/0/count"));
  const std::string mesh =
      With(kInfraPair, R"("count": 1, "choice": "xpu")", R"("count": 2000, "choice": "xpu")");
  EXPECT_THAT(InfraErrorOf(With(mesh, R"("ep2": {"component": "nic"}, "scheme": "one2one")",
                                R"("ep2": {"component": "xpu"}, "scheme": "many2many")")),
              HasSubstr("more than 1000000 edges"));
  std::string deep = R"({"instances": [{"name": "i", "device": "d0", "count": 1}], "devices": [)";
  for (int i = 0; i < 30; ++i)
    deep += fmt::format(R"({{"name": "d{}", "components": [{{"name": "d{}", "count": 2,
                           "choice": "device"}}]}},)",
                        i, i + 1);
  EXPECT_THAT(InfraErrorOf(deep + R"({"name": "d30", "components": []}]})"),
              HasSubstr("more than 16 deep"));
}

TEST_F(InfraYamlTest, WhatIsNoYamlIsRefusedWithItsLine) {
  EXPECT_THAT(InfraErrorOf("name: x\n\tdevices: [\n"), StartsWith("infra.yaml:2: no YAML"));
  EXPECT_THAT(InfraErrorOf("a: [1\n"), StartsWith("infra.yaml"));
  EXPECT_THAT(InfraErrorOf("a: 1\n---\nb: 2\n"), HasSubstr("a second document"));
  EXPECT_THAT(InfraErrorOf("# nothing\n"), HasSubstr("infra.yaml"));
  EXPECT_THAT(InfraErrorOf("? [a]\n: b\n"), HasSubstr("expected a key"));
  EXPECT_THAT(InfraErrorOf("a: &x [*x]\n"), HasSubstr("an alias of what it stands in"));
  EXPECT_THAT(InfraErrorOf("a: *x\n"), StartsWith("infra.yaml:1: no YAML"));
  EXPECT_THAT(InfraErrorOf("name: x\nname: y\n"), HasSubstr("infra.yaml:2"));
  std::string deep;
  for (int i = 0; i < 5000; ++i) deep += "- ";
  EXPECT_THAT(InfraErrorOf(deep), HasSubstr("more than 64 levels"));
  EXPECT_THAT(InfraErrorOf(std::string(5000, '[')), StartsWith("infra.yaml:1: "));
  EXPECT_THAT(InfraErrorOf("devices:\n- name: d\n  components:\n  - {name: c, count: no}\n"),
              HasSubstr("infra.yaml:4: /devices/0/components/0/count: found \"no\""));
}

TEST_F(InfraYamlTest, AliasesThatMultiplyAreRefused) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    bomb += fmt::format("a{}: &a{} [", i, i);
    for (int k = 0; k < 10; ++k) bomb += fmt::format("{}*a{}", k > 0 ? ", " : "", i - 1);
    bomb += "]\n";
  }
  EXPECT_THAT(InfraErrorOf(bomb), HasSubstr("aliases repeat more than 8 MiB"));
}

TEST(ImportInfraGraphTest, WithoutYamlOnlyJsonIsRead) {
  if (HasYaml()) GTEST_SKIP() << "built with yaml-cpp";
  EXPECT_THAT(InfraErrorOf(kInfraClos), HasSubstr("libyaml-cpp-dev"));
}

}  // namespace import_infragraph_test
}  // namespace rehearse
