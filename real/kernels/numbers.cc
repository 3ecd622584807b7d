#include "real/kernels/numbers.h"

#include <cmath>

namespace rehearse {
namespace {

double PlusMinusOne(uint64_t seed, uint64_t row, uint64_t column) {
  return 2 * UnitAt(HashAt(seed, row), column) - 1;
}

}  // namespace

uint64_t SeedOf(uint64_t seed, std::string_view name) {
  for (const char c : name) seed = HashAt(seed, static_cast<unsigned char>(c));
  return seed;
}

InitialValues::InitialValues(uint64_t seed, std::string_view array, uint64_t rows, uint64_t columns)
    : seed_(SeedOf(seed, array)), columns_(columns) {
  if (rows > 1) {
    width_ = std::sqrt(3.0 / static_cast<double>(columns));  // uniform in ±w deviates by w/sqrt(3)
  } else if (array.find("gain") != std::string_view::npos) {
    middle_ = 1;
  }
}

uint32_t TokenAt(uint64_t seed, uint64_t row, uint64_t vocabulary) {
  return static_cast<uint32_t>(HashAt(SeedOf(seed, "tokens"), row) % vocabulary);
}

uint32_t LabelAt(uint64_t seed, uint64_t row, uint64_t classes) {
  return static_cast<uint32_t>(HashAt(SeedOf(seed, "labels"), row) % classes);
}

double InputAt(uint64_t seed, uint64_t row, uint64_t column) {
  return PlusMinusOne(SeedOf(seed, "inputs"), row, column);
}

double TargetAt(uint64_t seed, uint64_t row, uint64_t column) {
  return PlusMinusOne(SeedOf(seed, "targets"), row, column);
}

DropoutMask::DropoutMask(uint64_t seed, int32_t layer, int32_t micro_batch, uint64_t salt,
                         double probability, uint64_t columns)
    : seed_(HashAt(HashAt(HashAt(SeedOf(seed, "dropout"), static_cast<uint64_t>(int64_t{layer})),
                          static_cast<uint64_t>(int64_t{micro_batch})),
                   salt)),
      columns_(columns),
      probability_(probability),
      scale_(1 / (1 - probability)) {}

}  // namespace rehearse
