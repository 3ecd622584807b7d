// A device mesh: named axes with sizes, and how ranks lie on them.
//
// Ranks nest with the first axis innermost: rank = sum coordinate_i · stride_i, stride_0 = 1 and
// stride_{i+1} = stride_i · size_i. Every axis, and every set of axes, yields a communicator whose
// groups are the ranks that differ only in those coordinates. Immutable.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/schedule/communicator.h"

namespace rehearse {

struct MeshAxis {
  std::string name;
  uint32_t size = 1;
  // The axis that this and others are parts of, if a strategy has cut one; otherwise it is empty.
  std::string part_of = {};
};

class DeviceMesh {
 public:
  // CHECKs that names are unique and sizes positive.
  explicit DeviceMesh(std::vector<MeshAxis> axes);

  const std::vector<MeshAxis>& axes() const { return axes_; }
  uint32_t size() const { return size_; }  // number of ranks
  uint32_t AxisSize(uint32_t axis) const { return axes_[axis].size; }
  uint32_t Stride(uint32_t axis) const { return strides_[axis]; }

  // The communicator of one axis, named like it.
  Communicator AlongAxis(uint32_t axis) const;
  // The communicator of several axes together; members run with the first of `axes` fastest.
  Communicator AlongAxes(const std::vector<uint32_t>& axes, const std::string& name) const;

 private:
  std::vector<MeshAxis> axes_;
  std::vector<uint32_t> strides_;
  uint32_t size_ = 1;
};

}  // namespace rehearse
