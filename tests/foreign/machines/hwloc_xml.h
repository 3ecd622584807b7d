// Pieces of hwloc's XML, for tests of their importer: as `lstopo --of xml` writes them, in version
// 2 unless stated otherwise.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tests/foreign/machines/imported.h"
#include "tools/foreign/machines/hwloc/import_lstopo.h"

namespace rehearse {

inline ImportedCluster ImportHwlocXml(const std::string& text, const std::string& device = "") {
  return ImportLstopo(text, "box.xml", device);
}
inline std::string HwlocErrorOf(const std::string& text) {
  return ErrorThrownBy([&] { ImportHwlocXml(text); });
}

inline std::string Object(const std::string& attributes, const std::string& inside = "") {
  return fmt::format("<object {}>\n{}</object>\n", attributes, inside);
}
inline std::string Info(const std::string& name, const std::string& value) {
  return fmt::format("<info name=\"{}\" value=\"{}\"/>\n", name, value);
}

// One behind the other: host bridge, root port; then a switch's upper port and one of its lower
// ones.
inline std::string HostBridge(const std::string& inside) {
  return Object("type=\"Bridge\" bridge_type=\"0-1\" depth=\"0\" bridge_pci=\"0000:[00-1f]\"",
                inside);
}
inline std::string Port(const std::string& bus, const std::string& speed,
                        const std::string& inside) {
  return Object(fmt::format("type=\"Bridge\" bridge_type=\"1-1\" depth=\"1\" pci_busid=\"{}\" "
                            "pci_type=\"0604 [1000:c010] [1000:a096] b0\" pci_link_speed=\"{}\"",
                            bus, speed),
                inside);
}

constexpr const char* kPcie4x16 = "31.507692";  // GB/s: 16 GT/s, 128 of 130 bits, 16 lanes

inline std::string PciDevice(const std::string& bus, const std::string& type,
                             const std::string& speed, const std::string& inside = "",
                             uint32_t index = 0) {
  return Object(
      fmt::format("type=\"PCIDev\"{} pci_busid=\"{}\" pci_type=\"{}\" pci_link_speed=\"{}\"",
                  index > 0 ? fmt::format(" gp_index=\"{}\"", index) : "", bus, type, speed),
      inside);
}
inline std::string OsDevice(const std::string& name, uint32_t type, const std::string& inside = "",
                            uint32_t index = 0) {
  return Object(fmt::format("type=\"OSDev\"{} name=\"{}\" osdev_type=\"{}\"",
                            index > 0 ? fmt::format(" gp_index=\"{}\"", index) : "", name, type),
                inside);
}
inline std::string Topology(const std::string& inside, const std::string& behind = "") {
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n"
         "<topology version=\"2.0\">\n" +
         Object("type=\"Machine\" os_index=\"0\" cpuset=\"0xffffffff\" gp_index=\"1\"",
                Info("Architecture", "x86_64") + inside) +
         behind + "</topology>\n";
}
// A package with one NUMA node, of EPYC 7002.
inline std::string Package(uint32_t number, const std::string& inside) {
  return Object(fmt::format("type=\"Package\" os_index=\"{}\" cpuset=\"0x{}\"", number,
                            number == 0 ? "0000ffff" : "ffff0000"),
                Info("CPUVendor", "AuthenticAMD") + Info("CPUFamilyNumber", "23") +
                    Info("CPUModelNumber", "49") +
                    Object(fmt::format("type=\"NUMANode\" os_index=\"{}\" cpuset=\"0x1\" "
                                       "local_memory=\"68719476736\"",
                                       number),
                           "<page_type size=\"4096\" count=\"16777216\"/>\n") +
                    Object("type=\"L3Cache\" cache_size=\"16777216\"",
                           Object("type=\"Core\" os_index=\"0\"",
                                  Object("type=\"PU\" os_index=\"0\" cpuset=\"0x1\""))) +
                    inside);
}

// Index and value words, ten in an element, as hwloc writes them.
inline std::string Portions(const char* element, const std::vector<std::string>& words) {
  std::string text;
  for (size_t begin = 0; begin < words.size(); begin += 10) {
    std::string part;
    for (size_t i = begin; i < std::min(begin + 10, words.size()); ++i) part += words[i] + " ";
    text += fmt::format("<{} length=\"{}\">{}</{}>\n", element, part.size(), part, element);
  }
  return text;
}
inline std::string Matrix(const std::string& name, const std::vector<std::string>& indexes,
                          const std::vector<std::string>& values) {
  const bool is_mixed = indexes.front().find(':') != std::string::npos;
  const char* const element = is_mixed ? "distances2hetero" : "distances2";
  return fmt::format("<{} {}nbobjs=\"{}\" kind=\"9\" name=\"{}\"{}>\n{}{}</{}>\n", element,
                     is_mixed ? "" : "type=\"OSDev\" ", indexes.size(), name,
                     is_mixed ? "" : " indexing=\"gp\"", Portions("indexes", indexes),
                     Portions("u64values", values), element);
}

// The box of 8 A100: two packages with two PCIe switches each, on each of these two GPUs and two
// NICs of 200 Gbit/s; 12 NVLinks of every GPU, two to each of six NVSwitches. Also an SSD, a
// display and an Ethernet NIC.
struct DgxBox {
  static std::string Bus(uint32_t quarter, uint32_t place) {
    return fmt::format("0000:{:02x}:00.0", 0x10 + 0x20 * quarter + place);
  }
  static constexpr uint32_t kFirstGpu = 1000;  // gp_index
  static constexpr uint32_t kFirstSwitch = 2000;

