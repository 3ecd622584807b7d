// Machines and fabrics as people have them: chips of today, partitions, racks in blocks, tables of
// other tools, hosts that serve others.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/foreign/machines/fabric_files.h"
#include "tests/foreign/machines/hwloc_xml.h"
#include "tests/foreign/machines/imported.h"
#include "tools/foreign/machines/host_filter.h"
#include "tools/foreign/machines/ibnetdiscover/import_ibnet.h"
#include "tools/foreign/machines/import_devices.h"
#include "tools/foreign/machines/nccl/import_nccl.h"
#include "tools/foreign/machines/slurm/import_slurm.h"
#include "tools/foreign/machines/smi/import_smi.h"

namespace rehearse {
namespace import_kinds_test {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> NodesOf(const Cluster& cluster) {
  std::vector<std::string> nodes;
  for (VertexId id = 0; id < cluster.vertex_count(); ++id) {
    const std::string& node = cluster.VertexAt(id).node;
    if (!node.empty() && std::find(nodes.begin(), nodes.end(), node) == nodes.end())
      nodes.push_back(node);
  }
  return nodes;
}

// ---- Devices ------------------------------------------------------------------------------------

TEST(ImportDevicesTest, EveryKnownDeviceHasLinksOfItsOwn) {
  for (const DeviceSpec& device : KnownDevices()) {
    const GpuKind kind = GpuKindOf(device.name);
    EXPECT_EQ(kind.device, device.name);
    if (device.compute_capability > 0) {
      EXPECT_EQ(kind.sm, device.compute_capability) << device.name;
    }
  }
  EXPECT_EQ(GpuKindOf("gb200").nvlinks, 18u);
  EXPECT_EQ(GpuKindOf("a800").nvlinks, 8u);
  EXPECT_EQ(GpuKindOf("l40s").nvlinks, 0u);
  EXPECT_EQ(GpuKindOf("b300").gigatransfers, 64);
  EXPECT_EQ(GpuKindOf("mi355x").gcn, "950");
}

TEST(ImportDevicesTest, ChipsAreKnownByTheirIds) {
  const auto name = [](const char* device, uint32_t sm) {
    const auto kind = FindGpuKind("0x10de", device, sm, "");
    return kind && !kind->is_of_family ? kind->device : "";
  };
  EXPECT_EQ(name("0x2329", 90), "h20");
  EXPECT_EQ(name("0x2331", 90), "h100-pcie");
  EXPECT_EQ(name("0x26b9", 89), "l40s");
  EXPECT_EQ(name("0x3182", 103), "b300");
  EXPECT_EQ(name("0x2941", 100), "gb200");
  EXPECT_EQ(name("0x2b85", 120), "rtx5090");
  EXPECT_EQ(name("0x2342", 90), "gh200");
  EXPECT_EQ(name("0x2bb5", 120), "");  // a board of that family, but none that is known
}

TEST(ImportDevicesTest, AnIdThatIsNotKnownIsSaid) {
  const ImportedCluster imported = ImportNcclTopology(
      R"(<system version="1"><cpu numaid="0" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">
      <pci busid="0000:10:00.0" class="0x030200" vendor="0x10de" device="0x23ff" link_speed="32.0 GT/s PCIe" link_width="16"><gpu dev="0" sm="90" rank="0"/></pci>
      </cpu></system>)",
      "box.xml", "");
  EXPECT_THAT(imported.remarks,
              Contains(HasSubstr("its PCI id 0x23ff is not known here; taken for h100")));
}

// Grace's GPUs hang on it by NVLink-C2C.
TEST(ImportSmiKindsTest, AGb200HasItsOwnLinks) {
  const ImportedCluster imported =
      ImportSmiTopology("\tGPU0\tGPU1\tCPU Affinity\nGPU0\tX\tNV18\t0-71\nGPU1\tNV18\tX\t0-71\n",
                        "tray.txt", "gb200");
  // 18 links of 50 GB/s at NCCL's 40.1.
  EXPECT_DOUBLE_EQ(BandwidthBetween(*imported.cluster, 0, 1), 18 * 40.1e9);
  EXPECT_THAT(imported.remarks, Not(Contains(HasSubstr("name the device that it is"))));
  EXPECT_THAT(imported.remarks, Contains(HasSubstr("NVLink-C2C, 450 GB/s")));
  EXPECT_EQ(CountOf(*imported.cluster, LinkKind::kPcie), 0u);
}

// ---- AMD's tables -------------------------------------------------------------------------------

constexpr const char* kRocm =
    "======================= ROCm System Management Interface =======================\n"
    "=========================== Weight between two GPUs ============================\n"
    "       GPU0         GPU1         GPU2\n"
    "GPU0   0            15           30\n"
    "GPU1   15           0            15\n"
    "GPU2   30           15           0\n"
    "\n"
    "============================ Hops between two GPUs =============================\n"
    "       GPU0         GPU1         GPU2\n"
    "GPU0   0            1            2\n"
    "GPU1   1            0            1\n"
    "GPU2   2            1            0\n"
    "\n"
    "========================== Link Type between two GPUs ==========================\n"
    "       GPU0         GPU1         GPU2\n"
    "GPU0   0            XGMI         XGMI\n"
    "GPU1   XGMI         0            XGMI\n"
    "GPU2   XGMI         XGMI         0\n"
    "\n"
    "================================== Numa Nodes ==================================\n"
    "GPU[0]\t\t: (Topology) Numa Node: 0\n"
    "GPU[1]\t\t: (Topology) Numa Node: 0\n"
    "GPU[2]\t\t: (Topology) Numa Node: 1\n";

TEST(ImportRocmTest, LinkTypesAndHopsAreLinks) {
  const ImportedCluster imported = ImportSmiTopology(kRocm, "box.txt", "mi250x-gcd");
  const Cluster& cluster = *imported.cluster;
  EXPECT_EQ(cluster.device_count(), 3u);
  EXPECT_EQ(CountOf(cluster, LinkKind::kXgmi), 4u);  // two pairs, both ways
  EXPECT_EQ(CountOf(cluster, VertexKind::kSocket), 2u);
  ExpectComesBack(cluster);
  EXPECT_THAT(ImportSmiTopology(kRocm, "box.txt", "").remarks,
              Contains(HasSubstr("taken for mi300x")));
}

TEST(ImportRocmTest, AmdSmiNamesGpusByTheirBus) {
  const ImportedCluster imported = ImportSmiTopology(
      "ACCESS TABLE:\n"
      "             0000:0c:00.0 0000:22:00.0\n"
      "0000:0c:00.0 ENABLED      ENABLED\n"
      "0000:22:00.0 ENABLED      ENABLED\n"
      "\n"
      "LINK TYPE TABLE:\n"
      "             0000:0c:00.0 0000:22:00.0\n"
      "0000:0c:00.0 SELF         XGMI\n"
      "0000:22:00.0 XGMI         SELF\n",
      "box.txt", "mi300x");
  EXPECT_EQ(CountOf(*imported.cluster, LinkKind::kXgmi), 2u);
}

TEST(ImportRocmTest, MistakesAreSaid) {
  const std::string whole = kRocm;
  const auto error = [](const std::string& text) {
    return ErrorThrownBy([&] { ImportSmiTopology(text, "box.txt", ""); });
  };
  EXPECT_THAT(error(whole.substr(0, whole.find("Link Type"))),
              HasSubstr("there is no table of link types"));
  EXPECT_THAT(error(whole.substr(0, whole.rfind("GPU2   XGMI"))), HasSubstr("ends before the row"));
}

// ---- hwloc --------------------------------------------------------------------------------------

// Two GPUs, each in two partitions; all four are joined.
TEST(ImportLstopoKindsTest, PartitionsAreDevices) {
  const auto gpu = [](const char* bus, uint32_t first) {
    return PciDevice(bus, "0380 [1002:74a0] [1002:74a0] 00", "63.015385",
                     OsDevice("rsmi" + std::to_string(first), 1, "", 10 + first) +
                         OsDevice("rsmi" + std::to_string(first + 1), 1, "", 11 + first));
  };
  std::string values;
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) values += i == j ? "0 " : "64000 ";
  const ImportedCluster imported = ImportHwlocXml(Topology(
      Object("type=\"NUMANode\" os_index=\"0\"") +
          HostBridge(gpu("0000:01:00.0", 0) + gpu("0000:02:00.0", 2)),
      "<distances2 type=\"OSDev\" nbobjs=\"4\" kind=\"9\" name=\"XGMIBandwidth\" indexing=\"gp\">"
      "<indexes>10 11 12 13</indexes><u64values>" +
          values + "</u64values></distances2>"));
  const Cluster& cluster = *imported.cluster;
  EXPECT_EQ(cluster.device_count(), 4u);
  EXPECT_EQ(CountOf(cluster, LinkKind::kXgmi), 12u);  // six pairs
  EXPECT_EQ(cluster.DeviceOf(0).name, "mi300a-part2");
  EXPECT_EQ(cluster.DeviceOf(0).memory, Bytes(64.0 * 1024 * 1024 * 1024));
  EXPECT_THAT(imported.remarks, Contains(HasSubstr("one of 2 partitions of mi300a")));
  ExpectComesBack(cluster);
}

