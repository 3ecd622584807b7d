// NCCL's three ways to hand data over, and their names.
//
// Simple moves whole chunks and then raises a flag; LL puts a flag into every 8 bytes, so that half
// of what travels is data; LL128 puts 8 bytes of flags into every 128.
// collectives/lowering/tuning.h says what each costs on a machine.
#pragma once

#include <cstdint>
#include <string_view>

namespace rehearse {

enum class Protocol : uint8_t { kLL, kLL128, kSimple };  // in NCCL's order
inline constexpr uint32_t kProtocols = 3;

const char* Name(Protocol protocol);  // "ll", "ll128", "simple"

// Our names and those that NCCL_PROTO takes ("LL", "LL128", "Simple"). Throws Error for others.
Protocol ParseProtocol(std::string_view name);

}  // namespace rehearse
