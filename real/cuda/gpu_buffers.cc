#include "real/cuda/gpu_buffers.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "real/backends/backend.h"
#include "real/cuda/launch.h"
#include "real/kernels/parallel_for.h"
#include "sim/base/error.h"

namespace rehearse {
namespace {

constexpr uint64_t kAlignment = 256;  // of buffers, as cudaMalloc gives

uint64_t AlignUp(uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// Calls visit(first row, bytes, address) for the runs of rows that are contiguous.
template <typename Visit>
void ForEachRun(const GpuOperand& operand, Visit visit) {
  const uint64_t size = SizeOf(operand.storage);
  char* data = static_cast<char*>(operand.data);
  if (operand.stride == operand.columns || operand.rows <= 1) {
    visit(uint64_t{0}, operand.rows * operand.columns * size, data);
    return;
  }
  for (uint64_t row = 0; row < operand.rows; ++row) {
    visit(row, operand.columns * size, data + row * operand.stride * size);
  }
}

}  // namespace

GpuBuffers::GpuBuffers(const CudaRuntime& cuda, const RankPlan& plan, bool all_fp32, int device)
    : cuda_(cuda), plan_(plan) {
  std::vector<uint64_t> offsets;
  for (const MemoryPlan& memory : plan_.memories) {
    const DType dtype = plan_.role->buffers[memory.buffer.index()].dtype;
    const Storage storage = all_fp32 ? Storage::kFp32 : StorageOf(dtype);
    uint64_t& bytes = IsOnHost(memory) ? host_bytes_ : bytes_;
    offsets.push_back(bytes);
    addresses_.storage.push_back(storage);
    bytes = AlignUp(bytes + memory.elements * SizeOf(storage));
  }
  size_t free = 0;
  size_t total = 0;
  cuda_.MemGetInfo(&free, &total);
  if (bytes_ > free) {
    constexpr double kGib = 1 << 30;
    throw Error(
        fmt::format("rank {} needs {:.2f} GiB on GPU {}, which has {:.2f} of {:.2f} GiB free",
                    plan_.rank, bytes_ / kGib, device, free / kGib, total / kGib));
  }
  bytes_ = std::max(bytes_, kAlignment);
  memory_ = AllocateGpuMemory(cuda_, bytes_);
  if (host_bytes_ > 0) host_ = AllocatePinnedMemory(cuda_, host_bytes_);
  for (size_t i = 0; i < offsets.size(); ++i) {
    void* const base = IsOnHost(plan_.memories[i]) ? host_.get() : memory_.get();
    addresses_.memories.push_back(static_cast<char*>(base) + offsets[i]);
  }
}

bool GpuBuffers::IsOnHost(const MemoryPlan& memory) const {
  return plan_.role->buffers[memory.buffer.index()].on_host;
}

void GpuBuffers::Write(CudaStream stream, BufferId buffer,
                       const std::vector<double>& values) const {
  GpuOperand to = OperandOf(plan_, addresses_, buffer, 0);
  const uint64_t rows = RowsOf(values, to.columns);
  CHECK_LE(rows, to.rows);
  to.rows = rows;
  const uint64_t row_bytes = to.columns * SizeOf(to.storage);
  std::vector<char> stored(to.rows * row_bytes);
  ParallelFor(values.size(), [&](uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i)
      Store(to.storage, stored.data(), i, static_cast<float>(values[i]));
  });
  const bool on_host = IsOnHost(plan_.memories[plan_.buffers[buffer.index()].memory]);
  ForEachRun(to, [&](uint64_t row, uint64_t bytes, char* data) {
    const char* const from = stored.data() + row * row_bytes;
    if (on_host)
      std::memcpy(data, from, bytes);
    else
      cuda_.MemcpyAsync(data, from, bytes, CopyKind::kHostToDevice, stream);
  });
  cuda_.StreamSynchronize(stream);
}

std::vector<double> GpuBuffers::Read(CudaStream stream, BufferId buffer) const {
  const GpuOperand from = OperandOf(plan_, addresses_, buffer, 0);
  const uint64_t row_bytes = from.columns * SizeOf(from.storage);
  std::vector<char> stored(from.rows * row_bytes);
  const bool on_host = IsOnHost(plan_.memories[plan_.buffers[buffer.index()].memory]);
  ForEachRun(from, [&](uint64_t row, uint64_t bytes, const char* data) {
    char* const to = stored.data() + row * row_bytes;
    if (on_host)
      std::memcpy(to, data, bytes);
    else
      cuda_.MemcpyAsync(to, data, bytes, CopyKind::kDeviceToHost, stream);
  });
  cuda_.StreamSynchronize(stream);
  std::vector<double> values(from.rows * from.columns);
  ParallelFor(values.size(), [&](uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i) values[i] = LoadStored(from.storage, stored.data(), i);
  });
  return values;
}

void GpuBuffers::Fill(CudaStream stream, BufferId buffer, double value) const {
  const uint32_t memory = plan_.buffers[buffer.index()].memory;
  const Storage storage = addresses_.storage[memory];
  const uint64_t own = plan_.buffers[buffer.index()].elements();
  const uint64_t all = plan_.memories[memory].elements;
  char* data = static_cast<char*>(addresses_.memories[memory]);
  const bool on_host = IsOnHost(plan_.memories[memory]);
  if (value == 0 && on_host) {
    std::memset(data, 0, all * SizeOf(storage));
    return;
  }
  if (value == 0) {
    cuda_.MemsetAsync(data, 0, all * SizeOf(storage), stream);
    cuda_.StreamSynchronize(stream);
    return;
  }
  // Padding is summed with everything else, so it has to be a number.
  std::vector<char> stored(all * SizeOf(storage));
  for (uint64_t i = 0; i < own; ++i) {
    Store(storage, stored.data(), i, static_cast<float>(value));
  }
  if (on_host)
    std::memcpy(data, stored.data(), stored.size());
  else
    CopyToGpu(cuda_, stream, data, stored.data(), stored.size());
}

void GpuBuffers::ClearAll(CudaStream stream) const {
  if (host_bytes_ > 0) std::memset(host_.get(), 0, host_bytes_);
  cuda_.MemsetAsync(memory_.get(), 0, bytes_, stream);
  cuda_.StreamSynchronize(stream);
}

GpuMemory GpuBuffers::Save(CudaStream stream) const {
  GpuMemory saved = AllocateGpuMemory(cuda_, bytes_);
  cuda_.MemcpyAsync(saved.get(), memory_.get(), bytes_, CopyKind::kDeviceToDevice, stream);
  cuda_.StreamSynchronize(stream);
  return saved;
}

void GpuBuffers::Restore(CudaStream stream, const GpuMemory& saved) const {
  cuda_.MemcpyAsync(memory_.get(), saved.get(), bytes_, CopyKind::kDeviceToDevice, stream);
  cuda_.StreamSynchronize(stream);
}

}  // namespace rehearse
