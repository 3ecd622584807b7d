#include "tools/foreign/machines/fabric_plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "tools/foreign/machines/switch_blocks.h"
#include "topology/presets/standard_machine.h"

namespace rehearse {
namespace {

class PlanDrawing {
 public:
  PlanDrawing(const FabricPlan& plan, const NodeTemplate& node, Remarks remarks,
              const std::string& file)
      : plan_(plan),
        node_(node),
        remarks_(std::move(remarks)),
        file_(file),
        blocks_(plan),
        cluster_(ClusterNameOf(file)) {}

  ImportedCluster Draw(const char* what) {
    if (plan_.nodes.empty()) throw Error({file_, 0, ""}, "there is no node in this fabric");
    CheckSize();
    SumTrunks();
    const uint32_t device = cluster_.AddDeviceSpec(node_.device);
    AddSwitches();
    AddTrunks();
    for (const FabricPlan::Node& node : plan_.nodes) AddNode(node, device);
    cluster_.set_network_plugin(FindNetworkPlugin(node_.network_plugin));
    SayWhatIsNotCarried();
    ImportedCluster imported;
    imported.remarks = remarks_.Lines();
    cluster_.AddNote(fmt::format("Imported from {}, {}; nodes are those of {}.", Printable(file_),
                                 what, node_.preset));
    for (const std::string& remark : imported.remarks) cluster_.AddNote(remark);
    imported.cluster = FinishImported(cluster_, file_);
    return imported;
  }

 private:
  [[noreturn]] void Fail(int line, const std::string& message) const {
    throw Error({file_, line, ""}, message);
  }

  void CheckSize() const {
    constexpr uint64_t kMost = 400'000;  // what a cluster file can hold and still be read back
    const uint64_t nodes = plan_.nodes.size();
    const uint64_t parts = node_.shape.parts.size();
    const uint64_t links = (node_.shape.wires.size() + 1) / 2 + node_.shape.ports.size();
    if (nodes * (parts + links) + plan_.trunks.size() > kMost)
      Fail(0, fmt::format(
                  "found {} nodes, each with the {} parts and {} links of a {}; a drawn cluster "
                  "has at most {} of either. A larger one is described by {{\"node\": \"{}\", "
                  "\"nodes\": {}, \"fabric\": ...}}",
                  nodes, parts, links, node_.preset, kMost, node_.preset, nodes));
  }

  // Between blocks, and whether members of a block are cabled alike.
  void SumTrunks() {
    std::vector<std::map<uint32_t, double>> down(plan_.switches.size());  // by block below
    for (const FabricPlan::Trunk& trunk : plan_.trunks) {
      uint32_t low = trunk.a;
      uint32_t high = trunk.b;
      if (blocks_.LevelOf(low) > blocks_.LevelOf(high)) std::swap(low, high);
      const uint32_t from = blocks_.BlockOf(low);
      const uint32_t to = blocks_.BlockOf(high);
      if (from == kNoBlock || to == kNoBlock || from == to) continue;
      BytesPerSecond& sum = sums_[std::minmax(from, to)];
      sum += trunk.bandwidth;
      if (blocks_.LevelOf(low) < blocks_.LevelOf(high))
        down[high][from] += trunk.bandwidth.value();
      else
        are_level_ = true;
    }
    for (const std::vector<uint32_t>& members : blocks_.members()) {
      const auto differs = [&](uint32_t member) { return down[member] != down[members.front()]; };
      if (std::any_of(members.begin(), members.end(), differs))
        remarks_.Add(
            "drawn as one switch although its members' cables differ: what crosses it is spread as "
            "if any of them could carry what another lacks",
            NameOf(members));
    }
  }

  // "spine0", or "spine0+7" of eight.
  std::string NameOf(const std::vector<uint32_t>& members) const {
    const std::string& first = plan_.switches[members.front()].name;
    return members.size() == 1 ? first : fmt::format("{}+{}", first, members.size() - 1);
  }

  void AddSwitches() {
    for (uint32_t i = 0; i < plan_.switches.size(); ++i) {
      const FabricPlan::Switch& one = plan_.switches[i];
      RefuseTwin(switch_lines_, one.name, one.line);
      if (blocks_.BlockOf(i) == kNoBlock)
        remarks_.Add("a switch that no node reaches is left out", one.name);
    }
    for (const std::vector<uint32_t>& members : blocks_.members()) {
      const std::string name = NameOf(members);
      vertices_.push_back(cluster_.AddVertex({name, VertexKind::kSwitch, ""}));
      if (members.size() > 1)
        remarks_.Add(
            "switches that join the same others, drawn as one (the first's name + how many more): "
            "what crosses them is spread evenly, which adaptive routing and spraying come close to",
            name);
    }
  }

