// How long exact pieces of work were measured to take: a user's own points. They replace the
// device's model where every size agrees; nothing is interpolated between them.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "sim/base/quantity.h"
#include "sim/schedule/schedule.h"

namespace rehearse {

enum class PointOp : uint8_t { kGemm, kAttention, kAttentionBackward };

// A GEMM has m, n, k (of one product of its batch), and perhaps a mode: without one it stands for
// all modes that have no point of their own. An attention core has heads (of one sequence), head
// size, sequence, and batch sequences.
struct PointKey {
  PointOp op = PointOp::kGemm;
  DType dtype = DType::kBf16;
  std::optional<GemmMode> mode;
  uint64_t m = 0;
  uint64_t n = 0;
  uint64_t k = 0;
  uint64_t heads = 0;
  uint64_t head_size = 0;
  uint64_t sequence = 0;
  uint64_t batch = 1;
  bool causal = true;

  friend auto operator<=>(const PointKey&, const PointKey&) = default;
};

struct DevicePoints {
  std::map<PointKey, Seconds> times;  // of the whole op, launches included
};

// "gemm 4096 x 8192 x 8192 bf16", "attention of 32 heads of 128, sequence 4096, bf16"
std::string Describe(const PointKey& key);

// What a point of this op would be; of an attention core, whose op does not tell heads from
// sequences, with all heads in one batch. Nothing for ops that have no points.
std::optional<PointKey> KeyOf(const Compute& compute, bool backward);

// The point that counts for the op; nothing if there is none. For attention, batch · heads must
// agree.
std::optional<PointKey> PointOf(const DevicePoints& points, const Compute& compute, bool backward);
std::optional<Seconds> TimeOf(const DevicePoints& points, const Compute& compute, bool backward);

}  // namespace rehearse
