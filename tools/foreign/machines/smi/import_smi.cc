#include "tools/foreign/machines/smi/import_smi.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "tools/foreign/machines/import_rates.h"
#include "tools/foreign/machines/smi/link_listing.h"
#include "tools/foreign/machines/smi/rocm_topology.h"

namespace rehearse {
namespace {

constexpr const char* kSmiOutput = "the output of nvidia-smi topo -m, or of rocm-smi --showtopo";
constexpr uint32_t kMostSmiDevices = 256;
constexpr uint32_t kMostSmiLinks = 64;  // of one pair

// From near to far. kNvLink says nothing about PCIe.
enum class Relation : uint8_t { kSelf, kPix, kPxb, kPhb, kNode, kSys, kNvLink };

struct Cell {
  Relation relation = Relation::kSelf;
  uint32_t nvlinks = 0;

  friend bool operator==(const Cell&, const Cell&) = default;
};

constexpr std::array<std::pair<std::string_view, Relation>, 7> kRelations = {
    {{"X", Relation::kSelf},
     {"PIX", Relation::kPix},
     {"PXB", Relation::kPxb},
     {"PHB", Relation::kPhb},
     {"NODE", Relation::kNode},
     {"SYS", Relation::kSys},
     {"SOC", Relation::kSys}}};

struct Device {
  std::string name;  // as in the table
  bool is_gpu = false;
  int line = 0;          // of its row
  std::string affinity;  // of CPU and NUMA node; "" if not given
  std::vector<Cell> cells;
};

struct Table {
  int header_line = 0;
  std::vector<Device> devices;
};

std::string_view NameOf(Cell cell) {
  for (const auto& [name, relation] : kRelations)
    if (relation == cell.relation) return name;
  return "NV";
}

// ---- Reading the table --------------------------------------------------------------------------

struct Line {
  int number = 0;
  std::vector<std::string> words;
};

// Words between blanks; a terminal's colours (ESC [ ... m) are skipped.
std::vector<Line> LinesOf(std::string_view text) {
  std::vector<Line> lines;
  Line line{1, {}};
  std::string word;
  const auto end_word = [&] {
    if (!word.empty()) line.words.push_back(std::move(word));
    word.clear();
  };
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\x1b') {
      const size_t end = text.find('m', i);
      constexpr size_t kLongest = 8;
      if (end != std::string_view::npos && end - i <= kLongest) i = end;
    } else if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
      end_word();
      if (c != '\n') continue;
      const int next = line.number + 1;
      if (!line.words.empty() && !line.words[0].starts_with('#')) lines.push_back(std::move(line));
      line = {next, {}};
    } else {
      word += c;
    }
  }
  end_word();
  if (!line.words.empty() && !line.words[0].starts_with('#')) lines.push_back(std::move(line));
  return lines;
}

std::optional<uint32_t> ParseCount(std::string_view digits) {
  uint32_t value = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, fault] = std::from_chars(digits.data(), end, value);
  if (fault != std::errc() || stop != end) return std::nullopt;
  return value;
}

bool IsGpuName(std::string_view name) {
  if (!name.starts_with("GPU")) return false;
  const std::string_view number = name.substr(3);
  return ParseCount(number) && (number == "0" || !number.starts_with('0'));
}

std::optional<Cell> ParseCell(std::string_view word) {
  for (const auto& [name, relation] : kRelations)
    if (name == word) return Cell{relation, 0};
  if (!word.starts_with("NV")) return std::nullopt;
  const auto count = ParseCount(word.substr(2));
  if (!count || *count < 1 || *count > kMostSmiLinks) return std::nullopt;
  return Cell{Relation::kNvLink, *count};
}

class TableReader {
 public:
  TableReader(std::string_view text, const std::string& file) : file_(file) {
    RefuseNonText(text, file, kSmiOutput, Escapes::kAllowed);
    lines_ = LinesOf(text);
  }

