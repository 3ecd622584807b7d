// How a page stores numbers: columns of integers, each as short as possible, and a header that says
// what they are.
//
// The bytes of a page: the header's length (four bytes, lowest first), the header as JSON, then one
// column after the other. A value is zigzag-coded (0, -1, 1, -2, ...) and written with seven bits
// per byte, lowest first, the eighth set in all but the last (LEB128). In a file they are gzipped
// and written as base64; tools/viewer/src/decode.ts reads both.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace rehearse {

class PageColumns {
 public:
  // Return the number by which the header names the column.
  size_t Add(const std::vector<int64_t>& values);
  // Stores each value minus the one before, which is short if they rise slowly.
  size_t AddRising(const std::vector<int64_t>& values);

  // Returns the bytes. The header gets "columns": [values, bytes, rises] of each.
  std::string Finish(nlohmann::ordered_json header) const;

 private:
  struct Column {
    size_t values = 0;
    size_t bytes = 0;
    bool rises = false;
  };
  size_t AddColumn(const std::vector<int64_t>& values, bool rises);

  std::vector<Column> columns_;
  std::string bytes_;
};

std::string Base64(std::string_view bytes);

}  // namespace rehearse
