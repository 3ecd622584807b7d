// Which ranks the groups of Chakra traces have: from the JSON beside them, as ASTRA-sim reads it,
// or from what PyTorch notes in a trace itself.
//
// PyTorch notes its groups in a node "## process_group:init ##", whose inputs are a text of JSON:
//   [{"pg_name": "3", "ranks": [0, 2], "group_size": 2, ...}, ...]
// quoted by whoever converted the trace, once or not at all. A group without ranks has all of them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tools/foreign/traces/chakra/chakra_file.h"

namespace rehearse {

using ChakraGroups = std::map<std::string, std::vector<uint32_t>>;

// {"0": [0, 1], ...}; none where `file` is "". Throws Error when it is something else.
ChakraGroups ReadChakraGroups(const std::string& file, uint32_t ranks);

// What a trace notes of one group: its ranks as far as they are listed, and how many there are, 0
// if it does not say.
struct NotedGroup {
  std::vector<uint64_t> ranks;
  uint64_t size = 0;
};
using NotedGroups = std::map<std::string, NotedGroup>;

// `place` stands for the file in messages. Throws Error for a note that cannot be read.
NotedGroups ReadNotedGroups(const ChakraNote& note, const std::string& place);

// The members of a group among `ranks` ranks. Throws Error for groups that are not whole.
std::vector<uint32_t> MembersOfNoted(const NotedGroup& group, uint32_t ranks);

}  // namespace rehearse
