#include "collectives/nccl/nccl_constants.h"

#include <algorithm>
#include <bit>

#include "sim/base/error.h"

namespace rehearse {
namespace {

using ByProtocol = std::array<double, kProtocols>;  // LL, LL128, Simple
using ByScale = std::array<double, 3>;              // one machine, two, more
using ByGeneration = std::array<ByScale, 4>;        // Volta, Ampere, Hopper, Blackwell

// The figures of tree, ring, NVLS, NVLSTree and PAT, in microseconds. The last three have Simple
// only.
using ByAlgorithm = std::array<ByProtocol, kNcclAlgorithms.size()>;
constexpr ByAlgorithm kBase = {{{6.8, 14.0, 8.4}, {6.6, 14.0, 8.4}, {}, {}, {8, 8, 8}}};
constexpr ByAlgorithm kBase218 = {{{6.8, 14.0, 0}, {6.6, 14.0, 8.4}, {0, 0, 23}, {0, 0, 23}, {}}};
constexpr std::array<ByAlgorithm, 3> kHops = {{
    {{{0.6, 1.25, 4.0}, {0.6, 1.9, 3.4}, {0, 0, 25}, {0, 0, 25}, {0, 0, 4}}},    // NVLink
    {{{1.0, 1.9, 4.0}, {1.0, 2.5, 5.7}, {}, {}, {0, 0, 4}}},                     // PCIe
    {{{5.0, 8.5, 14.0}, {2.7, 4.0, 14.0}, {0, 0, 18}, {0, 0, 14}, {0, 0, 14}}},  // network
}};
constexpr double kPcieTreeSimple218 = 6.0;
constexpr double kNetworkNvlsTree218 = 19.0;
constexpr double kNetworkNvlsTree229 = 20.9;

// GB/s. On several machines only the rows Volta (Intel's hosts) and Ampere (AMD's) are read.
constexpr ByGeneration kMostLL = {
    {{39.0, 39.0, 20.4}, {87.7, 22.5, 19.0}, {141.0, 45.0, 35.0}, {282.0, 90.0, 70.0}}};
constexpr ByGeneration kMostRingLL128 = {
    {{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 36.7}, {73.4, 73.4, 73.4}}};
constexpr ByScale kMostRingLL128OfBlackwell229 = {34.5, 34.6, 34.5};
constexpr ByGeneration kMostTreeLL128 = {
    {{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 29.0}, {55.6, 31.67, 20.0}}};
constexpr ByGeneration kMostTree = {
    {{26.5, 18.5, 10.0}, {24.0, 23.6, 17.8}, {38.7, 41.4, 36.0}, {70.0, 42.8, 24.0}}};
constexpr ByGeneration kMostNvlsTree = {
    {{26.5, 18.5, 10.0}, {24.0, 23.6, 17.8}, {0, 57.7, 45.5}, {0, 96.0, 43.1}}};
constexpr double kMostNvlsTreeOfBlackwell229 = 43.8;  // on more than two machines
constexpr std::array<double, 4> kNvls = {0, 0, 0.85, 0.74};

// The correction depends on the power of two of the bytes, counted from 64 bytes on.
constexpr std::array<std::array<double, 24>, kProtocols> kTreeCorrection = {{
    {1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1, 1},
    {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1, 1},
    {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5,
     .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9, .9},
}};

// A channel has so many threads, and each of them so many bytes.
constexpr ByProtocol kLeastForAChannel = {512 * 8, 640 * 8, 512 * 64};

template <typename Enum>
constexpr size_t At(Enum value) {
  return static_cast<size_t>(value);
}
constexpr Seconds Microseconds(double value) { return Seconds(value * 1e-6); }
BytesPerSecond Gigabytes(const ByGeneration& table, NcclGeneration generation, uint32_t nodes) {
  CHECK_GE(nodes, 1u);
  return BytesPerSecond(table[At(generation)][ScaleOf(nodes)] * 1e9);
}

}  // namespace

std::optional<NcclGeneration> GenerationOf(uint32_t compute_capability) {
  if (compute_capability == 0) return std::nullopt;
  if (compute_capability >= 100) return NcclGeneration::kBlackwell;
  if (compute_capability >= 90) return NcclGeneration::kHopper;
  if (compute_capability >= 80) return NcclGeneration::kAmpere;
  return NcclGeneration::kVolta;
}

Seconds NcclBase(NcclVersion version, NcclAlgorithm algorithm, Protocol protocol) {
  const ByAlgorithm& base = version == NcclVersion::kRelease218 ? kBase218 : kBase;
  return Microseconds(base[At(algorithm)][At(protocol)]);
}

Seconds NcclHopLatency(NcclVersion version, NcclHop hop, NcclAlgorithm algorithm,
                       Protocol protocol) {
  if (version == NcclVersion::kRelease218 && protocol == Protocol::kSimple) {
    if (hop == NcclHop::kPcie && algorithm == NcclAlgorithm::kTree)
      return Microseconds(kPcieTreeSimple218);
    if (hop == NcclHop::kNetwork && algorithm == NcclAlgorithm::kNvlsTree)
      return Microseconds(kNetworkNvlsTree218);
  }
  if (version == NcclVersion::kRelease229 && protocol == Protocol::kSimple &&
      hop == NcclHop::kNetwork && algorithm == NcclAlgorithm::kNvlsTree)
    return Microseconds(kNetworkNvlsTree229);
  return Microseconds(kHops[At(hop)][At(algorithm)][At(protocol)]);
}

BytesPerSecond NcclMostLL(NcclVersion version, NcclGeneration generation, uint32_t nodes) {
  // 2.18 takes the A100's figures for newer devices.
  if (version == NcclVersion::kRelease218)
    generation = std::min(generation, NcclGeneration::kAmpere);
  return Gigabytes(kMostLL, nodes == 1 ? generation : NcclGeneration::kVolta, nodes);
}
BytesPerSecond NcclMostRingLL128(NcclVersion version, NcclGeneration generation, uint32_t nodes) {
  if (version == NcclVersion::kRelease229 && generation == NcclGeneration::kBlackwell)
    return BytesPerSecond(kMostRingLL128OfBlackwell229[ScaleOf(nodes)] * 1e9);
  return Gigabytes(kMostRingLL128, generation, nodes);
}
BytesPerSecond NcclMostTreeLL128(NcclGeneration generation, uint32_t nodes) {
  return Gigabytes(kMostTreeLL128, generation, nodes);
}
BytesPerSecond NcclMostTree(NcclGeneration generation, uint32_t nodes) {
  return Gigabytes(kMostTree, generation, nodes);
}
BytesPerSecond NcclMostNvlsTree(NcclVersion version, NcclGeneration generation, uint32_t nodes) {
  if (version == NcclVersion::kRelease229 && generation == NcclGeneration::kBlackwell && nodes > 2)
    return BytesPerSecond(kMostNvlsTreeOfBlackwell229 * 1e9);
  return Gigabytes(kMostNvlsTree, generation, nodes);
}
double NcclNvlsEfficiency(NcclGeneration generation) { return kNvls[At(generation)]; }

double NcclTreeCorrection(Protocol protocol, Bytes bytes) {
  const auto& factors = kTreeCorrection[At(protocol)];
  const auto lines = static_cast<uint64_t>(bytes.value()) / 64;
  if (lines == 0) return factors.front();
  const auto power = static_cast<size_t>(std::bit_width(lines)) - 1;
  return power < factors.size() ? factors[power] : 1;
}

Bytes NcclLeastForAChannel(Protocol protocol) { return Bytes(kLeastForAChannel[At(protocol)]); }

}  // namespace rehearse
