#include "workloads/layout.h"

#include <fmt/format.h>

namespace rehearse {
namespace {

// The placement of the transposed matrix.
Placement Transposed(Placement placement) {
  if (placement.kind == Placement::Kind::kSplit) placement.dimension = 1 - placement.dimension;
  return placement;
}

}  // namespace

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

uint64_t Pieces(const Layout& layout, const std::vector<uint32_t>& axis_sizes, uint8_t dimension) {
  uint64_t pieces = 1;
  for (size_t axis = 0; axis < layout.size(); ++axis) {
    if (layout[axis] == S(dimension)) pieces *= axis_sizes[axis];
  }
  return pieces;
}

std::optional<Placement> MatmulRule(const Placement& x, const Placement& w) {
  if (x == S(0) && w == B()) return S(0);
  if (x == B() && w == S(1)) return S(1);
  if (x == S(1) && w == S(0)) return P();
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
