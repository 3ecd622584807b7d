// A communicator: a named family of disjoint, ordered, equally large groups of ranks, such as all
// the "depth" groups of a mesh.
//
// The usual form is strided (a set of axes of a dense mesh), whose size does not depend on the
// number of ranks; the explicit form lists the members. Immutable after construction.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/id.h"

namespace rehearse {

struct CommunicatorTag {};
using CommunicatorId = Id<CommunicatorTag>;

// One axis of a dense mesh: `extent` coordinates, neighbours `stride` ranks apart.
struct StridedAxis {
  uint32_t extent = 1;
  uint32_t stride = 1;
};

class Communicator {
 public:
  struct Position {
    uint32_t group;
    uint32_t member;
  };

  // The members of a group run over `member_axes`, the groups over `group_axes`, first axis
  // fastest. Together the axes must be those of a dense mesh (every rank below the product of all
  // extents is met exactly once); CHECKed.
  static Communicator Strided(std::string name, std::vector<StridedAxis> member_axes,
                              std::vector<StridedAxis> group_axes);
  // `groups` as listed; CHECKs that they are equally large, not empty and disjoint.
  static Communicator Explicit(std::string name, const std::vector<std::vector<uint32_t>>& groups);

  const std::string& name() const { return name_; }
  uint32_t size() const { return size_; }  // ranks per group
  uint32_t group_count() const { return group_count_; }

  // How it is kept. Strided: its axes, except those with one coordinate; explicit: the axes are
  // empty.
  bool is_strided() const { return ranks_.empty(); }
  const std::vector<StridedAxis>& member_axes() const { return member_axes_; }
  const std::vector<StridedAxis>& group_axes() const { return group_axes_; }

  uint32_t Rank(uint32_t group, uint32_t member) const;
  // Nothing if the rank is in no group.
  std::optional<Position> PositionOf(uint32_t rank) const;

 private:
  std::string name_;
  uint32_t size_ = 1;
  uint32_t group_count_ = 1;
  std::vector<StridedAxis> member_axes_;
  std::vector<StridedAxis> group_axes_;
  std::vector<uint32_t> ranks_;                               // explicit form: [group][member]
  std::vector<std::pair<uint32_t, uint32_t>> index_of_rank_;  // explicit form: sorted (rank, index)
};

}  // namespace rehearse
