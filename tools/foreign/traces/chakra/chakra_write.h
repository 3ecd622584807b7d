// A Schedule as Chakra execution traces, one file per rank
// (tools/foreign/traces/chakra/chakra_format.h).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sim/schedule/schedule.h"
#include "sim/schedule/schedule_json.h"

namespace rehearse {

// What the ranks run on.
struct ChakraDevices {
  std::vector<uint32_t> kind_of_rank;  // ranks of one number have equal devices
  // How long a compute op takes on the rank's device.
  std::function<Seconds(uint32_t rank, const Op& op)> time;
};

struct ChakraFiles {
  std::string groups;     // name of the comm-group JSON
  uint32_t ranks = 0;     // as many as there are traces
  uint32_t distinct = 0;  // the others are hard links to these, where the file system has them
  uint64_t nodes = 0;     // of the distinct ones
  Seconds drift;  // at most: how much longer a rank computes for readers of whole microseconds
};

// Writes NAME.RANK.et and NAME.comm_groups.json, NAME being the title's, into a folder that is new
// or empty. Every position is a node: compute, a collective, or a send or receive; the collective
// send-receive is a send and a receive. A node depends on the op before it on its stream and on
// what its op is after. Throws Error, and leaves none of the files, when one cannot be written, or
// when the folder has other files.
ChakraFiles WriteChakra(const Schedule& schedule, const ScheduleTitle& title,
                        const ChakraDevices& devices, const std::string& folder);

}  // namespace rehearse
