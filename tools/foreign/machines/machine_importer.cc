#include "tools/foreign/machines/machine_importer.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "tools/foreign/machines/import_devices.h"

namespace rehearse {
namespace {

constexpr std::string_view kNvSwitchClass = "0x068000";
constexpr std::string_view kCpuClass = "0x068001";  // a bridge to the processor (POWER9)

enum class Role { kNothing, kSwitch, kGpu, kNic };

bool IsGpuClass(std::string_view text) {
  return text.starts_with("0x03") || text.starts_with("0x12");  // graphics, accelerators
}

// What the links of one GPU add up to.
struct GpuLinks {
  std::map<uint32_t, uint32_t> to_gpu;  // position of the other GPU -> links
  uint32_t to_switch = 0;
  uint32_t to_cpu = 0;
  bool is_xgmi = false;
};

class MachineImporter {
 public:
  MachineImporter(NcclSystem system, Remarks remarks, const std::string& file,
                  const std::string& device)
      : file_(file),
        remarks_(std::move(remarks)),
        system_(std::move(system)),
        cluster_(ClusterNameOf(file)) {
    if (!device.empty()) chosen_kind_ = GpuKindOf(device);
  }

  ImportedCluster Import(const char* what) {
    AssignRoles();
    RankGpus();
    for (const uint32_t position : gpus_) kinds_.push_back(KindOf(system_.pcis[position]));
    ReadGpuLinks();
    AddGpus();
    AddSockets();
    AddTree();
    AddGpuLinks();
    AddNets();
    ImportedCluster imported;
    imported.remarks = remarks_.Lines();
    cluster_.AddNote(fmt::format("Imported from {}, {}.", Printable(file_), what));
    NoteNames("Devices", gpu_names_);
    NoteNames("NICs", nic_names_);
    for (const std::string& remark : imported.remarks) cluster_.AddNote(remark);
    imported.cluster = FinishImported(cluster_, file_);
    return imported;
  }

 private:
  [[noreturn]] void Fail(int line, const std::string& message) const {
    throw Error({file_, line, ""}, message);
  }

  // A vertex of one machine.
  VertexId AddVertex(uint32_t host, const std::string& name, VertexKind kind, uint32_t device = 0) {
    const std::string node = fmt::format("node{}", host);
    return cluster_.AddVertex({fmt::format("{}/{}", node, name), kind, node}, device);
  }

  uint32_t HostOf(const NcclPci& pci) const { return system_.cpus[pci.cpu].host; }

  // ---- What each PCI device is ------------------------------------------------------------------

  void AssignRoles() {
    const auto& pcis = system_.pcis;
    const bool has_gpu_elements =
        std::any_of(pcis.begin(), pcis.end(), [](const NcclPci& pci) { return pci.gpu; });
    const bool has_ranks = std::any_of(pcis.begin(), pcis.end(),
                                       [](const NcclPci& pci) { return pci.gpu && pci.gpu->rank; });
    for (const NcclPci& pci : pcis) {
      Role role = Role::kNothing;
      if (pci.gpu && has_ranks && !pci.gpu->rank) {
        remarks_.Add("no rank, which others have; left out, as by NCCL", pci.bus_text);
      } else if (pci.gpu) {
        role = Role::kGpu;
      } else if (pci.is_nic || (pci.device_class.starts_with("0x02") && !pci.has_children)) {
        role = Role::kNic;
      } else if (pci.has_children) {
        role = Role::kSwitch;
      } else if (IsGpuClass(pci.device_class)) {
        role = has_gpu_elements ? Role::kNothing : Role::kGpu;
        if (has_gpu_elements)
          remarks_.Add("a GPU without <gpu>, which others have; left out, as by NCCL",
                       pci.bus_text);
      } else if (!pci.device_class.empty() && pci.device_class != kNvSwitchClass) {
        remarks_.Add("a PCI device that is not a GPU, NIC or switch is left out", pci.bus_text);
      }
      roles_.push_back(role);
    }
    GuessClasses(has_gpu_elements);
    LeaveOutIdleSwitches();
  }

