#include "tools/foreign/machines/nccl/nccl_xml.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "tools/foreign/machines/xml_document.h"

namespace rehearse {
namespace {

constexpr uint32_t kDeepest = 32;          // PCI devices behind each other
constexpr uint32_t kMostCpus = 256;        // they are linked pairwise
constexpr uint32_t kMostDevices = 10'000;  // PCI devices, and as many nets
constexpr uint32_t kMostLinks = 1024;      // per entry; today's GPUs have 18
constexpr uint32_t kLargestRank = 1'000'000;
constexpr double kFastestNet = 1e9;  // Mbit/s
constexpr const char* kExpected = "NCCL's topology XML (NCCL_TOPO_DUMP_FILE)";

class Reader {
 public:
  Reader(std::string_view text, const std::string& file, Remarks& remarks)
      : document_(text, file, kExpected, Doctype::kRefused), remarks_(remarks) {}

  NcclSystem Read() {
    const pugi::xml_node root = document_.Root();
    const std::string name = XmlDocument::NameOf(root);
    if (name == "graphs")
      document_.Fail(
          root,
          "these are the rings and trees that NCCL found (NCCL_GRAPH_DUMP_FILE), not the "
          "machine; let NCCL write that with NCCL_TOPO_DUMP_FILE");
    if (name != "system")
      document_.Fail(root, fmt::format("found <{}>, expected <system> of {}", name, kExpected));
    document_.RefuseTwins(root);
    document_.Number(root, "version", 1, 2);
    if (!root.attribute("version"))
      document_.Fail(root, "<system> has no version, expected 1 or 2");
    for (const pugi::xml_node child : document_.Elements(root)) {
      if (Is(child, "cpu"))
        ReadCpu(child);
      else
        LeaveOut(child);
    }
    system_.host_count = static_cast<uint32_t>(hosts_.size());
    return std::move(system_);
  }

 private:
  static bool Is(pugi::xml_node node, std::string_view name) { return node.name() == name; }

  void LeaveOut(pugi::xml_node node) {
    remarks_.Add(fmt::format("<{}> in <{}> is left out", XmlDocument::NameOf(node),
                             XmlDocument::NameOf(node.parent())),
                 fmt::format("line {}", document_.LineOf(node)));
  }

  void ReadCpu(pugi::xml_node node) {
    if (system_.cpus.size() == kMostCpus)
      document_.Fail(node, fmt::format("there are more than {} <cpu>", kMostCpus));
    NcclCpu cpu;
    cpu.line = document_.LineOf(node);
    const auto next = static_cast<uint32_t>(hosts_.size());
    cpu.host = hosts_.emplace(XmlDocument::Text(node, "host_hash"), next).first->second;
    const auto numa = document_.Number(node, "numaid", -1, 65535);
    if (!numa) document_.Fail(node, "<cpu> has no numaid");
    cpu.numa = static_cast<int>(*numa);
    const auto [twin, is_new] = numa_lines_.emplace(std::pair(cpu.host, cpu.numa), cpu.line);
    if (!is_new)
      document_.Fail(
          node, fmt::format("NUMA node {} appears already in line {}", cpu.numa, twin->second));
    cpu.processor.arch = XmlDocument::Text(node, "arch");
    cpu.processor.vendor = XmlDocument::Text(node, "vendor");
    cpu.processor.family = document_.Count(node, "familyid", 65535);
    cpu.processor.model = document_.Count(node, "modelid", 65535);
    const auto position = static_cast<uint32_t>(system_.cpus.size());
    system_.cpus.push_back(std::move(cpu));
    for (const pugi::xml_node child : document_.Elements(node)) {
      if (Is(child, "pci"))
        ReadPci(child, position, std::nullopt, 1);
      else if (Is(child, "nic"))
        ReadNic(child, position, system_.cpus[position].nets);
      else
        LeaveOut(child);
    }
  }

  void ReadPci(pugi::xml_node node, uint32_t cpu, std::optional<uint32_t> parent, uint32_t depth) {
    if (depth > kDeepest)
      document_.Fail(node, fmt::format("<pci> is nested more than {} deep", kDeepest));
    if (system_.pcis.size() == kMostDevices)
      document_.Fail(node, fmt::format("there are more than {} <pci>", kMostDevices));
    const uint32_t host = system_.cpus[cpu].host;
    NcclPci pci;
    pci.line = document_.LineOf(node);
    pci.bus = document_.BusId(node, "busid");
    pci.bus_text = Printable(XmlDocument::Text(node, "busid"));
    const auto [twin, is_new] = bus_lines_.emplace(std::pair(host, pci.bus), pci.line);
    if (!is_new)
      document_.Fail(
          node, fmt::format("bus id {} appears already in line {}", pci.bus_text, twin->second));
    pci.device_class = XmlDocument::Text(node, "class");
    pci.vendor = XmlDocument::Text(node, "vendor");
    pci.device = XmlDocument::Text(node, "device");
    pci.link_speed = XmlDocument::Text(node, "link_speed");
    pci.link_width = document_.Count(node, "link_width", 32).value_or(0);
    pci.cpu = cpu;
    pci.parent = parent;
    const auto position = static_cast<uint32_t>(system_.pcis.size());
    system_.pcis.push_back(std::move(pci));
    for (const pugi::xml_node child : document_.Elements(node)) {
      if (Is(child, "pci")) {
        system_.pcis[position].has_children = true;
        ReadPci(child, cpu, position, depth + 1);
      } else if (Is(child, "gpu")) {
        if (system_.pcis[position].gpu)
          document_.Fail(child, "there is a second <gpu> on this PCI device");
        system_.pcis[position].gpu = ReadGpu(child, host);
      } else if (Is(child, "nic")) {
        system_.pcis[position].is_nic = true;
        ReadNic(child, cpu, system_.pcis[position].nets);
      } else {
        LeaveOut(child);
      }
    }
    const NcclPci& read = system_.pcis[position];
    if (static_cast<int>(read.gpu.has_value()) + static_cast<int>(read.is_nic) +
            static_cast<int>(read.has_children) >
        1)
      document_.Fail(
          node,
          fmt::format("{} is more than one of a GPU, a NIC and a switch with devices behind it",
                      read.bus_text));
  }

