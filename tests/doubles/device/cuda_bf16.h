// What our GPU kernels need of NVIDIA's header, for compiling them for the CPU
// (tests/doubles/device_source.cc).
#pragma once

#include "real/kernels/storage.h"

struct __nv_bfloat16 {
  uint16_t bits;
};
inline float __bfloat162float(__nv_bfloat16 value) { return rehearse::FromBf16(value.bits); }
inline __nv_bfloat16 __float2bfloat16(float value) { return {rehearse::ToBf16(value)}; }
