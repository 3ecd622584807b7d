// NVIDIA A100 (GA100, 2020) in its SXM4 form.
#include <utility>

#include "topology/devices/device_family.h"
#include "topology/devices/device_rows.h"

namespace rehearse {
namespace {

constexpr double kGib = 1024.0 * 1024 * 1024;

// stas00/ml-engineering, MAMF: best of A100 SXM 267.9 TFLOP/s, of A100 PCIe 256.4 TFLOP/s.
constexpr double kSxmOverPcie = 267.9 / 256.4;

constexpr const char* kDataSheet = "NVIDIA A100 Tensor Core GPU data sheet, dense, SXM4";

DeviceSpec A100Sxm() {
  DeviceSpec device;
  device.compute_capability = 80;
  device.matrix_peak_16 = FlopsPerSecond(312e12);
  device.matrix_peak_32 = FlopsPerSecond(156e12);
  device.vector_peak_32 = FlopsPerSecond(19.5e12);
  device.vector_peak_64 = FlopsPerSecond(9.7e12);
  device.memory_efficiency = 0.88;
  device.cache = Bytes(40e6);
  device.cache_bandwidth = BytesPerSecond(3.7e12);
  // The points come from the PCIe card: the same die under a lower power limit.
  device.gemm_points = A100GemmPoints();
  for (GemmPoint& point : device.gemm_points) point.efficiency *= kSxmOverPcie;
  device.gemm_efficiency = 0.75;  // never used: products without a point have tiles
  // With all flops counted the sources' figures are 1.187 and 1.005; a causal mask leaves out half
  // of the work, and a Schedule counts only the half that is done.
  device.attention_forward_efficiency = 1.187 / 2 * kSxmOverPcie;
  device.attention_backward_efficiency = 1.005 / 2 * kSxmOverPcie;
  device.launch_overhead = Seconds(5.5e-6);
  device.sources = {
      {"matrix_peak_16", kDataSheet},
      {"matrix_peak_32", kDataSheet},
      {"vector_peak_32", kDataSheet},
      {"vector_peak_64", kDataSheet},
      {"memory_bandwidth", kDataSheet},
      {"memory_efficiency",
       "te42kyfo/gpu-benches, gpu-stream, a100_40: triad 1360 to 1375 of 1555 GB/s"},
      {"cache",
       "te42kyfo/gpu-benches 11f5daa3, gpu-small-kernels, a100_80_graph: 25 MB at 3.7 TB/s besides "
       "the launch"},
      {"gemm_points",
       "MooreThreads/SimuMax 4dcaae5, matmul measured on A100 PCIe, bf16, 61 layers in three "
       "modes; times 267.9/256.4 (stas00/ml-engineering, MAMF: best of A100 SXM over A100 PCIe)"},
      {"gemm_efficiency",
       "MooreThreads/SimuMax 4dcaae5, its figure for shapes that it did not measure"},
      {"gemm_scale", "1: nothing to scale"},
      {"attention_forward_efficiency",
       "MooreThreads/SimuMax 4dcaae5, sdp_fwd, sequence 4096, 64 heads of 128, A100 PCIe: 1.187 "
       "with the masked half counted; scaled as gemm_points"},
      {"attention_backward_efficiency", "MooreThreads/SimuMax 4dcaae5, sdp_bwd, likewise: 1.005"},
      {"launch_overhead", "microsoft/superbenchmark, kernel-launch baseline of A100, event time"},
  };
  return device;
}

DeviceSpec WithItsTiles(DeviceSpec device, uint32_t multiprocessors, const char* source) {
  DeviceSpec with_attention =
      WithStrided(WithAttention(std::move(device), AmpereAttention(multiprocessors)),
                  Generation::kAmpere, multiprocessors);
  return WithTiles(std::move(with_attention),
                   {.library = GemmLibrary::kAmpere,
                    .multiprocessors = multiprocessors,
                    .few_waves = 0.938,
                    .many_waves = 0.821,
                    .launch = Seconds(0.5e-6),
                    .cache = Bytes(0)},
                   source);
}

constexpr const char* kTiles =
    "fitted to 330 bf16 shapes of an A100 SXM 80 GB (ai-dynamo/aiconfigurator 095f58a51c4c)";

}  // namespace

DeviceSpec A100Sxm40() {
  DeviceSpec device = A100Sxm();
  device.name = "a100-40g";
  device.description = "NVIDIA A100 SXM4 40 GB";
  device.memory = Bytes(40 * kGib);
  device.memory_bandwidth = BytesPerSecond(1555e9);
  device.sources.emplace_back("memory", "nvidia-smi: 40960 MiB");
  return WithItsTiles(std::move(device), 108, kTiles);
}

DeviceSpec A100Sxm80() {
  DeviceSpec device = A100Sxm();
  device.name = "a100-80g";
  device.description = "NVIDIA A100 SXM4 80 GB";
  device.memory = Bytes(80 * kGib);
  device.memory_bandwidth = BytesPerSecond(2039e9);
  device.memory_efficiency = 0.863;
  for (auto& [figure, source] : device.sources)
    if (figure == "memory_efficiency")
      source = "te42kyfo/gpu-benches cdcc732d, cuda-stream, a100_80: triad 1759 of 2039 GB/s";
  device.sources.emplace_back("memory", "nvidia-smi: 81920 MiB");
  return WithItsTiles(std::move(device), 108, kTiles);
}

DeviceSpec A800Sxm80() {
  DeviceSpec device = A100Sxm80();
  device.name = "a800";
  device.description = "NVIDIA A800 SXM4 80 GB: an A100 with NVLinks of 400 GB/s";
  for (auto& [figure, source] : device.sources) source.insert(0, "as a100-80g: ");
  return device;
}

// Leonardo's device has 124 instead of 108 multiprocessors at the same clock. We assume that its
// GEMMs and attention are as efficient.
DeviceSpec A100Custom64() {
  DeviceSpec device = A100Sxm();
  device.name = "a100-64g";
  device.description = "NVIDIA A100 64 GB, Leonardo's custom form";
  for (FlopsPerSecond* peak : {&device.matrix_peak_16, &device.matrix_peak_32,
                               &device.vector_peak_32, &device.vector_peak_64})
    *peak = *peak * (124.0 / 108);
  device.memory = Bytes(64 * kGib);
  device.memory_bandwidth = BytesPerSecond(1640e9);
  for (auto& [figure, source] : device.sources)
    if (figure.find("peak") != std::string::npos)
      source = "the A100's times 124/108 multiprocessors (docs.hpc.cineca.it, Leonardo)";
  device.sources.emplace_back("memory", "docs.hpc.cineca.it, Leonardo: 64 GB, 1.64 TB/s");
  return WithItsTiles(std::move(device), 124, "the A100's constants on 124 multiprocessors");
}

}  // namespace rehearse
