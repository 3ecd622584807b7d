#include "topology/view/cluster_layout.h"

#include <algorithm>

namespace rehearse {

ClusterLayout LayOutCluster(const Cluster& cluster) {
  const std::optional<Grid> grid = FindGrid(cluster);
  if (grid) return LayOutGrid(cluster, *grid);
  const std::optional<GridOfNodes> nodes = FindGridOfNodes(cluster);
  return nodes ? LayOutGrid(cluster, *nodes) : LayOutTiers(cluster);
}

void Frame::Include(double x, double y) {
  left = std::min(left, x);
  right = std::max(right, x);
  top = std::min(top, y);
  bottom = std::max(bottom, y);
}

Frame FrameOf(const ClusterLayout& layout) {
  constexpr double kSwing = 0.75;  // how much of its pull a cubic curve follows
  Frame frame;
  for (const PlacedBox& box : layout.boxes) {
    frame.Include(box.center.x - box.width / 2, box.center.y - box.height / 2);
    frame.Include(box.center.x + box.width / 2, box.center.y + box.height / 2);
  }
  for (const PlacedNode& node : layout.nodes) {
    frame.Include(node.corner.x, node.corner.y);
    frame.Include(node.corner.x + node.width, node.corner.y + node.height);
  }
  for (const PlacedLink& link : layout.links) {
    frame.Include(link.from.x + kSwing * link.from_pull.x, link.from.y + kSwing * link.from_pull.y);
    frame.Include(link.to.x + kSwing * link.to_pull.x, link.to.y + kSwing * link.to_pull.y);
  }
  return frame;
}

Point PlaceOfCount(const PlacedLink& link) {
  // The place is on the cubic curve with the points (from, from + from_pull, to + to_pull, to).
  const double t = link.count_at;
  const double pull = 3 * t * (1 - t);
  const auto along = [&](double from, double from_pull, double to, double to_pull) {
    return from + t * (to - from) + pull * ((1 - t) * from_pull + t * to_pull);
  };
  return {along(link.from.x, link.from_pull.x, link.to.x, link.to_pull.x),
          along(link.from.y, link.from_pull.y, link.to.y, link.to_pull.y)};
}

void MoveIntoView(const Frame& frame, double margin, ClusterLayout* layout) {
  const auto move = [&](Point& point) {
    point.x += margin - frame.left;
    point.y += margin - frame.top;
  };
  for (PlacedBox& box : layout->boxes) move(box.center);
  for (PlacedNode& node : layout->nodes) move(node.corner);
  for (Caption& caption : layout->captions) move(caption.at);
  for (PlacedLink& link : layout->links) {
    move(link.from);
    move(link.to);
  }
  layout->width = frame.right - frame.left + 2 * margin;
  layout->height = frame.bottom - frame.top + 2 * margin;
}

}  // namespace rehearse
