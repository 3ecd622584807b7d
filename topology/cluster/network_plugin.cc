#include "topology/cluster/network_plugin.h"

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/known_names.h"

namespace rehearse {

const std::vector<NetworkPlugin>& KnownNetworkPlugins() {
  // EFA's own hop: 8 bytes take 161 us on two p4de, NCCL's tree with Simple on an idle network 92.4
  // (collectives/nccl/nccl_model.h); the rest are two crossings, each with its flush. From 32 KiB
  // on they take 225 us and more.
  constexpr Seconds kEfaHop(17.5e-6);
  constexpr Bytes kEfaEager(8192);  // OFI_NCCL_EAGER_MAX_SIZE
  static const std::vector<NetworkPlugin> plugins = {
      {"ib", Seconds(0), Seconds(0), Bytes(0), true, true,
       "NVIDIA/nccl src/transport/net_ib.cc: InfiniBand and RoCE"},
      // P4: messages arrive out of order.
      {"efa", Seconds(75e-6), kEfaHop, kEfaEager, false, false,
       "aws/aws-ofi-nccl src/platform-aws.cpp (latency 75.0, SENDRECV); issue 76, pull request "
       "280; awsome-distributed-training 7217859f"},
      // From P5 on the plug-in writes remotely, and 128 bytes stay together.
      {"efa-p5", Seconds(75e-6), kEfaHop, kEfaEager, true, true,
       "aws/aws-ofi-nccl src/platform-aws.cpp (p5/p5e: latency 75.0, RDMA, writes in order)"},
      {"efa-p5en", Seconds(35e-6), kEfaHop, kEfaEager, true, true,
       "aws/aws-ofi-nccl src/platform-aws.cpp (p5en and later: latency 35.0, RDMA)"},
      // Through the kernel's TCP, device memory by page-wise receives. Latency read off the
      // measured all-gather of two A3 High, which takes 0.95 ms at all sizes up to 16 MiB. We
      // assume that it is told.
      {"tcpx", Seconds(400e-6), Seconds(400e-6), Bytes(0), false, false,
       "GoogleCloudPlatform/cluster-toolkit examples/gke-a3-highgpu, measured all-gather"},
      {"tcpxo", Seconds(20e-6), Seconds(20e-6), Bytes(0), true, false,
       "dstackai/dstack mkdocs/docs/examples/clusters/gcp.md, measured all-gather of A3 Mega"},
      // Slingshot by libfabric. What its hops take beside the links' latency was not told apart.
      {"cxi", Seconds(0), Seconds(0), Bytes(0), true, true,
       "aws/aws-ofi-nccl include/nccl_ofi_param.h: reports no latency unless one is configured"},
      {"socket", Seconds(0), Seconds(0), Bytes(0), true, false,
       "NVIDIA/nccl src/transport/net_socket.cc: no GPUDirect"},
  };
  return plugins;
}

const NetworkPlugin& FindNetworkPlugin(const std::string& name) {
  std::vector<std::string> names;
  for (const NetworkPlugin& plugin : KnownNetworkPlugins()) {
    if (plugin.name == name) return plugin;
    names.push_back(plugin.name);
  }
  throw Error(fmt::format("unknown network plug-in \"{}\"{}", name, KnownNames(name, names)));
}

}  // namespace rehearse