  void RefuseTwin(std::map<std::string, int>& lines, const std::string& name, int line) const {
    const auto [twin, is_new] = lines.emplace(name, line);
    if (!is_new)
      Fail(line, fmt::format("there is another {} in line {}", Quoted(name), twin->second));
  }

  void AddTrunks() {
    ClusterLink link = node_.shape.ports.front().cable;  // for its efficiency
    link.kind = LinkKind::kNetwork;
    link.latency = Seconds(0);
    for (const auto& [ends, bandwidth] : sums_) {
      link.bandwidth = bandwidth;
      cluster_.AddLinks(vertices_[ends.first], vertices_[ends.second], link);
    }
  }

  void AddNode(const FabricPlan::Node& node, uint32_t device) {
    RefuseTwin(node_lines_, node.name, node.line);
    const VertexId first = cluster_.vertex_count();
    for (const NodeShape::Part& part : node_.shape.parts)
      cluster_.AddVertex({fmt::format("{}/{}", node.name, part.name), part.kind, node.name},
                         device);
    for (const NodeShape::Wire& wire : node_.shape.wires)
      cluster_.AddLink(first + wire.from, first + wire.to, wire.link);
    std::set<uint32_t> at;
    for (const FabricPlan::Port& port : node.ports) {
      ClusterLink cable = node_.shape.ports[port.port].cable;
      cable.bandwidth = port.bandwidth;
      const uint32_t block = blocks_.BlockOf(port.to);
      cluster_.AddLinks(first + node_.shape.ports[port.port].part, vertices_[block], cable);
      at.insert(block);
    }
    have_rails_ = have_rails_ || at.size() > 1;
  }

  void SayWhatIsNotCarried() {
    if (are_level_)
      remarks_.Add(
          "switches of one level are cabled to each other: between two nodes only the way over the "
          "fewest of them is taken, never a longer one");
    if (have_rails_)
      remarks_.Add(
          "nodes are cabled to several switches: traffic to another rail crosses the fabric, where "
          "NCCL's PXN would take NVLink first");
  }

  const FabricPlan& plan_;
  const NodeTemplate& node_;
  Remarks remarks_;
  const std::string file_;
  const SwitchBlocks blocks_;
  ClusterBuilder cluster_;
  std::map<std::pair<uint32_t, uint32_t>, BytesPerSecond> sums_;  // by the two blocks
  std::vector<VertexId> vertices_;                                // of each block
  std::map<std::string, int> switch_lines_;                       // by name
  std::map<std::string, int> node_lines_;
  bool are_level_ = false;
  bool have_rails_ = false;
};

}  // namespace

NodeTemplate NodeTemplateOf(const std::string& preset, Remarks& remarks) {
  if (preset.empty())
    remarks.Add(
        fmt::format("the file does not mention GPUs; every node is taken for a {} (--node names "
                    "another preset)",
                    kAssumedNode));
  const ClusterPreset& known = FindPreset(preset.empty() ? kAssumedNode : preset, {});
  const MachineSpec spec = StandardMachine(known);
  NodeTemplate node = {.preset = known.name,
                       .shape = DrawNode(spec.node),
                       .device = FindDevice(known.device),
                       .network_plugin = spec.network_plugin,
                       .bandwidth = {}};
  if (node.shape.ports.empty())
    throw Error(
        fmt::format("--node: a machine of \"{}\" has nothing to cable, expected "
                    "a preset with NICs (rehearse list clusters)",
                    known.name));
  for (const NodeShape::Port& port : node.shape.ports) node.bandwidth += port.cable.bandwidth;
  return node;
}

ImportedCluster DrawPlan(const FabricPlan& plan, const NodeTemplate& node, Remarks remarks,
                         const std::string& file, const char* what) {
  return PlanDrawing(plan, node, std::move(remarks), file).Draw(what);
}

std::string PlanName(std::string_view text) {
  std::string name = Printable(text);
  for (char& c : name) {
    const bool is_plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
                          (c >= 'a' && c <= 'z') || c == '.' || c == '_' || c == '-';
    if (!is_plain) c = '-';
  }
  return name.empty() ? "unnamed" : name;
}

}  // namespace rehearse