  Table Read() {
    const size_t first = ReadHeader();
    const size_t count = table_.devices.size();
    for (size_t i = 0; i < count; ++i) {
      if (first + i >= lines_.size())
        throw Error(
            {file_, lines_.back().number, ""},
            fmt::format("the table ends before the row of {}", Quoted(table_.devices[i].name)));
      ReadRow(lines_[first + i], table_.devices[i]);
    }
    ReadLegend(first + count);
    CheckPairs();
    return std::move(table_);
  }

 private:
  [[noreturn]] void Fail(int line, const std::string& message) const {
    throw Error({file_, line, ""}, message);
  }

  // The first line that begins with a GPU's name and is not a row. Returns the position of the next
  // line.
  size_t ReadHeader() {
    for (size_t i = 0; i < lines_.size(); ++i) {
      const auto& words = lines_[i].words;
      if (!IsGpuName(words[0])) continue;
      if (words.size() > 1 && ParseCell(words[1])) break;  // a row
      table_.header_line = lines_[i].number;
      ReadColumns(lines_[i]);
      return i + 1;
    }
    Fail(lines_.empty() ? 0 : lines_[0].number,
         fmt::format("there is no header line such as \"GPU0 GPU1 NIC0 CPU Affinity\", expected {}",
                     kSmiOutput));
  }

  void ReadColumns(const Line& header) {
    std::set<std::string> names;
    for (size_t i = 0; i < header.words.size(); ++i) {
      const std::string& word = header.words[i];
      if (word == "CPU" || word == "NUMA" || word == "GPU") {
        for (; i < header.words.size(); ++i)
          if (header.words[i] == "Affinity" || header.words[i] == "ID") ++affinity_columns_;
        break;
      }
      if (word.starts_with("GPU") && !IsGpuName(word))
        Fail(header.number,
             fmt::format("found the column {}, expected a GPU with its number", Quoted(word)));
      if (!names.insert(word).second)
        Fail(header.number, fmt::format("there are two columns {}", Quoted(word)));
      if (table_.devices.size() == kMostSmiDevices)
        Fail(header.number, fmt::format("there are more than {} columns", kMostSmiDevices));
      table_.devices.push_back({word, IsGpuName(word), 0, "", {}});
    }
  }

  void ReadRow(const Line& line, Device& device) const {
    const size_t count = table_.devices.size();
    const auto& words = line.words;
    device.line = line.number;
    if (words[0] != device.name)
      Fail(line.number, fmt::format("found the row of {}, expected that of {}, as in the header",
                                    Quoted(words[0]), Quoted(device.name)));
    if (words.size() < 1 + count || words.size() > 1 + count + affinity_columns_)
      Fail(line.number, fmt::format("the row of {} has {} cells, expected {} as the header has",
                                    device.name, words.size() - 1, count));
    for (size_t i = 0; i < count; ++i) {
      const auto cell = ParseCell(words[1 + i]);
      if (!cell)
        Fail(line.number,
             fmt::format("found {} between {} and {}, expected X, NV1 to NV{}, PIX, PXB, PHB, NODE "
                         "or SYS",
                         Quoted(words[1 + i]), device.name, table_.devices[i].name, kMostSmiLinks));
      device.cells.push_back(*cell);
    }
    for (size_t i = 1 + count; i < words.size(); ++i)
      if (words[i] != "N/A") device.affinity += words[i] + " ";
  }

  // "NIC0: mlx5_0".
  void ReadLegend(size_t first) {
    for (size_t i = first; i < lines_.size(); ++i) {
      const auto& words = lines_[i].words;
      if (words.size() != 2 || !words[0].ends_with(':')) continue;
      const std::string_view name(words[0].data(), words[0].size() - 1);
      for (Device& device : table_.devices)
        if (!device.is_gpu && device.name == name)
          device.name = fmt::format("{} {}", name, Printable(words[1]));
    }
  }

