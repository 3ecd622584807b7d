// The communicators of a planned step, which the roles of all its stages share.
//
// Each rank of the pipeline is a mesh as the strategy says; these lie one after the other, so that
// rank r of the p-th is p·mesh + r. The communicator with an axis's number is that axis's, with
// groups in every mesh. Then come "model" (the axes of one replica of the model, over the
// pipeline), for a pipeline "stages" (the ranks with the same coordinates), and another of these
// for gradients if ranks have several stages, so that values and gradients that go the same way do
// not meet. Sets of axes follow as they are first asked for. All parts of an axis that was cut go
// by its name. Not thread-safe.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/error.h"
#include "sim/schedule/communicator.h"
#include "workloads/layouts/mesh.h"
#include "workloads/planner/actions.h"

namespace rehearse {

class StepCommunicators {
 public:
  // `whole_model` are the axes of one replica of the model on a stage. Throws Error at `place` if
  // the mesh has an axis with a name that stages need.
  StepCommunicators(const DeviceMesh& mesh, const std::vector<uint32_t>& whole_model,
                    const StagePlaces& places, const Place& place);

  const DeviceMesh& mesh() const { return mesh_; }  // of one stage
  uint32_t pipeline_ranks() const { return pipeline_ranks_; }
  const std::vector<Communicator>& all() const { return communicators_; }
  const Communicator& operator[](CommunicatorId id) const { return communicators_[id.index()]; }

  // Along these axes, the last one varying fastest.
  CommunicatorId Along(const std::vector<uint32_t>& axes);
  // The same ranks by another name, separate from their other communicators.
  CommunicatorId Named(const std::vector<uint32_t>& axes, const std::string& name);
  CommunicatorId model() const;
  // Member p of a group is on rank p of the pipeline.
  CommunicatorId OfValues() const;
  CommunicatorId OfGradients() const;
  // Each rank alone with its host.
  CommunicatorId OfHost();
  // Pairs each rank of one mesh with its counterpart on another, `rank` being the lower one.
  CommunicatorId Pairs(uint32_t rank, uint32_t other);

 private:
  const DeviceMesh mesh_;
  const uint32_t pipeline_ranks_;
  const bool sends_gradients_apart_;
  const DeviceMesh whole_;  // with the axis of the pipeline outermost
  std::vector<Communicator> communicators_;
  std::map<std::vector<uint32_t>, CommunicatorId> of_axes_;
  std::map<std::string, CommunicatorId> named_;
  std::map<std::pair<uint32_t, uint32_t>, CommunicatorId> of_pairs_;
};

}  // namespace rehearse
