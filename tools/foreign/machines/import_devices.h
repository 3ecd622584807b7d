// Which device a GPU of an imported machine is: by its PCI id, its compute capability or its gcn
// architecture, or by the name that the user gives.
//
// One table has the links of all of them. What a device can do is as Rehearse knows it
// (topology/devices/device.h), or for some more the figures of public data sheets; their
// efficiencies are assumed to be those of an A100.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "topology/devices/device.h"

namespace rehearse {

enum class HostLink : uint8_t {
  kPcie,
  kC2c,  // NVLink-C2C to the processor beside it
};

struct GpuKind {
  std::string device;         // "v100-16g"
  uint32_t sm = 0;            // 70; 0 for AMD
  std::string gcn;            // "906"; "" for NVIDIA
  uint32_t nvlinks = 0;       // how many it has
  double gigatransfers = 16;  // of its PCIe
  HostLink host = HostLink::kPcie;
  bool is_geforce = false;    // no peer-to-peer over PCIe unless the driver is patched
  bool is_of_family = false;  // the first of those with its capability or architecture
};

// The kind of a GPU with these PCI ids ("0x10de", "0x20b0"), compute capability (0 if unknown) and
// gcn ("" if unknown, "gfx90a:sramecc+" and "910" are "90a"). An id that is not known leaves it to
// the others, which name a family. Nothing when none of them is known.
std::optional<GpuKind> FindGpuKind(const std::string& vendor, const std::string& device,
                                   uint32_t sm, const std::string& gcn);

// The kind that a driver calls this: "NVIDIA A100-SXM4-80GB". Nothing when it is not known.
std::optional<GpuKind> FindGpuKindOfModel(std::string_view model);

// The kind that a free text names: "NVIDIA A100 SXM4", "a100-80g". Nothing when it names none.
std::optional<GpuKind> FindGpuKindInText(std::string_view text);

// The kind of that name. Throws Error with "did you mean" when there is no such device.
GpuKind GpuKindOf(const std::string& device);

// What is assumed when nothing says the kind.
inline constexpr const char* kAssumedDevice = "a100-40g";

// The spec of a known device, or from the table.
DeviceSpec SpecOf(const GpuKind& kind);
// One of so many equal parts of a device: that part of its peaks, memory and bandwidth.
DeviceSpec PartOf(DeviceSpec spec, uint32_t parts);
bool IsKnownDevice(const std::string& name);

}  // namespace rehearse