TEST(ImportLstopoKindsTest, NvSwitchesAreKnownByTheirSubtype) {
  const auto gpu = [](const char* bus, const char* name, uint32_t index) {
    return PciDevice(bus, "0302 [10de:1db5] [10de:1249] a1", "15.753846",
                     OsDevice(name, 1, "", index));
  };
  const std::string nvswitch = Object(
      "type=\"PCIDev\" gp_index=\"9\" subtype=\"NVSwitch\" pci_busid=\"0000:03:00.0\" "
      "pci_type=\"0000 [0000:0000] [0000:0000] 00\" pci_link_speed=\"1.0\"");
  const ImportedCluster imported = ImportHwlocXml(Topology(
      Object("type=\"NUMANode\" os_index=\"0\"") +
          HostBridge(gpu("0000:01:00.0", "nvml0", 6) + gpu("0000:02:00.0", "nvml1", 8) + nvswitch),
      "<distances2hetero nbobjs=\"3\" kind=\"25\" name=\"NVLinkBandwidth\">"
      "<indexes>OSDev:6 OSDev:8 PCIDev:9</indexes>"
      "<u64values>0 0 150000 0 0 150000 150000 150000 0</u64values></distances2hetero>"));
  EXPECT_EQ(CountOf(*imported.cluster, VertexKind::kNvSwitch), 1u);
  EXPECT_THAT(imported.remarks, Not(Contains(HasSubstr("left out"))));
}

