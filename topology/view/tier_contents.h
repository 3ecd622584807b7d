// What a picture of a cluster in tiers shows, before anything has a place
// (topology/view/cluster_layout.h): boxes, the links between them, the tier of each; switches that
// are joined alike or belong to one group are one box, and of crowds only the first few are left.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "topology/view/cluster_layout.h"

namespace rehearse {

// Lengths are in pixels.
inline constexpr double kTierDeviceHeight = 34;
inline constexpr double kTierPartHeight = 24;
inline constexpr double kTierBlockHeight = 40;
// The lowest rows of a node; others lie above them.
inline constexpr int kNvSwitchRow = 0;
inline constexpr int kDeviceRow = 1;

struct TierContents {
  struct Item {  // a vertex or a block
    PlacedBox box;
    bool is_fabric = false;
    int tier = 0;
  };
  struct Node {
    std::string name;
    std::vector<size_t> items;
  };
  struct Bundle {  // equal links between two items, the first before the second
    size_t a = 0, b = 0;
    LinkKind kind = LinkKind::kNetwork;
    double bandwidth = 0;
    uint32_t there = 0;
    uint32_t back = 0;
  };

  bool in_detail = false;
  std::vector<Item> items;
  std::vector<bool> is_dropped;  // items that are not shown
  std::vector<Node> nodes;
  size_t more_nodes = 0;  // that are not shown
  std::vector<Bundle> bundles;
  std::vector<std::vector<size_t>> neighbours;  // of each item
  std::map<int, std::vector<size_t>> fabric;    // tier -> items
  std::map<int, size_t> more_switches;          // by tier: that are not shown
  bool are_groups = false;                      // the boxes of tier 1 are groups of switches
  std::map<std::string, std::string> shown_by;  // as in ClusterLayout
};

TierContents CollectTiers(const Cluster& cluster);

}  // namespace rehearse
