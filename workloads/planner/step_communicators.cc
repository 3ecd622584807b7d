#include "workloads/planner/step_communicators.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace rehearse {
namespace {

constexpr const char* kStagesAxis = "stages";

// "data+context"; parts of an axis go by its name if all of them are there.
std::string NameOf(const DeviceMesh& mesh, const std::vector<uint32_t>& axes) {
  const auto parts_in = [&](const auto& all, const std::string& of, const auto& axis_of) {
    return std::count_if(all.begin(), all.end(),
                         [&](const auto& one) { return axis_of(one).part_of == of; });
  };
  std::vector<std::string> names;
  for (const uint32_t index : axes) {
    const MeshAxis& axis = mesh.axes()[index];
    const std::string& of = axis.part_of;
    const bool has_all =
        !of.empty() &&
        parts_in(axes, of, [&](uint32_t i) -> const MeshAxis& { return mesh.axes()[i]; }) ==
            parts_in(mesh.axes(), of, [](const MeshAxis& i) -> const MeshAxis& { return i; });
    const std::string& name = has_all ? of : axis.name;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return fmt::format("{}", fmt::join(names, "+"));
}

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
                                     const std::vector<uint32_t>& whole_model,
                                     const StagePlaces& places, const Place& place)
    : mesh_(mesh),
      pipeline_ranks_(places.ranks),
      sends_gradients_apart_(places.ranks > 1 && places.HasSeveralOnARank()),
      whole_(WithStages(mesh, places.ranks, place)) {
  const auto axes = static_cast<uint32_t>(mesh.axes().size());
  for (uint32_t axis = 0; axis < axes; ++axis) communicators_.push_back(whole_.AlongAxis(axis));
  std::vector<uint32_t> model = whole_model;
  if (pipeline_ranks_ > 1) model.push_back(axes);
  communicators_.push_back(whole_.AlongAxes(model, "model"));
  if (pipeline_ranks_ > 1) communicators_.push_back(whole_.AlongAxis(axes));
  if (sends_gradients_apart_) {
    communicators_.push_back(whole_.AlongAxes({axes}, "stages, gradients"));
  }
}

CommunicatorId StepCommunicators::model() const {
  return CommunicatorId(static_cast<uint32_t>(mesh_.axes().size()));
}

CommunicatorId StepCommunicators::OfValues() const {
  CHECK_GT(pipeline_ranks_, 1u);
  return CommunicatorId(static_cast<uint32_t>(mesh_.axes().size()) + 1);
}

CommunicatorId StepCommunicators::OfGradients() const {
  if (!sends_gradients_apart_) return OfValues();
  return CommunicatorId(static_cast<uint32_t>(mesh_.axes().size()) + 2);
}

CommunicatorId StepCommunicators::Along(const std::vector<uint32_t>& axes) {
  CHECK(!axes.empty());
  if (axes.size() == 1) return CommunicatorId(axes.front());
  const CommunicatorId next(static_cast<uint32_t>(communicators_.size()));
  const auto [it, is_new] = of_axes_.emplace(axes, next);
  if (is_new) {
    communicators_.push_back(whole_.AlongAxes({axes.rbegin(), axes.rend()}, NameOf(mesh_, axes)));
  }
  return it->second;
}

CommunicatorId StepCommunicators::Named(const std::vector<uint32_t>& axes,
                                        const std::string& name) {
  CHECK(!axes.empty());
  const CommunicatorId next(static_cast<uint32_t>(communicators_.size()));
  const auto [it, is_new] = named_.emplace(name, next);
  if (is_new) communicators_.push_back(whole_.AlongAxes({axes.rbegin(), axes.rend()}, name));
  return it->second;
}

CommunicatorId StepCommunicators::OfHost() {
  constexpr const char* kName = "host";
  const CommunicatorId next(static_cast<uint32_t>(communicators_.size()));
  const auto [it, is_new] = named_.emplace(kName, next);
  if (is_new) communicators_.push_back(Communicator::Strided(kName, {}, {{whole_.size(), 1}}));
  return it->second;
}

CommunicatorId StepCommunicators::Pairs(uint32_t rank, uint32_t other) {
  CHECK_LT(rank, other);
  CHECK_LT(other, pipeline_ranks_);
  const CommunicatorId next(static_cast<uint32_t>(communicators_.size()));
  const auto [it, is_new] = of_pairs_.emplace(std::pair(rank, other), next);
  if (is_new) {
    std::vector<std::vector<uint32_t>> pairs;
    for (uint32_t own = 0; own < mesh_.size(); ++own) {
      pairs.push_back({rank * mesh_.size() + own, other * mesh_.size() + own});
    }
    communicators_.push_back(
        Communicator::Explicit(fmt::format("stages {} and {}", rank, other), pairs));
  }
  return it->second;
}

}  // namespace rehearse
