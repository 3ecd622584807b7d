#include "topology/cluster/network_plugin.h"

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/known_names.h"

namespace rehearse {

const std::vector<NetworkPlugin>& KnownNetworkPlugins() {
  static const std::vector<NetworkPlugin> plugins = {
      {"ib", Seconds(0), true, true, "NVIDIA/nccl src/transport/net_ib.cc: InfiniBand and RoCE"},
      // Delivers out of order. The latency is what it reports to NCCL on every EC2 machine.
      {"efa", Seconds(75e-6), false, false,
       "aws/aws-ofi-nccl src/platform-aws.cpp (latency 75.0); issue 76, pull request 280"},
      // Through the kernel's TCP, device memory by page-wise receives. Latency read off the
      // measured all-gather of two A3 High, which takes 0.95 ms at all sizes up to 16 MiB.
      {"tcpx", Seconds(400e-6), false, false,
       "GoogleCloudPlatform/cluster-toolkit examples/gke-a3-highgpu, measured all-gather"},
      {"tcpxo", Seconds(20e-6), true, false,
       "dstackai/dstack mkdocs/docs/examples/clusters/gcp.md, measured all-gather of A3 Mega"},
      {"socket", Seconds(0), true, false, "NVIDIA/nccl src/transport/net_socket.cc: no GPUDirect"},
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
