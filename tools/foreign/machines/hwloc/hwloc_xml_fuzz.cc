// hwloc's XML.
#include "tests/foreign/machines/hwloc_xml.h"
#include "tests/fuzz/corpus.h"
#include "tests/fuzz/fuzz_target.h"

namespace rehearse {
namespace {

void ReadHwloc(std::string_view input) { ImportLstopo(input, "box.xml"); }

std::vector<std::string> HwlocSeeds() {
  const std::string gpu =
      PciDevice("0000:10:00.0", "0380 [1002:74a1] [1002:0000] 00", "63.015385",
                OsDevice("rsmi0", 5, Info("GPUModel", "AMD Instinct MI300X"), 100)) +
      PciDevice("0000:11:00.0", "0380 [1002:74a1] [1002:0000] 00", "63.015385",
                OsDevice("rsmi1", 5, "", 101));
  return {
      DgxBox::Hwloc(),
      Topology(Package(0, HostBridge(Port("0000:00:01.0", kPcie4x16, gpu))),
               Matrix("XGMIBandwidth", {"100", "101"}, {"1000000", "64000", "64000", "0"})),
      "<topology>" +
          Object("type=\"Machine\"", Object("type=\"NUMANode\" os_index=\"0\"", HostBridge(gpu))) +
          "</topology>"};
}

std::vector<std::string> HwlocWords() {
  return {"<topology version=\"2.0\">",
          "</topology>",
          "<object type=\"Machine\">",
          "<object type=\"Package\">",
          "<object type=\"NUMANode\" os_index=\"1\" cpuset=\"0xf\">",
          "<object type=\"Bridge\" bridge_type=\"0-1\">",
          "<object type=\"Bridge\" bridge_type=\"1-1\" pci_busid=\"0000:01:00.0\">",
          "<object type=\"PCIDev\" ",
          "<object type=\"OSDev\" name=\"nvml0\"/>",
          "<object type=\"OSDev\" name=\"mlx5_0\" osdev_type=\"3\"/>",
          "</object>",
          "pci_busid=\"0000:01:00.0\"",
          "pci_type=\"0302 [10de:20b0] [10de:134f] a1\"",
          "pci_type=\"0207 [15b3:101b] [15b3:0007] 00\"",
          "pci_type=\"0680 [10de:1af1] [10de:13f8] a1\"",
          "pci_link_speed=\"31.507692\"",
          "pci_link_speed=\"1e300\"",
          "gp_index=\"100\"",
          "gp_index=\"18446744073709551615\"",
          "<info name=\"GPUModel\" value=\"NVIDIA H200\"/>",
          "<info name=\"CPUVendor\" value=\"AuthenticAMD\"/>",
          "<info name=\"CPUModelNumber\" value=\"65536\"/>",
          "<info name=\"Port1State\" value=\"1\"/>",
          "<info name=\"Speed\" value=\"100000\"/>",
          "<distances2 type=\"OSDev\" nbobjs=\"2\" name=\"NVLinkBandwidth\" indexing=\"gp\">",
          "</distances2>",
          "<indexes length=\"8\">100 101 </indexes>",
          "<u64values length=\"8\">0 50000 50000 0 </u64values>",
          "OSDev:100 ",
          "<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">",
          "<!--",
          "-->",
          "/>"};
}

const FuzzTargetRow kHwlocRow({"hwloc_xml", ReadHwloc, HwlocSeeds, HwlocWords});

}  // namespace
}  // namespace rehearse
