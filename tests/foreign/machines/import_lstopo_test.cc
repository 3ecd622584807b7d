// Machines from hwloc's XML.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/foreign/machines/hwloc_xml.h"
#include "tools/foreign/machines/import_rates.h"
#include "tools/foreign/machines/nccl/import_nccl.h"

namespace rehearse {
namespace import_lstopo_test {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string NvmlGpu(uint32_t number, const std::string& type = "0302 [10de:20b0] [10de:134f] a1") {
  return PciDevice(fmt::format("0000:{:02x}:00.0", 0x10 + number), type, kPcie4x16,
                   OsDevice(fmt::format("nvml{}", number), 1, "", 100 + number));
}
std::string RsmiGpu(uint32_t number) {
  return PciDevice(fmt::format("0000:{:02x}:00.0", 0x10 + number),
                   "0380 [1002:74a1] [1002:0000] 00", "63.015385",
                   OsDevice(fmt::format("rsmi{}", number), 5, "", 100 + number));
}

TEST(ImportLstopoTest, ADgxIsTheMachineThatNcclSees) {
  const ImportedCluster imported = ImportHwlocXml(DgxBox::Hwloc());
  const ImportedCluster expected = ImportNcclTopology(DgxBox::Nccl(), "box.xml");
  const Cluster& cluster = *imported.cluster;
  const Cluster& other = *expected.cluster;
  ASSERT_EQ(cluster.vertex_count(), other.vertex_count());
  for (VertexId id = 0; id < cluster.vertex_count(); ++id)
    EXPECT_EQ(cluster.VertexAt(id).name, other.VertexAt(id).name);
  ASSERT_EQ(cluster.link_count(), other.link_count());
  for (uint32_t i = 0; i < cluster.link_count(); ++i) {
    EXPECT_EQ(cluster.LinkName(i), other.LinkName(i));
    EXPECT_EQ(cluster.Link(i).bandwidth, other.Link(i).bandwidth) << cluster.LinkName(i);
    EXPECT_EQ(cluster.Link(i).efficiency, other.Link(i).efficiency) << cluster.LinkName(i);
    EXPECT_EQ(cluster.Link(i).latency, other.Link(i).latency) << cluster.LinkName(i);
  }
  Router router(cluster);
  Router other_router(other);
  for (uint32_t from = 0; from < 8; ++from) {
    EXPECT_EQ(cluster.DeviceOf(from).name, "a100-40g");
    for (uint32_t to = 0; to < 8; ++to) {
      if (from == to) continue;
      EXPECT_EQ(router.Between(from, to).links, other_router.Between(from, to).links);
      // Twelve links of 25 GB/s to the NVSwitches, of which NCCL counts on 20 each.
      EXPECT_DOUBLE_EQ(router.Between(from, to).bandwidth.value(), 240e9);
    }
  }
  EXPECT_EQ(CountOf(cluster, VertexKind::kNic), 8u);
  EXPECT_EQ(CountOf(cluster, VertexKind::kPcieSwitch), 4u);
  EXPECT_THAT(imported.remarks,
              Contains(AllOf(HasSubstr("mlx5_0"), HasSubstr("taken as 200 Gbit/s"))));
  EXPECT_THAT(imported.remarks, Contains(AllOf(StartsWith("0000:e3:00.0"), HasSubstr("Ethernet"))));
  EXPECT_THAT(imported.remarks, Contains(HasSubstr("0000:e1:00.0 and 0000:e2:00.0: a PCI device")));
  ExpectComesBack(cluster);
}

TEST(ImportLstopoTest, WithoutAMatrixTheRemarksSayThatNvLinksMayBeMissing) {
  const ImportedCluster imported =
      ImportHwlocXml(Topology(Package(0, HostBridge(NvmlGpu(0) + NvmlGpu(1)))));
  EXPECT_EQ(CountOf(*imported.cluster, LinkKind::kNvLink), 0u);
  EXPECT_THAT(imported.remarks, Contains(HasSubstr("the file has no NVLinks")));
  // This file has no root ports; a slot of PCIe 4 x16, as NCCL plans with it.
  EXPECT_DOUBLE_EQ(BandwidthBetween(*imported.cluster, 0, 1), 24e9);
}

TEST(ImportLstopoTest, VersionOneHasSocketsInNumaNodesAndNoIndexes) {
  std::string nodes;
  for (uint32_t node = 0; node < 2; ++node)
    nodes += Object(
        fmt::format("type=\"NUMANode\" os_index=\"{}\" cpuset=\"0xff\" local_memory=\"1\"", node),
        Object(fmt::format("type=\"Socket\" os_index=\"{}\"", node),
               Info("CPUVendor", "GenuineIntel") + Info("CPUFamilyNumber", "6") +
                   Info("CPUModelNumber", "85")) +
            Object("type=\"Bridge\" os_index=\"0\" bridge_type=\"0-1\" depth=\"0\"",
                   PciDevice(fmt::format("0000:{}6:00.0", node), "0302 [10de:1db5] [10de:1249] a1",
                             "15.753846", OsDevice(fmt::format("cuda{}", node), 5))));
  const ImportedCluster imported = ImportHwlocXml(
      "<?xml version=\"1.0\"?>\n<!DOCTYPE topology SYSTEM \"hwloc.dtd\">\n<topology>\n" +
      Object("type=\"Machine\" os_index=\"0\" cpuset=\"0xffff\"",
             Info("Architecture", "x86_64") + nodes) +
      "</topology>\n");
  const Cluster& cluster = *imported.cluster;
  EXPECT_EQ(cluster.DeviceOf(0).name, "v100-32g");
  EXPECT_EQ(CountOf(cluster, VertexKind::kSocket), 2u);
  EXPECT_DOUBLE_EQ(BandwidthBetween(cluster, 0, 1), 10e9);  // between Skylakes, to NCCL
}

TEST(ImportLstopoTest, ALinkIsAsFastAsItsFasterEndSays) {
  // hwloc asks NVML for the GPU's end, and takes any PCIe from 3 on for 3.
  const auto with = [](const std::string& port, const std::string& device) {
    const ImportedCluster imported = ImportHwlocXml(Topology(Package(
        0,
        HostBridge(Port("0000:00:01.0", port,
                        PciDevice("0000:10:00.0", "0302 [10de:20b0] [10de:134f] a1", device))))));
    for (uint32_t i = 0; i < imported.cluster->link_count(); ++i)
      if (imported.cluster->LinkName(i) == "node0/gpu0->node0/numa0")
        return imported.cluster->Link(i).bandwidth.value();
    return 0.0;
  };
  EXPECT_DOUBLE_EQ(with("31.507692", "15.753846"), 31.5e9);
  EXPECT_DOUBLE_EQ(with("0.000000", "15.753846"), 15.75e9);
  EXPECT_DOUBLE_EQ(with("0.000000", "7.876923"), 7.875e9);  // without a width: the bandwidth stays
  EXPECT_DOUBLE_EQ(with("0", "0"), 15.75e9);                // nothing said: NCCL's assumption
}

TEST(ImportLstopoTest, EverySlotIsFoundByWhatItCarries) {
  for (const auto& [gigabytes, wire] :
       std::initializer_list<std::pair<double, double>>{{0.25, 0.25e9},
                                                        {4, 4e9},
                                                        {8, 8e9},
                                                        {3.938462, 3.9375e9},
                                                        {63.015385, 63e9},
                                                        {121, 121e9},
                                                        {30.8, 31.5e9}}) {
    ClusterLink link = PcieLinkOf(SlotThatCarries(gigabytes), Seconds(0));
    EXPECT_DOUBLE_EQ(link.bandwidth.value(), wire) << gigabytes;
  }
}

TEST(ImportLstopoTest, AGpuThatIdlesIsSaid) {
  const ImportedCluster imported = ImportHwlocXml(Topology(Package(
      0, HostBridge(PciDevice("0000:10:00.0", "0302 [10de:20b0] [10de:134f] a1", "4.000000")))));
  EXPECT_THAT(imported.remarks, Contains(HasSubstr("idle GPUs slow their links down")));
}

TEST(ImportLstopoTest, XgmiLinksTheGpusOfAmd) {
  std::string gpus;
  for (uint32_t i = 0; i < 4; ++i) gpus += RsmiGpu(i);
  std::vector<std::string> values;
  for (int i = 0; i < 16; ++i) values.emplace_back(i % 5 == 0 ? "1000000" : "64000");
  const ImportedCluster imported = ImportHwlocXml(Topology(
      Package(0, HostBridge(gpus)), Matrix("XGMIBandwidth", {"100", "101", "102", "103"}, values)));
  EXPECT_EQ(imported.cluster->DeviceOf(3).name, "mi300x");
  EXPECT_EQ(CountOf(*imported.cluster, LinkKind::kXgmi), 12u);
  EXPECT_DOUBLE_EQ(BandwidthBetween(*imported.cluster, 0, 3), 48e9);  // one link, to RCCL
}

TEST(ImportLstopoTest, GpusAreRankedByTheirDriversNumbers) {
  std::string gpus = PciDevice("0000:10:00.0", "0302 [10de:20b2] [10de:134f] a1", kPcie4x16,
                               OsDevice("nvml1", 1)) +
                     PciDevice("0000:20:00.0", "0302 [10de:20b0] [10de:134f] a1", kPcie4x16,
                               OsDevice("nvml0", 1)) +
                     PciDevice("0000:30:00.0", "0300 [10de:1eb1] [10de:12a0] a1", kPcie4x16);
  const ImportedCluster imported = ImportHwlocXml(Topology(Package(0, HostBridge(gpus))));
  EXPECT_EQ(imported.cluster->device_count(), 2u);
  EXPECT_EQ(imported.cluster->DeviceOf(0).name, "a100-40g");
  EXPECT_EQ(imported.cluster->DeviceOf(1).name, "a100-80g");
  EXPECT_THAT(imported.remarks, Contains(StartsWith("0000:30:00.0: a GPU without a driver")));
}

TEST(ImportLstopoTest, ADeviceIsKnownByItsModelOrByTheUsersWord) {
  const auto named = [](const std::string& model, const std::string& device) {
    return ImportHwlocXml(
               Topology(Package(0, HostBridge(PciDevice(
                                       "0000:10:00.0", "0302 [10de:ffff] [10de:134f] a1", kPcie4x16,
                                       OsDevice("nvml0", 1, Info("GPUModel", model)))))),
               device)
        .cluster->DeviceOf(0)
        .name;
  };
  EXPECT_EQ(named("NVIDIA A100-SXM4-80GB", ""), "a100-80g");
  EXPECT_EQ(named("NVIDIA H100 80GB HBM3", ""), "h100");
  EXPECT_EQ(named("NVIDIA GH200 480GB", ""), "gh200");
  EXPECT_EQ(named("NVIDIA GB200", ""), "gb200");
  EXPECT_EQ(named("NVIDIA Z1", ""), "a100-40g");
  EXPECT_EQ(named("NVIDIA Z1", "b200"), "b200");
}

TEST(ImportLstopoTest, ANicWithoutAnActivePortIsLeftOut) {
  const auto nic = [](const std::string& bus, const std::string& name, const std::string& state) {
    return PciDevice(bus, "0207 [15b3:101b] [15b3:0007] 00", kPcie4x16,
                     OsDevice(name, 3, Info("Port1State", state) + Info("Speed", "100000")));
  };
  const ImportedCluster imported = ImportHwlocXml(
      Topology(Package(0, HostBridge(NvmlGpu(0) + nic("0000:20:00.0", "mlx5_0", "4") +
                                     nic("0000:20:00.1", "mlx5_1", "1")))));
  EXPECT_EQ(CountOf(*imported.cluster, VertexKind::kNic), 1u);
  EXPECT_THAT(imported.remarks, Contains(StartsWith("0000:20:00.1: none of its ports is active")));
  EXPECT_THAT(imported.remarks, Not(Contains(HasSubstr("how fast its port is"))));
}

TEST(ImportLstopoTest, WhatIsNearSeveralNumaNodesHangsOnTheFirst) {
  const std::string package =
      Object("type=\"Package\" os_index=\"0\"",
             Object("type=\"Group\" os_index=\"0\"",
                    Object("type=\"NUMANode\" os_index=\"2\" cpuset=\"0x0f\"")) +
                 Object("type=\"Group\" os_index=\"1\"",
                        Object("type=\"NUMANode\" os_index=\"3\" cpuset=\"0xf0\"") +
                            HostBridge(NvmlGpu(1))) +
                 Object("type=\"NUMANode\" os_index=\"9\" cpuset=\"0x0\"") +  // memory alone
                 HostBridge(NvmlGpu(0)));
  const ImportedCluster imported = ImportHwlocXml(Topology(package));
  EXPECT_THAT(
      imported.remarks,
      Contains(StartsWith("0000:10:00.0: equally near 2 NUMA nodes; taken to hang on the")));
  EXPECT_NO_THROW(imported.cluster->FindVertex("node0/numa2"));
  EXPECT_NO_THROW(imported.cluster->FindVertex("node0/numa3"));
}

// ---- Mistakes and malice ------------------------------------------------------------------------

TEST(ImportLstopoErrorTest, WhatIsNoTopologyIsSaid) {
  EXPECT_THAT(HwlocErrorOf(""), HasSubstr("box.xml: the file is empty"));
  EXPECT_THAT(HwlocErrorOf("{}"), StartsWith("box.xml:1: there is no XML element"));
  EXPECT_THAT(HwlocErrorOf("<system version=\"1\"/>"), HasSubstr("kind \"nccl\""));
  EXPECT_THAT(HwlocErrorOf("\n<html/>"),
              StartsWith("box.xml:2: found <html>, expected <topology>"));
  EXPECT_THAT(HwlocErrorOf("<topology version=\"3.0\"/>"), HasSubstr("\"3.0\", expected 1 or 2"));
  EXPECT_THAT(HwlocErrorOf(Topology("")), HasSubstr("there is no GPU"));
  EXPECT_THAT(HwlocErrorOf(std::string("<topology\0", 10)), HasSubstr("found the byte 0x00"));
}

TEST(ImportLstopoErrorTest, ACutFileIsRefusedWhereverItIsCut) {
  const std::string whole = DgxBox::Hwloc();
  const size_t end = whole.rfind("</topology>") + 11;
  for (size_t length = 1; length < end; length += 97)
    EXPECT_THAT(HwlocErrorOf(whole.substr(0, length)), StartsWith("box.xml:")) << length;
}

TEST(ImportLstopoErrorTest, EntitiesAreRefused) {
  EXPECT_THAT(HwlocErrorOf("<!DOCTYPE topology [ <!ENTITY a \"b\"> ]>\n<topology>&a;</topology>"),
              StartsWith("box.xml:1: the DOCTYPE defines something"));
}

TEST(ImportLstopoErrorTest, DevicesMustBeWhatTheySay) {
  const auto error = [](const std::string& inside) {
    return HwlocErrorOf(Topology(Package(0, HostBridge(inside))));
  };
  const std::string gpu = "0302 [10de:20b0] [10de:134f] a1";
  EXPECT_THAT(error(PciDevice("0000:10:00.0", "3D controller", "1")),
              AllOf(HasSubstr("pci_type of <object> is \"3D controller\""), HasSubstr("expected")));
  EXPECT_THAT(error(PciDevice("0000:10:00.0", "0302 [10de", "1")), HasSubstr("pci_type"));
  EXPECT_THAT(error(PciDevice("PCI 1", gpu, "1")), HasSubstr("expected a PCI bus id"));
  EXPECT_THAT(error(PciDevice("0000:10:00.0", gpu, "-1")), HasSubstr("pci_link_speed"));
  EXPECT_THAT(error(PciDevice("0000:10:00.0", gpu, "nan")), HasSubstr("pci_link_speed"));
  EXPECT_THAT(error(PciDevice("0000:10:00.0", gpu, "1") + PciDevice("0000:10:00.0", gpu, "1")),
              HasSubstr("bus id 0000:10:00.0 appears already in line"));
  EXPECT_THAT(error(PciDevice("0000:10:00.0", gpu, "1", OsDevice("nvml0", 1)) +
                    PciDevice("0000:11:00.0", gpu, "1", OsDevice("nvml0", 1))),
              HasSubstr("there is another GPU nvml0, in line"));
  EXPECT_THAT(error(Object("type=\"Bridge\" bridge_type=\"7\"")), HasSubstr("bridge_type"));
  EXPECT_THAT(error("<object/>"), HasSubstr("<object> has no type"));
  EXPECT_THAT(error(PciDevice("0000:10:00.0", gpu, "1", "", 7) +
                    PciDevice("0000:11:00.0", gpu, "1", "", 7)),
              HasSubstr("gp_index 7 appears already in line"));
  std::string deep;
  for (int i = 0; i < 70; ++i) deep = Object("type=\"Group\"", deep);
  EXPECT_THAT(error(deep), HasSubstr("<object> is nested more than 64 deep"));
}

TEST(ImportLstopoErrorTest, AMatrixMustBeOneOfDevicesThatAreThere) {
  const auto error = [](const std::vector<std::string>& indexes,
                        const std::vector<std::string>& values) {
    return HwlocErrorOf(Topology(Package(0, HostBridge(NvmlGpu(0) + NvmlGpu(1))),
                                 Matrix("NVLinkBandwidth", indexes, values)));
  };
  EXPECT_EQ(error({"100", "101"}, {"0", "50000", "50000", "0"}), "");
  EXPECT_THAT(error({"100", "101"}, {"0", "50000", "50000"}),
              HasSubstr("found 2 indexes and 3 values, expected 2 and 4"));
  EXPECT_THAT(error({"100", "999"}, {"0", "1", "1", "0"}),
              HasSubstr("index 999 belongs to no device in this file"));
  EXPECT_THAT(error({"100", "x"}, {"0", "1", "1", "0"}),
              HasSubstr("found \"x\" among <indexes>, expected a whole number"));
  EXPECT_THAT(error({"100", "101"}, {"0", "-1", "1", "0"}), HasSubstr("among <u64values>"));
  EXPECT_THAT(error({"100", "101"}, {"0", "99999999", "1", "0"}), HasSubstr("99999999 MB/s"));
  EXPECT_THAT(error({"100", "101"}, {"0", "50000", "25000", "0"}), HasSubstr("has 1 back"));
}

}  // namespace import_lstopo_test
}  // namespace rehearse
