// FNV-1a, 64 bits (http://www.isthe.com/chongo/tech/comp/fnv): fingerprints that are the same on
// every machine.
#pragma once

#include <cstdint>
#include <string_view>

#include "sim/base/clock.h"

namespace rehearse {

class Fnv1a {
 public:
  // Little-endian.
  void Add(uint64_t value) {
    for (int byte = 0; byte < 8; ++byte) {
      AddByte(static_cast<uint8_t>(value));
      value >>= 8;
    }
  }
  void Add(std::string_view text) {
    for (const char byte : text) AddByte(static_cast<uint8_t>(byte));
  }
  void Add(Time time) { Add(static_cast<uint64_t>(time.picoseconds())); }
  uint64_t hash() const { return hash_; }

 private:
  void AddByte(uint8_t byte) { hash_ = (hash_ ^ byte) * 0x100000001b3u; }

  uint64_t hash_ = 0xcbf29ce484222325u;
};

}  // namespace rehearse
