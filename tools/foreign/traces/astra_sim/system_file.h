// The system.json of ASTRA-sim: how its collectives are cut and carried out, dimension by dimension
// (its Sys.cc and CollectiveImplLookup.cc).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/base/json_reader.h"
#include "sim/schedule/schedule.h"

namespace rehearse {

enum class AstraAlgorithm : uint8_t { kRing, kDirect, kHalvingDoubling, kDoubleBinaryTree };

struct AstraImplementation {
  AstraAlgorithm algorithm = AstraAlgorithm::kRing;
  bool is_of_all = false;  // "oneRing": over all NPUs, whatever the dimensions
  uint32_t window = 0;     // of direct: how many peers at once; 0: all
};

struct AstraSystem {
  std::map<CollectiveKind, std::vector<AstraImplementation>> implementations;
  uint32_t splits = 1;          // chunks of a collective, preferred-dataset-splits
  uint32_t active = 1;          // that a dimension carries out at once
  double endpoint_delay = 10;   // ns for each message, and once more
  double memory_bandwidth = 0;  // bytes/s; a sum reads two arrays and writes one; 0: takes no time
  // An all-reduce is scattered dimension by dimension and gathered back (localBWAware); otherwise
  // it is an all-reduce of everything in each dimension (baseline).
  bool scatters_first = false;
  std::vector<std::string> remarks;  // what is given and decides nothing here
};

// Whether an object is such a file.
bool IsAstraSystem(const JsonReader& root);

// Throws Error with file and line.
AstraSystem ReadAstraSystem(const JsonReader& root);

}  // namespace rehearse
