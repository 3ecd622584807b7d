#include "tools/foreign/machines/import_devices.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/known_names.h"

namespace rehearse {
namespace {

constexpr double kGib = 1024.0 * 1024 * 1024;

// The links of a device, of all that Rehearse knows and of some more. Figures: the makers' data
// sheets. Of several devices with one compute capability or architecture the first is taken.
struct DeviceLinks {
  const char* name = "";
  uint32_t sm = 0;
  const char* gcn = "";
  uint32_t nvlinks = 0;
  double gigatransfers = 0;
  HostLink host = HostLink::kPcie;
};
constexpr std::array kDeviceLinks = {
    DeviceLinks{"p100", 60, "", 4, 8},
    DeviceLinks{"p100-16g", 60, "", 0, 8},
    DeviceLinks{"v100-16g", 70, "", 6, 8},
    DeviceLinks{"v100-32g", 70, "", 6, 8},
    DeviceLinks{"t4", 75, "", 0, 8},
    DeviceLinks{"a100-40g", 80, "", 12, 16},
    DeviceLinks{"a100-64g", 80, "", 12, 16},
    DeviceLinks{"a100-80g", 80, "", 12, 16},
    DeviceLinks{"a800", 80, "", 8, 16},
    DeviceLinks{"a30", 80, "", 4, 16},
    DeviceLinks{"rtx3090", 86, "", 4, 16},
    DeviceLinks{"a10g", 86, "", 0, 16},
    DeviceLinks{"rtx4090", 89, "", 0, 16},
    DeviceLinks{"l40s", 89, "", 0, 16},
    DeviceLinks{"h100", 90, "", 18, 32},
    DeviceLinks{"h100-nvl", 90, "", 12, 32},   // in pairs, by bridges
    DeviceLinks{"h100-pcie", 90, "", 12, 32},  // likewise
    DeviceLinks{"h200", 90, "", 18, 32},
    DeviceLinks{"h20", 90, "", 18, 32},
    DeviceLinks{"h800", 90, "", 8, 32},
    DeviceLinks{"gh200", 90, "", 18, 32, HostLink::kC2c},
    DeviceLinks{"b200", 100, "", 18, 32},
    DeviceLinks{"gb200", 100, "", 18, 32, HostLink::kC2c},
    DeviceLinks{"b300", 103, "", 18, 64},
    DeviceLinks{"gb300", 103, "", 18, 64, HostLink::kC2c},
    DeviceLinks{"rtx5090", 120, "", 0, 32},
    DeviceLinks{"rtx5080", 120, "", 0, 32},
    DeviceLinks{"mi50", 0, "906", 0, 16},
    DeviceLinks{"mi100", 0, "908", 0, 16},
    DeviceLinks{"mi250x-gcd", 0, "90a", 0, 16},
    DeviceLinks{"mi300a", 0, "940", 0, 32},
    DeviceLinks{"mi300x", 0, "942", 0, 32},
    DeviceLinks{"mi325x", 0, "942", 0, 32},
    DeviceLinks{"mi355x", 0, "950", 0, 32},
    DeviceLinks{"tpu-v4", 0, "-", 0, 8},
    DeviceLinks{"tpu-v5e", 0, "-", 0, 8},
    DeviceLinks{"tpu-v5p", 0, "-", 0, 8},
    DeviceLinks{"cpu-core", 0, "-", 0, 8},
};

// What devices can do that only imports know.
struct DeviceFigures {
  const char* name;
  const char* description;
  double matrix_16;  // TFLOP/s, dense
  double matrix_32;
  double vector_32;
  double vector_64;
  double memory;            // bytes
  double memory_bandwidth;  // GB/s
};
constexpr std::array kDeviceFigures = {
    DeviceFigures{"p100", "NVIDIA P100 SXM2", 21.2, 0, 10.6, 5.3, 16 * kGib, 732},
    DeviceFigures{"t4", "NVIDIA T4", 65, 0, 8.1, 0.25, 16 * kGib, 320},
    DeviceFigures{"a30", "NVIDIA A30", 165, 82, 10.3, 5.2, 24 * kGib, 933},
    DeviceFigures{"rtx3090", "GeForce RTX 3090", 71, 35.6, 35.6, 0.56, 24 * kGib, 936},
    DeviceFigures{"a10g", "NVIDIA A10G", 70, 35, 35, 0.55, 24 * kGib, 600},
    DeviceFigures{"rtx5090", "GeForce RTX 5090", 209.5, 104.8, 104.8, 1.64, 32 * kGib, 1792},
    DeviceFigures{"rtx5080", "GeForce RTX 5080", 112.6, 56.3, 56.3, 0.88, 16 * kGib, 960},
    DeviceFigures{"mi50", "AMD Instinct MI50", 26.5, 0, 13.3, 6.6, 16 * kGib, 1024},
    DeviceFigures{"mi100", "AMD Instinct MI100", 184.6, 46.1, 23.1, 11.5, 32 * kGib, 1228.8},
    DeviceFigures{"mi300a", "AMD Instinct MI300A", 980.6, 490.3, 122.6, 61.3, 128 * kGib, 5300},
};

// From the PCI ID repository (pci-ids.ucw.cz).
struct PciId {
  std::string_view vendor;
  std::string_view device;
  std::string_view name;
};
constexpr std::array kPciIds = {
    PciId{"0x10de", "0x15f8", "p100-16g"},   PciId{"0x10de", "0x15f9", "p100"},
    PciId{"0x10de", "0x1db1", "v100-16g"},   PciId{"0x10de", "0x1db4", "v100-16g"},
    PciId{"0x10de", "0x1db5", "v100-32g"},   PciId{"0x10de", "0x1db6", "v100-32g"},
    PciId{"0x10de", "0x1db8", "v100-32g"},   PciId{"0x10de", "0x1eb8", "t4"},
    PciId{"0x10de", "0x20b0", "a100-40g"},   PciId{"0x10de", "0x20b1", "a100-40g"},
    PciId{"0x10de", "0x20f1", "a100-40g"},   PciId{"0x10de", "0x20b2", "a100-80g"},
    PciId{"0x10de", "0x20b3", "a100-64g"},   PciId{"0x10de", "0x20b5", "a100-80g"},
    PciId{"0x10de", "0x20f3", "a800"},       PciId{"0x10de", "0x20f5", "a800"},
    PciId{"0x10de", "0x20b7", "a30"},        PciId{"0x10de", "0x2204", "rtx3090"},
    PciId{"0x10de", "0x2237", "a10g"},       PciId{"0x10de", "0x2684", "rtx4090"},
    PciId{"0x10de", "0x26b9", "l40s"},       PciId{"0x10de", "0x2321", "h100-nvl"},
    PciId{"0x10de", "0x2324", "h800"},       PciId{"0x10de", "0x2329", "h20"},
    PciId{"0x10de", "0x232c", "h20"},        PciId{"0x10de", "0x2330", "h100"},
    PciId{"0x10de", "0x2331", "h100-pcie"},  PciId{"0x10de", "0x2335", "h200"},
    PciId{"0x10de", "0x2342", "gh200"},      PciId{"0x10de", "0x2348", "gh200"},
    PciId{"0x10de", "0x2901", "b200"},       PciId{"0x10de", "0x2909", "b200"},
    PciId{"0x10de", "0x2941", "gb200"},      PciId{"0x10de", "0x2b85", "rtx5090"},
    PciId{"0x10de", "0x2c02", "rtx5080"},    PciId{"0x10de", "0x3182", "b300"},
    PciId{"0x10de", "0x31c2", "gb300"},      PciId{"0x10de", "0x31c3", "gb300"},
    PciId{"0x1002", "0x66a1", "mi50"},       PciId{"0x1002", "0x738c", "mi100"},
    PciId{"0x1002", "0x7408", "mi250x-gcd"}, PciId{"0x1002", "0x740c", "mi250x-gcd"},
    PciId{"0x1002", "0x74a0", "mi300a"},     PciId{"0x1002", "0x74a1", "mi300x"},
    PciId{"0x1002", "0x74a9", "mi300x"},     PciId{"0x1002", "0x74b5", "mi300x"},
    PciId{"0x1002", "0x74a5", "mi325x"},     PciId{"0x1002", "0x74b9", "mi325x"},
    PciId{"0x1002", "0x75a3", "mi355x"},
};

// Parts of the names that drivers give (NVML's and AMD SMI's product names); the first that a name
// contains counts.
struct ModelName {
  std::string_view part;
  std::string_view name;
};
constexpr std::array kModelNames = {
    ModelName{"GH200", "gh200"},
    ModelName{"GB200", "gb200"},
    ModelName{"GB300", "gb300"},
    ModelName{"B300", "b300"},
    ModelName{"P100-SXM2", "p100"},
    ModelName{"V100-SXM2-16GB", "v100-16g"},
    ModelName{"V100-SXM2-32GB", "v100-32g"},
    ModelName{"V100-SXM3-32GB", "v100-32g"},
    ModelName{"A100-SXM4-80GB", "a100-80g"},
    ModelName{"A100-SXM4-40GB", "a100-40g"},
    ModelName{"H100 80GB HBM3", "h100"},
    ModelName{"H200", "h200"},
    ModelName{"B200", "b200"},
    ModelName{"RTX 4090", "rtx4090"},
    ModelName{"RTX 3090", "rtx3090"},
    ModelName{"RTX 5090", "rtx5090"},
    ModelName{"RTX 5080", "rtx5080"},
    ModelName{"H100 NVL", "h100-nvl"},
    ModelName{"H100 PCIe", "h100-pcie"},
    ModelName{"H20", "h20"},
    ModelName{"H800", "h800"},
    ModelName{"A800", "a800"},
    ModelName{"L40S", "l40s"},
    ModelName{"A10G", "a10g"},
    ModelName{"Tesla T4", "t4"},
    ModelName{"MI355X", "mi355x"},
    ModelName{"MI325X", "mi325x"},
    ModelName{"MI300X", "mi300x"},
    ModelName{"MI300A", "mi300a"},
    ModelName{"MI250X", "mi250x-gcd"},
    ModelName{"MI100", "mi100"},
    ModelName{"MI50", "mi50"},
};

// Parts of what people call them, "NVIDIA A100 GPU", in small letters; the first that is in one
// counts. Of several with one name the first was sold.
constexpr std::array kSpokenNames = {
    ModelName{"gb300", "gb300"},   ModelName{"gb200", "gb200"},   ModelName{"gh200", "gh200"},
    ModelName{"b300", "b300"},     ModelName{"b200", "b200"},     ModelName{"h100", "h100"},
    ModelName{"h200", "h200"},     ModelName{"a100", "a100-40g"}, ModelName{"v100", "v100-16g"},
    ModelName{"p100", "p100"},     ModelName{"mi355x", "mi355x"}, ModelName{"mi325x", "mi325x"},
    ModelName{"mi300x", "mi300x"}, ModelName{"mi300a", "mi300a"}, ModelName{"mi250", "mi250x-gcd"},
    ModelName{"mi100", "mi100"},
};

const DeviceLinks* FindDeviceLinks(std::string_view name) {
  for (const DeviceLinks& links : kDeviceLinks)
    if (links.name == name) return &links;
  return nullptr;
}
const DeviceFigures* FindDeviceFigures(std::string_view name) {
  for (const DeviceFigures& figures : kDeviceFigures)
    if (figures.name == name) return &figures;
  return nullptr;
}

GpuKind KindOf(const DeviceLinks& links) {
  return {.device = links.name,
          .sm = links.sm,
          .gcn = links.gcn,
          .nvlinks = links.nvlinks,
          .gigatransfers = links.gigatransfers,
          .host = links.host,
          .is_geforce = std::string_view(links.name).starts_with("rtx")};
}

std::string Lower(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

// Those of a device that was measured; peaks and memory are data sheets'.
void AssumeEfficiencies(DeviceSpec* spec) {
  const DeviceSpec& model = FindDevice(kAssumedDevice);
  spec->memory_efficiency = model.memory_efficiency;
  spec->gemm_efficiency = model.gemm_efficiency;
  spec->attention_forward_efficiency = model.attention_forward_efficiency;
  spec->attention_backward_efficiency = model.attention_backward_efficiency;
  spec->launch_overhead = model.launch_overhead;
  const std::string assumed = fmt::format("assumed: as {}", model.name);
  spec->sources = {{"attention_backward_efficiency", assumed},
                   {"attention_forward_efficiency", assumed},
                   {"gemm_efficiency", assumed},
                   {"launch_overhead", assumed},
                   {"memory_efficiency", assumed},
                   {"peaks and memory", "data sheet"}};
}

}  // namespace

std::optional<GpuKind> FindGpuKind(const std::string& vendor, const std::string& device,
                                   uint32_t sm, const std::string& gcn) {
  for (const PciId& id : kPciIds)
    if (id.vendor == Lower(vendor) && id.device == Lower(device))
      return KindOf(*FindDeviceLinks(id.name));
  std::string architecture = Lower(gcn);
  if (architecture.starts_with("gfx")) architecture.erase(0, 3);
  architecture = architecture.substr(0, architecture.find(':'));
  if (architecture == "910") architecture = "90a";
  for (const DeviceLinks& links : kDeviceLinks) {
    const bool is_amd = links.sm == 0;
    // AMD's files have an "sm" too, which says nothing.
    const bool is_like =
        is_amd ? links.gcn == architecture : architecture.empty() && links.sm == sm;
    if (!is_like) continue;
    GpuKind kind = KindOf(links);
    kind.is_of_family = true;
    return kind;
  }
  return std::nullopt;
}

std::optional<GpuKind> FindGpuKindOfModel(std::string_view model) {
  for (const ModelName& known : kModelNames)
    if (model.find(known.part) != std::string_view::npos) return GpuKindOf(std::string(known.name));
  return std::nullopt;
}

std::optional<GpuKind> FindGpuKindInText(std::string_view text) {
  if (const DeviceLinks* links = FindDeviceLinks(text)) return KindOf(*links);
  if (auto kind = FindGpuKindOfModel(text)) return kind;
  const std::string lower = Lower(std::string(text));
  for (const ModelName& known : kSpokenNames) {
    if (lower.find(known.part) != std::string::npos) return GpuKindOf(std::string(known.name));
  }
  return std::nullopt;
}

GpuKind GpuKindOf(const std::string& device) {
  if (const DeviceLinks* links = FindDeviceLinks(device)) return KindOf(*links);
  std::vector<std::string> names;
  for (const DeviceLinks& links : kDeviceLinks) names.emplace_back(links.name);
  throw Error(fmt::format("there is no device \"{}\"{}", device,
                          KnownNames(device, names, "rehearse list devices")));
}

bool IsKnownDevice(const std::string& name) {
  const auto& devices = KnownDevices();
  return std::any_of(devices.begin(), devices.end(),
                     [&](const DeviceSpec& known) { return known.name == name; });
}

DeviceSpec SpecOf(const GpuKind& kind) {
  if (IsKnownDevice(kind.device)) return FindDevice(kind.device);
  const DeviceFigures* const row = FindDeviceFigures(kind.device);
  CHECK(row != nullptr);
  DeviceSpec spec;
  spec.name = row->name;
  spec.description = row->description;
  spec.compute_capability = kind.sm;
  spec.matrix_peak_16 = FlopsPerSecond(row->matrix_16 * 1e12);
  spec.matrix_peak_32 = FlopsPerSecond(row->matrix_32 * 1e12);
  spec.vector_peak_32 = FlopsPerSecond(row->vector_32 * 1e12);
  spec.vector_peak_64 = FlopsPerSecond(row->vector_64 * 1e12);
  spec.memory = Bytes(row->memory);
  spec.memory_bandwidth = BytesPerSecond(row->memory_bandwidth * 1e9);
  AssumeEfficiencies(&spec);
  return spec;
}

DeviceSpec PartOf(DeviceSpec spec, uint32_t parts) {
  if (parts <= 1) return spec;
  spec.name = fmt::format("{}-part{}", spec.name, parts);
  spec.description = fmt::format("{}, one of {} partitions", spec.description, parts);
  for (FlopsPerSecond* peak : {&spec.matrix_peak_16, &spec.matrix_peak_8, &spec.matrix_peak_4,
                               &spec.matrix_peak_32, &spec.vector_peak_32, &spec.vector_peak_64})
    *peak = *peak / parts;
  spec.memory = spec.memory / parts;
  spec.memory_bandwidth = spec.memory_bandwidth / parts;
  // What is measured of whole devices does not hold for their parts.
  spec.cache = Bytes(0);
  spec.cache_bandwidth = BytesPerSecond(0);
  spec.gemm_points.clear();
  spec.gemm_model = spec.gemm_model_8 = spec.gemm_model_4 = nullptr;
  spec.attention_model = nullptr;
  spec.points = nullptr;
  spec.measured = nullptr;
  spec.slowdown = Slowdown();
  spec.sources.clear();
  AssumeEfficiencies(&spec);
  return spec;
}

}  // namespace rehearse
