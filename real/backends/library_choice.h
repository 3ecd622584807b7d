// What a communication library says it chose for an op: NCCL's algorithm, protocol and channels.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "sim/report/result.h"
#include "sim/schedule/schedule.h"

namespace rehearse {

// It travels between ranks as bytes. Its texts are the library's and end with a zero.
struct LibraryChoice {
  uint32_t op = 0;                   // of the rank's role
  uint32_t channels = 0;             // of one message if the op consists of several; 0: not known
  std::array<char, 24> algorithm{};  // "" for messages, which have no choice
  std::array<char, 12> protocol{};
};
static_assert(std::is_trivially_copyable_v<LibraryChoice>);

// The name in our own words, if there are any: "NVLS_TREE" is "nvls-tree", "SIMPLE" is "simple".
std::string AlgorithmOf(const LibraryChoice& choice);
std::string ProtocolOf(const LibraryChoice& choice);

// The collectives of all ranks as in a simulated result: sorted, each once. What consists of
// messages (all-to-all) has algorithm "messages" and protocol "none".
std::vector<ChosenCollective> ChosenCollectives(
    const Schedule& schedule, const std::vector<std::vector<LibraryChoice>>& by_rank);

}  // namespace rehearse
