// What a picture colours a span by: compute by what it is for, communication by its axis.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sim/schedule/schedule.h"

namespace rehearse {

struct SpanClass {
  std::string name;  // for the legend
  std::string fill;  // "#2f6fb7"
  std::string ink;   // for text on it
  bool communication = false;
};

// The classes of a schedule: those of compute, then one for each communicator. Cool colours
// compute, warm ones communicate; axes beyond the eighth begin again with the first one's colour.
class SpanClasses {
 public:
  explicit SpanClasses(const Schedule& schedule);

  const std::vector<SpanClass>& all() const { return all_; }
  size_t Of(const Op& op) const;  // position in all()

 private:
  std::vector<SpanClass> all_;
};

}  // namespace rehearse
