// A fabric that another tool's file describes switch by switch, and the cluster that it becomes:
// nodes of one kind, a cluster preset's, cabled to switches that are drawn one by one.
//
// Equal switches that stand side by side, as the spines of a fat tree do, are drawn as one, since a
// drawn graph has only one way between two devices and always takes it. What crosses them is spread
// evenly, packet by packet, which adaptive routing and spraying come close to
// (topology/fabrics/routing.h). A switch is on level 1 if nodes are cabled to it, otherwise one
// level above the lowest switch that it is cabled to. On levels above 1, switches that are cabled
// to the same switches of the level below (as drawn) are drawn as one. This is exactly a block of
// parallel switches in our own fat trees (topology/fabrics/fabric_clos.h). Several cables between
// two switches are one link with the sum of their bandwidths. Links between switches take no time
// (topology/presets/link_rows.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/foreign/machines/imported_cluster.h"
#include "topology/devices/device.h"
#include "topology/presets/node.h"

namespace rehearse {

// What every node looks like.
struct NodeTemplate {
  std::string preset;  // "dgx-h100"
  NodeShape shape;
  DeviceSpec device;
  std::string network_plugin;
  BytesPerSecond bandwidth;  // of all its ports together
};

inline constexpr const char* kAssumedNode = "dgx-h100";
inline constexpr uint32_t kMostPlannedNodes = 100'000;

// One node of the cluster preset; "" is kAssumedNode, with a remark. Throws Error for a name that
// is not a preset, and for a machine that nothing can be cabled to.
NodeTemplate NodeTemplateOf(const std::string& preset, Remarks& remarks);

struct FabricPlan {
  struct Switch {
    std::string name;
    int line = 0;
  };
  struct Trunk {  // all cables between two switches, or some of them
    uint32_t a = 0;
    uint32_t b = 0;
    BytesPerSecond bandwidth;
  };
  struct Port {
    uint32_t port = 0;  // of the node's shape: where the cable begins, and its figures
    uint32_t to = 0;    // switch
    BytesPerSecond bandwidth;
  };
  struct Node {
    std::string name;
    int line = 0;
    std::vector<Port> ports;
  };
  std::vector<Switch> switches;
  std::vector<Trunk> trunks;
  std::vector<Node> nodes;  // ranks are theirs, in this order
};

// `what` says what the file is ("Slurm's topology.conf"). Throws Error with the file's name, and
// the line if there is one, for names that appear twice, for what would be too large for a cluster
// file, and for nodes that are not connected.
ImportedCluster DrawPlan(const FabricPlan& plan, const NodeTemplate& node, Remarks remarks,
                         const std::string& file, const char* what);

// A name that a vertex may have: letters, digits, '.', '_' and '-', which selectors know
// (topology/files/edits.h); everything else becomes '-'.
std::string PlanName(std::string_view text);

}  // namespace rehearse
