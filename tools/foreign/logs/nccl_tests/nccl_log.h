// Reads nccl-tests' tables; one log may hold several.
//
// The output of all_reduce_perf and its siblings, of any version that names its columns, with
// whatever a launcher or NCCL printed around it, in front of its lines ("[1,0]<stdout>:", "0: ") or
// in the middle of a row; and tables with commas whose first line names columns
// (tools/foreign/logs/nccl_tests/nccl_columns.h). The out-of-place figures are used, which people
// quote, rather than the in-place ones; each program's output in a log is a separate table.
//
// The collective is that of the program named in the text, or follows from the columns. With
//   r = size / (count x size of type),
// which is 1 or the number of ranks p, as nccl-tests counts what one rank gives or gets:
//   a reduction, no root      r = 1 all-reduce, r = p reduce-scatter
//   a reduction and a root    reduce
//   none, and a root          r = 1 broadcast
//   none, and no root         r = 1 send-receive; r = p all-gather or all-to-all: the former if
//                             there is no column for reductions (before 2.9) or in-place results
//                             were checked, the latter if the column is blank (before 2.9) or only
//                             out-of-place results were checked
// r = p also gives the number of ranks if no line does.
//
// If no unit of time is named, it is the one with which size / time is nearest to algbw, or us
// without an algbw.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "real/calibration/nccl_table.h"

namespace rehearse {

struct NcclLog {
  std::vector<NcclTable> tables;     // at least one
  std::vector<std::string> remarks;  // what was left out, and where
};

// Whether the text looks like such a log: it names the columns.
bool LooksLikeNcclLog(std::string_view text);

// `kind` and `ranks`, if given, come from the user. Ranks override the text. So does the kind,
// unless there are several tables: then those with another kind in the text are left out, and so
// are those without one if the user gives none either. Tables of what is not simulated
// (gather_perf, scatter_perf) are left out. Throws Error (file, line) for columns or numbers that
// are missing or make no sense, if a time would have to come from a bus bandwidth but kind or ranks
// are not known, and if no table is left.
NcclLog ReadNcclLog(std::string_view text, const std::string& file,
                    std::optional<CollectiveKind> kind, std::optional<uint32_t> ranks);

}  // namespace rehearse
