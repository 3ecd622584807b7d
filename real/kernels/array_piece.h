// Where a rank's piece of an array is in the global array: the Region of sim/schedule/schedule.h,
// for one rank.
//
// The block is rows [row, row + rows) and columns [column, column + columns) of a global_rows ×
// global_columns array. A flat piece holds the elements [first, first + count) of that block,
// counted row by row; elements of the piece beyond the block are padding.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/schedule/schedule.h"

namespace rehearse {

struct ArrayPiece {
  uint64_t global_rows = 0;
  uint64_t global_columns = 0;
  uint64_t row = 0;
  uint64_t column = 0;
  uint64_t rows = 0;
  uint64_t columns = 0;
  bool flat = false;
  uint64_t first = 0;  // 0 and all of the block unless flat
  uint64_t count = 0;
  SequenceOrder order = {};  // of the global rows

  // The number of the index-th row of the block, with sequences one after the other.
  uint64_t RowOf(uint64_t index) const { return order.InSequences(row + index); }

  // The position of the piece's index-th element, row by row; nothing for padding.
  struct Position {
    uint64_t row;
    uint64_t column;
  };
  std::optional<Position> PositionOf(uint64_t index) const;

  friend bool operator==(const ArrayPiece&, const ArrayPiece&) = default;
};

// Throws Error if an extent is not cut into equal blocks or the rank is in none of the groups that
// cut it.
ArrayPiece PlaceRegion(const Schedule& schedule, const Region& region, uint32_t rank);

// The rank's position among all pieces that these communicators cut, outermost first, and their
// number.
struct PlaceAmong {
  uint64_t index = 0;
  uint64_t count = 1;
};
PlaceAmong PlaceAmongPieces(const Schedule& schedule, const std::vector<CommunicatorId>& cut_by,
                            uint32_t rank);

}  // namespace rehearse
