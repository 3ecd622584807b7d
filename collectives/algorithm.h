// The table of collective algorithms: one row, one small file each.
//
// A row says what the algorithm is called, which kinds it can do, where it applies, its steps and its
// closed form. Everything else (data-level interpreter, lowering at three fidelities, folding, the
// command line, the choice by a tuning model) goes by the rows.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "sim/schedule.h"

namespace rehearse {

// A set of kinds.
class Kinds {
 public:
  constexpr Kinds(std::initializer_list<CollectiveKind> kinds) {
    for (const CollectiveKind kind : kinds) mask_ |= Bit(kind);
  }
  constexpr bool Has(CollectiveKind kind) const { return (mask_ & Bit(kind)) != 0; }

 private:
  static constexpr uint32_t Bit(CollectiveKind kind) { return 1u << static_cast<uint32_t>(kind); }
  uint32_t mask_ = 0;
};

struct Algorithm {
  const char* name;       // "ring": in schedules, scenarios, on the command line
  const char* nccl_name;  // "Ring": what NCCL_ALGO calls it, or "" if it does not
  const char* summary;    // one line for `rehearse list algorithms`
  Kinds kinds;
};

// In the order of the table.
std::span<const Algorithm> Algorithms();

// By our name or NCCL's, in any case. Throws Error, with "did you mean", for others.
const Algorithm& FindAlgorithm(std::string_view name);

// Throws Error, naming those that can, unless the algorithm does this kind.
void CheckKind(const Algorithm& algorithm, CollectiveKind kind);

}  // namespace rehearse
