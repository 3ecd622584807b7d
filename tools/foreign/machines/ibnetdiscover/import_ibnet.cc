#include "tools/foreign/machines/ibnetdiscover/import_ibnet.h"

#include <algorithm>
#include <compare>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "tools/foreign/machines/fabric_plan.h"
#include "tools/foreign/machines/host_filter.h"
#include "tools/foreign/machines/ibnetdiscover/ibnet_file.h"

namespace rehearse {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Numbers in names count as such: "mlx5_2" is before "mlx5_10".
bool ComesBefore(std::string_view a, std::string_view b) {
  const auto take_number = [](std::string_view* text) {
    size_t end = 0;
    while (end < text->size() && IsDigit((*text)[end])) ++end;
    std::string_view digits = text->substr(0, end);
    text->remove_prefix(end);
    while (digits.size() > 1 && digits[0] == '0') digits.remove_prefix(1);
    return digits;
  };
  const std::string_view whole_a = a;
  const std::string_view whole_b = b;
  while (!a.empty() && !b.empty()) {
    if (IsDigit(a[0]) && IsDigit(b[0])) {
      const std::string_view x = take_number(&a);
      const std::string_view y = take_number(&b);
      if (x.size() != y.size()) return x.size() < y.size();
      if (x != y) return x < y;
      continue;
    }
    if (a[0] != b[0]) return a[0] < b[0];
    a.remove_prefix(1);
    b.remove_prefix(1);
  }
  return a.size() != b.size() ? a.size() < b.size() : whole_a < whole_b;
}
struct InOrder {
  bool operator()(const std::string& a, const std::string& b) const { return ComesBefore(a, b); }
};

// "MF0;leaf01:MQM8700/U1" is leaf01; for a chassis, whose parts share that name, a part.
std::string SystemOf(const std::string& description) {
  const size_t begin = description.find(';');
  const size_t end = description.rfind(':');
  if (begin == std::string::npos || end == std::string::npos || end <= begin + 1)
    return description;
  return description.substr(begin + 1, end - begin - 1);
}

class IbImporter {
 public:
  IbImporter(std::string_view text, const std::string& file, const std::string& node,
             const HostFilter& filter)
      : file_(file),
        filter_(filter),
        kind_(NodeTemplateOf(node, remarks_)),
        nodes_(ReadIbnetdiscover(text, file, remarks_)) {}

  ImportedCluster Import() {
    FindNics();
    AddSwitches();
    AddHosts();
    return DrawPlan(plan_, kind_, std::move(remarks_), file_, "the output of ibnetdiscover");
  }

 private:
  using Kind = IbNode::Kind;

  // Finds the NICs of the node, each with the first of its ports.
  void FindNics() {
    for (uint32_t i = 0; i < kind_.shape.ports.size(); ++i)
      if (i == 0 || kind_.shape.ports[i].part != kind_.shape.ports[i - 1].part)
        first_ports_.push_back(i);
  }

  void AddSwitches() {
    std::map<std::string, uint32_t> counts;
    for (const IbNode& node : nodes_)
      if (node.kind == Kind::kSwitch) ++counts[PlanName(SystemOf(node.description))];
    planned_.resize(nodes_.size());
    for (uint32_t i = 0; i < nodes_.size(); ++i) {
      const IbNode& node = nodes_[i];
      if (node.kind == Kind::kRouter) remarks_.Add("a router is left out", node.id);
      if (node.kind != Kind::kSwitch) continue;
      const std::string name = PlanName(SystemOf(node.description));
      const bool is_its_own = !node.description.empty() && counts[name] == 1;
      planned_[i] = static_cast<uint32_t>(plan_.switches.size());
      plan_.switches.push_back({is_its_own ? name : PlanName(node.id), node.line});
    }
    for (uint32_t i = 0; i < nodes_.size(); ++i) {
      if (nodes_[i].kind != Kind::kSwitch) continue;
      for (const IbPort& port : nodes_[i].ports) {
        // Added from one of its two ends only; a cable back to the same switch joins nothing.
        if (nodes_[port.peer].kind == Kind::kSwitch && i < port.peer)
          plan_.trunks.push_back({planned_[i], planned_[port.peer], RateOf(port, 0)});
      }
    }
  }

  BytesPerSecond RateOf(const IbPort& port, uint32_t of_node) const {
    return port.bandwidth.value_or(kind_.shape.ports[of_node].cable.bandwidth);
  }

  using Hosts = std::map<std::string, std::vector<uint32_t>, InOrder>;  // their adapters

