// nccl-tests' tables, both ways: written from our figures and read from anybody's.
//
// Read: the output of all_reduce_perf and its siblings, of any version that names its columns
// (lines that begin with # and hold "size" and "time"), with whatever a launcher printed around it;
// and tables with commas whose first line names columns (size, time, algbw, busbw, with units such
// as "size(B)", "time_us", "time(ns)"). Of out-of-place and in-place figures the first are taken,
// as nccl-tests' users quote them.
// Written: nccl-tests' own columns, so that its parsers read them; what is ours stands in comments.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/quantity.h"
#include "sim/schedule/schedule.h"

namespace rehearse {

struct NcclRow {
  Bytes bytes;
  Seconds time;
};

struct NcclTable {
  std::optional<CollectiveKind> kind;  // where the text says it
  std::optional<uint32_t> ranks;
  std::vector<NcclRow> rows;  // at least one; as the text has them
};

// How nccl-tests treats a kind.
struct NcclTest {
  CollectiveKind kind;
  const char* program;    // "all_reduce_perf"
  const char* reduction;  // as it prints it
  bool has_root;
  bool counts_a_part;  // its "count" is what one rank gives or gets
};
// Null for kinds that nccl-tests does not have (barrier).
const NcclTest* FindNcclTest(CollectiveKind kind);

// Whether the text looks like one of these tables: it names the columns.
bool LooksLikeNcclTable(std::string_view text);

// `kind` and `ranks`, where given, are what the user says and override the text. Throws Error
// (file, line) for columns or numbers that are missing or make no sense, and when a time can only
// be had from a bus bandwidth but kind or ranks are not known.
NcclTable ReadNcclTable(std::string_view text, const std::string& file,
                        std::optional<CollectiveKind> kind, std::optional<uint32_t> ranks);

// Rows in nccl-tests' columns under its heading, with its closing lines. `comments` are put above,
// each behind "# ".
std::string WriteNcclTable(const NcclTable& table, uint32_t root,
                           const std::vector<std::string>& comments);

}  // namespace rehearse
