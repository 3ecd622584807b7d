// The tables that AMD's tools print of how GPUs are joined: `rocm-smi --showtopo`, with a table of
// link types and perhaps one of hops, and `amd-smi topology`, which calls GPUs by their bus ids.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rehearse {

struct RocmTopology {
  struct Gpu {
    std::string name;            // as in the table
    int line = 0;                // of its row
    std::string numa;            // "" if not given
    std::vector<bool> has_xgmi;  // by the other GPU: directly
  };
  std::vector<Gpu> gpus;
};

// Whether AMD's tools wrote it.
bool IsRocmTopology(std::string_view text);

// Throws Error with file and line.
RocmTopology ReadRocmTopology(std::string_view text, const std::string& file);

}  // namespace rehearse
