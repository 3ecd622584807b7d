// Files of a command line that must not be one: what is written in place of what is read would
// destroy it, and of two outputs in one place only the second would be left.
#pragma once

#include "tools/command.h"

namespace rehearse {

// Throws Error where an output is a file that the command reads, or another of its outputs. Two
// that are printed would run into each other, too. Devices and pipes may be given twice. Files that
// a scenario or a study names are not looked at.
void CheckThatFilesDiffer(const CommandSyntax& syntax,
                          const boost::program_options::variables_map& values);

}  // namespace rehearse
