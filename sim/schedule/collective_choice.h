// How a collective is carried out, by name: by which algorithm, and by which of NCCL's three ways
// to hand data over. collectives/algorithms/algorithm.h has a row for every algorithm that can be
// simulated, and collectives/lowering/tuning.h chooses where a schedule leaves it to the library.
#pragma once

#include <cstdint>
#include <string_view>

namespace rehearse {

enum class AlgorithmId : uint8_t {
  kAuto,  // as the library chooses
  kRing,
  kRingBoth,
  kTree,
  kHalvingDoubling,
  kDoubling,
  kDirect,
  kPairwise,
  kBruck,
  kPxn,
  kDeepEp,
  kNvls,
  kNvlsTree,
  kCollnet,
  kPat,
  kHierarchical,
  kBucket,
  kChain,
  kCopy,  // to and from the host, by the copy engines of one rank
};
const char* Name(AlgorithmId algorithm);      // "ring-both"
const char* NcclName(AlgorithmId algorithm);  // "Ring": what NCCL_ALGO calls it; "" if it does not

// Our names and NCCL's, in any case. Throws Error, with "did you mean", for others.
AlgorithmId ParseAlgorithm(std::string_view name);

// Simple moves whole chunks and then raises a flag; LL puts a flag into every 8 bytes, so that half
// of what travels is data; LL128 puts 8 bytes of flags into every 128.
enum class Protocol : uint8_t {
  kLL,  // the first three are in NCCL's order
  kLL128,
  kSimple,
  kNone,  // bare links
  kAuto,  // as the library chooses
};
inline constexpr uint32_t kProtocols = 3;  // NCCL's own

const char* Name(Protocol protocol);  // "ll", "ll128", "simple", "none", "auto"

// Our names and those that NCCL_PROTO takes ("LL", "LL128", "Simple"). Throws Error for others.
Protocol ParseProtocol(std::string_view name);

}  // namespace rehearse
