// Tori and meshes as grids; see topology/view/cluster_layout.h.
#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <tuple>

#include <fmt/format.h>

#include "topology/view/cluster_layout.h"

namespace rehearse {
namespace {

// Lengths are in pixels.
constexpr double kGridMargin = 30;
constexpr double kPitch = 88;
constexpr double kBox = 42;
constexpr double kDeepPitch = 122;  // when there are more than two dimensions
constexpr double kSmallBox = 24;
constexpr double kSmallestBox = 8;
constexpr double kNodeWidth = 54;
constexpr double kLabelRoom = 18;  // a smaller box has no label
constexpr double kArc = 46;        // how far links around swing out
constexpr double kPast = 34;
constexpr double kStub = 26;    // links around are such stubs if there is no room for arcs
constexpr double kDepth = 104;  // how far the third dimension reaches within a pitch
constexpr uint32_t kMostInAll = 1024;
constexpr uint32_t kMostAlong = 8;  // per dimension, when there are more in all

class GridLayout {
 public:
  GridLayout(const Cluster& cluster, const Grid& grid) : cluster_(cluster), grid_(grid) {
    for (uint32_t rank = 0; rank < cluster.device_count(); ++rank)
      names_.push_back(cluster.DeviceName(rank));
    place_of_ = RouterOwners(cluster);
    ChooseShown();
  }
  GridLayout(const Cluster& cluster, const GridOfNodes& nodes)
      : cluster_(cluster),
        grid_(nodes.grid),
        names_(nodes.nodes),
        place_of_(nodes.place_of.begin(), nodes.place_of.end()),
        devices_of_(nodes.devices_of) {
    ChooseShown();
  }

  ClusterLayout Run() {
    PlaceDevices();
    PlaceLinks();
    PlaceCaption();
    for (VertexId id = 0; id < place_of_.size(); ++id) {
      if (!place_of_[id] || !IsShown(*place_of_[id])) continue;
      const Vertex& vertex = cluster_.VertexAt(id);
      if (vertex.kind == VertexKind::kSwitch)
        layout_.shown_by[vertex.name] = names_[*place_of_[id]];
    }
    return std::move(layout_);
  }

 private:
  void ChooseShown() {
    for (const uint32_t size : grid_.sizes)
      shown_.push_back(names_.size() > kMostInAll ? std::min(size, kMostAlong) : size);
  }
  uint32_t Count() const { return static_cast<uint32_t>(names_.size()); }
  bool IsCircle() const {
    constexpr uint32_t kMostOnCircle = 64;
    return grid_.sizes.size() == 1 && grid_.wraps[0] && grid_.sizes[0] <= kMostOnCircle;
  }
  bool IsFlat() const { return grid_.sizes.size() <= 2; }
  double Pitch() const { return IsFlat() ? kPitch : kDeepPitch; }
  double BoxSize() const {
    if (IsFlat()) return kBox;
    return std::clamp(0.85 * Step(2).x, kSmallestBox, kSmallBox);
  }

  bool IsShown(uint32_t rank) const {
    for (size_t d = 0; d < shown_.size(); ++d)
      if (grid_.Coordinate(rank, d) >= shown_[d]) return false;
    return true;
  }

  // One step along a dimension, in the picture.
  Point Step(size_t dimension) const {
    if (dimension == 0) return {Pitch(), 0};
    if (dimension == 1) return {0, Pitch()};
    if (dimension == 2) {
      const double step = kDepth / std::max(2u, shown_[2]);
      return {step, -0.7 * step};
    }
    // The fourth and later ones lay whole blocks side by side, in turn across and down.
    Point step;
    (dimension % 2 == 1 ? step.x : step.y) = Pitch() * (0.9 + shown_[dimension % 2 == 1 ? 0 : 1]);
    for (size_t d = 3; d < dimension; ++d) {
      if (d % 2 != dimension % 2) continue;
      step.x *= shown_[d] + 0.3;
      step.y *= shown_[d] + 0.3;
    }
    return step;
  }

  Point CenterOf(uint32_t rank) const {
    if (IsCircle()) {
      const double radius = std::max(90.0, grid_.sizes[0] * kPitch / (2 * std::numbers::pi));
      const double angle = 2 * std::numbers::pi * rank / grid_.sizes[0] - std::numbers::pi / 2;
      return {radius * std::cos(angle), radius * std::sin(angle)};
    }
    Point center;
    for (size_t d = 0; d < grid_.sizes.size(); ++d) {
      const Point step = Step(d);
      center.x += step.x * grid_.Coordinate(rank, d);
      center.y += step.y * grid_.Coordinate(rank, d);
    }
    return center;
  }

