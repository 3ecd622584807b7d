// How GPUs store numbers in memory: fp32, bf16 and fp16, converted on the host. Rounds to nearest,
// ties to even, as the devices do.
#pragma once

#include <cstdint>

namespace rehearse {

// How an element is stored; GPU kernels compute in fp32 whatever it is.
enum class Storage : uint32_t { kFp32, kBf16, kFp16 };

inline constexpr uint64_t SizeOf(Storage storage) { return storage == Storage::kFp32 ? 4 : 2; }

uint16_t ToBf16(float value);
float FromBf16(uint16_t bits);
uint16_t ToFp16(float value);
float FromFp16(uint16_t bits);

// Element `index` of an array that is stored like that.
float LoadStored(Storage storage, const void* array, uint64_t index);
void Store(Storage storage, void* array, uint64_t index, float value);

}  // namespace rehearse
