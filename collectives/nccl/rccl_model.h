// RCCL's tuning model: how long RCCL expects a collective to take on AMD's devices, and so which
// algorithm and protocol it chooses (ROCm/rccl, src/graph/tuning.cc, of NCCL 2.24's time; its
// tuning models 4 for MI250X, 5 for MI300X, 6 for MI355X). For n bytes on p ranks of k machines:
//
//   time = latency + n / (bandwidth · correction(n))
//   ring   latency = 12 us (17 with Simple) + (s − a)·inside + a·across, s and a as in
//            collectives/nccl/nccl_model.h; base + one hop for broadcast and reduce
//          bandwidth = r·ratio·p/s; corrected on several machines
//   tree   all-reduce: latency = base + 2((p/k − 1)·inside + log2(k)·across)
//          bandwidth = r·ratio/2; always corrected; no Simple on one machine of MI300X or MI355X
//   on several machines of MI300X or MI355X the bytes of a rank decide the protocol of all-reduce,
//   all-gather, reduce-scatter, broadcast and reduce: LL, then LL128, then Simple
// with r the rate of our graph's rings. Ratios and corrections are tables by architecture, the
// latter by power of two from 64 bytes. What replaces rings in special builds (MSCCL, MSCCL++,
// direct all-gather) is not modelled.
//
// How long it takes then: the latency as expected, with what a plug-in adds instead of what it
// reports (its long hops of rings between machines are what ZeRO-3 takes on Frontier); of the
// rings' rate what the protocol leaves, as on NVIDIA's devices, and each ring beside the first
// costs 2 % (two MI300X exchange 48 GB/s over one link, four 3·45, eight 7·42.5: openxla/xla,
// ROCm/xla d02afb4fc18a). Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "collectives/nccl/nccl_model.h"
#include "collectives/nccl/pace.h"

namespace rehearse {

enum class RcclArchitecture : uint8_t { kMi250x, kMi300x, kMi355x };
// The architecture by gfx (DeviceSpec::gfx); nothing for 0 and where RCCL has no table.
std::optional<RcclArchitecture> RcclArchitectureOf(uint32_t gfx);

struct RcclGroup {
  RcclArchitecture architecture = RcclArchitecture::kMi300x;
  uint32_t ranks = 2;
  uint32_t nodes = 1;
  bool is_xgmi = true;  // all links inside a machine are xGMI
  // Latencies of the slowest routes, as the graph has them, and what every hop adds.
  Seconds inside_route;
  Seconds across_route;
  Seconds step_overhead;
  Seconds plugin_told;      // what the network's plug-in reports for a hop
  Seconds plugin_latency;   // and what it adds
  BytesPerSecond rings;     // bus bandwidth of all rings together
  uint32_t ring_count = 1;  // disjoint ones
  uint32_t channels = 1;    // 4 of each ring (ROCm/rccl src/graph/rome_models.cc)
};

// All combinations that RCCL would take, in the order of its tables; as RCCL weighs them, on hops
// as long as those of its constants, since it does not know how long routes are.
std::vector<NcclCost> AllCosts(const RcclGroup& group, CollectiveKind kind, Bytes bytes);

NcclPace RcclPaceOf(const RcclGroup& group, CollectiveKind kind, Bytes bytes,
                    const NcclCost& chosen);

// Share of the links that this many disjoint rings reach.
double ShareOfRings(uint32_t rings);
inline constexpr uint32_t kRcclChannelsOfRing = 4;
inline constexpr uint32_t kRcclSendChannels = 64;
// The share that grouped sends reach between machines. We take about what B200 boxes reach with
// NCCL (Vultr; collectives/nccl/pace.h).
inline constexpr double kRcclSendsOfNetwork = 0.8;

}  // namespace rehearse
