#include "topology/view/tier_contents.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "sim/base/error.h"

namespace rehearse {
namespace {

// Lengths are in pixels.
constexpr double kDeviceWidth = 54;
constexpr double kPartWidth = 50;
constexpr double kBlockWidth = 52;
constexpr double kDotPitch = 11;
constexpr uint32_t kDotRows = 4;
constexpr uint32_t kMostAcross = 32;

constexpr int kPcieRow = 100;  // one more for each level of a tree, up to the sockets
constexpr int kSocketRow = 200;
constexpr int kPcieToNicsRow = 300;
constexpr int kNicRow = 400;

constexpr uint32_t kMostBlocks = 32;
constexpr size_t kMostGroups = 8;  // of a dragonfly
constexpr size_t kFewSwitches = 8;
constexpr uint32_t kMostSwitches = 48;  // of one tier

// The part of a name that tells it from its neighbours: "gpu1" of "node0/gpu1".
std::string ShortName(const Vertex& vertex) {
  const std::string prefix = vertex.node + "/";
  if (!vertex.node.empty() && vertex.name.starts_with(prefix))
    return vertex.name.substr(prefix.size());
  return vertex.name;
}

class TierCollector {
 public:
  using Item = TierContents::Item;
  using Node = TierContents::Node;
  using Bundle = TierContents::Bundle;

  explicit TierCollector(const Cluster& cluster)
      : cluster_(cluster), item_of_(cluster.vertex_count(), kNone) {
    tiers_.in_detail = cluster.device_count() <= kMostInDetail;
  }

  TierContents Run() {
    CollectItems();
    CollectLinks();
    FindFabricTiers();
    JoinTwins();
    JoinGroups();
    StackPcieTrees();
    DropCrowds();
    return std::move(tiers_);
  }

 private:
  static constexpr size_t kNone = static_cast<size_t>(-1);

  static bool IsFabric(const Vertex& vertex) {
    return vertex.node.empty() &&
           (vertex.kind == VertexKind::kSwitch || vertex.kind == VertexKind::kNvSwitch);
  }

  // The rows of a node, from the bottom. PCIe switches of a tree lie above each other.
  static int RowOf(VertexKind kind) {
    switch (kind) {
      case VertexKind::kNvSwitch:
        return kNvSwitchRow;
      case VertexKind::kDevice:
        return kDeviceRow;
      case VertexKind::kPcieSwitch:
        return kPcieRow;
      case VertexKind::kSocket:
        return kSocketRow;
      case VertexKind::kSwitch:
        return kSocketRow + 1;
      case VertexKind::kNic:
        return kNicRow;
    }
    CHECK(false);
  }

  Node& NodeNamed(const std::string& name) {
    const auto [entry, is_new] = node_of_name_.emplace(name, tiers_.nodes.size());
    if (is_new) tiers_.nodes.push_back({name, {}});
    return tiers_.nodes[entry->second];
  }

  void CollectItems() {
    for (VertexId id = 0; id < item_of_.size(); ++id) {
      const Vertex& vertex = cluster_.VertexAt(id);
      Item item;
      item.is_fabric = IsFabric(vertex);
      item.box.kind = vertex.kind;
      item.box.title = vertex.name;
      item.box.label = ShortName(vertex);
      const bool is_device = vertex.kind == VertexKind::kDevice;
      item.box.width = std::max(is_device ? kDeviceWidth : kPartWidth,
                                14 + 6.6 * static_cast<double>(item.box.label.size()));
      item.box.height = is_device ? kTierDeviceHeight : kTierPartHeight;
      item.tier = RowOf(vertex.kind);
      if (item.is_fabric) {
        item_of_[id] = tiers_.items.size();
        tiers_.items.push_back(item);
      } else if (tiers_.in_detail) {
        item_of_[id] = tiers_.items.size();
        NodeNamed(vertex.node).items.push_back(tiers_.items.size());
        tiers_.items.push_back(item);
      } else {
        AddToBlock(id, vertex);
      }
    }
  }

  void AddToBlock(VertexId id, const Vertex& vertex) {
    // Without nodes, every device is a block of its own, and what belongs to no node is left out.
    if (vertex.node.empty() && vertex.kind != VertexKind::kDevice) return;
    Node& node = NodeNamed(vertex.node.empty() ? vertex.name : vertex.node);
    if (node.items.empty()) {
      Item block;
      block.box.width = kBlockWidth;
      block.box.height = kTierBlockHeight;
      block.box.label = node.name;
      block.box.title = node.name;
      block.tier = kDeviceRow;
      node.items.push_back(tiers_.items.size());
      tiers_.items.push_back(block);
    }
    item_of_[id] = node.items.front();
    PlacedBox& box = tiers_.items[item_of_[id]].box;
    box.has_nvswitch = box.has_nvswitch || vertex.kind == VertexKind::kNvSwitch;
    if (vertex.kind != VertexKind::kDevice) return;
    ++box.dots;
    box.dots_across =
        std::clamp((box.dots + kDotRows - 1) / kDotRows, std::min(box.dots, 4u), kMostAcross);
    box.width = std::max(kBlockWidth, kDotPitch * box.dots_across + 8);
  }

