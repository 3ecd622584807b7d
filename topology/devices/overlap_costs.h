// What NCCL's collectives cost the kernels beside them, by family of devices, where nothing was
// measured on the machine itself.
//
//   SMs      A collective runs as so many thread blocks, each of which keeps a multiprocessor to
//            itself (NVIDIA/nccl issue 689). Products and attention cores run on what is left:
//            whole waves of tiles for products, the share of the multiprocessors for cores.
//            Hopper's products are persistent kernels whose tiles are dealt before they start:
//            they take twice as long, however few blocks NCCL has (Blackwell deals tiles as it
//            goes).
//   memory   A ring reads and writes what it moves: kernels that are bound by memory have the rest
//            of the bandwidth.
//
// Where groups reach over several machines, NICs set the pace: NCCL takes as few blocks as they
// need, and hardly any of the memory's bandwidth. The slow-downs of training on 4 A100, H100, MI250
// and MI210 that arXiv 2507.03114 measured (18.9 % in the mean, 40 % at most) lie in this range.
#pragma once

#include <optional>
#include <string>

#include "sim/base/error.h"
#include "topology/devices/device.h"

namespace rehearse {

struct OverlapCosts {
  Slowdown slowdown;
  std::string source;
};

// Returns nothing if the family is not known. `crosses_machines`: whether there are several.
std::optional<OverlapCosts> OverlapCostsOf(const DeviceSpec& device, bool crosses_machines);

// The same for kernels of communication that always keep so many multiprocessors to themselves, as
// the software says (LowerOptions::is_always_slowed): products are cut for the others beforehand,
// so that they take whole waves on these, and attention cores the share. Throws Error at `place` if
// the device has no more, or if how many it has is not known.
Slowdown SlowdownBeside(const DeviceSpec& device, uint32_t multiprocessors, const Place& place);

}  // namespace rehearse
