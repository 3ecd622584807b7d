// A Timeline as traces of PyTorch's profiler (Kineto), one per rank, for Holistic Trace Analysis
// and other readers of such traces.
//
// An op is a kernel on its stream, from when it began to run: for a collective when the last rank
// had arrived, so that the overlap of communication with compute and the breakdown into computing,
// communicating and idle are those that Rehearse reports. Communication is named as NCCL names its
// kernels, which is how readers know it, and has PyTorch's arguments; each kernel has a launch on
// the host, with the same correlation. Times have six decimals, to the picosecond; what such a
// trace has no word for is in arguments that begin with "rehearse", so that `rehearse import
// kineto` gives the same Timeline back.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sim/engine/timeline.h"
#include "sim/report/trace.h"
#include "sim/schedule/schedule.h"

namespace rehearse {

// "rank_3.json.gz"
std::string KinetoFileName(uint32_t rank);

// The rank's file, gzipped. Every rank has one, also in folded timelines. Waits on the compute
// stream, which occupy nothing, are copies of zero bytes.
std::string KinetoTraceOf(const Schedule& schedule, const Timeline& timeline,
                          const TraceNames& names, uint32_t rank);

}  // namespace rehearse
