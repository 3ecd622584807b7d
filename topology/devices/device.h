// What a device (one GPU, one die, or a CPU rank) can do, and how long a piece of work takes on it.
//
// Compute model, in this order:
//   points     the user's own of exactly these sizes (topology/devices/device_points.h), launches
//              included;
//   measured   what a calibration says about the op's kernel (topology/devices/measured_costs.h),
//              launches included; everything below is for devices and kernels without.
//   GEMM       the measured efficiency of the exact shape and mode if the device has that point:
//              time = flops / (peak · efficiency · gemm_scale), but never less than
//              bytes / (memory_bandwidth · memory_efficiency), plus the launch overhead of each
//              kernel;
//              else the tiles and waves of its `gemm_model` (topology/devices/gemm_model.h), whose
//              tiles run gemm_scale times as fast and which has a launch of its own;
//              a device without one has a mean of all points of the mode, each weighted by
//              distance^-4 in (log m, log n, log k), which is smooth and stays between the points;
//              without points of the mode `gemm_efficiency`.
//   attention  by the blocks of its implementation (topology/devices/attention_model.h), whose
//              rates are gemm_scale times as high. Unfused: two batched products forward, four
//              backward, each as a GEMM, then the op's bytes at memory_bandwidth ·
//              memory_efficiency and its launches. Devices without an `attention_model`, and ops
//              without a core's attributes: flops / (peak · attention efficiency · gemm_scale),
//              bounded by memory, plus launches;
//   memory     bytes / (memory_bandwidth · memory_efficiency), bounded by flops on the vector peak
//              where the device gives one, plus launches. Half of the bytes of a launch, what it
//              reads, come at cache_bandwidth where they are at most 0.7 of the cache, none from
//              1.05 of it on, in between a share: its operands are there from the kernel before.
//              Kernels with broadcast or strided operands (Compute::strided) take strided_element
//              for each of their elements where that is longer than for their bytes: PyTorch's
//              compute its place (aten/src/ATen/native/cuda/CUDALoops.cuh), which multiprocessors
//              bound;
//   host       bytes / (host_bandwidth · 0.46), what Adam reaches on CPUs (arXiv 2101.06840),
//              whatever communicates meanwhile.
// Assumptions: what was measured with 16-bit operands holds for other types as a share of their own
// peak, except for those of 8 and 4 bits, which have models of their own (gemm_model_8, and
// gemm_model_4 where 4 bits were measured, too); where there are points only, a batch of b GEMMs
// fills the device as one with b·m rows.
// Every figure of a preset names its source in `sources`. All functions are pure.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/quantity.h"
#include "sim/schedule/schedule.h"
#include "topology/devices/measured_costs.h"

namespace rehearse {

struct AttentionModel;  // topology/devices/attention_model.h
struct DevicePoints;    // topology/devices/device_points.h
struct GemmModel;       // topology/devices/gemm_model.h

// A measurement: GEMM m×n×k in a mode reached `efficiency` of the dtype's peak. The mode is that of
// row-major C = op(A)·op(B): kNT has A stored m×k and B stored n×k. (cuBLAS is column-major and
// swaps the operands: what its users call TN, both operands contiguous along k, is kNT here, and
// their NT is kTN.)
struct GemmPoint {
  GemmMode mode = GemmMode::kNN;
  uint64_t m = 0;
  uint64_t n = 0;
  uint64_t k = 0;
  double efficiency = 0;
};

// How products share a GPU's multiprocessors with collectives: a product whose result is cut into
// `blocks` tiles runs in ⌈blocks/multiprocessors⌉ waves alone, and in ⌈blocks/(multiprocessors −
// taken)⌉ while its device communicates. A persistent kernel launches a block for each
// multiprocessor, at most, and gives each its tiles beforehand: while some multiprocessors are
// taken, blocks wait for others to end, and it takes twice as long.
struct Waves {
  uint32_t multiprocessors = 1;
  uint32_t taken = 0;  // by communication; fewer than there are
  uint32_t tile_rows = 128;
  uint32_t tile_columns = 128;
  bool is_persistent = false;

  friend bool operator==(const Waves&, const Waves&) = default;
};

// What compute and communication cost each other on one device: while it communicates, a kernel of
// the kind runs at 1/(1 + slowdown); while it computes, its transfers do. The coefficients are
// measured, from 0, where none are known, to kMost.
struct Slowdown {
  static constexpr double kMost = 1000;

  double gemm = 0;  // in addition to waves
  double attention = 0;
  double memory = 0;
  double communication = 0;
  std::optional<Waves> waves = std::nullopt;  // of products

