#include "workloads/planner/step_communicators.h"

#include <fmt/format.h>

namespace rehearse {
namespace {

constexpr const char* kStagesAxis = "stages";

DeviceMesh WithStages(const DeviceMesh& mesh, uint32_t stages, const Place& place) {
  if (stages == 1) return mesh;
  std::vector<MeshAxis> axes = mesh.axes();
  for (const MeshAxis& axis : axes) {
    if (axis.name == kStagesAxis) {
      throw Error(place, fmt::format("the mesh has an axis \"{}\", which is the name of the axis "
                                     "of the pipeline's stages",
                                     kStagesAxis));
    }
  }
  axes.push_back({kStagesAxis, stages});
  return DeviceMesh(std::move(axes));
}

}  // namespace

StepCommunicators::StepCommunicators(const DeviceMesh& mesh,
                                     const std::vector<uint32_t>& whole_model, uint32_t stages,
                                     const Place& place)
    : mesh_(mesh), stages_(stages), whole_(WithStages(mesh, stages, place)) {
  const auto axes = static_cast<uint32_t>(mesh.axes().size());
  for (uint32_t axis = 0; axis < axes; ++axis) communicators_.push_back(whole_.AlongAxis(axis));
  std::vector<uint32_t> model = whole_model;
  if (stages > 1) model.push_back(axes);
  communicators_.push_back(whole_.AlongAxes(model, "model"));
  if (stages > 1) communicators_.push_back(whole_.AlongAxis(axes));
}

CommunicatorId StepCommunicators::model() const {
  return CommunicatorId(static_cast<uint32_t>(mesh_.axes().size()));
}

CommunicatorId StepCommunicators::along_stages() const {
  CHECK_GT(stages_, 1u);
  return CommunicatorId(static_cast<uint32_t>(mesh_.axes().size()) + 1);
}

CommunicatorId StepCommunicators::Along(const std::vector<uint32_t>& axes) {
  CHECK(!axes.empty());
  if (axes.size() == 1) return CommunicatorId(axes.front());
  const CommunicatorId next(static_cast<uint32_t>(communicators_.size()));
  const auto [it, is_new] = of_axes_.emplace(axes, next);
  if (is_new) {
    std::string name;
    for (const uint32_t axis : axes) name += (name.empty() ? "" : "+") + mesh_.axes()[axis].name;
    communicators_.push_back(whole_.AlongAxes({axes.rbegin(), axes.rend()}, name));
  }
  return it->second;
}

CommunicatorId StepCommunicators::Pairs(uint32_t stage, uint32_t other) {
  CHECK_LT(stage, other);
  CHECK_LT(other, stages_);
  const CommunicatorId next(static_cast<uint32_t>(communicators_.size()));
  const auto [it, is_new] = of_pairs_.emplace(std::pair(stage, other), next);
  if (is_new) {
    std::vector<std::vector<uint32_t>> pairs;
    for (uint32_t rank = 0; rank < mesh_.size(); ++rank) {
      pairs.push_back({stage * mesh_.size() + rank, other * mesh_.size() + rank});
    }
    communicators_.push_back(
        Communicator::Explicit(fmt::format("stages {} and {}", stage, other), pairs));
  }
  return it->second;
}

}  // namespace rehearse