  NcclGpu ReadGpu(pugi::xml_node node, uint32_t host) {
    NcclGpu gpu;
    gpu.line = document_.LineOf(node);
    gpu.dev = document_.Count(node, "dev", kLargestRank);
    gpu.rank = document_.Count(node, "rank", kLargestRank);
    gpu.sm = document_.Count(node, "sm", 9999).value_or(0);
    gpu.gcn = XmlDocument::Text(node, "gcn");
    gpu.is_without_gdr = XmlDocument::Text(node, "gdr") == "0";
    const auto refuse_twin = [&](const char* what, uint32_t value, int first, bool is_new) {
      if (!is_new)
        document_.Fail(
            node, fmt::format("there is another GPU with {} {}, in line {}", what, value, first));
    };
    if (gpu.rank) {
      const auto [twin, is_new] = rank_lines_.emplace(*gpu.rank, gpu.line);
      refuse_twin("rank", *gpu.rank, twin->second, is_new);
    }
    if (gpu.dev) {
      const auto [twin, is_new] = dev_lines_.emplace(std::pair(host, *gpu.dev), gpu.line);
      refuse_twin("dev", *gpu.dev, twin->second, is_new);
    }
    for (const pugi::xml_node child : document_.Elements(node)) {
      if (Is(child, "nvlink") || Is(child, "xgmi")) {
        gpu.links.push_back(ReadLink(child));
      } else if (Is(child, "c2c")) {
        constexpr double kLargest = 1e8;  // MB/s of a link
        gpu.c2c_megabytes_per_second += document_.Decimal(child, "bw", 0, kLargest) *
                                        document_.Count(child, "count", kMostLinks).value_or(0);
      } else {
        LeaveOut(child);
      }
    }
    return gpu;
  }

  NcclLink ReadLink(pugi::xml_node node) const {
    NcclLink link;
    link.line = document_.LineOf(node);
    link.is_xgmi = Is(node, "xgmi");
    link.target = document_.BusId(node, "target");
    link.target_text = Printable(XmlDocument::Text(node, "target"));
    link.target_class = XmlDocument::Text(node, "tclass");
    const auto count = document_.Number(node, "count", 1, kMostLinks);
    if (!count) document_.Fail(node, fmt::format("<{}> has no count", XmlDocument::NameOf(node)));
    link.count = static_cast<uint32_t>(*count);
    return link;
  }

  void ReadNic(pugi::xml_node node, uint32_t cpu, std::vector<NcclNet>& nets) {
    for (const pugi::xml_node child : document_.Elements(node)) {
      if (!Is(child, "net")) {
        LeaveOut(child);
        continue;
      }
      if (++net_count_ > kMostDevices)
        document_.Fail(child, fmt::format("there are more than {} <net>", kMostDevices));
      NcclNet net;
      net.line = document_.LineOf(child);
      net.name = Printable(XmlDocument::Text(child, "name"));
      net.dev = document_.Count(child, "dev", kLargestRank);
      // Some NICs say -1, which NCCL treats like nothing.
      const double speed = document_.Decimal(child, "speed", -1, kFastestNet);
      net.megabits = std::max(speed, 0.0);
      constexpr double kLongest = 1e6;
      net.latency = Seconds(document_.Decimal(child, "latency", 0, kLongest) / 1e6);
      net.is_without_gdr = XmlDocument::Text(child, "gdr") == "0";
      if (IsNew(net, child, system_.cpus[cpu].host)) nets.push_back(std::move(net));
    }
  }

  // A NIC that is on no PCI bus appears under every NUMA node.
  bool IsNew(const NcclNet& net, pugi::xml_node node, uint32_t host) {
    if (!net.dev) return true;
    const auto [known, is_new] =
        nets_.emplace(std::pair(host, *net.dev), KnownNet{net.name, net.line, false});
    if (is_new) return true;
    KnownNet& first = known->second;
    if (first.name != net.name)
      document_.Fail(
          node, fmt::format("there is another net with dev {}, in line {}", *net.dev, first.line));
    if (!first.is_said)
      remarks_.Add("under more than one NUMA node; taken to hang on the first", net.name);
    first.is_said = true;
    return false;
  }

  struct KnownNet {
    std::string name;
    int line;
    bool is_said;  // a remark says that it appears again
  };

  const XmlDocument document_;
  Remarks& remarks_;
  NcclSystem system_;
  uint32_t net_count_ = 0;
  std::map<std::string, uint32_t> hosts_;
  // Where each was first seen; by host, as machines number their own.
  std::map<std::pair<uint32_t, int>, int> numa_lines_;
  std::map<std::pair<uint32_t, uint64_t>, int> bus_lines_;
  std::map<std::pair<uint32_t, uint32_t>, int> dev_lines_;
  std::map<uint32_t, int> rank_lines_;
  std::map<std::pair<uint32_t, uint32_t>, KnownNet> nets_;
};

}  // namespace

NcclSystem ReadNcclXml(std::string_view text, const std::string& file, Remarks& remarks) {
  RefuseNonText(text, file, kExpected, Escapes::kRefused);
  return Reader(text, file, remarks).Read();
}

}  // namespace rehearse
