// How long a matrix product takes on a GPU: tiles in waves over its multiprocessors.
//
// A library cuts C into tiles of one shape, one tile per multiprocessor at a time, and may also cut
// k into `split` parts (split-k, stream-k), whose results it sums. With S multiprocessors,
//   blocks  = batch · ⌈m/rows⌉ · ⌈n/columns⌉ · split,     w = blocks/S waves
//   waves   = w + last_wave · (⌈w⌉ - w), at least 1: part of the last wave is lost
//   rate(w) = many + (few - many) / (1 + (w/settling)²) of the peak
//   tile    = 2 · rows · columns · k' / (peak/S · rate · the shape's own share)
//             + tile_overhead · rows · columns / (128 · 256)
//   tiles   = waves · tile, and for a split its overhead and its fp32 sums through the L2 cache
// where k' is the longest part of k, in whole steps of 128 bytes. The library takes the shape and
// the split with the shortest `tiles`. Then
//   time    = √(tiles² + (bytes / (bandwidth · memory_share))²)
//             + spill · (bytes of C beyond the cache) / bandwidth + launch
// and `tiles` take 1 + (1/sustained - 1) · f²/(f² + f0²) times as long for a product of f flops, f0
// = 0.12 TFLOP: the rate that remains over minutes of work, an effect that small products hardly
// show. (Memory beside arithmetic: the longer of the two, except for products that are bound by
// both; what C drives out of the cache is read again, which only cards with little bandwidth
// notice.)
//
// A product that adds to sums (weight gradients) reads and writes them behind its loop over k. On a
// Hopper the share `exposed_sums` of that is beside no arithmetic:
//   time    = √(tiles² + ((bytes - exposed) / (bandwidth · memory_share))²) + exposed / bandwidth
//             + launch,    exposed = exposed_sums · what it reads and writes of them
// Three dense products of deepseek-ai/DeepGEMM #95 on an H800, each with k of 4,096 and 8,192, have
// 34, 61 and 42 us that do not grow with k, launches of 2 us among them, where their sums take 36,
// 90 and 40 us at the memory's bandwidth: 0.84 of them on average. Nothing of it was read off
// steps: full fine-tuning takes 0.40 (bf16) and 0.27 s (fp8) longer than that of adapters by NeMo
// on 8 H100, here 0.37 and 0.24, and without it 0.36 and 0.22.
//
// `few` is the rate of the first waves, whose blocks go through k in step, under a cool die's
// clock; `many` the one after many waves, when blocks have drifted apart and share less of the
// cache, and the power limit has set the clock. These two and `launch` are a device's own;
// everything else is its library's. They were fitted to measured shapes: topology/OPERATORS.md says
// to which, how, and how far off others are. A mode has a share of the rates: those of forward
// products (NT) were fitted; on the A100 PCIe and the B200 weight gradients (TN, which add to fp32)
// are 4 and 2.5 % slower than the model, input gradients (NN) 2 and 0 % (MooreThreads/SimuMax
// 4dcaae5).
//
// The only function of libm is √, which IEEE 754 rounds exactly, so the bits are the same
// everywhere.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sim/base/quantity.h"
#include "sim/schedule/schedule.h"

namespace rehearse {

// A shape of tiles, and the share of the best shape's rate that its loop reaches.
struct GemmTile {
  uint32_t rows = 128;
  uint32_t columns = 128;
  double rate = 1;
  bool splits = false;  // whether the library splits k with it
};

// What the kernels of a generation have in common.
enum class GemmLibrary : uint8_t {
  kAmpere,
  kAda,
  kHopper,
  kBlackwell,
  kCdna,
  kHopper8,     // fp8
  kBlackwell8,  // fp8, fp4
};
const char* Name(GemmLibrary library);  // "ampere"
inline constexpr std::array kGemmLibraries = {
    GemmLibrary::kAmpere, GemmLibrary::kAda,     GemmLibrary::kHopper,    GemmLibrary::kBlackwell,
    GemmLibrary::kCdna,   GemmLibrary::kHopper8, GemmLibrary::kBlackwell8};

struct GemmLibraryFigures {
  std::vector<GemmTile> tiles;
  double last_wave = 1;
  double settling = 1;     // waves
  Seconds tile_overhead;   // of 128 × 256
  Seconds split_overhead;  // of a split product
  double memory_share = 1;
  double spill = 0;
  std::array<double, 3> modes = {1, 1, 1};  // of the rates: NN, NT, TN
  double exposed_sums = 0;
};
const GemmLibraryFigures& FiguresOf(GemmLibrary library);

struct GemmModel {
  GemmLibrary library = GemmLibrary::kAmpere;
  uint32_t multiprocessors = 1;
  double few_waves = 1;   // of the peak
  double many_waves = 1;  // of the peak
  double sustained = 1;   // of the rates, in minutes of large products
  Seconds launch;         // a product's own, from the end of the previous kernel
  Bytes cache;            // L2; counts where the library spills

  friend bool operator==(const GemmModel&, const GemmModel&) = default;
};

// What the library chooses for a product.
struct GemmChoice {
  GemmTile tile;
  uint32_t split = 1;
  double waves = 0;  // blocks over multiprocessors
  Seconds time;      // of the tiles
};

// The peak is that of the operands' type, the bandwidth the memory's nominal one. CHECK that no
// dimension is 0.
GemmChoice ChooseTiles(const GemmModel& model, const Gemm& gemm, Bytes element, FlopsPerSecond peak,
                       BytesPerSecond bandwidth);
// The time of one product that moves `bytes`, its launch included.
Seconds TimeOf(const GemmModel& model, const Gemm& gemm, Bytes element, Bytes bytes,
               FlopsPerSecond peak, BytesPerSecond bandwidth);

}  // namespace rehearse
