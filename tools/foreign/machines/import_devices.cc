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

struct Row {
  const char* name;
  const char* description;
  uint32_t sm;
  const char* gcn;
  uint32_t nvlinks;
  double gigatransfers;
  double matrix_16;  // TFLOP/s, dense
  double matrix_32;
  double vector_32;
  double vector_64;
  double memory;            // bytes
  double memory_bandwidth;  // GB/s
};

// Figures: the makers' data sheets. Of several devices with one compute capability the
// first is taken.
constexpr std::array kRows = {
    Row{"p100", "NVIDIA P100 SXM2", 60, "", 4, 8, 21.2, 0, 10.6, 5.3, 16 * kGib, 732},
    Row{"v100-16g", "NVIDIA V100 SXM2 16 GB", 70, "", 6, 8, 125, 0, 15.7, 7.8, 16 * kGib, 900},
    Row{"v100-32g", "NVIDIA V100 SXM2 32 GB", 70, "", 6, 8, 125, 0, 15.7, 7.8, 32 * kGib, 900},
    Row{"t4", "NVIDIA T4", 75, "", 0, 8, 65, 0, 8.1, 0.25, 16 * kGib, 320},
    Row{"a100-40g", "NVIDIA A100 SXM4 40 GB", 80, "", 12, 16, 312, 156, 19.5, 9.7, 40 * kGib, 1555},
    Row{"a100-80g", "NVIDIA A100 SXM4 80 GB", 80, "", 12, 16, 312, 156, 19.5, 9.7, 80 * kGib, 2039},
    Row{"a30", "NVIDIA A30", 80, "", 4, 16, 165, 82, 10.3, 5.2, 24 * kGib, 933},
    Row{"rtx3090", "GeForce RTX 3090", 86, "", 4, 16, 71, 35.6, 35.6, 0.56, 24 * kGib, 936},
    Row{"a10g", "NVIDIA A10G", 86, "", 0, 16, 70, 35, 35, 0.55, 24 * kGib, 600},
    Row{"rtx4090", "GeForce RTX 4090", 89, "", 0, 16, 165.2, 82.6, 82.6, 1.29, 24 * kGib, 1008},
    Row{"h100", "NVIDIA H100 SXM5", 90, "", 18, 32, 989.4, 494.7, 66.9, 33.5, 80 * kGib, 3352},
    Row{"h200", "NVIDIA H200 SXM", 90, "", 18, 32, 989.4, 494.7, 66.9, 33.5, 141e9, 4800},
    Row{"b200", "NVIDIA B200", 100, "", 18, 32, 2250, 1100, 75, 37, 180e9, 7700},
    Row{"mi50", "AMD Instinct MI50", 0, "906", 0, 16, 26.5, 0, 13.3, 6.6, 16 * kGib, 1024},
    Row{"mi100", "AMD Instinct MI100", 0, "908", 0, 16, 184.6, 46.1, 23.1, 11.5, 32 * kGib, 1228.8},
    Row{"mi250x-gcd", "AMD Instinct MI250X, one die", 0, "90a", 0, 16, 191.5, 47.9, 23.9, 23.9,
        64 * kGib, 1638.4},
    Row{"mi300a", "AMD Instinct MI300A", 0, "940", 0, 32, 980.6, 490.3, 122.6, 61.3, 128 * kGib,
        5300},
    Row{"mi300x", "AMD Instinct MI300X", 0, "942", 0, 32, 1307.4, 653.7, 163.4, 81.7, 192 * kGib,
        5300},
};

// From the PCI ID repository (pci-ids.ucw.cz).
struct PciId {
  std::string_view vendor;
  std::string_view device;
  std::string_view name;
};
constexpr std::array kPciIds = {
    PciId{"0x10de", "0x15f9", "p100"},       PciId{"0x10de", "0x1db1", "v100-16g"},
    PciId{"0x10de", "0x1db4", "v100-16g"},   PciId{"0x10de", "0x1db5", "v100-32g"},
    PciId{"0x10de", "0x1db6", "v100-32g"},   PciId{"0x10de", "0x1eb8", "t4"},
    PciId{"0x10de", "0x20b0", "a100-40g"},   PciId{"0x10de", "0x20f1", "a100-40g"},
    PciId{"0x10de", "0x20b2", "a100-80g"},   PciId{"0x10de", "0x20b5", "a100-80g"},
    PciId{"0x10de", "0x20b7", "a30"},        PciId{"0x10de", "0x2204", "rtx3090"},
    PciId{"0x10de", "0x2237", "a10g"},       PciId{"0x10de", "0x2684", "rtx4090"},
    PciId{"0x10de", "0x2330", "h100"},       PciId{"0x10de", "0x2335", "h200"},
    PciId{"0x10de", "0x2901", "b200"},       PciId{"0x1002", "0x66a1", "mi50"},
    PciId{"0x1002", "0x738c", "mi100"},      PciId{"0x1002", "0x7408", "mi250x-gcd"},
    PciId{"0x1002", "0x740c", "mi250x-gcd"}, PciId{"0x1002", "0x74a0", "mi300a"},
    PciId{"0x1002", "0x74a1", "mi300x"},
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
    ModelName{"A10G", "a10g"},
    ModelName{"Tesla T4", "t4"},
    ModelName{"MI300X", "mi300x"},
    ModelName{"MI300A", "mi300a"},
    ModelName{"MI250X", "mi250x-gcd"},
    ModelName{"MI100", "mi100"},
    ModelName{"MI50", "mi50"},
};

