// The SQLite export of Nsight Systems (nsys export --type sqlite) as traces like those of PyTorch's
// profiler (tools/foreign/traces/kineto/kineto_file.h): one for each process and device, in their
// order.
//
//   StringIds                       names
//   CUPTI_ACTIVITY_KIND_KERNEL      kernels; _MEMCPY and _MEMSET: copies and fills
//   CUPTI_ACTIVITY_KIND_RUNTIME     launches, by process and correlation
//   NVTX_EVENTS                     ranges: "step 7", "iteration_12", "ProfilerStep#3" are steps;
//                                   "ncclAllReduce": tools/foreign/traces/nsys/nsys_nccl.h
//   TARGET_INFO_SESSION_START_TIME  when the file's clock began
//
// All but the first two may be missing. Where NCCL noted nothing, it is not known which rank a
// process is, nor how large collectives are: ranks are numbered in the order of the files, then of
// the devices, and a collective's kind is taken from its kernel's name.
#pragma once

#include <string>
#include <vector>

#include "tools/foreign/traces/kineto/kineto_file.h"

namespace rehearse {

// Without ranks. Throws Error, naming the file, for a file that is not such an export, and for
// events that end before they begin.
std::vector<KinetoTrace> ReadNsys(const std::string& path, const KinetoOptions& options = {});

}  // namespace rehearse
