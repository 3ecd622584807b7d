// A step as a CUDA graph: captured once from the streams, launched whole from then on.
//
// The capture begins on the first stream and takes in the others by events, as the ops themselves
// do; while it lasts, the thread may only put work onto the streams. What is captured is fixed,
// including the arguments of kernels: a step with other facts has to be captured anew.
#pragma once

#include <functional>
#include <vector>

#include "real/cuda/gpu.h"

namespace rehearse {

class StepGraph {
 public:
  // Captures what `launch` puts onto the streams. Throws what that throws, and Error if a call
  // fails; the streams are then as before.
  StepGraph(const CudaRuntime& cuda, std::vector<CudaStream> streams,
            const std::function<void()>& launch);

  void Launch() const;  // on the first stream
  // Whether the last launch is done. Throws Error if a part of it failed on the device.
  bool IsDone() const;

 private:
  void JoinAll() const;

  const CudaRuntime& cuda_;
  std::vector<CudaStream> streams_;
  std::vector<GpuEvent>
      joins_;  // by stream; that of the first stream is where the others branch off
  GpuEvent done_;
  GpuGraph graph_;
  GpuGraphExec executable_;
};

}  // namespace rehearse
