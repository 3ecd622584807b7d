// Pieces of NCCL's topology files, for tests of their importer.
#pragma once

#include <cstdint>
#include <string>

#include <fmt/format.h>

#include "tests/foreign/machines/imported.h"
#include "tools/foreign/machines/nccl/import_nccl.h"

namespace rehearse {

inline ImportedCluster ImportXml(const std::string& text, const std::string& device = "") {
  return ImportNcclTopology(text, "box.xml", device);
}
inline std::string XmlErrorOf(const std::string& text) {
  return ErrorThrownBy([&] { ImportXml(text); });
}

// A system of one NUMA node.
inline std::string System(const std::string& inside) {
  return "<system version=\"1\">\n<cpu numaid=\"0\" arch=\"x86_64\" vendor=\"GenuineIntel\" "
         "familyid=\"6\" modelid=\"85\">\n" +
         inside + "\n</cpu>\n</system>\n";
}

// A GPU on PCIe 4.0 x16, in the third line if it is the first of System().
inline std::string Gpu(uint32_t rank, const std::string& links = "", const std::string& sm = "80") {
  return fmt::format(
      "<pci busid=\"0000:{:02x}:00.0\" class=\"0x030200\" link_speed=\"16.0 GT/s PCIe\" "
      "link_width=\"16\"><gpu dev=\"{}\" sm=\"{}\" rank=\"{}\" gdr=\"1\">{}</gpu></pci>",
      0x10 + rank, rank, sm, rank, links);
}

inline std::string NvLink(const std::string& target, const std::string& count,
                          const std::string& tclass = "0x030200") {
  return fmt::format("<nvlink target=\"{}\" count=\"{}\" tclass=\"{}\"/>", target, count, tclass);
}

inline std::string Nic(const std::string& bus, const std::string& nets) {
  return fmt::format(
      "<pci busid=\"{}\" class=\"0x020700\" link_speed=\"16.0 GT/s PCIe\" link_width=\"16\">"
      "<nic>{}</nic></pci>",
      bus, nets);
}

// Two A100 behind a switch with a NIC, four NVLinks between them; a second NUMA node with a third.
inline std::string SmallMachine() {
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

}  // namespace rehearse
