// Why a collective takes as long as it does: what was chosen from what, which rings or trees it
// uses, and which link binds.
#pragma once

#include <string>

#include "collectives/lowering/trial.h"
#include "collectives/lowering/tuning.h"
#include "tools/output_format.h"

namespace rehearse {

// Explains the trial's first group. The text ends with a newline.
std::string ExplainCollective(const Trial& trial, Bytes bytes, Router& router,
                              ChannelFinder& finder, Tuner& tuner, OutputFormat format);

}  // namespace rehearse
