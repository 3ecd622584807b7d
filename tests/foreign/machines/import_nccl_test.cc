#include "tools/foreign/machines/nccl/import_nccl.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/foreign/machines/nccl_xml.h"
#include "tools/foreign/machines/import_devices.h"
#include "tools/foreign/machines/import_rates.h"

namespace rehearse {
namespace import_nccl_test {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

std::vector<std::string> Names(const Cluster& cluster, const Route& route) {
  std::vector<std::string> names;
  for (const uint32_t link : route.links) names.push_back(cluster.LinkName(link));
  return names;
}

ClusterLink LinkNamed(const Cluster& cluster, const std::string& name) {
  for (uint32_t i = 0; i < cluster.link_count(); ++i)
    if (cluster.LinkName(i) == name) return cluster.Link(i);
  throw Error("there is no link " + name);
}

// ---- A whole small machine ----------------------------------------------------------------------

TEST(ImportNcclTest, AMachineIsReadWholly) {
  const ImportedCluster imported = ImportXml(SmallMachine());
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
  const ImportedCluster imported = ImportXml(SmallMachine());
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
  const ImportedCluster imported = ImportXml(text);
  Router router(*imported.cluster);
  EXPECT_THAT(Names(*imported.cluster, router.Between(0, 1)),
              ElementsAre("node0/gpu0->node0/pcie0", "node0/pcie0->node0/gpu1"));
  EXPECT_DOUBLE_EQ(router.Between(0, 1).latency.value(), kPcieHop.value());
}

// ---- NVLink, xGMI, C2C --------------------------------------------------------------------------

TEST(ImportNcclTest, AllNvSwitchesAreOneVertex) {
  // A100: six switches, two links to each.
  std::string links;
  for (int i = 0; i < 6; ++i) links += NvLink(fmt::format("0000:c{}:00.0", i), "2", "0x068000");
  const ImportedCluster imported = ImportXml(System(Gpu(0, links) + Gpu(1, links)));
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
  EXPECT_EQ(CountOf(*ImportXml(System(Gpu(0, link) + Gpu(1, link))).cluster, VertexKind::kNvSwitch),
            1u);
}

TEST(ImportNcclTest, AMissingTargetClassIsFilledInAndSaid) {
  const std::string to_switch = "<nvlink target=\"fffffff:ffff:ff\" count=\"12\"/>";
  const ImportedCluster by_switch = ImportXml(System(Gpu(0, to_switch) + Gpu(1, to_switch)));
  EXPECT_EQ(CountOf(*by_switch.cluster, VertexKind::kNvSwitch), 1u);
  EXPECT_THAT(by_switch.remarks, Contains(HasSubstr("taken for an NVSwitch")));
  const ImportedCluster direct =
      ImportXml(System(Gpu(0, "<nvlink target=\"0000:11:00.0\" count=\"4\"/>") +
                       Gpu(1, "<nvlink target=\"0000:10:00.0\" count=\"4\"/>")));
  EXPECT_EQ(LinkNamed(*direct.cluster, "node0/gpu0->node0/gpu1").bandwidth, BytesPerSecond(100e9));
  EXPECT_THAT(direct.remarks, Contains(HasSubstr("taken for the GPU with that bus id")));
}

// Hybrid cube mesh: 0-3, 0-4, 1-2, 1-5, 2-3, 4-7, 5-6, 6-7 are double, 0-1, 0-2, 1-3, 2-6, 3-7,
// 4-5, 4-6, 5-7 single (`nvidia-smi topo -m` of a DGX-1 with V100).
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
  const ImportedCluster imported = ImportXml(System(gpus), "a100-40g");
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
  const ImportedCluster imported = ImportXml(text);
  const ClusterLink& link = LinkNamed(*imported.cluster, "node0/gpu1->node0/gpu2");
  EXPECT_EQ(link.kind, LinkKind::kXgmi);
  EXPECT_EQ(link.bandwidth, BytesPerSecond(64e9));
  EXPECT_DOUBLE_EQ(link.Capacity().value(), 48e9);
  EXPECT_EQ(imported.cluster->DeviceOf(0).name, "mi300x");
  ExpectComesBack(*imported.cluster);
}

TEST(ImportNcclTest, NvLinkToTheProcessorIsALinkToTheSocket) {
  // Ten links of 45,000 MB/s: 450 GB/s, the figure of Grace Hopper.
  const ImportedCluster c2c = ImportXml(System(Gpu(0, "<c2c bw=\"45000\" count=\"10\"/>", "90")));
  bool found = false;
  for (uint32_t i = 0; i < c2c.cluster->link_count(); ++i) {
    const ClusterLink& link = c2c.cluster->Link(i);
    if (link.kind != LinkKind::kNvLink) continue;
    found = true;
    EXPECT_EQ(link.bandwidth, BytesPerSecond(450e9));
  }
  EXPECT_TRUE(found);
  const ImportedCluster power = ImportXml(System(Gpu(0, NvLink("0004:04:00.0", "3", "0x068001"))));
  EXPECT_EQ(CountOf(*power.cluster, LinkKind::kNvLink), 2u);
}

TEST(ImportNcclTest, ALinkBackToTheGpuItselfIsLeftOutAndSaid) {
  const ImportedCluster imported = ImportXml(System(Gpu(0, NvLink("0000:10:00.0", "12")) + Gpu(1)));
  EXPECT_EQ(CountOf(*imported.cluster, LinkKind::kNvLink), 0u);
  EXPECT_THAT(imported.remarks, Contains(HasSubstr("leads back to its own GPU")));
  EXPECT_THAT(imported.remarks, Contains(HasSubstr("the file has no NVLinks")));
}

// ---- Filling in ---------------------------------------------------------------------------------

TEST(ImportNcclTest, MissingLinkSpeedAndWidthAreNcclsAndSaid) {
  const ImportedCluster imported =
      ImportXml(System("<pci busid=\"0000:10:00.0\" class=\"0x030200\" link_speed=\"\" "
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
  const ImportedCluster imported = ImportXml(R"(<system version="1">
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
  // PCIe 4.0 x16 carries 252 Gbit/s, so the port has 200.
  EXPECT_EQ(LinkNamed(cluster, "node0/nic0->fabric").bandwidth, BytesPerSecond(25e9));
  EXPECT_THAT(imported.remarks, Contains(HasSubstr("taken as 200 Gbit/s")));
  EXPECT_THAT(imported.remarks, Contains(HasSubstr("says which GPU this is")));
  EXPECT_THAT(imported.remarks, Contains(HasSubstr("ranked by bus id")));
  EXPECT_THAT(imported.remarks, Contains(HasSubstr("10 GB/s to other NUMA nodes")));
  EXPECT_THAT(imported.remarks,
              Contains(HasSubstr("0102:00:00.0: a PCI device that is not a GPU")));
}

// As Azure's and Oracle's files are: NVLinks are left to NCCL.
TEST(ImportNcclTest, OnABoardOfEightThatIsNamedThereIsAnNvSwitch) {
  std::string pcis;
  for (int i = 0; i < 8; ++i) {
    pcis += fmt::format(
        R"(<pci busid="000{}:00:00.0" class="0x030200" link_speed="16 GT/s" link_width="16"/>)", i);
  }
  const std::string text =
      "<system version=\"1\"><cpu numaid=\"0\" arch=\"x86_64\">" + pcis + "</cpu></system>";
  const auto imported = [&](const char* device) {
    return ImportNcclTopology(text, "cloud.xml", device);
  };
  const ImportedCluster board = imported("a100-80g");
  EXPECT_EQ(CountOf(*board.cluster, VertexKind::kNvSwitch), 1u);
  // Twelve links of 25 GB/s.
  EXPECT_EQ(LinkNamed(*board.cluster, "node0/gpu0->node0/nvswitch").bandwidth,
            BytesPerSecond(300e9));
  EXPECT_THAT(board.remarks, Contains(HasSubstr("taken as 12 of each a100-80g to an NVSwitch")));
  for (const char* other : {"", "h100-pcie", "v100-16g"})
    EXPECT_EQ(CountOf(*imported(other).cluster, VertexKind::kNvSwitch), 0u) << other;
}

// As Amazon's file of p5.48xlarge is: 32 NICs without a class, and no GPUs.
TEST(ImportNcclTest, MoreDevicesWithoutAClassThanAMachineHasGpusAreRefused) {
  std::string pcis;
  for (int i = 10; i < 42; ++i) pcis += fmt::format(R"(<pci busid="0000:{}:00.0"/>)", i);
  const std::string error = ErrorThrownBy(
      [&] { ImportXml("<system version=\"1\"><cpu numaid=\"0\">" + pcis + "</cpu></system>"); });
  EXPECT_THAT(error, HasSubstr("32 PCI devices have no class"));
}

TEST(ImportNcclTest, WithoutClassesTheOddOneIsTakenForTheNic) {
  const ImportedCluster imported = ImportXml(R"(<system version="1">
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
  const ImportedCluster imported = ImportXml(text, "a100-80g");
  EXPECT_EQ(imported.cluster->DeviceOf(0).name, "a100-80g");
  EXPECT_THAT(imported.remarks, Not(Contains(HasSubstr("says which GPU"))));
  EXPECT_THROW(ImportXml(text, "a100-8g"), Error);
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

// ---- Ranks --------------------------------------------------------------------------------------

TEST(ImportNcclTest, DevicesAreRankedByRankAndNamedByDev) {
  const auto gpu = [](const char* bus, const char* dev, const char* rank) {
    return fmt::format(
        "<pci busid=\"{}\" class=\"0x030200\" link_speed=\"16 GT/s\" link_width=\"16\">"
        "<gpu dev=\"{}\" sm=\"80\" {}/></pci>",
        bus, dev, rank);
  };
  const ImportedCluster imported =
      ImportXml(System(gpu("0000:01:00.0", "5", "rank=\"1\"") +
                       gpu("0000:02:00.0", "3", "rank=\"0\"") + gpu("0000:03:00.0", "4", "")));
  const Cluster& cluster = *imported.cluster;
  ASSERT_EQ(cluster.device_count(), 2u);
  EXPECT_EQ(cluster.DeviceName(0), "node0/gpu3");
  EXPECT_EQ(cluster.DeviceName(1), "node0/gpu5");
  EXPECT_THAT(imported.remarks, Contains(StartsWith("0000:03:00.0: no rank")));
}

// ---- NICs ---------------------------------------------------------------------------------------

TEST(ImportNcclTest, ThePortsOfOneCardShareItsSlot) {
  const ImportedCluster imported =
      ImportXml(System(Gpu(0) + Nic("0000:20:00.0",
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
      ImportXml(System(Gpu(0) + Nic("0000:20:00.0", "<net name=\"a\" dev=\"0\" speed=\"-1\"/>") +
                       Nic("0000:21:00.0", "<net name=\"b\" dev=\"1\"/>")));
  // 10 Gbit/s.
  EXPECT_EQ(LinkNamed(*imported.cluster, "node0/nic0->fabric").bandwidth, BytesPerSecond(1.25e9));
  EXPECT_THAT(imported.remarks, Contains("a and b: no speed; taken as 10 Gbit/s, as by NCCL"));
}

TEST(ImportNcclTest, ANicOnNoBusHangsOnItsFirstNumaNode) {
  const std::string nic = "<nic><net name=\"eth0\" dev=\"0\" speed=\"10000\" gdr=\"0\"/></nic>";
  const std::string text = "<system version=\"1\"><cpu numaid=\"0\">" + Gpu(0) + nic +
                           "</cpu><cpu numaid=\"1\">" + Gpu(1) + nic + "</cpu></system>";
  const ImportedCluster imported = ImportXml(text);
  EXPECT_EQ(CountOf(*imported.cluster, VertexKind::kNic), 1u);
  EXPECT_EQ(LinkNamed(*imported.cluster, "node0/nic0->node0/numa0").bandwidth,
            BytesPerSecond(5000e9));
  EXPECT_THAT(imported.remarks, Contains(StartsWith("eth0: under more than one NUMA node")));
  EXPECT_THAT(imported.remarks, Contains(StartsWith("eth0: on no PCI bus")));
  EXPECT_THAT(imported.remarks, Contains(StartsWith("nic0: no GPUDirect")));
}

// ---- Several machines ---------------------------------------------------------------------------

TEST(ImportNcclTest, AnotherHostHashIsAnotherMachine) {
  const auto host = [](const char* hash, uint32_t first) {
    const std::string link = NvLink("fffffff:ffff:ff", "18", "0x068000");
    std::string gpu = Gpu(first, link, "90");
    gpu.replace(gpu.find("0000:1"), 7, "0000:aa");  // the same bus id in both
    return fmt::format("<cpu host_hash=\"{}\" numaid=\"0\" arch=\"arm64\">{}</cpu>", hash, gpu);
  };
  const ImportedCluster imported =
      ImportXml("<system version=\"1\">" + host("0x1", 0) + host("0x2", 1) + "</system>");
  EXPECT_EQ(imported.cluster->node_count(), 2u);
  Router router(*imported.cluster);
  EXPECT_THAT(Names(*imported.cluster, router.Between(0, 1)),
              ElementsAre("node0/gpu0->nvswitch", "nvswitch->node1/gpu1"));
}

TEST(ImportNcclTest, MachinesThatNothingConnectsAreRefused) {
  const std::string text = "<system version=\"1\"><cpu host_hash=\"1\" numaid=\"0\">" + Gpu(0) +
                           "</cpu><cpu host_hash=\"2\" numaid=\"0\">" + Gpu(1) + "</cpu></system>";
  EXPECT_THAT(XmlErrorOf(text), HasSubstr("box.xml: device \"node0/gpu0\" has no path"));
}

TEST(ImportNcclTest, UnknownElementsAreLeftOutAndSaid) {
  const ImportedCluster imported = ImportXml(System(Gpu(0) + "\n<memory size=\"1\"/>"));
  EXPECT_THAT(imported.remarks, Contains("line 4: <memory> in <cpu> is left out"));
}

TEST(ImportNcclTest, ForeignNamesCannotSpoilTheExport) {
  const ImportedCluster imported =
      ImportXml(System(Gpu(0) + Nic("0000:20:00.0",
                                    "<net name=\"\xff\xfe&quot;&#10;\" dev=\"0\" "
                                    "speed=\"1000\"/>")));
  EXPECT_THAT(imported.cluster->notes(), Contains(HasSubstr("nic0 ??\"?")));
  ExpectComesBack(*imported.cluster);
}

}  // namespace import_nccl_test
}  // namespace rehearse
