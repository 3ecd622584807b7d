// The arrays of a rank's parameters that are there all the time: parameters, gradients, and what
// the optimizer reads and writes. They are made before the step begins, and are what they are from
// then on.
//
// Vectors (biases, norms) lie one after the other in one buffer for each set of axes over which
// their gradients are summed, so that one collective serves them all.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "workloads/planner/parameter_places.h"
#include "workloads/planner/plan_builder.h"

namespace rehearse {

// A matrix that is tied to another of the rank has only that one's parameter and whole.
struct MatrixArrays {
  BufferId parameter;        // the share of stage 3, else the block
  BufferId whole;            // as ops that read it see it: the same, or a view
  BufferId near_share;       // what the backward pass gathers from, if not from the parameter
  BufferId narrow;           // copies for narrow products, unless they are made of what is gathered
  BufferId main_gradient;    // the share of stages 2 and 3, else the block
  BufferId update_gradient;  // what Adam reads: that, or the summed share of stage 1
  BufferId update_share;  // what Adam writes: the parameter, or the share of it of stages 1 and 2
  BufferId block;         // where its gradients are made, if that block is shared
  // If the optimizer is on the host: what it reads and writes there. The second is the parameter if
  // that is there, too; where gradients are summed there, the device has none.
  BufferId host_gradient;
  BufferId host_share;
};

struct VectorArrays {
  Layout layout;  // of a matrix of one row
  BufferId value;
  BufferId gradient;
};

// Vectors whose gradients are summed over the same axes. Kernels also make gradients of frozen
// ones, for backends; nothing is done with them.
struct VectorGroup {
  std::vector<uint32_t> sum_axes;
  bool is_frozen = false;
  std::vector<uint32_t> vectors;
  uint64_t elements = 0;
  BufferId value;
  BufferId gradient;
  BufferId host_value;  // if the optimizer is on the host
  BufferId host_gradient;
};

class ParameterArrays {
 public:
  // `rests` are the layouts in which the values of the network's nodes rest. `places` and `plan`
  // must outlive this.
  ParameterArrays(const ParameterPlaces& places, const std::vector<Layout>& rests,
                  PlanBuilder* plan);

  const ParameterPlaces& places() const { return places_; }
  const MatrixArrays& operator[](uint32_t matrix) const { return matrices_[matrix]; }
  // A vector and its gradient, cut to fit columns that lie like the tensor's.
  const VectorArrays& Vector(uint32_t vector) const { return vectors_[vector]; }
  const std::vector<VectorGroup>& groups() const { return groups_; }

  // Of all parameters that this rank updates; and those of vectors among them.
  double update_elements() const { return update_elements_; }
  double vector_elements() const { return vector_elements_; }

  // A further array for a matrix, or for a share of it, named "WHAT MATRIX".
  BufferId Add(uint32_t matrix, const char* what, BufferKind kind, DType dtype, bool share) const;
  BufferId AddNarrowCopies(uint32_t matrix) const;

 private:
  Buffer MatrixBuffer(uint32_t index, std::string name, BufferKind kind, DType dtype,
                      bool share) const;
  void AddMatrix(uint32_t index);
  void AddGradient(uint32_t index, const std::string& name);
  void AddHostArrays(uint32_t index, const std::string& name);
  Buffer NearShare(uint32_t index) const;
  BufferId AddShareView(uint32_t index, BufferId of, std::string name, BufferKind kind,
                        DType dtype);
  BufferId AddBlock(uint32_t index);
  void AddLeftOut(size_t first, double elements);
  void GroupVectors(const Stage& stage, const std::vector<Layout>& rests);
  void AddVectors(VectorGroup* group);

  const ParameterPlaces& places_;
  PlanBuilder& plan_;
  std::vector<MatrixArrays> matrices_;
  std::vector<VectorArrays> vectors_;
  std::vector<VectorGroup> groups_;
  std::map<std::pair<uint64_t, uint64_t>, BufferId>
      blocks_;  // blocks that several matrices share, by size
  double update_elements_ = 0;
  double vector_elements_ = 0;
};

}  // namespace rehearse
