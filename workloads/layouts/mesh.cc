#include "workloads/layouts/mesh.h"

#include <algorithm>

#include "sim/base/error.h"

namespace rehearse {

DeviceMesh::DeviceMesh(std::vector<MeshAxis> axes) : axes_(std::move(axes)) {
  for (size_t i = 0; i < axes_.size(); ++i) {
    CHECK_GE(axes_[i].size, 1u);
    for (size_t j = 0; j < i; ++j) CHECK_NE(axes_[i].name, axes_[j].name);
    strides_.push_back(size_);
    size_ *= axes_[i].size;
  }
}

Communicator DeviceMesh::AlongAxis(uint32_t axis) const {
  return AlongAxes({axis}, axes_[axis].name);
}

Communicator DeviceMesh::AlongAxes(const std::vector<uint32_t>& axes,
                                   const std::string& name) const {
  std::vector<StridedAxis> members;
  for (const uint32_t axis : axes) members.push_back({axes_[axis].size, strides_[axis]});
  std::vector<StridedAxis> groups;
  for (uint32_t axis = 0; axis < axes_.size(); ++axis) {
    if (std::find(axes.begin(), axes.end(), axis) == axes.end()) {
      groups.push_back({axes_[axis].size, strides_[axis]});
    }
  }
  return Communicator::Strided(name, std::move(members), std::move(groups));
}

}  // namespace rehearse
