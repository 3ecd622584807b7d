#include "tools/foreign/machines/import_rates.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

namespace rehearse {
namespace {

ClusterLink LinkOf(LinkKind kind, double bandwidth, double efficiency, Seconds latency) {
  ClusterLink link;
  link.kind = kind;
  link.bandwidth = BytesPerSecond(bandwidth);
  link.efficiency = efficiency;
  link.latency = latency;
  return link;
}

// One link in one direction: what NVIDIA states, and what NCCL plans with.
struct NvLinkRate {
  uint32_t from_sm;
  double nominal;
  double nccl;
};
constexpr std::array kNvLinkRates = {
    NvLinkRate{100, 50e9, 40.1e9},    // NVLink 5
    NvLinkRate{90, 25e9, 20.6e9},     // NVLink 4
    NvLinkRate{87, 25e9, 20e9},       //
    NvLinkRate{86, 14.0625e9, 12e9},  // GA102: four links are 56.25 GB/s
    NvLinkRate{80, 25e9, 20e9},       // NVLink 3
    NvLinkRate{70, 25e9, 20e9},       // NVLink 2
    NvLinkRate{60, 20e9, 18e9},       // NVLink 1
    NvLinkRate{0, 25e9, 20e9},        // what NCCL assumes for unknown ones
};

struct XgmiRate {
  std::string_view gcn;  // begins with
  double nominal;        // half of the figure for both directions in AMD's data sheets
  double rccl;
};
constexpr std::array kXgmiRates = {
    XgmiRate{"95", 76.8e9, 48e9}, XgmiRate{"94", 64e9, 48e9}, XgmiRate{"90a", 50e9, 36e9},
    XgmiRate{"910", 50e9, 36e9},  XgmiRate{"", 46e9, 24e9},  // "910" is how older RCCL writes 90a
};

// For 16 lanes: what the wire carries after coding, as usually stated, and what NCCL plans with.
struct PcieGeneration {
  double gigatransfers;
  double nominal;
  double nccl;
};
constexpr std::array kPcieGenerations = {
    PcieGeneration{2.5, 4e9, 3e9},    PcieGeneration{5, 8e9, 6e9},
    PcieGeneration{8, 15.75e9, 12e9}, PcieGeneration{16, 31.5e9, 24e9},
    PcieGeneration{32, 63e9, 48e9},   PcieGeneration{64, 121e9, 96e9}};

// After the coding of the wire: 8 of 10 bits, 128 of 130, and 242 of 256 bytes.
double CarriedOf(PcieSlot slot) {
  constexpr double kBits = 8;
  const double share = slot.gigatransfers < 8    ? 8.0 / 10
                       : slot.gigatransfers < 64 ? 128.0 / 130
                                                 : 242.0 / 256;
  return slot.gigatransfers * share / kBits * slot.lanes;
}

const NvLinkRate& NvLinkRateOf(uint32_t sm) {
  return *std::find_if(kNvLinkRates.begin(), kNvLinkRates.end(),
                       [&](const NvLinkRate& candidate) { return sm >= candidate.from_sm; });
}

const XgmiRate& XgmiRateOf(std::string_view gcn) {
  return *std::find_if(kXgmiRates.begin(), kXgmiRates.end(),
                       [&](const XgmiRate& candidate) { return gcn.starts_with(candidate.gcn); });
}

uint32_t LinksOfRate(double megabytes, double rate) {
  return std::max(1u, static_cast<uint32_t>(std::lround(megabytes / rate)));
}

const PcieGeneration& GenerationOf(PcieSlot slot) {
  for (const PcieGeneration& generation : kPcieGenerations)
    if (generation.gigatransfers == slot.gigatransfers) return generation;
  CHECK(false);
}

double NominalOf(PcieSlot slot) { return GenerationOf(slot).nominal / 16 * slot.lanes; }

BytesPerSecond GigabytesPerSecond(double value) { return BytesPerSecond(value * 1e9); }

}  // namespace

ClusterLink NvLinksOf(uint32_t sm, uint32_t count, Seconds latency) {
  const NvLinkRate& rate = NvLinkRateOf(sm);
  return LinkOf(LinkKind::kNvLink, count * rate.nominal, rate.nccl / rate.nominal, latency);
}

uint32_t NvLinksThatCarry(uint32_t sm, double megabytes) {
  constexpr uint32_t kNvLink2 = 70;
  constexpr uint32_t kNvLink5 = 100;
  return LinksOfRate(megabytes, sm < kNvLink2 ? 20e3 : sm < kNvLink5 ? 25e3 : 50e3);
}

ClusterLink XgmiLinksOf(std::string_view gcn, uint32_t count, Seconds latency) {
  const XgmiRate& rate = XgmiRateOf(gcn);
  return LinkOf(LinkKind::kXgmi, count * rate.nominal, rate.rccl / rate.nominal, latency);
}

uint32_t XgmiLinksThatCarry(std::string_view gcn, double megabytes) {
  return LinksOfRate(megabytes, XgmiRateOf(gcn).nominal / 1e6);
}

ClusterLink PcieLinkOf(PcieSlot slot, Seconds latency) {
  const PcieGeneration& generation = GenerationOf(slot);
  return LinkOf(LinkKind::kPcie, NominalOf(slot), generation.nccl / generation.nominal, latency);
}

std::optional<double> ParseGigatransfers(std::string_view link_speed) {
  double value = 0;
  const char* const end = link_speed.data() + link_speed.size();
  const auto [stop, fault] = std::from_chars(link_speed.data(), end, value);
  if (fault != std::errc() || !std::string_view(stop, end).starts_with(" GT/s"))
    return std::nullopt;
  for (const PcieGeneration& generation : kPcieGenerations)
    if (generation.gigatransfers == value) return value;
  return std::nullopt;
}

PcieSlot SlotThatCarries(double gigabytes) {
  const auto distance = [&](PcieSlot slot) {
    return std::abs(std::log(CarriedOf(slot) / gigabytes));
  };
  const auto nearest = [&](uint32_t lanes) {
    PcieSlot best = {kPcieGenerations.front().gigatransfers, lanes};
    for (const PcieGeneration& generation : kPcieGenerations) {
      const PcieSlot slot = {generation.gigatransfers, lanes};
      if (distance(slot) < distance(best)) best = slot;
    }
    return best;
  };
  constexpr std::array kLanes = {16u, 8u, 4u, 2u, 1u, 12u, 32u};
  constexpr double kRounded = 1e-3;
  constexpr double kNear = 0.04;  // hwloc divides by 1024 what AMD's driver says
  for (const double within : {kRounded, kNear, std::numeric_limits<double>::infinity()})
    for (const uint32_t lanes : kLanes)
      if (distance(nearest(lanes)) < within) return nearest(lanes);
  return kUnknownSlot;
}

double PortOfSlot(PcieSlot slot) {
  constexpr double kMegabit = 1e6 / 8;
  double port = 10e3;
  for (const double faster : {25e3, 40e3, 50e3, 100e3, 200e3, 400e3, 800e3})
    if (faster * kMegabit <= NominalOf(slot)) port = faster;
  return port;
}

ClusterLink NetworkPortOf(double megabits, Seconds more_latency) {
  return LinkOf(LinkKind::kNetwork, megabits * 1e6 / 8, 1, kNetworkPort + more_latency);
}

std::optional<BytesPerSecond> BetweenSockets(const ProcessorKind& processor) {
  if (processor.arch == "ppc64") return GigabytesPerSecond(32);
  if (processor.arch == "arm64") return GigabytesPerSecond(6);
  if (processor.arch != "x86_64" || !processor.family) return std::nullopt;
  const uint32_t family = *processor.family;
  if (processor.vendor == "AuthenticAMD") {
    // As CPUID gives it (19h is Zen 3 and 4, 1Ah Zen 5), or as NCCL used to add it up (AFh, BFh).
    if (family == 0x1a || family == 0xbf) return GigabytesPerSecond(32);
    if (family == 0x19 || family == 0xaf) return GigabytesPerSecond(24);
    return GigabytesPerSecond(16);
  }
  if (!processor.model) return std::nullopt;
  const uint32_t model = *processor.model;
  if (processor.vendor == "GenuineIntel") {
    if (family != 6 || model < 0x55) return GigabytesPerSecond(6);  // Broadwell and older
    const bool is_granite = model >= 0xad && model <= 0xaf;
    if (model >= 0xcf || is_granite) return GigabytesPerSecond(40);  // Emerald Rapids and newer
    return GigabytesPerSecond(model >= 0x8f ? 22 : 10);              // Sapphire Rapids, Skylake
  }
  if (processor.vendor == "CentaurHauls" || processor.vendor == "  Shanghai  ")
    return GigabytesPerSecond(family == 7 && model == 0x5b ? 9 : 6);
  return std::nullopt;
}

ClusterLink SocketLinkOf(BytesPerSecond bandwidth) {
  return LinkOf(LinkKind::kSocket, bandwidth.value(), 1, kSocketHop);
}

}  // namespace rehearse
