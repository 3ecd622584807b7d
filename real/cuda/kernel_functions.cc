#include "real/cuda/kernel_functions.h"

#include "real/cuda/kernel_image.h"

namespace rehearse {

KernelFunctionTable::KernelFunctionTable(const CudaRuntime& cuda) : cuda_(cuda) {
  CudaLibrary library = nullptr;
  cuda_.LibraryLoadData(&library, KernelImage().data(), nullptr, nullptr, 0, nullptr, nullptr, 0);
  library_ = {library, [&cuda](CudaLibrary loaded) { cuda.LibraryUnload.Status(loaded); }};
  for (const char* name : KernelFunctions()) {
    CudaKernel kernel = nullptr;
    cuda_.LibraryGetKernel(&kernel, library, name);
    kernels_.emplace_back(name, kernel);
  }
}

CudaKernel KernelFunctionTable::Find(std::string_view name) const {
  for (const auto& [known, kernel] : kernels_) {
    if (known == name) return kernel;
  }
  internal::FailCheck(__FILE__, __LINE__, "no such kernel function");
}

void KernelFunctionTable::Launch(const LaunchPlan& plan, KernelArguments arguments,
                                 CudaStream stream) const {
  arguments.chunks = plan.chunks;
  arguments.stages = static_cast<uint8_t>(plan.launches.size());
  arguments.stage = 0;
  for (const KernelLaunch& launch : plan.launches) {
    void* pointers[] = {&arguments};
    cuda_.LaunchKernel(Find(launch.function), launch.grid, launch.block, pointers, 0, stream);
    ++arguments.stage;
  }
}

}  // namespace rehearse
