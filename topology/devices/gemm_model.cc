#include "topology/devices/gemm_model.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/base/error.h"

namespace rehearse {
namespace {

constexpr double kUsualTile = 128.0 * 256;
constexpr Bytes kStep(128);  // of an operand along k
constexpr Bytes kSum(4);     // an element of a part's result
// The L2 cache carries so many times what memory does (A100: 4.4 to 5.5 of 1.5 TB/s, H100 5.5 to 7
// of 3.35; te42kyfo/gpu-benches, gpu-l2-cache).
constexpr double kCacheOverMemory = 3;
constexpr std::array<uint32_t, 6> kSplits = {1, 2, 3, 4, 6, 8};
// A product that fills the device this often is not split.
constexpr uint64_t kMostSplitWaves = 3;
// Hopper's matrix units add up 8-bit products in less than fp32. Gradients have their partial sums
// carried over to fp32 registers on the way, outputs do not: Transformer Engine's recipes
// (use_split_accumulator of fp8_gemm_dgrad and fp8_gemm_wgrad), XLA (openxla/xla #6168) and torchao
// (float8/config.py) agree. Products without it are 1.1 to 1.2 times as fast (pytorch/ao #2377).
// Blackwell has no such choice (NVIDIA/TransformerEngine #2748).
constexpr double kExactSums = 1.15;
// See gemm_model.h.
constexpr double kExposedOnHopper = 0.84;
constexpr Bytes kLeastResult(2);  // an element of what a product writes
// At this size half of the rate is lost that large products lose in the long run.
constexpr Flops kHalfSustained(0.12e12);

uint64_t CeilOf(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

std::vector<GemmTile> Tiles(double square, double narrow, double small, bool has_odd) {
  std::vector<GemmTile> tiles = {{256, 128, 1, true},      {128, 256, 1, true},
                                 {128, 128, square, true}, {256, 64, narrow, false},
                                 {64, 256, narrow, false}, {128, 64, narrow, false},
                                 {64, 128, narrow, false}, {64, 64, small, false}};
  if (has_odd)
    tiles.insert(tiles.end(), {{256, 192, 1, true},
                               {192, 256, 1, true},
                               {192, 128, square, true},
                               {128, 192, square, true}});
  return tiles;
}

struct LibraryRow {
  const char* name = "";
  GemmLibraryFigures figures;
};

const std::array<LibraryRow, 7>& Libraries() {
  const auto microseconds = [](double value) { return Seconds(value * 1e-6); };
  static const std::array<LibraryRow, 7> rows = {
      {{"ampere",
        {Tiles(0.78, 0.65, 0.45, false),
         1,
         12,
         microseconds(3.8),
         microseconds(4),
         1,
         0,
         {0.982, 1, 0.964}}},
       {"ada", {Tiles(1, 1, 1, false), 0.6, 2.5, Seconds(0), microseconds(0.5), 0.9, 1.5}},
       {"hopper",
        {Tiles(1, 0.8, 0.7, true),
         0.1,
         10,
         microseconds(0.5),
         microseconds(3),
         1,
         0,
         {1, 1, 1},
         kExposedOnHopper}},
       {"blackwell",
        {Tiles(0.97, 0.93, 0.63, true),
         0.04,
         18,
         Seconds(0),
         microseconds(5),
         1,
         0,
         {1, 1, 0.975}}},
       {"cdna", {Tiles(0.95, 0.8, 0.7, true), 0.5, 10, microseconds(1.8), microseconds(3), 0.9, 0}},
       {"hopper-8",
        {Tiles(1, 0.8, 0.7, true),
         0.4,
         14,
         microseconds(0.92),
         microseconds(3),
         0.78,
         0,
         {1 / kExactSums, 1, 1 / kExactSums},
         kExposedOnHopper}},
       {"blackwell-8",
        {Tiles(0.97, 0.93, 0.63, true), 0.24, 3.6, microseconds(0.1), microseconds(5), 0.6, 0}}}};
  return rows;
}

double ElementsOf(uint64_t rows, uint64_t columns, uint32_t batch) {
  return static_cast<double>(rows) * static_cast<double>(columns) * static_cast<double>(batch);
}

// What a product reads and writes of the sums that it adds to, besides its operands; 0 if it only
// writes its result, in 16 bits or in the operands' type.
Bytes SumsOf(const Gemm& gemm, Bytes element, Bytes bytes) {
  const Bytes operands =
      element * (ElementsOf(gemm.m, gemm.k, gemm.batch) + ElementsOf(gemm.n, gemm.k, gemm.batch));
  const Bytes result = std::max(element, kLeastResult) * ElementsOf(gemm.m, gemm.n, gemm.batch);
  constexpr double kReadAndWritten = 1.999;
  const bool adds = gemm.mode == GemmMode::kTN && bytes - operands >= kReadAndWritten * result;
  return adds ? bytes - operands : Bytes(0);
}

double SustainedTime(const GemmModel& model, Flops flops) {
  const double size = flops / kHalfSustained;
  const double squared = size * size;
  return 1 + (1 / model.sustained - 1) * squared / (squared + 1);
}

}  // namespace

const char* Name(GemmLibrary library) { return Libraries()[static_cast<size_t>(library)].name; }

const GemmLibraryFigures& FiguresOf(GemmLibrary library) {
  return Libraries()[static_cast<size_t>(library)].figures;
}

GemmChoice ChooseTiles(const GemmModel& model, const Gemm& gemm, Bytes element, FlopsPerSecond peak,
                       BytesPerSecond bandwidth) {
  CHECK(gemm.m > 0 && gemm.n > 0 && gemm.k > 0 && gemm.batch > 0);
  const GemmLibraryFigures& library = FiguresOf(model.library);
  const uint64_t step = std::max<uint64_t>(1, static_cast<uint64_t>(kStep / element));
  const uint64_t steps = CeilOf(gemm.k, step);
  const auto multiprocessors = static_cast<double>(model.multiprocessors);
  const double flops_per_second = peak.value() / multiprocessors;
  const Seconds sums = kSum *
                       (2.0 * static_cast<double>(gemm.m) * static_cast<double>(gemm.n) *
                        static_cast<double>(gemm.batch)) /
                       (bandwidth * kCacheOverMemory);
  const double mode = library.modes[static_cast<size_t>(gemm.mode)];
  GemmChoice best;
  for (const GemmTile& tile : library.tiles) {
    const uint64_t blocks = CeilOf(gemm.m, tile.rows) * CeilOf(gemm.n, tile.columns) * gemm.batch;
    const double area = static_cast<double>(tile.rows) * static_cast<double>(tile.columns);
    const bool may_split = tile.splits && blocks < kMostSplitWaves * model.multiprocessors;
    for (const uint32_t split : kSplits) {
      if (split > 1 && (!may_split || split > steps)) break;
      const uint64_t parts = blocks * split;
      const double waves = static_cast<double>(parts) / multiprocessors;
      const auto whole_waves = static_cast<double>(CeilOf(parts, model.multiprocessors));
      const double counted = std::max(1.0, waves + library.last_wave * (whole_waves - waves));
      const double settled = waves / library.settling;
      const double rate =
          model.many_waves + (model.few_waves - model.many_waves) / (1 + settled * settled);
      const auto depth = static_cast<double>(CeilOf(steps, split) * step);
      Seconds time =
          counted * (Seconds(2 * area * depth / (flops_per_second * rate * mode * tile.rate)) +
                     library.tile_overhead * (area / kUsualTile));
      if (split > 1) time += library.split_overhead + static_cast<double>(split) * sums;
      if (best.waves > 0 && !(time < best.time)) continue;
      best = {tile, split, waves, time};
    }
  }
  return best;
}

Seconds TimeOf(const GemmModel& model, const Gemm& gemm, Bytes element, Bytes bytes,
               FlopsPerSecond peak, BytesPerSecond bandwidth) {
  const GemmLibraryFigures& library = FiguresOf(model.library);
  const double tiles = ChooseTiles(model, gemm, element, peak, bandwidth).time.value() *
                       SustainedTime(model, FlopsOf(gemm));
  const Bytes exposed = library.exposed_sums * SumsOf(gemm, element, bytes);
  const double memory = ((bytes - exposed) / (bandwidth * library.memory_share)).value();
  Seconds time =
      Seconds(std::sqrt(tiles * tiles + memory * memory)) + exposed / bandwidth + model.launch;
  if (library.spill > 0) {
    const Bytes result = element * (static_cast<double>(gemm.m) * static_cast<double>(gemm.n) *
                                    static_cast<double>(gemm.batch));
    if (result > model.cache) time += library.spill * ((result - model.cache) / bandwidth);
  }
  return time;
}

}  // namespace rehearse