// ---- Hosts --------------------------------------------------------------------------------------

TEST(HostFilterTest, NamesSayWhatHostsAreFor) {
  for (const char* host : {"login1", "storage-03", "ufm", "oss2", "hpc-mgmt-1", "Login02"})
    EXPECT_TRUE(IsServiceHost(host)) << host;
  for (const char* host : {"node1", "gpu-a12", "dgx07", "compute003", "loginator"})
    EXPECT_FALSE(IsServiceHost(host)) << host;
  const HostFilter filter("gpu*,node[0-9]");
  EXPECT_TRUE(filter.Takes("gpu17"));
  EXPECT_TRUE(filter.Takes("node3"));
  EXPECT_FALSE(filter.Takes("nodex"));
  EXPECT_TRUE(HostFilter("*").Takes("login1"));
}

// A switch and hosts of one adapter each.
std::string Net(const std::vector<std::string>& hosts) {
  std::string text = "Switch 36 \"leaf\"\n";
  for (size_t i = 0; i < hosts.size(); ++i)
    text += "[" + std::to_string(i + 1) + "] \"" + hosts[i] + "\"[1]\n";
  for (size_t i = 0; i < hosts.size(); ++i)
    text += "\nHca 1 \"" + hosts[i] + "\"\n[1] \"leaf\"[" + std::to_string(i + 1) + "]\n";
  return text;
}

