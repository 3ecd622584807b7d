// ATP's own communication model (arXiv 2301.08658, eq. 2-4): what the paper predicts for
// DeviceMesh(d1, d2), for comparison with the simulator. Ring times without latency and without
// overlap.
//
//   eq. 2   T = 2·L·b·s·(7h/(d1·B2) + 2h/(d2·B1))     forward and backward of L layers
//   eq. 4   B_i = d_i / (2(d_i - 1)) · B'_i           algorithm bandwidth of an all-reduce
//   eq. 3   B'_i from the hierarchical communication matrix
//           (topology/fabrics/communication_matrix.h)
//
// The four terms of eq. 2 are the all-reduces of QKV (3h/d1 on axis 2), output projection (h/d2 on
// axis 1), MLP up (4h/d1 on axis 2) and MLP down (h/d2 on axis 1), each once forward and once
// backward. Errata of the paper, kept apart here: eq. 2 counts elements where bandwidths count
// bytes (`element` makes them bytes), and it leaves out the all-gather of the attention core's
// output (h/d1 along axis 2 in each direction; `core_gather`). Section 5.4 takes B'1 = B'2 =
// GroupBW for IC5 and IC6, where eq. 3 would divide B'1 by d2; section 5.3 says that ATP-1 is
// chosen up to 8 devices, but its formula has ATP-2 ahead from 8 on: 3.5 against 3.25. Section 5.3
// chooses ATP-1 for IC2 by comparing B' where eq. 2 has B; with eq. 4 ATP-2 is ahead.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/quantity.h"
#include "topology/fabrics/communication_matrix.h"

namespace rehearse {

struct AtpWorkload {
  uint32_t layers = 1;
  double tokens = 0;  // b·s
  uint64_t hidden = 0;
  Bytes element = Bytes(2);
};

struct AtpMesh {
  uint32_t d1 = 1;
  uint32_t d2 = 1;
};

struct AtpPrediction {
  Seconds qkv;
  Seconds projection;
  Seconds mlp_up;
  Seconds mlp_down;
  Seconds Total() const { return qkv + projection + mlp_up + mlp_down; }  // eq. 2
  Seconds core_gather;                                                    // what eq. 2 leaves out
};

// Eq. 4: the algorithm bandwidth of an all-reduce over `size` devices that find `bus`. It is
// infinite for one device.
BytesPerSecond AtpAlgorithmBandwidth(BytesPerSecond bus, uint32_t size);

// Eq. 2 with algorithm bandwidths B1 and B2, as calibrated or by eq. 4.
AtpPrediction PredictAtp(const AtpWorkload& workload, const AtpMesh& mesh, BytesPerSecond b1,
                         BytesPerSecond b2);

// Eq. 2-4 with what the cluster's matrix says about the mesh. CHECKs as AllReduceBandwidths does.
AtpPrediction PredictAtp(const AtpWorkload& workload, const AtpMesh& mesh,
                         const CommunicationMatrix& matrix);

// Whether each axis takes whole factors of every layer of the matrix, the first axis from the top;
// eq. 3 says nothing about other meshes.
bool SplitsEvenly(const CommunicationMatrix& matrix, const AtpMesh& mesh);

// Meshes for all splits of the matrix's devices into two factors, fastest first; ties by d2. Meshes
// that split a layer of the matrix unevenly are left out.
struct RankedAtpMesh {
  AtpMesh mesh;
  AtpPrediction prediction;
};
std::vector<RankedAtpMesh> RankAtpMeshes(const AtpWorkload& workload,
                                         const CommunicationMatrix& matrix);

}  // namespace rehearse
