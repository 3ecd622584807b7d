// What goes over the connections of real/transports/transport_tcp.h: a hello and its answer, then
// frames. Nothing is believed before it has been checked, and no memory is taken for what a frame
// merely announces.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "real/transports/run_secret.h"

namespace rehearse {

inline constexpr std::array<char, 8> kWireMagic = {'r', 'e', 'h', 'e', 'a', 'r', 's', 'e'};
inline constexpr uint32_t kWireVersion = 2;

// What a rank says about itself when it comes. Machines are distinguished by their kernel's boot
// id.
struct Hello {
  std::array<char, 8> magic = kWireMagic;
  uint32_t version = kWireVersion;
  uint32_t rank = 0;
  uint32_t ranks = 0;
  SecretHalf secret{};  // of_ranks
  std::array<char, 40> machine{};
};

// What rank 0 says to a rank that knows the secret; others hear nothing.
struct Answer {
  std::array<char, 8> magic = kWireMagic;
  uint32_t version = kWireVersion;
  uint32_t is_refused = 0;
  uint64_t milliseconds = 0;  // for which rank 0 still waits for others
  SecretHalf secret{};        // of_rank_0
  std::array<char, 256> reason{};
};

enum class FrameKind : uint32_t { kMessage, kWelcome, kAbort, kFarewell, kAlive };

struct WireFrame {
  FrameKind kind = FrameKind::kMessage;
  uint32_t from = 0;
  uint32_t to = 0;
  uint32_t tag = 0;
  uint64_t bytes = 0;  // that follow
};

inline constexpr uint32_t kBarrierTag = 0xffffffffu;
inline constexpr uint64_t kLongestMessage = uint64_t{1} << 30;  // bytes
inline constexpr uint64_t kLongestReason = uint64_t{1} << 16;   // of an abort

// What is wrong with a frame that `receiver`, one of `ranks` ranks, got over its connection to
// `neighbour` (one of the two is rank 0); "" if a rank may have sent it.
std::string FaultOf(const WireFrame& frame, uint32_t neighbour, uint32_t receiver, uint32_t ranks);

}  // namespace rehearse
