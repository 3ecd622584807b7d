#include "real/cuda/gpu.h"

#include <cmath>

namespace rehearse {

GpuMemory AllocateGpuMemory(const CudaRuntime& cuda, uint64_t bytes) {
  void* memory = nullptr;
  cuda.Malloc(&memory, bytes);
  return {cuda, memory};
}

PinnedMemory AllocatePinnedMemory(const CudaRuntime& cuda, uint64_t bytes) {
  void* memory = nullptr;
  cuda.HostAlloc(&memory, bytes, 0);
  return {cuda, memory};
}

GpuStream MakeStream(const CudaRuntime& cuda) {
  CudaStream stream = nullptr;
  cuda.StreamCreateWithFlags(&stream, kStreamNonBlocking);
  return {cuda, stream};
}

GpuEvent MakeEvent(const CudaRuntime& cuda, EventUse use) {
  CudaEvent event = nullptr;
  cuda.EventCreateWithFlags(&event, use == EventUse::kTiming ? 0 : kEventDisableTiming);
  return {cuda, event};
}

void CopyToGpu(const CudaRuntime& cuda, CudaStream stream, void* to, const void* from,
               uint64_t bytes) {
  cuda.MemcpyAsync(to, from, bytes, CopyKind::kHostToDevice, stream);
  cuda.StreamSynchronize(stream);
}

void CopyFromGpu(const CudaRuntime& cuda, CudaStream stream, void* to, const void* from,
                 uint64_t bytes) {
  cuda.MemcpyAsync(to, from, bytes, CopyKind::kDeviceToHost, stream);
  cuda.StreamSynchronize(stream);
}

int64_t NanosecondsBetween(const CudaRuntime& cuda, CudaEvent begin, CudaEvent end) {
  float milliseconds = 0;
  cuda.EventElapsedTime(&milliseconds, begin, end);
  return std::llround(static_cast<double>(milliseconds) * 1e6);
}

}  // namespace rehearse
