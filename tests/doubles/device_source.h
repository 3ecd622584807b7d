// The very source of our GPU kernels (real/cuda/kernels.cu), compiled for the CPU.
#pragma once

#include <string>

#include "real/cuda/kernel_arguments.h"
#include "real/cuda/libraries.h"

namespace rehearse::gpu_double {

// Runs a kernel's function on what is in memory. Returns what went wrong: no such function, or
// threads that wait forever.
std::string RunSource(const std::string& function, const KernelArguments& arguments, Dim3 grid,
                      Dim3 block);

}  // namespace rehearse::gpu_double
