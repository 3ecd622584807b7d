// The communicators of a planned step, which the roles of all its stages share.
//
// A stage lies on the strategy's mesh; stages lie one after the other, so that rank r of stage s is
// s·mesh + r. Each axis has the communicator of its number, with groups in every stage; then come
// "model" (the axes of one replica of the model, over all stages), with several stages "stages"
// (the ranks with the same coordinates), and sets of axes as they are first asked for. Not
// thread-safe.
#pragma once

#include <map>
#include <vector>

#include "sim/base/error.h"
#include "sim/schedule/communicator.h"
#include "workloads/layouts/mesh.h"

namespace rehearse {

class StepCommunicators {
 public:
  // `whole_model` are the axes of one replica of the model on a stage. Throws Error at `place`
  // where the mesh has an axis of a name that stages need.
  StepCommunicators(const DeviceMesh& mesh, const std::vector<uint32_t>& whole_model,
                    uint32_t stages, const Place& place);

  const DeviceMesh& mesh() const { return mesh_; }  // of one stage
  uint32_t stages() const { return stages_; }
  const std::vector<Communicator>& all() const { return communicators_; }
  const Communicator& operator[](CommunicatorId id) const { return communicators_[id.index()]; }

  // Along these axes, the last one varying fastest.
  CommunicatorId Along(const std::vector<uint32_t>& axes);
  CommunicatorId model() const;
  CommunicatorId along_stages() const;  // member s of a group is on stage s
  // Of each rank of one stage with its counterpart on another.
  CommunicatorId Pairs(uint32_t stage, uint32_t other);

 private:
  const DeviceMesh mesh_;
  const uint32_t stages_;
  const DeviceMesh whole_;  // with the axis of the stages outermost
  std::vector<Communicator> communicators_;
  std::map<std::vector<uint32_t>, CommunicatorId> of_axes_;
  std::map<std::pair<uint32_t, uint32_t>, CommunicatorId> of_pairs_;
};

}  // namespace rehearse