  static std::string Quarter(uint32_t quarter) {
    std::string behind;
    for (uint32_t i = 0; i < 2; ++i) {
      const uint32_t gpu = 2 * quarter + i;
      behind +=
          Port(fmt::format("0000:{:02x}:{:02x}.0", 0x11 + 0x20 * quarter, i), kPcie4x16,
               PciDevice(Bus(quarter, 4 + i), "0302 [10de:20b0] [10de:134f] a1", kPcie4x16,
                         OsDevice(fmt::format("cuda{}", gpu), 5) +
                             OsDevice(fmt::format("nvml{}", gpu), 1,
                                      Info("GPUModel", "NVIDIA A100-SXM4-40GB"), kFirstGpu + gpu)));
    }
    for (uint32_t i = 0; i < 2; ++i) {
      const uint32_t nic = 2 * quarter + i;
      behind +=
          Port(fmt::format("0000:{:02x}:{:02x}.0", 0x11 + 0x20 * quarter, 8 + i), kPcie4x16,
               PciDevice(Bus(quarter, 8 + i), "0207 [15b3:101b] [15b3:0007] 00", kPcie4x16,
                         OsDevice(fmt::format("ib{}", nic), 2) +
                             OsDevice(fmt::format("mlx5_{}", nic), 3, Info("Port1State", "4"))));
    }
    const std::string upper = fmt::format("0000:{:02x}:00.0", 0x10 + 0x20 * quarter);
    return HostBridge(Port(fmt::format("0000:{:02x}:01.1", 0x0f + 0x20 * quarter), kPcie4x16,
                           Port(upper, kPcie4x16, behind)));
  }

  static std::string Others() {
    std::string text = HostBridge(Port("0000:e0:01.0", "7.876923",
                                       PciDevice("0000:e1:00.0", "0108 [144d:a824] [144d:a801] 00",
                                                 "7.876923", OsDevice("nvme0n1", 0))) +
                                  Port("0000:e0:02.0", "0.500000",
                                       PciDevice("0000:e2:00.0", "0300 [1a03:2000] [1a03:2000] 41",
                                                 "0.000000", OsDevice("card0", 1))) +
                                  Port("0000:e0:03.0", "2.000000",
                                       PciDevice("0000:e3:00.0", "0200 [8086:1533] [8086:1533] 03",
                                                 "2.000000", OsDevice("eth0", 2))));
    for (uint32_t i = 0; i < 6; ++i)
      text += HostBridge(
          Port(fmt::format("0000:f0:{:02x}.0", i), "4.000000",
               PciDevice(fmt::format("0000:f{}:00.0", i + 1), "0680 [10de:1af1] [10de:13f8] a1",
                         "4.000000", "", kFirstSwitch + i)));
    return text;
  }

  static std::string Links() {
    std::vector<std::string> indexes;
    for (uint32_t i = 0; i < 8; ++i) indexes.push_back(fmt::format("OSDev:{}", kFirstGpu + i));
    for (uint32_t i = 0; i < 6; ++i) indexes.push_back(fmt::format("PCIDev:{}", kFirstSwitch + i));
    std::vector<std::string> values;
    for (uint32_t from = 0; from < indexes.size(); ++from)
      for (uint32_t to = 0; to < indexes.size(); ++to)
        values.emplace_back(from == to ? "1000000" : (from < 8) != (to < 8) ? "50000" : "0");
    return Matrix("NVLinkBandwidth", indexes, values);
  }

  static std::string Hwloc() {
    return Topology(
        Package(0, Quarter(0) + Quarter(1)) + Package(1, Quarter(2) + Quarter(3) + Others()),
        Links());
  }

  // What NCCL_TOPO_DUMP_FILE says about the same box.
  static std::string Nccl() {
    constexpr const char* kSlot = "link_speed=\"16.0 GT/s PCIe\" link_width=\"16\"";
    std::string text = "<system version=\"1\">\n";
    for (uint32_t quarter = 0; quarter < 4; ++quarter) {
      if (quarter % 2 == 0)
        text += fmt::format(
            "<cpu numaid=\"{}\" arch=\"x86_64\" vendor=\"AuthenticAMD\" "
            "familyid=\"23\" modelid=\"49\">\n",
            quarter / 2);
      text += fmt::format("<pci busid=\"{}\" class=\"0x060400\" {}>\n", Bus(quarter, 0), kSlot);
      for (uint32_t i = 0; i < 2; ++i) {
        std::string links;
        for (uint32_t to = 0; to < 6; ++to)
          links += fmt::format("<nvlink target=\"0000:f{}:00.0\" count=\"2\" tclass=\"0x068000\"/>",
                               to + 1);
        text += fmt::format(
            "<pci busid=\"{}\" class=\"0x030200\" vendor=\"0x10de\" "
            "device=\"0x20b0\" {}><gpu dev=\"{}\" sm=\"80\" rank=\"{}\" gdr=\"1\">"
            "{}</gpu></pci>\n",
            Bus(quarter, 4 + i), kSlot, 2 * quarter + i, 2 * quarter + i, links);
      }
      for (uint32_t i = 0; i < 2; ++i)
        text += fmt::format(
            "<pci busid=\"{}\" class=\"0x020700\" {}><nic><net name=\"mlx5_{}\" "
            "dev=\"{}\" speed=\"200000\" port=\"1\"/></nic></pci>\n",
            Bus(quarter, 8 + i), kSlot, 2 * quarter + i, 2 * quarter + i);
      text += quarter % 2 == 0 ? "</pci>\n" : "</pci>\n</cpu>\n";
    }
    return text + "</system>\n";
  }
};

}  // namespace rehearse
