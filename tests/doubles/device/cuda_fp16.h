// What our GPU kernels need of NVIDIA's header, for compiling them for the CPU
// (tests/doubles/device_source.cc).
#pragma once

#include "real/kernels/storage.h"

struct __half {
  uint16_t bits;
};
inline float __half2float(__half value) { return rehearse::FromFp16(value.bits); }
inline __half __float2half(float value) { return {rehearse::ToFp16(value)}; }
