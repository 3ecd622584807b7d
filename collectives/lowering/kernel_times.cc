#include "collectives/lowering/kernel_times.h"

#include <bit>
#include <tuple>

namespace rehearse {
namespace {

uint64_t HashOfKernel(const Compute& compute) {
  uint64_t hash = static_cast<uint64_t>(compute.kernel);
  for (const uint64_t part :
       {compute.gemm.m, compute.gemm.n, compute.gemm.k, std::bit_cast<uint64_t>(compute.bytes),
        std::bit_cast<uint64_t>(compute.flops)}) {
    hash = (hash ^ part) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 32;
  }
  return hash;
}

bool AreSame(const Compute& a, const Compute& b) {
  const auto facts = [](const Compute& compute) {
    const Gemm& gemm = compute.gemm;
    return std::tie(compute.kind, compute.kernel, compute.dtype, gemm.m, gemm.n, gemm.k, gemm.mode,
                    gemm.batch, compute.tuned, compute.row_parts, compute.column_parts,
                    compute.attention, compute.duration, compute.flops, compute.bytes,
                    compute.kernels, compute.strided, compute.strided_bytes, compute.attributes);
  };
  return facts(a) == facts(b);
}

}  // namespace

Time KernelTimes::Of(const DeviceSpec& device, uint32_t spec, const Compute& compute,
                     bool backward) {
  std::vector<Known>& alike = known_[HashOfKernel(compute) % known_.size()];
  for (const Known& known : alike) {
    if (known.spec == spec && known.backward == backward && AreSame(known.compute, compute))
      return known.time;
  }
  const Seconds time =
      in_steps_ ? TimeInSteps(device, compute, backward) : ComputeTime(device, compute, backward);
  alike.push_back({spec, backward, compute, ToTime(time)});
  return alike.back().time;
}

}  // namespace rehearse