  void CollectLinks() {
    std::map<std::tuple<size_t, size_t, LinkKind, double>, size_t> known;
    for (uint32_t i = 0; i < cluster_.link_count(); ++i) {
      const size_t from = item_of_[cluster_.SourceOf(i)];
      const size_t to = item_of_[cluster_.TargetOf(i)];
      if (from == to || from == kNone || to == kNone) continue;
      const ClusterLink& link = cluster_.Link(i);
      const auto [entry, is_new] = known.emplace(
          std::tuple(std::min(from, to), std::max(from, to), link.kind, link.bandwidth.value()),
          tiers_.bundles.size());
      if (is_new)
        tiers_.bundles.push_back(
            {std::min(from, to), std::max(from, to), link.kind, link.bandwidth.value()});
      ++(from < to ? tiers_.bundles[entry->second].there : tiers_.bundles[entry->second].back);
    }
    FindNeighbours();
    tiers_.is_dropped.resize(tiers_.items.size());
  }

  void FindNeighbours() {
    tiers_.neighbours.assign(tiers_.items.size(), {});
    for (const Bundle& bundle : tiers_.bundles) {
      tiers_.neighbours[bundle.a].push_back(bundle.b);
      tiers_.neighbours[bundle.b].push_back(bundle.a);
    }
  }

  // Tier 1 touches a node, tier i+1 touches tier i. NVSwitches that span nodes lie below
  // them, as tier -1.
  void FindFabricTiers() {
    std::vector<size_t> open;
    for (size_t i = 0; i < tiers_.items.size(); ++i) {
      if (!tiers_.items[i].is_fabric) continue;
      const auto& near = tiers_.neighbours[i];
      const bool touches = std::any_of(near.begin(), near.end(),
                                       [&](size_t j) { return !tiers_.items[j].is_fabric; });
      tiers_.items[i].tier = touches ? 1 : 0;
      if (tiers_.items[i].box.kind == VertexKind::kNvSwitch) tiers_.items[i].tier = -1;
      if (tiers_.items[i].tier == 1) open.push_back(i);
    }
    while (!open.empty()) {
      std::vector<size_t> next;
      for (const size_t i : open) {
        for (const size_t j : tiers_.neighbours[i]) {
          if (!tiers_.items[j].is_fabric || tiers_.items[j].tier != 0) continue;
          tiers_.items[j].tier = tiers_.items[i].tier + 1;
          next.push_back(j);
        }
      }
      open = std::move(next);
    }
    for (size_t i = 0; i < tiers_.items.size(); ++i)
      if (tiers_.items[i].is_fabric && tiers_.items[i].tier == 0)
        tiers_.items[i].tier = 1;  // it is joined to nothing
    for (size_t i = 0; i < tiers_.items.size(); ++i)
      if (tiers_.items[i].is_fabric) tiers_.fabric[tiers_.items[i].tier].push_back(i);
  }

  // Switches above the leaves that are joined to the same ones below are drawn as one box, and
  // their links as one line: 32 spines over 8 leaves are 8 lines of 32 links, not 256 that cross.
  void JoinTwins() {
    std::vector<std::vector<const Bundle*>> bundles(tiers_.items.size());
    for (const Bundle& bundle : tiers_.bundles) {
      bundles[bundle.a].push_back(&bundle);
      bundles[bundle.b].push_back(&bundle);
    }
    std::vector<size_t> box_of(tiers_.items.size());  // an item, or the first of its twins
    for (size_t i = 0; i < box_of.size(); ++i) box_of[i] = i;
    bool are_some = false;
    for (auto& [tier, row] : tiers_.fabric) {
      if (tier < 2) continue;
      using Below = std::map<std::tuple<size_t, LinkKind, double>, std::pair<uint32_t, uint32_t>>;
      std::map<Below, std::vector<size_t>> alike;
      for (const size_t item : row) {
        Below below;
        for (const Bundle* bundle : bundles[item]) {
          const bool is_first = bundle->a == item;
          const size_t other = is_first ? bundle->b : bundle->a;
          if (tiers_.items[other].is_fabric && tiers_.items[other].tier >= tier) continue;
          auto& [up, down] = below[{box_of[other], bundle->kind, bundle->bandwidth}];
          up += is_first ? bundle->back : bundle->there;
          down += is_first ? bundle->there : bundle->back;
        }
        alike[std::move(below)].push_back(item);
      }
      row.clear();
      for (const auto& [below, twins] : alike) {
        row.push_back(twins.front());
        if (twins.size() == 1) continue;
        are_some = true;
        for (const size_t twin : twins) {
          box_of[twin] = twins.front();
          tiers_.is_dropped[twin] = twin != twins.front();
        }
        NameTwins(twins);
      }
      std::sort(row.begin(), row.end());
    }
    if (are_some) DrawAsOne(box_of);
  }