  void CheckPairs() const {
    const auto& devices = table_.devices;
    for (size_t i = 0; i < devices.size(); ++i) {
      for (size_t j = 0; j < devices.size(); ++j) {
        const Cell cell = devices[i].cells[j];
        if ((cell.relation == Relation::kSelf) != (i == j))
          Fail(devices[i].line,
               fmt::format(
                   "X stands for a device and itself, but here it is not so between {} and {}",
                   devices[i].name, devices[j].name));
        if (j > i && cell != devices[j].cells[i])
          Fail(devices[j].line,
               fmt::format("the table is not symmetric: {} to {} is not what {} to {} is",
                           devices[j].name, devices[i].name, devices[i].name, devices[j].name));
        if (cell.relation == Relation::kNvLink && !(devices[i].is_gpu && devices[j].is_gpu))
          Fail(devices[i].line, fmt::format("NVLinks between {} and {}, which are not both GPUs",
                                            devices[i].name, devices[j].name));
      }
    }
  }

  const std::string file_;
  std::vector<Line> lines_;
  size_t affinity_columns_ = 0;
  Table table_;
};

// What AMD's tools print, as such a table: who shares a NUMA node is near, and all others far.
Table TableOfRocm(const RocmTopology& topology) {
  Table table;
  for (uint32_t i = 0; i < topology.gpus.size(); ++i) {
    const RocmTopology::Gpu& gpu = topology.gpus[i];
    Device device = {fmt::format("GPU{}", i), true, gpu.line, gpu.numa, {}};
    for (uint32_t j = 0; j < topology.gpus.size(); ++j) {
      const RocmTopology::Gpu& other = topology.gpus[j];
      device.cells.push_back(i == j                                 ? Cell{Relation::kSelf, 0}
                             : gpu.has_xgmi[j] && other.has_xgmi[i] ? Cell{Relation::kNvLink, 1}
                             : gpu.numa == other.numa               ? Cell{Relation::kPhb, 0}
                                                                    : Cell{Relation::kSys, 0});
    }
    table.devices.push_back(std::move(device));
  }
  return table;
}

// ---- Finding the tree ---------------------------------------------------------------------------

// Sets of devices that only grow together.
class Groups {
 public:
  explicit Groups(size_t count) : parents_(count) {
    std::iota(parents_.begin(), parents_.end(), 0u);
  }

  uint32_t Of(uint32_t device) const {
    while (parents_[device] != device) device = parents_[device];
    return device;
  }

  // The smallest member stands for the group.
  void Join(uint32_t a, uint32_t b) {
    const uint32_t first = Of(a);
    const uint32_t second = Of(b);
    parents_[std::max(first, second)] = std::min(first, second);
  }

 private:
  std::vector<uint32_t> parents_;
};

class Importer {
 public:
  Importer(std::string_view text, const std::string& file, const std::string& device)
      : file_(file),
        is_rocm_(IsRocmTopology(text)),
        table_(is_rocm_ ? RocmTable(text, file) : TableReader(text, file).Read()),
        devices_(table_.devices),
        kind_(GpuKindOf(!device.empty() ? device : AssumedDevice())),
        slot_{kind_.gigatransfers, 16},
        cluster_(ClusterNameOf(file)) {
    if (device.empty())
      remarks_.Add(
          fmt::format("the table does not say which GPUs these are; taken for {}", kind_.device));
    if (!IsKnownDevice(kind_.device))
      remarks_.Add(
          fmt::format("peaks of {} are its data sheet's, efficiencies assumed to be those "
                      "of {}",
                      kind_.device, kAssumedDevice));
  }

  ImportedCluster Import() {
    const Groups same_switch = GroupsWithin(Relation::kPix);
    const Groups same_switches = GroupsWithin(Relation::kPxb);
    GroupsWithin(Relation::kPhb);  // only for its check
    const Groups same_node = GroupsWithin(Relation::kNode);
    remarks_.Add(
        fmt::format("the table does not say how fast PCIe is; taken as {:g} GT/s and 16 "
                    "lanes, those of {}",
                    slot_.gigatransfers, kind_.device));
    AddDevices();
    AddSockets(same_node);
    AddTree(same_switch, same_switches, same_node);
    AddNvLinks();
    ImportedCluster imported;
    imported.remarks = remarks_.Lines();
    cluster_.AddNote(fmt::format("Imported from {}, {}.", Printable(file_),
                                 is_rocm_ ? "AMD's tables" : "nvidia-smi topo -m"));
    if (!nic_names_.empty()) cluster_.AddNote(fmt::format("NICs: {}", fmt::join(nic_names_, ", ")));
    for (const std::string& remark : imported.remarks) cluster_.AddNote(remark);
    imported.cluster = FinishImported(cluster_, file_);
    return imported;
  }

