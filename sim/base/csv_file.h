// A CSV file that a person or a program wrote: a line of column names, then one row per line.
//
// As RFC 4180 has it: commas between cells, cells in double quotes may hold commas, line breaks and
// doubled quotes. Blanks around an unquoted cell, empty lines and lines that begin with # are
// skipped. At most as large as any input (sim/base/input_file.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rehearse {

struct CsvRow {
  int line = 0;                    // where it begins
  std::vector<std::string> cells;  // one per column
};

struct CsvFile {
  std::string name;  // in messages
  int line = 0;      // of the column names
  std::vector<std::string> columns;
  std::vector<CsvRow> rows;
};

// Throws Error (file, line) for control characters, bytes that are not UTF-8, a column without a
// name or with one that is longer than 100 bytes, has characters other than letters, digits, '.',
// '_' and '-', or is used twice, a row with more or fewer cells than columns, a quote that is never
// closed, and a file without columns.
CsvFile ParseCsvFile(std::string_view text, const std::string& name);
// Reads the file, or standard input ("-").
CsvFile ReadCsvFile(const std::string& path);

}  // namespace rehearse
