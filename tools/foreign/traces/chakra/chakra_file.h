// One Chakra execution trace (tools/foreign/traces/chakra/chakra_format.h), node by node.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace rehearse {

struct ChakraNode {
  uint64_t id = 0;
  uint64_t offset = 0;  // of its message in the file
  std::string name;     // as it may be shown
  uint32_t type = 0;
  std::vector<uint64_t> before;  // control and data dependencies
  uint64_t microseconds = 0;     // 0: not measured
  bool is_cpu_op = false;
  bool has_storage = false;  // says what it does with a file, a page or a block
  // Not negative, where they are given.
  std::optional<double> num_ops;
  std::optional<double> tensor_size;
  std::optional<double> comm_type;
  std::optional<double> comm_size;
  std::optional<double> comm_source;
  std::optional<double> comm_target;
  std::optional<double> comm_tag;
  std::string group;              // pg_name; "": all ranks
  std::optional<std::string> op;  // of traces that Rehearse wrote
};

// What precedes the nodes; all but the version only in traces that Rehearse wrote.
struct ChakraHeader {
  std::string version;
  std::optional<std::string> schedule;
  std::string role;
  uint64_t place = 0;
  uint64_t roles = 0;
  uint64_t ranks = 0;
  uint64_t nodes = 0;
};

// What PyTorch notes of its groups of ranks (tools/foreign/traces/chakra/chakra_groups.h), as it
// stands there.
struct ChakraNote {
  uint64_t node = 0;
  uint64_t offset = 0;
  std::string text;
};

struct ChakraContents {
  ChakraHeader header;
  std::vector<ChakraNote> groups;
  uint64_t fingerprint = 0;       // of all bytes
  std::set<std::string> unknown;  // attributes of nodes that were not understood
};

using TakeNode = std::function<void(const ChakraHeader& header, ChakraNode&& node)>;

// Reads the file once, in pieces, and hands over its nodes in their order. Throws Error, naming the
// file, the rank, the node and where its message begins, for a file that is truncated or not a
// Chakra trace.
ChakraContents ReadChakraFile(const std::string& path, uint32_t rank, const TakeNode& take);

// "step.3.et: rank 3, node 17 at byte 4711"
std::string ChakraPlace(const std::string& path, uint32_t rank, uint64_t node, uint64_t offset);

}  // namespace rehearse
