// Places for what is in the picture of a cluster in tiers; see topology/view/cluster_layout.h.
#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "sim/report/svg.h"
#include "topology/view/cluster_layout.h"
#include "topology/view/tier_contents.h"

namespace rehearse {
namespace {

// Lengths are in pixels.
constexpr double kTierMargin = 24;
constexpr double kGap = 14;  // between neighbours of a tier
constexpr double kNodePadding = 18;
constexpr double kNodeGap = 26;
constexpr double kNodeLabel = 22;
constexpr double kTierHeight = 68;  // inside a node
constexpr double kFabricHeight = 120;
constexpr double kLeastSwitchPitch = 44;
constexpr double kWidestSwitch = 110;
constexpr double kRailGap = 34;  // between nodes and the lowest of several rails
constexpr double kRailPitch = 14;
constexpr double kRailHeight = 6;
constexpr double kUplinkPitch = 26;
constexpr double kBesideEachOther = 6;  // links between the same two
constexpr double kFar = 1e9;
constexpr double kCaptionRoom = 50;
constexpr double kWidestBend = 40;  // of an arc between rows of a node
// These are for arcs above the highest switches.
constexpr double kLeastArc = 14;
constexpr double kSteepArc = 0.12;

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
  using Item = TierContents::Item;
  using Node = TierContents::Node;
  using Bundle = TierContents::Bundle;

  explicit TierLayout(TierContents tiers)
      : tiers_(std::move(tiers)), is_placed_(tiers_.items.size()) {}

  ClusterLayout Run() {
    PlaceNodes();
    PlaceFabric();
    PlaceLinks();
    for (size_t i = 0; i < tiers_.items.size(); ++i)
      if (!tiers_.is_dropped[i]) layout_.boxes.push_back(tiers_.items[i].box);
    layout_.shown_by = std::move(tiers_.shown_by);
    FitIntoPicture();
    return std::move(layout_);
  }

 private:
  // ---- Nodes ------------------------------------------------------------------------------------

  double MeanOfNeighbours(size_t item, double otherwise) const {
    double sum = 0;
    int count = 0;
    for (const size_t neighbour : tiers_.neighbours[item]) {
      if (tiers_.is_dropped[neighbour] || !is_placed_[neighbour]) continue;
      sum += tiers_.items[neighbour].box.center.x;
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
      widths.push_back(tiers_.items[item].box.width);
    }
    const std::vector<double> centers = SpreadOut(wanted, widths);
    double shift = 0;
    shift = std::max(shift, left - (centers.front() - widths.front() / 2));
    if (shift == 0) shift = std::min(0.0, right - (centers.back() + widths.back() / 2));
    for (size_t i = 0; i < order.size(); ++i)
      tiers_.items[order[i].second].box.center = {centers[i] + shift, y};
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
      PlacedBox& box = tiers_.items[row[i]].box;
      box.center = {left + pitch * (static_cast<double>(i) + 0.5), y};
      box.width = row.size() == 1 ? right - left : pitch - kGap;
      is_placed_[row[i]] = true;
    }
  }

  // How deep the arcs between devices of a node hang.
  double ArcDepth(const Node& node) const {
    double deepest = 0;
    for (const size_t item : node.items) {
      if (tiers_.items[item].tier != kDeviceRow) continue;
      for (const size_t other : tiers_.neighbours[item]) {
        if (tiers_.items[other].is_fabric || tiers_.items[other].tier != kDeviceRow) continue;
        const double distance =
            std::abs(tiers_.items[item].box.center.x - tiers_.items[other].box.center.x);
        deepest = std::max(deepest, 0.75 * Bend(distance));
      }
    }
    return deepest;
  }

  static double Bend(double distance) { return 14 + 0.22 * distance; }

