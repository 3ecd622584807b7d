// The GPUs of this machine as found: for the record of a run, and to say what is missing.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "real/cuda/libraries.h"

namespace rehearse {

struct GpuRecord {
  std::string name;  // empty without NVML, like everything that comes from it
  std::string uuid;
  std::string pci_bus;
  int multiprocessors = 0;
  int compute_major = 0;
  int compute_minor = 0;
  uint64_t memory_bytes = 0;
  unsigned clock_mhz = 0;  // of the multiprocessors, now
  unsigned maximum_clock_mhz = 0;
  unsigned memory_clock_mhz = 0;
  double power_watts = 0;
  double power_limit_watts = 0;
  unsigned temperature_celsius = 0;
};

// Throws Error unless this machine has a driver that is new enough for the runtime, at least
// `devices` GPUs, and the program carries kernels. Allocates nothing on a device.
void RequireGpus(const GpuLibraries& gpu, int devices);

// Sets the current device.
GpuRecord ReadGpu(const GpuLibraries& gpu, int device);

struct GpuMachine {
  std::string driver;  // "580.82.07"; empty without NVML
  std::string driver_cuda;
  std::string runtime;
  std::string cublas;
  std::string nccl;                                              // empty if there is none
  std::vector<std::string> libraries;                            // files
  std::vector<std::pair<std::string, std::string>> environment;  // NCCL_*, CUDA_*, sorted
};
GpuMachine ReadGpuMachine(const GpuLibraries& gpu);

// "NVIDIA H200 (132 multiprocessors, sm_90), CUDA 13.0, NCCL 2.28.9".
std::string DescribeGpu(const GpuLibraries& gpu, int device);

nlohmann::ordered_json ToJson(const GpuRecord& record);
nlohmann::ordered_json ToJson(const GpuMachine& machine);

}  // namespace rehearse
