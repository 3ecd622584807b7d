// Clusters in tiers; see topology/view/cluster_layout.h.
#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "sim/report/svg.h"
#include "topology/view/cluster_layout.h"

namespace rehearse {
namespace {

// Pixels.
constexpr double kMargin = 24;
constexpr double kDeviceWidth = 54;
constexpr double kDeviceHeight = 34;
constexpr double kPartWidth = 50;
constexpr double kPartHeight = 24;
constexpr double kGap = 14;  // between neighbours of a tier
constexpr double kNodePadding = 18;
constexpr double kNodeGap = 26;
constexpr double kNodeLabel = 22;
constexpr double kTierHeight = 68;  // inside a node
constexpr double kFabricHeight = 120;
constexpr double kBlockWidth = 52;
constexpr double kBlockHeight = 40;
constexpr double kDotPitch = 11;
constexpr uint32_t kDotRows = 4;
constexpr uint32_t kMostAcross = 32;
constexpr double kLeastSwitchPitch = 44;
constexpr double kWidestSwitch = 110;
constexpr double kRailGap = 34;  // between nodes and the lowest of several rails
constexpr double kRailPitch = 30;
constexpr double kUplinkPitch = 26;
constexpr double kBesideEachOther = 6;  // links between the same two
constexpr double kFar = 1e9;
constexpr double kCaptionRoom = 50;
constexpr double kWidestBend = 40;  // of an arc between rows of a node
// Of arcs above the highest switches.
constexpr double kLeastArc = 14;
constexpr double kSteepArc = 0.12;

constexpr int kNvSwitchRow = 0;
constexpr int kDeviceRow = 1;
constexpr int kPcieRow = 100;  // and one more for each level of a tree, up to the sockets
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

// A thing in the picture before it has a place: a vertex or a block.
struct Item {
  PlacedBox box;
  bool is_fabric = false;
  int tier = 0;
};

// Moves the centres of a row's items as little as possible (least squares) until they are far
// enough apart: pooling of adjacent violators. `wanted` must be sorted.
std::vector<double> SpreadOut(const std::vector<double>& wanted,
                              const std::vector<double>& widths) {
  struct Pool {
    double sum;
    size_t count;
    double mean() const { return sum / static_cast<double>(count); }
  };
  std::vector<double> offsets(wanted.size());
  for (size_t i = 1; i < wanted.size(); ++i)
    offsets[i] = offsets[i - 1] + (widths[i - 1] + widths[i]) / 2 + kGap;
  std::vector<Pool> pools;
  for (size_t i = 0; i < wanted.size(); ++i) {
    pools.push_back({wanted[i] - offsets[i], 1});
    while (pools.size() > 1 && pools[pools.size() - 2].mean() > pools.back().mean()) {
      const Pool last = pools.back();
      pools.pop_back();
      pools.back().sum += last.sum;
      pools.back().count += last.count;
    }
  }
  std::vector<double> centers;
  for (const Pool& pool : pools)
    for (size_t i = 0; i < pool.count; ++i)
      centers.push_back(pool.mean() + offsets[centers.size()]);
  return centers;
}

class TierLayout {
 public:
  explicit TierLayout(const Cluster& cluster)
      : cluster_(cluster),
        in_detail_(cluster.device_count() <= kMostInDetail),
        item_of_(cluster_.vertex_count(), kNone) {}

  ClusterLayout Run() {
    CollectItems();
    CollectLinks();
    FindFabricTiers();
    JoinTwins();
    JoinGroups();
    StackPcieTrees();
    DropCrowds();
    PlaceNodes();
    PlaceFabric();
    PlaceLinks();
    for (size_t i = 0; i < items_.size(); ++i)
      if (!is_dropped_[i]) layout_.boxes.push_back(items_[i].box);
    FitIntoPicture();
    return std::move(layout_);
  }

 private:
  static constexpr size_t kNone = static_cast<size_t>(-1);

  struct Node {
    std::string name;
    std::vector<size_t> items;
  };

  struct Bundle {  // equal links between two items, the first before the second
    size_t a, b;
    LinkKind kind;
    double bandwidth;
    uint32_t there = 0;
    uint32_t back = 0;
  };

