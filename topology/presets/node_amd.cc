#include "topology/presets/node_amd.h"

#include "topology/presets/link_rows.h"

namespace rehearse {
namespace {

NodeSpec EightJoined(double gigabytes_per_second, double efficiency) {
  Host host;
  host.sockets = 2;
  host.switches = 8;
  host.nics = 8;
  host.device = Pcie(kPcie5, kDeviceToPcie);
  host.root_port = Pcie(kPcie5, kRootPort);
  host.nic = Pcie(kPcie5, kPcieToNic);
  host.between_sockets = EpycToEpyc();
  host.memory_bandwidth = kEpyc4Memory;
  NodeSpec node;
  node.devices = 8;
  node.lanes = AllToAll(8, 1);
  node.lane =
      MakeLink(LinkKind::kXgmi, BytesPerSecond(gigabytes_per_second * 1e9), efficiency, kNvLinkHop);
  node.host = host;
  node.cable = Network(400, kInfiniBandEfficiency);
  return node;
}

}  // namespace

// Pairs exchange 48.2 GB/s (openxla/xla, ROCm/xla d02afb4fc18a, collective-permute of 1 GiB).
NodeSpec Mi300xNode() { return EightJoined(64, 48.2 / 64); }

// Eight reach an all-reduce bus bandwidth of 408.8 GB/s over 7 rings
// (oci-ai-incubations/oci-gpu-quickstarts README-MI355X-Pollara.md, 16 GiB); 0.886 is the share of
// seven links that seven rings of an MI300X reach (collectives/nccl/rccl_model.h).
NodeSpec Mi355xNode() { return EightJoined(76.8, 408.8 / 0.886 / 7 / 76.8); }

}  // namespace rehearse
