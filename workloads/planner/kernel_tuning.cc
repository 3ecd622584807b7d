#include "workloads/planner/kernel_tuning.h"

#include <map>
#include <tuple>

namespace rehearse {
namespace {

GemmMode FastestMode(const DeviceSpec& device, const Compute& compute) {
  Compute tried = compute;
  GemmMode best = compute.gemm.mode;
  Seconds shortest = ComputeTime(device, compute, false);
  for (const GemmMode mode : {GemmMode::kNN, GemmMode::kNT, GemmMode::kTN}) {
    tried.gemm.mode = mode;
    const Seconds time = ComputeTime(device, tried, false);
    if (!(time < shortest)) continue;
    shortest = time;
    best = mode;
  }
  return best;
}

}  // namespace

void TuneKernels(const DeviceSpec& device, Schedule* schedule) {
  // Layers repeat: few shapes, many products.
  std::map<std::tuple<uint64_t, uint64_t, uint64_t, uint32_t, GemmMode, DType>, GemmMode> known;
  for (Role& role : schedule->roles) {
    for (Op& op : role.ops) {
      auto* compute = std::get_if<Compute>(&op.work);
      if (compute == nullptr || compute->kind != ComputeKind::kGemm) continue;
      if (SizeOf(compute->dtype) < Bytes(2)) continue;  // there is one order for these
      const Gemm& gemm = compute->gemm;
      const auto [it, is_new] = known.try_emplace(
          {gemm.m, gemm.n, gemm.k, gemm.batch, gemm.mode, compute->dtype}, gemm.mode);
      if (is_new) it->second = FastestMode(device, *compute);
      if (it->second != gemm.mode) compute->tuned = it->second;
    }
  }
}

}  // namespace rehearse
