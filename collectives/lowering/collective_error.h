// A collective that cannot run as requested: whoever knows where it was requested can say so.
#pragma once

#include <string>
#include <utility>

#include "sim/base/error.h"
#include "sim/schedule/schedule.h"

namespace rehearse {

class CollectiveError : public Error {
 public:
  // `axis` is the name of its communicator.
  CollectiveError(Collective collective, std::string axis, const std::string& message)
      : Error(message), collective_(std::move(collective)), axis_(std::move(axis)) {}

  const Collective& collective() const { return collective_; }
  const std::string& axis() const { return axis_; }

 private:
  Collective collective_;
  std::string axis_;
};

}  // namespace rehearse