  // Devices without a class. NCCL asks the machine; here they are taken for GPUs, equally many
  // under every NUMA node, and those left over at the end of a node for NICs.
  void GuessClasses(bool has_gpu_elements) {
    std::map<uint32_t, std::vector<uint32_t>> by_cpu;
    for (uint32_t i = 0; i < system_.pcis.size(); ++i) {
      const NcclPci& pci = system_.pcis[i];
      if (!pci.device_class.empty() || pci.gpu || pci.is_nic || pci.has_children) continue;
      by_cpu[pci.cpu].push_back(i);
    }
    size_t gpus = std::numeric_limits<size_t>::max();
    for (const auto& [cpu, devices] : by_cpu) gpus = std::min(gpus, devices.size());
    // More than a machine has GPUs: files of clouds may list NICs only, since NCCL finds the rest.
    constexpr size_t kMostOfMachine = 16;
    if (!has_gpu_elements && !by_cpu.empty() && gpus * by_cpu.size() > kMostOfMachine) {
      Fail(0, fmt::format("{} PCI devices have no class, and nothing says which of them are GPUs; "
                          "expected what NCCL writes on the machine itself "
                          "(NCCL_TOPO_DUMP_FILE)",
                          gpus * by_cpu.size()));
    }
    for (const auto& [cpu, devices] : by_cpu) {
      for (size_t i = 0; i < devices.size(); ++i) {
        const std::string& name = system_.pcis[devices[i]].bus_text;
        if (has_gpu_elements) {
          remarks_.Add("no class; left out", name);
          continue;
        }
        roles_[devices[i]] = i < gpus ? Role::kGpu : Role::kNic;
        if (i < gpus)
          remarks_.Add("no class; guessed to be a GPU", name);
        else
          remarks_.Add(
              "no class; guessed to be a NIC, as it is the last and one more than other NUMA nodes "
              "have",
              name);
      }
    }
  }

  void LeaveOutIdleSwitches() {
    std::vector<bool> is_used(roles_.size(), false);
    for (size_t i = roles_.size(); i-- > 0;) {  // children come after their parents
      if (roles_[i] == Role::kGpu || roles_[i] == Role::kNic) is_used[i] = true;
      if (is_used[i] && system_.pcis[i].parent) is_used[*system_.pcis[i].parent] = true;
      if (is_used[i] || roles_[i] != Role::kSwitch) continue;
      roles_[i] = Role::kNothing;
      remarks_.Add("a PCIe switch without GPU and NIC behind it is left out",
                   system_.pcis[i].bus_text);
    }
  }

  // ---- GPUs -------------------------------------------------------------------------------------

  void RankGpus() {
    for (uint32_t i = 0; i < roles_.size(); ++i)
      if (roles_[i] == Role::kGpu) gpus_.push_back(i);
    if (gpus_.empty()) Fail(0, "there is no GPU in this machine");
    constexpr size_t kMostGpus = 1024;
    if (gpus_.size() > kMostGpus)
      Fail(0, fmt::format("there are {} GPUs, expected at most {}", gpus_.size(), kMostGpus));
    const auto gpu_of = [&](uint32_t pci) { return system_.pcis[pci].gpu.value_or(NcclGpu()); };
    const auto all = [&](const auto& has) { return std::all_of(gpus_.begin(), gpus_.end(), has); };
    const bool have_ranks = all([&](uint32_t pci) { return gpu_of(pci).rank.has_value(); });
    have_devs_ = all([&](uint32_t pci) { return gpu_of(pci).dev.has_value(); });
    const auto order = [&](uint32_t pci) {
      const NcclGpu gpu = gpu_of(pci);
      return std::tuple(have_ranks ? *gpu.rank : 0u, HostOf(system_.pcis[pci]),
                        have_devs_ ? *gpu.dev : 0u, system_.pcis[pci].bus);
    };
    std::sort(gpus_.begin(), gpus_.end(),
              [&](uint32_t a, uint32_t b) { return order(a) < order(b); });
    if (!have_ranks)
      remarks_.Add(have_devs_ ? "no GPU has a rank; ranked by dev"
                              : "no GPU has a rank; ranked by bus id, as NVML numbers GPUs");
    for (uint32_t i = 0; i < gpus_.size(); ++i) gpu_by_bus_[KeyOf(gpus_[i])] = i;
  }

