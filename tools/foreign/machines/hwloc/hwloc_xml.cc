#include "tools/foreign/machines/hwloc/hwloc_xml.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "tools/foreign/machines/xml_document.h"

namespace rehearse {
namespace {

constexpr const char* kHwlocExpected = "hwloc's XML (lstopo --of xml)";
constexpr uint32_t kDeepestObject = 64;
constexpr uint32_t kMostNumaNodes = 256;    // they are linked pairwise
constexpr size_t kMostPciDevices = 10'000;  // GPUs and NICs, and as many bridges
constexpr size_t kMostInMatrix = 1024;      // objects
constexpr uint32_t kNoPlace = std::numeric_limits<uint32_t>::max();

// "0302 [10de:20b0] [10de:134f] a1"
struct PciType {
  std::string device_class;  // "0x030200", as in NCCL's files
  std::string vendor;        // "0x10de"
  std::string device;
};

std::optional<PciType> ParsePciType(std::string_view text) {
  const auto hex = [&](size_t from) {
    const std::string_view digits = text.substr(std::min(from, text.size()), 4);
    const bool is_right =
        digits.size() == 4 && std::all_of(digits.begin(), digits.end(), [](char c) {
          return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
        });
    return is_right ? "0x" + std::string(digits) : std::string();
  };
  PciType type = {hex(0), hex(6), hex(11)};
  if (type.device_class.empty() || type.vendor.empty() || type.device.empty()) return std::nullopt;
  if (text.substr(4, 2) != " [" || text[10] != ':' || text.substr(15, 1) != "]")
    return std::nullopt;
  type.device_class += "00";  // hwloc leaves out the programming interface
  return type;
}

bool IsHwlocGpuClass(const PciType& type) {
  return type.device_class.starts_with("0x03") || type.device_class.starts_with("0x12");
}

// 3 of "nvml3"; nothing for another name.
std::optional<uint32_t> NumberBehind(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return std::nullopt;
  const std::string_view digits = name.substr(prefix.size());
  uint32_t value = 0;
  const auto [stop, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  constexpr uint32_t kLargest = 1'000'000;
  if (fault != std::errc() || stop != digits.data() + digits.size() || value > kLargest)
    return std::nullopt;
  return value;
}

class HwlocReader {
 public:
  HwlocReader(std::string_view text, const std::string& file, Remarks& remarks)
      : document_(text, file, kHwlocExpected, Doctype::kAllowed), remarks_(remarks) {}

  NcclSystem Read() {
    const pugi::xml_node root = document_.Root();
    CheckRoot(root);
    for (const pugi::xml_node child : root.children())
      if (Is(child, "object")) Visit(child, {}, 1);
    ReadMatrices(root);
    AddDevices();
    system_.host_count = 1;
    return std::move(system_);
  }

 private:
  static bool Is(pugi::xml_node node, std::string_view element) { return node.name() == element; }
  static bool IsObject(pugi::xml_node node, std::string_view type) {
    return Is(node, "object") && type == node.attribute("type").value();
  }

  // ---- The tree ---------------------------------------------------------------------------------

  // Where an object hangs.
  struct Place {
    pugi::xml_node locality;     // the last object that is not a bridge or device
    uint32_t bridge = kNoPlace;  // position of the switch above
    uint32_t bridges = 0;        // behind each other, from the host bridge on
    double port_gigabytes = 0;   // of the bridge right above, if it is a port
  };

  struct Bridge {
    pugi::xml_node node;
    Place place;
    uint32_t position = kNoPlace;  // among the system's devices, once something is behind it
  };

  struct Device {
    pugi::xml_node node;
    Place place;
    PciType type;
    uint64_t bus = 0;
    std::vector<pugi::xml_node> names = {};  // OSDev
    std::vector<NcclLink> links = {};
    uint32_t part = 0;  // of `parts` partitions of one GPU
    uint32_t parts = 1;
  };

  // hwloc names NVSwitches that the driver tells it of, whatever PCI says of them in a container.
  static bool IsNvSwitch(const Device& device) {
    return (device.type.device_class == "0x068000" && device.type.vendor == "0x10de") ||
           device.node.attribute("subtype").value() == std::string_view("NVSwitch");
  }

  void CheckRoot(pugi::xml_node root) const {
    const std::string name = XmlDocument::NameOf(root);
    if (name == "system")
      document_.Fail(
          root,
          fmt::format(
              "found <system> of NCCL's topology XML, expected {}; this one is of kind \"nccl\"",
              kHwlocExpected));
    if (name != "topology")
      document_.Fail(root,
                     fmt::format("found <{}>, expected <topology> of {}", name, kHwlocExpected));
    document_.RefuseTwins(root);
    const std::string version = XmlDocument::Text(root, "version");
    if (!version.empty() && !version.starts_with("1.") && !version.starts_with("2."))
      document_.Fail(root, fmt::format("version of <topology> is {}, expected 1 or 2 (lstopo "
                                       "--export-xml-flags writes older ones)",
                                       Quoted(version)));
  }

  void Visit(pugi::xml_node node, Place place, uint32_t depth) {
    if (depth > kDeepestObject)
      document_.Fail(node, fmt::format("<object> is nested more than {} deep", kDeepestObject));
    document_.RefuseTwins(node);
    const std::string type = XmlDocument::Text(node, "type");
    if (type.empty()) document_.Fail(node, "<object> has no type");
    if (type == "Bridge") {
      place = BehindBridge(node, place);
    } else if (type == "PCIDev") {
      AddFound(node, place);
      return;
    } else if (type == "NUMANode") {
      AddNumaNode(node);
      place.locality = node;
    } else if (type != "OSDev" && type != "Misc") {
      place.locality = node;
    }
    for (const pugi::xml_node child : node.children())
      if (Is(child, "object")) Visit(child, place, depth + 1);
  }

  Place BehindBridge(pugi::xml_node node, Place place) {
    const std::string type = XmlDocument::Text(node, "bridge_type");
    if (type != "0-1" && type != "1-1")
      document_.Fail(node, fmt::format("bridge_type of <object> is {}, expected \"0-1\" or \"1-1\"",
                                       Quoted(type)));
    if (type == "0-1") return {.locality = place.locality};
    const double gigabytes = SpeedOf(node);
    ++place.bridges;
    if (place.bridges % 2 == 1) {
      place.port_gigabytes = gigabytes;
      return place;
    }
    if (bridges_.size() == kMostPciDevices)
      document_.Fail(node, fmt::format("there are more than {} bridges", kMostPciDevices));
    const auto position = static_cast<uint32_t>(bridges_.size());
    bridges_.push_back({.node = node, .place = place});
    place.bridge = position;
    place.port_gigabytes = 0;
    return place;
  }

  double SpeedOf(pugi::xml_node node) const {
    constexpr double kFastest = 1e4;
    return document_.Decimal(node, "pci_link_speed", 0, kFastest);
  }

  void AddFound(pugi::xml_node node, const Place& place) {
    const std::string text = XmlDocument::Text(node, "pci_type");
    const auto type = ParsePciType(text);
    if (!type)
      document_.Fail(node,
                     fmt::format("pci_type of <object> is {}, expected a class and ids such as "
                                 "\"0302 [10de:20b0] [10de:134f] a1\"",
                                 Quoted(text)));
    if (devices_.size() == kMostPciDevices)
      document_.Fail(node, fmt::format("there are more than {} PCI devices", kMostPciDevices));
    Device device = {.node = node, .place = place, .type = *type};
    device.bus = document_.BusId(node, "pci_busid");
    const auto position = static_cast<uint32_t>(devices_.size());
    RememberIndex(node, position);
    const std::vector<pugi::xml_node> parts = PartitionsIn(node);
    if (parts.size() < 2) {
      AddNames(node, position, device);
      devices_.push_back(std::move(device));
      return;
    }
    device.parts = static_cast<uint32_t>(parts.size());
    for (const pugi::xml_node part : parts) {
      document_.RefuseTwins(part);
      RememberIndex(part, static_cast<uint32_t>(devices_.size()));
      device.names = {part};
      devices_.push_back(device);
      ++device.part;
    }
  }

  // AMD's driver shows each partition of a GPU (CPX, DPX) as a device of its own.
  static std::vector<pugi::xml_node> PartitionsIn(pugi::xml_node pci) {
    std::vector<pugi::xml_node> parts;
    for (const pugi::xml_node child : pci.children())
      if (IsObject(child, "OSDev") && NumberBehind(child.attribute("name").value(), "rsmi"))
        parts.push_back(child);
    return parts;
  }

  // What the system calls it; a name may follow another.
  void AddNames(pugi::xml_node parent, uint32_t position, Device& device) {
    for (pugi::xml_node child : parent.children()) {
      if (!IsObject(child, "OSDev")) continue;
      document_.RefuseTwins(child);
      RememberIndex(child, position);
      device.names.push_back(child);
    }
  }

  void RememberIndex(pugi::xml_node node, uint32_t position) {
    const auto index = document_.Number(node, "gp_index", 0, std::numeric_limits<int64_t>::max());
    if (!index) return;
    const auto [twin, is_new] = by_index_.emplace(static_cast<uint64_t>(*index), position);
    if (!is_new && twin->second != position)
      document_.Fail(node, fmt::format("gp_index {} appears already in line {}", *index,
                                       document_.LineOf(devices_[twin->second].node)));
  }

  void AddNumaNode(pugi::xml_node node) {
    if (numa_nodes_.size() == kMostNumaNodes)
      document_.Fail(node, fmt::format("there are more than {} NUMA nodes", kMostNumaNodes));
    // Memory without processors (of GPUs, or HBM) is not where PCI hangs.
    const std::string processors = XmlDocument::Text(node, "cpuset");
    if (!processors.empty() && processors.find_first_not_of("0x,") == std::string::npos) return;
    numa_nodes_.push_back(node);
  }

  // ---- NUMA nodes -------------------------------------------------------------------------------

  static bool IsWithin(pugi::xml_node node, pugi::xml_node ancestor) {
    for (; node; node = node.parent())
      if (node == ancestor) return true;
    return false;
  }

  // Position of the NUMA node that is nearest to an object, which becomes a <cpu>.
  uint32_t CpuOf(const Device& device) {
    const pugi::xml_node locality = device.place.locality;
    const auto known = cpu_of_locality_.find(locality.offset_debug());
    if (known != cpu_of_locality_.end()) return known->second;
    pugi::xml_node numa;
    for (pugi::xml_node near = locality; near && !numa; near = near.parent()) {
      uint32_t within = 0;
      for (const pugi::xml_node candidate : numa_nodes_) {
        if (!IsWithin(candidate, near)) continue;
        if (within++ == 0) numa = candidate;
      }
      if (within > 1)
        remarks_.Add(fmt::format("equally near {} NUMA nodes; taken to hang on the first", within),
                     BusText(device.node));
    }
    const uint32_t cpu = AddCpu(numa, numa ? numa : locality);
    cpu_of_locality_[locality.offset_debug()] = cpu;
    return cpu;
  }

  // `numa` may be null: a machine of one node, as version 1 writes it.
  uint32_t AddCpu(pugi::xml_node numa, pugi::xml_node from) {
    const uint32_t numa_line = numa ? static_cast<uint32_t>(document_.LineOf(numa)) : 0;
    const auto [known, is_new] = cpus_.emplace(numa ? numa.offset_debug() : -1, 0u);
    if (!is_new) return known->second;
    NcclCpu cpu;
    cpu.line = static_cast<int>(numa_line);
    cpu.numa = numa ? static_cast<int>(document_.Count(numa, "os_index", 65535).value_or(0)) : 0;
    for (const NcclCpu& other : system_.cpus)
      if (other.numa == cpu.numa)
        document_.Fail(
            numa, fmt::format("NUMA node {} appears already in line {}", cpu.numa, other.line));
    cpu.processor = ProcessorOf(from);
    known->second = static_cast<uint32_t>(system_.cpus.size());
    system_.cpus.push_back(std::move(cpu));
    return known->second;
  }

  static std::string Info(pugi::xml_node object, std::string_view name) {
    for (const pugi::xml_node info : object.children("info"))
      if (name == info.attribute("name").value()) return info.attribute("value").value();
    return "";
  }

  // The holder of the object, or the nearest around it, or in it, or anywhere.
  pugi::xml_node HolderOf(pugi::xml_node object, std::string_view name) const {
    const auto has = [&](pugi::xml_node node) { return !Info(node, name).empty(); };
    for (pugi::xml_node near = object; near; near = near.parent())
      if (has(near)) return near;
    if (const pugi::xml_node inside = object.find_node(has)) return inside;
    return document_.Root().find_node(has);
  }

  static std::optional<uint32_t> ShortNumber(const std::string& text) {
    constexpr uint32_t kLargest = 65535;
    const auto value = NumberBehind(text, "");
    return value && *value <= kLargest ? value : std::nullopt;
  }

  ProcessorKind ProcessorOf(pugi::xml_node object) const {
    ProcessorKind processor;
    if (const pugi::xml_node holder = HolderOf(object, "CPUVendor")) {
      processor.vendor = Info(holder, "CPUVendor");
      processor.family = ShortNumber(Info(holder, "CPUFamilyNumber"));
      processor.model = ShortNumber(Info(holder, "CPUModelNumber"));
    }
    std::string arch = Info(HolderOf(object, "Architecture"), "Architecture");
    if (arch == "aarch64") arch = "arm64";  // in NCCL's words
    if (arch.starts_with("ppc64")) arch = "ppc64";
    processor.arch = arch;
    return processor;
  }

  // ---- Links between GPUs -----------------------------------------------------------------------

  void ReadMatrices(pugi::xml_node root) {
    std::set<std::string> seen;
    for (const pugi::xml_node child : root.children()) {
      if (!Is(child, "distances2") && !Is(child, "distances2hetero")) continue;
      document_.RefuseTwins(child);
      const std::string name = XmlDocument::Text(child, "name");
      const bool is_xgmi = name == "XGMIBandwidth";
      if (!is_xgmi && name != "NVLinkBandwidth") {
        if (name.ends_with("Bandwidth")) remarks_.Add(fmt::format("{} is left out", Quoted(name)));
        continue;
      }
      if (!seen.insert(name).second)
        document_.Fail(child, fmt::format("there is a second matrix {}", Quoted(name)));
      ReadMatrix(child, is_xgmi);
    }
  }

  // Words in all <indexes> or all <u64values>, which come in portions.
  std::vector<std::string> WordsIn(pugi::xml_node matrix, const char* element) const {
    std::vector<std::string> words;
    for (const pugi::xml_node part : matrix.children(element)) {
      const std::string_view text = part.child_value();
      size_t begin = 0;
      while ((begin = text.find_first_not_of(" \t\r\n", begin)) != std::string_view::npos) {
        const size_t end = std::min(text.find_first_of(" \t\r\n", begin), text.size());
        words.emplace_back(text.substr(begin, end - begin));
        begin = end;
      }
    }
    return words;
  }

  uint64_t WholeNumber(pugi::xml_node matrix, std::string_view word, const char* what) const {
    uint64_t value = 0;
    const auto [stop, fault] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (fault != std::errc() || stop != word.data() + word.size())
      document_.Fail(
          matrix, fmt::format("found {} among <{}>, expected a whole number", Quoted(word), what));
    return value;
  }

  void ReadMatrix(pugi::xml_node matrix, bool is_xgmi) {
    const std::vector<std::string> indexes = WordsIn(matrix, "indexes");
    const std::vector<std::string> values = WordsIn(matrix, "u64values");
    const auto count = document_.Count(matrix, "nbobjs", kMostInMatrix);
    if (!count) document_.Fail(matrix, "the matrix has no nbobjs");
    if (indexes.size() != *count || values.size() != size_t{*count} * *count)
      document_.Fail(
          matrix,
          fmt::format("found {} indexes and {} values, expected {} and {} according to nbobjs",
                      indexes.size(), values.size(), *count, size_t{*count} * *count));
    const bool is_by_system = XmlDocument::Text(matrix, "indexing") == "os";
    std::vector<uint32_t> devices;  // kNoPlace: not on PCI, a processor
    for (const std::string& index : indexes) {
      const size_t colon = index.find(':');
      const std::string type =
          colon == std::string::npos ? XmlDocument::Text(matrix, "type") : index.substr(0, colon);
      const uint64_t number = WholeNumber(
          matrix, std::string_view(index).substr(colon == std::string::npos ? 0 : colon + 1),
          "indexes");
      const auto found = by_index_.find(number);
      const bool is_known = found != by_index_.end() && !is_by_system;
      if (!is_known && (type == "OSDev" || type == "PCIDev"))
        document_.Fail(matrix, fmt::format("index {} belongs to no device in this file", number));
      devices.push_back(is_known ? found->second : kNoPlace);
    }
    for (size_t from = 0; from < devices.size(); ++from) {
      for (size_t to = 0; to < devices.size(); ++to) {
        const uint64_t megabytes =
            WholeNumber(matrix, values[from * devices.size() + to], "u64values");
        if (from != to && megabytes > 0 && devices[from] != kNoPlace)
          AddLink(matrix, devices[from], devices[to], megabytes, is_xgmi);
      }
    }
  }

  void AddLink(pugi::xml_node matrix, uint32_t from, uint32_t to, uint64_t megabytes,
               bool is_xgmi) {
    constexpr uint64_t kMost = 10'000'000;
    if (megabytes > kMost)
      document_.Fail(matrix, fmt::format("found {} MB/s between two devices, expected at most {}",
                                         megabytes, kMost));
    if (!IsHwlocGpuClass(devices_[from].type) || from == to) return;  // seen from the GPU
    NcclLink link;
    link.line = document_.LineOf(matrix);
    link.is_xgmi = is_xgmi;
    link.megabytes = static_cast<double>(megabytes);
    if (to == kNoPlace) {
      link.target_class = "0x068001";
    } else {
      link.target = BusOf(devices_[to]);
      link.target_text = BusText(devices_[to].node);
      link.target_class = IsNvSwitch(devices_[to]) ? "0x068000" : devices_[to].type.device_class;
    }
    devices_[from].links.push_back(std::move(link));
  }

  // ---- Devices ----------------------------------------------------------------------------------

  static std::string BusText(pugi::xml_node node) {
    return Printable(XmlDocument::Text(node, "pci_busid"));
  }

  // Partitions of a GPU are at its bus id; here each has one that no device can have.
  static uint64_t BusOf(const Device& device) {
    constexpr uint32_t kAbove = 48;
    return device.parts < 2 ? device.bus : device.bus | (uint64_t{device.part} + 1) << kAbove;
  }

  // The number of its first name with such a prefix.
  static std::optional<uint32_t> NumberOf(const Device& device, std::string_view prefix) {
    for (const pugi::xml_node name : device.names)
      if (const auto number = NumberBehind(name.attribute("name").value(), prefix)) return number;
    return std::nullopt;
  }

  static bool HasGpuName(const Device& device) {
    for (const std::string_view prefix : {"nvml", "cuda", "rsmi", "ze"})
      if (NumberOf(device, prefix)) return true;
    return false;
  }

  static bool IsGpu(const Device& device) {
    if (HasGpuName(device)) return true;
    return IsHwlocGpuClass(device.type) &&
           (device.type.vendor == "0x10de" || device.type.vendor == "0x1002");
  }

  // hwloc's OpenFabrics, which are InfiniBand, RoCE and EFA.
  static pugi::xml_node FabricName(const Device& device) {
    for (const pugi::xml_node name : device.names)
      if (name.attribute("osdev_type").value() == std::string_view("3") ||
          name.attribute("subtype").value() == std::string_view("OpenFabrics"))
        return name;
    return {};
  }
  static bool IsOnFabric(const Device& device) {
    return device.type.device_class.starts_with("0x0207") || FabricName(device);
  }

  void AddDevices() {
    const auto any = [&](const auto& is) {
      return std::any_of(devices_.begin(), devices_.end(), is);
    };
    const bool have_names = any(HasGpuName);
    const bool have_fabrics = any(IsOnFabric);
    const char* prefix = nullptr;  // GPUs are ranked by its numbers
    for (const char* candidate : {"nvml", "rsmi", "cuda", "ze"}) {
      const bool all = have_names && !any([&](const Device& device) {
                         return HasGpuName(device) && !NumberOf(device, candidate);
                       });
      if (all && prefix == nullptr) prefix = candidate;
    }
    for (const Device& device : devices_) {
      const bool is_network = device.type.device_class.starts_with("0x02");
      if (IsGpu(device) && (HasGpuName(device) || !have_names)) {
        AddGpu(device, prefix);
      } else if (IsGpu(device)) {
        remarks_.Add("a GPU without a driver, which others have; left out", BusText(device.node));
      } else if (is_network && (!have_fabrics || IsOnFabric(device))) {
        AddNic(device);
      } else if (is_network) {
        remarks_.Add("an Ethernet NIC beside InfiniBand or RoCE NICs is left out",
                     BusText(device.node));
      } else if (!IsNvSwitch(device)) {
        remarks_.Add("a PCI device that is not a GPU, NIC or switch is left out",
                     BusText(device.node));
      }
    }
  }

  uint32_t AddPci(pugi::xml_node node, uint32_t cpu, uint32_t bridge, double gigabytes) {
    NcclPci pci;
    pci.line = document_.LineOf(node);
    pci.bus = document_.BusId(node, "pci_busid");
    pci.bus_text = BusText(node);
    const auto [twin, is_new] = bus_lines_.emplace(pci.bus, pci.line);
    if (!is_new)
      document_.Fail(
          node, fmt::format("bus id {} appears already in line {}", pci.bus_text, twin->second));
    pci.cpu = cpu;
    pci.link_gigabytes = gigabytes;
    if (bridge != kNoPlace) pci.parent = bridges_[bridge].position;
    system_.pcis.push_back(std::move(pci));
    return static_cast<uint32_t>(system_.pcis.size() - 1);
  }

  // With the switches above it, from the top.
  NcclPci& AddPciOf(const Device& device) {
    const uint32_t cpu = CpuOf(device);
    std::vector<uint32_t> above;
    for (uint32_t i = device.place.bridge; i != kNoPlace; i = bridges_[i].place.bridge)
      if (bridges_[i].position == kNoPlace) above.push_back(i);
    for (; !above.empty(); above.pop_back()) {
      Bridge& bridge = bridges_[above.back()];
      bridge.position = AddPci(bridge.node, cpu, bridge.place.bridge,
                               std::max(SpeedOf(bridge.node), bridge.place.port_gigabytes));
      system_.pcis[bridge.position].device_class = "0x060400";
      system_.pcis[bridge.position].has_children = true;
    }
    const double gigabytes = std::max(SpeedOf(device.node), device.place.port_gigabytes);
    uint32_t position = 0;
    if (device.parts < 2) {
      position = AddPci(device.node, cpu, device.place.bridge, gigabytes);
    } else {
      // The partitions share their GPU's slot, as devices behind a switch do.
      const auto [whole, is_new] = wholes_.emplace(device.bus, 0u);
      if (is_new) {
        whole->second = AddPci(device.node, cpu, device.place.bridge, gigabytes);
        system_.pcis[whole->second].device_class = "0x060400";
        system_.pcis[whole->second].has_children = true;
      }
      position = static_cast<uint32_t>(system_.pcis.size());
      NcclPci part = system_.pcis[whole->second];
      part.has_children = false;
      part.bus = BusOf(device);
      part.bus_text += fmt::format(" partition {}", device.part);
      part.parent = whole->second;
      system_.pcis.push_back(std::move(part));
    }
    NcclPci& pci = system_.pcis[position];
    pci.device_class = device.type.device_class;
    pci.vendor = device.type.vendor;
    pci.device = device.type.device;
    return pci;
  }

  void AddGpu(const Device& device, const char* prefix) {
    NcclPci& pci = AddPciOf(device);
    NcclGpu gpu;
    gpu.line = pci.line;
    if (prefix != nullptr) {
      const uint32_t number = *NumberOf(device, prefix);
      gpu.dev = gpu.rank = number;
      const auto [twin, is_new] = gpu_lines_.emplace(number, gpu.line);
      if (!is_new)
        document_.Fail(device.node, fmt::format("there is another GPU {}{}, in line {}", prefix,
                                                number, twin->second));
    }
    for (const pugi::xml_node name : device.names) {
      const std::string model = Info(name, "GPUModel");
      if (!model.empty() && gpu.model.empty()) gpu.model = model;
    }
    gpu.links = device.links;
    gpu.parts = device.parts;
    pci.gpu = std::move(gpu);
  }

  // A port that is down has a state other than 4 of the InfiniBand specification. If there are no
  // states, all ports count.
  static bool IsDown(pugi::xml_node fabric) {
    bool has_state = false;
    for (const pugi::xml_node info : fabric.children("info")) {
      const std::string_view name = info.attribute("name").value();
      if (!name.starts_with("Port") || !name.ends_with("State")) continue;
      has_state = true;
      if (std::string_view(info.attribute("value").value()).starts_with("4")) return false;
    }
    return has_state;
  }

  void AddNic(const Device& device) {
    const pugi::xml_node fabric = FabricName(device);
    const std::string bus = BusText(device.node);
    if (fabric && IsDown(fabric)) {
      remarks_.Add("none of its ports is active; left out, as by NCCL", bus);
      return;
    }
    NcclPci& pci = AddPciOf(device);
    pci.is_nic = true;
    NcclNet net;
    net.line = pci.line;
    pugi::xml_node name = fabric;
    if (!name && !device.names.empty()) name = device.names.front();
    net.name = name ? Printable(name.attribute("name").value()) : bus;
    net.megabits = StatedSpeed(device);
    if (net.megabits == 0) {
      const PcieSlot slot =
          pci.link_gigabytes > 0 ? SlotThatCarries(pci.link_gigabytes) : kUnknownSlot;
      net.megabits = PortOfSlot(slot);
      remarks_.Add(
          fmt::format("hwloc does not say how fast its port is; taken as {:g} Gbit/s, what "
                      "its slot is made for",
                      net.megabits / 1e3),
          net.name);
    }
    pci.nets.push_back(std::move(net));
  }

  // From <info name="Speed">, in Mbit/s as the system gives it; 0 if there is none.
  static double StatedSpeed(const Device& device) {
    for (const pugi::xml_node name : device.names)
      if (const auto speed = NumberBehind(Info(name, "Speed"), "")) return *speed;
    return 0;
  }

  const XmlDocument document_;
  Remarks& remarks_;
  NcclSystem system_;
  std::vector<Bridge> bridges_;
  std::vector<Device> devices_;
  std::vector<pugi::xml_node> numa_nodes_;
  std::map<uint64_t, uint32_t> by_index_;               // gp_index -> device
  std::map<std::ptrdiff_t, uint32_t> cpu_of_locality_;  // by the place in the file
  std::map<std::ptrdiff_t, uint32_t> cpus_;             // likewise, of NUMA nodes
  std::map<uint64_t, int> bus_lines_;
  std::map<uint64_t, uint32_t> wholes_;  // GPUs with partitions, by bus id: their positions
  std::map<uint32_t, int> gpu_lines_;
};

}  // namespace

NcclSystem ReadHwlocXml(std::string_view text, const std::string& file, Remarks& remarks) {
  RefuseNonText(text, file, kHwlocExpected, Escapes::kRefused);
  return HwlocReader(text, file, remarks).Read();
}

}  // namespace rehearse
