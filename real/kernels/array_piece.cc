#include "real/kernels/array_piece.h"

#include <algorithm>

#include <fmt/format.h>

#include "sim/base/error.h"

namespace rehearse {
namespace {

struct Cut {
  uint64_t begin;
  uint64_t size;
};

Cut CutOf(const Schedule& schedule, const Extent& extent, uint32_t rank) {
  const PlaceAmong share = PlaceAmongPieces(schedule, extent.cut_by, rank);
  if (extent.size % share.count != 0) {
    throw Error(
        fmt::format("an extent of {} is not cut into {} equal blocks", extent.size, share.count));
  }
  const uint64_t size = extent.size / share.count;
  return {share.index * size, size};
}

}  // namespace

PlaceAmong PlaceAmongPieces(const Schedule& schedule, const std::vector<CommunicatorId>& cut_by,
                            uint32_t rank) {
  PlaceAmong share;
  for (const CommunicatorId id : cut_by) {
    const Communicator& communicator = schedule.communicators.at(id.index());
    const auto position = communicator.PositionOf(rank);
    if (!position) {
      throw Error(fmt::format("rank {} holds a piece cut by \"{}\", but is in none of its groups",
                              rank, communicator.name()));
    }
    share.index = share.index * communicator.size() + position->member;
    share.count *= communicator.size();
  }
  return share;
}

ArrayPiece PlaceRegion(const Schedule& schedule, const Region& region, uint32_t rank) {
  const Cut rows = CutOf(schedule, region.rows, rank);
  const Cut columns = CutOf(schedule, region.columns, rank);
  ArrayPiece placement;
  placement.global_rows = region.rows.size;
  placement.global_columns = region.columns.size;
  placement.row = rows.begin;
  placement.rows = rows.size;
  placement.column = columns.begin;
  placement.columns = columns.size;
  placement.count = rows.size * columns.size;
  placement.order = region.order;
  if (!region.flat_by.empty()) {
    const PlaceAmong share = PlaceAmongPieces(schedule, region.flat_by, rank);
    const uint64_t elements = placement.count;
    const uint64_t run = (elements + share.count - 1) / share.count;
    placement.flat = true;
    placement.first = std::min(share.index * run, elements);
    placement.count = std::min(run, elements - placement.first);
  }
  return placement;
}

std::optional<ArrayPiece::Position> ArrayPiece::PositionOf(uint64_t index) const {
  if (index >= count) return std::nullopt;
  const uint64_t in_block = first + index;
  return Position{RowOf(in_block / columns), column + in_block % columns};
}

}  // namespace rehearse