  std::pair<uint32_t, uint64_t> KeyOf(uint32_t pci) const {
    return {HostOf(system_.pcis[pci]), system_.pcis[pci].bus};
  }

  GpuKind KindOf(const NcclPci& pci) {
    if (chosen_kind_) return *chosen_kind_;
    const NcclGpu gpu = pci.gpu.value_or(NcclGpu());
    const auto known = FindGpuKind(pci.vendor, pci.device, gpu.sm, gpu.gcn);
    if (known && !known->is_of_family) return *known;
    if (const auto kind = FindGpuKindOfModel(gpu.model)) return *kind;
    if (known) {
      if (!pci.device.empty()) {
        remarks_.Add(fmt::format("its PCI id {} is not known here; taken for {}, the first of its "
                                 "{}: name the device that it is",
                                 Printable(pci.device), known->device,
                                 known->sm > 0 ? "compute capability" : "architecture"),
                     pci.bus_text);
      }
      return *known;
    }
    remarks_.Add(fmt::format("nothing that is known here says which GPU this is; taken for {}",
                             kAssumedDevice),
                 pci.bus_text);
    return GpuKindOf(kAssumedDevice);
  }

  void AddGpus() {
    std::map<std::string, uint32_t> specs;
    std::map<uint32_t, uint32_t> numbers;  // by host
    for (uint32_t i = 0; i < gpus_.size(); ++i) {
      const NcclPci& pci = system_.pcis[gpus_[i]];
      const GpuKind& kind = kinds_[i];
      const uint32_t parts = pci.gpu ? pci.gpu->parts : 1;
      const DeviceSpec own = PartOf(SpecOf(kind), parts);
      auto spec = specs.find(own.name);
      if (spec == specs.end()) spec = specs.emplace(own.name, cluster_.AddDeviceSpec(own)).first;
      const uint32_t number = have_devs_ ? *pci.gpu->dev : numbers[HostOf(pci)]++;
      const std::string name = fmt::format("gpu{}", number);
      gpu_names_.push_back(fmt::format("{} {}", name, pci.bus_text));
      gpu_vertices_.push_back(AddVertex(HostOf(pci), name, VertexKind::kDevice, spec->second));
      if (!IsKnownDevice(kind.device))
        remarks_.Add(fmt::format("peaks of {} are its data sheet's, efficiencies assumed to be "
                                 "those of {}",
                                 kind.device, kAssumedDevice),
                     name);
      if (parts > 1)
        remarks_.Add(fmt::format("one of {} partitions of {}: that part of its peaks, memory and "
                                 "bandwidth",
                                 parts, kind.device),
                     name);
      if (pci.gpu && pci.gpu->is_without_gdr)
        remarks_.Add(
            "no GPUDirect (gdr is 0); not modelled, traffic goes straight "
            "between GPU and NIC",
            name);
      if (kind.is_geforce)
        remarks_.Add(
            "GeForce boards have no peer-to-peer over PCIe unless their driver is "
            "patched; here they have it",
            name);
    }
    const bool has_links = std::any_of(links_.begin(), links_.end(), [](const GpuLinks& links) {
      return links.to_switch > 0 || !links.to_gpu.empty();
    });
    const bool could_have = std::any_of(kinds_.begin(), kinds_.end(),
                                        [](const GpuKind& kind) { return kind.nvlinks > 0; });
    if (gpus_.size() > 1 && !has_links && could_have)
      remarks_.Add(
          "the file has no NVLinks: GPUs talk over PCIe only; if the machine has NVLinks, let NCCL "
          "write the file there (NCCL_TOPO_DUMP_FILE)");
  }

  // ---- NVLink and xGMI --------------------------------------------------------------------------

