// Who reads the output: a person at a terminal, a file or a pipe, or the launcher of ranks.
#pragma once

#include "sim/base/progress_line.h"

namespace rehearse {

// Whether text on standard output may be coloured: it goes to a terminal, not from a rank under
// mpirun or srun, TERM is not "dumb", and NO_COLOR is not set.
bool ColorsWanted();

// How wide the terminal behind the descriptor `stream` (standard output or standard error) is;
// without one COLUMNS, without that `otherwise`.
unsigned TerminalColumns(int stream, unsigned otherwise);

// Progress on standard error: in place on a terminal that can do that, otherwise line by line;
// nothing from ranks other than 0.
ProgressView ProgressWanted();

}  // namespace rehearse
