// What a picture colours a span by: compute by what it is for, communication by its axis.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "sim/schedule/schedule.h"

namespace rehearse {

// Whether an op of the backward pass makes the gradient of a matrix, which the planner's names and
// those of papers call dW ("qkv dW").
bool IsWeightGradient(std::string_view name, Phase phase);

struct SpanClass {
  std::string name;  // for the legend
  std::string fill;  // "#2f6fb7"
  std::string ink;   // for text on it
  bool communication = false;
};

// The classes of a schedule: those of compute, then one for each communicator. Cool colours
// compute, warm ones communicate. A purpose of axes has the same colour in every picture ("data" is
// gold whatever the strategy); axes with other names take the remaining colours, in order.
class SpanClasses {
 public:
  explicit SpanClasses(const Schedule& schedule);
  explicit SpanClasses(const std::vector<std::string>& axes);  // names of communicators

  const std::vector<SpanClass>& all() const { return all_; }
  // Positions in all().
  size_t Of(const Op& op) const;
  static size_t OfCompute(ComputeKind kind, Phase phase, bool is_weight_gradient = false);
  static size_t OfAxis(size_t communicator);

 private:
  std::vector<SpanClass> all_;
};

}  // namespace rehearse
