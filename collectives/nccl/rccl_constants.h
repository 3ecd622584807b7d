// The tables of RCCL's tuning model, in our own form: microseconds, shares, and corrections of the
// bandwidth by power of two from 64 bytes. Source: ROCm/rccl src/graph/tuning.cc, tuning models 4,
// 5 and 6. Immutable data.
#pragma once

#include <array>
#include <cstdint>

#include "collectives/nccl/rccl_model.h"

namespace rehearse {

using RcclByProtocol = std::array<double, kProtocols>;  // LL, LL128, Simple
using RcclCorrection = std::array<std::array<double, 27>, kProtocols>;

// The range of bytes per rank in which a protocol is taken.
struct RcclRange {
  double from = 0;
  double to = 0;  // 0: none
};

struct RcclTables {
  std::array<RcclByProtocol, 2> inside = {};  // tree, ring; microseconds over xGMI
  std::array<RcclByProtocol, 2> across = {};
  std::array<std::array<RcclByProtocol, 2>, 2> ratio = {};  // up to two machines, more; tree, ring
  RcclCorrection tree = {};
  RcclCorrection ring = {};
  // The ranges of LL and LL128 on several machines: of reduce-scatter, all-gather, all-reduce,
  // reduce, broadcast.
  std::array<std::array<RcclRange, 2>, 5> ranges = {};
  bool has_ranges = false;
};

inline constexpr RcclByProtocol kRcclBase = {12.0, 12.0, 17.0};
inline constexpr std::array<RcclByProtocol, 2> kRcclPcie = {{{2.2, 2.2, 5.7}, {2.2, 2.2, 5.7}}};

const RcclTables& RcclTablesOf(RcclArchitecture architecture);

}  // namespace rehearse
