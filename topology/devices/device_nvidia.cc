// NVIDIA's GPUs except the A100: rooflines, and tiles and waves on them.
#include <utility>

#include "topology/devices/device_family.h"
#include "topology/devices/device_rows.h"

namespace rehearse {
namespace {

constexpr const char* kMamf =
    "stas00/ml-engineering, maximum achievable matmul FLOPS in bf16 (best shape): ";
// topology/OPERATORS.md says what was fitted, and how far off the other shapes are.
constexpr const char* kShapes =
    "fitted to 330 bf16 shapes of this device (ai-dynamo/aiconfigurator 095f58a51c4c)";

GemmModel Tiles(GemmLibrary library, uint32_t multiprocessors, double few_waves, double many_waves,
                double launch_microseconds) {
  return {.library = library,
          .multiprocessors = multiprocessors,
          .few_waves = few_waves,
          .many_waves = many_waves,
          .launch = Seconds(launch_microseconds * 1e-6),
          .cache = Bytes(0)};
}

// te42kyfo/gpu-benches: streams of a, b and a·b + c (triad), and one small kernel repeated.
constexpr MemoryFigures kHopperMemory = {
    0.898, 50e6, 6.0e12,
    "te42kyfo/gpu-benches cdcc732d, cuda-stream, h100_pcie: triad 1832 of 2039 GB/s",
    "te42kyfo/gpu-benches c35574e6, gpu-small-kernels, h200: 33 MB at 6.0 TB/s besides the launch"};
constexpr MemoryFigures kBlackwellMemory = {
    0.872, 126e6, 9e12, "NVIDIA/cccl #7391, add of 100 MB to 1.6 GB on a B200: 6.97 of 8 TB/s",
    "NVIDIA/cccl #7391, add of 6 and 100 MB on a B200, batch times: 10 and 7.6 TB/s"};
constexpr MemoryFigures kAdaMemory = {
    0.9, 0, 0, "te42kyfo/gpu-benches 0a45416b, gpu-stream, l40: triad 770 to 803 of 864 GB/s", ""};
constexpr MemoryFigures kVoltaMemory = {
    0.92, 0, 0, "te42kyfo/gpu-benches 01d2bb53, cuda-stream, V100: triad 829 of 900 GB/s", ""};

DeviceSpec RooflineOf(const MemoryFigures& memory, const RooflineFigures& figures) {
  return WithMemory(Roofline(figures), memory);
}

DeviceSpec Hopper(const RooflineFigures& figures, const GemmModel& tiles, const char* source) {
  DeviceSpec device =
      WithStrided(WithMemory(WithTiles(Roofline(figures), tiles, source), kHopperMemory),
                  Generation::kHopper, tiles.multiprocessors);
  return WithAttention(std::move(device), HopperAttention(tiles.multiprocessors),
                       figures.name == std::string("h100") ? "" : "the H100's rates: assumed");
}

// Rates of cuDNN's forward pass with heads of 64 and 128.
DeviceSpec Blackwell(const RooflineFigures& figures, const GemmModel& tiles, const char* source,
                     double forward_64, double forward_128) {
  DeviceSpec device =
      WithStrided(WithMemory(WithTiles(Roofline(figures), tiles, source), kBlackwellMemory),
                  Generation::kBlackwell, tiles.multiprocessors);
  return WithAttention(std::move(device),
                       BlackwellAttention(tiles.multiprocessors, forward_64, forward_128));
}

// The H100's constants on a die with so many multiprocessors.
GemmModel HopperTiles(uint32_t multiprocessors) {
  return Tiles(GemmLibrary::kHopper, multiprocessors, 0.862, 0.732, 2.4);
}

}  // namespace

// The V100 has neither bf16 nor tf32, so its 16-bit peaks are fp16's. The P100 has no matrix units,
// so its fp16 peak is twice its fp32 rate.
std::vector<DeviceSpec> VoltaAndOlder() {
  const char* sheet = "NVIDIA Tesla V100 data sheet, SXM2";
  const char* gemm =
      "Markidis et al. 2018 (arXiv 1803.04014): cuBLAS 83 of 112.7 TFLOP/s, fp16 with fp32 "
      "accumulation";
  // 0.736 of the peak with many waves; the first ones are to these as on the A100.
  const GemmModel tiles = Tiles(GemmLibrary::kAmpere, 80, 0.84, 0.736, 0.5);
  const char* assumed =
      "the A100's tiles on 80 multiprocessors, at the rate that gemm_efficiency's source gives";
  const char* v100_attention = "xformers' kernels at the A100's share of the peak: assumed";
  return {WithAttention(
              WithTiles(RooflineOf(kVoltaMemory, {"v100-16g", "NVIDIA V100 SXM2 16 GB", 125, 0,
                                                  15.7, 7.8, 16, 900, 0.736, sheet, gemm, 70}),
                        tiles, assumed),
              VoltaAttention(80), v100_attention),
          WithAttention(
              WithTiles(RooflineOf(kVoltaMemory, {"v100-32g", "NVIDIA V100 SXM2 32 GB", 125, 0,
                                                  15.7, 7.8, 32, 900, 0.736, sheet, gemm, 70}),
                        tiles, assumed),
              VoltaAttention(80), v100_attention),
          Roofline({"p100-16g", "NVIDIA P100 PCIe 16 GB", 18.7, 0, 9.3, 4.7, 16, 732, 0.85,
                    "NVIDIA Tesla P100 PCIe data sheet", "assumed", 60})};
}

// Memory of those with more than 80 GB is what CUDA reports in all (pytorch/ao #4002 for the B200;
// PyTorch's messages out of memory for others: 93.1 GiB of the H100 NVL, 139.8 of the H200, 184.31
// of the GB200, 267.69 of the B300, 276.5 of the GB300), which is more than data sheets' decimal
// GB. nvidia-smi prints up to 0.9 GiB more. 95 GiB of parts of 96 GB: 97,871 MiB there.
std::vector<DeviceSpec> Hoppers() {
  static const std::string h100 = std::string(kMamf) + "792.1 of 989 TFLOP/s";
  static const std::string same = h100 + " on the H100, the same die";
  static const std::string gh200 = std::string(kMamf) + "821.0 of 989 TFLOP/s";
  const char* as_h100 = "the H100's constants on this device's multiprocessors: assumed";
  return {
      Hopper({"h100", "NVIDIA H100 SXM5 80 GB", 989.4, 494.7, 66.9, 33.5, 80, 3350, 0.801,
              "NVIDIA H100 data sheet, dense, SXM", h100.c_str(), 90},
             HopperTiles(132), kShapes),
      Hopper({"h100-pcie", "NVIDIA H100 PCIe 80 GB, 350 W", 756.4, 378.2, 51.2, 25.6, 80, 2039,
              0.801, "NVIDIA H100 PCIe product brief PB-11133, dense", same.c_str(), 90},
             HopperTiles(114), as_h100),
      // The data sheet's 1,671 and 3,341 TFLOP/s are with sparsity.
      Hopper({"h100-nvl", "NVIDIA H100 NVL 94 GB, 400 W", 835.5, 417.5, 60, 30, 93.1, 3900, 0.801,
              "NVIDIA H100 data sheet, dense, NVL", same.c_str(), 90},
             HopperTiles(132), as_h100),
      Hopper({"h800", "NVIDIA H800 SXM5 80 GB", 989.4, 494.7, 66.9, 1, 80, 3350, 0.801,
              "as the H100 SXM, with 1 TFLOP/s in fp64 and NVLinks of 400 GB/s (Lenovo "
              "Press LP1814; DeepSeek-V3, arXiv 2412.19437)",
              same.c_str(), 90},
             HopperTiles(132), as_h100),
      WithAttention(
          WithTiles(
              Roofline({"h20", "NVIDIA H20 96 GB", 148, 74, 44, 1, 95, 4000, 0.9,
                        "NVIDIA H20 data sheet, dense; 78 multiprocessors",
                        "assumed: far below its power limit", 90}),
              Tiles(GemmLibrary::kHopper, 78, 0.93, 0.93, 2.4),
              "the H100's tiles; 0.93 assumed: Dao-AILab/flash-attention #1310 has attention at "
              "129 of 148 TFLOP/s"),
          H20Attention()),
      Hopper({"h200", "NVIDIA H200 SXM 141 GB", 989.4, 494.7, 66.9, 33.5, 139.8, 4800, 0.801,
              "NVIDIA H200 data sheet, dense, SXM", same.c_str(), 90},
             Tiles(GemmLibrary::kHopper, 132, 0.842, 0.713, 2.1), kShapes),
      Hopper({"gh200", "NVIDIA GH200, Hopper with 96 GB HBM3", 989.4, 494.7, 66.9, 33.5, 95, 4000,
              0.830, "NVIDIA GH200 data sheet, dense", gh200.c_str(), 90},
             HopperTiles(132), as_h100)};
}

std::vector<DeviceSpec> BlackwellsAndAdas() {
  static const std::string b200 = std::string(kMamf) + "1745.0 of 2250 TFLOP/s";
  static const std::string b300 = std::string(kMamf) + "1769.0 of 2250 TFLOP/s";
  static const std::string gb200 = std::string(kMamf) + "1822.0 of 2500 TFLOP/s";
  GemmModel l40s = Tiles(GemmLibrary::kAda, 142, 0.824, 0.575, 0.2);
  l40s.cache = Bytes(96e6);
  GemmModel rtx4090 = Tiles(GemmLibrary::kAda, 128, 0.85, 0.85, 0.2);
  rtx4090.cache = Bytes(72e6);
  const GemmModel b200_tiles = Tiles(GemmLibrary::kBlackwell, 148, 0.707, 0.677, 2.4);
  const GemmModel gb200_tiles = Tiles(GemmLibrary::kBlackwell, 152, 0.705, 0.568, 2.4);
  return {
      Blackwell({"b200", "NVIDIA B200 180 GB", 2250, 1125, 75, 37, 178.3, 7700, 0.776,
                 "NVIDIA Blackwell data sheet, HGX B200, dense", b200.c_str(), 100},
                b200_tiles, kShapes, 0.37, 0.62),
      Blackwell({"b300", "NVIDIA B300 288 GB", 2250, 1125, 75, 1.3, 267.6, 8000, 0.786,
                 "NVIDIA Blackwell Ultra data sheet, HGX B300, dense", b300.c_str(), 103},
                Tiles(GemmLibrary::kBlackwell, 148, 0.766, 0.703, 2), kShapes, 0.5, 0.76),
      Blackwell({"gb200", "NVIDIA GB200, one Blackwell with 186 GB", 2500, 1250, 80, 40, 184.3,
                 8000, 0.729, "NVIDIA GB200 NVL72 data sheet, dense, a GPU", gb200.c_str(), 100},
                gb200_tiles, kShapes, 0.36, 0.6),
      // No rate in fp64 to speak of.
      Blackwell({"gb300", "NVIDIA GB300, one Blackwell Ultra with 279 GB", 2500, 1250, 80, 1.3,
                 276.5, 8000, 0.729, "NVIDIA GB300 NVL72 data sheet, dense, a GPU (20 TB on 72)",
                 "assumed as the GB200's", 103},
                Tiles(GemmLibrary::kBlackwell, 152, 0.766, 0.703, 2),
                "the B300's constants on this device's multiprocessors and peak: assumed", 0.5,
                0.76),
      // 48e9 bytes.
      WithAttention(
          WithTiles(RooflineOf(kAdaMemory, {"l40s", "NVIDIA L40S 48 GB", 362, 183, 91.6, 1.43, 44.7,
                                            864, 0.6, "NVIDIA L40S data sheet, dense",
                                            "as its gemm_model, many waves", 89}),
                    l40s, kShapes),
          AdaAttention(142)),
      WithAttention(
          WithTiles(RooflineOf(kAdaMemory,
                               {"rtx4090", "NVIDIA GeForce RTX 4090 24 GB", 165.2, 82.6, 82.6, 1.29,
                                24, 1008, 0.85,
                                "NVIDIA Ada GPU architecture white paper, dense, fp32 accumulation",
                                "assumed", 89}),
                    rtx4090, "the L40S' tiles on 128 multiprocessors, at an assumed 0.85"),
          AdaAttention(128), "assumed as the L40S'")};
}

}  // namespace rehearse
