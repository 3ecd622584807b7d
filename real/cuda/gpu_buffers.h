// The memory of a rank's buffers, in one piece on its GPU and in one, pinned, on its host, and the
// copying of values in and out.
#pragma once

#include <cstdint>
#include <vector>

#include "real/backends/rank_plan.h"
#include "real/cuda/gpu.h"
#include "real/cuda/gpu_program.h"

namespace rehearse {

class GpuBuffers {
 public:
  // Data are kept as the Schedule's buffers say, or all in fp32. Throws Error before anything is
  // allocated if the device has too little memory. The plan must outlive it.
  GpuBuffers(const CudaRuntime& cuda, const RankPlan& plan, bool all_fp32, int device);

  GpuAddresses& addresses() { return addresses_; }
  const GpuAddresses& addresses() const { return addresses_; }

  // These do what Backend says. They all wait until the copy is done.
  void Write(CudaStream stream, BufferId buffer, const std::vector<double>& values) const;
  std::vector<double> Read(CudaStream stream, BufferId buffer) const;
  void Fill(CudaStream stream, BufferId buffer, double value) const;
  void ClearAll(CudaStream stream) const;
  // Saves all memory as it is now, and restores it.
  GpuMemory Save(CudaStream stream) const;
  void Restore(CudaStream stream, const GpuMemory& saved) const;

 private:
  bool IsOnHost(const MemoryPlan& memory) const;

  const CudaRuntime& cuda_;
  const RankPlan& plan_;
  GpuAddresses addresses_;
  GpuMemory memory_;
  uint64_t bytes_ = 0;
  PinnedMemory host_;
  uint64_t host_bytes_ = 0;
};

}  // namespace rehearse
