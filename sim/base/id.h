// Dense 32-bit indices that do not mix: an Id<LinkTag> is not an Id<RankTag>.
#pragma once

#include <compare>
#include <cstdint>

namespace rehearse {

template <typename Tag>
class Id {
 public:
  constexpr Id() = default;
  constexpr explicit Id(uint32_t index) : index_(index) {}

  // The position in the array that the id indexes; kNone when it names nothing.
  constexpr uint32_t index() const { return index_; }
  constexpr bool IsSet() const { return index_ != kNone; }

  friend constexpr auto operator<=>(Id, Id) = default;

  static constexpr uint32_t kNone = 0xffffffffu;

 private:
  uint32_t index_ = kNone;
};

}  // namespace rehearse
