// What tests see of the double besides the libraries' own functions; and NVML's few entry points.
#include <cstring>

#include "real/cuda/libraries.h"
#include "tests/doubles/world.h"
#include "tests/support/gpu_double.h"

namespace rehearse::gpu_double {
namespace {

class OpenDoor : public Door {
 public:
  Control& control() override { return World::Get().control; }
  void Reset() override { World::Get().Reset(); }
  std::vector<std::string> Findings() override { return World::Get().Findings(); }
  std::map<std::string, uint64_t> Calls() override { return World::Get().Calls(); }
};

int Answer(char* text, unsigned length, const char* answer) {
  std::strncpy(text, answer, length);
  return kSuccess;
}

int Answer(unsigned* value, unsigned answer) {
  *value = answer;
  return kSuccess;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) Door* RehearseGpuDoubleDoor() {
  static OpenDoor door;
  return &door;
}

GPU_DOUBLE_ENTRY nvmlInit_v2() { return kSuccess; }
GPU_DOUBLE_ENTRY nvmlShutdown() { return kSuccess; }
GPU_DOUBLE_ENTRY nvmlSystemGetDriverVersion(char* text, unsigned length) {
  return Answer(text, length, "580.00");
}
GPU_DOUBLE_ENTRY nvmlDeviceGetHandleByPciBusId_v2(const char*, void** device) {
  static int any = 0;
  *device = &any;
  return kSuccess;
}
GPU_DOUBLE_ENTRY nvmlDeviceGetName(void*, char* text, unsigned length) {
  return Answer(text, length, "Pretended GPU");
}
GPU_DOUBLE_ENTRY nvmlDeviceGetUUID(void*, char* text, unsigned length) {
  return Answer(text, length, "GPU-pretended");
}
GPU_DOUBLE_ENTRY nvmlDeviceGetClockInfo(void*, NvmlClock, unsigned* mhz) {
  return Answer(mhz, 1000);
}
GPU_DOUBLE_ENTRY nvmlDeviceGetMaxClockInfo(void*, NvmlClock, unsigned* mhz) {
  return Answer(mhz, 1000);
}
GPU_DOUBLE_ENTRY nvmlDeviceGetEnforcedPowerLimit(void*, unsigned* milliwatts) {
  return Answer(milliwatts, 100000);
}
GPU_DOUBLE_ENTRY nvmlDeviceGetPowerUsage(void*, unsigned* milliwatts) {
  return Answer(milliwatts, 50000);
}
GPU_DOUBLE_ENTRY nvmlDeviceGetTemperature(void*, int, unsigned* celsius) {
  return Answer(celsius, 30);
}
extern "C" __attribute__((visibility("default"))) const char* nvmlErrorString(int) {
  return "unknown";
}

}  // namespace rehearse::gpu_double
