// Where the parts of a cluster lie in a picture, in pixels; y grows downwards.
//
// A torus or mesh, of devices or of nodes, is laid out as a grid (a ring as a circle, three
// dimensions as planes behind each other). Everything else lies in tiers: in each node NVSwitches
// at the bottom, then devices, PCIe switches, sockets and NICs, each above what it is joined to;
// above the nodes the fabric's switches, by their distance from the nodes; where several leaves
// share the same nodes (rails), each is a thin bar over its nodes, above each other. A cluster of
// more than kMostInDetail devices shows nodes as blocks with a dot for each device, each group of a
// dragonfly of many switches as one box, with arcs from group to group, and of many equal things
// only the first few, with a caption that says how many there are. Deterministic; a pure function.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "topology/cluster/cluster.h"
#include "topology/cluster/grid.h"

namespace rehearse {

inline constexpr uint32_t kMostInDetail = 40;

struct Point {
  double x = 0;
  double y = 0;
};

struct PlacedBox {  // a vertex, or a node as a block
  Point center;
  double width = 0;
  double height = 0;
  VertexKind kind = VertexKind::kDevice;
  std::string label;
  std::string title;  // its full name
  uint32_t dots = 0;  // a block's devices; 0 for a vertex
  uint32_t dots_across = 0;
  bool has_nvswitch = false;  // in a block
};

struct PlacedNode {  // the frame around a node's vertices
  Point corner;      // upper left
  double width = 0;
  double height = 0;
  std::string label;
};

struct PlacedLink {  // one or more equal links between the same two boxes, both directions
  Point from;
  Point to;
  Point from_pull;  // a curve leaves in this direction, and arrives in the other
  Point to_pull;
  LinkKind kind = LinkKind::kNetwork;
  BytesPerSecond bandwidth;
  uint32_t count = 1;
  bool one_way = false;
  bool around = false;    // a torus's link from the last to the first
  double count_at = 0.5;  // how far along the line its count stands
  std::string title;
};

// Where the line says how many links it is.
Point PlaceOfCount(const PlacedLink& link);

struct Caption {
  Point at;  // the middle of its baseline
  std::string text;
};

struct ClusterLayout {
  double width = 0;
  double height = 0;
  std::vector<PlacedNode> nodes;
  std::vector<PlacedLink> links;
  std::vector<PlacedBox> boxes;
  std::vector<Caption> captions;
  // Vertices that another one's box shows, by name: routers of a grid, switches joined alike.
  std::map<std::string, std::string> shown_by;
};

ClusterLayout LayOutCluster(const Cluster& cluster);

// A rectangle that grows.
struct Frame {
  double left = 1e9, top = 1e9, right = -1e9, bottom = -1e9;

  void Include(double x, double y);
};
// The frame around nodes, boxes and links; captions are the caller's to include.
Frame FrameOf(const ClusterLayout& layout);
// Moves everything so that the frame with its margin begins at 0, 0 and is the whole picture.
void MoveIntoView(const Frame& frame, double margin, ClusterLayout* layout);

// The kinds of layout: a grid of devices, of nodes, and everything else. `grid` is what was found.
ClusterLayout LayOutGrid(const Cluster& cluster, const Grid& grid);
ClusterLayout LayOutGrid(const Cluster& cluster, const GridOfNodes& grid);
ClusterLayout LayOutTiers(const Cluster& cluster);

}  // namespace rehearse
