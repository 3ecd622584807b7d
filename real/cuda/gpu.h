// Memory, streams and events of one GPU, freed when their owner ends. Each must be used by a thread
// whose current device is that GPU. Nothing here is copied; moved-from objects are empty.
#pragma once

#include <cstdint>
#include <utility>

#include "real/cuda/libraries.h"

namespace rehearse {

// Owns a handle that one function of the library frees. A failure to free is not reported: it
// happens if the device is already lost, which an earlier call has reported.
template <typename Handle, auto kFree>
class GpuHandle {
 public:
  GpuHandle() = default;
  GpuHandle(const CudaRuntime& cuda, Handle handle) : cuda_(&cuda), handle_(handle) {}
  GpuHandle(GpuHandle&& other) noexcept
      : cuda_(other.cuda_), handle_(std::exchange(other.handle_, nullptr)) {}
  GpuHandle& operator=(GpuHandle&& other) noexcept {
    std::swap(cuda_, other.cuda_);
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~GpuHandle() {
    if (handle_ != nullptr) (cuda_->*kFree).Status(handle_);
  }

  Handle get() const { return handle_; }

 private:
  const CudaRuntime* cuda_ = nullptr;
  Handle handle_ = nullptr;
};

using GpuMemory = GpuHandle<void*, &CudaRuntime::Free>;
using PinnedMemory = GpuHandle<void*, &CudaRuntime::FreeHost>;
using GpuStream = GpuHandle<CudaStream, &CudaRuntime::StreamDestroy>;
using GpuEvent = GpuHandle<CudaEvent, &CudaRuntime::EventDestroy>;
using GpuGraph = GpuHandle<CudaGraph, &CudaRuntime::GraphDestroy>;
using GpuGraphExec = GpuHandle<CudaGraphExec, &CudaRuntime::GraphExecDestroy>;

GpuMemory AllocateGpuMemory(const CudaRuntime& cuda, uint64_t bytes);
PinnedMemory AllocatePinnedMemory(const CudaRuntime& cuda, uint64_t bytes);
GpuStream MakeStream(const CudaRuntime& cuda);
enum class EventUse : uint8_t { kTiming, kOrder };
GpuEvent MakeEvent(const CudaRuntime& cuda, EventUse use);

// Copies and returns when it is done.
void CopyToGpu(const CudaRuntime& cuda, CudaStream stream, void* to, const void* from,
               uint64_t bytes);
void CopyFromGpu(const CudaRuntime& cuda, CudaStream stream, void* to, const void* from,
                 uint64_t bytes);

// Nanoseconds from one event to another, both done.
int64_t NanosecondsBetween(const CudaRuntime& cuda, CudaEvent begin, CudaEvent end);

}  // namespace rehearse