  // Hosts that the user does not want; without a word of his, those whose name says that they serve
  // others, and those with one or two adapters where the others have many.
  void LeaveOutHosts(Hosts* hosts) {
    Hosts kept;
    std::map<size_t, size_t> times;  // by how many adapters
    for (const auto& [name, adapters] : *hosts) {
      if (!filter_.Takes(name)) continue;
      kept.emplace(name, adapters);
      ++times[adapters.size()];
    }
    if (kept.empty()) {
      if (!filter_.is_given() || hosts->empty()) return;
      throw Error({file_, 0, ""}, fmt::format("--hosts takes none of the {} hosts, such as {}",
                                              hosts->size(), Quoted(hosts->begin()->first)));
    }
    size_t usual = 0;
    for (const auto& [adapters, count] : times)
      if (times.count(usual) == 0 || count >= times.at(usual)) usual = adapters;
    constexpr size_t kMany = 4;
    constexpr size_t kFew = 2;
    for (const auto& [name, adapters] : *hosts) {
      if (!kept.contains(name)) {
        remarks_.Add(filter_.is_given()
                         ? "left out: --hosts does not name it"
                         : "left out: by its name it serves others and has no GPU (--hosts '*' "
                           "keeps all)",
                     name);
      } else if (!filter_.is_given() && usual >= kMany && adapters.size() <= kFew) {
        remarks_.Add(fmt::format("left out: few adapters where most hosts have {} (--hosts '*' "
                                 "keeps all)",
                                 usual),
                     name);
        kept.erase(name);
      }
    }
    *hosts = std::move(kept);
  }

  void AddHosts() {
    Hosts hosts;
    for (uint32_t i = 0; i < nodes_.size(); ++i) {
      if (nodes_[i].kind != Kind::kAdapter) continue;
      const std::string& description = nodes_[i].description;
      const bool is_nobodys = description.empty() ||
                              description.find("Aggregation Node") != std::string::npos ||
                              description.find("Technologies") != std::string::npos;
      if (is_nobodys) {
        remarks_.Add("an adapter that names no host is left out", nodes_[i].id);
        continue;
      }
      const size_t begin = std::min(description.find_first_not_of(" '"), description.size());
      const size_t end = description.find_first_of(" '", begin);
      hosts[PlanName(description.substr(begin, end - begin))].push_back(i);
    }
    LeaveOutHosts(&hosts);
    if (hosts.size() > kMostPlannedNodes)
      throw Error({file_, 0, ""}, fmt::format("found {} hosts, expected at most {}", hosts.size(),
                                              kMostPlannedNodes));
    for (auto& [name, adapters] : hosts) AddHost(name, adapters);
  }

  void AddHost(const std::string& name, std::vector<uint32_t>& adapters) {
    std::sort(adapters.begin(), adapters.end(), [&](uint32_t a, uint32_t b) {
      const IbNode& x = nodes_[a];
      const IbNode& y = nodes_[b];
      return x.description == y.description ? x.id < y.id
                                            : ComesBefore(x.description, y.description);
    });
    FabricPlan::Node host = {name, nodes_[adapters.front()].line, {}};
    if (adapters.size() > first_ports_.size())
      throw Error(
          {file_, host.line, ""},
          fmt::format("host {} has {} adapters, but a {} has {} NICs; name a preset that has "
                      "as many (--node, see rehearse list clusters)",
                      Quoted(name), adapters.size(), kind_.preset, first_ports_.size()));
    if (adapters.size() < first_ports_.size())
      remarks_.Add(fmt::format("{} adapters, fewer than the {} NICs of a {}; the first NICs are "
                               "cabled, the others are not",
                               adapters.size(), first_ports_.size(), kind_.preset),
                   name);
    for (size_t i = 0; i < adapters.size(); ++i) {
      const uint32_t port = first_ports_[i];
      for (const IbPort& cable : nodes_[adapters[i]].ports) {
        if (nodes_[cable.peer].kind == Kind::kSwitch)
          host.ports.push_back({port, planned_[cable.peer], RateOf(cable, port)});
        else
          remarks_.Add("a cable to another adapter or to a router is left out",
                       nodes_[adapters[i]].id);
      }
    }
    if (host.ports.empty()) {
      remarks_.Add("a host that no switch is cabled to is left out", name);
      return;
    }
    plan_.nodes.push_back(std::move(host));
  }

  const std::string file_;
  const HostFilter filter_;
  Remarks remarks_;
  const NodeTemplate kind_;
  const std::vector<IbNode> nodes_;
  std::vector<uint32_t> first_ports_;  // of each NIC of the node
  std::vector<uint32_t> planned_;      // by position, if it is a switch
  FabricPlan plan_;
};

}  // namespace

ImportedCluster ImportIbnetdiscover(std::string_view text, const std::string& file,
                                    const std::string& node, const HostFilter& hosts) {
  return IbImporter(text, file, node, hosts).Import();
}

}  // namespace rehearse
