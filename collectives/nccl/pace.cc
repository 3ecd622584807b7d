#include "collectives/nccl/pace.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "collectives/nccl/ring_steps.h"
#include "sim/base/error.h"
#include "topology/presets/hop_latency.h"

namespace rehearse {
namespace {

constexpr double kKib = 1024;
constexpr double kMib = 1024 * kKib;

// These shares are the same for all generations.
constexpr double kLLShare = 0.37;
constexpr double kLL128Share = 0.8;
constexpr double kOwnCopyOfGather = 0.47;
constexpr double kOwnCopyOfScatter = 0.40;
constexpr double kOwnCopyOfReduce = 0.34;
constexpr double kDrain = 0.28;
constexpr Bytes kRingChunk(2 * kMib);  // per channel, with Simple: 4 of 8 steps of 4 MiB
constexpr double kNvlsFill = 2.85;
constexpr Seconds kNvlsLoopOfHead(1.03e-6);
constexpr double kNvlsTreeShare = 0.82;
constexpr Bytes kLargestPart(16 * kMib);  // what a p2p channel moves before more are used
constexpr Bytes kSendsFill(12.5 * kMib);
constexpr double kSendsFillShare = 0.4;
constexpr double kSendsOfLinks = 0.93;
// In all-to-all, two B200 boxes (Vultr) reach 0.775 of what their NICs do, three and two racks of
// GB200 (OCI) 0.877 and 0.947: a value between.
constexpr double kSendsOfNetwork = 0.85;
// NICs of 800 Gb/s (B300, oci-ai-incubations/oci-gpu-quickstarts).
constexpr double kSendsOfFastNetwork = 0.96;
constexpr BytesPerSecond kFastNic(90e9);
constexpr uint32_t kPeersAtOnce = 32;
constexpr Bytes kSendsLL(16 * kKib);  // NCCL_P2P_LL_THRESHOLD
// What one channel moves to a peer in another machine.
constexpr BytesPerSecond kNetPeerChannel(9.8e9);
constexpr uint32_t kNetPeerChannels = 2;
constexpr double kLeastOfLLAcross = 1.0;  // us: of a hop inside, if there are hops across
constexpr double kTreeOfLinks = 0.92;     // as NCCL has it
// Sends between machines take so much longer: to many peers, or only to the next rank.
constexpr Seconds kAllToAllAcross(45e-6);
constexpr Seconds kAllToAllAcrossLL(25e-6);
constexpr Seconds kSendAcross(10e-6);

// Times are in microseconds, rates in GB/s.
struct Kernels {
  double base;
  double least_ll;
  double step_ll;
  double step_ll128;
  double slice;
  double step_simple;
  double nvls_share;  // v, of what rings reach
  double nvls_start;
  uint32_t nvls_channels;
  double largest_nvls_chunk;
  double nvls_tree_start;
  double nvls_tree_fill;
  double start_across;    // for rings between machines
  double nic;             // what a ring's channels move over one
  double peer_channel;    // GB/s
  double channel_across;  // GB/s, what a ring's channel moves at most between machines
  double sends_ll;        // grouped sends of up to 16 KiB to each peer
  double sends;           // of larger ones
};
constexpr double kUnbound = 1e6;
constexpr Kernels kAmpereKernels = {
    .base = 9.5,
    .least_ll = 1.0,
    .step_ll = 0.3,
    .step_ll128 = 2.7,
    .slice = 4.1,
    .step_simple = 12.7,
    .nvls_share = 1,
    .nvls_start = 0,
    .nvls_channels = 1,
    .largest_nvls_chunk = 64 * kKib,
    .nvls_tree_start = 0,
    .nvls_tree_fill = 0,
    .start_across = 0,
    .nic = kUnbound,
    .peer_channel = 11.5,
    .channel_across = 12.5,
    .sends_ll = 12.5,
    .sends = 18,
};
constexpr Kernels kHopperKernels = {
    .base = 4.6,
    .least_ll = 0.85,
    .step_ll = 0.4,
    .step_ll128 = 1.84,
    .slice = 1.93,
    .step_simple = 9.0,
    .nvls_share = 1.10,
    .nvls_start = 6.8,
    .nvls_channels = 16,
    .largest_nvls_chunk = 64 * kKib,
    .nvls_tree_start = 8,
    .nvls_tree_fill = 2.9,
    .start_across = 35,
    .nic = 41,
    .peer_channel = 18,
    .channel_across = 25,
    .sends_ll = 7.0,
    .sends = 11,
};
constexpr Kernels kBlackwellKernels = {
    .base = 8.0,
    .least_ll = 1.45,
    .step_ll = 0.7,
    .step_ll128 = 1.6,
    .slice = 0.84,
    .step_simple = 11.3,
    .nvls_share = 0.90,
    .nvls_start = 16,
    .nvls_channels = 32,
    .largest_nvls_chunk = 128 * kKib,
    .nvls_tree_start = 34,
    .nvls_tree_fill = 1.85,
    .start_across = 95,
    .nic = 38.5,
    .peer_channel = 21.6,
    .channel_across = 25,
    .sends_ll = 10.0,
    .sends = 16,
};

const Kernels& KernelsOf(NcclGeneration generation) {
  if (generation == NcclGeneration::kBlackwell) return kBlackwellKernels;
  return generation == NcclGeneration::kHopper ? kHopperKernels : kAmpereKernels;
}

constexpr Seconds OfMicroseconds(double value) { return Seconds(value * 1e-6); }

double OwnCopy(CollectiveKind kind) {
  if (IsAllReduce(kind)) return kOwnCopyOfReduce;
  return kind == CollectiveKind::kAllGather ? kOwnCopyOfGather : kOwnCopyOfScatter;
}

// The pace is what NCCL expects, at the rate that the links have.
NcclPace AsExpected(const NcclGroup& group, const NcclCost& chosen) {
  return {chosen.latency, chosen.bandwidth * (group.reached / group.rings)};
}

// What rings reach with the channels that there are.
BytesPerSecond RingsReach(const NcclGroup& group) {
  if (group.most_channels == 0) return group.reached;
  return std::min(group.reached, group.most_channels * NcclChannelRate(group));
}

// How much longer a step of Simple takes than moving its bytes.
Seconds SimpleStep(const Kernels& kernels, Seconds moving) {
  return std::max(2 * OfMicroseconds(kernels.slice),
                  OfMicroseconds(kernels.step_simple) - moving / 2);
}

NcclPace RingInside(const NcclGroup& group, CollectiveKind kind, Bytes bytes, Protocol protocol) {
  const Kernels& kernels = KernelsOf(group.generation);
  const uint32_t steps = NcclRingSteps(kind, group.ranks);
  double share = 1;
  if (protocol == Protocol::kLL) share = kLLShare;
  if (protocol == Protocol::kLL128) share = kLL128Share;
  const BytesPerSecond rate = share * RingsReach(group);
  const Seconds moving = bytes / group.ranks / rate;
  NcclPace pace;
  pace.bandwidth = rate * group.ranks / (steps + OwnCopy(kind));
  pace.latency = OfMicroseconds(kernels.base);
  switch (protocol) {
    case Protocol::kLL:
      pace.latency += steps * std::max(OfMicroseconds(kernels.step_ll),
                                       OfMicroseconds(kernels.least_ll) - moving);
      break;
    case Protocol::kLL128:
      pace.latency += steps * OfMicroseconds(kernels.step_ll128);
      break;
    case Protocol::kSimple: {
      // NCCL has twice the channels of its search.
      const uint32_t channels =
          group.most_channels > 0 ? group.most_channels : 2 * group.graph_channels;
      const Seconds held = channels * kRingChunk / rate;
      pace.latency += steps * SimpleStep(kernels, moving) + kDrain * std::min(moving, held);
      break;
    }
    case Protocol::kNone:
    case Protocol::kAuto:
      break;
  }
  return pace;
}

NcclPace RingAcross(const NcclGroup& group, CollectiveKind kind, Bytes bytes,
                    const NcclCost& chosen) {
  const Kernels& kernels = KernelsOf(group.generation);
  const BytesPerSecond most(group.nics * group.nic_channels * kernels.nic * 1e9);
  NcclPace pace = AsExpected(group, chosen);
  if (IsGathering(kind))
    pace.bandwidth = std::min(pace.bandwidth, RingRatio(kind, group.ranks) * most);
  if (chosen.protocol != Protocol::kLL) {
    pace.latency += OfMicroseconds(kernels.start_across);
  } else {
    const uint32_t inside = NcclRingSteps(kind, group.ranks) - NcclRingSteps(kind, group.nodes);
    const Seconds longer = OfMicroseconds(kernels.least_ll) - OfMicroseconds(kLeastOfLLAcross);
    pace.latency += OfMicroseconds(kernels.base) -
                    NcclBase(group.version, NcclAlgorithm::kRing, Protocol::kLL) +
                    inside * std::max(longer, Seconds(0));
  }
  if (chosen.protocol == Protocol::kSimple && group.inside_reached.value() > 0) {
    const uint32_t inside = NcclRingSteps(kind, group.ranks) - NcclRingSteps(kind, group.nodes);
    // At the pace of the slowest hop: that is how fast bytes come, whatever the NVLinks could do.
    const Seconds moving = bytes / group.ranks / std::min(group.inside_reached, RingsReach(group));
    const Seconds expected =
        NcclHopLatency(group.version, NcclHop::kNvLink, NcclAlgorithm::kRing, Protocol::kSimple);
    pace.latency += inside * (SimpleStep(kernels, moving) - expected);
  }
  return pace;
}

bool IsAnnounced(const NcclGroup& group, Bytes message) {
  return group.plugin_eager > Bytes(0) && message > group.plugin_eager;
}

// Once NCCL has chosen: what it expects if hops take as long as they do.
NcclCost AsTimed(const NcclGroup& group, CollectiveKind kind, Bytes bytes, const NcclCost& chosen) {
  double senders = 1;
  if (chosen.algorithm == NcclAlgorithm::kRing && !IsRooted(kind)) senders = group.ranks;
  if (chosen.algorithm == NcclAlgorithm::kNvlsTree) senders = std::max(group.heads, 1u);
  NcclGroup timed = group;
  timed.plugin_told = group.plugin_latency;
  // The model counts a hop twice with Simple.
  if (IsAnnounced(group, bytes / senders))
    timed.plugin_told *= chosen.protocol == Protocol::kSimple ? 2 : 3;
  const std::optional<NcclCost> cost =
      CostOf(timed, kind, bytes, chosen.algorithm, chosen.protocol);
  CHECK(cost.has_value());
  return *cost;
}

bool IsKnown(const NcclGroup& group) {
  return group.inside == NcclHop::kNvLink && group.has_nvlinks &&
         group.generation >= NcclGeneration::kAmpere;
}

NcclPace Tree(const NcclGroup& group, Bytes bytes, const NcclCost& chosen) {
  NcclPace pace = AsExpected(group, chosen);
  if (chosen.protocol == Protocol::kSimple) {
    pace.of_links = kTreeOfLinks * NcclTreeCorrection(chosen.protocol, bytes);
    return pace;
  }
  if (!IsKnown(group) || group.nodes == 1) return pace;
  const Kernels& kernels = KernelsOf(group.generation);
  const bool is_ll = chosen.protocol == Protocol::kLL;
  const double steps = 2 * (static_cast<double>(group.ranks) / group.nodes - 1);
  const Seconds expected = NcclBase(group.version, NcclAlgorithm::kTree, chosen.protocol) +
                           steps * NcclHopLatency(group.version, NcclHop::kNvLink,
                                                  NcclAlgorithm::kTree, chosen.protocol);
  const Seconds inside =
      OfMicroseconds(kernels.base + steps * (is_ll ? kernels.least_ll : kernels.step_ll128));
  pace.latency += inside - expected;
  return pace;
}

NcclPace Pat(const NcclGroup& group, const NcclCost& chosen) {
  NcclPace pace = AsExpected(group, chosen);
  pace.of_links = kPatEfficiency;
  return pace;
}

// A loop through the switches, in bytes: a chunk of each head on each channel.
struct Loop {
  Bytes bytes;
  double operations = 1;
};

Bytes Least(Bytes bytes, const Loop& loop) { return std::min(bytes, loop.bytes); }

Loop NvlsLoop(const NcclGroup& group, Bytes bytes) {
  const Kernels& kernels = KernelsOf(group.generation);
  const double operations = kernels.nvls_channels * group.heads;
  double chunk = kernels.largest_nvls_chunk;
  const double total = bytes.value();
  if (total < 64 * operations * chunk) chunk = std::min(chunk, 64 * kKib);
  if (total < 8 * operations * chunk) chunk = std::min(chunk, 32 * kKib);
  if (total < 2 * operations * chunk) chunk = std::min(chunk, 16 * kKib);
  return {Bytes(operations * chunk), operations};
}

Loop NvlsTreeLoop(const NcclGroup& group, Bytes bytes) {
  const Kernels& kernels = KernelsOf(group.generation);
  const double operations = kernels.nvls_channels * group.heads;
  double chunk = group.nodes >= 4 ? 64 * kKib : 128 * kKib;
  const double total = bytes.value();
  if (total < 4 * operations * chunk) chunk = std::min(chunk, 64 * kKib);
  if (total < operations * chunk) chunk = std::min(chunk, 32 * kKib);
  return {Bytes(operations * chunk), operations};
}

// What the switch of one machine lets through with loops of this size, with `on_wire` bytes for
// each of the collective's.
BytesPerSecond ThroughSwitch(const NcclGroup& group, const Loop& loop, double on_wire,
                             double overhead) {
  const Kernels& kernels = KernelsOf(group.generation);
  const Seconds moving = loop.bytes * on_wire / (kernels.nvls_share * group.inside_reached);
  return loop.bytes / (moving + overhead * group.heads * kNvlsLoopOfHead);
}

NcclPace Nvls(const NcclGroup& group, CollectiveKind kind, Bytes bytes) {
  const Kernels& kernels = KernelsOf(group.generation);
  const double part = IsAllReduce(kind) ? 1 : 0.5;
  const double on_wire = IsAllReduce(kind) ? 1 + 1.0 / group.ranks : 1;
  const Loop loop = NvlsLoop(group, bytes);
  NcclPace pace;
  pace.bandwidth = ThroughSwitch(group, loop, on_wire, part);
  pace.latency =
      part * (OfMicroseconds(kernels.nvls_start) + kNvlsFill * Least(bytes, loop) * on_wire /
                                                       (kernels.nvls_share * group.inside_reached));
  // A loop takes its full time, however little is in it.
  if (bytes < loop.bytes)
    pace.latency += part * group.heads * (1 - bytes / loop.bytes) * kNvlsLoopOfHead;
  return pace;
}

NcclPace NvlsTree(const NcclGroup& group, Bytes bytes, const NcclCost& chosen) {
  const Kernels& kernels = KernelsOf(group.generation);
  const double members = static_cast<double>(group.ranks) / group.nodes;
  const Loop loop = NvlsTreeLoop(group, bytes);
  NcclPace pace;
  const Loop largest = NvlsTreeLoop(group, Bytes(1e15));
  pace.bandwidth = kNvlsTreeShare * ThroughSwitch(group, largest, 1 + 1 / members, 1);
  // Two machines are each the root of a tree with half of the bytes, while others pass bytes on.
  const BytesPerSecond across = (group.nodes == 2 ? 1 : 0.5) * group.reached;
  const Seconds expected =
      NcclHopLatency(group.version, NcclHop::kNvLink, NcclAlgorithm::kNvlsTree, Protocol::kSimple);
  pace.latency = std::max(chosen.latency - expected, Seconds(0)) +
                 OfMicroseconds(kernels.nvls_start + kernels.nvls_tree_start) +
                 kernels.nvls_tree_fill * Least(bytes, loop) / std::min(pace.bandwidth, across);
  return pace;
}

// Channels that one peer gets for this many bytes.
uint32_t ChannelsOfPeer(const NcclGroup& group, Bytes bytes) {
  const uint32_t all = PeerChannels(group);
  uint32_t channels = all;
  while (channels * group.ranks > all && channels > 1) channels /= 2;
  while (bytes / channels > kLargestPart && 2 * channels <= all) channels *= 2;
  return channels;
}

}  // namespace

NcclPace NcclPaceOf(const NcclGroup& group, CollectiveKind kind, Bytes bytes,
                    const NcclCost& chosen) {
  const NcclCost timed = AsTimed(group, kind, bytes, chosen);
  const bool is_in_switch =
      timed.algorithm == NcclAlgorithm::kNvls || timed.algorithm == NcclAlgorithm::kNvlsTree;
  if (timed.algorithm == NcclAlgorithm::kTree) return Tree(group, bytes, timed);
  if (timed.algorithm == NcclAlgorithm::kPat) return Pat(group, timed);
  if (!IsKnown(group)) return AsExpected(group, timed);
  if (is_in_switch && (group.heads == 0 || group.inside_reached.value() <= 0))
    return AsExpected(group, timed);
  switch (timed.algorithm) {
    case NcclAlgorithm::kRing:
      if (IsRooted(kind)) return AsExpected(group, timed);
      if (group.nodes == 1) return RingInside(group, kind, bytes, timed.protocol);
      return RingAcross(group, kind, bytes, timed);
    case NcclAlgorithm::kNvls:
      return Nvls(group, kind, bytes);
    case NcclAlgorithm::kNvlsTree:
      return NvlsTree(group, bytes, timed);
    case NcclAlgorithm::kTree:
    case NcclAlgorithm::kPat:
      break;
  }
  return AsExpected(group, timed);
}

uint32_t NcclChannels(const NcclGroup& group, NcclAlgorithm algorithm) {
  const bool is_in_switch =
      algorithm == NcclAlgorithm::kNvls || algorithm == NcclAlgorithm::kNvlsTree;
  return is_in_switch ? KernelsOf(group.generation).nvls_channels : 2 * group.graph_channels;
}

BytesPerSecond NcclChannelRate(const NcclGroup& group) {
  const Kernels& kernels = KernelsOf(group.generation);
  return BytesPerSecond((group.nodes > 1 ? kernels.channel_across : kernels.peer_channel) * 1e9);
}

NcclGroup WithChannels(const NcclGroup& group, uint32_t channels) {
  NcclGroup capped = group;
  if (channels < 2 * group.graph_channels) capped.most_channels = channels;
  return capped;
}

SendsPace SendsPaceOf(const NcclGroup& group, CollectiveKind kind, Bytes bytes) {
  SendsPace pace;
  if (!IsKnown(group)) return pace;
  const Kernels& kernels = KernelsOf(group.generation);
  const uint32_t peers = kind == CollectiveKind::kAllToAll ? group.ranks - 1 : 1;
  const uint32_t rounds = (peers + kPeersAtOnce - 1) / kPeersAtOnce;
  const bool is_to_all = kind == CollectiveKind::kAllToAll;
  const Bytes of_peer = is_to_all ? bytes / group.ranks : bytes;
  const bool is_short = of_peer <= kSendsLL;
  pace.latency = rounds * OfMicroseconds(is_short ? kernels.sends_ll : kernels.sends);
  if (group.nodes > 1) {
    pace.latency += (IsAnnounced(group, of_peer) ? 3 : 1) * group.plugin_latency;
    if (!is_to_all)
      pace.latency += kSendAcross;
    else
      pace.latency += is_short ? kAllToAllAcrossLL : kAllToAllAcross;
    pace.of_links = group.nic < kFastNic ? kSendsOfNetwork : kSendsOfFastNetwork;
    const uint32_t peers_across = is_to_all ? group.ranks - group.ranks / group.nodes : 1;
    const bool are_many = kNetPeerChannels * group.ranks > 4 * PeerChannels(group);
    const uint32_t channels = peers_across * (are_many ? 1 : kNetPeerChannels);
    const BytesPerSecond own = channels * kNetPeerChannel;
    if (own < pace.of_links * group.nic_capacity)
      pace.most = (is_to_all ? static_cast<double>(group.ranks) / peers_across : 1) * own;
    return pace;
  }
  const BytesPerSecond links = group.reached;
  // A channel with several peers serves one after the other.
  const uint32_t of_one = ChannelsOfPeer(group, of_peer);
  const uint32_t all = PeerChannels(group);
  const uint32_t turns = (peers * of_one + all - 1) / all;
  const BytesPerSecond channels(kernels.peer_channel * 1e9 * peers * of_one / turns);
  const BytesPerSecond rate = std::min(kSendsOfLinks * links, channels);
  pace.of_links = kSendsOfLinks;
  if (channels < kSendsOfLinks * links)
    pace.most = (is_to_all ? static_cast<double>(group.ranks) / peers : 1) * channels;
  pace.latency += std::min(kSendsFillShare * peers * of_peer, kSendsFill) / rate;
  return pace;
}

}  // namespace rehearse
