// Single boxes, CPUs, a TPU slice, and the plain switch of textbooks.
#include <algorithm>
#include <vector>

#include "sim/base/error.h"
#include "topology/presets/link_rows.h"
#include "topology/presets/node_pcie.h"
#include "topology/presets/preset_rows.h"

namespace rehearse {
namespace {

using Parameters = std::map<std::string, uint32_t>;

MachineSpec Rtx4090(const Parameters& parameters) {
  return {"rtx4090-pcie",
          Rtx4090Node(),
          parameters.at("nodes"),
          OneSwitch(),
          {"The NIC (one of 100 Gb/s on the first socket) and the switch are assumed."}};
}

MachineSpec BridgePairs(const Parameters&) {
  return {"bridge-pairs-a100", BridgePairsNode(), 1, std::nullopt, {"No NIC is drawn."}};
}

MachineSpec LocalCpu(const Parameters& parameters) {
  return {"local-cpu",
          CpuNode(parameters.at("ranks")),
          1,
          std::nullopt,
          {"Bandwidths and latencies are assumed; a calibration of the machine at hand replaces "
           "them."}};
}

// n x n x 2n and n x 2n x 2n chips can be joined so that going round the short dimensions leads n
// along the long ones (topology/fabrics/fabric_torus.h).
void Twist(TorusSpec* torus) {
  uint32_t least = torus->dimensions.front().size;
  for (const TorusSpec::Dimension& dimension : torus->dimensions)
    least = std::min(least, dimension.size);
  std::vector<uint32_t> twist;
  for (const TorusSpec::Dimension& dimension : torus->dimensions)
    twist.push_back(dimension.size == 2 * least ? least : 0);
  bool has_long = false;
  for (size_t d = 0; d < torus->dimensions.size(); ++d) {
    TorusSpec::Dimension& dimension = torus->dimensions[d];
    has_long = has_long || twist[d] > 0;
    const bool is_short = dimension.size == least;
    if ((!is_short && twist[d] == 0) || !dimension.wraps)
      throw Error(
          "a slice of TPU v4 is twisted if it has n x n x 2n or n x 2n x 2n chips, n a multiple of "
          "4");
    if (is_short) dimension.twist = twist;
  }
  if (!has_long)
    throw Error(
        "a slice of TPU v4 is twisted if it has n x n x 2n or n x 2n x 2n chips, n a multiple of "
        "4");
}

// A slice is a 3-D torus of chips, each with 6 links of 50 GB/s per direction (2,400 Gb/s per
// chip); a dimension wraps when it is a multiple of 4, the cubes that optical switches join (Jouppi
// et al. 2023; Google Cloud TPU documentation, v4).
MachineSpec TpuV4(const Parameters& parameters) {
  const Seconds hop(0.5e-6);  // assumed
  NodeSpec node;
  node.prefix = "chip";
  node.device_name = "tpu";
  node.cable = MakeLink(LinkKind::kNetwork, BytesPerSecond(6 * 50e9), 1, hop);
  TorusSpec torus;
  uint32_t chips = 1;
  for (const char* key : {"x", "y", "z"}) {
    const uint32_t size = parameters.at(key);
    torus.dimensions.push_back(
        {size, size % 4 == 0, MakeLink(LinkKind::kNetwork, BytesPerSecond(50e9), 1, hop)});
    chips *= size;
  }
  std::vector<std::string> notes = {
      "Links have their nominal bandwidth and 0.5 us (assumed); chips are machines of their own, "
      "hosts are not drawn."};
  if (parameters.at("twisted") == 1) {
    Twist(&torus);
    notes.emplace_back(
        "All-reduces treat the twisted dimensions as rows: what XLA does there is not published.");
  }
  return {"tpu-v4", node, chips, torus, notes};
}

// Its figures are round numbers, not those of a product.
MachineSpec PlainSwitch(const Parameters& parameters) {
  NodeSpec node;
  node.cable = MakeLink(LinkKind::kNetwork, BytesPerSecond(25e9), 1, Seconds(1e-6));
  return {
      "switch",
      node,
      parameters.at("devices"),
      OneSwitch("switch"),
      {"Not a real machine: one device per node, each on a 25 GB/s, 1 us cable to one switch."}};
}

}  // namespace

std::vector<ClusterPreset> SmallPresets() {
  const char* tpu = "Jouppi et al., ISCA 2023; Google Cloud TPU v4 documentation";
  const char* meaning = "chips along this dimension";
  return {
      {"rtx4090-pcie",
       "8 RTX 4090 on PCIe without peer-to-peer, through the host's memory",
       "NVIDIA/nccl-tests issue 331",
       "rtx4090",
       {Nodes("boxes of 8 GPUs")},
       Rtx4090},
      {"bridge-pairs-a100",
       "8 A100 in NVLink bridge pairs over PCIe",
       "NVIDIA/nccl-tests issue 178",
       "a100-80g",
       {},
       BridgePairs},
      {"local-cpu",
       "CPU ranks of one host that share its memory bandwidth",
       "assumed, to be calibrated",
       "cpu-core",
       {{"ranks", 1, 1024, 2, "ranks, one core each"}},
       LocalCpu},
      {"tpu-v4",
       "TPU v4 slice: a 3-D torus of chips",
       tpu,
       "tpu-v4",
       {{"x", 1, 64, 4, meaning},
        {"y", 1, 64, 4, meaning},
        {"z", 1, 64, 4, meaning},
        {"twisted", 0, 1, 0, "1: a twisted torus, of n x n x 2n or n x 2n x 2n chips"}},
       TpuV4},
      {"switch",
       "single devices on one switch, for teaching and checking",
       "round numbers, not a product",
       "a100-40g",
       {{"devices", 1, 65536, 8, "devices, one per node"}},
       PlainSwitch},
  };
}

}  // namespace rehearse
