// Layouts: how a matrix lies on a mesh, which layouts multiply locally, and which collective turns
// one placement into another.
//
// A layout has one placement for each axis of the mesh: S(d) split along dimension d (0 rows, 1
// columns), B the same on all ranks of the axis, P partial sums that must still be added up. Where
// several axes split one dimension they nest: each cuts the blocks of the one outside it, and
// `level` counts from the outside. All functions are pure.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include <boost/container/static_vector.hpp>

#include "sim/base/error.h"

namespace rehearse {

struct Placement {
  enum class Kind : uint8_t { kSplit, kBroadcast, kPartial };
  Kind kind = Kind::kBroadcast;
  uint8_t dimension = 0;  // kSplit only
  uint8_t level = 0;      // kSplit only: how many axes outside this one cut this dimension

  friend bool operator==(const Placement&, const Placement&) = default;
};

inline constexpr Placement S(uint8_t dimension, uint8_t level = 0) {
  return {Placement::Kind::kSplit, dimension, level};
}
inline constexpr Placement B() { return {Placement::Kind::kBroadcast, 0, 0}; }
inline constexpr Placement P() { return {Placement::Kind::kPartial, 0, 0}; }

inline constexpr size_t kMostAxes = 10;

// One placement per axis. Planning copies layouts with every value, so they lie in place.
class Layout {
 public:
  Layout() = default;
  explicit Layout(size_t axes, Placement placement = B()) {
    for (size_t axis = 0; axis < axes; ++axis) push_back(placement);
  }
  Layout(std::initializer_list<Placement> placements) {
    for (const Placement& placement : placements) push_back(placement);
  }

  void push_back(const Placement& placement) {
    CHECK_LT(size_, kMostAxes);
    placements_[size_++] = placement;
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const Placement& operator[](size_t axis) const { return placements_[axis]; }
  Placement& operator[](size_t axis) { return placements_[axis]; }
  const Placement* begin() const { return placements_.data(); }
  const Placement* end() const { return placements_.data() + size_; }
  Placement* begin() { return placements_.data(); }
  Placement* end() { return placements_.data() + size_; }

  friend bool operator==(const Layout& a, const Layout& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  std::array<Placement, kMostAxes> placements_ = {};
  uint8_t size_ = 0;
};

bool IsSplit(const Placement& placement);
bool IsSplit(const Placement& placement, uint8_t dimension);

// Sets the levels so that a later axis lies outside an earlier one: neighbouring ranks, which
// differ in the first axis, hold neighbouring pieces. This is OneFlow's and PyTorch's order too,
// because they list the outermost axis first and a DeviceMesh the innermost.
Layout Nested(Layout layout);

using AxesOfLayout = boost::container::static_vector<uint32_t, kMostAxes>;
// The axes that split a dimension, outermost first; the axes with partial sums, last axis first.
AxesOfLayout SplitAxes(const Layout& layout, uint8_t dimension);
AxesOfLayout PartialAxes(const Layout& layout);

// Axes of size 1 become B, and levels close up, so that layouts that mean the same are equal.
Layout Normalized(const Layout& layout, const std::vector<uint32_t>& axis_sizes);

// The layout of the transposed matrix.
Layout Transposed(Layout layout);

// The layout once partial sums are added up, which has B in place of P.
Layout Resolved(Layout layout);

// One number for a layout of at most kMostAxes axes; equal layouts have equal codes.
uint64_t CodeOf(const Layout& layout);

std::string ToString(const Placement& placement);  // "S(1)", "B", "P"
std::string ToString(const Layout& layout);        // "[S(0), B, P]"
// The inverse of ToString for one placement; nothing if the text is not one.
std::optional<Placement> ParsePlacement(const std::string& text);

// How many pieces dimension `dimension` is cut into on a mesh with these axis sizes.
uint64_t Pieces(const Layout& layout, const std::vector<uint32_t>& axis_sizes, uint8_t dimension);

// Y(m×n) = X(m×k)·W(k×n) without communication, axis by axis:
//   X S(0), W B    -> Y S(0)      rows of X
//   X B,    W S(1) -> Y S(1)      columns of W
//   X S(1), W S(0) -> Y P         the summed dimension
//   X B,    W B    -> Y B
// Nothing for any other pair.
std::optional<Placement> MatmulRule(const Placement& x, const Placement& w);

// The placements of one matmul on one axis, forward and backward. dX = dY·W^T and dW = X^T·dY are
// matmuls of the same rule over transposed operands, with dY placed as Y is after its partial sums
// are added.
struct MatmulPlacements {
  Placement y;   // as the local product leaves it
  Placement dx;  // as the local product leaves it: P if dX must be all-reduced
  Placement dw;
};
std::optional<MatmulPlacements> PlaceMatmul(const Placement& x, const Placement& w);

// The same for whole layouts; nothing, too, if the axes that split k nest differently in X and W.
struct MatmulResult {
  Layout y;
  Layout dx;
  Layout dw;
};
std::optional<MatmulResult> PlaceMatmul(const Layout& x, const Layout& w);

// What turns one placement into another along one axis, forward and (for the gradient) backward.
enum class Move : uint8_t { kNone, kSlice, kAllReduce, kReduceScatter, kAllGather, kAllToAll };
const char* Name(Move move);
struct Redistribution {
  Move forward = Move::kNone;
  Move backward = Move::kNone;
};
// P->B all-reduce | none; P->S reduce-scatter | all-gather; S->B all-gather | reduce-scatter (the
// gradient of a copy is a partial sum); S(i)->S(j) all-to-all | all-to-all; B->S slice |
// all-gather; equal placements none | none. Nothing is ever turned into P, which has no value.
std::optional<Redistribution> Redistribute(const Placement& from, const Placement& to);

}  // namespace rehearse
