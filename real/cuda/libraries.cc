#include "real/cuda/libraries.h"

#include <fmt/format.h>

#include "real/cuda/nccl_profiler.h"

namespace rehearse {
namespace {

// Some status functions take an enum: the same thing in the binary interface.
using DescribeFunction = const char* (*)(int);

DescribeFunction FindDescribe(const Library& library, const char* name) {
  return reinterpret_cast<DescribeFunction>(library.Find(name));
}

}  // namespace

CudaRuntime::CudaRuntime()
    : library({"libcudart.so.13", "libcudart.so.12", "libcudart.so"}, "REHEARSE_CUDART",
              "GPU runs (the CUDA runtime, 12.8 or newer)") {
  library.set_describe(FindDescribe(library, "cudaGetErrorString"));
}

Blas::Blas()
    : library({"libcublas.so.13", "libcublas.so.12", "libcublas.so"}, "REHEARSE_CUBLAS",
              "matrix products on GPUs (cuBLAS)") {
  library.set_describe(FindDescribe(library, "cublasGetStatusString"));
}

Nccl::Nccl()
    : library({"libnccl.so.2", "libnccl.so"}, "REHEARSE_NCCL",
              "collectives between GPUs (NCCL, 2.18 or newer)") {
  library.set_describe(FindDescribe(library, "ncclGetErrorString"));
}

Nvml::Nvml() : library({"libnvidia-ml.so.1"}, "REHEARSE_NVML", "names and clocks of GPUs (NVML)") {
  library.set_describe(FindDescribe(library, "nvmlErrorString"));
}

GpuLibraries::GpuLibraries() {
  OfferNcclProfiler();
  try {
    nccl.emplace();
  } catch (const Error& error) {
    nccl_missing = error.what();
  }
}

const Nccl& GpuLibraries::RequireNccl() const {
  if (!nccl) throw Error(nccl_missing);
  return *nccl;
}

const GpuLibraries& LoadGpuLibraries() {
  static const GpuLibraries libraries;
  return libraries;
}

std::string NcclVersionText(int version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

std::string CudaVersionText(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

std::string BlasVersionText(const Blas& blas) {
  int major = 0;
  int minor = 0;
  int patch = 0;
  blas.GetProperty(BlasProperty::kMajor, &major);
  blas.GetProperty(BlasProperty::kMinor, &minor);
  blas.GetProperty(BlasProperty::kPatch, &patch);
  return fmt::format("{}.{}.{}", major, minor, patch);
}

}  // namespace rehearse
