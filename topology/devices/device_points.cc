#include "topology/devices/device_points.h"

#include <cmath>

#include "topology/devices/attention_model.h"

namespace rehearse {
namespace {

std::optional<Seconds> Find(const DevicePoints& points, const PointKey& key) {
  const auto found = points.times.find(key);
  if (found == points.times.end()) return std::nullopt;
  return found->second;
}

}  // namespace

std::optional<Seconds> TimeOf(const DevicePoints& points, const Compute& compute, bool backward) {
  PointKey key;
  key.dtype = compute.dtype;
  if (compute.kind == ComputeKind::kGemm) {
    key.m = compute.gemm.m;
    key.n = compute.gemm.n;
    key.k = compute.gemm.k;
    key.batch = compute.gemm.batch;
    key.mode = compute.gemm.mode;
    if (const auto own = Find(points, key)) return own;
    key.mode.reset();
    return Find(points, key);
  }
  if (compute.kind != ComputeKind::kAttention) return std::nullopt;
  const auto shape = ShapeOf(compute, backward);
  if (!shape || shape->keys > 0) return std::nullopt;
  const PointOp op = backward ? PointOp::kAttentionBackward : PointOp::kAttention;
  // A search through all is quick enough, as points are few; the op does not tell heads from
  // sequences.
  for (const auto& [point, time] : points.times) {
    if (point.op != op || point.dtype != compute.dtype || point.causal != shape->causal) continue;
    if (static_cast<double>(point.sequence) != shape->sequence) continue;
    if (static_cast<double>(point.head_size) != shape->head_size) continue;
    const auto cores = static_cast<double>(point.heads * point.batch);
    if (std::abs(cores - shape->sequences_times_heads) <= 1e-6 * cores) return time;
  }
  return std::nullopt;
}

}  // namespace rehearse
