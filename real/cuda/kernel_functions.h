// The kernels of real/cuda/kernels.cu, loaded into the current device and launched by name.
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "real/cuda/gpu_program.h"
#include "real/cuda/libraries.h"

namespace rehearse {

class KernelFunctionTable {
 public:
  explicit KernelFunctionTable(const CudaRuntime& cuda);

  // Launches all stages of a kernel, in order; sets those arguments that follow from the plan.
  void Launch(const LaunchPlan& plan, KernelArguments arguments, CudaStream stream) const;

 private:
  CudaKernel Find(std::string_view name) const;

  const CudaRuntime& cuda_;
  std::unique_ptr<CudaLibraryHandle, std::function<void(CudaLibrary)>> library_;
  std::vector<std::pair<std::string_view, CudaKernel>> kernels_;
};

}  // namespace rehearse
