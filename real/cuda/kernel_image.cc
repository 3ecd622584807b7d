#include "real/cuda/kernel_image.h"

#ifdef REHEARSE_HAS_KERNEL_IMAGE

extern "C" {
// The linker names them after the file (real/cuda/cuda.cmake).
// NOLINTBEGIN(bugprone-reserved-identifier, readability-identifier-naming)
extern const std::byte _binary_kernels_fatbin_start[];
extern const std::byte _binary_kernels_fatbin_end[];
// NOLINTEND(bugprone-reserved-identifier, readability-identifier-naming)
}

namespace rehearse {

std::span<const std::byte> KernelImage() {
  return {_binary_kernels_fatbin_start, _binary_kernels_fatbin_end};
}

}  // namespace rehearse

#else

namespace rehearse {

std::span<const std::byte> KernelImage() { return {}; }

}  // namespace rehearse

#endif
