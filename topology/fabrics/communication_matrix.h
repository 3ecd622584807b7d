// How fast devices can communicate: pair by pair, group by group, half by half. All bandwidths are
// capacities (nominal bandwidth times efficiency) of one direction on an idle machine.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/base/progress.h"
#include "topology/cluster/cluster.h"
#include "topology/fabrics/router.h"

namespace rehearse {

// ---- Pairs --------------------------------------------------------------------------------------

// [i][j] is from ranks[i] to ranks[j] over the route between them; the diagonal is 0.
struct PairwiseMatrix {
  std::vector<uint32_t> ranks;
  std::vector<std::vector<BytesPerSecond>> bandwidth;
  std::vector<std::vector<Seconds>> latency;
};

PairwiseMatrix Pairwise(Router& router, const std::vector<uint32_t>& ranks,
                        ProgressObserver& observer = NoObserver());

// ---- ATP's hierarchical communication matrix ----------------------------------------------------

// One layer (ATP, arXiv 2301.08658, section 3.4). A group is a device in the last layer, and a set
// of devices above; siblings are the groups of one group of the layer before (of all devices, in
// the first layer).
//   point-to-point  what two siblings can exchange without a third: the maximum flow over the
//                   routes from all devices of one to all of the other, leaving out routes through
//                   another sibling's own routers (in a torus only neighbours exchange anything).
//   group           what a group can send to all its siblings together: the maximum flow
//                   over all routes.
struct CommunicationLayer {
  uint32_t siblings = 1;                                    // R in the paper
  std::vector<std::vector<uint32_t>> groups;                // ranks; siblings follow each other
  std::vector<BytesPerSecond> group_bandwidth;              // by group
  std::vector<std::vector<BytesPerSecond>> point_to_point;  // [group][position of the sibling]
};

struct CommunicationMatrix {
  std::vector<CommunicationLayer> layers;  // whole cluster first, single devices last
};

// The layers follow from the graph: the dimensions of a torus or mesh (when `ranks` are all of it),
// slowest first; else the sets of devices that are joined by routes of at least some bandwidth,
// wherever these sets are equally large.
CommunicationMatrix HierarchicalMatrix(Router& router, const std::vector<uint32_t>& ranks,
                                       ProgressObserver& observer = NoObserver());

// Equation 3: the bandwidths B'1 and B'2 that an all-reduce finds on each axis of DeviceMesh(d1,
// d2), where devices that are next to each other lie on the second axis. Layers 1 to i belong to
// the first axis, i being the first whose siblings, multiplied up, reach d1; if they exceed it the
// layer is split and belongs to both. A layer that an axis does not use fully counts at most what
// its members exchange point to point. (The paper's text has the cases of i and i+1 the wrong way
// round; its example has them as here.) Infinite for an axis of size 1. CHECKs that d1·d2 is the
// number of devices and that layers split evenly.
struct MeshBandwidths {
  BytesPerSecond first;
  BytesPerSecond second;
};
MeshBandwidths AllReduceBandwidths(const CommunicationMatrix& matrix, uint32_t d1, uint32_t d2);

// ---- Halves -------------------------------------------------------------------------------------

// The smallest flow from one half of the devices to the other or back, over these halves: the ranks
// in order, starting at 0, 1/8, 2/8 and 3/8 of them, and in a torus or mesh the two halves of each
// dimension of even size. (All halves of a cluster are too many to try; for symmetric clusters
// these contain the narrowest.) Nothing for a single device.
std::optional<BytesPerSecond> BisectionBandwidth(const Cluster& cluster);

}  // namespace rehearse
