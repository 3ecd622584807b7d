// A mistake in one op of a schedule: whoever read the schedule from a file can say where it is.
#pragma once

#include <cstdint>
#include <string>

#include "sim/base/error.h"

namespace rehearse {

class OpError : public Error {
 public:
  // `op` is a position in the role that was checked. The message already names both.
  OpError(uint32_t role, uint32_t op, const std::string& message)
      : Error(message), role_(role), op_(op) {}

  uint32_t role() const { return role_; }
  uint32_t op() const { return op_; }

 private:
  uint32_t role_;
  uint32_t op_;
};

}  // namespace rehearse
