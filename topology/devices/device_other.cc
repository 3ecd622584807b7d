// AMD, Google, CPU cores: rooflines, and on AMD's GPUs tiles and waves.
#include <utility>

#include "topology/devices/device_family.h"
#include "topology/devices/device_rows.h"

namespace rehearse {
namespace {

// hipBLASLt's tiles on so many compute units. OpenXLA's small products do not separate the first
// waves from many.
GemmModel CdnaTiles(uint32_t compute_units, double share) {
  return {.library = GemmLibrary::kCdna,
          .multiprocessors = compute_units,
          .few_waves = share,
          .many_waves = share,
          .launch = Seconds(4e-6),
          .cache = Bytes(0)};
}

constexpr const char* kMi300Tiles =
    "fitted to 93 products of up to 4,096 (openxla/xla, ROCm/xla ea2c45f2cacc, gfx942 and gfx950), "
    "the rate to gemm_efficiency's source";

DeviceSpec Cdna3(const RooflineFigures& figures, uint32_t compute_units, double share) {
  DeviceSpec device = WithTiles(Roofline(figures), CdnaTiles(compute_units, share), kMi300Tiles);
  return WithAttention(
      std::move(device), CdnaAttention(compute_units, share),
      "FlashAttention-2 as large a part of the best product's rate as on the A100: "
      "assumed");
}

// Its rate is that of the best product of 16 bits that ROCm's PyTorch multiplies on one die of LUMI
// (torch.matmul, hipBLASLt, ROCm 7.0, fp16, NN: huizhg/gpu-perf-mi250x 4dcebf5d and its author's
// notes): 115.3 TFLOP/s at 3,840³. The tiles are CDNA 3's. A copy reaches 1.249 TB/s.
DeviceSpec Mi250xDie() {
  constexpr double kShare = 115.3 / 191.5;
  constexpr const char* kShapes =
      "huizhg/gpu-perf-mi250x 4dcebf5d, torch.matmul on LUMI: the best of 19 shapes in fp16, 115.3 "
      "of 191.5 TFLOP/s";
  DeviceSpec device =
      WithTiles(Roofline({"mi250x-gcd", "AMD MI250X, one die", 191.5, 0, 23.9, 23.9, 64, 1638,
                          kShare, "AMD Instinct MI250X data sheet, half of it", kShapes, 0, 0x90a}),
                CdnaTiles(110, kShare), "the MI300X's tiles, the rate by gemm_efficiency's source");
  device = WithMemory(
      std::move(device),
      {1.249 / 1.638, 0, 0, "huizhg/gpu-perf-mi250x 4dcebf5d, copy of 512 MiB: 1.249 TB/s", ""});
  return WithAttention(
      std::move(device), CdnaAttention(110, kShare),
      "FlashAttention-2 as large a part of the best product's rate as on the A100: "
      "assumed");
}

}  // namespace

// A CPU core with two 256-bit FMA units at 3 GHz: 2 · 8 · 2 · 3e9 = 96 GFLOP/s in fp32, half of it
// in fp64. It has no matrix units: other types are counted as fp32. A kernel is a function call.
std::vector<DeviceSpec> OtherDevices() {
  DeviceSpec core = Roofline({"cpu-core", "one core of an x86 server CPU, AVX2 at 3 GHz", 0.096,
                              0.096, 0.096, 0.048, 4, 10, 0.8,
                              "two 256-bit FMA units at 3 GHz; 4 GiB and 10 GB/s a core assumed",
                              "assumed, to be calibrated"});
  core.launch_overhead = Seconds(0);
  return {
      Mi250xDie(),
      // 192e9, 256e9 and 288e9 bytes.
      Cdna3({"mi300x", "AMD Instinct MI300X", 1307.4, 653.7, 163.4, 81.7, 178.8, 5300, 0.511,
             "AMD Instinct MI300X data sheet, dense",
             "stas00/ml-engineering 744d01e18, maximum achievable matmul FLOPS in bf16: 668.4 "
             "of 1307.4 TFLOP/s (ROCm 6.3)",
             0, 0x942},
            304, 0.511),
      Cdna3({"mi325x", "AMD Instinct MI325X", 1307.4, 653.7, 163.4, 81.7, 238.4, 6000, 0.6,
             "AMD Instinct MI325X data sheet, dense",
             "stas00/ml-engineering 744d01e18, maximum achievable matmul FLOPS in bf16: 784.9 "
             "of 1307.4 TFLOP/s (ROCm 6.2, 1000 W)",
             0, 0x942},
            304, 0.6),
      Cdna3({"mi355x", "AMD Instinct MI355X", 2516.6, 0, 157.3, 78.6, 268.2, 8000, 0.622,
             "AMD Instinct MI355X data sheet, dense",
             "stas00/ml-engineering 744d01e18, maximum achievable matmul FLOPS in bf16: 1565 "
             "of 2516.6 TFLOP/s (ROCm 7.0)",
             0, 0x950},
            256, 0.622),
      Roofline({"tpu-v4", "Google TPU v4 chip", 275, 0, 4.3, 0, 32, 1200, 0.8,
                "Jouppi et al., ISCA 2023; Google Cloud TPU v4 documentation; fp32 rate assumed",
                "assumed"}),
      Roofline({"tpu-v5e", "Google TPU v5e chip", 197, 0, 3.1, 0, 16, 819, 0.8,
                "Google Cloud TPU v5e documentation; fp32 rate assumed", "assumed"}),
      Roofline({"tpu-v5p", "Google TPU v5p chip", 459, 0, 7.2, 0, 95, 2765, 0.8,
                "Google Cloud TPU v5p documentation; fp32 rate assumed", "assumed"}),
      core};
}

}  // namespace rehearse