 private:
  [[noreturn]] void Fail(int line, const std::string& message) const {
    throw Error({file_, line, ""}, message);
  }

  static Table RocmTable(std::string_view text, const std::string& file) {
    RefuseNonText(text, file, kSmiOutput, Escapes::kAllowed);
    return TableOfRocm(ReadRocmTopology(text, file));
  }
  const char* AssumedDevice() const { return is_rocm_ ? "mi300x" : kAssumedDevice; }

  uint32_t count() const { return static_cast<uint32_t>(devices_.size()); }

  Cell CellOf(uint32_t a, uint32_t b) const { return devices_[a].cells[b]; }

  static bool IsWithin(Cell cell, Relation farthest) {
    return cell.relation != Relation::kNvLink && cell.relation <= farthest;
  }

  // Groups devices that are at most this far from each other. Throws if the table contradicts
  // itself.
  Groups GroupsWithin(Relation farthest) const {
    Groups groups(count());
    for (uint32_t i = 0; i < count(); ++i)
      for (uint32_t j = 0; j < i; ++j)
        if (IsWithin(CellOf(i, j), farthest)) groups.Join(i, j);
    if (farthest == Relation::kNode) JoinByAffinity(groups);
    for (uint32_t i = 0; i < count(); ++i) {
      for (uint32_t j = 0; j < i; ++j) {
        const Cell cell = CellOf(i, j);
        if (cell.relation == Relation::kNvLink || IsWithin(cell, farthest)) continue;
        if (groups.Of(i) == groups.Of(j))
          Fail(devices_[i].line,
               fmt::format("{} and {} are {}, but by way of other devices they are nearer to each "
                           "other",
                           devices_[i].name, devices_[j].name, NameOf(cell)));
      }
    }
    return groups;
  }

  // GPUs with NVLinks between them and the same affinity are in one NUMA node, unless the table has
  // a SYS between two devices that would then be in it: what it says about a pair counts more. A
  // virtual machine may show all processors to all GPUs, and so does a processor that hides its
  // NUMA nodes.
  void JoinByAffinity(Groups& groups) const {
    std::map<std::string, std::vector<uint32_t>> by_affinity;
    for (uint32_t i = 0; i < count(); ++i)
      if (devices_[i].is_gpu) by_affinity[devices_[i].affinity].push_back(i);
    for (const auto& [affinity, gpus] : by_affinity) {
      Groups joined = groups;
      for (const uint32_t gpu : gpus) joined.Join(gpu, gpus[0]);
      if (!HasSysWithin(joined, joined.Of(gpus[0]))) groups = std::move(joined);
    }
  }

  bool HasSysWithin(const Groups& groups, uint32_t group) const {
    for (uint32_t i = 0; i < count(); ++i)
      for (uint32_t j = 0; j < i; ++j)
        if (groups.Of(i) == group && groups.Of(j) == group &&
            CellOf(i, j).relation == Relation::kSys)
          return true;
    return false;
  }

  // ---- Building ---------------------------------------------------------------------------------

  VertexId AddVertex(const std::string& name, VertexKind kind, uint32_t device = 0) {
    return cluster_.AddVertex({"node0/" + name, kind, "node0"}, device);
  }