// Parts of what people call them, "NVIDIA A100 GPU", in small letters; the first that is in one
// counts. Of several with one name the first was sold.
constexpr std::array kSpokenNames = {
    ModelName{"gb300", "gb300"},      ModelName{"gb200", "gb200"},   ModelName{"gh200", "gh200"},
    ModelName{"b300", "b300"},        ModelName{"b200", "b200"},     ModelName{"h100", "h100"},
    ModelName{"h200", "h200"},        ModelName{"a100", "a100-40g"}, ModelName{"v100", "v100-16g"},
    ModelName{"p100", "p100"},        ModelName{"mi300x", "mi300x"}, ModelName{"mi300a", "mi300a"},
    ModelName{"mi250", "mi250x-gcd"}, ModelName{"mi100", "mi100"},
};

const Row* FindRow(std::string_view name) {
  for (const Row& row : kRows)
    if (row.name == name) return &row;
  return nullptr;
}

GpuKind KindOf(const Row& row) {
  return {.device = row.name,
          .sm = row.sm,
          .gcn = row.gcn,
          .nvlinks = row.nvlinks,
          .gigatransfers = row.gigatransfers,
          .is_geforce = std::string_view(row.name).starts_with("rtx")};
}

std::string Lower(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

}  // namespace

std::optional<GpuKind> FindGpuKind(const std::string& vendor, const std::string& device,
                                   uint32_t sm, const std::string& gcn) {
  for (const PciId& id : kPciIds)
    if (id.vendor == Lower(vendor) && id.device == Lower(device)) return KindOf(*FindRow(id.name));
  std::string architecture = Lower(gcn);
  if (architecture.starts_with("gfx")) architecture.erase(0, 3);
  architecture = architecture.substr(0, architecture.find(':'));
  if (architecture == "910") architecture = "90a";
  for (const Row& row : kRows) {
    const bool is_amd = row.sm == 0;
    // AMD's files have an "sm" too, which says nothing.
    if (is_amd ? row.gcn == architecture : architecture.empty() && row.sm == sm) return KindOf(row);
  }
  return std::nullopt;
}

std::optional<GpuKind> FindGpuKindOfModel(std::string_view model) {
  for (const ModelName& known : kModelNames)
    if (model.find(known.part) != std::string_view::npos) return GpuKindOf(std::string(known.name));
  return std::nullopt;
}

std::optional<GpuKind> FindGpuKindInText(std::string_view text) {
  for (const Row& row : kRows)
    if (text == row.name) return KindOf(row);
  for (const DeviceSpec& known : KnownDevices())
    if (text == known.name) return GpuKindOf(known.name);
  if (auto kind = FindGpuKindOfModel(text)) return kind;
  const std::string lower = Lower(std::string(text));
  for (const ModelName& known : kSpokenNames) {
    if (lower.find(known.part) != std::string::npos) return GpuKindOf(std::string(known.name));
  }
  return std::nullopt;
}

GpuKind GpuKindOf(const std::string& device) {
  if (const Row* row = FindRow(device)) return KindOf(*row);
  if (IsKnownDevice(device)) {
    GpuKind kind = KindOf(*FindRow(kAssumedDevice));
    kind.device = device;
    return kind;
  }
  std::vector<std::string> names;
  for (const DeviceSpec& known : KnownDevices()) names.push_back(known.name);
  for (const Row& row : kRows)
    if (!IsKnownDevice(row.name)) names.emplace_back(row.name);
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
  const Row* const row = FindRow(kind.device);
  CHECK(row != nullptr);
  DeviceSpec spec;
  spec.name = row->name;
  spec.description = row->description;
  spec.compute_capability = row->sm;
  spec.matrix_peak_16 = FlopsPerSecond(row->matrix_16 * 1e12);
  spec.matrix_peak_32 = FlopsPerSecond(row->matrix_32 * 1e12);
  spec.vector_peak_32 = FlopsPerSecond(row->vector_32 * 1e12);
  spec.vector_peak_64 = FlopsPerSecond(row->vector_64 * 1e12);
  spec.memory = Bytes(row->memory);
  spec.memory_bandwidth = BytesPerSecond(row->memory_bandwidth * 1e9);
  const DeviceSpec& model = FindDevice(kAssumedDevice);
  spec.memory_efficiency = model.memory_efficiency;
  spec.gemm_efficiency = model.gemm_efficiency;
  spec.attention_forward_efficiency = model.attention_forward_efficiency;
  spec.attention_backward_efficiency = model.attention_backward_efficiency;
  spec.launch_overhead = model.launch_overhead;
  const std::string assumed = fmt::format("assumed: as {}", model.name);
  spec.sources = {{"attention_backward_efficiency", assumed},
                  {"attention_forward_efficiency", assumed},
                  {"gemm_efficiency", assumed},
                  {"launch_overhead", assumed},
                  {"memory_efficiency", assumed},
                  {"peaks and memory", "data sheet"}};
  return spec;
}

}  // namespace rehearse
