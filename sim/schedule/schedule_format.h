// What the writer and the reader of rehearse.schedule.v1 must agree on: words, and what may be left
// out.
#pragma once

#include <string>
#include <vector>

#include "sim/base/value_names.h"
#include "sim/schedule/schedule.h"

namespace rehearse {

inline constexpr const char* kScheduleSchema = "rehearse.schedule.v1";
inline constexpr const char* kScheduleSchemas = "rehearse.schedule.";

inline constexpr ValueName<Reduction> kReductionNames[] = {{"sum", Reduction::kSum},
                                                           {"maximum", Reduction::kMaximum}};
inline constexpr ValueName<StreamKind> kStreamKindNames[] = {
    {"compute", StreamKind::kCompute}, {"communication", StreamKind::kCommunication}};
inline constexpr ValueName<BufferKind> kBufferKindNames[] = {
    {"parameter", BufferKind::kParameter},
    {"gradient", BufferKind::kGradient},
    {"optimizer", BufferKind::kOptimizer},
    {"activation", BufferKind::kActivation},
    {"buffer", BufferKind::kBuffer}};

// What holds where a file says nothing.
std::string UsualStream(const Work& work, const std::vector<Communicator>& communicators);
StreamKind UsualStreamKind(const Work& work);
Flops UsualFlops(const Compute& compute);
Bytes UsualBytes(const Compute& compute);
Bytes UsualBytes(const Buffer& buffer);

}  // namespace rehearse
