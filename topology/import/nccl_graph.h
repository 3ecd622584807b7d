// The rings that NCCL found inside a machine, of the file that it writes for
// NCCL_GRAPH_DUMP_FILE:
//
//   <graphs version>
//     <graph id pattern nchannels speedintra typeintra>      pattern 4 is the rings
//       <channel> <net dev/> <gpu dev/> ... <net dev/> </channel>
//
// Trees, NVLS and CollNet have graphs of their own, which are left out and said: how they stand
// follows from the machine here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "topology/import/imported_cluster.h"

namespace rehearse {

struct NcclGraphRings {
  std::vector<std::vector<uint32_t>> rings;  // devices by `dev`, in the order of the channels
  double gigabytes_per_second = 0;           // that NCCL counts on in each; 0 if it is not said
  std::vector<std::string> remarks;
};

// `file` names the text in messages. Throws Error with file and line for what is no such file, has
// no rings, or rings of different devices.
NcclGraphRings ReadNcclGraph(std::string_view text, const std::string& file);

}  // namespace rehearse
