// The GPU kernels: a file beside the program that is read when a GPU run asks for it.
#pragma once

#include <string>
#include <string_view>

namespace rehearse {

// The file's name, which identifies its sources; empty if the program was built without nvcc.
std::string_view KernelImageName();

// The image of real/cuda/kernels.cu that nvcc made, for cudaLibraryLoadData. It is read once, from
// the program's own folder or the one above it (where tests find it). Throws Error if it is not
// there or the program was built without nvcc.
const std::string& KernelImage();

}  // namespace rehearse