  void ReadGpuLinks() {
    links_.resize(gpus_.size());
    for (uint32_t i = 0; i < gpus_.size(); ++i) {
      const NcclPci& pci = system_.pcis[gpus_[i]];
      if (!pci.gpu) continue;
      for (const NcclLink& link : pci.gpu->links) ReadGpuLink(i, pci, link);
    }
    for (uint32_t i = 0; i < gpus_.size(); ++i)
      for (const auto& [other, count] : links_[i].to_gpu) CheckSymmetry(i, other, count);
    AssumeGpuLinks();
  }

  // Files of clouds leave NVLinks to NCCL, which finds them on the machine. Eight GPUs of a kind
  // that comes on boards of eight, as the user says that they are, have an NVSwitch there.
  void AssumeGpuLinks() {
    constexpr size_t kOnABoard = 8;
    constexpr uint32_t kOldest = 80;
    const bool has_links = std::any_of(links_.begin(), links_.end(), [](const GpuLinks& links) {
      return links.to_switch > 0 || !links.to_gpu.empty();
    });
    const bool is_board = chosen_kind_ && gpus_.size() == kOnABoard && system_.host_count == 1 &&
                          chosen_kind_->nvlinks > 0 && chosen_kind_->sm >= kOldest &&
                          !chosen_kind_->device.ends_with("-pcie") &&
                          !chosen_kind_->device.ends_with("-nvl");
    if (has_links || !is_board) return;
    for (GpuLinks& links : links_) links.to_switch = chosen_kind_->nvlinks;
    remarks_.Add(fmt::format("the file has no NVLinks; taken as {} of each {} to an NVSwitch",
                             chosen_kind_->nvlinks, chosen_kind_->device));
  }

  void ReadGpuLink(uint32_t gpu, const NcclPci& pci, const NcclLink& link) {
    const auto other = gpu_by_bus_.find({HostOf(pci), link.target});
    std::string target_class = link.target_class;
    if (target_class.empty()) {
      target_class = other != gpu_by_bus_.end() ? "0x0302" : kNvSwitchClass;
      remarks_.Add(fmt::format("a link has no tclass; its other end is taken for {}",
                               other != gpu_by_bus_.end() ? "the GPU with that bus id"
                                                          : "an NVSwitch, as by NCCL"),
                   pci.bus_text);
    }
    links_[gpu].is_xgmi = links_[gpu].is_xgmi || link.is_xgmi;
    constexpr uint32_t kMostLinks = 1024;
    const uint32_t count = link.count > 0 ? link.count
                           : link.is_xgmi ? XgmiLinksThatCarry(kinds_[gpu].gcn, link.megabytes)
                                          : NvLinksThatCarry(kinds_[gpu].sm, link.megabytes);
    const auto add = [&](uint32_t& sum) {
      sum += count;
      if (sum > kMostLinks)
        Fail(link.line, fmt::format("{} has more than {} links", pci.bus_text, kMostLinks));
    };
    if (target_class == kNvSwitchClass) {
      add(links_[gpu].to_switch);
    } else if (target_class == kCpuClass) {
      add(links_[gpu].to_cpu);
    } else if (!IsGpuClass(target_class)) {
      Fail(link.line, fmt::format("a link leads to something of class {}, expected a GPU, an "
                                  "NVSwitch or a processor",
                                  Quoted(target_class)));
    } else if (other == gpu_by_bus_.end()) {
      Fail(link.line, fmt::format("a link leads to {}, but no GPU of this file has that bus id",
                                  Quoted(link.target_text)));
    } else if (other->second == gpu) {
      remarks_.Add("a link that leads back to its own GPU is left out", pci.bus_text);
    } else {
      add(links_[gpu].to_gpu[other->second]);
    }
  }

  void CheckSymmetry(uint32_t gpu, uint32_t other, uint32_t count) const {
    const auto& back = links_[other].to_gpu;
    const auto found = back.find(gpu);
    const uint32_t count_back = found == back.end() ? 0 : found->second;
    const NcclPci& from = system_.pcis[gpus_[gpu]];
    const NcclPci& to = system_.pcis[gpus_[other]];
    if (count_back != count)
      Fail(from.gpu->line, fmt::format("{} has {} links to {}, but that has {} back", from.bus_text,
                                       count, to.bus_text, count_back));
  }

