// --trace: the form in which a step's trace is written.
#pragma once

#include <string>
#include <vector>

#include "sim/base/output_file.h"
#include "sim/report/trace.h"
#include "tools/command.h"

namespace rehearse {

void AddTraceOption(CommandSyntax* syntax);

// Whether Kineto's form is asked for. Throws Error for an unknown form, and if there is no folder
// to write the trace to.
bool WantsKineto(const boost::program_options::variables_map& values);

// Writes into the folder "kineto" in `folder`, one file for each of these ranks, or for all if none
// are named.
void AddKinetoTraces(const Schedule& schedule, const Timeline& timeline, const TraceNames& names,
                     const std::vector<uint32_t>& ranks, const std::string& folder,
                     OutputSet* files);

}  // namespace rehearse
