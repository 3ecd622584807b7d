// What devices share: a roofline with one stated efficiency and, on top, the tiles and waves of
// their products.
#pragma once

#include <string>

#include "topology/devices/attention_model.h"
#include "topology/devices/device.h"
#include "topology/devices/gemm_model.h"

namespace rehearse {

struct RooflineFigures {
  const char* name = "";
  const char* description = "";
  double matrix_16 = 0;  // TFLOP/s, dense; 0: not given
  double matrix_32 = 0;
  double vector_32 = 0;
  double vector_64 = 0;
  double gibibytes = 0;
  double gigabytes_per_second = 0;
  double gemm_efficiency = 1;
  const char* data_sheet = "";
  const char* gemm_source = "";
  uint32_t compute_capability = 0;
  uint32_t gfx = 0;
};

// Memory efficiency, attention and launches are assumed to be the A100's.
DeviceSpec Roofline(const RooflineFigures& figures);

// What streaming kernels reach: a share of the memory's bandwidth, and a rate in a cache of so many
// bytes.
struct MemoryFigures {
  double efficiency = 1;
  double cache = 0;  // bytes; 0: not given
  double cache_bytes_per_second = 0;
  const char* efficiency_source = "";
  const char* cache_source = "";
};
DeviceSpec WithMemory(DeviceSpec device, const MemoryFigures& figures);

// The device with what its generation's multiprocessors take for an element of PyTorch's kernels
// with broadcast or strided operands. Measured, in linkedin/Liger-Kernel (benchmark/rope_speed,
// benchmark/data/all_benchmark_data_rope_models.csv), as rotary embeddings of Hugging Face's Llama:
// forward 3.5 such elements and 6 bytes for each of Q and K, backward 3.5 and 16 bytes, which
// leaves 5.3 ps on an A100, 3.5 on an H100, 3.7 on a B200 (mean of both).
enum class Generation : uint8_t { kAmpere, kHopper, kBlackwell };
DeviceSpec WithStrided(DeviceSpec device, Generation generation, uint32_t multiprocessors);

// The device with that model of its products.
DeviceSpec WithTiles(DeviceSpec device, const GemmModel& model, std::string source);
// The device with that model of attention. Without a source, it is the device for which the model's
// implementations were measured (topology/devices/attention_model.cc).
DeviceSpec WithAttention(DeviceSpec device, AttentionModel model, std::string source = "");

}  // namespace rehearse