  void PlaceDevices() {
    // Far ones are drawn first, so that near ones lie over them.
    std::vector<uint32_t> ranks;
    for (uint32_t rank = 0; rank < Count(); ++rank)
      if (IsShown(rank)) ranks.push_back(rank);
    if (!IsFlat())
      std::stable_sort(ranks.begin(), ranks.end(), [&](uint32_t a, uint32_t b) {
        return grid_.Coordinate(a, 2) > grid_.Coordinate(b, 2);
      });
    for (const uint32_t rank : ranks) {
      PlacedBox box;
      box.center = CenterOf(rank);
      box.width = box.height = BoxSize();
      box.kind = VertexKind::kDevice;
      if (box.width >= kLabelRoom) box.label = fmt::format("{}", rank);
      box.title = names_[rank];
      if (!devices_of_.empty() && IsFlat()) {
        constexpr uint32_t kDotsAcross = 4;
        box.dots = devices_of_[rank];
        box.dots_across = std::clamp(box.dots, 1u, kDotsAcross);
        box.width = kNodeWidth;
        box.label = box.title;
      }
      layout_.boxes.push_back(box);
    }
    std::string text;
    if (ranks.size() < Count()) {
      for (size_t d = 0; d < shown_.size(); ++d)
        text += fmt::format("{}{}", d ? " x " : "", shown_[d]);
      text += " of";
      for (size_t d = 0; d < shown_.size(); ++d)
        text += fmt::format("{}{}", d ? " x " : " ", grid_.sizes[d]);
      text = "the first " + text;
      caption_ = text;
    }
  }

  void PlaceLinks() {
    std::map<std::tuple<uint32_t, uint32_t, LinkKind, double>, PlacedLink> links;
    for (uint32_t i = 0; i < cluster_.link_count(); ++i) {
      const uint32_t from = *place_of_[cluster_.SourceOf(i)];
      const uint32_t to = *place_of_[cluster_.TargetOf(i)];
      if (from == to) continue;
      const ClusterLink& link = cluster_.Link(i);
      const auto [low, high] = std::minmax(from, to);
      PlacedLink& placed = links[{low, high, link.kind, link.bandwidth.value()}];
      placed.kind = link.kind;
      placed.bandwidth = link.bandwidth;
      placed.title = fmt::format("{} - {}", names_[low], names_[high]);
    }
    for (auto& [key, link] : links) Place(std::get<0>(key), std::get<1>(key), link);
  }

  size_t DimensionBetween(uint32_t low, uint32_t high) const {
    for (size_t d = 0; d < grid_.sizes.size(); ++d)
      if (grid_.Coordinate(low, d) != grid_.Coordinate(high, d)) return d;
    CHECK(false);
  }

  void Place(uint32_t low, uint32_t high, PlacedLink link) {
    const size_t dimension = DimensionBetween(low, high);
    const uint32_t distance = grid_.Coordinate(high, dimension) - grid_.Coordinate(low, dimension);
    link.from = CenterOf(low);
    link.to = CenterOf(high);
    link.around = distance > 1;
    if (!link.around || IsCircle()) {
      link.around = false;
      // A link between blocks goes past whatever lies between them.
      if (dimension >= 3 && dimension % 2 == 1) link.from_pull = link.to_pull = {0, -kPast};
      if (dimension >= 3 && dimension % 2 == 0) link.from_pull = link.to_pull = {-kPast, 0};
      if (IsShown(low) && IsShown(high)) layout_.links.push_back(link);
      return;
    }
    if (IsFlat() && IsShown(low) && IsShown(high)) {
      // The arc goes over the row, or to the left of the column.
      const double half = BoxSize() / 2;
      const double length = distance * kPitch;
      const double swing = std::min(kArc, 20 + 0.1 * length);
      if (dimension == 0) {
        link.from = {link.from.x - 0.3 * kBox, link.from.y - half};
        link.to = {link.to.x + 0.3 * kBox, link.to.y - half};
        link.from_pull = link.to_pull = {0, -swing};
      } else {
        link.from = {link.from.x - half, link.from.y - 0.3 * kBox};
        link.to = {link.to.x - half, link.to.y + 0.3 * kBox};
        link.from_pull = link.to_pull = {-swing, 0};
      }
      layout_.links.push_back(link);
      return;
    }
    // There is no room for an arc, so the link is a stub at each end.
    const Point step = Step(dimension);
    const double length = std::hypot(step.x, step.y);
    const double reach = BoxSize() / 2 + (dimension == 2 ? 0.6 : 1) * kStub;
    const Point outwards = {step.x / length * reach, step.y / length * reach};
    const auto stub = [&](uint32_t rank, double sign) {
      if (!IsShown(rank)) return;
      PlacedLink end = link;
      end.from = CenterOf(rank);
      end.to = {end.from.x + sign * outwards.x, end.from.y + sign * outwards.y};
      layout_.links.push_back(end);
    };
    stub(low, -1);
    stub(high, 1);
  }

  void PlaceCaption() {
    Frame frame = FrameOf(layout_);
    if (!caption_.empty()) {
      frame.bottom += 24;
      layout_.captions.push_back({{(frame.left + frame.right) / 2, frame.bottom - 4}, caption_});
    }
    MoveIntoView(frame, kGridMargin, &layout_);
  }

  const Cluster& cluster_;
  const Grid& grid_;
  std::vector<std::string> names_;                 // by place: of devices, or of nodes
  std::vector<std::optional<uint32_t>> place_of_;  // by vertex
  std::vector<uint32_t> devices_of_;               // by place, where places are nodes
  std::vector<uint32_t> shown_;                    // of each dimension
  std::string caption_;
  ClusterLayout layout_;
};

}  // namespace

ClusterLayout LayOutGrid(const Cluster& cluster, const Grid& grid) {
  return GridLayout(cluster, grid).Run();
}

ClusterLayout LayOutGrid(const Cluster& cluster, const GridOfNodes& grid) {
  return GridLayout(cluster, grid).Run();
}

}  // namespace rehearse