  bool Any() const {
    return gemm > 0 || attention > 0 || memory > 0 || communication > 0 || waves.has_value();
  }
  friend bool operator==(const Slowdown&, const Slowdown&) = default;
};

struct DeviceSpec {
  std::string name;                 // "a100-40g"
  std::string description;          // "NVIDIA A100 SXM4 40 GB"
  uint32_t compute_capability = 0;  // NVIDIA's, times ten: 80; 0 for other makers
  uint32_t gfx = 0;                 // AMD's architecture: 0x942; 0 for other makers
  FlopsPerSecond matrix_peak_16;    // bf16/fp16, dense
  FlopsPerSecond matrix_peak_8;     // fp8, dense
  FlopsPerSecond matrix_peak_4;     // fp4, dense
  FlopsPerSecond matrix_peak_32;    // tf32
  FlopsPerSecond vector_peak_32;    // fp32 outside the matrix units
  FlopsPerSecond vector_peak_64;
  Bytes memory;
  BytesPerSecond memory_bandwidth;  // nominal
  double memory_efficiency = 1;     // share of it that streaming kernels reach
  Bytes cache;                      // L2; 0: not given
  BytesPerSecond cache_bandwidth;   // what streaming kernels reach there
  Seconds strided_element;          // what a kernel that computes where each lies takes for one
  double gemm_efficiency = 1;       // used if there are neither points nor a model
  // Efficiencies of GEMM and attention were measured on a sibling device; here they are
  // this much higher.
  double gemm_scale = 1;
  double attention_forward_efficiency = 1;  // used only without a model
  double attention_backward_efficiency = 1;
  Seconds launch_overhead;  // per kernel
  // Watts: what the board may draw (0: nothing limits it), and what it draws besides products;
  // picojoules of an operation of products (topology/devices/board_power.h).
  double power = 0;
  double resting_power = 0;
  double energy_16 = 0;
  double energy_8 = 0;
  double energy_4 = 0;
  Slowdown slowdown;
  // > 0: the devices of a machine are processes that share so many cores, each at full speed while
  // no more of them are active than there are cores (a rank is active while it computes and while
  // it communicates).
  double host_cores = 0;
  // Its share of the bandwidth of its host's memory, nominal, while all devices of the machine use
  // that; 0: not given.
  BytesPerSecond host_bandwidth;
  std::vector<GemmPoint> gemm_points;
  std::shared_ptr<const GemmModel> gemm_model;    // null for none
  std::shared_ptr<const GemmModel> gemm_model_8;  // of 8 and 4 bits; null: like other products
  std::shared_ptr<const GemmModel> gemm_model_4;  // of 4 bits; null: like those of 8
  std::shared_ptr<const AttentionModel> attention_model;     // null for none
  std::shared_ptr<const DevicePoints> points;                // a user's own; null for none
  std::shared_ptr<const MeasuredKernels> measured;           // by a calibration; null for none
  std::vector<std::pair<std::string, std::string>> sources;  // figure -> where it comes from
};

// The slowdown of this op while its device communicates: for products (1 + gemm) · waves beside /
// waves alone − 1.
double SlowdownOf(const Slowdown& slowdown, const Compute& compute);

// The peak that utilisation of this dtype refers to. Throws Error when the device does not give it.
FlopsPerSecond PeakOf(const DeviceSpec& device, DType dtype);

bool IsGpu(const DeviceSpec& device);

// Efficiency of a GEMM by the device's points as a share of the peak, without gemm_scale and before
// the memory bound. It is in (0, 1]. CHECKs that no dimension is 0.
double GemmEfficiency(const DeviceSpec& device, const Gemm& gemm);

// Returns "" if the device can run this attention kernel; else says which it can run.
std::string WhyNot(const DeviceSpec& device, AttentionKernel kernel);

// How long one Compute op lasts on an otherwise idle device; a part of a kernel its share of that.
// `backward` chooses the attention efficiency. The time is finite and not negative; throws Error
// when the spec lacks a rate that the op needs, or WhyNot objects to its attention core.
Seconds ComputeTime(const DeviceSpec& device, const Compute& compute, bool backward);

// The same in the steps of a training, in which the board's power sets the clock of products.
Seconds TimeInSteps(const DeviceSpec& device, const Compute& compute, bool backward);

// Devices that are known by name, sorted. FindDevice throws Error with "did you mean" for others.
const std::vector<DeviceSpec>& KnownDevices();
const DeviceSpec& FindDevice(const std::string& name);

}  // namespace rehearse