  // GPUs by their numbers, as that is how NCCL and CUDA rank them.
  void AddDevices() {
    const uint32_t spec = cluster_.AddDeviceSpec(SpecOf(kind_));
    std::map<uint32_t, uint32_t> gpus;
    for (uint32_t i = 0; i < count(); ++i)
      if (devices_[i].is_gpu) gpus[*ParseCount(devices_[i].name.substr(3))] = i;
    vertices_.resize(count());
    for (const auto& [number, i] : gpus)
      vertices_[i] = AddVertex(fmt::format("gpu{}", number), VertexKind::kDevice, spec);
    VertexId fabric = kNoVertex;
    const double megabits = PortOfSlot(slot_);
    for (uint32_t i = 0; i < count(); ++i) {
      if (devices_[i].is_gpu) continue;
      const std::string name = fmt::format("nic{}", nic_names_.size());
      if (nic_names_.empty()) {
        fabric = cluster_.AddVertex({"fabric", VertexKind::kSwitch, ""});
        remarks_.Add(
            fmt::format("the table does not say how fast NICs are; taken as {:g} Gbit/s, "
                        "what such a slot is made for",
                        megabits / 1e3));
      }
      nic_names_.push_back(fmt::format("{} {}", name, Printable(devices_[i].name)));
      vertices_[i] = AddVertex(name, VertexKind::kNic);
      cluster_.AddLinks(vertices_[i], fabric, NetworkPortOf(megabits, Seconds(0)));
    }
  }

  void AddSockets(const Groups& same_node) {
    for (uint32_t i = 0; i < count(); ++i) {
      if (same_node.Of(i) != i) continue;
      const VertexId socket =
          AddVertex(fmt::format("socket{}", sockets_.size()), VertexKind::kSocket);
      for (const auto& [group, other] : sockets_)
        cluster_.AddLinks(other, socket, SocketLinkOf(kUnknownBetweenSockets));
      sockets_[i] = socket;
    }
    if (sockets_.size() > 1)
      remarks_.Add(
          "the table does not say which processors these are; 10 GB/s between NUMA nodes, "
          "NCCL's figure for Intel's Skylake");
  }

  void AddTree(const Groups& same_switch, const Groups& same_switches, const Groups& same_node) {
    std::map<uint32_t, uint32_t> switch_members;            // of a PIX group
    std::map<uint32_t, std::set<uint32_t>> complex_groups;  // of a PXB group: its PIX groups
    for (uint32_t i = 0; i < count(); ++i) {
      ++switch_members[same_switch.Of(i)];
      complex_groups[same_switches.Of(i)].insert(same_switch.Of(i));
    }
    std::map<uint32_t, VertexId> complexes;
    std::map<uint32_t, VertexId> switches;
    uint32_t number = 0;
    const auto add_switch = [&](VertexId parent) {
      const VertexId vertex = AddVertex(fmt::format("pcie{}", number++), VertexKind::kPcieSwitch);
      cluster_.AddLinks(vertex, parent, PcieLinkOf(slot_, kPcieSwitchUplink));
      return vertex;
    };
    for (uint32_t i = 0; i < count(); ++i) {
      VertexId parent = sockets_.at(same_node.Of(i));
      const uint32_t complex = same_switches.Of(i);
      const bool is_of_many = complex_groups.at(complex).size() > 1;
      if (is_of_many) {
        if (complexes.count(complex) == 0) complexes[complex] = add_switch(parent);
        parent = complexes.at(complex);
      }
      const uint32_t group = same_switch.Of(i);
      if (is_of_many || switch_members.at(group) > 1) {
        if (switches.count(group) == 0) switches[group] = add_switch(parent);
        parent = switches.at(group);
      }
      cluster_.AddLinks(vertices_[i], parent, UplinkOf(devices_[i].is_gpu));
    }
  }

  // Grace and its GPUs are joined by NVLink-C2C, 450 GB/s each way, whatever the table calls near.
  ClusterLink UplinkOf(bool is_gpu) {
    if (!is_gpu || kind_.host == HostLink::kPcie)
      return PcieLinkOf(slot_, is_gpu ? kGpuUplink : kNicUplink);
    remarks_.Add(fmt::format("a {} is joined to its processor by NVLink-C2C, 450 GB/s each way",
                             kind_.device));
    ClusterLink link;
    link.kind = LinkKind::kNvLink;
    link.bandwidth = BytesPerSecond(450e9);
    link.latency = kGpuUplink;
    return link;
  }

  // ---- NVLink -----------------------------------------------------------------------------------

