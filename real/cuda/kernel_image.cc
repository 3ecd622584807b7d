#include "real/cuda/kernel_image.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include <fmt/format.h>

#include "sim/base/error.h"

#ifndef REHEARSE_KERNEL_IMAGE  // by real/cuda/cuda.cmake, where nvcc is
#define REHEARSE_KERNEL_IMAGE ""
#endif

namespace rehearse {

namespace fs = std::filesystem;

namespace {

std::string ReadKernelImage() {
  const std::string_view name = KernelImageName();
  if (name.empty()) {
    throw Error("this rehearse was built without GPU kernels (no nvcc, or REHEARSE_CUDA=OFF)");
  }
  std::error_code unreadable;
  const fs::path folder = fs::read_symlink("/proc/self/exe", unreadable).parent_path();
  for (const fs::path& place : {folder, folder.parent_path()}) {
    std::ifstream file(place / name, std::ios::binary);
    std::string image{std::istreambuf_iterator<char>(file), {}};
    if (!image.empty()) return image;
  }
  throw Error(
      fmt::format("the GPU kernels are missing: no {} in {}; build the target "
                  "rehearse_kernels (tools/rehearse does with --backend cuda)",
                  name, folder.string()));
}

}  // namespace

std::string_view KernelImageName() { return REHEARSE_KERNEL_IMAGE; }

const std::string& KernelImage() {
  static const std::string image = ReadKernelImage();
  return image;
}

}  // namespace rehearse
