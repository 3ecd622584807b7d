// Runs one step of a schedule on some backend, with a thread for each rank, and keeps all that it
// computed.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "real/backends/backend.h"

namespace rehearse {

// Every buffer of every rank after the step, by (rank, buffer name).
using Contents = std::map<std::pair<uint32_t, std::string>, std::vector<double>>;

enum class StartWith : uint8_t {
  kInitialState,  // real/backends/initial_state.h, with NaN where nothing is said
  kRandom,        // every buffer its own numbers in [-1, 1], which bf16 can hold
};

struct RunResult {
  Contents contents;
  std::vector<std::vector<OpTime>> times;           // by rank, then op
  std::vector<std::vector<LibraryChoice>> choices;  // by rank
};
RunResult RunStep(const Schedule& schedule, const BackendFactory& backend,
                  StartWith start = StartWith::kInitialState);

// Makes backends of the CPU in fp32, with our own collectives.
BackendFactory OnCpu();
// Puts rank i on GPU i mod the number of GPUs that `devices` says.
struct CudaOptions;
BackendFactory OnGpus(const CudaOptions& options, int devices);

// The largest |a - b| relative to the largest |b| of each array, and the array where it is; NaN in
// both counts as equal.
struct WorstDifference {
  double relative = 0;
  std::string where;
};
WorstDifference Compare(const Contents& got, const Contents& expected);

}  // namespace rehearse
