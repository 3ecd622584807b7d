// Who reads the output: a person at a terminal, a file or a pipe, or the launcher of ranks.
#pragma once

#include "sim/base/progress_line.h"

namespace rehearse {

// Whether text on standard output may be coloured: it goes to a terminal, not from a rank under
// mpirun or srun, TERM is not "dumb", and NO_COLOR is not set.
bool ColorsWanted();

// How wide the terminal behind the descriptor `stream` (standard output or standard error) is;
// without a terminal it is COLUMNS, and without that `otherwise`.
unsigned TerminalColumns(int stream, unsigned otherwise);

// Progress goes to standard error: in place on a terminal that can do that, otherwise line by line.
// Ranks other than 0 show nothing.
ProgressView ProgressWanted();

}  // namespace rehearse