  // Titles such a box "32 x spine" for spine0 to spine31.
  void NameTwins(const std::vector<size_t>& twins) {
    PlacedBox& box = tiers_.items[twins.front()].box;
    const std::string first = box.title;
    const std::string last = tiers_.items[twins.back()].box.title;
    std::string name = box.title;
    name.erase(0, name.find_last_of('/') + 1);
    while (!name.empty() && name.back() >= '0' && name.back() <= '9') name.pop_back();
    box.label = fmt::format("{} × {}", twins.size(), name.empty() ? "switch" : name);
    box.title = fmt::format("{} to {}, joined alike", box.title, last);
    for (const size_t twin : twins)
      tiers_.shown_by[twin == twins.front() ? first : tiers_.items[twin].box.title] = box.title;
  }

  // Many switches that are joined to each other, as in a dragonfly: each group of them is one box,
  // so that what joins the groups can be seen.
  void JoinGroups() {
    const auto leaves = tiers_.fabric.find(1);
    if (tiers_.in_detail || leaves == tiers_.fabric.end() || leaves->second.size() <= kFewSwitches)
      return;
    std::vector<std::pair<std::string, std::vector<size_t>>> groups;
    bool are_joined = false;
    for (size_t item = 0; item < tiers_.items.size(); ++item) {
      if (!tiers_.items[item].is_fabric || tiers_.items[item].tier < 1) continue;
      const std::string& name = tiers_.items[item].box.title;
      const std::string group = name.substr(0, std::min(name.find('/'), name.size()));
      if (group.size() == name.size()) return;
      if (groups.empty() || groups.back().first != group)
        groups.emplace_back(group, std::vector<size_t>());
      groups.back().second.push_back(item);
      for (const size_t other : tiers_.neighbours[item])
        are_joined = are_joined || (tiers_.items[item].tier == 1 && tiers_.items[other].is_fabric &&
                                    tiers_.items[other].tier == 1);
    }
    if (!are_joined || groups.size() < 2) return;
    // Switches that no node is joined to belong to a group, too.
    tiers_.fabric.erase(std::next(leaves), tiers_.fabric.end());
    std::vector<size_t>& row = leaves->second;
    std::vector<size_t> box_of(tiers_.items.size());
    for (size_t i = 0; i < box_of.size(); ++i) box_of[i] = i;
    row.clear();
    for (const auto& [name, switches] : groups) {
      row.push_back(switches.front());
      for (const size_t item : switches) {
        tiers_.shown_by[tiers_.items[item].box.title] = name;
        box_of[item] = switches.front();
        tiers_.is_dropped[item] = item != switches.front();
      }
      tiers_.items[switches.front()].tier = 1;
      PlacedBox& box = tiers_.items[switches.front()].box;
      box.title = name;
      box.label = fmt::format("{}, {} switches", name, switches.size());
    }
    tiers_.are_groups = true;
    DrawAsOne(box_of);
  }

  void DrawAsOne(const std::vector<size_t>& box_of) {
    std::map<std::tuple<size_t, size_t, LinkKind, double>, size_t> known;
    std::vector<Bundle> joined;
    for (const Bundle& bundle : tiers_.bundles) {
      const size_t a = box_of[bundle.a];
      const size_t b = box_of[bundle.b];
      if (a == b) continue;
      const auto [entry, is_new] = known.emplace(
          std::tuple(std::min(a, b), std::max(a, b), bundle.kind, bundle.bandwidth), joined.size());
      if (is_new) joined.push_back({std::min(a, b), std::max(a, b), bundle.kind, bundle.bandwidth});
      joined[entry->second].there += a < b ? bundle.there : bundle.back;
      joined[entry->second].back += a < b ? bundle.back : bundle.there;
    }
    tiers_.bundles = std::move(joined);
    FindNeighbours();
  }