TEST(ImportIbnetKindsTest, NetsOfIbsimAndServiceHosts) {
  const std::string net = Net({"node1", "node2", "storage1", "login1"});
  const ImportedCluster imported = ImportIbnetdiscover(net, "net.txt");
  EXPECT_THAT(NodesOf(*imported.cluster), ElementsAre("node1", "node2"));
  EXPECT_THAT(imported.remarks,
              Contains(HasSubstr("login1 and storage1: left out: by its name it serves others")));
  EXPECT_THAT(NodesOf(*ImportIbnetdiscover(net, "net.txt", "", HostFilter("*1")).cluster),
              ElementsAre("login1", "node1", "storage1"));
  EXPECT_THAT(ErrorThrownBy([&] { ImportIbnetdiscover(net, "net.txt", "", HostFilter("x*")); }),
              HasSubstr("--hosts takes none of the 4 hosts"));
  // A cable that only one end lists.
  EXPECT_THAT(NodesOf(*ImportIbnetdiscover("Switch 4 \"s\"\n\nHca 1 \"a\"\n[1] \"s\"[1]\n\n"
                                           "Hca 1 \"b\"\n[1] \"s\"[2]\n",
                                           "net.txt")
                           .cluster),
              ElementsAre("a", "b"));
}

// ---- Slurm --------------------------------------------------------------------------------------

constexpr const char* kBlocks =
    "BlockName=rack1 Nodes=tray[01-18]\nBlockName=rack2 Nodes=tray[19-36]\n"
    "BlockName=rack3 Nodes=tray[37-54]\nBlockSizes=18,36\n";

TEST(ImportSlurmKindsTest, BlocksAreSwitchesOrRacks) {
  const ImportedCluster trays = ImportSlurm(kBlocks, "topology.conf", "dgx-h100");
  EXPECT_EQ(trays.cluster->node_count(), 54u);
  EXPECT_THAT(trays.remarks, Contains(HasSubstr("blocks are NVLink domains")));
  const ImportedCluster racks = ImportSlurm(kBlocks, "topology.conf", "gb200-nvl72");
  EXPECT_EQ(racks.cluster->node_count(), 3u);
  EXPECT_EQ(racks.cluster->device_count(), 3u * 72);
  EXPECT_THAT(racks.remarks, Contains("each block is one rack, a node of gb200-nvl72"));
  const auto error = [](const std::string& text) {
    return ErrorThrownBy([&] { ImportSlurm(text, "t.conf", "dgx-h100"); });
  };
  EXPECT_THAT(error("BlockSizes=18\n"), HasSubstr("no BlockName="));
  EXPECT_THAT(error("BlockName=a\n"), HasSubstr("t.conf:1: block \"a\" has no Nodes="));
  EXPECT_THAT(error("BlockName=a Nodes=n1\nSwitchName=s Nodes=n2\n"),
              HasSubstr("found blocks beside switches"));
  EXPECT_THAT(error("BlockName=a Nodes=n1\nBlockSizes=x\n"), HasSubstr("in BlockSizes"));
}

TEST(ImportSlurmKindsTest, TopologyYamlIsRead) {
  const std::string yaml =
      "---\n- topology: other\n  flat: true\n- topology: fabric\n  cluster_default: true\n"
      "  tree:\n    switches:\n      - switch: spine\n        children: [leaf1, leaf2]\n"
      "      - switch: leaf1\n        nodes: n[01-16]\n      - switch: leaf2\n"
      "        nodes: n[17-32]\n";
  const ImportedCluster tree = ImportSlurm(yaml, "topology.yaml", "dgx-h100");
  EXPECT_EQ(tree.cluster->node_count(), 32u);
  EXPECT_THAT(tree.remarks, Contains("other: another topology of this file; left out"));
  const std::string blocks =
      "- topology: racks\n  block:\n    block_sizes: [2, 4]\n    blocks:\n"
      "      - block: b1\n        nodes: n[1-2]\n      - block: b2\n        nodes: n[3-4]\n";
  EXPECT_EQ(ImportSlurm(blocks, "topology.yaml", "dgx-h100").cluster->node_count(), 4u);
  EXPECT_EQ(
      ImportSlurm(blocks, "topology.yaml", "dgx-h100", HostFilter("n[1-3]")).cluster->node_count(),
      3u);
  EXPECT_THAT(
      ErrorThrownBy([] { ImportSlurm("- topology: x\n  flat: true\n", "t.yaml", "dgx-h100"); }),
      HasSubstr("a flat topology says nothing of switches"));
}

}  // namespace import_kinds_test
}  // namespace rehearse
