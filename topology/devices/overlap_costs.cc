#include "topology/devices/overlap_costs.h"

#include <algorithm>

#include <fmt/format.h>

namespace rehearse {
namespace {

struct Family {
  uint32_t capability = 0;
  uint32_t multiprocessors = 0;
  uint32_t blocks_inside = 0;  // of a collective within one machine
  uint32_t blocks_across = 0;  // of one over several machines
  double bus_bandwidth = 0;    // of a large all-reduce within a machine, B/s
  const char* source = "";
  bool is_persistent = false;  // the library's products, with tiles of 128 x 256
};

// 8 NICs of 200 Gb/s take 16 blocks (issue 689), those of 400 Gb/s as many as NVLS does.
constexpr Family kFamilies[] = {
    {80, 108, 24, 16, 230e9,
     "NVIDIA/nccl issues 1225 (DGX A100: 24 blocks) and 689 (8 NICs: 16, no shared SMs); busbw: "
     "VIA-Research/vTrain f8dda847"},
    {90, 132, 24, 16, 360e9,
     "NCCL's own log on 8 H100 (24 coll channels, 16 nvls channels), NVIDIA/nccl issue 689; busbw: "
     "ai-dynamo/aiconfigurator 095f58a51c4c; persistent products take twice as long beside NCCL: "
     "pytorch/pytorch issue 143988, NVIDIA/cutlass issue 2471",
     true},
    {100, 148, 24, 32, 690e9,
     "NVIDIA/nccl src/transport/nvls.cc (NVLS_NCHANNELS_SM100_NVL 24, SM100 32); busbw: "
     "ai-dynamo/aiconfigurator 095f58a51c4c"},
    {103, 160, 24, 32, 690e9,
     "NVIDIA/nccl src/transport/nvls.cc, issue 2421 (GB300: 32 blocks); busbw as the B200's"},
};

const Family* FamilyOf(const DeviceSpec& device) {
  const auto* const family = std::find_if(
      std::begin(kFamilies), std::end(kFamilies),
      [&](const Family& known) { return known.capability == device.compute_capability; });
  return family == std::end(kFamilies) ? nullptr : family;
}

}  // namespace

std::optional<OverlapCosts> OverlapCostsOf(const DeviceSpec& device, bool crosses_machines) {
  const Family* const family = FamilyOf(device);
  if (family == nullptr) return std::nullopt;
  const uint32_t taken = crosses_machines ? family->blocks_across : family->blocks_inside;
  OverlapCosts costs;
  costs.source = family->source;
  Waves waves;
  waves.multiprocessors = family->multiprocessors;
  waves.taken = taken;
  waves.is_persistent = family->is_persistent;
  if (waves.is_persistent) waves.tile_columns = 256;
  costs.slowdown.waves = waves;
  costs.slowdown.attention =
      static_cast<double>(taken) / static_cast<double>(family->multiprocessors - taken);
  if (!crosses_machines && device.memory_bandwidth > BytesPerSecond(0)) {
    const double moved = 2 * family->bus_bandwidth / device.memory_bandwidth.value();
    costs.slowdown.memory = moved / (1 - std::min(moved, 0.5));
  }
  return costs;
}

Slowdown SlowdownBeside(const DeviceSpec& device, uint32_t multiprocessors, const Place& place) {
  const Family* const family = FamilyOf(device);
  if (family == nullptr) {
    throw Error(place, fmt::format("how many multiprocessors \"{}\" has is not known; expected "
                                   "\"slowdown\" to say what they cost",
                                   device.name));
  }
  if (multiprocessors >= family->multiprocessors) {
    throw Error(place, fmt::format("found {}, expected fewer than the {} that \"{}\" has",
                                   multiprocessors, family->multiprocessors, device.name));
  }
  Slowdown slowdown;
  Waves waves;
  waves.multiprocessors = family->multiprocessors;
  waves.taken = multiprocessors;
  slowdown.waves = waves;
  slowdown.attention = static_cast<double>(multiprocessors) /
                       static_cast<double>(family->multiprocessors - multiprocessors);
  return slowdown;
}

}  // namespace rehearse
