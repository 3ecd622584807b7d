// What commands that run on GPUs have in common: a GPU for each rank, and processes that meet.
#pragma once

#include <cstdint>
#include <memory>

#include "real/backends/backend.h"
#include "real/cuda/cuda_backend.h"
#include "real/transports/launcher.h"

namespace rehearse {

// Throws Error, before any rank allocates anything, unless this machine has a GPU for each of its
// ranks, or at least one where they share.
void RequireGpusForRanks(uint32_t ranks_on_host, bool share_gpus);

// The device of the rank that counts `local_rank` among those of this machine.
int DeviceOfRank(uint32_t local_rank);
BackendFactory GpuBackends(uint32_t local_rank, const CudaOptions& options);

// Joins the transport of this process. GPU ranks exchange data through NCCL, so that TCP will do
// for the rest where there is no mpirun.
std::unique_ptr<Transport> JoinProcesses(const Launch& launch, bool on_gpus);

}  // namespace rehearse
