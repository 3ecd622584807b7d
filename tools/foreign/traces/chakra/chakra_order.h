// In which order a trace's nodes go, so that each comes after what it depends on.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/foreign/traces/chakra/chakra_foreign.h"

namespace rehearse {

// Throws Error with the rank (the trace's first, if none is given), the node and its offset.
[[noreturn]] void FailAtNode(const ChakraTrace& trace, const KeptNode& node,
                             const std::string& what, std::optional<uint32_t> rank = {});

// Positions of nodes. There may be millions, so the dependencies of all lie one after the other.
struct NodeOrder {
  std::vector<uint32_t> order;
  std::vector<uint32_t> begins = {0};  // where those of a node begin in `before`, and one more
  std::vector<uint32_t> before;
  uint64_t missing = 0;  // dependencies on nodes that are not there, or on the node itself

  std::span<const uint32_t> Before(uint32_t node) const {
    return {before.data() + begins[node], begins[size_t{node} + 1] - begins[node]};
  }
};

// The lowest number first among nodes whose dependencies are there. Dependencies on missing nodes
// and of a node on itself, which converters leave behind, are left out. Throws Error for cycles,
// and where two nodes have one number.
NodeOrder OrderOf(const ChakraTrace& trace);

}  // namespace rehearse
