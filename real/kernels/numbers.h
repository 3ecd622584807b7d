// The numbers that a run begins with: parameters, tokens, labels, targets, dropout masks.
//
// Each is a hash of what it is for and of its position in the *global* array, so that every
// strategy, number of ranks and backend begins with the same ones. The hash is SplitMix64's
// finaliser (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
#pragma once

#include <cstdint>
#include <string_view>

namespace rehearse {

// The i-th number of the stream `seed`: 64 independent-looking bits.
constexpr uint64_t HashAt(uint64_t seed, uint64_t i) {
  uint64_t x = seed + (i + 1) * 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// The number is in [0, 1), from the upper 53 bits.
constexpr double UnitAt(uint64_t seed, uint64_t i) {
  return static_cast<double>(HashAt(seed, i) >> 11) * 0x1p-53;
}

uint64_t SeedOf(uint64_t seed, std::string_view name);

// Parameters: a matrix is uniform with deviation 1/sqrt(columns), so that activations keep their
// size (weights are stored n×k); a vector (one row) is uniform in ±0.1, or around 1 if "gain" is in
// the array's name.
class InitialValues {
 public:
  InitialValues(uint64_t seed, std::string_view array, uint64_t rows, uint64_t columns);
  double At(uint64_t row, uint64_t column) const {
    return middle_ + width_ * (2 * UnitAt(seed_, row * columns_ + column) - 1);
  }

 private:
  uint64_t seed_;
  uint64_t columns_;
  double middle_ = 0;
  double width_ = 0.1;
};

// The token of a row of the global batch, which has micro-batch after micro-batch.
uint32_t TokenAt(uint64_t seed, uint64_t row, uint64_t vocabulary);
uint32_t LabelAt(uint64_t seed, uint64_t row, uint64_t classes);
// Inputs and targets of networks without tokens, in [-1, 1).
double InputAt(uint64_t seed, uint64_t row, uint64_t column);
double TargetAt(uint64_t seed, uint64_t row, uint64_t column);

// Dropout: which elements of a global array are kept, by (layer, micro-batch, salt).
class DropoutMask {
 public:
  DropoutMask(uint64_t seed, int32_t layer, int32_t micro_batch, uint64_t salt, double probability,
              uint64_t columns);
  uint64_t stream() const { return seed_; }  // of hashed numbers
  // 0, or 1/(1-probability) if it is kept.
  double At(uint64_t row, uint64_t column) const {
    return UnitAt(seed_, row * columns_ + column) < probability_ ? 0 : scale_;
  }

 private:
  uint64_t seed_;
  uint64_t columns_;
  double probability_;
  double scale_;
};

}  // namespace rehearse
