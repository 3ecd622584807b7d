#include "real/kernels/storage.h"

#include <bit>
#include <cmath>

namespace rehearse {

uint16_t ToBf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  const uint32_t half = 0x7fffu + ((bits >> 16) & 1u);  // carries on a tie when the last bit is set
  return static_cast<uint16_t>((bits + half) >> 16);
}

float FromBf16(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

uint16_t ToFp16(float value) {
  constexpr float kLargest = 65520;  // the first that rounds to infinity
  const auto sign = static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16 & 0x8000u);
  const float size = std::fabs(value);
  if (std::isnan(value)) return sign | 0x7e00u;
  if (size >= kLargest) return sign | 0x7c00u;
  if (size == 0) return sign;  // has no exponent
  // The steps of fp16 at this size are 2^(exponent-10), or 2^-24 for small ones. nearbyint rounds
  // ties to even.
  int exponent = 0;
  std::frexp(size, &exponent);  // size in [2^(exponent-1), 2^exponent)
  const int step = exponent - 1 < -14 ? -24 : exponent - 1 - 10;
  const auto steps = static_cast<uint32_t>(std::nearbyint(std::ldexp(size, -step)));
  // `steps` is 1024 to 2048 for normal numbers: the leading bit adds one to the exponent below it.
  const auto raised = static_cast<uint32_t>(step + 24) << 10;
  return static_cast<uint16_t>(sign | (raised + steps));
}

float FromFp16(uint16_t bits) {
  const int exponent = bits >> 10 & 0x1f;
  const int fraction = bits & 0x3ff;
  float size = 0;
  if (exponent == 31) {
    size = fraction == 0 ? INFINITY : NAN;
  } else if (exponent == 0) {
    size = std::ldexp(static_cast<float>(fraction), -24);
  } else {
    size = std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
  }
  return (bits & 0x8000) != 0 ? -size : size;
}

float LoadStored(Storage storage, const void* array, uint64_t index) {
  switch (storage) {
    case Storage::kFp32:
      return static_cast<const float*>(array)[index];
    case Storage::kBf16:
      return FromBf16(static_cast<const uint16_t*>(array)[index]);
    case Storage::kFp16:
      return FromFp16(static_cast<const uint16_t*>(array)[index]);
  }
  return 0;
}

void Store(Storage storage, void* array, uint64_t index, float value) {
  switch (storage) {
    case Storage::kFp32:
      static_cast<float*>(array)[index] = value;
      break;
    case Storage::kBf16:
      static_cast<uint16_t*>(array)[index] = ToBf16(value);
      break;
    case Storage::kFp16:
      static_cast<uint16_t*>(array)[index] = ToFp16(value);
      break;
  }
}

}  // namespace rehearse
