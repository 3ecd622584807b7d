// AMD, Google, consumer cards, CPU cores: rooflines.
#include "topology/devices/device_family.h"
#include "topology/devices/device_rows.h"

namespace rehearse {

// A CPU core with two 256-bit FMA units at 3 GHz: 2 · 8 · 2 · 3e9 = 96 GFLOP/s in fp32, half of it
// in fp64. It has no matrix units: other types are counted as fp32. A kernel is a function call.
std::vector<DeviceSpec> OtherDevices() {
  DeviceSpec core = Roofline({"cpu-core", "one core of an x86 server CPU, AVX2 at 3 GHz", 0.096,
                              0.096, 0.096, 0.048, 4, 10, 0.8,
                              "two 256-bit FMA units at 3 GHz; 4 GiB and 10 GB/s a core assumed",
                              "assumed, to be calibrated"});
  core.launch_overhead = Seconds(0);
  return {
      Roofline({"mi250x-gcd", "AMD MI250X, one die", 191.5, 0, 23.9, 23.9, 64, 1638, 0.767,
                "AMD Instinct MI250X data sheet, half of it",
                "stas00/ml-engineering, maximum achievable matmul FLOPS in bf16: 147.0 of 191.5 "
                "TFLOP/s, 1 GCD",
                0, 0x90a}),
      // 192e9 and 288e9 bytes.
      Roofline({"mi300x", "AMD Instinct MI300X", 1307.4, 653.7, 163.4, 81.7, 178.8, 5300, 0.58,
                "AMD Instinct MI300X data sheet, dense",
                "stas00/ml-engineering, maximum achievable matmul FLOPS in bf16: 758.3 of 1307.4 "
                "TFLOP/s",
                0, 0x942}),
      Roofline({"mi355x", "AMD Instinct MI355X", 2516.6, 0, 157.3, 78.6, 268.2, 8000, 0.58,
                "AMD Instinct MI355X data sheet, dense", "assumed as the MI300X's", 0, 0x950}),
      Roofline({"tpu-v4", "Google TPU v4 chip", 275, 0, 4.3, 0, 32, 1200, 0.8,
                "Jouppi et al., ISCA 2023; Google Cloud TPU v4 documentation; fp32 rate assumed",
                "assumed"}),
      Roofline({"rtx4090", "NVIDIA GeForce RTX 4090 24 GB", 165.2, 82.6, 82.6, 1.29, 24, 1008, 0.85,
                "NVIDIA Ada GPU architecture white paper, dense, fp32 accumulation", "assumed",
                89}),
      core};
}

}  // namespace rehearse
