#include "topology/files/given_rings.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

namespace rehearse {
namespace {

constexpr size_t kMostRings = 64;          // NCCL's MAXCHANNELS
constexpr int64_t kMostOfAMachine = 1024;  // devices

// How many devices every machine has.
uint32_t DevicesOfAMachine(const Cluster& cluster, const JsonReader& reader) {
  std::vector<uint32_t> devices(cluster.node_count());
  for (uint32_t rank = 0; rank < cluster.device_count(); ++rank)
    ++devices[cluster.NodeIndexOf(rank)];
  const auto [least, most] = std::minmax_element(devices.begin(), devices.end());
  if (*least != *most) {
    reader.Fail(fmt::format("found machines of {} and of {} devices, expected equally many in each",
                            *least, *most));
  }
  return *most;
}

}  // namespace

JsonShape GivenRingsShape() { return ListOf(ListOf(AWhole(0, kMostOfAMachine - 1))); }

std::unique_ptr<Cluster> ApplyRings(const Cluster& cluster, const JsonReader& reader) {
  const uint32_t devices = DevicesOfAMachine(cluster, reader);
  Figures figures = cluster.figures();
  figures.rings.clear();
  const std::vector<JsonReader> rings = reader.Elements();
  if (rings.size() > kMostRings)
    reader.Fail(fmt::format("found {} rings, expected at most {}", rings.size(), kMostRings));
  for (const JsonReader& ring : rings) {
    std::vector<uint32_t>& own = figures.rings.emplace_back();
    std::vector<bool> is_met(devices);
    for (const JsonReader& place : ring.Elements()) {
      const auto device = static_cast<uint32_t>(place.Integer(0, kMostOfAMachine - 1));
      if (device >= devices || is_met[device]) {
        place.Fail(fmt::format("found device {}{}, expected each of the {} of a machine once",
                               device, device < devices ? " a second time" : "", devices));
      }
      is_met[device] = true;
      own.push_back(device);
    }
    if (own.size() != devices) {
      ring.Fail(fmt::format("found a ring of {} devices, expected all {} of a machine", own.size(),
                            devices));
    }
  }
  return std::make_unique<Cluster>(cluster.With(std::move(figures)));
}

}  // namespace rehearse
