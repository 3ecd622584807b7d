// Our GPU kernels as the double runs them: on the CPU, from the very arguments that the
// device would get.
#pragma once

#include <string>
#include <vector>

#include "real/cuda/kernel_arguments.h"
#include "real/cuda/libraries.h"
#include "tests/doubles/world.h"

namespace rehearse::gpu_double {

// What a launch reads and writes: its operands, and its stream's scratch memory.
std::vector<Touch> TouchesOf(const KernelArguments& arguments);

// A kernel of several stages computes in its last one, unless its own source runs
// (Control::runs_source).
void RunKernel(const std::string& function, const KernelArguments& arguments, Dim3 grid,
               Dim3 block);

}  // namespace rehearse::gpu_double
