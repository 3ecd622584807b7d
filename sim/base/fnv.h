// FNV-1a, 64 bits (http://www.isthe.com/chongo/tech/comp/fnv): fingerprints that are the same on
// every machine.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "sim/base/clock.h"

namespace rehearse {

class Fnv1a {
 public:
  // Little-endian. Most values are small: of zero bytes at their end, all count at once.
  void Add(uint64_t value) {
    if (value < uint64_t{1} << 24)
      AddLowest(value, std::make_index_sequence<3>());
    else if (value < uint64_t{1} << 48)
      AddLowest(value, std::make_index_sequence<6>());
    else
      AddLowest(value, std::make_index_sequence<8>());
  }
  void Add(std::string_view text) {
    for (const char byte : text) AddByte(static_cast<uint8_t>(byte));
  }
  void Add(Time time) { Add(static_cast<uint64_t>(time.picoseconds())); }
  uint64_t hash() const { return hash_; }

 private:
  static constexpr uint64_t kPrime = 0x100000001b3u;

  static constexpr std::array<uint64_t, 9> PowersOfPrime() {
    std::array<uint64_t, 9> powers = {1};
    for (size_t i = 1; i < powers.size(); ++i) powers[i] = powers[i - 1] * kPrime;
    return powers;
  }

  void AddByte(uint8_t byte) { hash_ = (hash_ ^ byte) * kPrime; }

  // The lowest bytes of a value; the others are zero, and a zero byte only multiplies.
  template <size_t... kByte>
  void AddLowest(uint64_t value, std::index_sequence<kByte...> /*bytes*/) {
    (AddByte(static_cast<uint8_t>(value >> (8 * kByte))), ...);
    constexpr uint64_t kZeroBytes = PowersOfPrime()[8 - sizeof...(kByte)];
    hash_ *= kZeroBytes;
  }

  uint64_t hash_ = 0xcbf29ce484222325u;
};

}  // namespace rehearse