  ClusterLink LinksOf(uint32_t gpu, uint32_t count, Seconds latency) {
    const NcclGpu element = system_.pcis[gpus_[gpu]].gpu.value_or(NcclGpu());
    if (links_[gpu].is_xgmi)
      return XgmiLinksOf(element.gcn.empty() ? kinds_[gpu].gcn : element.gcn, count, latency);
    return NvLinksOf(element.sm > 0 ? element.sm : kinds_[gpu].sm, count, latency);
  }

  void AddGpuLinks() {
    VertexId nvswitch = kNoVertex;
    for (uint32_t i = 0; i < gpus_.size(); ++i) {
      const VertexId gpu = gpu_vertices_[i];
      const NcclPci& pci = system_.pcis[gpus_[i]];
      for (const auto& [other, count] : links_[i].to_gpu) {
        if (other < i) continue;
        cluster_.AddLink(gpu, gpu_vertices_[other], LinksOf(i, count, kNvLinkHop));
        cluster_.AddLink(gpu_vertices_[other], gpu, LinksOf(other, count, kNvLinkHop));
      }
      if (links_[i].to_switch > 0) {
        if (nvswitch == kNoVertex)
          nvswitch = system_.host_count == 1
                         ? AddVertex(0, "nvswitch", VertexKind::kNvSwitch)
                         : cluster_.AddVertex({"nvswitch", VertexKind::kNvSwitch, ""});
        cluster_.AddLinks(gpu, nvswitch, LinksOf(i, links_[i].to_switch, kNvLinkHop / 2));
      }
      const VertexId socket = sockets_[pci.cpu];
      if (links_[i].to_cpu > 0)
        cluster_.AddLinks(gpu, socket, LinksOf(i, links_[i].to_cpu, kNvLinkHop / 2));
      if (pci.gpu && pci.gpu->c2c_megabytes_per_second > 0) {
        ClusterLink link;
        link.kind = LinkKind::kNvLink;
        link.bandwidth = BytesPerSecond(pci.gpu->c2c_megabytes_per_second * 1e6);
        link.latency = kNvLinkHop / 2;
        cluster_.AddLinks(gpu, socket, link);
      }
    }
  }

  // ---- Sockets and PCI --------------------------------------------------------------------------

  void AddSockets() {
    for (const NcclCpu& cpu : system_.cpus)
      sockets_.push_back(AddVertex(
          cpu.host, cpu.numa < 0 ? "numa" : fmt::format("numa{}", cpu.numa), VertexKind::kSocket));
    for (uint32_t i = 0; i < sockets_.size(); ++i) {
      for (uint32_t j = 0; j < sockets_.size(); ++j) {
        if (i >= j || system_.cpus[i].host != system_.cpus[j].host) continue;
        cluster_.AddLink(sockets_[i], sockets_[j], SocketLink(system_.cpus[i]));
        cluster_.AddLink(sockets_[j], sockets_[i], SocketLink(system_.cpus[j]));
      }
    }
  }

  ClusterLink SocketLink(const NcclCpu& cpu) {
    const auto bandwidth = BetweenSockets(cpu.processor);
    if (!bandwidth && doubtful_cpus_.insert(cpu.line).second)
      remarks_.Add(
          "the processor is not given or not known to NCCL; 10 GB/s to other NUMA nodes, as "
          "between Intel's Skylakes",
          fmt::format("NUMA node {}", cpu.numa));
    return SocketLinkOf(bandwidth.value_or(kUnknownBetweenSockets));
  }

