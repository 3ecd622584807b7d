// The CUDA runtime's entry points, and the door for tests (tests/support/gpu_double.h).
#include <algorithm>
#include <cstring>
#include <string>

#include "real/cuda/libraries.h"
#include "tests/doubles/graphs.h"
#include "tests/doubles/kernels.h"
#include "tests/doubles/world.h"

namespace rehearse::gpu_double {
namespace {

World& world() { return World::Get(); }

struct Kernel {
  std::string name;
};

Touch Run(const void* data, uint64_t bytes, bool writes) { return {data, 1, bytes, bytes, writes}; }

}  // namespace

// What frees or waits does so before it fails, since a device that is lost has nothing left to do.
#define FAIL_IF_TOLD(name) \
  if (world().ShouldFail(#name)) return kPretendedFailure
// Calls that no capturing thread may make.
#define FAIL_IF_CAPTURING() \
  if (IsCapturing()) return kCaptureUnsupported

GPU_DOUBLE_ENTRY cudaDriverGetVersion(int* version) {
  FAIL_IF_TOLD(cudaDriverGetVersion);
  *version = world().control.driver_version;
  return kSuccess;
}

GPU_DOUBLE_ENTRY cudaRuntimeGetVersion(int* version) {
  FAIL_IF_TOLD(cudaRuntimeGetVersion);
  *version = 13000;
  return kSuccess;
}

GPU_DOUBLE_ENTRY cudaGetDeviceCount(int* count) {
  FAIL_IF_TOLD(cudaGetDeviceCount);
  *count = world().control.devices;
  return kSuccess;
}

GPU_DOUBLE_ENTRY cudaSetDevice(int device) {
  FAIL_IF_TOLD(cudaSetDevice);
  if (device < 0 || device >= world().control.devices) return kInvalidValue;
  CurrentDevice() = device;
  return kSuccess;
}

GPU_DOUBLE_ENTRY cudaDeviceGetAttribute(int* value, DeviceAttribute attribute, int) {
  FAIL_IF_TOLD(cudaDeviceGetAttribute);
  switch (attribute) {
    case DeviceAttribute::kClockKilohertz:
      *value = 1000000;
      return kSuccess;
    case DeviceAttribute::kMultiprocessors:
      *value = 4;  // few, so that small matrices already take several chunks
      return kSuccess;
    case DeviceAttribute::kComputeMajor:
      *value = 9;
      return kSuccess;
    case DeviceAttribute::kComputeMinor:
      *value = 0;
      return kSuccess;
  }
  return kInvalidValue;
}

GPU_DOUBLE_ENTRY cudaDeviceGetPCIBusId(char* text, int length, int device) {
  FAIL_IF_TOLD(cudaDeviceGetPCIBusId);
  const std::string bus = "0000:0" + std::to_string(device) + ":00.0";
  std::strncpy(text, bus.c_str(), static_cast<size_t>(length));
  return kSuccess;
}

GPU_DOUBLE_ENTRY cudaMemGetInfo(size_t* free, size_t* total) {
  FAIL_IF_TOLD(cudaMemGetInfo);
  *total = world().control.memory_bytes;
  *free = *total - std::min<size_t>(*total, world().allocated());
  return kSuccess;
}

GPU_DOUBLE_ENTRY cudaMalloc(void** memory, size_t bytes) {
  FAIL_IF_TOLD(cudaMalloc);
  FAIL_IF_CAPTURING();
  return world().Malloc(memory, bytes);
}

GPU_DOUBLE_ENTRY cudaFree(void* memory) {
  FAIL_IF_CAPTURING();
  const int status = memory == nullptr ? kSuccess : world().Free(memory);
  FAIL_IF_TOLD(cudaFree);
  return status;
}

GPU_DOUBLE_ENTRY cudaHostAlloc(void** memory, size_t bytes, unsigned) {
  FAIL_IF_TOLD(cudaHostAlloc);
  FAIL_IF_CAPTURING();
  *memory = ::operator new(bytes);
  return kSuccess;
}

GPU_DOUBLE_ENTRY cudaFreeHost(void* memory) {
  ::operator delete(memory);
  FAIL_IF_TOLD(cudaFreeHost);
  return kSuccess;
}

GPU_DOUBLE_ENTRY cudaMemcpyAsync(void* to, const void* from, size_t bytes, CopyKind kind,
                                 Stream* stream) {
  FAIL_IF_TOLD(cudaMemcpyAsync);
  std::vector<Touch> touches;
  if (kind != CopyKind::kHostToDevice) touches.push_back(Run(from, bytes, false));
  if (kind != CopyKind::kDeviceToHost) touches.push_back(Run(to, bytes, true));
  world().Enqueue(stream, "copy", touches, [=] {
    if (bytes > 0) std::memcpy(to, from, bytes);
  });
  return kSuccess;
}

GPU_DOUBLE_ENTRY cudaMemsetAsync(void* to, int value, size_t bytes, Stream* stream) {
  FAIL_IF_TOLD(cudaMemsetAsync);
  world().Enqueue(stream, "memset", {Run(to, bytes, true)}, [=] { std::memset(to, value, bytes); });
  return kSuccess;
}

GPU_DOUBLE_ENTRY cudaStreamCreateWithFlags(Stream** stream, unsigned) {
  FAIL_IF_TOLD(cudaStreamCreateWithFlags);
  *stream = world().MakeStream();
  return kSuccess;
}

GPU_DOUBLE_ENTRY cudaStreamDestroy(Stream* stream) {
  world().DestroyStream(stream);
  FAIL_IF_TOLD(cudaStreamDestroy);
  return kSuccess;
}

GPU_DOUBLE_ENTRY cudaStreamSynchronize(Stream* stream) {
  FAIL_IF_CAPTURING();
  stream->Synchronize();
  world().HostHasSeen(stream);
  FAIL_IF_TOLD(cudaStreamSynchronize);
  return kSuccess;
}

GPU_DOUBLE_ENTRY cudaStreamWaitEvent(Stream* stream, Event* event, unsigned) {
  FAIL_IF_TOLD(cudaStreamWaitEvent);
  return world().Wait(stream, *event);
}

GPU_DOUBLE_ENTRY cudaEventCreateWithFlags(Event** event, unsigned) {
  FAIL_IF_TOLD(cudaEventCreateWithFlags);
  *event = new Event;
  return kSuccess;
}

GPU_DOUBLE_ENTRY cudaEventDestroy(Event* event) {
  delete event;
  FAIL_IF_TOLD(cudaEventDestroy);
  return kSuccess;
}

GPU_DOUBLE_ENTRY cudaEventRecord(Event* event, Stream* stream) {
  FAIL_IF_TOLD(cudaEventRecord);
  world().Record(event, stream);
  return kSuccess;
}

GPU_DOUBLE_ENTRY cudaEventQuery(Event* event) {
  FAIL_IF_TOLD(cudaEventQuery);
  if (event->capture != nullptr) return kCapturedEvent;
  if (event->mark == nullptr) return kSuccess;
  if (!event->mark->done.load()) return kNotReady;
  world().HostHasSeen(event->mark->clock);
  return kSuccess;
}

GPU_DOUBLE_ENTRY cudaEventSynchronize(Event* event) {
  FAIL_IF_TOLD(cudaEventSynchronize);
  if (event->capture != nullptr) return kCapturedEvent;
  if (event->mark == nullptr) return kSuccess;
  event->mark->done.wait(false);
  world().HostHasSeen(event->mark->clock);
  return kSuccess;
}

GPU_DOUBLE_ENTRY cudaEventElapsedTime(float* milliseconds, Event* begin, Event* end) {
  FAIL_IF_TOLD(cudaEventElapsedTime);
  if (begin->mark == nullptr || end->mark == nullptr) return kInvalidValue;
  if (!begin->mark->done.load() || !end->mark->done.load()) return kNotReady;
  *milliseconds = static_cast<float>(
      static_cast<double>(end->mark->nanoseconds - begin->mark->nanoseconds) / 1e6);
  return kSuccess;
}

GPU_DOUBLE_ENTRY cudaLibraryLoadData(int** library, const void*, void*, void*, unsigned, void*,
                                     void*, unsigned) {
  FAIL_IF_TOLD(cudaLibraryLoadData);
  *library = new int;
  return kSuccess;
}

GPU_DOUBLE_ENTRY cudaLibraryUnload(int* library) {
  delete library;
  FAIL_IF_TOLD(cudaLibraryUnload);
  return kSuccess;
}

GPU_DOUBLE_ENTRY cudaLibraryGetKernel(Kernel** kernel, int*, const char* name) {
  FAIL_IF_TOLD(cudaLibraryGetKernel);
  static auto* const kernels = new std::map<std::string, Kernel>;  // handles stay for good
  static std::mutex mutex;
  const std::lock_guard<std::mutex> lock(mutex);
  *kernel = &kernels->try_emplace(name, Kernel{name}).first->second;
  return kSuccess;
}

GPU_DOUBLE_ENTRY cudaLaunchKernel(const Kernel* kernel, Dim3 grid, Dim3 block, void** arguments,
                                  size_t, Stream* stream) {
  FAIL_IF_TOLD(cudaLaunchKernel);
  constexpr uint64_t kMostThreads = 1024;
  constexpr uint32_t kMostBlocksAcross = 65535;
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.y > kMostBlocksAcross ||
      uint64_t{block.x} * block.y * block.z > kMostThreads) {
    return kInvalidValue;
  }
  const KernelArguments copy = *static_cast<const KernelArguments*>(arguments[0]);
  world().Enqueue(stream, kernel->name, TouchesOf(copy),
                  [kernel, copy, grid, block] { RunKernel(kernel->name, copy, grid, block); });
  return kSuccess;
}

extern "C" __attribute__((visibility("default"))) const char* cudaGetErrorString(int status) {
  if (status == kPretendedFailure) return "a failure was pretended, or out of memory";
  if (status >= kCaptureUnsupported) return "not allowed while a stream is captured";
  return status == kInvalidValue ? "invalid value" : "not ready";
}

}  // namespace rehearse::gpu_double
