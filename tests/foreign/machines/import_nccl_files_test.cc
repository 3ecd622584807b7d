// The topology files that others have published.
#include <filesystem>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/foreign/machines/nccl_xml.h"
#include "tests/support/places.h"

namespace rehearse {
namespace import_nccl_files_test {

using ::testing::Contains;
using ::testing::HasSubstr;

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
  return SourceDir() + "/../shared/truth/nccl_topo_xml/" + name;
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
    EXPECT_THAT(XmlErrorOf(TextOf(entry.path())), HasSubstr("rings and trees that NCCL found"));
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

}  // namespace import_nccl_files_test
}  // namespace rehearse
