// Every kernel of sim/schedule/kernel.h on one CPU core: matrix products by OpenBLAS, the rest as
// plain loops.
//
// Kernels are instantiated for float (timing) and double (checking). A kernel CHECKs that its
// operands fit together; it is a pure function of its call, so any number of them may run at once.
#pragma once

#include <cstdint>
#include <string>

#include "real/kernels/kernel_call.h"
#include "sim/schedule/kernel.h"

namespace rehearse {

// Does nothing for Kernel::kNone.
template <typename T>
KernelFunction<T> FindKernel(Kernel kernel);

// From now on OpenBLAS uses this many threads for each product, in the whole process.
void SetBlasThreads(int threads);
// Where addresses are limited (ulimit -v), takes what OpenBLAS needs for products of this many
// threads at once, before anybody else has it; throws Error if that is too much. Other threads must
// not multiply meanwhile.
void TakeRoomForProducts(uint32_t threads);
// Says what OpenBLAS chose for this machine: "OpenBLAS 0.3.21 ... SkylakeX".
std::string BlasDescription();

}  // namespace rehearse
