// A rank's ops prepared for a GPU: operands as kernels take them, launches, and how communication
// gets its data. It is made once, when all addresses are known; a step only goes through it.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "real/backends/rank_plan.h"
#include "real/cuda/communicators.h"
#include "real/cuda/kernel_arguments.h"
#include "real/cuda/launch.h"

namespace rehearse {

// Where the arguments of one launch are in the program's tables.
struct OperandRun {
  size_t first = 0;  // in GpuProgram::operands: reads, then writes
  uint32_t reads = 0;
  uint32_t writes = 0;
};

// A kernel of our own.
struct GpuKernel {
  OperandRun run;
  Kernel kernel = Kernel::kNone;
  size_t first_attribute = 0;  // in GpuProgram::attributes
  uint32_t attribute_count = 0;
  LaunchPlan plan;
};

// Collectives need dense runs with room for padding; other data are copied through memory of the
// stream.
struct GpuCommunication {
  CollectiveBuffers buffers;
  std::vector<GpuKernel> pack;  // no or one copy each
  std::vector<GpuKernel> unpack;
  uint64_t clear_bytes = 0;  // of the packed input, cleared before it is filled: padding
  void* clear = nullptr;
};

struct GpuOp {
  std::vector<GpuKernel> kernel;  // one for a kernel of our own, none for GEMMs and communication
  OperandRun operands;
  std::vector<GpuCommunication> communication;  // one, or those of a group
};

struct GpuProgram {
  std::vector<GpuOp> ops;  // by OpId
  std::vector<GpuOperand> operands;
  std::vector<double> attributes;
  std::vector<uint64_t> scratch_floats;  // by stream
  std::vector<uint64_t> loss_rows;       // by op; 0 for kernels that make no loss
};

// Where a rank's data are on its device.
struct GpuAddresses {
  std::vector<void*> memories;   // by RankPlan::memories
  std::vector<Storage> storage;  // of each memory
  // Where a stream's packed data are: it has two areas of that many bytes (in, out), which are
  // asked for once per communication op.
  std::function<void*(uint32_t stream, bool is_output, uint64_t bytes)> packed;
};

GpuProgram MakeGpuProgram(const RankPlan& plan, const GpuAddresses& addresses,
                          uint32_t multiprocessors);

// The operand that a buffer is; `micro_batch` says which rows of the whole batch they are.
GpuOperand OperandOf(const RankPlan& plan, const GpuAddresses& addresses, BufferId buffer,
                     int32_t micro_batch);

// The hashed numbers that a kernel draws from (KernelArguments::random).
uint64_t RandomStreamOf(const Compute& compute, const Tag& tag, uint64_t seed);

}  // namespace rehearse