  // ---- What is in the picture -------------------------------------------------------------------

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
    const auto [entry, is_new] = node_of_name_.emplace(name, nodes_.size());
    if (is_new) nodes_.push_back({name, {}});
    return nodes_[entry->second];
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
      item.box.height = is_device ? kDeviceHeight : kPartHeight;
      item.tier = RowOf(vertex.kind);
      if (item.is_fabric) {
        item_of_[id] = items_.size();
        items_.push_back(item);
      } else if (in_detail_) {
        item_of_[id] = items_.size();
        NodeNamed(vertex.node).items.push_back(items_.size());
        items_.push_back(item);
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
      block.box.height = kBlockHeight;
      block.box.label = node.name;
      block.box.title = node.name;
      block.tier = kDeviceRow;
      node.items.push_back(items_.size());
      items_.push_back(block);
    }
    item_of_[id] = node.items.front();
    PlacedBox& box = items_[item_of_[id]].box;
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
          bundles_.size());
      if (is_new)
        bundles_.push_back(
            {std::min(from, to), std::max(from, to), link.kind, link.bandwidth.value()});
      ++(from < to ? bundles_[entry->second].there : bundles_[entry->second].back);
    }
    FindNeighbours();
    is_dropped_.resize(items_.size());
  }

  void FindNeighbours() {
    neighbours_.assign(items_.size(), {});
    for (const Bundle& bundle : bundles_) {
      neighbours_[bundle.a].push_back(bundle.b);
      neighbours_[bundle.b].push_back(bundle.a);
    }
  }

  // Tier 1 touches a node, tier i+1 touches tier i. NVSwitches that span nodes lie below
  // them, as tier -1.
  void FindFabricTiers() {
    std::vector<size_t> open;
    for (size_t i = 0; i < items_.size(); ++i) {
      if (!items_[i].is_fabric) continue;
      const auto& near = neighbours_[i];
      const bool touches =
          std::any_of(near.begin(), near.end(), [&](size_t j) { return !items_[j].is_fabric; });
      items_[i].tier = touches ? 1 : 0;
      if (items_[i].box.kind == VertexKind::kNvSwitch) items_[i].tier = -1;
      if (items_[i].tier == 1) open.push_back(i);
    }
    while (!open.empty()) {
      std::vector<size_t> next;
      for (const size_t i : open) {
        for (const size_t j : neighbours_[i]) {
          if (!items_[j].is_fabric || items_[j].tier != 0) continue;
          items_[j].tier = items_[i].tier + 1;
          next.push_back(j);
        }
      }
      open = std::move(next);
    }
    for (size_t i = 0; i < items_.size(); ++i)
      if (items_[i].is_fabric && items_[i].tier == 0) items_[i].tier = 1;  // joined to nothing
    for (size_t i = 0; i < items_.size(); ++i)
      if (items_[i].is_fabric) fabric_[items_[i].tier].push_back(i);
  }

  // Switches above the leaves that are joined to the same ones below are drawn as one box, and
  // their links as one line: 32 spines over 8 leaves are 8 lines of 32 links, not 256 that cross.
  void JoinTwins() {
    std::vector<std::vector<const Bundle*>> bundles(items_.size());
    for (const Bundle& bundle : bundles_) {
      bundles[bundle.a].push_back(&bundle);
      bundles[bundle.b].push_back(&bundle);
    }
    std::vector<size_t> box_of(items_.size());  // an item, or the first of its twins
    for (size_t i = 0; i < box_of.size(); ++i) box_of[i] = i;
    bool are_some = false;
    for (auto& [tier, row] : fabric_) {
      if (tier < 2) continue;
      using Below = std::map<std::tuple<size_t, LinkKind, double>, std::pair<uint32_t, uint32_t>>;
      std::map<Below, std::vector<size_t>> alike;
      for (const size_t item : row) {
        Below below;
        for (const Bundle* bundle : bundles[item]) {
          const bool is_first = bundle->a == item;
          const size_t other = is_first ? bundle->b : bundle->a;
          if (items_[other].is_fabric && items_[other].tier >= tier) continue;
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
          is_dropped_[twin] = twin != twins.front();
        }
        NameTwins(twins);
      }
      std::sort(row.begin(), row.end());
    }
    if (are_some) DrawAsOne(box_of);
  }

  // "32 x spine" for spine0 to spine31.
  void NameTwins(const std::vector<size_t>& twins) {
    PlacedBox& box = items_[twins.front()].box;
    const std::string first = box.title;
    const std::string last = items_[twins.back()].box.title;
    std::string name = box.title;
    name.erase(0, name.find_last_of('/') + 1);
    while (!name.empty() && name.back() >= '0' && name.back() <= '9') name.pop_back();
    box.label = fmt::format("{} × {}", twins.size(), name.empty() ? "switch" : name);
    box.title = fmt::format("{} to {}, joined alike", box.title, last);
    for (const size_t twin : twins)
      layout_.shown_by[twin == twins.front() ? first : items_[twin].box.title] = box.title;
  }

  // Many switches that are joined to each other, as in a dragonfly: each group of them is one box,
  // so that what joins the groups can be seen.
  void JoinGroups() {
    const auto leaves = fabric_.find(1);
    if (in_detail_ || leaves == fabric_.end() || leaves->second.size() <= kFewSwitches) return;
    std::vector<std::pair<std::string, std::vector<size_t>>> groups;
    bool are_joined = false;
    for (size_t item = 0; item < items_.size(); ++item) {
      if (!items_[item].is_fabric || items_[item].tier < 1) continue;
      const std::string& name = items_[item].box.title;
      const std::string group = name.substr(0, std::min(name.find('/'), name.size()));
      if (group.size() == name.size()) return;
      if (groups.empty() || groups.back().first != group)
        groups.emplace_back(group, std::vector<size_t>());
      groups.back().second.push_back(item);
      for (const size_t other : neighbours_[item])
        are_joined = are_joined ||
                     (items_[item].tier == 1 && items_[other].is_fabric && items_[other].tier == 1);
    }
    if (!are_joined || groups.size() < 2) return;
    // Switches without nodes lie in their group, too.
    fabric_.erase(std::next(leaves), fabric_.end());
    std::vector<size_t>& row = leaves->second;
    std::vector<size_t> box_of(items_.size());
    for (size_t i = 0; i < box_of.size(); ++i) box_of[i] = i;
    row.clear();
    for (const auto& [name, switches] : groups) {
      row.push_back(switches.front());
      for (const size_t item : switches) {
        layout_.shown_by[items_[item].box.title] = name;
        box_of[item] = switches.front();
        is_dropped_[item] = item != switches.front();
      }
      items_[switches.front()].tier = 1;
      PlacedBox& box = items_[switches.front()].box;
      box.title = name;
      box.label = fmt::format("{}, {} switches", name, switches.size());
    }
    are_groups_ = true;
    DrawAsOne(box_of);
  }

  void DrawAsOne(const std::vector<size_t>& box_of) {
    std::map<std::tuple<size_t, size_t, LinkKind, double>, size_t> known;
    std::vector<Bundle> joined;
    for (const Bundle& bundle : bundles_) {
      const size_t a = box_of[bundle.a];
      const size_t b = box_of[bundle.b];
      if (a == b) continue;
      const auto [entry, is_new] = known.emplace(
          std::tuple(std::min(a, b), std::max(a, b), bundle.kind, bundle.bandwidth), joined.size());
      if (is_new) joined.push_back({std::min(a, b), std::max(a, b), bundle.kind, bundle.bandwidth});
      joined[entry->second].there += a < b ? bundle.there : bundle.back;
      joined[entry->second].back += a < b ? bundle.back : bundle.there;
    }
    bundles_ = std::move(joined);
    FindNeighbours();
  }

  // Switches near a socket lie above those farther from it; those that lead only to NICs lie with
  // them, above the sockets.
  void StackPcieTrees() {
    constexpr int kDeepest = kSocketRow - kPcieRow - 1;
    std::vector<int> depth(items_.size(), 0);
    std::vector<size_t> open;
    for (size_t i = 0; i < items_.size(); ++i)
      if (items_[i].box.kind == VertexKind::kSocket) open.push_back(i);
    std::vector<size_t> order;  // PCIe switches, from the sockets on
    for (size_t next = 0; next < open.size(); ++next) {
      for (const size_t j : neighbours_[open[next]]) {
        if (items_[j].box.kind != VertexKind::kPcieSwitch || items_[j].is_fabric || depth[j] > 0)
          continue;
        depth[j] = std::min(depth[open[next]] + 1, kDeepest);
        open.push_back(j);
        order.push_back(j);
      }
    }
    std::vector<bool> has_device(items_.size());
    for (auto item = order.rbegin(); item != order.rend(); ++item) {
      bool has_nic = false;
      for (const size_t j : neighbours_[*item]) {
        const VertexKind kind = items_[j].box.kind;
        if (kind == VertexKind::kDevice || (depth[j] > depth[*item] && has_device[j]))
          has_device[*item] = true;
        if (kind == VertexKind::kNic ||
            (depth[j] > depth[*item] && items_[j].tier >= kPcieToNicsRow))
          has_nic = true;
      }
      const bool is_for_nics = has_nic && !has_device[*item];
      items_[*item].tier = is_for_nics ? kPcieToNicsRow + depth[*item] : kSocketRow - depth[*item];
    }
  }

  // The first few nodes; of groups, the first few of each of the first few.
  std::vector<Node> FewNodes() const {
    const std::vector<size_t> groups = are_groups_ ? fabric_.at(1) : std::vector<size_t>();
    const size_t shown = std::min(groups.size(), kMostGroups);
    std::map<size_t, size_t> left;  // how many a group may still have
    for (size_t i = 0; i < shown; ++i) left[groups[i]] = kMostBlocks / shown;
    std::vector<Node> few;
    for (const Node& node : nodes_) {
      if (few.size() == kMostBlocks) break;
      if (are_groups_) {
        const auto& near = neighbours_[node.items.front()];
        const auto group = std::find_if(near.begin(), near.end(),
                                        [&](size_t item) { return left.count(item) > 0; });
        if (group == near.end() || left[*group] == 0) continue;
        --left[*group];
      }
      few.push_back(node);
    }
    return few;
  }

  // If there are many, keeps few.
  void DropCrowds() {
    if (!in_detail_ && nodes_.size() > kMostBlocks) {
      std::vector<Node> few = FewNodes();
      more_nodes_ = nodes_.size() - few.size();
      for (const Node& node : nodes_)
        for (const size_t item : node.items) is_dropped_[item] = true;
      for (const Node& node : few)
        for (const size_t item : node.items) is_dropped_[item] = false;
      nodes_ = std::move(few);
    }
    for (auto& [tier, row] : fabric_) {
      const size_t all = row.size();
      // Those that lead to no node in the picture are dropped first.
      std::vector<size_t> kept;
      for (const size_t item : row) {
        const auto& near = neighbours_[item];
        const bool is_joined = std::any_of(near.begin(), near.end(), [&](size_t j) {
          return !is_dropped_[j] && (!items_[j].is_fabric || items_[j].tier < items_[item].tier);
        });
        if (is_joined || more_nodes_ == 0) kept.push_back(item);
      }
      if (kept.size() > kMostSwitches) kept.resize(kMostSwitches);
      for (const size_t item : row) is_dropped_[item] = true;
      for (const size_t item : kept) is_dropped_[item] = false;
      more_switches_[tier] = all - kept.size();
      row = std::move(kept);
    }
  }

  // ---- Nodes ------------------------------------------------------------------------------------

  double MeanOfNeighbours(size_t item, double otherwise) const {
    double sum = 0;
    int count = 0;
    for (const size_t neighbour : neighbours_[item]) {
      if (is_dropped_[neighbour] || !is_placed_[neighbour]) continue;
      sum += items_[neighbour].box.center.x;
      ++count;
    }
    return count == 0 ? otherwise : sum / count;
  }

  // Places a row around where each wants to be, between left and right.
  void PlaceRow(const std::vector<size_t>& row, double left, double right, double y) {
    std::vector<std::pair<double, size_t>> order;
    for (const size_t item : row)
      order.emplace_back(MeanOfNeighbours(item, (left + right) / 2), item);
    std::stable_sort(order.begin(), order.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first - 1e-6; });
    std::vector<double> wanted;
    std::vector<double> widths;
    for (const auto& [x, item] : order) {
      wanted.push_back(x);
      widths.push_back(items_[item].box.width);
    }
    const std::vector<double> centers = SpreadOut(wanted, widths);
    double shift = 0;
    shift = std::max(shift, left - (centers.front() - widths.front() / 2));
    if (shift == 0) shift = std::min(0.0, right - (centers.back() + widths.back() / 2));
    for (size_t i = 0; i < order.size(); ++i)
      items_[order[i].second].box.center = {centers[i] + shift, y};
    for (const size_t item : row) is_placed_[item] = true;
  }

  static double RowWidth(const std::vector<size_t>& row, const std::vector<Item>& items) {
    double width = -kGap;
    for (const size_t item : row) width += items[item].box.width + kGap;
    return width;
  }

  // Places wide switches that share a row's width equally; a single one spans it.
  void PlaceBars(const std::vector<size_t>& row, double left, double right, double y) {
    const double pitch = (right - left) / static_cast<double>(row.size());
    for (size_t i = 0; i < row.size(); ++i) {
      PlacedBox& box = items_[row[i]].box;
      box.center = {left + pitch * (static_cast<double>(i) + 0.5), y};
      box.width = row.size() == 1 ? right - left : pitch - kGap;
      is_placed_[row[i]] = true;
    }
  }

  // How deep the arcs between devices of a node hang.
  double ArcDepth(const Node& node) const {
    double deepest = 0;
    for (const size_t item : node.items) {
      if (items_[item].tier != kDeviceRow) continue;
      for (const size_t other : neighbours_[item]) {
        if (items_[other].is_fabric || items_[other].tier != kDeviceRow) continue;
        const double distance = std::abs(items_[item].box.center.x - items_[other].box.center.x);
        deepest = std::max(deepest, 0.75 * Bend(distance));
      }
    }
    return deepest;
  }

  static double Bend(double distance) { return 14 + 0.22 * distance; }

  void PlaceNodes() {
    is_placed_.resize(items_.size());
    if (!in_detail_) {
      PlaceBlocks();
      return;
    }
    // Rows that any node has, so that nodes side by side look alike.
    std::map<int, double> y_of_tier;
    for (const Node& node : nodes_)
      for (const size_t item : node.items) y_of_tier[items_[item].tier];
    double y = 0;
    for (auto& [tier, row_y] : y_of_tier) {
      row_y = y;
      y -= kTierHeight;
    }
    const double top = y_of_tier.rbegin()->second - kPartHeight / 2 - kNodePadding;
    double left = 0;
    double depth = 0;
    for (Node& node : nodes_) {
      std::map<int, std::vector<size_t>> rows;
      for (const size_t item : node.items) rows[items_[item].tier].push_back(item);
      double width = 0;
      for (const auto& [tier, row] : rows) width = std::max(width, RowWidth(row, items_));
      const double right = left + width;
      if (rows.count(kDeviceRow) > 0) {
        const auto& row = rows[kDeviceRow];
        const double spare = (width - RowWidth(row, items_)) / static_cast<double>(row.size());
        double x = left + spare / 2;
        for (const size_t item : row) {
          PlacedBox& box = items_[item].box;
          box.center = {x + box.width / 2, y_of_tier[kDeviceRow]};
          x += box.width + kGap + spare;
          is_placed_[item] = true;
        }
      }
      if (rows.count(kNvSwitchRow) > 0)
        PlaceBars(rows[kNvSwitchRow], left, right, y_of_tier[kNvSwitchRow]);
      for (const auto& [tier, row] : rows)
        if (tier > kDeviceRow) PlaceRow(row, left, right, y_of_tier[tier]);
      depth = std::max(depth, ArcDepth(node));
      layout_.nodes.push_back({{left - kNodePadding, top}, width + 2 * kNodePadding, 0, node.name});
      left = right + 2 * kNodePadding + kNodeGap;
    }
    right_ = left - kNodeGap - 2 * kNodePadding;
    nodes_top_ = top;
    nodes_bottom_ = std::max(kDeviceHeight / 2 + depth, kPartHeight / 2) + kNodePadding;
    const bool is_named = nodes_.size() > 1 || !nodes_.front().name.empty();
    if (is_named) nodes_bottom_ += kNodeLabel - kNodePadding / 2;
    for (PlacedNode& frame : layout_.nodes) frame.height = nodes_bottom_ - top;
    if (!is_named) layout_.nodes.clear();
  }

  void PlaceBlocks() {
    double left = 0;
    for (const Node& node : nodes_) {
      PlacedBox& box = items_[node.items.front()].box;
      box.center = {left + box.width / 2, 0};
      is_placed_[node.items.front()] = true;
      left += box.width + kGap;
    }
    right_ = left - kGap;
    if (more_nodes_ > 0) {
      const std::string text = fmt::format("and {} more nodes", more_nodes_);
      layout_.captions.push_back({{right_ / 2, kBlockHeight / 2 + 34}, text});
    }
    nodes_top_ = -kBlockHeight / 2;
    nodes_bottom_ = kBlockHeight / 2 + (more_nodes_ > 0 ? 40 : 16);
  }

  // ---- Fabric -----------------------------------------------------------------------------------

  void PlaceFabric() {
    FindRails();
    // Above a few nodes there may be many switches.
    double width = right_;
    for (const auto& [tier, row] : fabric_)
      if (row.size() > 1 && (tier != 1 || rails_ == 0))
        width = std::max(width, kLeastSwitchPitch * static_cast<double>(row.size()));
    const double left = (right_ - width) / 2;
    const double right = left + width;
    for (auto& [tier, row] : fabric_) {
      if (row.empty()) continue;
      if (tier == 1 && rails_ > 0) {
        PlaceRails(row, right);
        continue;
      }
      std::vector<std::pair<double, size_t>> order;
      for (const size_t item : row) order.emplace_back(MeanOfNeighbours(item, right_ / 2), item);
      std::stable_sort(order.begin(), order.end(),
                       [](const auto& a, const auto& b) { return a.first < b.first - 1e-6; });
      for (size_t i = 0; i < row.size(); ++i) row[i] = order[i].second;
      const double y = tier < 0 ? nodes_bottom_ + kTierHeight
                                : nodes_top_ - kFabricHeight * (tier - 0.25) -
                                      kRailPitch * std::max(rails_ - 1, 0);
      PlaceBars(row, left, right, y);
      for (const size_t item : row) {
        PlacedBox& box = items_[item].box;
        const double widest =
            are_groups_ ? 10 + 6.4 * static_cast<double>(box.label.size()) : kWidestSwitch;
        if (row.size() > 1) box.width = std::min(box.width, widest);
        ShortenLabel(&box);
      }
      if (more_switches_[tier] > 0)
        layout_.captions.push_back(
            {{right + kCaptionRoom, y + 4},
             fmt::format("and {} more{}", more_switches_[tier], are_groups_ ? " groups" : "")});
    }
  }

  static void ShortenLabel(PlacedBox* box) {
    const auto fits = [&] {
      return 10 + 6.4 * static_cast<double>(box->label.size()) <= box->width;
    };
    if (!fits()) box->label.erase(0, box->label.find_last_of('/') + 1);
    if (!fits()) box->label.clear();
  }

  // The left and right ends of the nodes that a switch is joined to.
  std::pair<double, double> ReachOf(size_t item) const {
    std::pair<double, double> reach = {kFar, -kFar};
    for (const size_t other : neighbours_[item]) {
      if (is_dropped_[other] || items_[other].is_fabric) continue;
      const PlacedBox& box = items_[other].box;
      reach.first = std::min(reach.first, box.center.x - box.width / 2);
      reach.second = std::max(reach.second, box.center.x + box.width / 2);
    }
    return reach;
  }

  // Where leaves above blocks share nodes, as many rows as it takes that no two overlap. Not where
  // leaves are joined to each other, as in a dragonfly.
  void FindRails() {
    rail_of_.assign(items_.size(), -1);
    const auto leaves = fabric_.find(1);
    if (in_detail_ || leaves == fabric_.end()) return;
    constexpr int kMostRails = 16;
    constexpr size_t kFewLinks = 24;
    size_t links = 0;
    std::vector<double> ends;  // of the last bar of each rail
    for (const size_t item : leaves->second) {
      for (const size_t other : neighbours_[item]) {
        if (items_[other].is_fabric && items_[other].tier == 1) return;
        links += is_dropped_[other] || items_[other].is_fabric ? 0 : 1;
      }
      const auto [left, right] = ReachOf(item);
      size_t rail = 0;
      while (rail < ends.size() && ends[rail] > left) ++rail;
      if (rail == ends.size()) ends.push_back(0);
      ends[rail] = right;
      rail_of_[item] = static_cast<int>(rail);
    }
    if (ends.size() > 1 && ends.size() <= kMostRails && links > kFewLinks) {
      rails_ = static_cast<int>(ends.size());
    } else {
      rail_of_.assign(items_.size(), -1);
    }
  }

  void PlaceRails(const std::vector<size_t>& row, double right) {
    for (const size_t item : row) {
      const auto [from, to] = ReachOf(item);
      PlacedBox& box = items_[item].box;
      box.width = to - from;
      box.center = {(from + to) / 2, nodes_top_ - kRailGap - kRailPitch * rail_of_[item]};
      is_placed_[item] = true;
      ShortenLabel(&box);
    }
    if (more_switches_[1] > 0)
      layout_.captions.push_back(
          {{right + kCaptionRoom, nodes_top_ - kRailGap - kRailPitch * (rails_ - 1) / 2.0 + 4},
           fmt::format("and {} more", more_switches_[1])});
  }

  // Upright, each rail at its own place: over a node from the left, up from a rail at its end.
  void PlaceOnRail(size_t low, size_t high, PlacedLink* link) const {
    const PlacedBox& box = items_[low].box;
    if (rail_of_[high] >= 0) {
      const double pitch = (box.width - 8) / rails_;
      link->from.x = box.center.x + (rail_of_[high] + 0.5 - rails_ / 2.0) * pitch;
    } else {
      const double pitch = std::min(kUplinkPitch, (box.width - 16) / rails_);
      link->from.x = box.center.x + box.width / 2 - 8 - (rails_ - rail_of_[low] - 0.5) * pitch;
      link->count_at = 1 - kRailPitch / std::max(link->from.y - link->to.y, kRailPitch);
    }
    link->to.x = link->from.x;
  }

  // ---- Links ------------------------------------------------------------------------------------

  static double Clamped(double x, const PlacedBox& box) {
    const double room = std::max(0.0, box.width / 2 - 8);
    return std::clamp(x, box.center.x - room, box.center.x + room);
  }

  void PlaceLinks() {
    std::map<std::pair<size_t, size_t>, size_t> drawn;  // between the same two
    for (const Bundle& bundle : bundles_) {
      if (is_dropped_[bundle.a] || is_dropped_[bundle.b]) continue;
      const PlacedBox& a = items_[bundle.a].box;
      const PlacedBox& b = items_[bundle.b].box;
      PlacedLink link;
      link.kind = bundle.kind;
      link.bandwidth = BytesPerSecond(bundle.bandwidth);
      link.count = std::max(bundle.there, bundle.back);
      link.one_way = bundle.there == 0 || bundle.back == 0;
      link.title = fmt::format("{} - {}", a.title, b.title);
      if (a.center.y == b.center.y) {
        PlaceArc(bundle, &link);
      } else {
        const bool a_is_lower = a.center.y > b.center.y;
        const PlacedBox& low = a_is_lower ? a : b;
        const PlacedBox& high = a_is_lower ? b : a;
        link.from = {Clamped(high.center.x, low), low.center.y - low.height / 2};
        link.to = {Clamped(low.center.x, high), high.center.y + high.height / 2};
        // Upright if the two lie above each other.
        const double left = std::max(Clamped(-kFar, low), Clamped(-kFar, high));
        const double right = std::min(Clamped(kFar, low), Clamped(kFar, high));
        const PlacedBox& narrow = high.width > low.width ? low : high;
        if (left <= right) link.from.x = link.to.x = std::clamp(narrow.center.x, left, right);
        const size_t low_item = a_is_lower ? bundle.a : bundle.b;
        const size_t high_item = a_is_lower ? bundle.b : bundle.a;
        if (rail_of_[low_item] >= 0 || rail_of_[high_item] >= 0)
          PlaceOnRail(low_item, high_item, &link);
        const size_t before = drawn[{bundle.a, bundle.b}]++;
        link.from.x += kBesideEachOther * static_cast<double>(before);
        link.to.x += kBesideEachOther * static_cast<double>(before);
        const bool is_upwards = a_is_lower;
        if (link.one_way && (bundle.there == 0) == is_upwards) std::swap(link.from, link.to);
      }
      layout_.links.push_back(link);
    }
  }

  // Between neighbours straight, else around what lies between: devices below their row, others
  // above.
  void PlaceArc(const Bundle& bundle, PlacedLink* link) {
    const Item& a = items_[bundle.a];
    const Item& b = items_[bundle.b];
    const bool a_is_left = a.box.center.x < b.box.center.x;
    const PlacedBox& left = a_is_left ? a.box : b.box;
    const PlacedBox& right = a_is_left ? b.box : a.box;
    const double distance = right.center.x - left.center.x;
    const bool is_device = !a.is_fabric && a.tier == kDeviceRow;
    if (!is_device && IsFree(left, right)) {
      link->from = {left.center.x + left.width / 2, left.center.y};
      link->to = {right.center.x - right.width / 2, right.center.y};
    } else {
      const double side = is_device ? 1 : -1;
      double bend = Bend(distance);
      if (a.is_fabric && a.tier < fabric_.rbegin()->first)
        bend = std::min(bend, 0.7 * kFabricHeight);
      else if (a.is_fabric)
        bend = kLeastArc + kSteepArc * distance;  // none as high as another that is wider
      if (!a.is_fabric && !is_device) bend = std::min(bend, kWidestBend);
      // Arcs to the right leave right of the middle, so that they do not lie on each other.
      const double aside = std::min(0.28 * left.width, 12.0);
      link->from = {left.center.x + aside, left.center.y + side * left.height / 2};
      link->to = {right.center.x - aside, right.center.y + side * right.height / 2};
      link->from_pull = link->to_pull = {0, side * bend};
    }
    if (link->one_way && (bundle.there == 0) == a_is_left) {
      std::swap(link->from, link->to);
      std::swap(link->from_pull, link->to_pull);
    }
  }

  // Whether nothing stands between two boxes of a row.
  bool IsFree(const PlacedBox& left, const PlacedBox& right) const {
    for (size_t i = 0; i < items_.size(); ++i) {
      const PlacedBox& box = items_[i].box;
      if (!is_dropped_[i] && box.center.y == left.center.y && box.center.x > left.center.x &&
          box.center.x < right.center.x)
        return false;
    }
    return true;
  }

  // ---- The whole --------------------------------------------------------------------------------

  void FitIntoPicture() {
    Frame frame = FrameOf(layout_);
    for (const Caption& caption : layout_.captions) {
      const double half = std::max(kCaptionRoom, svg::TextWidth(caption.text, 12) / 2);
      frame.Include(caption.at.x - half, caption.at.y - 12);
      frame.Include(caption.at.x + half, caption.at.y + 6);
    }
    MoveIntoView(frame, kMargin, &layout_);
  }

  const Cluster& cluster_;
  const bool in_detail_;
  ClusterLayout layout_;
  std::vector<Item> items_;
  std::vector<size_t> item_of_;  // vertex -> item
  std::vector<Node> nodes_;
  std::map<std::string, size_t> node_of_name_;
  std::vector<Bundle> bundles_;
  std::vector<std::vector<size_t>> neighbours_;
  std::map<int, std::vector<size_t>> fabric_;  // tier -> items
  std::map<int, size_t> more_switches_;
  std::vector<int> rail_of_;  // item -> row from the nodes, or -1
  int rails_ = 0;             // rows
  size_t more_nodes_ = 0;
  bool are_groups_ = false;  // the boxes of tier 1 are groups of switches
  std::vector<bool> is_dropped_;
  std::vector<bool> is_placed_;
  double right_ = 0;  // of the nodes
  double nodes_top_ = 0;
  double nodes_bottom_ = 0;
};

}  // namespace

ClusterLayout LayOutTiers(const Cluster& cluster) { return TierLayout(cluster).Run(); }

}  // namespace rehearse
