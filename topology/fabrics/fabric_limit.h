// How large a fabric may be: a mistyped radix must not use up the memory.
#pragma once

#include <cstdint>

#include <fmt/format.h>

#include "sim/base/error.h"

namespace rehearse {

inline constexpr uint32_t kMostFabricCables = 1u << 22;  // between its switches: half a gigabyte

// Throws Error when there are more.
inline void CheckFabricSize(double cables) {
  if (cables > kMostFabricCables)
    throw Error(fmt::format(
        "the fabric would have {:.3g} cables between its switches, at most {} are possible", cables,
        kMostFabricCables));
}

}  // namespace rehearse
