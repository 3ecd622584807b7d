// CUDA's words, and then our GPU kernels as they are. One block runs at a time, so that what its
// threads share may be there once.
#include "tests/doubles/device_source.h"

#include <dlfcn.h>
#include <math.h>

#include "tests/doubles/device_threads.h"

#define __global__ __attribute__((visibility("default")))
#define __device__
#define __shared__ static
#define __align__(bytes) __attribute__((aligned(bytes)))
#define threadIdx rehearse::gpu_double::thread_place
#define blockIdx rehearse::gpu_double::block_place
#define blockDim rehearse::gpu_double::block_size
#define gridDim rehearse::gpu_double::grid_size
#define __syncthreads rehearse::gpu_double::WaitForBlock

struct float4 {
  float x, y, z, w;
};
inline float rsqrtf(float x) { return 1 / sqrtf(x); }
inline float __shfl_xor_sync(unsigned, float value, unsigned lane_xor) {
  return rehearse::gpu_double::FromLane(value, lane_xor);
}

#include "real/cuda/kernels.cu"

namespace rehearse::gpu_double {
namespace {

using Function = void (*)(KernelArguments);

// Looked up by name in this library, as the driver does in an image of kernels.
Function Find(const std::string& name) {
  static void* const library = [] {
    Dl_info own{};
    dladdr(reinterpret_cast<const void*>(&RunSource), &own);
    return dlopen(own.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  }();
  return library == nullptr ? nullptr : reinterpret_cast<Function>(dlsym(library, name.c_str()));
}

}  // namespace

std::string RunSource(const std::string& function, const KernelArguments& arguments, Dim3 grid,
                      Dim3 block) {
  const Function found = Find(function);
  if (found == nullptr) return "no kernel has this name";
  return RunGrid(grid, block, [&] { found(arguments); });
}

}  // namespace rehearse::gpu_double
