// Reading nccl-tests' tables: one log may hold several.
//
// The output of all_reduce_perf and its siblings, of any version that names its columns, with
// whatever a launcher or NCCL printed around it, in front of its lines ("[1,0]<stdout>:", "0: ") or
// in the middle of a row; and tables with commas whose first line names columns
// (real/calibration/nccl_columns.h). Of out-of-place and in-place figures the first are taken, as
// nccl-tests' users quote them; of tables of one program after another each is one of its own.
//
// The collective is that of the program that the text names, or follows from the columns. With
//   r = size / (count x size of type),
// 1 or the number of ranks p, as nccl-tests counts what one rank gives or gets:
//   a reduction, no root      r = 1 all-reduce, r = p reduce-scatter
//   a reduction and a root    reduce
//   none, and a root          r = 1 broadcast
//   none, and no root         r = 1 send-receive; r = p all-gather or all-to-all: it is the former
//                             where there is no column for reductions (before 2.9), or where
//                             in-place results were checked, the latter where the column is blank
//                             (before 2.9) or only out-of-place results were
// r = p tells the ranks, too, where no line does.
//
// A unit of time that is not named is that with which size / time is nearest to algbw; us without
// one.
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

// `kind` and `ranks`, where given, are what the user says. Ranks override the text. So does the
// kind, unless there are several tables: then those of which the text tells another are left out,
// and those of which it tells none where the user says none either. Tables of what is not simulated
// (gather_perf, scatter_perf) are left out. Throws Error (file,
// line) for columns or numbers that are missing or make no sense, when a time can only be had from
// a bus bandwidth but kind or ranks are not known, and when no table is left.
NcclLog ReadNcclLog(std::string_view text, const std::string& file,
                    std::optional<CollectiveKind> kind, std::optional<uint32_t> ranks);

}  // namespace rehearse
