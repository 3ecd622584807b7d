// nccl-tests' tables, in both directions: written from our figures and read from anybody's.
//
// Read (tools/foreign/logs/nccl_tests/nccl_log.h): the output of all_reduce_perf and its siblings.
// Written: nccl-tests' own columns, so that parsers for them work; our additions are in comments.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/quantity.h"
#include "sim/schedule/schedule.h"

namespace rehearse {

struct NcclRow {
  Bytes bytes;
  Seconds time;
};

struct NcclTable {
  std::optional<CollectiveKind> kind;  // if the text says
  std::optional<uint32_t> ranks;       // that take part, of each group
  std::vector<NcclRow> rows;           // at least one; as the text has them
  // Which ranks, if the text lists several groups that ran at the same time.
  std::vector<std::vector<uint32_t>> groups = {};
  int line = 0;               // of the text, with the names of the columns
  std::string why_no_kind{};  // if there is none: what it may be, or what is missing
};

// How nccl-tests treats a kind.
struct NcclTest {
  CollectiveKind kind;
  const char* program;    // "all_reduce_perf"
  const char* reduction;  // as it prints it
  bool has_root;
  bool counts_a_part;  // its "count" is what one rank gives or gets
};
// Returns null for kinds that nccl-tests does not have (barrier).
const NcclTest* FindNcclTest(CollectiveKind kind);

// Rows in nccl-tests' columns under its heading, with its closing lines. `comments` are put above,
// each behind "# ".
std::string WriteNcclTable(const NcclTable& table, uint32_t root,
                           const std::vector<std::string>& comments);

}  // namespace rehearse
