#include "topology/devices/narrow_products.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <string>

#include "topology/devices/gemm_model.h"

namespace rehearse {
namespace {

struct NarrowRow {
  const char* device = "";
  double peak_8 = 0;  // TFLOP/s, dense
  double peak_4 = 0;  // 0: none
  const char* peaks = "";
  // The shares of peak_8 that products reach. Without them, products reach the same shares as those
  // in 16 bits do of their peak.
  GemmLibrary library = GemmLibrary::kHopper8;
  double few_waves = 0;
  double many_waves = 0;
  const char* tiles = "";
  // What products in 4 bits reach of their peak, over what those in 8 reach of theirs.
  double share_4 = 1;
  const char* fours = "as gemm_model_8, of its own peak: assumed";
};

// 8,192 cubed in 4 bits by cuBLAS 13.3 on a B200 over what gemm_model_8 gives for the peak of 4
// bits: 5,239 of 5,767 TFLOP/s.
constexpr double kFoursOfB200 = 0.909;
constexpr const char* kMeasuredOnB200 =
    "8,192 cubed by cuBLAS on a B200: 5,239 TFLOP/s (deepseek-ai/DeepGEMM #348)";
// The twelve products of a layer with 15,872 tokens on a B300: 3.76 ms, of which the 24 kernels
// that order scales take 0.35 (workloads/planner/casts.h), where gemm_model_8 gives 2.2 ms for the
// peak of 4 bits. It has half as much again as a B200's, and products hardly gain by it.
constexpr double kFoursOfB300 = 0.622;
constexpr const char* kMeasuredOnB300 =
    "twelve products on a B300 (NVIDIA/TransformerEngine d0067d0da, docs/examples/gemm_profiling, "
    "pre-quantized)";
constexpr const char* kFitted =
    "fitted to 79 fp8 shapes of this device (ai-dynamo/aiconfigurator 095f58a51c4c)";
constexpr const char* kAsH100 = "the H100's constants on this device's multiprocessors: assumed";
constexpr const char* kHopperSheet = "its data sheet, dense: twice the 16-bit peak";

constexpr NarrowRow kRows[] = {
    {"h100", 1978.9, 0, "NVIDIA H100 data sheet, SXM, 3,958 with sparsity", GemmLibrary::kHopper8,
     0.818, 0.753, kFitted},
    {"h100-pcie", 1513, 0, "NVIDIA H100 PCIe product brief PB-11133, 3,026 with sparsity",
     GemmLibrary::kHopper8, 0.818, 0.753, kAsH100},
    {"h100-nvl", 1671, 0, "NVIDIA H100 data sheet, NVL, 3,341 with sparsity", GemmLibrary::kHopper8,
     0.818, 0.753, kAsH100},
    {"h800", 1978.9, 0, kHopperSheet, GemmLibrary::kHopper8, 0.818, 0.753, kAsH100},
    {"h20", 296, 0, kHopperSheet, GemmLibrary::kHopper8, 0.93, 0.93,
     "the H100's tiles; 0.93 assumed, as in 16 bits"},
    {"h200", 1978.9, 0, "NVIDIA H200 data sheet, SXM, 3,958 with sparsity", GemmLibrary::kHopper8,
     0.761, 0.76, kFitted},
    {"gh200", 1978.9, 0, "NVIDIA GH200 data sheet, 3,958 with sparsity", GemmLibrary::kHopper8,
     0.818, 0.753, kAsH100},
    {"b200", 4500, 9000, "NVIDIA Blackwell data sheet, HGX B200, dense, an eighth",
     GemmLibrary::kBlackwell8, 0.776, 0.659, kFitted, kFoursOfB200, kMeasuredOnB200},
    {"b300", 4500, 13500, "NVIDIA Blackwell Ultra data sheet, HGX B300, dense, an eighth",
     GemmLibrary::kBlackwell8, 0.829, 0.67, kFitted, kFoursOfB300, kMeasuredOnB300},
    {"gb200", 5000, 10000, "NVIDIA GB200 NVL72 data sheet, dense, a GPU", GemmLibrary::kBlackwell8,
     0.677, 0.657, kFitted, kFoursOfB200, kMeasuredOnB200},
    {"gb300", 5000, 15000, "NVIDIA GB300 NVL72 data sheet, dense, a GPU", GemmLibrary::kBlackwell8,
     0.829, 0.67, "the B300's constants on this device's multiprocessors and peak: assumed",
     kFoursOfB300, kMeasuredOnB300},
    {"l40s", 733, 0, "NVIDIA L40S data sheet, 1,466 with sparsity", GemmLibrary::kAda, 0.696, 0.518,
     kFitted},
    {"rtx4090", 330.3, 0, "NVIDIA Ada GPU architecture white paper, dense, fp32 accumulation",
     GemmLibrary::kAda, 0.85, 0.85, "the L40S' tiles at an assumed 0.85, as in 16 bits"},
    {"mi300x", 2614.9, 0, "AMD Instinct MI300X data sheet, dense"},
    {"mi325x", 2614.9, 0, "AMD Instinct MI325X data sheet, dense"},
    {"mi355x", 5033.2, 10066.4, "AMD Instinct MI355X data sheet, dense (MXFP4)"}};

}  // namespace

void AddNarrowProducts(DeviceSpec* device) {
  const auto* const row = std::find_if(std::begin(kRows), std::end(kRows), [&](const NarrowRow& r) {
    return device->name == r.device;
  });
  if (row == std::end(kRows)) return;
  device->matrix_peak_8 = FlopsPerSecond(row->peak_8 * 1e12);
  device->matrix_peak_4 = FlopsPerSecond(row->peak_4 * 1e12);
  device->sources.emplace_back("matrix_peak_8", row->peaks);
  if (row->peak_4 > 0) device->sources.emplace_back("matrix_peak_4", row->peaks);
  const bool has_tiles = row->many_waves > 0 && device->gemm_model != nullptr;
  device->sources.emplace_back("gemm_model_8",
                               has_tiles ? row->tiles : "as gemm_model, of its own peak: assumed");
  if (!has_tiles) return;
  GemmModel model = *device->gemm_model;
  model.sustained = 1;  // it was not measured
  model.library = row->library;
  model.few_waves = row->few_waves;
  model.many_waves = row->many_waves;
  device->gemm_model_8 = std::make_shared<const GemmModel>(model);
  if (row->peak_4 == 0) return;
  device->sources.emplace_back("gemm_model_4", row->fours);
  if (row->share_4 == 1) return;
  model.few_waves *= row->share_4;
  model.many_waves *= row->share_4;
  device->gemm_model_4 = std::make_shared<const GemmModel>(model);
}

}  // namespace rehearse
