// The launches of a kernel of sim/schedule/kernel.h: functions of real/cuda/kernels.cu, grids,
// scratch.
//
// Pure arithmetic: nothing here calls CUDA, so tests and doubles can use it. GEMMs belong to cuBLAS
// (real/cuda/gemm.h) and have no launches here.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "real/cuda/kernel_arguments.h"
#include "real/cuda/libraries.h"
#include "sim/schedule/schedule.h"

namespace rehearse {

struct KernelLaunch {
  const char* function = nullptr;
  Dim3 grid;
  Dim3 block;
};

struct LaunchPlan {
  std::vector<KernelLaunch> launches;  // one per stage, in order
  uint32_t chunks = 1;                 // KernelArguments::chunks
  uint64_t scratch_floats = 0;         // that the stream must have
};

// Throws Error if the kernel cannot run on these operands (a head size beyond 256). `operands` are
// the reads, then the writes, as in KernelArguments.
LaunchPlan PlanLaunches(const Compute& compute, std::span<const GpuOperand> operands, size_t reads,
                        uint32_t multiprocessors);

// How a buffer of this type is stored; throws Error for types that GPU kernels do not have (fp64).
Storage StorageOf(DType dtype);

// Every function name that any plan may use, for loading them all before a run and for tests.
std::vector<const char*> KernelFunctions();

}  // namespace rehearse
