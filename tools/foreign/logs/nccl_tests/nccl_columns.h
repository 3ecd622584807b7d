// The columns of an nccl-tests table: which is which, in what unit, and what a row has there.
//
// They are found by name, so that any version works: "size", "count", "type", "redop",
// "root", "time", "algbw", "busbw", "#wrong" or "error". A line below may name the units ("(B)",
// "(us)", "(GB/s)"), and so may the names themselves ("size(MB)", "time_ms").
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/quantity.h"

namespace rehearse {

struct NcclColumns {
  std::optional<size_t> size;
  std::optional<size_t> count;
  std::optional<size_t> type;
  std::optional<size_t> redop;
  std::optional<size_t> root;
  // The out-of-place figures; the in-place ones begin `second` columns behind.
  std::optional<size_t> time;
  std::optional<size_t> algorithm_bandwidth;
  std::optional<size_t> bus_bandwidth;
  std::optional<size_t> wrong;
  size_t second = 0;  // 0: there are none
  double size_unit = 1;
  // In seconds. If it is not given, tools/foreign/logs/nccl_tests/nccl_log.h says which it is.
  std::optional<double> time_unit;
  double bandwidth_unit = 1e9;
  bool is_cpu_time = false;    // "cputime": the time of launching, not of the collective
  bool has_timestamp = false;  // the last column, which is two words
  bool has_commas = false;
  size_t count_of_columns = 0;
};

// From a line that names columns; nothing for any other.
std::optional<NcclColumns> ReadNcclHeading(std::string_view line);

// Whether the line names units, which are then stored.
bool ReadNcclUnits(std::string_view line, NcclColumns& columns);

// Words between commas or blanks, trimmed; between commas they may be empty.
std::vector<std::string_view> NcclWords(std::string_view line, bool has_commas);

// The cells of a row, "" for a blank one: old versions leave "redop" blank, and if only in-place or
// only out-of-place figures are printed, half of the columns are missing at the end. Nothing if the
// number of words fits no such row.
std::optional<std::vector<std::string_view>> NcclCells(const std::vector<std::string_view>& words,
                                                       const NcclColumns& columns);

// A finite number; nothing for anything else.
std::optional<double> NcclNumber(std::string_view word);
// "1048576", "1M", "512K", "1.5GiB": K, M, G and T are powers of 1,024 here. Nothing unless it is a
// whole number of bytes of at most 2^50.
std::optional<Bytes> NcclSize(std::string_view word, double unit);
// The size of "float", "half", "f8e4m3", ...; nothing for other words.
std::optional<double> NcclTypeSize(std::string_view type);

// For a word with NCCL's output at its end ("-1node0:123:456"): the part that is the cell of this
// column, "" if none is.
std::string_view CellBefore(std::string_view word, size_t column, const NcclColumns& columns);

}  // namespace rehearse
