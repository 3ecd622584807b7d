// The door to the fake GPUs (tests/doubles): tests set what they are to be and read what they
// found.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace rehearse::gpu_double {

struct Control {
  int devices = 8;
  uint64_t memory_bytes = 1ull << 33;
  int nccl_version = 22809;
  int driver_version = 13000;
  uint64_t seed = 1;  // of pauses
  bool checks_races = true;
  bool runs_source = false;      // of our kernels, instead of those of the CPU: slower
  double patience_seconds = 30;  // of ranks that wait for others while communicators are made
  std::string fail;              // entry point that fails …
  uint64_t fail_call = 1;        // … at this call, counted from 1
};

class Door {
 public:
  virtual ~Door() = default;
  virtual Control& control() = 0;
  virtual void Reset() = 0;  // as new, nothing found, no calls
  virtual std::vector<std::string> Findings() = 0;
  virtual std::map<std::string, uint64_t> Calls() = 0;  // by entry point
};

// Opens the double and makes it what LoadGpuLibraries finds.
Door* OpenGpuDouble();

}  // namespace rehearse::gpu_double
