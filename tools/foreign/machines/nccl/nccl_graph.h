// The rings that NCCL found inside a machine, from the file that it writes for
// NCCL_GRAPH_DUMP_FILE:
//
//   <graphs version>
//     <graph id pattern nchannels speedintra typeintra>      pattern 4 is the rings
//       <channel> <net dev/> <gpu dev/> ... <net dev/> </channel>
//
// Trees, NVLS and CollNet have graphs of their own, which are left out with a remark: here their
// shape follows from the machine.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/foreign/machines/imported_cluster.h"

namespace rehearse {

struct NcclGraphRings {
  std::vector<std::vector<uint32_t>> rings;  // devices by `dev`, in the order of the channels
  double gigabytes_per_second = 0;           // that NCCL counts on for each; 0 if it is not given
  std::vector<std::string> remarks;
};

// `file` names the text in messages. Throws Error with file and line for text that is not such a
// file, has no rings, or has rings of different devices.
NcclGraphRings ReadNcclGraph(std::string_view text, const std::string& file);

}  // namespace rehearse