  void AddNvLinks() {
    Groups linked(count());
    for (uint32_t i = 0; i < count(); ++i)
      for (uint32_t j = 0; j < i; ++j)
        if (CellOf(i, j).relation == Relation::kNvLink) linked.Join(i, j);
    std::map<uint32_t, std::vector<uint32_t>> groups;
    for (uint32_t i = 0; i < count(); ++i) groups[linked.Of(i)].push_back(i);
    if (is_rocm_ && groups.size() < count())
      remarks_.Add(
          "the table does not say how many xGMI links join two GPUs; taken as one each way");
    for (const auto& [first, members] : groups) {
      if (members.size() == 1) continue;
      const uint32_t links = SameLinksOfAllPairs(members);
      if (kind_.sm > 0 && links > 0 && links * (members.size() - 1) > kind_.nvlinks)
        AddNvSwitch(members, links);
      else
        AddDirectLinks(members);
    }
  }

  // 0 when there is a pair with another number.
  uint32_t SameLinksOfAllPairs(const std::vector<uint32_t>& members) const {
    const uint32_t links = CellOf(members[0], members[1]).nvlinks;
    for (const uint32_t i : members)
      for (const uint32_t j : members)
        if (i != j && CellOf(i, j).nvlinks != links) return 0;
    return links;
  }

  void AddNvSwitch(const std::vector<uint32_t>& members, uint32_t links) {
    const std::string name = nvswitches_ == 0 ? "nvswitch" : fmt::format("nvswitch{}", nvswitches_);
    ++nvswitches_;
    const VertexId nvswitch = AddVertex(name, VertexKind::kNvSwitch);
    for (const uint32_t i : members)
      cluster_.AddLinks(vertices_[i], nvswitch, NvLinksOf(kind_.sm, links, kNvLinkHop / 2));
    remarks_.Add(
        fmt::format("NV{} between all pairs of {} GPUs is more than a GPU has links; "
                    "taken for an NVSwitch with {} links to each",
                    links, members.size(), links));
    RemarkTooMany(links);
  }

  void AddDirectLinks(const std::vector<uint32_t>& members) {
    for (const uint32_t i : members) {
      uint32_t sum = 0;
      for (const uint32_t j : members) {
        const uint32_t links = CellOf(i, j).nvlinks;
        sum += links;
        if (links > 0 && i < j)
          cluster_.AddLinks(vertices_[i], vertices_[j],
                            kind_.sm > 0 ? NvLinksOf(kind_.sm, links, kNvLinkHop)
                                         : XgmiLinksOf(kind_.gcn, links, kNvLinkHop));
      }
      if (kind_.sm > 0) RemarkTooMany(sum);
    }
  }

  void RemarkTooMany(uint32_t links) {
    if (links > kind_.nvlinks)
      remarks_.Add(fmt::format("{} NVLinks of a GPU, but {} has {}: name the device that it is",
                               links, kind_.device, kind_.nvlinks));
  }

  const std::string file_;
  const bool is_rocm_;
  Remarks remarks_;
  const Table table_;
  const std::vector<Device>& devices_;
  const GpuKind kind_;
  const PcieSlot slot_;
  ClusterBuilder cluster_;
  std::vector<VertexId> vertices_;        // of each device
  std::map<uint32_t, VertexId> sockets_;  // of each NUMA node, by its first device
  std::vector<std::string> nic_names_;
  uint32_t nvswitches_ = 0;
};

}  // namespace

ImportedCluster ImportSmiTopology(std::string_view text, const std::string& file,
                                  const std::string& device) {
  std::optional<LinkListing> listing;
  if (IsNvLinkStatus(text)) listing = ReadNvLinkStatus(text, file, device);
  if (!listing && IsAmdTopologyJson(text)) listing = ReadAmdTopologyJson(text, file);
  if (!listing) return Importer(text, file, device).Import();
  ImportedCluster imported =
      Importer(listing->table, file, listing->device.empty() ? device : listing->device).Import();
  imported.remarks.insert(imported.remarks.begin(), listing->remarks.begin(),
                          listing->remarks.end());
  return imported;
}

}  // namespace rehearse
