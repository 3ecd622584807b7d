// An op by name; all its runs (of layers, micro-batches, ranks) are one.
#pragma once

#include <compare>
#include <string>

namespace rehearse {

struct OpName {
  std::string kind;  // "forward", "attention", ..., or the communicator ("axis")
  std::string op;    // "qkv", "all-reduce qkv"

  friend auto operator<=>(const OpName&, const OpName&) = default;
};

}  // namespace rehearse
