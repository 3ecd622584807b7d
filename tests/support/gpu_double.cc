#include "tests/support/gpu_double.h"

#include <cstdlib>

#include <dlfcn.h>

#include "sim/base/error.h"

namespace rehearse::gpu_double {

Door* OpenGpuDouble() {
  for (const char* variable :
       {"REHEARSE_CUDART", "REHEARSE_CUBLAS", "REHEARSE_NCCL", "REHEARSE_NVML"}) {
    setenv(variable, REHEARSE_GPU_DOUBLE, 1);
  }
  void* library = dlopen(REHEARSE_GPU_DOUBLE, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw Error(dlerror());
  auto* find = reinterpret_cast<Door* (*)()>(dlsym(library, "RehearseGpuDoubleDoor"));
  CHECK(find != nullptr);
  return find();
}

}  // namespace rehearse::gpu_double
