// A Schedule from Chakra execution traces that others wrote.
//
// Ranks with equal files share a role. A rank's nodes go onto streams as ASTRA-sim would issue them
// (tools/foreign/traces/chakra/chakra_issue.h): compute, CPU, memory and storage, one for each
// group of collectives, and one for each peer and direction of messages. Messages are buffered, as
// there: a send does not wait until its receive is reached. What was measured keeps its time;
// compute without a time becomes a product of square matrices with as many operations. Collectives
// and messages take the time that the simulation gives them; gathers and scatters are all-to-alls
// in which only the root gives or takes. Storage, batches and checkpoints take as long as they
// took. Those without a time, nodes that only describe, and what a host says of communication
// without saying which, are left out: whatever waits for them waits for what they wait for.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "sim/schedule/schedule.h"
#include "tools/foreign/traces/chakra/chakra_file.h"

namespace rehearse {

struct ChakraTrace {
  std::string file;
  uint32_t rank = 0;  // the first that has it
  ChakraContents contents;
  std::deque<ChakraNode> nodes;  // of traces that others wrote; there may be millions
  std::string ops;  // of those that Rehearse wrote: once per role, from its first trace
};

struct ChakraTraces {
  std::string name;
  std::vector<ChakraTrace> traces;      // the distinct ones
  std::vector<uint32_t> trace_of_rank;  // position in `traces`
  std::string groups;                   // file of the groups; "": none
};

// Checked. Throws Error with rank, node and offset for nodes of unknown types, cycles, unknown
// groups, and collectives and messages whose ranks do not agree. Appends to `remarks`.
Schedule ScheduleOfForeign(const ChakraTraces& traces, std::vector<std::string>* remarks);

}  // namespace rehearse
