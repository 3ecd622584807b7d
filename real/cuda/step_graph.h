// A step as a CUDA graph: captured once from the streams, launched whole from then on.
//
// The capture begins on the first stream and takes the others in by events, as the ops themselves
// do; while it lasts, the thread may only put work onto the streams. What is captured is fixed,
// arguments of kernels included: a step with other facts has to be captured anew.
#pragma once

#include <functional>
#include <vector>

#include "real/cuda/gpu.h"

namespace rehearse {

class StepGraph {
 public:
  // Captures what `launch` puts onto the streams. Throws what it throws, and Error where a call
  // fails; then the streams are as before.
  StepGraph(const CudaRuntime& cuda, std::vector<CudaStream> streams,
            const std::function<void()>& launch);

  void Launch() const;  // on the first stream
  // Of the last launch. Throws Error when something of it failed on the device.
  bool IsDone() const;

 private:
  void JoinAll() const;

  const CudaRuntime& cuda_;
  std::vector<CudaStream> streams_;
  std::vector<GpuEvent> joins_;  // by stream; the first stream's is where the others leave it
  GpuEvent done_;
  GpuGraph graph_;
  GpuGraphExec executable_;
};

}  // namespace rehearse
