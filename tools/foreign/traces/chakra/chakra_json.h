// Chakra execution traces as JSON: what chakra_jsonizer prints of one (an object for its head and
// one for each node), and the older form that ASTRA-sim reads ({"workload_graph": [...]}).
#pragma once

#include <cstdint>
#include <string>

#include "tools/foreign/traces/chakra/chakra_file.h"

namespace rehearse {

enum class ChakraJson : uint8_t {
  kGroups,  // of ranks, which lie beside traces
  kTrace,
  kHostTrace,  // what PyTorch's ExecutionTraceObserver writes, which has only the host's part
};

// By how the file begins.
ChakraJson ChakraJsonOf(const std::string& path);

// As ReadChakraFile().
ChakraContents ReadChakraJson(const std::string& path, uint32_t rank, const TakeNode& take);

}  // namespace rehearse