  PcieSlot SlotOf(const NcclPci& pci) {
    if (pci.link_gigabytes > 0) return SlotThatCarries(pci.link_gigabytes);
    PcieSlot slot = kUnknownSlot;
    if (const auto speed = ParseGigatransfers(pci.link_speed))
      slot.gigatransfers = *speed;
    else
      remarks_.Add("no link_speed that NCCL knows; taken as 8 GT/s, as by NCCL", pci.bus_text);
    if (pci.link_width > 0)
      slot.lanes = pci.link_width;
    else
      remarks_.Add("no link_width; taken as 16, as by NCCL", pci.bus_text);
    return slot;
  }

  // A program that asks PCI for the current speed may find idle GPUs.
  void RemarkIdle(const NcclPci& pci, PcieSlot slot) {
    constexpr double kIdle = 5;  // GT/s, PCIe 2: no GPU since Pascal has less
    if (pci.link_gigabytes > 0 && slot.gigatransfers <= kIdle)
      remarks_.Add(fmt::format("PCIe at {:g} GB/s, as in the file; idle GPUs slow their links "
                               "down, so have the file written while they are busy",
                               pci.link_gigabytes),
                   pci.bus_text);
  }

  void AddTree() {
    std::vector<VertexId> vertices(roles_.size(), kNoVertex);
    std::map<uint32_t, uint32_t> switches;  // by host
    for (uint32_t i = 0; i < gpus_.size(); ++i) vertices[gpus_[i]] = gpu_vertices_[i];
    for (uint32_t i = 0; i < roles_.size(); ++i) {
      const NcclPci& pci = system_.pcis[i];
      if (roles_[i] == Role::kNothing) continue;
      const VertexId parent = pci.parent ? vertices[*pci.parent] : sockets_[pci.cpu];
      const PcieSlot slot = SlotOf(pci);
      if (roles_[i] == Role::kNic) {
        AddNic(pci, parent, slot);
      } else if (roles_[i] == Role::kGpu) {
        RemarkIdle(pci, slot);
        cluster_.AddLinks(vertices[i], parent, PcieLinkOf(slot, kGpuUplink));
      } else {
        vertices[i] = AddVertex(HostOf(pci), fmt::format("pcie{}", switches[HostOf(pci)]++),
                                VertexKind::kPcieSwitch);
        cluster_.AddLinks(vertices[i], parent, PcieLinkOf(slot, kPcieSwitchUplink));
      }
    }
  }

  // ---- NICs -------------------------------------------------------------------------------------

  struct Nic {
    const NcclNet* net;  // none if the file has only the PCI device
    const NcclPci* pci;  // none if it is on no PCI bus
    uint32_t host;
    VertexId parent;
    ClusterLink uplink;
    double megabits;
  };

  void AddNic(const NcclPci& pci, VertexId parent, PcieSlot slot) {
    const uint32_t host = HostOf(pci);
    const ClusterLink uplink = PcieLinkOf(slot, kNicUplink);
    if (pci.nets.empty()) {
      const double megabits = PortOfSlot(slot);
      remarks_.Add(fmt::format("a NIC without <net>; its port is taken as {:g} Gbit/s, what its "
                               "slot is made for",
                               megabits / 1e3),
                   pci.bus_text);
      nics_.push_back({nullptr, &pci, host, parent, uplink, megabits});
      return;
    }
    if (pci.nets.size() == 1) {
      nics_.push_back({&pci.nets[0], &pci, host, parent, uplink, SpeedOf(pci.nets[0])});
      return;
    }
    // The ports share the card's slot.
    const VertexId card =
        AddVertex(host, fmt::format("card{}", cards_[host]++), VertexKind::kPcieSwitch);
    ClusterLink half = uplink;
    half.latency = uplink.latency / 2;
    cluster_.AddLinks(card, parent, half);
    for (const NcclNet& net : pci.nets)
      nics_.push_back({&net, &pci, host, card, half, SpeedOf(net)});
  }

  double SpeedOf(const NcclNet& net) {
    constexpr double kNcclAssumes = 10e3;
    constexpr double kImplausible = 10e6;
    if (net.megabits == 0) {
      remarks_.Add("no speed; taken as 10 Gbit/s, as by NCCL", net.name);
      return kNcclAssumes;
    }
    if (net.megabits > kImplausible)
      remarks_.Add(
          fmt::format("speed {:.0f} Mbit/s cannot be true, but is taken as it is, as by NCCL",
                      net.megabits),
          net.name);
    return net.megabits;
  }

