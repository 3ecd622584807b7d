#include "topology/import/nccl_xml.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <pugixml.hpp>

#include "sim/base/json_parse.h"

namespace rehearse {
namespace {

constexpr uint32_t kDeepest = 32;          // PCI devices behind each other
constexpr uint32_t kMostCpus = 256;        // they are linked pairwise
constexpr uint32_t kMostDevices = 10'000;  // PCI devices, and as many nets
constexpr uint32_t kMostLinks = 1024;      // of one entry; today's GPUs have 18
constexpr uint32_t kLargestRank = 1'000'000;
constexpr double kFastestNet = 1e9;  // Mbit/s
constexpr const char* kExpected = "NCCL's topology XML (NCCL_TOPO_DUMP_FILE)";

// ---- The document -------------------------------------------------------------------------------

// pugixml with line numbers. It never expands entities of the document's own, parses without
// recursion and takes some 64 bytes for a node.
class Document {
 public:
  Document(std::string_view text, const std::string& file) : file_(file) {
    for (size_t i = 0; i < text.size(); ++i)
      if (text[i] == '\n') line_ends_.push_back(i);
    constexpr int kMostMarks = 1'000'000;  // of elements and attributes: bounds the memory
    if (std::count_if(text.begin(), text.end(), [](char c) { return c == '<' || c == '='; }) >
        kMostMarks)
      throw Error({file, 0, ""}, fmt::format("the file has more than {} elements and attributes, "
                                             "expected {}",
                                             kMostMarks, kExpected));
    const pugi::xml_parse_result result = document_.load_buffer(
        text.data(), text.size(), pugi::parse_default | pugi::parse_doctype, pugi::encoding_utf8);
    for (const pugi::xml_node node : document_.children())
      if (node.type() == pugi::node_doctype)
        Fail(node, "the file has a DOCTYPE, which may define entities; NCCL's files have none");
    if (result.status == pugi::status_no_document_element)
      throw Error({file, 1, ""}, fmt::format("there is no XML element, expected {}", kExpected));
    if (!result) FailParse(result, text);
  }

  // The only element at the top.
  pugi::xml_node Root() const {
    pugi::xml_node root;
    for (const pugi::xml_node node : document_.children()) {
      if (node.type() != pugi::node_element) continue;
      if (root) Fail(node, fmt::format("there is a second element <{}> at the top", NameOf(node)));
      root = node;
    }
    return root;
  }

  int LineOf(pugi::xml_node node) const { return LineAt(node.offset_debug()); }

  [[noreturn]] void Fail(pugi::xml_node node, const std::string& message) const {
    throw Error({file_, LineOf(node), ""}, message);
  }

  static std::string NameOf(pugi::xml_node node) { return Printable(node.name()); }

 private:
  int LineAt(std::ptrdiff_t offset) const {
    const auto before = std::lower_bound(line_ends_.begin(), line_ends_.end(),
                                         static_cast<size_t>(std::max<std::ptrdiff_t>(offset, 0)));
    return static_cast<int>(before - line_ends_.begin()) + 1;
  }

  [[noreturn]] void FailParse(const pugi::xml_parse_result& result, std::string_view text) const {
    const size_t last = text.find_last_not_of(" \t\r\n");
    const auto offset = static_cast<size_t>(std::max<std::ptrdiff_t>(result.offset, 0));
    if (offset >= last)
      throw Error({file_, LineAt(static_cast<std::ptrdiff_t>(last)), ""},
                  fmt::format("the file ends in the middle of an element ({}): was it cut off?",
                              result.description()));
    throw Error({file_, LineAt(result.offset), ""},
                fmt::format("this is not well-formed XML: {}", result.description()));
  }

  const std::string file_;
  std::vector<size_t> line_ends_;
  pugi::xml_document document_;
};

// ---- The reader ---------------------------------------------------------------------------------

class Reader {
 public:
  Reader(std::string_view text, const std::string& file, Remarks& remarks)
      : document_(text, file), remarks_(remarks) {}

