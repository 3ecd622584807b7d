// A CSV file that a person or a program wrote: a line of column names, then a row a line.
//
// As RFC 4180 has it: commas between cells, cells in double quotes may hold commas, line breaks and
// doubled quotes. Blanks around a cell that is not quoted are left out, so are empty lines and
// lines that begin with #. At most as large as any input (sim/base/input_file.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rehearse {

struct CsvRow {
  int line = 0;                    // where it begins
  std::vector<std::string> cells;  // one a column
};

struct CsvFile {
  std::string name;  // in messages
  int line = 0;      // of the column names
  std::vector<std::string> columns;
  std::vector<CsvRow> rows;
};

// Throws Error (file, line) for control characters, bytes that are no UTF-8, a column without a
// name, with one of more than 100 bytes, of other signs than letters, digits, '.', '_' and '-', or
// that another one has, a row with more or fewer cells than columns, a quote that nothing closes,
// and a file without columns.
CsvFile ParseCsvFile(std::string_view text, const std::string& name);
// Reads the file, or standard input ("-").
CsvFile ReadCsvFile(const std::string& path);

}  // namespace rehearse