  void AddNets() {
    for (uint32_t i = 0; i < sockets_.size(); ++i) {
      constexpr double kNcclLocal = 5000e9;  // what NCCL gives a NIC that is on no PCI bus
      for (const NcclNet& net : system_.cpus[i].nets) {
        ClusterLink uplink;
        uplink.kind = LinkKind::kPcie;
        uplink.bandwidth = BytesPerSecond(kNcclLocal);
        uplink.latency = kNicUplink;
        remarks_.Add("on no PCI bus; 5000 GB/s to its NUMA node, as by NCCL", net.name);
        nics_.push_back({&net, nullptr, system_.cpus[i].host, sockets_[i], uplink, SpeedOf(net)});
      }
    }
    if (nics_.empty()) return;
    const bool have_devs = std::all_of(nics_.begin(), nics_.end(), [](const Nic& nic) {
      return nic.net != nullptr && nic.net->dev;
    });
    if (have_devs)
      std::sort(nics_.begin(), nics_.end(), [](const Nic& a, const Nic& b) {
        return std::pair(a.host, *a.net->dev) < std::pair(b.host, *b.net->dev);
      });
    const VertexId fabric = cluster_.AddVertex({"fabric", VertexKind::kSwitch, ""});
    std::map<uint32_t, uint32_t> numbers;  // by host
    for (const Nic& nic : nics_) {
      const uint32_t number = have_devs ? *nic.net->dev : numbers[nic.host]++;
      const std::string name = fmt::format("nic{}", number);
      nic_names_.push_back(fmt::format("{} {}", name,
                                       nic.net != nullptr && !nic.net->name.empty() ? nic.net->name
                                       : nic.pci != nullptr ? nic.pci->bus_text
                                                            : "without name"));
      const VertexId vertex = AddVertex(nic.host, name, VertexKind::kNic);
      cluster_.AddLinks(vertex, nic.parent, nic.uplink);
      const Seconds latency = nic.net != nullptr ? nic.net->latency : Seconds(0);
      cluster_.AddLinks(vertex, fabric, NetworkPortOf(nic.megabits, latency));
      if (nic.net != nullptr && nic.net->is_without_gdr)
        remarks_.Add("no GPUDirect (gdr is 0); not modelled", name);
    }
  }

  void NoteNames(const char* what, const std::vector<std::string>& names) {
    constexpr size_t kMost = 64;
    if (names.empty()) return;
    const std::vector<std::string> first(
        names.begin(), names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), kMost)));
    cluster_.AddNote(
        fmt::format("{}: {}{}", what, fmt::join(first, ", "), names.size() > kMost ? " ..." : ""));
  }

  const std::string file_;
  Remarks remarks_;
  const NcclSystem system_;
  ClusterBuilder cluster_;
  std::optional<GpuKind> chosen_kind_;

  std::vector<Role> roles_;                                       // of each PCI device
  std::vector<uint32_t> gpus_;                                    // rank -> PCI device
  bool have_devs_ = false;                                        // all GPUs
  std::map<std::pair<uint32_t, uint64_t>, uint32_t> gpu_by_bus_;  // host and bus id -> rank
  std::vector<GpuLinks> links_;                                   // by rank, like the next two
  std::vector<GpuKind> kinds_;
  std::vector<VertexId> gpu_vertices_;
  std::vector<std::string> gpu_names_;
  std::vector<VertexId> sockets_;       // of each CPU
  std::set<int> doubtful_cpus_;         // lines
  std::map<uint32_t, uint32_t> cards_;  // by host
  std::vector<Nic> nics_;
  std::vector<std::string> nic_names_;
};

}  // namespace

ImportedCluster ImportSystem(NcclSystem system, Remarks remarks, const std::string& file,
                             const char* what, const std::string& device) {
  return MachineImporter(std::move(system), std::move(remarks), file, device).Import(what);
}

}  // namespace rehearse