  NcclSystem Read() {
    const pugi::xml_node root = document_.Root();
    const std::string name = Document::NameOf(root);
    if (name == "graphs")
      document_.Fail(
          root,
          "these are the rings and trees that NCCL found (NCCL_GRAPH_DUMP_FILE), not the "
          "machine; let NCCL write that with NCCL_TOPO_DUMP_FILE");
    if (name != "system")
      document_.Fail(root, fmt::format("found <{}>, expected <system> of {}", name, kExpected));
    RefuseTwins(root);
    Number(root, "version", 1, 2);
    if (!root.attribute("version"))
      document_.Fail(root, "<system> has no version, expected 1 or 2");
    for (const pugi::xml_node child : Elements(root)) {
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

  // The elements in `parent`; text between them is refused, as by NCCL.
  std::vector<pugi::xml_node> Elements(pugi::xml_node parent) const {
    std::vector<pugi::xml_node> elements;
    for (const pugi::xml_node child : parent.children()) {
      if (child.type() == pugi::node_pcdata || child.type() == pugi::node_cdata)
        document_.Fail(parent, fmt::format("found the text {} in <{}>, expected only elements",
                                           Quoted(child.value()), Document::NameOf(parent)));
      if (child.type() != pugi::node_element) continue;
      RefuseTwins(child);
      elements.push_back(child);
    }
    return elements;
  }

  void RefuseTwins(pugi::xml_node node) const {
    std::set<std::string_view> seen;
    for (const pugi::xml_attribute attribute : node.attributes())
      if (!seen.insert(attribute.name()).second)
        document_.Fail(node, fmt::format("<{}> has the attribute {} twice", Document::NameOf(node),
                                         Quoted(attribute.name())));
  }

  void LeaveOut(pugi::xml_node node) {
    remarks_.Add(fmt::format("<{}> in <{}> is left out", Document::NameOf(node),
                             Document::NameOf(node.parent())),
                 fmt::format("line {}", document_.LineOf(node)));
  }

  static std::string Text(pugi::xml_node node, const char* attribute) {
    return node.attribute(attribute).value();
  }

  // A whole number, decimal or 0x...; nothing when the attribute is missing or empty.
  std::optional<int64_t> Number(pugi::xml_node node, const char* attribute, int64_t minimum,
                                int64_t maximum) const {
    const std::string text = Text(node, attribute);
    if (text.empty()) return std::nullopt;
    const bool is_hex = text.starts_with("0x");
    const char* const begin = text.data() + (is_hex ? 2 : 0);
    const char* const end = text.data() + text.size();
    int64_t value = 0;
    const auto [stop, fault] = std::from_chars(begin, end, value, is_hex ? 16 : 10);
    const bool is_too_long = fault == std::errc::result_out_of_range;
    if ((fault != std::errc() && !is_too_long) || stop != end)
      document_.Fail(node, fmt::format("{} of <{}> is {}, expected a whole number", attribute,
                                       Document::NameOf(node), Quoted(text)));
    if (is_too_long || value < minimum || value > maximum)
      document_.Fail(node, fmt::format("{} of <{}> is {}, expected {} to {}", attribute,
                                       Document::NameOf(node), Quoted(text), minimum, maximum));
    return value;
  }

  std::optional<uint32_t> Count(pugi::xml_node node, const char* attribute,
                                uint32_t maximum) const {
    const auto number = Number(node, attribute, 0, maximum);
    if (!number) return std::nullopt;
    return static_cast<uint32_t>(*number);
  }

  double Decimal(pugi::xml_node node, const char* attribute, double minimum, double maximum) const {
    const std::string text = Text(node, attribute);
    if (text.empty()) return 0;
    double value = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, fault] = std::from_chars(text.data(), end, value);
    if (fault != std::errc() || stop != end || !(value >= minimum && value <= maximum))
      document_.Fail(node,
                     fmt::format("{} of <{}> is {}, expected a number from {} to {}", attribute,
                                 Document::NameOf(node), Quoted(text), minimum, maximum));
    return value;
  }

  // "0000:1b:00.0" and "00000000:1B:00.0" are the same; what cannot be seen is
  // "fffffff:ffff:ff" to NCCL.
  uint64_t BusId(pugi::xml_node node, const char* attribute) const {
    constexpr size_t kLongest = 16;
    const std::string text = Text(node, attribute);
    std::string digits;
    bool is_right = !text.empty();
    for (const char c : text) {
      if (c == ':' || c == '.') continue;
      is_right = is_right && std::isxdigit(static_cast<unsigned char>(c)) != 0;
      digits += c;
    }
    uint64_t value = 0;
    if (!is_right || digits.empty() || digits.size() > kLongest)
      document_.Fail(node, fmt::format("{} of <{}> is {}, expected a PCI bus id such as "
                                       "\"0000:1b:00.0\"",
                                       attribute, Document::NameOf(node), Quoted(text)));
    std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    return value;
  }

  void ReadCpu(pugi::xml_node node) {
    if (system_.cpus.size() == kMostCpus)
      document_.Fail(node, fmt::format("there are more than {} <cpu>", kMostCpus));
    NcclCpu cpu;
    cpu.line = document_.LineOf(node);
    const auto next = static_cast<uint32_t>(hosts_.size());
    cpu.host = hosts_.emplace(Text(node, "host_hash"), next).first->second;
    const auto numa = Number(node, "numaid", -1, 65535);
    if (!numa) document_.Fail(node, "<cpu> has no numaid");
    cpu.numa = static_cast<int>(*numa);
    const auto [twin, is_new] = numa_lines_.emplace(std::pair(cpu.host, cpu.numa), cpu.line);
    if (!is_new)
      document_.Fail(
          node, fmt::format("NUMA node {} is there already, in line {}", cpu.numa, twin->second));
    cpu.processor.arch = Text(node, "arch");
    cpu.processor.vendor = Text(node, "vendor");
    cpu.processor.family = Count(node, "familyid", 65535);
    cpu.processor.model = Count(node, "modelid", 65535);
    const auto position = static_cast<uint32_t>(system_.cpus.size());
    system_.cpus.push_back(std::move(cpu));
    for (const pugi::xml_node child : Elements(node)) {
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
    pci.bus = BusId(node, "busid");
    pci.bus_text = Printable(Text(node, "busid"));
    const auto [twin, is_new] = bus_lines_.emplace(std::pair(host, pci.bus), pci.line);
    if (!is_new)
      document_.Fail(
          node, fmt::format("bus id {} is there already, in line {}", pci.bus_text, twin->second));
    pci.device_class = Text(node, "class");
    pci.vendor = Text(node, "vendor");
    pci.device = Text(node, "device");
    pci.link_speed = Text(node, "link_speed");
    pci.link_width = Count(node, "link_width", 32).value_or(0);
    pci.cpu = cpu;
    pci.parent = parent;
    const auto position = static_cast<uint32_t>(system_.pcis.size());
    system_.pcis.push_back(std::move(pci));
    for (const pugi::xml_node child : Elements(node)) {
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
      document_.Fail(node, fmt::format("{} is more than one of a GPU, a NIC and a switch with "
                                       "devices behind it",
                                       read.bus_text));
  }

  NcclGpu ReadGpu(pugi::xml_node node, uint32_t host) {
    NcclGpu gpu;
    gpu.line = document_.LineOf(node);
    gpu.dev = Count(node, "dev", kLargestRank);
    gpu.rank = Count(node, "rank", kLargestRank);
    gpu.sm = Count(node, "sm", 9999).value_or(0);
    gpu.gcn = Text(node, "gcn");
    gpu.is_without_gdr = Text(node, "gdr") == "0";
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
    for (const pugi::xml_node child : Elements(node)) {
      if (Is(child, "nvlink") || Is(child, "xgmi")) {
        gpu.links.push_back(ReadLink(child));
      } else if (Is(child, "c2c")) {
        constexpr double kLargest = 1e8;  // MB/s of a link
        gpu.c2c_megabytes_per_second +=
            Decimal(child, "bw", 0, kLargest) * Count(child, "count", kMostLinks).value_or(0);
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
    link.target = BusId(node, "target");
    link.target_text = Printable(Text(node, "target"));
    link.target_class = Text(node, "tclass");
    const auto count = Number(node, "count", 1, kMostLinks);
    if (!count) document_.Fail(node, fmt::format("<{}> has no count", Document::NameOf(node)));
    link.count = static_cast<uint32_t>(*count);
    return link;
  }

  void ReadNic(pugi::xml_node node, uint32_t cpu, std::vector<NcclNet>& nets) {
    for (const pugi::xml_node child : Elements(node)) {
      if (!Is(child, "net")) {
        LeaveOut(child);
        continue;
      }
      if (++net_count_ > kMostDevices)
        document_.Fail(child, fmt::format("there are more than {} <net>", kMostDevices));
      NcclNet net;
      net.line = document_.LineOf(child);
      net.name = Printable(Text(child, "name"));
      net.dev = Count(child, "dev", kLargestRank);
      // Some NICs say -1, and NCCL takes that like nothing.
      const double speed = Decimal(child, "speed", -1, kFastestNet);
      net.megabits = std::max(speed, 0.0);
      constexpr double kLongest = 1e6;
      net.latency = Seconds(Decimal(child, "latency", 0, kLongest) / 1e6);
      net.is_without_gdr = Text(child, "gdr") == "0";
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
    bool is_said;  // that it is there again
  };

  const Document document_;
  Remarks& remarks_;
  NcclSystem system_;
  uint32_t net_count_ = 0;
  std::map<std::string, uint32_t> hosts_;
  // Where each was seen first; by host, as machines number their own.
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