  // Switches near a socket lie above those farther from it; those that lead only to NICs lie with
  // them, above the sockets.
  void StackPcieTrees() {
    constexpr int kDeepest = kSocketRow - kPcieRow - 1;
    std::vector<int> depth(tiers_.items.size(), 0);
    std::vector<size_t> open;
    for (size_t i = 0; i < tiers_.items.size(); ++i)
      if (tiers_.items[i].box.kind == VertexKind::kSocket) open.push_back(i);
    std::vector<size_t> order;  // PCIe switches, from the sockets on
    for (size_t next = 0; next < open.size(); ++next) {
      for (const size_t j : tiers_.neighbours[open[next]]) {
        if (tiers_.items[j].box.kind != VertexKind::kPcieSwitch || tiers_.items[j].is_fabric ||
            depth[j] > 0)
          continue;
        depth[j] = std::min(depth[open[next]] + 1, kDeepest);
        open.push_back(j);
        order.push_back(j);
      }
    }
    std::vector<bool> has_device(tiers_.items.size());
    for (auto item = order.rbegin(); item != order.rend(); ++item) {
      bool has_nic = false;
      for (const size_t j : tiers_.neighbours[*item]) {
        const VertexKind kind = tiers_.items[j].box.kind;
        if (kind == VertexKind::kDevice || (depth[j] > depth[*item] && has_device[j]))
          has_device[*item] = true;
        if (kind == VertexKind::kNic ||
            (depth[j] > depth[*item] && tiers_.items[j].tier >= kPcieToNicsRow))
          has_nic = true;
      }
      const bool is_for_nics = has_nic && !has_device[*item];
      tiers_.items[*item].tier =
          is_for_nics ? kPcieToNicsRow + depth[*item] : kSocketRow - depth[*item];
    }
  }

  // The first few nodes. If nodes form groups, the first few of each of the first few groups.
  std::vector<Node> FewNodes() const {
    const std::vector<size_t> groups =
        tiers_.are_groups ? tiers_.fabric.at(1) : std::vector<size_t>();
    const size_t shown = std::min(groups.size(), kMostGroups);
    std::map<size_t, size_t> left;  // how many a group may still have
    for (size_t i = 0; i < shown; ++i) left[groups[i]] = kMostBlocks / shown;
    std::vector<Node> few;
    for (const Node& node : tiers_.nodes) {
      if (few.size() == kMostBlocks) break;
      if (tiers_.are_groups) {
        const auto& near = tiers_.neighbours[node.items.front()];
        const auto group = std::find_if(near.begin(), near.end(),
                                        [&](size_t item) { return left.count(item) > 0; });
        if (group == near.end() || left[*group] == 0) continue;
        --left[*group];
      }
      few.push_back(node);
    }
    return few;
  }

  // Keeps a few nodes and switches if there are many.
  void DropCrowds() {
    if (!tiers_.in_detail && tiers_.nodes.size() > kMostBlocks) {
      std::vector<Node> few = FewNodes();
      tiers_.more_nodes = tiers_.nodes.size() - few.size();
      for (const Node& node : tiers_.nodes)
        for (const size_t item : node.items) tiers_.is_dropped[item] = true;
      for (const Node& node : few)
        for (const size_t item : node.items) tiers_.is_dropped[item] = false;
      tiers_.nodes = std::move(few);
    }
    for (auto& [tier, row] : tiers_.fabric) {
      const size_t all = row.size();
      // Those that lead to no node in the picture are dropped first.
      std::vector<size_t> kept;
      for (const size_t item : row) {
        const auto& near = tiers_.neighbours[item];
        const bool is_joined = std::any_of(near.begin(), near.end(), [&](size_t j) {
          return !tiers_.is_dropped[j] &&
                 (!tiers_.items[j].is_fabric || tiers_.items[j].tier < tiers_.items[item].tier);
        });
        if (is_joined || tiers_.more_nodes == 0) kept.push_back(item);
      }
      if (kept.size() > kMostSwitches) kept.resize(kMostSwitches);
      for (const size_t item : row) tiers_.is_dropped[item] = true;
      for (const size_t item : kept) tiers_.is_dropped[item] = false;
      tiers_.more_switches[tier] = all - kept.size();
      row = std::move(kept);
    }
  }

  const Cluster& cluster_;
  TierContents tiers_;
  std::vector<size_t> item_of_;  // vertex -> item
  std::map<std::string, size_t> node_of_name_;
};

}  // namespace

TierContents CollectTiers(const Cluster& cluster) { return TierCollector(cluster).Run(); }

}  // namespace rehearse
