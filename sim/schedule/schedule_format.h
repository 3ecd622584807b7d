// What the writer and the reader of rehearse.schedule.v1 must agree on: words, and what may be left
// out.
#pragma once

#include <string>
#include <vector>

#include "sim/schedule/schedule.h"

namespace rehearse {

inline constexpr const char* kScheduleSchema = "rehearse.schedule.v1";
inline constexpr const char* kScheduleSchemas = "rehearse.schedule.";

// Names of an enum's values, in their order.
const std::vector<std::string>& DTypeNames();
const std::vector<std::string>& GemmModeNames();
const std::vector<std::string>& AttentionKernelNames();
const std::vector<std::string>& CollectiveNames();
const std::vector<std::string>& PhaseNames();
const std::vector<std::string>& KernelNames();
const std::vector<std::string>& ReductionNames();
const std::vector<std::string>& StreamKindNames();
const std::vector<std::string>& BufferKindNames();

// What holds where a file says nothing.
std::string UsualStream(const Work& work, const std::vector<Communicator>& communicators);
StreamKind UsualStreamKind(const Work& work);
Flops UsualFlops(const Compute& compute);
Bytes UsualBytes(const Compute& compute);
Bytes UsualBytes(const Buffer& buffer);

}  // namespace rehearse
