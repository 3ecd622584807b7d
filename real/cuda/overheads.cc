#include "real/cuda/overheads.h"

#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include "real/backends/backend.h"
#include "real/cuda/gpu.h"
#include "real/cuda/kernel_functions.h"
#include "real/cuda/launch.h"
#include "real/transports/host_clock.h"

namespace rehearse {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kRounds = 11;
constexpr int kLaunches = 100;          // in a row: far below what a launch queue holds
constexpr size_t kSmallestCopy = 4096;  // bytes
constexpr size_t kStep = 4;             // from one size to the next

Seconds FromNanoseconds(int64_t nanoseconds) {
  return Seconds(static_cast<double>(nanoseconds) * 1e-9);
}

// The median of several rounds, after one that does not count.
template <typename Measure>
Seconds MedianRound(Measure measure) {
  measure();
  std::array<Seconds, kRounds> rounds;
  for (Seconds& round : rounds) round = measure();
  std::sort(rounds.begin(), rounds.end());
  return rounds[kRounds / 2];
}

class Meter {
 public:
  Meter(const CudaRuntime& cuda, int device)
      : cuda_(cuda),
        stream_(MakeStream(cuda)),
        begin_(MakeEvent(cuda, EventUse::kTiming)),
        end_(MakeEvent(cuda, EventUse::kTiming)),
        functions_(cuda),
        element_(AllocateGpuMemory(cuda, 2 * sizeof(float))),
        operands_(AllocateGpuMemory(cuda, 2 * sizeof(GpuOperand))) {
    // The kernel is a copy of one element, the least that a kernel can do.
    std::array<GpuOperand, 2> operands{};
    for (size_t i = 0; i < operands.size(); ++i) {
      operands[i].data = static_cast<float*>(element_.get()) + i;
      operands[i].rows = operands[i].columns = operands[i].stride = 1;
      operands[i].global_rows = operands[i].global_columns = 1;
      operands[i].storage = Storage::kFp32;
    }
    CopyToGpu(cuda, stream_.get(), operands_.get(), operands.data(), sizeof operands);
    cuda_.MemsetAsync(element_.get(), 0, 2 * sizeof(float), stream_.get());
    Compute compute;
    compute.kernel = Kernel::kCopy;
    int multiprocessors = 1;
    cuda_.DeviceGetAttribute(&multiprocessors, DeviceAttribute::kMultiprocessors, device);
    plan_ = PlanLaunches(compute, operands, 1, static_cast<uint32_t>(multiprocessors));
    arguments_.operands = static_cast<const GpuOperand*>(operands_.get());
    arguments_.reads = arguments_.writes = 1;
    arguments_.kernel = Kernel::kCopy;
  }

  // The device's time for what `enqueue` puts on the stream.
  template <typename Enqueue>
  Seconds DeviceTime(Enqueue enqueue) const {
    cuda_.EventRecord(begin_.get(), stream_.get());
    enqueue();
    cuda_.EventRecord(end_.get(), stream_.get());
    cuda_.EventSynchronize(end_.get());
    return FromNanoseconds(NanosecondsBetween(cuda_, begin_.get(), end_.get()));
  }
  // The host's time to put it there. Waits at the end, so that runs do not overlap.
  template <typename Enqueue>
  Seconds HostTime(Enqueue enqueue) const {
    const int64_t before = NowNanoseconds();
    enqueue();
    const int64_t after = NowNanoseconds();
    cuda_.StreamSynchronize(stream_.get());
    return FromNanoseconds(after - before);
  }

  void Launch(int times) const {
    for (int i = 0; i < times; ++i) functions_.Launch(plan_, arguments_, stream_.get());
  }
  void Record(int times) const {
    for (int i = 0; i < times; ++i) cuda_.EventRecord(begin_.get(), stream_.get());
  }

  std::vector<CopyTime> Copies(CopyKind kind, void* to, const void* from, Bytes largest) const {
    std::vector<CopyTime> times;
    for (size_t bytes = kSmallestCopy; Bytes(static_cast<double>(bytes)) <= largest;
         bytes *= kStep) {
      const auto copy = [&] { cuda_.MemcpyAsync(to, from, bytes, kind, stream_.get()); };
      times.push_back(
          {Bytes(static_cast<double>(bytes)), MedianRound([&] { return DeviceTime(copy); })});
    }
    return times;
  }

 private:
  const CudaRuntime& cuda_;
  GpuStream stream_;
  GpuEvent begin_;
  GpuEvent end_;
  KernelFunctionTable functions_;
  GpuMemory element_;
  GpuMemory operands_;
  LaunchPlan plan_;
  KernelArguments arguments_{};
};

Json CopiesJson(const std::vector<CopyTime>& copies) {
  Json json = Json::array();
  for (const CopyTime& copy : copies) json.push_back({copy.bytes.value(), copy.time.value()});
  return json;
}

}  // namespace

GpuOverheads MeasureOverheads(const GpuLibraries& gpu, int device, Bytes largest) {
  const CudaRuntime& cuda = gpu.cuda;
  cuda.SetDevice(device);
  const Meter meter(cuda, device);
  GpuOverheads overheads;
  overheads.host_launch =
      MedianRound([&] { return meter.HostTime([&] { meter.Launch(kLaunches); }); }) / kLaunches;
  overheads.event =
      MedianRound([&] { return meter.HostTime([&] { meter.Record(kLaunches); }); }) / kLaunches;
  overheads.event_gap = MedianRound([&] { return meter.DeviceTime([] {}); });
  // What a row of launches takes beyond a short row; getting to the first one is in neither.
  const auto row = [&](int launches) {
    return MedianRound([&] { return meter.DeviceTime([&] { meter.Launch(launches); }); });
  };
  overheads.launch = std::max(Seconds(0), row(2 * kLaunches) - row(kLaunches)) / kLaunches;

  const auto bytes = static_cast<uint64_t>(largest.value());
  const PinnedMemory host = AllocatePinnedMemory(cuda, bytes);
  const GpuMemory first = AllocateGpuMemory(cuda, bytes);
  const GpuMemory second = AllocateGpuMemory(cuda, bytes);
  overheads.to_device = meter.Copies(CopyKind::kHostToDevice, first.get(), host.get(), largest);
  overheads.on_device = meter.Copies(CopyKind::kDeviceToDevice, second.get(), first.get(), largest);
  overheads.from_device = meter.Copies(CopyKind::kDeviceToHost, host.get(), first.get(), largest);
  return overheads;
}

Json ToJson(const GpuOverheads& overheads) {
  return {{"launch_seconds", overheads.launch.value()},
          {"host_launch_seconds", overheads.host_launch.value()},
          {"host_event_seconds", overheads.event.value()},
          {"event_gap_seconds", overheads.event_gap.value()},
          {"copies",
           {{"to_device", CopiesJson(overheads.to_device)},
            {"from_device", CopiesJson(overheads.from_device)},
            {"on_device", CopiesJson(overheads.on_device)}}}};
}

}  // namespace rehearse
