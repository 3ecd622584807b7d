#include "tools/gpu_ranks.h"

#include "real/cuda/machine.h"
#include "real/transports/transport_mpi.h"
#include "real/transports/transport_tcp.h"

namespace rehearse {

void RequireGpusForRanks(uint32_t ranks_on_host, bool share_gpus) {
  const GpuLibraries& gpu = LoadGpuLibraries();
  RequireGpus(gpu, share_gpus ? 1 : static_cast<int>(ranks_on_host));
  if (ranks_on_host > 1) gpu.RequireNccl();
}

int DeviceOfRank(uint32_t local_rank) {
  int devices = 1;
  LoadGpuLibraries().cuda.GetDeviceCount(&devices);
  return static_cast<int>(local_rank) % devices;
}

BackendFactory GpuBackends(uint32_t local_rank, const CudaOptions& options) {
  CudaOptions own = options;
  own.device = DeviceOfRank(local_rank);
  return [own](const RankPlan& plan, Transport& transport) {
    return MakeCudaBackend(LoadGpuLibraries(), plan, transport, own);
  };
}

std::unique_ptr<Transport> JoinProcesses(const Launch& launch, bool on_gpus) {
  const bool needs_mpi = !on_gpus || launch.launcher == "mpirun";
  if (needs_mpi) return JoinMpi(launch);
  return JoinTcp(launch, TcpMeetingFromEnvironment());
}

}  // namespace rehearse
