// A trace of jobs as a table with commas, row by row, so that millions of them take no memory.
//
// Cells are as in RFC 4180; empty lines are skipped, and what nobody should see in a name is
// written out (sim/base/visible_text.h). A cell that is empty or says that it is nothing ("nan",
// "None") is missing.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/text_stream.h"

namespace rehearse {

struct JobColumn {
  const char* name;
  bool is_needed;
};

class JobTable {
 public:
  // The first row says where the columns are, in any order and with others between them; columns
  // that are not needed may be missing. Throws Error where a needed one is, and `what` says what
  // was expected: "the cluster_log.csv of Helios".
  JobTable(const std::string& path, std::span<const JobColumn> columns, const std::string& what);

  // Some tables have no such row: the first one is that of a job if it has as many cells as these
  // names of columns, and one of `values` in the column `told_by`.
  struct WithoutNames {
    std::span<const char* const> columns;
    std::string_view told_by;
    std::span<const char* const> values;
  };
  JobTable(const std::string& path, std::span<const JobColumn> columns, const std::string& what,
           const WithoutNames& without);

  // False at the end.
  bool Next();

  // Of the row, by the position in `columns`. Missing cells are "" or nothing.
  const std::string& Text(size_t column) const;
  // Throws Error unless it is a number from 0 to `most`.
  std::optional<double> Number(size_t column, double most) const;
  uint32_t Whole(size_t column, uint32_t most) const;  // 0 where it is missing
  std::optional<double> Date(size_t column) const;     // seconds since 1970

  [[noreturn]] void Expected(size_t column, const std::string& expected) const;

 private:
  static constexpr size_t kNone = ~size_t{0};

  bool ReadRow();
  void ReadCell(std::string* cell);
  void ReadQuoted(std::string* cell);
  bool FindColumns();
  [[noreturn]] void Fail(const std::string& message) const;

  std::string name_;
  TextStream text_;
  std::vector<JobColumn> columns_;
  std::vector<size_t> places_;      // of each column in the row
  std::vector<std::string> cells_;  // of the row, of which count_ are its own
  size_t count_ = 0;
  size_t width_ = 0;         // cells in each row
  int line_ = 1;             // of the text
  int row_line_ = 0;         // where the row begins
  bool is_pending_ = false;  // the row was read before it was asked for
};

}  // namespace rehearse
