// Short messages between ranks outside steps: from all ranks to rank 0, from rank 0 to all.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "real/transports/transport.h"

namespace rehearse {

// What every rank gave, by rank; empty on ranks other than 0.
std::vector<std::string> GatherBytes(Transport& transport, const std::string& own);
// Returns what rank 0 gave.
std::string BroadcastBytes(Transport& transport, const std::string& of_rank_0);

// The same for arrays of plain values.
template <typename T>
std::string ToBytes(std::span<const T> values) {
  static_assert(std::is_trivially_copyable_v<T>);
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}
template <typename T>
std::vector<T> FromBytes(const std::string& bytes) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::vector<T> values(bytes.size() / sizeof(T));
  bytes.copy(reinterpret_cast<char*>(values.data()), values.size() * sizeof(T));
  return values;
}

// Throws Error on every rank unless all ranks have the same `text` (what they are about to do); it
// says which rank differs from rank 0.
void RequireSame(Transport& transport, const char* what, const std::string& text);

}  // namespace rehearse
