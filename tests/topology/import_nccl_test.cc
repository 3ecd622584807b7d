#include "topology/import_nccl.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/topology/same_cluster.h"
#include "topology/cluster_export.h"
#include "topology/cluster_file.h"
#include "topology/import_devices.h"
#include "topology/import_rates.h"
#include "topology/router.h"

namespace rehearse {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

ImportedCluster Import(const std::string& text, const std::string& device = "") {
  return ImportNcclTopology(text, "box.xml", device);
}

std::string ErrorOf(const std::string& text) {
  try {
    Import(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// A system of one NUMA node.
std::string System(const std::string& inside) {
  return "<system version=\"1\">\n<cpu numaid=\"0\" arch=\"x86_64\" vendor=\"GenuineIntel\" "
         "familyid=\"6\" modelid=\"85\">\n" +
         inside + "\n</cpu>\n</system>\n";
}

// A GPU on PCIe 4.0 x16, in the third line if it is the first of System().
std::string Gpu(uint32_t rank, const std::string& links = "", const std::string& sm = "80") {
  return fmt::format(
      "<pci busid=\"0000:{:02x}:00.0\" class=\"0x030200\" link_speed=\"16.0 GT/s PCIe\" "
      "link_width=\"16\"><gpu dev=\"{}\" sm=\"{}\" rank=\"{}\" gdr=\"1\">{}</gpu></pci>",
      0x10 + rank, rank, sm, rank, links);
}

std::string NvLink(const std::string& target, const std::string& count,
                   const std::string& tclass = "0x030200") {
  return fmt::format("<nvlink target=\"{}\" count=\"{}\" tclass=\"{}\"/>", target, count, tclass);
}

std::string Nic(const std::string& bus, const std::string& nets) {
  return fmt::format(
      "<pci busid=\"{}\" class=\"0x020700\" link_speed=\"16.0 GT/s PCIe\" link_width=\"16\">"
      "<nic>{}</nic></pci>",
      bus, nets);
}

size_t CountOf(const Cluster& cluster, VertexKind kind) {
  size_t count = 0;
  for (Cluster::VertexId id = 0; id < boost::num_vertices(cluster.graph()); ++id)
    if (cluster.graph()[id].kind == kind) ++count;
  return count;
}

size_t CountOf(const Cluster& cluster, LinkKind kind) {
  size_t count = 0;
  for (uint32_t i = 0; i < cluster.link_count(); ++i)
    if (cluster.Link(i).kind == kind) ++count;
  return count;
}

std::vector<std::string> Names(const Cluster& cluster, const Route& route) {
  std::vector<std::string> names;
  for (const uint32_t link : route.links) names.push_back(cluster.LinkName(link));
  return names;
}

const ClusterLink& LinkNamed(const Cluster& cluster, const std::string& name) {
  for (uint32_t i = 0; i < cluster.link_count(); ++i)
    if (cluster.LinkName(i) == name) return cluster.Link(i);
  throw Error("there is no link " + name);
}

void ExpectComesBack(const Cluster& cluster) {
  const JsonDocument document = JsonDocument::FromText(ClusterToText(cluster), "exported.json");
  ExpectSameCluster(*ReadCluster(document.Root()), cluster);
}

// ---- A whole small machine ------------------------------------------------------------------------

// Two A100 behind a switch with a NIC, four NVLinks between them; a second NUMA node with a third.
std::string SmallMachine() {
  return R"(<!-- ours -->
<system version="1">
  <cpu numaid="0" affinity="ff" arch="x86_64" vendor="AuthenticAMD" familyid="23" modelid="49">
    <pci busid="0000:01:00.0" class="0x060400" link_speed="16.0 GT/s PCIe" link_width="16">
      <pci busid="0000:02:00.0" class="0x030200" vendor="0x10de" device="0x20b0" link_speed="16.0 GT/s PCIe" link_width="16">
        <gpu dev="0" sm="80" rank="0" gdr="1"><nvlink target="0000:03:00.0" count="4" tclass="0x030200"/></gpu>
      </pci>
      <pci busid="0000:03:00.0" class="0x030200" vendor="0x10de" device="0x20b0" link_speed="16.0 GT/s PCIe" link_width="16">
        <gpu dev="1" sm="80" rank="1" gdr="1"><nvlink target="0000:02:00.0" count="4" tclass="0x030200"/></gpu>
      </pci>
      <pci busid="0000:04:00.0" class="0x020700" link_speed="16.0 GT/s PCIe" link_width="16">
        <nic><net name="mlx5_0" dev="0" speed="200000" port="1" latency="0.5" gdr="1"/></nic>
      </pci>
    </pci>
  </cpu>
  <cpu numaid="1" affinity="ff00" arch="x86_64" vendor="AuthenticAMD" familyid="23" modelid="49">
    <pci busid="0000:81:00.0" class="0x030200" vendor="0x10de" device="0x20b2" link_speed="8.0 GT/s PCIe" link_width="8">
      <gpu dev="2" sm="80" rank="2" gdr="1"/>
    </pci>
  </cpu>
</system>
)";
}

TEST(ImportNcclTest, AMachineIsReadWholly) {
  const ImportedCluster imported = Import(SmallMachine());
  const Cluster& cluster = *imported.cluster;
  EXPECT_THAT(imported.remarks, IsEmpty());  // nothing was missing
  EXPECT_EQ(cluster.name(), "box");
  EXPECT_EQ(cluster.device_count(), 3u);
  EXPECT_EQ(cluster.node_count(), 1u);
  EXPECT_EQ(cluster.DeviceOf(0).name, "a100-40g");
  EXPECT_EQ(cluster.DeviceOf(2).name, "a100-80g");
  EXPECT_EQ(CountOf(cluster, VertexKind::kNic), 1u);
  EXPECT_EQ(CountOf(cluster, VertexKind::kPcieSwitch), 1u);
  EXPECT_EQ(CountOf(cluster, VertexKind::kSocket), 2u);
  EXPECT_EQ(CountOf(cluster, VertexKind::kSwitch), 1u);  // the fabric
  // Both ways: 5 PCIe (switch, three GPUs, NIC), a pair of NVLinks, of sockets, and the port.
  EXPECT_EQ(CountOf(cluster, LinkKind::kPcie), 10u);
  EXPECT_EQ(cluster.link_count(), 16u);
  // Four links of 25 GB/s, of which NCCL counts on 20 each.
  const ClusterLink& nvlink = LinkNamed(cluster, "node0/gpu0->node0/gpu1");
  EXPECT_EQ(nvlink.kind, LinkKind::kNvLink);
  EXPECT_EQ(nvlink.bandwidth, BytesPerSecond(100e9));
  EXPECT_DOUBLE_EQ(nvlink.Capacity().value(), 80e9);
  // PCIe 4.0 x16: 31.5 GB/s, 24 to NCCL. 3.0 x8: half of 15.75 and of 12.
  EXPECT_EQ(LinkNamed(cluster, "node0/gpu1->node0/pcie0").bandwidth, BytesPerSecond(31.5e9));
  EXPECT_DOUBLE_EQ(LinkNamed(cluster, "node0/gpu1->node0/pcie0").Capacity().value(), 24e9);
  EXPECT_EQ(LinkNamed(cluster, "node0/gpu2->node0/numa1").bandwidth, BytesPerSecond(7.875e9));
  EXPECT_DOUBLE_EQ(LinkNamed(cluster, "node0/gpu2->node0/numa1").Capacity().value(), 6e9);
  // Family 23 is Zen 2: 16 GB/s. The port: 200,000 Mbit/s, and half a microsecond more.
  EXPECT_EQ(LinkNamed(cluster, "node0/numa0->node0/numa1").bandwidth, BytesPerSecond(16e9));
  EXPECT_EQ(LinkNamed(cluster, "node0/nic0->fabric").bandwidth, BytesPerSecond(25e9));
  EXPECT_DOUBLE_EQ(LinkNamed(cluster, "node0/nic0->fabric").latency.value(), 4e-6);
  EXPECT_THAT(cluster.notes(), Contains(HasSubstr("gpu1 0000:03:00.0")));
  EXPECT_THAT(cluster.notes(), Contains(HasSubstr("nic0 mlx5_0")));
  ExpectComesBack(cluster);
}

TEST(ImportNcclTest, RoutesTakeNvLinkElseGoThroughTheSockets) {
  const ImportedCluster imported = Import(SmallMachine());
  Router router(*imported.cluster);
  EXPECT_THAT(Names(*imported.cluster, router.Between(0, 1)),
              ElementsAre("node0/gpu0->node0/gpu1"));
  EXPECT_DOUBLE_EQ(router.Between(0, 1).latency.value(), 3.4e-6);  // NCCL's NVLink hop
  const Route& far = router.Between(1, 2);
  EXPECT_THAT(Names(*imported.cluster, far),
              ElementsAre("node0/gpu1->node0/pcie0", "node0/pcie0->node0/numa0",
                          "node0/numa0->node0/numa1", "node0/numa1->node0/gpu2"));
  EXPECT_DOUBLE_EQ(far.bandwidth.value(), 6e9);  // the slot of x8
}

TEST(ImportNcclTest, TwoGpusOnOneSwitchAreOnePcieHopApart) {
  const std::string text = System(
      "<pci busid=\"0000:01:00.0\" class=\"0x060400\" "
      "link_speed=\"16 GT/s\" link_width=\"16\">" +
      Gpu(0) + Gpu(1) + "</pci>");
  const ImportedCluster imported = Import(text);
  Router router(*imported.cluster);
  EXPECT_THAT(Names(*imported.cluster, router.Between(0, 1)),
              ElementsAre("node0/gpu0->node0/pcie0", "node0/pcie0->node0/gpu1"));
  EXPECT_DOUBLE_EQ(router.Between(0, 1).latency.value(), kPcieHop.value());
}

// ---- NVLink, xGMI, C2C ----------------------------------------------------------------------------

TEST(ImportNcclTest, AllNvSwitchesAreOneVertex) {
  // A100: six switches, two links to each.
  std::string links;
  for (int i = 0; i < 6; ++i) links += NvLink(fmt::format("0000:c{}:00.0", i), "2", "0x068000");
  const ImportedCluster imported = Import(System(Gpu(0, links) + Gpu(1, links)));
  EXPECT_EQ(CountOf(*imported.cluster, VertexKind::kNvSwitch), 1u);
  Router router(*imported.cluster);
  const Route& route = router.Between(0, 1);
  EXPECT_THAT(Names(*imported.cluster, route),
              ElementsAre("node0/gpu0->node0/nvswitch", "node0/nvswitch->node0/gpu1"));
  EXPECT_DOUBLE_EQ(route.bandwidth.value(), 240e9);  // 12 · 20
  EXPECT_DOUBLE_EQ(route.latency.value(), 3.4e-6);
}

TEST(ImportNcclTest, AHiddenNvSwitchIsOne) {
  const std::string link = NvLink("fffffff:ffff:ff", "12", "0x068000");
  EXPECT_EQ(CountOf(*Import(System(Gpu(0, link) + Gpu(1, link))).cluster, VertexKind::kNvSwitch),
            1u);
}

TEST(ImportNcclTest, AMissingTargetClassIsFilledInAndSaid) {
  const std::string to_switch = "<nvlink target=\"fffffff:ffff:ff\" count=\"12\"/>";
  const ImportedCluster by_switch = Import(System(Gpu(0, to_switch) + Gpu(1, to_switch)));
  EXPECT_EQ(CountOf(*by_switch.cluster, VertexKind::kNvSwitch), 1u);
  EXPECT_THAT(by_switch.remarks, Contains(HasSubstr("taken for an NVSwitch")));
  const ImportedCluster direct =
      Import(System(Gpu(0, "<nvlink target=\"0000:11:00.0\" count=\"4\"/>") +
                    Gpu(1, "<nvlink target=\"0000:10:00.0\" count=\"4\"/>")));
  EXPECT_EQ(LinkNamed(*direct.cluster, "node0/gpu0->node0/gpu1").bandwidth, BytesPerSecond(100e9));
  EXPECT_THAT(direct.remarks, Contains(HasSubstr("taken for the GPU with that bus id")));
}

// Hybrid cube mesh: 0-3, 0-4, 1-2, 1-5, 2-3, 4-7, 5-6, 6-7 are double, 0-1, 0-2, 1-3, 2-6, 3-7, 4-5, 4-6,
// 5-7 single (`nvidia-smi topo -m` of a DGX-1 with V100).
TEST(ImportNcclTest, ADgx1HasDoublePairs) {
  const std::vector<std::pair<uint32_t, uint32_t>> doubles = {{0, 3}, {0, 4}, {1, 2}, {1, 5},
                                                              {2, 3}, {4, 7}, {5, 6}, {6, 7}};
  const std::vector<std::pair<uint32_t, uint32_t>> singles = {{0, 1}, {0, 2}, {1, 3}, {2, 6},
                                                              {3, 7}, {4, 5}, {4, 6}, {5, 7}};
  std::vector<std::string> links(8);
  const auto add = [&](uint32_t a, uint32_t b, const char* count) {
    links[a] += NvLink(fmt::format("0000:{:02x}:00.0", 0x10 + b), count);
    links[b] += NvLink(fmt::format("0000:{:02x}:00.0", 0x10 + a), count);
  };
  for (const auto& [a, b] : doubles) add(a, b, "2");
  for (const auto& [a, b] : singles) add(a, b, "1");
  std::string gpus;
  for (uint32_t i = 0; i < 8; ++i) gpus += Gpu(i, links[i], "70");
  const ImportedCluster imported = Import(System(gpus), "a100-40g");
  EXPECT_EQ(CountOf(*imported.cluster, LinkKind::kNvLink), 32u);  // 16 pairs, both ways
  Router router(*imported.cluster);
  for (const auto& [a, b] : doubles) {
    EXPECT_EQ(router.Between(a, b).links.size(), 1u);
    EXPECT_DOUBLE_EQ(router.Between(b, a).bandwidth.value(), 40e9);  // 2 · 20
  }
  for (const auto& [a, b] : singles) EXPECT_DOUBLE_EQ(router.Between(a, b).bandwidth.value(), 20e9);
  // Not linked: not through another GPU, but over PCIe.
  EXPECT_THAT(Names(*imported.cluster, router.Between(0, 7)),
              ElementsAre("node0/gpu0->node0/numa0", "node0/numa0->node0/gpu7"));
}

TEST(ImportNcclTest, XgmiLinksTheGpusOfAmd) {
  const auto gpu = [](uint32_t rank, const char* target) {
    return fmt::format(
        "<pci busid=\"0000:0{}:00.0\" class=\"0x120000\" vendor=\"0x1002\" device=\"0x74a1\" "
        "link_speed=\"32.0 GT/s PCIe\" link_width=\"16\"><gpu dev=\"{}\" sm=\"64\" gcn=\"942\" "
        "rank=\"{}\" gdr=\"1\"><xgmi target=\"{}\" count=\"1\" tclass=\"0x120000\"/></gpu></pci>",
        rank, rank, rank, target);
  };
  std::string text = System(gpu(1, "0000:02:00.0") + gpu(2, "0000:01:00.0"));
  text.replace(text.find("version=\"1\""), 11, "version=\"2\"");
  const ImportedCluster imported = Import(text);
  const ClusterLink& link = LinkNamed(*imported.cluster, "node0/gpu1->node0/gpu2");
  EXPECT_EQ(link.kind, LinkKind::kXgmi);
  EXPECT_EQ(link.bandwidth, BytesPerSecond(64e9));
  EXPECT_DOUBLE_EQ(link.Capacity().value(), 48e9);
  EXPECT_EQ(imported.cluster->DeviceOf(0).name, "mi300x");
  ExpectComesBack(*imported.cluster);
}

TEST(ImportNcclTest, NvLinkToTheProcessorIsALinkToTheSocket) {
  // Ten links of 45,000 MB/s: 450 GB/s, the figure of Grace Hopper.
  const ImportedCluster c2c = Import(System(Gpu(0, "<c2c bw=\"45000\" count=\"10\"/>", "90")));
  bool found = false;
  for (uint32_t i = 0; i < c2c.cluster->link_count(); ++i) {
    const ClusterLink& link = c2c.cluster->Link(i);
    if (link.kind != LinkKind::kNvLink) continue;
    found = true;
    EXPECT_EQ(link.bandwidth, BytesPerSecond(450e9));
  }
  EXPECT_TRUE(found);
  const ImportedCluster power = Import(System(Gpu(0, NvLink("0004:04:00.0", "3", "0x068001"))));
  EXPECT_EQ(CountOf(*power.cluster, LinkKind::kNvLink), 2u);
}

TEST(ImportNcclTest, ALinkBackToTheGpuItselfIsLeftOutAndSaid) {
  const ImportedCluster imported = Import(System(Gpu(0, NvLink("0000:10:00.0", "12")) + Gpu(1)));
  EXPECT_EQ(CountOf(*imported.cluster, LinkKind::kNvLink), 0u);
  EXPECT_THAT(imported.remarks, Contains(HasSubstr("leads back to its own GPU")));
  EXPECT_THAT(imported.remarks, Contains(HasSubstr("the file has no NVLinks")));
}

// ---- Filling in -----------------------------------------------------------------------------------

TEST(ImportNcclTest, MissingLinkSpeedAndWidthAreNcclsAndSaid) {
  const ImportedCluster imported =
      Import(System("<pci busid=\"0000:10:00.0\" class=\"0x030200\" link_speed=\"\" "
                    "link_width=\"0\"><gpu dev=\"0\" sm=\"80\" rank=\"0\"/></pci>"));
  // 8 GT/s, 16 lanes.
  EXPECT_EQ(LinkNamed(*imported.cluster, "node0/gpu0->node0/numa0").bandwidth,
            BytesPerSecond(15.75e9));
  EXPECT_THAT(
      imported.remarks,
      ElementsAre("0000:10:00.0: no link_speed that NCCL knows; taken as 8 GT/s, as by NCCL",
                  "0000:10:00.0: no link_width; taken as 16, as by NCCL"));
  EXPECT_THAT(imported.cluster->notes(), Contains(imported.remarks[0]));
}

TEST(ImportNcclTest, APciTreeAloneGivesGpusAndNicsByTheirClass) {
  const ImportedCluster imported = Import(R"(<system version="1">
  <cpu numaid="0"><pci busid="ffff:ff:01.0" class="0x060400" link_speed="16 GT/s" link_width="16">
    <pci busid="0003:00:00.0" class="0x030200" link_speed="16 GT/s" link_width="16"/>
    <pci busid="0101:00:00.0" class="0x020700" link_speed="16 GT/s" link_width="16"/>
  </pci></cpu>
  <cpu numaid="1">
    <pci busid="0001:00:00.0" class="0x030200" link_speed="16 GT/s" link_width="16"/>
    <pci busid="0102:00:00.0" class="0x010802" link_speed="16 GT/s" link_width="4"/>
  </cpu></system>)");
  const Cluster& cluster = *imported.cluster;
  EXPECT_EQ(cluster.device_count(), 2u);
  // 0001 comes before 0003, whatever their order in the file.
  EXPECT_THAT(cluster.notes(), Contains(HasSubstr("gpu0 0001:00:00.0, gpu1 0003:00:00.0")));
  EXPECT_EQ(cluster.DeviceOf(0).name, kAssumedDevice);
  // PCIe 4.0 x16 carries 252 Gbit/s, so the port is of 200.
  EXPECT_EQ(LinkNamed(cluster, "node0/nic0->fabric").bandwidth, BytesPerSecond(25e9));
  EXPECT_THAT(imported.remarks, Contains(HasSubstr("taken as 200 Gbit/s")));
  EXPECT_THAT(imported.remarks, Contains(HasSubstr("says which GPU this is")));
  EXPECT_THAT(imported.remarks, Contains(HasSubstr("ranked by bus id")));
  EXPECT_THAT(imported.remarks, Contains(HasSubstr("10 GB/s to other NUMA nodes")));
  EXPECT_THAT(imported.remarks, Contains(HasSubstr("0102:00:00.0: a PCI device that is no GPU")));
}

TEST(ImportNcclTest, WithoutClassesTheOddOneIsTakenForTheNic) {
  const ImportedCluster imported = Import(R"(<system version="1">
  <cpu numaid="0"><pci busid="0000:00:16.0"/><pci busid="0000:00:17.0"/></cpu>
  <cpu numaid="1"><pci busid="0000:00:18.0"/><pci busid="0000:00:19.0"/><pci busid="0000:00:15.0"/></cpu>
</system>)");
  EXPECT_EQ(imported.cluster->device_count(), 4u);
  EXPECT_THAT(imported.remarks,
              Contains(StartsWith("0000:00:15.0: no class; guessed to be a NIC")));
}

TEST(ImportNcclTest, TheUserMaySayWhichDeviceItIs) {
  const std::string text = System(
      "<pci busid=\"0000:10:00.0\" class=\"0x030200\" link_speed=\"16 GT/s\" "
      "link_width=\"16\"/>");
  const ImportedCluster imported = Import(text, "a100-80g");
  EXPECT_EQ(imported.cluster->DeviceOf(0).name, "a100-80g");
  EXPECT_THAT(imported.remarks, Not(Contains(HasSubstr("says which GPU"))));
  EXPECT_THROW(Import(text, "a100-8g"), Error);
}

TEST(ImportNcclTest, ADeviceIsKnownByItsIdItsCapabilityOrItsArchitecture) {
  const auto name = [](const char* vendor, const char* device, uint32_t sm, const char* gcn) {
    const auto kind = FindGpuKind(vendor, device, sm, gcn);
    return kind ? kind->device : "";
  };
  EXPECT_EQ(name("0x10de", "0x20B2", 80, ""), "a100-80g");
  EXPECT_EQ(name("", "", 80, ""), "a100-40g");
  EXPECT_EQ(name("", "", 70, ""), "v100-16g");
  EXPECT_EQ(name("", "", 90, ""), "h100");
  EXPECT_EQ(name("0x1002", "0x7408", 0, ""), "mi250x-gcd");
  EXPECT_EQ(name("", "", 64, "906"), "mi50");  // AMD's "sm" is none
  EXPECT_EQ(name("", "", 104, "gfx90a:sramecc+:xnack-"), "mi250x-gcd");
  EXPECT_EQ(name("", "", 104, "910"), "mi250x-gcd");  // as older RCCL writes it
  EXPECT_EQ(name("0x10de", "0xffff", 0, ""), "");
  EXPECT_EQ(name("", "", 0, "gfx0"), "");
}

TEST(ImportNcclTest, EveryDeviceOfTheTableCanBeUsed) {
  for (const uint32_t sm : {60, 70, 75, 80, 86, 89, 90, 100}) {
    const auto kind = FindGpuKind("", "", sm, "");
    ASSERT_TRUE(kind) << sm;
    const DeviceSpec spec = SpecOf(*kind);
    Compute compute;
    compute.kind = ComputeKind::kGemm;
    compute.gemm = {.m = 4096, .n = 4096, .k = 4096};
    compute.flops = Flops(2.0 * 4096 * 4096 * 4096);
    compute.dtype = DType::kFp16;
    EXPECT_GT(ComputeTime(spec, compute, false), Seconds(0)) << spec.name;
  }
}

// ---- Ranks ----------------------------------------------------------------------------------------

TEST(ImportNcclTest, DevicesAreRankedByRankAndNamedByDev) {
  const auto gpu = [](const char* bus, const char* dev, const char* rank) {
    return fmt::format(
        "<pci busid=\"{}\" class=\"0x030200\" link_speed=\"16 GT/s\" link_width=\"16\">"
        "<gpu dev=\"{}\" sm=\"80\" {}/></pci>",
        bus, dev, rank);
  };
  const ImportedCluster imported =
      Import(System(gpu("0000:01:00.0", "5", "rank=\"1\"") +
                    gpu("0000:02:00.0", "3", "rank=\"0\"") + gpu("0000:03:00.0", "4", "")));
  const Cluster& cluster = *imported.cluster;
  ASSERT_EQ(cluster.device_count(), 2u);
  EXPECT_EQ(cluster.graph()[cluster.devices()[0]].name, "node0/gpu3");
  EXPECT_EQ(cluster.graph()[cluster.devices()[1]].name, "node0/gpu5");
  EXPECT_THAT(imported.remarks, Contains(StartsWith("0000:03:00.0: no rank")));
}

// ---- NICs -----------------------------------------------------------------------------------------

TEST(ImportNcclTest, ThePortsOfOneCardShareItsSlot) {
  const ImportedCluster imported =
      Import(System(Gpu(0) + Nic("0000:20:00.0",
                                 "<net name=\"p0\" dev=\"0\" speed=\"100000\"/>"
                                 "<net name=\"p1\" dev=\"1\" speed=\"100000\"/>")));
  const Cluster& cluster = *imported.cluster;
  EXPECT_EQ(CountOf(cluster, VertexKind::kNic), 2u);
  EXPECT_EQ(LinkNamed(cluster, "node0/nic0->node0/card0").kind, LinkKind::kPcie);
  EXPECT_EQ(LinkNamed(cluster, "node0/nic1->node0/card0").kind, LinkKind::kPcie);
  EXPECT_EQ(LinkNamed(cluster, "node0/card0->node0/numa0").bandwidth, BytesPerSecond(31.5e9));
}

TEST(ImportNcclTest, ANetWithoutSpeedHasNccls) {
  const ImportedCluster imported =
      Import(System(Gpu(0) + Nic("0000:20:00.0", "<net name=\"a\" dev=\"0\" speed=\"-1\"/>") +
                    Nic("0000:21:00.0", "<net name=\"b\" dev=\"1\"/>")));
  // 10 Gbit/s.
  EXPECT_EQ(LinkNamed(*imported.cluster, "node0/nic0->fabric").bandwidth, BytesPerSecond(1.25e9));
  EXPECT_THAT(imported.remarks, Contains("a and b: no speed; taken as 10 Gbit/s, as by NCCL"));
}

TEST(ImportNcclTest, ANicOnNoBusHangsOnItsFirstNumaNode) {
  const std::string nic = "<nic><net name=\"eth0\" dev=\"0\" speed=\"10000\" gdr=\"0\"/></nic>";
  const std::string text = "<system version=\"1\"><cpu numaid=\"0\">" + Gpu(0) + nic +
                           "</cpu><cpu numaid=\"1\">" + Gpu(1) + nic + "</cpu></system>";
  const ImportedCluster imported = Import(text);
  EXPECT_EQ(CountOf(*imported.cluster, VertexKind::kNic), 1u);
  EXPECT_EQ(LinkNamed(*imported.cluster, "node0/nic0->node0/numa0").bandwidth,
            BytesPerSecond(5000e9));
  EXPECT_THAT(imported.remarks, Contains(StartsWith("eth0: under more than one NUMA node")));
  EXPECT_THAT(imported.remarks, Contains(StartsWith("eth0: on no PCI bus")));
  EXPECT_THAT(imported.remarks, Contains(StartsWith("nic0: no GPUDirect")));
}

// ---- Several machines -----------------------------------------------------------------------------

TEST(ImportNcclTest, AnotherHostHashIsAnotherMachine) {
  const auto host = [](const char* hash, uint32_t first) {
    const std::string link = NvLink("fffffff:ffff:ff", "18", "0x068000");
    std::string gpu = Gpu(first, link, "90");
    gpu.replace(gpu.find("0000:1"), 7, "0000:aa");  // the same bus id in both
    return fmt::format("<cpu host_hash=\"{}\" numaid=\"0\" arch=\"arm64\">{}</cpu>", hash, gpu);
  };
  const ImportedCluster imported =
      Import("<system version=\"1\">" + host("0x1", 0) + host("0x2", 1) + "</system>");
  EXPECT_EQ(imported.cluster->node_count(), 2u);
  Router router(*imported.cluster);
  EXPECT_THAT(Names(*imported.cluster, router.Between(0, 1)),
              ElementsAre("node0/gpu0->nvswitch", "nvswitch->node1/gpu1"));
}

TEST(ImportNcclTest, MachinesThatNothingConnectsAreRefused) {
  const std::string text = "<system version=\"1\"><cpu host_hash=\"1\" numaid=\"0\">" + Gpu(0) +
                           "</cpu><cpu host_hash=\"2\" numaid=\"0\">" + Gpu(1) + "</cpu></system>";
  EXPECT_THAT(ErrorOf(text), HasSubstr("box.xml: device \"node0/gpu0\" has no path"));
}

// ---- Rates ----------------------------------------------------------------------------------------

TEST(ImportRatesTest, SocketsAreAsFastAsNcclThinks) {
  const auto rate = [](const char* arch, const char* vendor, int family, int model) {
    ProcessorKind kind{arch, vendor, std::nullopt, std::nullopt};
    if (family >= 0) kind.family = static_cast<uint32_t>(family);
    if (model >= 0) kind.model = static_cast<uint32_t>(model);
    return BetweenSockets(kind).value_or(BytesPerSecond(0)).value() / 1e9;
  };
  EXPECT_EQ(rate("x86_64", "GenuineIntel", 6, 79), 6);    // Broadwell
  EXPECT_EQ(rate("x86_64", "GenuineIntel", 6, 85), 10);   // Skylake
  EXPECT_EQ(rate("x86_64", "GenuineIntel", 6, 143), 22);  // Sapphire Rapids
  EXPECT_EQ(rate("x86_64", "GenuineIntel", 6, 207), 40);  // Emerald Rapids
  EXPECT_EQ(rate("x86_64", "GenuineIntel", 6, 173), 40);  // Granite Rapids
  EXPECT_EQ(rate("x86_64", "AuthenticAMD", 23, 49), 16);  // Rome
  EXPECT_EQ(rate("x86_64", "AuthenticAMD", 25, 1), 24);   // Milan
  EXPECT_EQ(rate("x86_64", "AuthenticAMD", 175, 1), 24);  // as older NCCL added up
  EXPECT_EQ(rate("x86_64", "AuthenticAMD", 26, 2), 32);   // Turin
  EXPECT_EQ(rate("x86_64", "CentaurHauls", 7, 0x5b), 9);
  EXPECT_EQ(rate("ppc64", "", -1, -1), 32);
  EXPECT_EQ(rate("arm64", "", -1, -1), 6);
  EXPECT_EQ(rate("x86_64", "GenuineIntel", 6, -1), 0);  // not said
  EXPECT_EQ(rate("", "", -1, -1), 0);
}

TEST(ImportRatesTest, NvLinksAreAsFastAsNcclThinks) {
  const auto rate = [](uint32_t sm) {
    return NvLinksOf(sm, 1, Seconds(0)).Capacity().value() / 1e9;
  };
  EXPECT_DOUBLE_EQ(rate(60), 18);
  EXPECT_DOUBLE_EQ(rate(70), 20);
  EXPECT_DOUBLE_EQ(rate(80), 20);
  EXPECT_DOUBLE_EQ(rate(86), 12);
  EXPECT_DOUBLE_EQ(rate(90), 20.6);
  EXPECT_DOUBLE_EQ(rate(100), 40.1);
}

TEST(ImportRatesTest, PcieIsAsFastAsNcclThinks) {
  const auto rate = [](const char* speed, uint32_t lanes) {
    return PcieLinkOf({ParseGigatransfers(speed).value_or(0), lanes}, Seconds(0))
               .Capacity()
               .value() /
           1e9;
  };
  EXPECT_DOUBLE_EQ(rate("2.5 GT/s", 16), 3);
  EXPECT_DOUBLE_EQ(rate("5 GT/s", 16), 6);
  EXPECT_DOUBLE_EQ(rate("8.0 GT/s PCIe", 16), 12);
  EXPECT_DOUBLE_EQ(rate("16 GT/s", 8), 12);
  EXPECT_DOUBLE_EQ(rate("32.0 GT/s PCIe", 16), 48);
  EXPECT_DOUBLE_EQ(rate("64.0 GT/s PCIe", 1), 6);
  for (const char* speed : {"", "Unknown", "16", "17 GT/s", "1e9 GT/s", "-16 GT/s", "nan GT/s"})
    EXPECT_FALSE(ParseGigatransfers(speed)) << speed;
}

TEST(ImportRatesTest, AnAssumedPortIsWhatItsSlotIsMadeFor) {
  EXPECT_EQ(PortOfSlot({8, 16}), 100e3);   // 126 Gbit/s
  EXPECT_EQ(PortOfSlot({16, 16}), 200e3);  // 252
  EXPECT_EQ(PortOfSlot({32, 16}), 400e3);  // 504
  EXPECT_EQ(PortOfSlot({64, 16}), 800e3);  // 968
  EXPECT_EQ(PortOfSlot({8, 4}), 25e3);     // 31.5
  EXPECT_EQ(PortOfSlot({2.5, 1}), 10e3);   // 2; no port is slower
}

// ---- Mistakes and malice --------------------------------------------------------------------------

TEST(ImportNcclErrorTest, WhatIsNoTopologyIsSaid) {
  EXPECT_THAT(ErrorOf(""), HasSubstr("box.xml: the file is empty"));
  EXPECT_THAT(ErrorOf(" \n "), HasSubstr("the file is empty"));
  EXPECT_THAT(ErrorOf("{\"a\": 1}"), StartsWith("box.xml:1: there is no XML element"));
  EXPECT_THAT(ErrorOf("<!-- nothing -->"), HasSubstr("there is no XML element"));
  EXPECT_THAT(ErrorOf("\n<html/>"), StartsWith("box.xml:2: found <html>, expected <system>"));
  EXPECT_THAT(ErrorOf("<graphs version=\"1\"/>"), HasSubstr("NCCL_GRAPH_DUMP_FILE"));
  EXPECT_THAT(ErrorOf("<system version=\"1\"/><system version=\"1\"/>"),
              HasSubstr("second element"));
  EXPECT_THAT(ErrorOf("<system/>"), HasSubstr("no version"));
  EXPECT_THAT(ErrorOf("<system version=\"3\"/>"), HasSubstr("version of <system> is \"3\""));
  EXPECT_THAT(ErrorOf("<system version=\"1\"/>"), HasSubstr("there is no GPU"));
  EXPECT_THAT(ErrorOf(System("")), HasSubstr("there is no GPU"));
}

TEST(ImportNcclErrorTest, BinaryAndHugeFilesAreRefused) {
  EXPECT_THAT(ErrorOf(std::string("<system\n\0", 9)), StartsWith("box.xml:2: found the byte 0x00"));
  EXPECT_THAT(ErrorOf("\x7f"
                      "ELF\x02\x01"),
              HasSubstr("this is no text"));
  EXPECT_THAT(ErrorOf(std::string((size_t{64} << 20) + 1, 'x')), HasSubstr("at most 64 MiB"));
  std::string many = "<system version=\"1\">";
  for (int i = 0; i < 1'000'001; ++i) many += "<a/>";
  EXPECT_THAT(ErrorOf(many), HasSubstr("more than 1000000 elements"));
}

TEST(ImportNcclErrorTest, ACutFileIsRefusedWhereverItIsCut) {
  const std::string whole = SmallMachine();
  const size_t end = whole.find("</system>") + 9;
  for (size_t length = 1; length < end; length += 7) {
    const std::string error = ErrorOf(whole.substr(0, length));
    EXPECT_THAT(error, StartsWith("box.xml:")) << length;
  }
  EXPECT_THAT(ErrorOf(whole.substr(0, whole.find("</system>"))),
              StartsWith("box.xml:20: the file ends in the middle of an element"));
}

TEST(ImportNcclErrorTest, WhatIsNotWellFormedHasItsLine) {
  EXPECT_THAT(ErrorOf("<system version=\"1\">\n<cpu></pci>\n</system>\n"),
              StartsWith("box.xml:2: this is not well-formed XML"));
  EXPECT_THAT(ErrorOf(System("\n<pci busid=\"0000:01:00.0\" busid=\"0000:02:00.0\"/>")),
              StartsWith("box.xml:4: <pci> has the attribute \"busid\" twice"));
  EXPECT_THAT(ErrorOf(System("some text")), HasSubstr("found the text \"\\nsome text"));
}

TEST(ImportNcclErrorTest, EntitiesAreRefused) {
  EXPECT_THAT(ErrorOf(R"(<?xml version="1.0"?>
<!DOCTYPE lolz [ <!ENTITY lol "lol"> <!ENTITY lol2 "&lol;&lol;&lol;&lol;"> ]>
<system version="1">&lol2;</system>)"),
              StartsWith("box.xml:2: the file has a DOCTYPE"));
  EXPECT_THAT(ErrorOf("<!DOCTYPE system SYSTEM \"file:///etc/passwd\"><system version=\"1\"/>"),
              HasSubstr("DOCTYPE"));
  // Without a DOCTYPE an entity is only a strange text.
  EXPECT_THAT(ErrorOf(System("<pci busid=\"&xxe;\"/>")), HasSubstr("expected a PCI bus id"));
}

TEST(ImportNcclErrorTest, DeepNestingIsRefused) {
  std::string deep;
  for (int i = 0; i < 40; ++i)
    deep += fmt::format("<pci busid=\"0000:{:02x}:00.0\" class=\"0x060400\">\n", i);
  for (int i = 0; i < 40; ++i) deep += "</pci>";
  EXPECT_THAT(ErrorOf(System(deep)), StartsWith("box.xml:35: <pci> is nested more than 32 deep"));
  std::string deeper = "<system version=\"1\">";
  for (int i = 0; i < 200'000; ++i) deeper += "<a>";
  for (int i = 0; i < 200'000; ++i) deeper += "</a>";
  EXPECT_THAT(ErrorOf(deeper + "</system>"), HasSubstr("there is no GPU"));
}

TEST(ImportNcclErrorTest, DuplicatesAreRefusedWithBothLines) {
  const std::string bus = "<pci busid=\"0000:01:00.0\" class=\"0x060400\">";
  EXPECT_THAT(ErrorOf(System(bus + "</pci>\n" + bus + "</pci>")),
              StartsWith("box.xml:4: bus id 0000:01:00.0 is there already, in line 3"));
  // A cycle can only be written as a device inside itself.
  EXPECT_THAT(ErrorOf(System(bus + "\n" + bus + "</pci></pci>")), HasSubstr("is there already"));
  // The same with NVML's longer domain and in capitals.
  EXPECT_THAT(ErrorOf(System("<pci busid=\"0000:1b:00.0\"/><pci busid=\"00000000:1B:00.0\"/>")),
              HasSubstr("is there already"));
  EXPECT_THAT(ErrorOf("<system version=\"1\"><cpu numaid=\"0\"/>\n<cpu numaid=\"0\"/></system>"),
              StartsWith("box.xml:2: NUMA node 0 is there already, in line 1"));
  std::string other = Gpu(1);
  other.replace(other.find("rank=\"1\""), 8, "rank=\"0\"");
  EXPECT_THAT(ErrorOf(System(Gpu(0) + "\n" + other)),
              StartsWith("box.xml:4: there is another GPU with rank 0, in line 3"));
  other = Gpu(1);
  other.replace(other.find("dev=\"1\""), 7, "dev=\"0\"");
  EXPECT_THAT(ErrorOf(System(Gpu(0) + "\n" + other)), HasSubstr("another GPU with dev 0"));
  EXPECT_THAT(
      ErrorOf(System("<pci busid=\"0000:01:00.0\"><gpu rank=\"0\"/><gpu rank=\"1\"/></pci>")),
      HasSubstr("a second <gpu>"));
  EXPECT_THAT(ErrorOf(System(Gpu(0) + Nic("0000:20:00.0",
                                          "<net name=\"a\" dev=\"0\"/>\n"
                                          "<net name=\"b\" dev=\"0\"/>"))),
              HasSubstr("another net with dev 0, in line 3"));
}

TEST(ImportNcclErrorTest, LinksThatCannotBeAreRefused) {
  EXPECT_THAT(ErrorOf(System(Gpu(0, "\n" + NvLink("0000:77:00.0", "4")))),
              StartsWith("box.xml:4: a link leads to \"0000:77:00.0\", but no GPU of this file"));
  EXPECT_THAT(ErrorOf(System(Gpu(0, NvLink("0000:11:00.0", "4")) + Gpu(1))),
              HasSubstr("0000:10:00.0 has 4 links to 0000:11:00.0, but that has 0 back"));
  EXPECT_THAT(
      ErrorOf(System(Gpu(0, NvLink("0000:11:00.0", "4")) + Gpu(1, NvLink("0000:10:00.0", "2")))),
      HasSubstr("but that has 2 back"));
  EXPECT_THAT(ErrorOf(System(Gpu(0, NvLink("0000:11:00.0", "4", "0x010802")))),
              HasSubstr("class \"0x010802\", expected a GPU, an NVSwitch or a processor"));
  EXPECT_THAT(ErrorOf(System(Gpu(0, NvLink("here", "4")))), HasSubstr("expected a PCI bus id"));
  EXPECT_THAT(ErrorOf(System(Gpu(0, "<nvlink target=\"0000:11:00.0\"/>"))), HasSubstr("no count"));
}

TEST(ImportNcclErrorTest, NumbersOutOfRangeAreRefused) {
  for (const char* count :
       {"4000000000", "99999999999999999999999", "0", "-1", "4.5", "four", "0x"})
    EXPECT_THAT(ErrorOf(System(Gpu(0, NvLink("0000:11:00.0", count, "0x068000")))),
                HasSubstr("count of <nvlink> is "))
        << count;
  // Many entries that are each allowed.
  std::string links;
  for (int i = 0; i < 2; ++i) links += NvLink("0000:11:00.0", "1000", "0x068000");
  EXPECT_THAT(ErrorOf(System(Gpu(0, links))), HasSubstr("more than 1024 links"));
  for (const char* speed : {"1e300", "-5", "4000000000", "inf", "nan", "fast"})
    EXPECT_THAT(ErrorOf(System(Gpu(0) + Nic("0000:20:00.0",
                                            fmt::format("<net name=\"a\" speed=\"{}\"/>", speed)))),
                HasSubstr("speed of <net> is "))
        << speed;
  EXPECT_THAT(ErrorOf(System(Gpu(0) + Nic("0000:20:00.0", "<net latency=\"1e9\"/>"))),
              HasSubstr("latency of <net> is "));
  EXPECT_THAT(ErrorOf(System("<pci busid=\"0000:01:00.0\" link_width=\"33\"/>")),
              HasSubstr("link_width of <pci> is \"33\", expected 0 to 32"));
  EXPECT_THAT(ErrorOf(System("<pci busid=\"0000:01:00.0\"><gpu rank=\"-1\"/></pci>")),
              HasSubstr("rank of <gpu> is \"-1\""));
  EXPECT_THAT(ErrorOf("<system version=\"1\"><cpu numaid=\"x\"/></system>"),
              HasSubstr("numaid of <cpu> is \"x\", expected a whole number"));
  EXPECT_THAT(ErrorOf("<system version=\"1\"><cpu/></system>"), HasSubstr("<cpu> has no numaid"));
  EXPECT_THAT(ErrorOf(System("<pci/>")), HasSubstr("busid of <pci> is \"\""));
  EXPECT_THAT(ErrorOf(System("<pci busid=\"12345678901234567\"/>")),
              HasSubstr("expected a PCI bus"));
}

TEST(ImportNcclErrorTest, TooManyOfAnythingAreRefused) {
  std::string cpus = "<system version=\"1\">";
  for (int i = 0; i < 257; ++i) cpus += fmt::format("<cpu numaid=\"{}\"/>", i);
  EXPECT_THAT(ErrorOf(cpus + "</system>"), HasSubstr("more than 256 <cpu>"));
  std::string pcis;
  for (int i = 0; i < 10'001; ++i) pcis += fmt::format("<pci busid=\"{:x}\"/>", i);
  EXPECT_THAT(ErrorOf(System(pcis)), HasSubstr("more than 10000 <pci>"));
  std::string gpus;
  for (int i = 0; i < 1025; ++i) gpus += fmt::format("<pci busid=\"{:x}\" class=\"0x0302\"/>", i);
  EXPECT_THAT(ErrorOf(System(gpus)), HasSubstr("1025 GPUs"));
  std::string nets;
  for (int i = 0; i < 10'001; ++i) nets += fmt::format("<net dev=\"{}\"/>", i);
  EXPECT_THAT(ErrorOf(System("<nic>" + nets + "</nic>")), HasSubstr("more than 10000 <net>"));
}

TEST(ImportNcclErrorTest, ADeviceIsOnlyOneThing) {
  EXPECT_THAT(ErrorOf(System("<pci busid=\"0000:01:00.0\"><gpu rank=\"0\"/><nic/></pci>")),
              HasSubstr("more than one of a GPU, a NIC and a switch"));
  EXPECT_THAT(
      ErrorOf(System(
          "<pci busid=\"0000:01:00.0\"><gpu rank=\"0\"/><pci busid=\"0000:02:00.0\"/></pci>")),
      HasSubstr("more than one of a GPU, a NIC and a switch"));
}

TEST(ImportNcclTest, UnknownElementsAreLeftOutAndSaid) {
  const ImportedCluster imported = Import(System(Gpu(0) + "\n<memory size=\"1\"/>"));
  EXPECT_THAT(imported.remarks, Contains("line 4: <memory> in <cpu> is left out"));
}

TEST(ImportNcclTest, ForeignNamesCannotSpoilTheExport) {
  const ImportedCluster imported =
      Import(System(Gpu(0) + Nic("0000:20:00.0",
                                 "<net name=\"\xff\xfe&quot;&#10;\" dev=\"0\" "
                                 "speed=\"1000\"/>")));
  EXPECT_THAT(imported.cluster->notes(), Contains(HasSubstr("nic0 ??\"?")));
  ExpectComesBack(*imported.cluster);
}

// ---- The files of others --------------------------------------------------------------------------

struct Expected {
  size_t gpus;
  size_t nics;
  size_t switches;  // PCIe
  size_t sockets;
  size_t links;  // NVLink and xGMI, both ways
  const char* device;
};

// Counted in the files by hand (grep -c).
const std::map<std::string, Expected>& Files() {
  static const std::map<std::string, Expected> files = {
      {"aws_g5.48xl-topo.xml",
       {8, 1, 0, 2, 0, "a100-40g"}},  // A10G and EFA; the file has bus ids only
      {"aws_p4d-24xl-topo.xml", {8, 4, 4, 2, 0, "a100-40g"}},
      {"aws_p4de-24xl-topo.xml", {8, 4, 4, 2, 0, "a100-80g"}},
      {"azure_ncv4-topo.xml", {4, 1, 0, 4, 0, "a100-80g"}},  // NVLinks only to themselves
      {"azure_ndv2-topo.xml", {8, 1, 0, 2, 0, "a100-40g"}},  // nothing says V100
      {"azure_ndv4-topo.xml", {8, 8, 4, 4, 0, "a100-40g"}},
      {"azure_ndv5-topo.xml", {8, 8, 8, 2, 0, "a100-40g"}},  // nothing says H100
      {"dump_4x_rtx4090_epyc_sugarlxn.xml",
       {4, 16, 0, 4, 0, "rtx4090"}},                         // 15 of the nets on no bus
      {"rccl_topo_4p_940.xml", {4, 4, 0, 4, 12, "mi300a"}},  // all 6 pairs
      {"rccl_topo_8p_pcie.xml", {8, 1, 10, 1, 0, "mi50"}},   // 2 switches with 4 each behind them
  };
  return files;
}

std::string TruthFile(const std::string& name) {
  return std::string(REHEARSE_SOURCE_DIR) + "/../shared/truth/nccl_topo_xml/" + name;
}

std::string TextOf(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(ImportNcclFilesTest, AllImportWithTheirParts) {
  if (!std::filesystem::exists(TruthFile("")))
    GTEST_SKIP() << "the collected files are not here: " << TruthFile("");
  for (const auto& [name, expected] : Files()) {
    SCOPED_TRACE(name);
    const ImportedCluster imported = ImportNcclTopology(TextOf(TruthFile(name)), name);
    const Cluster& cluster = *imported.cluster;
    EXPECT_EQ(cluster.device_count(), expected.gpus);
    EXPECT_EQ(CountOf(cluster, VertexKind::kNic), expected.nics);
    EXPECT_EQ(CountOf(cluster, VertexKind::kPcieSwitch), expected.switches);
    EXPECT_EQ(CountOf(cluster, VertexKind::kSocket), expected.sockets);
    EXPECT_EQ(CountOf(cluster, LinkKind::kNvLink) + CountOf(cluster, LinkKind::kXgmi),
              expected.links);
    EXPECT_EQ(cluster.DeviceOf(0).name, expected.device);
    ExpectComesBack(cluster);
    Router router(cluster);
    for (uint32_t other = 1; other < cluster.device_count(); ++other)
      EXPECT_GT(router.Between(0, other).bandwidth, BytesPerSecond(5e9));
  }
}

TEST(ImportNcclFilesTest, NoFileIsForgotten) {
  if (!std::filesystem::exists(TruthFile("")))
    GTEST_SKIP() << "the collected files are not here: " << TruthFile("");
  for (const auto& entry : std::filesystem::directory_iterator(TruthFile(""))) {
    const std::string name = entry.path().filename();
    if (entry.path().extension() != ".xml" || Files().count(name) > 0) continue;
    // The only other one is no topology.
    EXPECT_EQ(name, "azure_ncv4-graph.xml");
    EXPECT_THAT(ErrorOf(TextOf(entry.path())), HasSubstr("rings and trees that NCCL found"));
  }
}

TEST(ImportNcclFilesTest, GpusOfTheAmdBoxTalkOverXgmi) {
  const std::string name = "rccl_topo_4p_940.xml";
  if (!std::filesystem::exists(TruthFile(name)))
    GTEST_SKIP() << "the collected files are not here: " << TruthFile("");
  const ImportedCluster imported = ImportNcclTopology(TextOf(TruthFile(name)), name);
  Router router(*imported.cluster);
  for (uint32_t other = 1; other < 4; ++other) EXPECT_EQ(router.Between(0, other).links.size(), 1u);
  EXPECT_THAT(imported.remarks, Contains(HasSubstr("speed 200000000 Mbit/s cannot be true")));
}

}  // namespace
}  // namespace rehearse
