// NVIDIA's GPUs before and after the A100: rooflines.
#include "topology/devices/device_family.h"
#include "topology/devices/device_rows.h"

namespace rehearse {
namespace {

constexpr const char* kMamf =
    "stas00/ml-engineering, maximum achievable matmul FLOPS in bf16 (best shape): ";

}  // namespace

// The V100 has no bf16 and no tf32: 16-bit peaks are fp16's. The P100 has no matrix units: twice
// its fp32 rate.
std::vector<DeviceSpec> VoltaAndOlder() {
  const char* sheet = "NVIDIA Tesla V100 data sheet, SXM2";
  const char* gemm =
      "Markidis et al. 2018 (arXiv 1803.04014): cuBLAS 83 of 112.7 TFLOP/s, fp16 with fp32 "
      "accumulation";
  return {Roofline({"v100-16g", "NVIDIA V100 SXM2 16 GB", 125, 0, 15.7, 7.8, 16, 900, 0.736, sheet,
                    gemm, 70}),
          Roofline({"v100-32g", "NVIDIA V100 SXM2 32 GB", 125, 0, 15.7, 7.8, 32, 900, 0.736, sheet,
                    gemm, 70}),
          Roofline({"p100-16g", "NVIDIA P100 PCIe 16 GB", 18.7, 0, 9.3, 4.7, 16, 732, 0.85,
                    "NVIDIA Tesla P100 PCIe data sheet", "assumed", 60})};
}

std::vector<DeviceSpec> HopperAndBlackwell() {
  static const std::string h100 = std::string(kMamf) + "792.1 of 989 TFLOP/s";
  static const std::string h200 = h100 + " on the H100, the same die";
  static const std::string gh200 = std::string(kMamf) + "821.0 of 989 TFLOP/s";
  static const std::string b200 = std::string(kMamf) + "1745.0 of 2250 TFLOP/s";
  return {
      Roofline({"h100", "NVIDIA H100 SXM5 80 GB", 989.4, 494.7, 66.9, 33.5, 80, 3350, 0.801,
                "NVIDIA H100 data sheet, dense, SXM", h100.c_str(), 90}),
      Roofline({"h200", "NVIDIA H200 SXM 141 GB", 989.4, 494.7, 66.9, 33.5, 131.3, 4800, 0.801,
                "NVIDIA H200 data sheet, dense, SXM (141e9 bytes)", h200.c_str(), 90}),
      Roofline({"gh200", "NVIDIA GH200, Hopper with 96 GB HBM3", 989.4, 494.7, 66.9, 33.5, 89.4,
                4000, 0.830, "NVIDIA GH200 data sheet, dense (96e9 bytes)", gh200.c_str(), 90}),
      Roofline({"b200", "NVIDIA B200 180 GB", 2250, 1125, 75, 37, 167.6, 7700, 0.776,
                "NVIDIA Blackwell data sheet, HGX B200, dense (180e9 bytes)", b200.c_str(), 100}),
      Roofline({"b300", "NVIDIA B300 288 GB", 2250, 1125, 75, 1.3, 268.2, 8000, 0.776,
                "NVIDIA Blackwell Ultra data sheet, HGX B300, dense (288e9 bytes)",
                "assumed as the B200's", 103})};
}

}  // namespace rehearse
