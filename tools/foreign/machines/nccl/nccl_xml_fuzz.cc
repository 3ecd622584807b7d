// NCCL's topology XML.
#include "tests/foreign/machines/nccl_xml.h"
#include "tests/fuzz/corpus.h"
#include "tests/fuzz/fuzz_target.h"
#include "tools/foreign/machines/nccl/import_nccl.h"

namespace rehearse {
namespace {

void ReadXml(std::string_view input) { ImportNcclTopology(input, "box.xml"); }

std::vector<std::string> XmlSeeds() {
  const std::string nets = "<net name=\"mlx5_0\" dev=\"0\" speed=\"200000\" port=\"1\"/>";
  return {SmallMachine(),
          System(Gpu(0, NvLink("0000:11:00.0", "4")) + Gpu(1) + Nic("0000:20:00.0", nets)),
          System("<c2c bw=\"1\" count=\"1\"/>" + Gpu(0, NvLink("ffff:ff:ff.0", "6", "0x068000"))),
          "<system version=\"2\"><cpu host_hash=\"0x1\" numaid=\"0\" arch=\"x86_64\" "
          "vendor=\"AuthenticAMD\" familyid=\"25\" modelid=\"1\"><pci busid=\"0000:c1:00.0\" "
          "class=\"0x038000\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\"><gpu dev=\"0\" "
          "gcn=\"910\" rank=\"0\" gdr=\"1\"><xgmi target=\"0000:c6:00.0\" count=\"2\" "
          "tclass=\"0x038000\"/></gpu></pci><pci busid=\"0000:c6:00.0\" class=\"0x038000\"><gpu "
          "dev=\"1\" gcn=\"910\" rank=\"1\"/></pci><nic><net name=\"lo\" dev=\"0\"/></nic></cpu>"
          "</system>"};
}

std::vector<std::string> XmlWords() {
  return {"<system ",
          "<cpu ",
          "<pci ",
          "<gpu ",
          "<nic>",
          "<net ",
          "<nvlink ",
          "<xgmi ",
          "<c2c ",
          "/>",
          "</cpu>",
          "</pci>",
          "</gpu>",
          "</nic>",
          "</system>",
          "version=\"1\"",
          "host_hash=\"0x1\"",
          "numaid=\"0\"",
          "numaid=\"-1\"",
          "busid=\"0000:01:00.0\"",
          "class=\"0x060400\"",
          "class=\"0x030200\"",
          "class=\"0x068000\"",
          "link_speed=\"16.0 GT/s PCIe\"",
          "link_width=\"16\"",
          "dev=\"0\"",
          "sm=\"90\"",
          "gcn=\"gfx90a\"",
          "rank=\"0\"",
          "gdr=\"0\"",
          "target=\"0000:01:00.0\"",
          "count=\"18\"",
          "count=\"4294967295\"",
          "tclass=\"0x068000\"",
          "bw=\"900000\"",
          "speed=\"400000\"",
          "speed=\"1e300\"",
          "latency=\"1e300\"",
          "port=\"1\"",
          "vendor=\"0x10de\"",
          "device=\"0x2330\"",
          "<!DOCTYPE x>",
          "<!--",
          "-->",
          "<![CDATA[",
          "&#0;",
          "&lt;",
          "<?xml version=\"1.0\"?>"};
}

const FuzzTargetRow kXmlRow({"nccl_xml", ReadXml, XmlSeeds, XmlWords});

}  // namespace
}  // namespace rehearse
