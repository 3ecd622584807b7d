#include "workloads/cost_models/atp_model.h"

#include <algorithm>
#include <limits>

#include "sim/base/error.h"

namespace rehearse {
BytesPerSecond AtpAlgorithmBandwidth(BytesPerSecond bus, uint32_t size) {
  CHECK_GE(size, 1u);
  if (size == 1) return BytesPerSecond(std::numeric_limits<double>::infinity());
  return bus * (size / (2.0 * (size - 1)));
}

AtpPrediction PredictAtp(const AtpWorkload& workload, const AtpMesh& mesh, BytesPerSecond b1,
                         BytesPerSecond b2) {
  // Each term counts twice, for forward and backward, per h columns.
  const Bytes columns = 2.0 * workload.layers * workload.tokens *
                        static_cast<double>(workload.hidden) * workload.element;
  AtpPrediction prediction;
  prediction.qkv = 3.0 * columns / mesh.d1 / b2;
  prediction.projection = columns / mesh.d2 / b1;
  prediction.mlp_up = 4.0 * columns / mesh.d1 / b2;
  prediction.mlp_down = columns / mesh.d2 / b1;
  // An all-gather takes half the time of an all-reduce of the same array.
  prediction.core_gather = columns / mesh.d1 / b2 / 2;
  return prediction;
}

AtpPrediction PredictAtp(const AtpWorkload& workload, const AtpMesh& mesh,
                         const CommunicationMatrix& matrix) {
  const MeshBandwidths found = AllReduceBandwidths(matrix, mesh.d1, mesh.d2);
  return PredictAtp(workload, mesh, AtpAlgorithmBandwidth(found.first, mesh.d1),
                    AtpAlgorithmBandwidth(found.second, mesh.d2));
}

bool SplitsEvenly(const CommunicationMatrix& matrix, const AtpMesh& mesh) {
  uint32_t left1 = mesh.d1;
  uint32_t left2 = mesh.d2;
  for (const CommunicationLayer& layer : matrix.layers) {
    const uint32_t used1 = std::min(left1, layer.siblings);
    const uint32_t used2 = layer.siblings / used1;
    if (left1 % used1 != 0 || layer.siblings % used1 != 0 || left2 % used2 != 0) return false;
    left1 /= used1;
    left2 /= used2;
  }
  return left1 == 1 && left2 == 1;
}

std::vector<RankedAtpMesh> RankAtpMeshes(const AtpWorkload& workload,
                                         const CommunicationMatrix& matrix) {
  uint32_t devices = 1;
  for (const CommunicationLayer& layer : matrix.layers) devices *= layer.siblings;
  std::vector<RankedAtpMesh> ranked;
  for (uint32_t d2 = 1; d2 <= devices; ++d2) {
    if (devices % d2 != 0) continue;
    const AtpMesh mesh{devices / d2, d2};
    if (!SplitsEvenly(matrix, mesh)) continue;
    ranked.push_back({mesh, PredictAtp(workload, mesh, matrix)});
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const RankedAtpMesh& a, const RankedAtpMesh& b) {
                     return a.prediction.Total() < b.prediction.Total();
                   });
  return ranked;
}

}  // namespace rehearse
