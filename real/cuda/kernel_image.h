// The GPU kernels that this program carries.
#pragma once

#include <cstddef>
#include <span>

namespace rehearse {

// The image of real/cuda/kernels.cu that nvcc made, for cudaLibraryLoadData; empty when the program
// was built without nvcc.
std::span<const std::byte> KernelImage();

}  // namespace rehearse
