#include "topology/devices/device_points.h"

#include <cmath>

#include <fmt/format.h>

#include "topology/devices/attention_model.h"

namespace rehearse {

std::string Describe(const PointKey& key) {
  const std::string batch = key.batch > 1 ? fmt::format(", batch {}", key.batch) : "";
  if (key.op == PointOp::kGemm) {
    return fmt::format("gemm {}{} x {} x {} {}{}",
                       key.mode ? fmt::format("{} ", Name(*key.mode)) : "", key.m, key.n, key.k,
                       Name(key.dtype), batch);
  }
  return fmt::format("{} of {} heads of {}, sequence {}{}, {}{}",
                     key.op == PointOp::kAttention ? "attention" : "attention-backward", key.heads,
                     key.head_size, key.sequence, key.causal ? "" : " without a mask",
                     Name(key.dtype), batch);
}

std::optional<PointKey> KeyOf(const Compute& compute, bool backward) {
  PointKey key;
  key.dtype = compute.dtype;
  if (compute.kind == ComputeKind::kGemm) {
    key.m = compute.gemm.m;
    key.n = compute.gemm.n;
    key.k = compute.gemm.k;
    key.batch = compute.gemm.batch;
    key.mode = compute.tuned.value_or(compute.gemm.mode);
    return key;
  }
  if (compute.kind != ComputeKind::kAttention) return std::nullopt;
  const auto shape = ShapeOf(compute, backward);
  if (!shape || shape->keys > 0) return std::nullopt;
  key.op = backward ? PointOp::kAttentionBackward : PointOp::kAttention;
  key.heads = static_cast<uint64_t>(std::llround(shape->sequences_times_heads));
  key.head_size = static_cast<uint64_t>(std::llround(shape->head_size));
  key.sequence = static_cast<uint64_t>(std::llround(shape->sequence));
  key.causal = shape->causal;
  return key;
}

std::optional<PointKey> PointOf(const DevicePoints& points, const Compute& compute, bool backward) {
  std::optional<PointKey> key = KeyOf(compute, backward);
  if (!key) return std::nullopt;
  if (key->op == PointOp::kGemm) {
    if (points.times.contains(*key)) return key;
    key->mode.reset();
    if (points.times.contains(*key)) return key;
    return std::nullopt;
  }
  const auto shape = ShapeOf(compute, backward);
  // A search through all is quick enough, as points are few; the op does not tell heads from
  // sequences.
  for (const auto& [point, time] : points.times) {
    if (point.op != key->op || point.dtype != compute.dtype || point.causal != shape->causal)
      continue;
    if (static_cast<double>(point.sequence) != shape->sequence) continue;
    if (static_cast<double>(point.head_size) != shape->head_size) continue;
    const auto cores = static_cast<double>(point.heads * point.batch);
    if (std::abs(cores - shape->sequences_times_heads) <= 1e-6 * cores) return point;
  }
  return std::nullopt;
}

std::optional<Seconds> TimeOf(const DevicePoints& points, const Compute& compute, bool backward) {
  const std::optional<PointKey> point = PointOf(points, compute, backward);
  if (!point) return std::nullopt;
  return points.times.at(*point);
}

}  // namespace rehearse
