#include "topology/devices/device.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/known_names.h"
#include "topology/devices/attention_model.h"
#include "topology/devices/board_power.h"
#include "topology/devices/device_points.h"
#include "topology/devices/device_rows.h"
#include "topology/devices/gemm_model.h"
#include "topology/devices/logarithm.h"
#include "topology/devices/narrow_products.h"

namespace rehearse {
namespace {

Seconds MemoryTime(const DeviceSpec& device, Bytes bytes) {
  if (bytes == Bytes(0)) return Seconds(0);
  if (!(device.memory_bandwidth > BytesPerSecond(0)))
    throw Error(fmt::format("device \"{}\" gives no memory_bandwidth", device.name));
  return bytes / (device.memory_bandwidth * device.memory_efficiency);
}

// How much longer than by memory alone kernels with broadcast or strided operands take.
Seconds StridedTime(const DeviceSpec& device, const Compute& compute) {
  if (compute.strided == 0) return Seconds(0);
  return std::max(
      device.strided_element * compute.strided - MemoryTime(device, compute.strided_bytes),
      Seconds(0));
}

// The time of element-wise kernels that memory bounds.
Seconds StreamingTime(const DeviceSpec& device, const Compute& compute) {
  const Seconds time = MemoryTime(device, compute.bytes);
  if (!(device.cache > Bytes(0)) || compute.kernels == 0) return time;
  constexpr double kKept = 0.7;   // with this much of the cache, everything is still there
  constexpr double kLost = 1.05;  // with this much, nothing is
  const double filled = compute.bytes / compute.kernels / device.cache;
  const double share = std::clamp((kLost - filled) / (kLost - kKept), 0.0, 1.0) / 2;
  return (1 - share) * time + share * (compute.bytes / device.cache_bandwidth);
}

Seconds MatrixTime(const DeviceSpec& device, const Compute& compute, double efficiency) {
  return compute.flops / (PeakOf(device, compute.dtype) * (efficiency * device.gemm_scale));
}

bool IsOf(const GemmPoint& point, const Gemm& gemm) {
  return point.mode == gemm.mode && point.m == gemm.m * gemm.batch && point.n == gemm.n &&
         point.k == gemm.k;
}

bool HasPoint(const DeviceSpec& device, const Gemm& gemm) {
  return std::any_of(device.gemm_points.begin(), device.gemm_points.end(),
                     [&](const GemmPoint& point) { return IsOf(point, gemm); });
}

uint64_t CeilDivide(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

// How many times as long a product takes on the multiprocessors that communication leaves.
double WavesBeside(const Waves& waves, const Gemm& gemm) {
  const uint64_t blocks =
      CeilDivide(gemm.m, waves.tile_rows) * CeilDivide(gemm.n, waves.tile_columns) * gemm.batch;
  const uint32_t left = waves.multiprocessors - waves.taken;
  if (waves.is_persistent)
    return static_cast<double>(CeilDivide(std::min<uint64_t>(blocks, waves.multiprocessors), left));
  const auto alone = static_cast<double>(CeilDivide(blocks, waves.multiprocessors));
  return static_cast<double>(CeilDivide(blocks, left)) / alone;
}

bool IsNarrow(DType dtype) { return dtype == DType::kFp8 || dtype == DType::kFp4; }

const GemmModel* ModelOf(const DeviceSpec& device, DType dtype) {
  if (dtype == DType::kFp4 && device.gemm_model_4) return device.gemm_model_4.get();
  return IsNarrow(dtype) && device.gemm_model_8 ? device.gemm_model_8.get()
                                                : device.gemm_model.get();
}

// The time by tiles and waves or, for devices without that model, by the efficiency.
Seconds GemmTime(const DeviceSpec& device, const Gemm& gemm, DType dtype, Bytes bytes) {
  if (const GemmModel* const model = ModelOf(device, dtype))
    return TimeOf(*model, gemm, SizeOf(dtype), bytes, PeakOf(device, dtype) * device.gemm_scale,
                  device.memory_bandwidth);
  const Seconds arithmetic =
      FlopsOf(gemm) / (PeakOf(device, dtype) * (GemmEfficiency(device, gemm) * device.gemm_scale));
  return std::max(arithmetic, MemoryTime(device, bytes)) + device.launch_overhead;
}

// Q·Kᵀ and P·V, and the gradients of both operands of each. A mask saves nothing.
Seconds UnfusedTime(const DeviceSpec& device, const Compute& compute, const AttentionShape& shape,
                    bool backward) {
  const auto whole = [](double size) {
    return static_cast<uint64_t>(std::max(1.0, std::round(size)));
  };
  const uint64_t s = whole(shape.sequence);
  const uint64_t d = whole(shape.head_size);
  const auto heads = static_cast<uint32_t>(whole(shape.sequences_times_heads));
  const Gemm scores = {s, s, d, GemmMode::kNT, heads};
  const Gemm values = {s, d, s, GemmMode::kNN, heads};
  const auto product = [&](const Gemm& gemm) {
    return GemmTime(device, gemm, compute.dtype, BytesOf(gemm, compute.dtype));
  };
  const Seconds products = backward ? 2 * product(values) + product(scores) + product(values)
                                    : product(scores) + product(values);
  return products + MemoryTime(device, compute.bytes) +
         device.launch_overhead * static_cast<double>(compute.kernels);
}

// Returns nothing if the single efficiency applies.
std::optional<Seconds> AttentionTime(const DeviceSpec& device, const Compute& compute,
                                     bool backward) {
  const bool unfused = compute.attention == AttentionKernel::kUnfused;
  std::optional<AttentionShape> shape = ShapeOf(compute, backward);
  if (!shape) return std::nullopt;
  if (unfused) {
    // Backward has twice the products of forward, with and without a mask.
    shape->sequences_times_heads = compute.flops.value() / ((backward ? 8 : 4) * shape->sequence *
                                                            shape->sequence * shape->head_size);
    if (!device.gemm_model) return std::nullopt;
    return UnfusedTime(device, compute, *shape, backward);
  }
  if (!device.attention_model) return std::nullopt;
  const AttentionModel& model = *device.attention_model;
  const Seconds cores = TimeOfCores(model, *FindRates(model, compute.attention), *shape, backward,
                                    PeakOf(device, compute.dtype) * device.gemm_scale);
  return std::max(cores, MemoryTime(device, compute.bytes)) +
         model.launch * static_cast<double>(compute.kernels);
}

// Of a state-space layer: its states and what becomes of them.
bool IsScan(Kernel kernel) {
  return kernel == Kernel::kStateChunks || kernel == Kernel::kStateScan ||
         kernel == Kernel::kStateScanBackward;
}

// state-spaces/mamba's kernels in Triton, which GPUs run, reach this share of the bandwidth that
// streams reach. Read off four steps of Nemotron 3 Nano on H100 (Megatron-Bridge's performance
// summary, 26.02 to 26.06, fp8); what others need lies between 0.16 and 0.26
// (topology/OPERATORS.md).
constexpr double kScanShare = 0.24;

// What Adam reaches of the memory bandwidth of a host: 1, 2, 4, 8 and 10 billion parameters take
// DeepSpeed's CPU-Adam 0.22, 0.51, 1.03, 2.41 and 2.57 s on a DGX-2 (Ren et al. 2021, arXiv
// 2101.06840, table 4), whose two Xeons have 6 channels of DDR4-2666 each, 256 GB/s, for 30 bytes
// each: parameters and moments in fp32 read and written, gradients read, a copy in 16 bits written.
// These are 0.53, 0.46, 0.46, 0.39 and 0.46. The table is quoted from memory, to be checked against
// the paper; no other measurement went into it.
constexpr double kHostShare = 0.46;

// A rank on a CPU is its own host.
Seconds HostTime(const DeviceSpec& device, Bytes bytes) {
  if (device.host_bandwidth > BytesPerSecond(0))
    return bytes / (device.host_bandwidth * kHostShare);
  if (!IsGpu(device)) return MemoryTime(device, bytes);
  throw Error(fmt::format(
      "device \"{}\" does not say what it has of its host's memory bandwidth, which the host's "
      "work "
      "needs; expected \"memory_bandwidth\" of the machine's host, or \"host_bandwidth\" of the "
      "device",
      device.name));
}

uint32_t PartsOf(const Compute& compute) {
  return compute.kind == ComputeKind::kGemm ? compute.row_parts * compute.column_parts : 1;
}

// The kernel of which this is a part.
Compute KernelOf(const Compute& part) {
  const double parts = PartsOf(part);
  Compute kernel = part;
  kernel.gemm.m *= part.row_parts;
  kernel.gemm.n *= part.column_parts;
  kernel.flops = parts * part.flops;
  kernel.bytes = parts * part.bytes;
  kernel.kernels = 1;
  kernel.row_parts = kernel.column_parts = 1;
  return kernel;
}

FlopsPerSecond VectorPeak(const DeviceSpec& device, DType dtype) {
  return dtype == DType::kFp64 ? device.vector_peak_64 : device.vector_peak_32;
}

}  // namespace

double SlowdownOf(const Slowdown& slowdown, const Compute& compute) {
  switch (compute.kind) {
    case ComputeKind::kGemm:
      if (!slowdown.waves || FlopsOf(compute.gemm) == Flops(0)) return slowdown.gemm;
      return (1 + slowdown.gemm) * WavesBeside(*slowdown.waves, compute.gemm) - 1;
    case ComputeKind::kAttention:
      return slowdown.attention;
    case ComputeKind::kMemory:
      return slowdown.memory;
    case ComputeKind::kFixed:
    case ComputeKind::kHost:
      return 0;
  }
  CHECK(false);
}

FlopsPerSecond PeakOf(const DeviceSpec& device, DType dtype) {
  const auto given = [&](FlopsPerSecond peak, const char* key) {
    if (!(peak > FlopsPerSecond(0)))
      throw Error(fmt::format("device \"{}\" gives no {}, which {} work needs", device.name, key,
                              Name(dtype)));
    return peak;
  };
  switch (dtype) {
    case DType::kBf16:
    case DType::kFp16:
      return given(device.matrix_peak_16, "matrix_peak_16");
    case DType::kTf32:
      return given(device.matrix_peak_32, "matrix_peak_32");
    case DType::kFp8:
      return given(device.matrix_peak_8, "matrix_peak_8");
    case DType::kFp4:
      return given(device.matrix_peak_4, "matrix_peak_4");
    case DType::kFp32:
      return given(device.vector_peak_32, "vector_peak_32");
    case DType::kFp64:
      return given(device.vector_peak_64, "vector_peak_64");
  }
  CHECK(false);
}

bool IsGpu(const DeviceSpec& device) { return device.compute_capability > 0 || device.gfx > 0; }

double GemmEfficiency(const DeviceSpec& device, const Gemm& gemm) {
  const uint64_t rows = gemm.m * gemm.batch;
  const double log_m = Log(rows);
  const double log_n = Log(gemm.n);
  const double log_k = Log(gemm.k);
  double weights = 0;
  double weighted = 0;
  for (const GemmPoint& point : device.gemm_points) {
    if (point.mode != gemm.mode) continue;
    if (point.m == rows && point.n == gemm.n && point.k == gemm.k) return point.efficiency;
    const double squared_distance =
        Square(log_m - Log(point.m)) + Square(log_n - Log(point.n)) + Square(log_k - Log(point.k));
    const double weight = 1 / Square(squared_distance);
    weights += weight;
    weighted += weight * point.efficiency;
  }
  return weights > 0 ? weighted / weights : device.gemm_efficiency;
}

std::string WhyNot(const DeviceSpec& device, AttentionKernel kernel) {
  if (kernel == AttentionKernel::kFused || kernel == AttentionKernel::kUnfused) return "";
  const AttentionModel* const model = device.attention_model.get();
  if (model != nullptr && FindRates(*model, kernel) != nullptr) return "";
  std::string names = "\"fused\", \"unfused\"";
  if (model != nullptr)
    for (const AttentionRates& rates : model->kernels)
      names += fmt::format(", \"{}\"", Name(rates.kernel));
  return fmt::format("device \"{}\" has no attention \"{}\"; it can have {}", device.name,
                     Name(kernel), names);
}

Seconds ComputeTime(const DeviceSpec& device, const Compute& compute, bool backward) {
  CHECK(std::isfinite(compute.flops.value()) && std::isfinite(compute.bytes.value()));
  CHECK_GE(compute.flops.value(), 0.0);
  CHECK_GE(compute.bytes.value(), 0.0);
  if (compute.kind == ComputeKind::kFixed) return compute.duration;
  if (const uint32_t parts = PartsOf(compute); parts > 1)
    return ComputeTime(device, KernelOf(compute), backward) / parts;
  if (compute.tuned) {
    Compute turned = compute;
    turned.gemm.mode = *compute.tuned;
    turned.tuned.reset();
    return ComputeTime(device, turned, backward);
  }
  if (device.points) {
    if (const auto time = TimeOf(*device.points, compute, backward)) return *time;
  }
  if (device.measured) {
    if (const auto measured = TimeOf(*device.measured, compute)) return measured->time;
  }
  if (compute.kind == ComputeKind::kHost) return HostTime(device, compute.bytes);
  if (IsScan(compute.kernel) && IsGpu(device)) {
    Compute products = compute;
    products.kernel = Kernel::kNone;
    products.kernels = 0;
    return std::max(ComputeTime(device, products, backward),
                    MemoryTime(device, compute.bytes) / kScanShare) +
           device.launch_overhead * static_cast<double>(compute.kernels);
  }
  const GemmModel* const model = ModelOf(device, compute.dtype);
  if (compute.kind == ComputeKind::kGemm && compute.flops > Flops(0) && model != nullptr &&
      (IsNarrow(compute.dtype) || !HasPoint(device, compute.gemm))) {
    const Seconds launches = model->launch * (static_cast<double>(compute.kernels) - 1);
    const Seconds duration =
        GemmTime(device, compute.gemm, compute.dtype, compute.bytes) + launches;
    CHECK(std::isfinite(duration.value()));
    return std::max(duration, Seconds(0));
  }
  if (compute.kind == ComputeKind::kAttention && compute.flops > Flops(0)) {
    if (const std::string why = WhyNot(device, compute.attention); !why.empty()) throw Error(why);
    if (const auto duration = AttentionTime(device, compute, backward)) {
      CHECK(std::isfinite(duration->value()));
      return *duration;
    }
  }
  Seconds arithmetic;
  if (compute.flops > Flops(0)) {
    switch (compute.kind) {
      case ComputeKind::kGemm:
        arithmetic = MatrixTime(device, compute, GemmEfficiency(device, compute.gemm));
        break;
      case ComputeKind::kAttention:
        arithmetic = MatrixTime(
            device, compute,
            backward ? device.attention_backward_efficiency : device.attention_forward_efficiency);
        break;
      case ComputeKind::kMemory:
        if (VectorPeak(device, compute.dtype) > FlopsPerSecond(0))
          arithmetic = compute.flops / VectorPeak(device, compute.dtype);
        break;
      case ComputeKind::kFixed:
      case ComputeKind::kHost:
        break;
    }
  }
  const Seconds memory = compute.kind == ComputeKind::kMemory
                             ? StreamingTime(device, compute) + StridedTime(device, compute)
                             : MemoryTime(device, compute.bytes);
  const Seconds duration =
      std::max(arithmetic, memory) + device.launch_overhead * static_cast<double>(compute.kernels);
  CHECK(std::isfinite(duration.value()));
  return duration;
}

Seconds TimeInSteps(const DeviceSpec& device, const Compute& compute, bool backward) {
  if (const uint32_t parts = PartsOf(compute); parts > 1)
    return TimeInSteps(device, KernelOf(compute), backward) / parts;
  const Seconds alone = ComputeTime(device, compute, backward);
  if (device.points || device.measured || compute.flops == Flops(0)) return alone;
  if (compute.kind == ComputeKind::kGemm)
    return alone * StretchOfProduct(device, compute.dtype, compute.flops, alone);
  if (compute.kind == ComputeKind::kAttention) return alone * StretchOfAttention(device);
  return alone;
}

const std::vector<DeviceSpec>& KnownDevices() {
  static const std::vector<DeviceSpec> devices = [] {
    std::vector<DeviceSpec> rows = {A100Sxm40(), A100Sxm80(), A100Custom64(), A800Sxm80()};
    for (auto* family : {VoltaAndOlder, Hoppers, BlackwellsAndAdas, OtherDevices})
      for (DeviceSpec& row : family()) rows.push_back(std::move(row));
    for (DeviceSpec& row : rows) {
      AddNarrowProducts(&row);
      AddPower(&row);
    }
    std::sort(rows.begin(), rows.end(),
              [](const DeviceSpec& a, const DeviceSpec& b) { return a.name < b.name; });
    return rows;
  }();
  return devices;
}

const DeviceSpec& FindDevice(const std::string& name) {
  std::vector<std::string> names;
  for (const DeviceSpec& device : KnownDevices()) {
    if (device.name == name) return device;
    names.push_back(device.name);
  }
  throw Error(fmt::format("there is no device \"{}\"{}", name,
                          KnownNames(name, names, "rehearse list devices")));
}

}  // namespace rehearse
