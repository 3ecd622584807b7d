// Whom the program talks to: a person at a terminal, a file or a pipe, or the launcher of ranks.
#pragma once

#include "sim/base/progress_line.h"

namespace rehearse {

// Whether text on standard output may be coloured: a terminal that is no rank's under mpirun or
// srun, TERM is not "dumb", and NO_COLOR is not set.
bool ColorsWanted();

// How wide the terminal is: that of standard output or standard error (a descriptor), else COLUMNS,
// else `otherwise`.
unsigned TerminalColumns(int stream, unsigned otherwise);

// Progress on standard error: in place on a terminal that can, else by the line; nothing from
// ranks other than 0.
ProgressView ProgressWanted();

}  // namespace rehearse
