// --trace: in which form a step's trace is written.
#pragma once

#include <string>
#include <vector>

#include "sim/base/output_file.h"
#include "sim/report/trace.h"
#include "tools/command.h"

namespace rehearse {

void AddTraceOption(CommandSyntax* syntax);

// Whether Kineto's is asked for. Throws Error for others than those there are, and where no folder
// is given that it could be written to.
bool WantsKineto(const boost::program_options::variables_map& values);

// Into the folder "kineto" in `folder`, one file for each of these ranks; all where none are named.
void AddKinetoTraces(const Schedule& schedule, const Timeline& timeline, const TraceNames& names,
                     const std::vector<uint32_t>& ranks, const std::string& folder,
                     OutputSet* files);

}  // namespace rehearse
