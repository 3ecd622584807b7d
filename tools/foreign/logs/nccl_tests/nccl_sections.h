// The lines of nccl-tests' logs, sorted into sections, which reach from one line that names columns
// to the next (tools/foreign/logs/nccl_tests/nccl_log.h makes tables of them).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/quantity.h"
#include "sim/schedule/schedule.h"
#include "tools/foreign/logs/nccl_tests/nccl_columns.h"

namespace rehearse {

// What a line says about which program printed it.
struct NcclProgram {
  std::string_view name;
  std::optional<CollectiveKind> kind;  // nothing if it is not simulated
};

// Ranks that lines such as "#  Rank  3 Group  0 Pid ..." list.
struct NcclListedRanks {
  std::map<uint32_t, uint32_t> groups;  // of each rank

  void Add(std::string_view line);
  std::vector<std::vector<uint32_t>> Groups() const;
};

struct NcclLogRow {
  int line = 0;
  Bytes bytes;
  std::optional<double> time;                 // in the columns' unit
  std::optional<double> algorithm_bandwidth;  // bytes per second
  std::optional<double> bus_bandwidth;
  double count = 0;      // 0: not given
  double type_size = 0;  // likewise
  std::string reduction;
  double root = -1;
  bool is_checked = false;           // out-of-place
  bool is_checked_in_place = false;  // ... and in-place
};

// What is between one line that names columns and the next.
struct NcclSection {
  int line = 0;
  NcclColumns columns;
  std::optional<NcclProgram> program;
  NcclListedRanks ranks;
  std::optional<uint32_t> written_ranks;
  std::vector<NcclLogRow> rows;
};

struct NcclSections {
  std::vector<NcclSection> sections;  // at least one, each with at least one row
  std::vector<std::string> remarks;
};

// Throws Error for a text without a table, or without a row of figures.
NcclSections ReadNcclSections(std::string_view text, const std::string& file);

// Whether a line of the text names the columns.
bool NamesNcclColumns(std::string_view text);

}  // namespace rehearse
