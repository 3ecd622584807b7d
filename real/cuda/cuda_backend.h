// Runs a rank on an NVIDIA GPU: matrix products by cuBLAS, kernels of real/cuda/kernels.cu,
// collectives by NCCL, in exactly the order of the Schedule.
//
// Each stream of the Schedule is a CUDA stream; `after` edges between streams are events. The host
// only launches, and never runs more than a window of ops ahead. If nothing moves for
// `stall_seconds`, or another rank is lost, the step ends with an Error that names the ops that
// hang; no wait lasts forever. Data are kept as the Schedule's buffers say, or all in fp32. With a
// graph (real/cuda/step_graph.h), the ops are captured as they would be launched; a step with other
// facts than the captured one is captured anew.
#pragma once

#include <cstdint>
#include <memory>

#include "real/backends/backend.h"
#include "real/cuda/libraries.h"
#include "real/transports/transport.h"

namespace rehearse {

struct CudaOptions {
  int device = 0;
  bool all_fp32 = false;                // keep every buffer in fp32
  bool tune_gemms = false;              // choose each product's mode by trial before the first step
  StepMode mode = StepMode::kTimedOps;  // without timed ops, the last op lasts as long as the step
  double stall_seconds = 60;
};

// All ranks of the transport call it. Plan and transport must outlive the backend.
std::unique_ptr<Backend> MakeCudaBackend(const GpuLibraries& gpu, const RankPlan& plan,
                                         Transport& transport, const CudaOptions& options);

}  // namespace rehearse