  void PlaceNodes() {
    if (!tiers_.in_detail) {
      PlaceBlocks();
      return;
    }
    // Rows that any node has, so that nodes side by side look alike.
    std::map<int, double> y_of_tier;
    for (const Node& node : tiers_.nodes)
      for (const size_t item : node.items) y_of_tier[tiers_.items[item].tier];
    double y = 0;
    for (auto& [tier, row_y] : y_of_tier) {
      row_y = y;
      y -= kTierHeight;
    }
    const double top = y_of_tier.rbegin()->second - kTierPartHeight / 2 - kNodePadding;
    double left = 0;
    double depth = 0;
    for (Node& node : tiers_.nodes) {
      std::map<int, std::vector<size_t>> rows;
      for (const size_t item : node.items) rows[tiers_.items[item].tier].push_back(item);
      double width = 0;
      for (const auto& [tier, row] : rows) width = std::max(width, RowWidth(row, tiers_.items));
      const double right = left + width;
      if (rows.count(kDeviceRow) > 0) {
        const auto& row = rows[kDeviceRow];
        const double spare =
            (width - RowWidth(row, tiers_.items)) / static_cast<double>(row.size());
        double x = left + spare / 2;
        for (const size_t item : row) {
          PlacedBox& box = tiers_.items[item].box;
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
    nodes_bottom_ = std::max(kTierDeviceHeight / 2 + depth, kTierPartHeight / 2) + kNodePadding;
    const bool is_named = tiers_.nodes.size() > 1 || !tiers_.nodes.front().name.empty();
    if (is_named) nodes_bottom_ += kNodeLabel - kNodePadding / 2;
    for (PlacedNode& frame : layout_.nodes) frame.height = nodes_bottom_ - top;
    if (!is_named) layout_.nodes.clear();
  }

  void PlaceBlocks() {
    double left = 0;
    for (const Node& node : tiers_.nodes) {
      PlacedBox& box = tiers_.items[node.items.front()].box;
      box.center = {left + box.width / 2, 0};
      is_placed_[node.items.front()] = true;
      left += box.width + kGap;
    }
    right_ = left - kGap;
    if (tiers_.more_nodes > 0) {
      const std::string text = fmt::format("and {} more nodes", tiers_.more_nodes);
      layout_.captions.push_back({{right_ / 2, kTierBlockHeight / 2 + 34}, text});
    }
    nodes_top_ = -kTierBlockHeight / 2;
    nodes_bottom_ = kTierBlockHeight / 2 + (tiers_.more_nodes > 0 ? 40 : 16);
  }

  // ---- Fabric -----------------------------------------------------------------------------------

  void PlaceFabric() {
    FindRails();
    // There may be more switches than fit above a few nodes, so they may widen the picture.
    double width = right_;
    for (const auto& [tier, row] : tiers_.fabric)
      if (row.size() > 1 && (tier != 1 || rails_ == 0))
        width = std::max(width, kLeastSwitchPitch * static_cast<double>(row.size()));
    const double left = (right_ - width) / 2;
    const double right = left + width;
    for (auto& [tier, row] : tiers_.fabric) {
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
        PlacedBox& box = tiers_.items[item].box;
        const double widest =
            tiers_.are_groups ? 10 + 6.4 * static_cast<double>(box.label.size()) : kWidestSwitch;
        if (row.size() > 1) box.width = std::min(box.width, widest);
        ShortenLabel(&box);
      }
      if (tiers_.more_switches[tier] > 0)
        layout_.captions.push_back({{right + kCaptionRoom, y + 4},
                                    fmt::format("and {} more{}", tiers_.more_switches[tier],
                                                tiers_.are_groups ? " groups" : "")});
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
    for (const size_t other : tiers_.neighbours[item]) {
      if (tiers_.is_dropped[other] || tiers_.items[other].is_fabric) continue;
      const PlacedBox& box = tiers_.items[other].box;
      reach.first = std::min(reach.first, box.center.x - box.width / 2);
      reach.second = std::max(reach.second, box.center.x + box.width / 2);
    }
    return reach;
  }

  // Where leaves above blocks share nodes, they get as many rows as it takes for no two to overlap.
  // This is not done where leaves are joined to each other, as in a dragonfly.
  void FindRails() {
    rail_of_.assign(tiers_.items.size(), -1);
    const auto leaves = tiers_.fabric.find(1);
    if (tiers_.in_detail || leaves == tiers_.fabric.end()) return;
    constexpr int kMostRails = 16;
    constexpr size_t kFewLinks = 24;
    size_t links = 0;
    std::vector<double> ends;  // of the last bar of each rail
    for (const size_t item : leaves->second) {
      for (const size_t other : tiers_.neighbours[item]) {
        if (tiers_.items[other].is_fabric && tiers_.items[other].tier == 1) return;
        links += tiers_.is_dropped[other] || tiers_.items[other].is_fabric ? 0 : 1;
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
      rail_of_.assign(tiers_.items.size(), -1);
    }
  }

  // Rails are thin; their names stand at the right ends of those that are alone in their row.
  void PlaceRails(const std::vector<size_t>& row, double right) {
    std::vector<int> bars(rails_);
    for (const size_t item : row) ++bars[rail_of_[item]];
    for (const size_t item : row) {
      const auto [from, to] = ReachOf(item);
      PlacedBox& box = tiers_.items[item].box;
      box.width = to - from;
      box.height = kRailHeight;
      box.center = {(from + to) / 2, nodes_top_ - kRailGap - kRailPitch * rail_of_[item]};
      is_placed_[item] = true;
      if (bars[rail_of_[item]] == 1 && tiers_.more_switches[1] == 0)
        layout_.captions.push_back(
            {{to + kGap + svg::TextWidth(box.label, 12) / 2, box.center.y + 4}, box.label});
      box.label.clear();
    }
    if (tiers_.more_switches[1] > 0)
      layout_.captions.push_back(
          {{right + kCaptionRoom, nodes_top_ - kRailGap - kRailPitch * (rails_ - 1) / 2.0 + 4},
           fmt::format("and {} more", tiers_.more_switches[1])});
  }

  // Draws the link upright, each rail at its own place: over a node from the left, or up from a
  // rail at its end.
  void PlaceOnRail(size_t low, size_t high, PlacedLink* link) const {
    const PlacedBox& box = tiers_.items[low].box;
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
    for (const Bundle& bundle : tiers_.bundles) {
      if (tiers_.is_dropped[bundle.a] || tiers_.is_dropped[bundle.b]) continue;
      const PlacedBox& a = tiers_.items[bundle.a].box;
      const PlacedBox& b = tiers_.items[bundle.b].box;
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
        // The link is upright if the two lie above each other.
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

  // An arc between neighbours is straight; else it goes around what lies between them, below the
  // row for devices and above it for others.
  void PlaceArc(const Bundle& bundle, PlacedLink* link) {
    const Item& a = tiers_.items[bundle.a];
    const Item& b = tiers_.items[bundle.b];
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
      if (a.is_fabric && a.tier < tiers_.fabric.rbegin()->first)
        bend = std::min(bend, 0.7 * kFabricHeight);
      else if (a.is_fabric)
        bend = kLeastArc + kSteepArc * distance;  // a wider one is higher
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
    for (size_t i = 0; i < tiers_.items.size(); ++i) {
      const PlacedBox& box = tiers_.items[i].box;
      if (!tiers_.is_dropped[i] && box.center.y == left.center.y && box.center.x > left.center.x &&
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
    MoveIntoView(frame, kTierMargin, &layout_);
  }

  TierContents tiers_;
  ClusterLayout layout_;
  std::vector<bool> is_placed_;  // by item
  std::vector<int> rail_of_;     // item -> row from the nodes, or -1
  int rails_ = 0;                // rows
  double right_ = 0;             // of the nodes
  double nodes_top_ = 0;
  double nodes_bottom_ = 0;
};

}  // namespace

ClusterLayout LayOutTiers(const Cluster& cluster) {
  return TierLayout(CollectTiers(cluster)).Run();
}

}  // namespace rehearse
