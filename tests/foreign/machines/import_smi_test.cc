#include "tools/foreign/machines/smi/import_smi.h"

#include <filesystem>
#include <map>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/foreign/machines/imported.h"
#include "tests/support/places.h"

namespace rehearse {
namespace import_smi_test {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

ImportedCluster Import(const std::string& text, const std::string& device = "") {
  return ImportSmiTopology(text, "box.txt", device);
}

std::string ErrorOf(const std::string& text) {
  return ErrorThrownBy([&] { Import(text); });
}

// The kinds of the vertices between two devices, as "pcie-switch socket socket".
std::string Between(const ImportedCluster& imported, uint32_t from, uint32_t to) {
  const Cluster& cluster = *imported.cluster;
  Router router(cluster);
  std::string kinds;
  for (const uint32_t link : router.Between(from, to).links) {
    const Vertex& end = cluster.VertexAt(cluster.TargetOf(link));
    if (end.kind == VertexKind::kDevice) continue;
    kinds += (kinds.empty() ? "" : " ") + std::string(Name(end.kind));
  }
  return kinds;
}

// A table of GPUs without affinity: the cells right of the diagonal, row by row.
std::string Table(uint32_t gpus, const std::vector<std::string>& cells) {
  std::vector<std::vector<std::string>> all(gpus, std::vector<std::string>(gpus, "X"));
  size_t next = 0;
  for (uint32_t i = 0; i < gpus; ++i)
    for (uint32_t j = i + 1; j < gpus; ++j) all[i][j] = all[j][i] = cells.at(next++);
  std::string text;
  for (uint32_t i = 0; i < gpus; ++i) text += fmt::format("\tGPU{}", i);
  for (uint32_t i = 0; i < gpus; ++i)
    text += fmt::format("\nGPU{}\t{}", i, fmt::join(all[i], "\t"));
  return text + "\n";
}

// ---- Reading the table --------------------------------------------------------------------------

TEST(ImportSmiTest, ATerminalsOutputIsRead) {
  const ImportedCluster imported = Import(
      "$ nvidia-smi topo -m\n"
      "\x1b[4m\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\r\n"
      "GPU0\t X \tNV4\tPIX\t0-31,64-95\t0\t\tN/A\r\n"
      "GPU1\tNV4\t X \tPIX\t0-31,64-95\t0\t\tN/A\r\n"
      "NIC0\tPIX\tPIX\t X \t\t\t\t\r\n"
      "\r\n"
      "Legend:\r\n\r\n"
      "  X    = Self\r\n"
      "  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes\r\n"
      "  NV#  = Connection traversing a bonded set of # NVLinks\r\n"
      "\r\nNIC Legend:\r\n\r\n  NIC0: mlx5_0\r\n");
  const Cluster& cluster = *imported.cluster;
  EXPECT_EQ(cluster.name(), "box");
  EXPECT_EQ(cluster.device_count(), 2u);
  EXPECT_EQ(CountOf(cluster, VertexKind::kPcieSwitch), 1u);
  EXPECT_EQ(CountOf(cluster, VertexKind::kSocket), 1u);
  EXPECT_THAT(cluster.notes(), Contains("NICs: nic0 NIC0 mlx5_0"));
  EXPECT_DOUBLE_EQ(BandwidthBetween(*imported.cluster, 0, 1),
                   80e9);  // 4 links of 25 GB/s at NCCL's 0.8
  ExpectComesBack(cluster);
}

TEST(ImportSmiTest, ATableWithBlanksIsReadLikeOneWithTabs) {
  const ImportedCluster imported = Import(
      "# from a web page\n"
      "     GPU0 GPU1 mlx5_0 CPU Affinity NUMA Affinity\n"
      "GPU0  X   PHB  SYS    0-3          0\n"
      "GPU1  PHB  X   SYS    0-3          0\n"
      "mlx5_0 SYS SYS  X\n");
  EXPECT_EQ(Between(imported, 0, 1), "socket");
  EXPECT_EQ(CountOf(*imported.cluster, VertexKind::kSocket), 2u);  // the NIC hangs on another
}

TEST(ImportSmiTest, OneGpuIsAMachine) {
  EXPECT_EQ(Import("\tGPU0\tCPU Affinity\nGPU0\tX\t0-3\n").cluster->device_count(), 1u);
}

// ---- The tree -----------------------------------------------------------------------------------

TEST(ImportSmiTest, EveryRelationIsAWayOfItsKind) {
  EXPECT_EQ(Between(Import(Table(2, {"PIX"})), 0, 1), "pcie-switch");
  EXPECT_EQ(Between(Import(Table(2, {"PXB"})), 0, 1), "pcie-switch pcie-switch pcie-switch");
  EXPECT_EQ(Between(Import(Table(2, {"PHB"})), 0, 1), "socket");
  EXPECT_EQ(Between(Import(Table(2, {"NODE"})), 0, 1), "socket");
  EXPECT_EQ(Between(Import(Table(2, {"SYS"})), 0, 1), "socket socket");
  EXPECT_EQ(Between(Import(Table(2, {"SOC"})), 0, 1), "socket socket");
  EXPECT_EQ(Between(Import(Table(2, {"NV2"})), 0, 1), "");
}

TEST(ImportSmiTest, SwitchesNestAsTheTableSays) {
  // 0 and 1 share a switch, 2 hangs on another of the same complex, 3 on the processor,
  // 4 on the other.
  const ImportedCluster imported =
      Import(Table(5, {"PIX", "PXB", "PHB", "SYS", "PXB", "PHB", "SYS", "PHB", "SYS", "SYS"}));
  EXPECT_EQ(Between(imported, 0, 1), "pcie-switch");
  EXPECT_EQ(Between(imported, 0, 2), "pcie-switch pcie-switch pcie-switch");
  EXPECT_EQ(Between(imported, 1, 3), "pcie-switch pcie-switch socket");
  EXPECT_EQ(Between(imported, 2, 4), "pcie-switch pcie-switch socket socket");
  EXPECT_EQ(CountOf(*imported.cluster, VertexKind::kPcieSwitch), 3u);
}

TEST(ImportSmiTest, AffinityTellsWhereNvLinkHidesIt) {
  // Two pairs, each of its own NUMA node, with NVLinks within and between them.
  const auto table = [](const std::string& second) {
    return fmt::format(
        "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\n"
        "GPU0\tX\tNV1\t0-3\t0\n"
        "GPU1\tNV1\tX\t{}\n",
        second);
  };
  EXPECT_EQ(CountOf(*Import(table("0-3\t0")).cluster, VertexKind::kSocket), 1u);
  EXPECT_EQ(CountOf(*Import(table("4-7\t1")).cluster, VertexKind::kSocket), 2u);
}

TEST(ImportSmiTest, TheTableIsStrongerThanTheAffinityOfAVirtualMachine) {
  const ImportedCluster imported = Import(
      "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\n"
      "GPU0\tX\tSYS\t0-95\tN/A\n"
      "GPU1\tSYS\tX\t0-95\tN/A\n");
  EXPECT_EQ(Between(imported, 0, 1), "socket socket");
}

TEST(ImportSmiTest, TheTableIsStrongerThanAnAffinityThatAllGpusShare) {
  // A node of Leonardo: each GPU has a NIC behind PCIe switches of its own and is SYS to the
  // others' NICs, NVLinks hide how the GPUs are connected otherwise, and all have the one
  // processor's cores.
  const ImportedCluster imported = Import(
      "\tGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tNIC1\tNIC2\tNIC3\tCPU Affinity\tNUMA Affinity\n"
      "GPU0\tX\tNV4\tNV4\tNV4\tPXB\tSYS\tSYS\tSYS\t0-31\t0-1\n"
      "GPU1\tNV4\tX\tNV4\tNV4\tSYS\tPXB\tSYS\tSYS\t0-31\t0-1\n"
      "GPU2\tNV4\tNV4\tX\tNV4\tSYS\tSYS\tPXB\tSYS\t0-31\t0-1\n"
      "GPU3\tNV4\tNV4\tNV4\tX\tSYS\tSYS\tSYS\tPXB\t0-31\t0-1\n"
      "NIC0\tPXB\tSYS\tSYS\tSYS\tX\tSYS\tSYS\tSYS\n"
      "NIC1\tSYS\tPXB\tSYS\tSYS\tSYS\tX\tSYS\tSYS\n"
      "NIC2\tSYS\tSYS\tPXB\tSYS\tSYS\tSYS\tX\tSYS\n"
      "NIC3\tSYS\tSYS\tSYS\tPXB\tSYS\tSYS\tSYS\tX\n");
  const Cluster& cluster = *imported.cluster;
  EXPECT_EQ(CountOf(cluster, VertexKind::kSocket), 4u);       // a NUMA node each
  EXPECT_EQ(CountOf(cluster, VertexKind::kPcieSwitch), 12u);  // three of each PXB
  EXPECT_EQ(CountOf(cluster, LinkKind::kNvLink), 12u);        // 6 pairs, both ways
  EXPECT_EQ(Between(imported, 0, 3), "");
  ExpectComesBack(cluster);
}

// ---- NVLink -------------------------------------------------------------------------------------

TEST(ImportSmiTest, MoreLinksThanAGpuHasMeanAnNvSwitch) {
  // An A100 has 12: 12 to each of two others cannot be direct.
  const ImportedCluster imported = Import(Table(3, {"NV12", "NV12", "NV12"}));
  EXPECT_EQ(Between(imported, 0, 2), "nvswitch");
  EXPECT_DOUBLE_EQ(BandwidthBetween(*imported.cluster, 0, 2), 240e9);  // 12 · 20
  EXPECT_EQ(CountOf(*imported.cluster, LinkKind::kNvLink), 6u);
  EXPECT_THAT(imported.remarks, Contains(HasSubstr("taken for an NVSwitch")));
}

TEST(ImportSmiTest, AsManyLinksAsAGpuHasAreDirect) {
  // A node of Perlmutter: 4 to each of three others are the 12 of an A100.
  const ImportedCluster mesh = Import(Table(4, {"NV4", "NV4", "NV4", "NV4", "NV4", "NV4"}));
  EXPECT_EQ(CountOf(*mesh.cluster, VertexKind::kNvSwitch), 0u);
  EXPECT_EQ(CountOf(*mesh.cluster, LinkKind::kNvLink), 12u);
  EXPECT_EQ(Between(mesh, 0, 3), "");
  // A bridge: all 12 to one other.
  EXPECT_EQ(Between(Import(Table(2, {"NV12"})), 0, 1), "");
  // The same 6 of a V100, which has no more, between four is an NVSwitch (DGX-2).
  const ImportedCluster dgx2 =
      Import(Table(4, {"NV6", "NV6", "NV6", "NV6", "NV6", "NV6"}), "v100-32g");
  EXPECT_EQ(Between(dgx2, 0, 3), "nvswitch");
}

TEST(ImportSmiTest, TwoIslandsHaveTwoNvSwitches) {
  std::vector<std::string> cells;
  for (uint32_t i = 0; i < 6; ++i)
    for (uint32_t j = i + 1; j < 6; ++j) cells.push_back(i / 3 == j / 3 ? "NV12" : "SYS");
  const ImportedCluster imported = Import(Table(6, cells));
  EXPECT_EQ(CountOf(*imported.cluster, VertexKind::kNvSwitch), 2u);
  EXPECT_EQ(Between(imported, 0, 1), "nvswitch");
  EXPECT_EQ(Between(imported, 0, 5), "socket socket");
}

TEST(ImportSmiTest, ADeviceThatCannotHaveSoManyLinksIsSaid) {
  EXPECT_THAT(Import(Table(3, {"NV18", "NV18", "NV18"})).remarks,
              Contains("18 NVLinks of a GPU, but a100-40g has 12: name the device that it is"));
  EXPECT_THAT(Import(Table(3, {"NV18", "NV18", "NV18"}), "h100").remarks,
              Not(Contains(HasSubstr("name the device"))));
}

// ---- What the table does not say ----------------------------------------------------------------

TEST(ImportSmiTest, WhatIsAssumedIsSaid) {
  const ImportedCluster imported =
      Import("\tGPU0\tGPU1\tNIC0\nGPU0\tX\tSYS\tPHB\nGPU1\tSYS\tX\tSYS\nNIC0\tPHB\tSYS\tX\n");
  EXPECT_THAT(imported.remarks, ElementsAre(HasSubstr("which GPUs these are; taken for a100-40g"),
                                            HasSubstr("taken as 16 GT/s and 16 lanes"),
                                            HasSubstr("taken as 200 Gbit/s"),
                                            HasSubstr("10 GB/s between NUMA nodes")));
  EXPECT_THAT(imported.cluster->notes(), Contains(imported.remarks[0]));
}

TEST(ImportSmiTest, TheDeviceSaysHowFastItsPcieIs) {
  const ImportedCluster imported = Import(Table(2, {"PIX"}), "h100");
  EXPECT_EQ(imported.cluster->DeviceOf(0).name, "h100");
  EXPECT_DOUBLE_EQ(BandwidthBetween(*imported.cluster, 0, 1), 48e9);  // PCIe 5.0 x16 to NCCL
  EXPECT_THAT(imported.remarks, Not(Contains(HasSubstr("taken for a100"))));
  EXPECT_THROW(Import(Table(2, {"PIX"}), "h10"), Error);
}

// ---- Mistakes and malice ------------------------------------------------------------------------

TEST(ImportSmiErrorTest, WhatIsNoTableIsSaid) {
  EXPECT_THAT(ErrorOf(""), StartsWith("box.txt: the file is empty"));
  EXPECT_THAT(ErrorOf("# only a comment\n"), HasSubstr("no header line"));
  EXPECT_THAT(ErrorOf("hello\nworld\n"), HasSubstr("no header line"));
  EXPECT_THAT(ErrorOf("GPU0\tX\tPIX\n"), HasSubstr("no header line"));  // a row
  EXPECT_THAT(ErrorOf("<system version=\"1\"/>"), HasSubstr("no header line"));
  EXPECT_THAT(ErrorOf(std::string("GPU0\n\0", 6)), StartsWith("box.txt:2: found the byte 0x00"));
  EXPECT_THAT(ErrorOf(std::string((size_t{64} << 20) + 1, 'x')), HasSubstr("at most 64 MiB"));
}

TEST(ImportSmiErrorTest, ATableThatIsCutIsRefused) {
  const std::string whole = Table(3, {"PIX", "SYS", "SYS"});
  EXPECT_THAT(ErrorOf(whole.substr(0, whole.find("GPU2\tSYS"))),
              StartsWith("box.txt:3: the table ends before the row of \"GPU2\""));
  EXPECT_THAT(ErrorOf(whole.substr(0, whole.size() - 3)),
              StartsWith("box.txt:4: the row of GPU2 has 2 cells, expected 3"));
  EXPECT_THAT(ErrorOf(" GPU0 GPU1\n"), HasSubstr("ends before the row of \"GPU0\""));
}

TEST(ImportSmiErrorTest, CellsThatAreNoneAreRefused) {
  for (const char* cell : {"NV", "NV0", "NV65", "NV-1", "NV4000000000", "NVX", "pix", "12", "LOC"})
    EXPECT_THAT(ErrorOf(Table(2, {cell})),
                StartsWith("box.txt:2: found \"" + std::string(cell) + "\" between GPU0 and GPU1"))
        << cell;
}

TEST(ImportSmiErrorTest, RowsMustBeTheColumns) {
  EXPECT_THAT(ErrorOf(" GPU0 GPU1\nGPU1 PIX X\nGPU0 X PIX\n"),
              StartsWith("box.txt:2: found the row of \"GPU1\", expected that of \"GPU0\""));
  EXPECT_THAT(ErrorOf(" GPU0 GPU0\nGPU0 X X\nGPU0 X X\n"),
              StartsWith("box.txt:1: there are two columns \"GPU0\""));
  EXPECT_THAT(ErrorOf(" GPU0 GPU1\nGPU0 X PIX PIX\nGPU1 PIX X\n"), HasSubstr("has 3 cells"));
  EXPECT_THAT(ErrorOf(" GPU0 GPU00\nGPU0 X PIX\nGPU00 PIX X\n"),
              HasSubstr("found the column \"GPU00\""));
  std::string wide;
  for (int i = 0; i < 300; ++i) wide += fmt::format(" GPU{}", i);
  EXPECT_THAT(ErrorOf(wide + "\n"), HasSubstr("more than 256 columns"));
}

// ---- Other commands -----------------------------------------------------------------------------

// What `nvidia-smi nvlink -s` prints.
std::string Status(const std::string& model, uint32_t gpus, uint32_t active, uint32_t idle = 0) {
  std::string text;
  for (uint32_t i = 0; i < gpus; ++i) {
    text += fmt::format("GPU {}: {} (UUID: GPU-{})\n", i, model, i);
    for (uint32_t link = 0; link < active + idle; ++link)
      text += fmt::format("\t Link {}: {}\n", link, link < active ? "25 GB/s" : "<inactive>");
  }
  return text;
}

TEST(ImportSmiLinksTest, EightGpusMeetAtAnNvSwitchAndTwoEachOther) {
  const ImportedCluster eight = Import(Status("NVIDIA A100-SXM4-80GB", 8, 12));
  EXPECT_EQ(eight.cluster->device_count(), 8u);
  EXPECT_EQ(eight.cluster->DeviceOf(0).name, "a100-80g");
  EXPECT_EQ(CountOf(*eight.cluster, VertexKind::kNvSwitch), 1u);
  EXPECT_THAT(eight.remarks, Contains(HasSubstr("taken as 12 of each GPU to an NVSwitch")));
  const ImportedCluster two = Import(Status("Tesla V100-SXM2-16GB", 2, 4, 2));
  EXPECT_EQ(CountOf(*two.cluster, VertexKind::kNvSwitch), 0u);
  EXPECT_DOUBLE_EQ(BandwidthBetween(*two.cluster, 0, 1), 80e9);  // four links, as NCCL counts them
  const ImportedCluster four = Import(Status("NVIDIA H100 80GB HBM3", 4, 18));
  EXPECT_EQ(CountOf(*four.cluster, VertexKind::kNvSwitch), 0u);
  EXPECT_THAT(four.remarks, Contains(HasSubstr("taken as 6 between each two GPUs")));
}

TEST(ImportSmiLinksTest, WhatIsNotCertainIsRefused) {
  EXPECT_THAT(ErrorOf(Status("Tesla V100-SXM2-16GB", 8, 6)),
              HasSubstr("expected the output of nvidia-smi topo -m"));
  EXPECT_THAT(ErrorOf(Status("NVIDIA A100-SXM4-80GB", 2, 12) + "GPU 2: x (UUID: y)\n"),
              HasSubstr("0 of its links are active, of the first GPU's 12"));
}

TEST(ImportSmiLinksTest, AmdsJsonSaysWhatItsTablesSay) {
  std::string json;
  for (int i = 0; i < 3; ++i) {
    std::string links;
    for (int j = 0; j < 3; ++j) {
      // The first and the last are two hops apart.
      const bool is_near = i - j == 1 || j - i == 1;
      links += fmt::format(
          R"({}{{"gpu": {}, "bdf": "0000:0{}:00.0", "link_type": "{}", "num_hops": {}}})",
          links.empty() ? "" : ", ", j, j, i == j ? "SELF" : "XGMI",
          i == j    ? 0
          : is_near ? 1
                    : 2);
    }
    json += fmt::format(R"({}{{"gpu": {}, "bdf": "0000:0{}:00.0", "links": [{}]}})",
                        json.empty() ? "" : ", ", i, i, links);
  }
  for (const std::string& text : {"[" + json + "]", "{\"topology\": [" + json + "]}"}) {
    const ImportedCluster imported = Import(text);
    EXPECT_EQ(imported.cluster->device_count(), 3u);
    EXPECT_EQ(Between(imported, 0, 1), "");
    EXPECT_NE(Between(imported, 0, 2), "");
  }
  EXPECT_THAT(ErrorOf(R"([{"gpu": 0, "links": [{"gpu": 7, "link_type": "XGMI"}]}])"),
              HasSubstr("expected a whole number from 0 to 0"));
}

TEST(ImportSmiErrorTest, ContradictionsAreRefused) {
  EXPECT_THAT(ErrorOf(" GPU0 GPU1\nGPU0 X PIX\nGPU1 SYS X\n"),
              StartsWith("box.txt:3: the table is not symmetric"));
  EXPECT_THAT(ErrorOf(" GPU0 GPU1\nGPU0 X NV1\nGPU1 NV2 X\n"), HasSubstr("not symmetric"));
  EXPECT_THAT(ErrorOf(" GPU0 GPU1\nGPU0 PIX PIX\nGPU1 PIX X\n"),
              StartsWith("box.txt:2: X stands for a device and itself"));
  EXPECT_THAT(ErrorOf(" GPU0 GPU1\nGPU0 X X\nGPU1 X X\n"), HasSubstr("X stands for"));
  EXPECT_THAT(ErrorOf(" GPU0 NIC0\nGPU0 X NV4\nNIC0 NV4 X\n"), HasSubstr("not both GPUs"));
  // 0 and 1 share a switch, 1 and 2 too, and yet 0 and 2 should be far from each other.
  EXPECT_THAT(ErrorOf(Table(3, {"PIX", "SYS", "PIX"})),
              StartsWith("box.txt:4: GPU2 and GPU0 are SYS, but by way of other devices"));
  EXPECT_THAT(ErrorOf(Table(3, {"NODE", "SYS", "PHB"})), HasSubstr("are SYS, but"));
  EXPECT_THAT(ErrorOf(Table(3, {"PXB", "PHB", "PIX"})), HasSubstr("are PHB, but"));
}

TEST(ImportSmiErrorTest, ATableOfTheLargestSizeIsRead) {
  // 256 GPUs, every 8 on a switch.
  std::vector<std::string> cells;
  for (uint32_t i = 0; i < 256; ++i)
    for (uint32_t j = i + 1; j < 256; ++j) cells.push_back(i / 8 == j / 8 ? "PIX" : "SYS");
  const ImportedCluster imported = Import(Table(256, cells));
  EXPECT_EQ(CountOf(*imported.cluster, VertexKind::kPcieSwitch), 32u);
}

// ---- The files of others ------------------------------------------------------------------------

struct Expected {
  size_t gpus;
  size_t nics;
  size_t switches;
  size_t sockets;
  size_t nvlinks;  // links of the cluster, both ways
  size_t nvswitches;
};

const std::map<std::string, Expected>& Files() {
  static const std::map<std::string, Expected> files = {
      // Four bridged pairs; NODE within two NUMA nodes.
      {"a100_8gpu_nvlink_bridge_pairs.txt", {8, 0, 0, 2, 8, 0}},
      // Hybrid cube mesh: 16 pairs. Four switches with two GPUs and a NIC each.
      {"dgx1_v100_8gpu_4nic.txt", {8, 4, 4, 2, 32, 0}},
      // Five NUMA nodes (the storage NICs are on one without GPUs). Four complexes, PXB all:
      // one switch and one for each of two GPUs and two NICs; and one for the two storage
      // NICs: 4 · 5 + 1.
      {"dgx_a100_8gpu_10nic.txt", {8, 10, 21, 5, 16, 1}},
      // The NIC shares a switch with GPU2 and GPU3.
      {"oneflow_v100_8gpu_1nic.txt", {8, 1, 1, 2, 32, 0}},
      {"rtx4090_8gpu_pcie_switch_PIX.txt", {8, 1, 2, 2, 0, 0}},
  };
  return files;
}

std::string TruthFile(const std::string& name) {
  return SourceDir() + "/../shared/truth/topo_m/" + name;
}

TEST(ImportSmiFilesTest, AllImportWithTheirParts) {
  if (!std::filesystem::exists(TruthFile("")))
    GTEST_SKIP() << "the collected tables are not here: " << TruthFile("");
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(TruthFile(""))) {
    const std::string name = entry.path().filename();
    SCOPED_TRACE(name);
    ASSERT_EQ(Files().count(name), 1u);
    const Expected& expected = Files().at(name);
    const ImportedCluster imported = ImportSmiTopology(TextOf(entry.path()), name);
    const Cluster& cluster = *imported.cluster;
    EXPECT_EQ(cluster.device_count(), expected.gpus);
    EXPECT_EQ(CountOf(cluster, VertexKind::kNic), expected.nics);
    EXPECT_EQ(CountOf(cluster, VertexKind::kPcieSwitch), expected.switches);
    EXPECT_EQ(CountOf(cluster, VertexKind::kSocket), expected.sockets);
    EXPECT_EQ(CountOf(cluster, LinkKind::kNvLink), expected.nvlinks);
    EXPECT_EQ(CountOf(cluster, VertexKind::kNvSwitch), expected.nvswitches);
    ExpectComesBack(cluster);
    ++count;
  }
  EXPECT_EQ(count, Files().size());
}

TEST(ImportSmiFilesTest, RoutesOfTheDgx1FollowItsCubeMesh) {
  const std::string name = "dgx1_v100_8gpu_4nic.txt";
  if (!std::filesystem::exists(TruthFile(name)))
    GTEST_SKIP() << "the collected tables are not here: " << TruthFile("");
  const ImportedCluster imported = ImportSmiTopology(TextOf(TruthFile(name)), name, "v100-16g");
  EXPECT_DOUBLE_EQ(BandwidthBetween(*imported.cluster, 0, 3), 40e9);  // NV2
  EXPECT_DOUBLE_EQ(BandwidthBetween(*imported.cluster, 0, 1), 20e9);  // NV1
  EXPECT_EQ(Between(imported, 0, 3), "");
  EXPECT_EQ(Between(imported, 0, 7), "pcie-switch socket socket pcie-switch");  // SYS
  EXPECT_DOUBLE_EQ(BandwidthBetween(*imported.cluster, 0, 7),
                   10e9);  // the sockets; PCIe 3.0 would do 12
}

TEST(ImportSmiFilesTest, RoutesOfTheBridgedPairsLeaveThemOverPcie) {
  const std::string name = "a100_8gpu_nvlink_bridge_pairs.txt";
  if (!std::filesystem::exists(TruthFile(name)))
    GTEST_SKIP() << "the collected tables are not here: " << TruthFile("");
  const ImportedCluster imported = ImportSmiTopology(TextOf(TruthFile(name)), name);
  // nccl-tests #178 measured 208 and 20 GB/s of bus bandwidth.
  EXPECT_DOUBLE_EQ(BandwidthBetween(*imported.cluster, 0, 1), 240e9);
  EXPECT_EQ(Between(imported, 1, 2), "socket");
  EXPECT_DOUBLE_EQ(BandwidthBetween(*imported.cluster, 1, 2), 24e9);
}

}  // namespace import_smi_test
}  // namespace rehearse
