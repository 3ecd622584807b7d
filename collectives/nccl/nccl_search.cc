#include "collectives/nccl/nccl_search.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

namespace rehearse {
namespace {

// GB/s.
constexpr std::array<double, 4> kNvLink = {20.0, 20.0, 20.6, 40.1};
constexpr std::array kToAmpere = {40.0, 30.0, 20.0, 18.0, 15.0, 12.0, 10.0,
                                  9.0,  7.0,  6.0,  5.0,  4.0,  3.0};
constexpr std::array kHopper = {60.0, 50.0, 40.0, 30.0, 24.0, 20.0, 15.0, 12.0, 11.0, 6.0, 3.0};
constexpr std::array kBlackwell = {90.0, 80.0, 70.0, 60.0, 50.0, 40.0,
                                   30.0, 24.0, 20.0, 19.0, 18.0};
constexpr uint32_t kMostHeads = 32;
constexpr uint32_t kMostChannels = 32;
constexpr double kOfANic = 0.96;  // 48 of 50 GB/s, 24 of 25, 12 of 12.5
constexpr double kWorse = 0.49;   // of the bandwidth found: nothing slower is tried

std::span<const double> Bandwidths(NcclGeneration generation) {
  if (generation == NcclGeneration::kBlackwell) return kBlackwell;
  if (generation == NcclGeneration::kHopper) return kHopper;
  return kToAmpere;
}

BytesPerSecond Gigabytes(double value) { return BytesPerSecond(value * 1e9); }

// Whether channels of so many GB/s each are left as they are, instead of two being made of one.
bool AreSlow(NcclGeneration generation, double bandwidth, uint32_t channels) {
  return bandwidth < 25 || (generation > NcclGeneration::kAmpere && bandwidth < 50 && channels > 4);
}

}  // namespace

NvSwitchSearch SearchNvSwitch(NcclGeneration generation, uint32_t nvlinks, uint32_t members) {
  const double links = nvlinks * kNvLink[static_cast<size_t>(generation)];
  NvSwitchSearch found;
  double best = 0;
  double best_bandwidth = 0;
  for (const double bandwidth : Bandwidths(generation)) {
    if (bandwidth > links) continue;
    if (best > 0 && bandwidth < kWorse * best_bandwidth) break;
    const double channels = std::min<double>(std::floor(links / bandwidth + 1e-9), kMostChannels);
    if (channels * bandwidth <= best) continue;
    best = channels * bandwidth;
    best_bandwidth = bandwidth;
    found.channels = static_cast<uint32_t>(channels);
    if (best >= links) break;
  }
  found.rings = Gigabytes(best);
  if (!AreSlow(generation, best_bandwidth, found.channels))
    found.channels = std::min(2 * found.channels, kMostChannels);

  found.heads = std::min(members, kMostHeads);
  for (const double bandwidth : Bandwidths(generation)) {
    if ((found.heads + 1) * bandwidth > links + 1e-9) continue;
    found.head = Gigabytes(bandwidth);
    break;
  }
  return found;
}

uint32_t ChannelsOfANic(NcclGeneration generation, BytesPerSecond nic, uint32_t nics) {
  const double channel = kOfANic * nic.value() / 1e9;
  return AreSlow(generation, channel, nics) ? 1 : 2;
}

BytesPerSecond NvLinkBandwidth(NcclGeneration generation) {
  return Gigabytes(generation == NcclGeneration::kBlackwell ? 50 : 25);
}

}  // namespace rehearse
