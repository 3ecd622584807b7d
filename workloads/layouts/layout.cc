#include "workloads/layouts/layout.h"

#include <algorithm>

#include <fmt/format.h>

#include "sim/base/error.h"

namespace rehearse {
namespace {

// The placement of the transposed matrix.
Placement Transposed(Placement placement) {
  if (placement.kind == Placement::Kind::kSplit) placement.dimension = 1 - placement.dimension;
  return placement;
}

}  // namespace

bool IsSplit(const Placement& placement) { return placement.kind == Placement::Kind::kSplit; }
bool IsSplit(const Placement& placement, uint8_t dimension) {
  return IsSplit(placement) && placement.dimension == dimension;
}

Layout Nested(Layout layout) {
  uint8_t outside[2] = {0, 0};
  for (size_t axis = layout.size(); axis-- > 0;) {
    if (IsSplit(layout[axis])) layout[axis].level = outside[layout[axis].dimension]++;
  }
  return layout;
}

AxesOfLayout SplitAxes(const Layout& layout, uint8_t dimension) {
  AxesOfLayout axes;
  for (uint32_t axis = 0; axis < layout.size(); ++axis) {
    if (IsSplit(layout[axis], dimension)) axes.push_back(axis);
  }
  std::sort(axes.begin(), axes.end(),
            [&](uint32_t a, uint32_t b) { return layout[a].level < layout[b].level; });
  return axes;
}

AxesOfLayout PartialAxes(const Layout& layout) {
  AxesOfLayout axes;
  for (size_t axis = layout.size(); axis-- > 0;) {
    if (layout[axis] == P()) axes.push_back(static_cast<uint32_t>(axis));
  }
  return axes;
}

Layout Normalized(const Layout& layout, const std::vector<uint32_t>& axis_sizes) {
  Layout result = layout;
  for (size_t axis = 0; axis < layout.size(); ++axis) {
    if (axis_sizes[axis] == 1) result[axis] = B();
  }
  for (const uint8_t dimension : {uint8_t{0}, uint8_t{1}}) {
    uint8_t level = 0;
    for (const uint32_t axis : SplitAxes(result, dimension)) result[axis].level = level++;
  }
  return result;
}

Layout Transposed(Layout layout) {
  for (Placement& placement : layout) placement = Transposed(placement);
  return layout;
}

Layout Resolved(Layout layout) {
  std::replace(layout.begin(), layout.end(), P(), B());
  return layout;
}

uint64_t CodeOf(const Layout& layout) {
  CHECK_LE(layout.size(), kMostAxes);
  uint64_t code = 1;
  for (const Placement& placement : layout) {
    code = code << 6 | uint64_t{static_cast<uint8_t>(placement.kind)} << 4 |
           uint64_t{placement.dimension & 1u} << 3 | (placement.level & 7u);
  }
  return code;
}

std::string ToString(const Placement& placement) {
  switch (placement.kind) {
    case Placement::Kind::kSplit:
      return fmt::format("S({})", placement.dimension);
    case Placement::Kind::kBroadcast:
      return "B";
    case Placement::Kind::kPartial:
      return "P";
  }
  return "?";
}

std::string ToString(const Layout& layout) {
  std::string text = "[";
  for (size_t i = 0; i < layout.size(); ++i) {
    if (i > 0) text += ", ";
    text += ToString(layout[i]);
  }
  return text + "]";
}

std::optional<Placement> ParsePlacement(const std::string& text) {
  for (const Placement& placement : {S(0), S(1), B(), P()}) {
    if (text == ToString(placement)) return placement;
  }
  return std::nullopt;
}

uint64_t Pieces(const Layout& layout, const std::vector<uint32_t>& axis_sizes, uint8_t dimension) {
  uint64_t pieces = 1;
  for (size_t axis = 0; axis < layout.size(); ++axis) {
    if (IsSplit(layout[axis], dimension)) pieces *= axis_sizes[axis];
  }
  return pieces;
}

std::optional<Placement> MatmulRule(const Placement& x, const Placement& w) {
  if (IsSplit(x, 0) && w == B()) return x;
  if (x == B() && IsSplit(w, 1)) return w;
  if (IsSplit(x, 1) && IsSplit(w, 0) && x.level == w.level) return P();
  if (x == B() && w == B()) return B();
  return std::nullopt;
}

std::optional<MatmulPlacements> PlaceMatmul(const Placement& x, const Placement& w) {
  const std::optional<Placement> y = MatmulRule(x, w);
  if (!y) return std::nullopt;
  const Placement dy = *y == P() ? B() : *y;
  // dX = dY (m×n) · W^T (n×k), dW = X^T (k×m) · dY (m×n).
  const std::optional<Placement> dx = MatmulRule(dy, Transposed(w));
  const std::optional<Placement> dw = MatmulRule(Transposed(x), dy);
  if (!dx || !dw) return std::nullopt;
  return MatmulPlacements{*y, *dx, *dw};
}

std::optional<MatmulResult> PlaceMatmul(const Layout& x, const Layout& w) {
  MatmulResult result;
  for (size_t axis = 0; axis < x.size(); ++axis) {
    const std::optional<MatmulPlacements> placements = PlaceMatmul(x[axis], w[axis]);
    if (!placements) return std::nullopt;
    result.y.push_back(placements->y);
    result.dx.push_back(placements->dx);
    result.dw.push_back(placements->dw);
  }
  return result;
}

const char* Name(Move move) {
  switch (move) {
    case Move::kNone:
      return "none";
    case Move::kSlice:
      return "slice";
    case Move::kAllReduce:
      return "all-reduce";
    case Move::kReduceScatter:
      return "reduce-scatter";
    case Move::kAllGather:
      return "all-gather";
    case Move::kAllToAll:
      return "all-to-all";
  }
  return "?";
}

std::optional<Redistribution> Redistribute(const Placement& from, const Placement& to) {
  using Kind = Placement::Kind;
  if (from == to) return Redistribution{};
  if (to.kind == Kind::kPartial) return std::nullopt;
  if (from.kind == Kind::kPartial) {
    if (to.kind == Kind::kBroadcast) return Redistribution{Move::kAllReduce, Move::kNone};
    return Redistribution{Move::kReduceScatter, Move::kAllGather};
  }
  if (from.kind == Kind::kBroadcast) return Redistribution{Move::kSlice, Move::kAllGather};
  if (to.kind == Kind::kBroadcast) {
    return Redistribution{Move::kAllGather, Move::kReduceScatter};
  }
  return Redistribution{Move::kAllToAll, Move::kAllToAll};
}

}  // namespace rehearse
