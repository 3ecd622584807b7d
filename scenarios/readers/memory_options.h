// What a scenario says about memory beside what its step needs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sim/base/json_fields.h"
#include "sim/base/quantity.h"

namespace rehearse {

// How the framework's allocator takes memory of a GPU (sim/schedule/caching_allocator.h).
enum class AllocatorKind : uint8_t { kSegments, kExpandable, kNone };

struct MemoryOptions {
  std::string headroom = "0%";  // of the device: a step that needs more than the rest does not fit
  AllocatorKind allocator = AllocatorKind::kSegments;
  bool allow_oom = false;     // play it though it does not fit by our count, since it has run
  double headroom_share = 0;  // `headroom` as a number

  friend bool operator==(const MemoryOptions&, const MemoryOptions&) = default;
};
const Fields<MemoryOptions>& MemoryOptionsFields();

// A bound on what a step needs in all, of its device or in bytes: "90%", "70GiB".
struct MemoryBound {
  std::string at_most;
  std::optional<double> share = {};
  std::optional<Bytes> bytes = {};

  bool Allows(Bytes needed, Bytes capacity) const {
    return bytes ? needed <= *bytes : !(capacity > Bytes(0)) || needed <= *share * capacity;
  }
};
const Fields<MemoryBound>& MemoryBoundFields();

}  // namespace rehearse
