#include "real/cuda/step_events.h"

#include <limits>
#include <optional>

#include "real/transports/host_clock.h"

namespace rehearse {
namespace {

// The ops whose ends are recorded although nobody asks for their times.
std::vector<bool> AwaitedOps(const Role& role, uint32_t window) {
  std::vector<bool> awaited(role.ops.size());
  std::vector<std::optional<uint32_t>> last(role.streams.size());
  for (uint32_t id = 0; id < role.ops.size(); ++id) {
    const Op& op = role.ops[id];
    last[op.stream.index()] = id;
    if (id % window == 0) awaited[id] = true;
    for (const OpId before : op.after) {
      if (role.ops[before.index()].stream != op.stream) awaited[before.index()] = true;
    }
  }
  for (const auto& id : last) {
    if (id) awaited[*id] = true;
  }
  return awaited;
}

}  // namespace

StepEvents::StepEvents(const CudaRuntime& cuda, const Role& role, bool timed, uint32_t window)
    : cuda_(cuda), timed_(timed), events_(role.ops.size()) {
  const std::vector<bool> awaited = AwaitedOps(role, window);
  for (size_t id = 0; id < events_.size(); ++id) {
    if (timed) {
      events_[id].begin = MakeEvent(cuda, EventUse::kTiming);
      events_[id].end = MakeEvent(cuda, EventUse::kTiming);
    } else if (awaited[id]) {
      events_[id].end = MakeEvent(cuda, EventUse::kOrder);
    }
  }
  if (!timed) return;
  for (GpuEvent& event : anchors_) event = MakeEvent(cuda, EventUse::kTiming);
}

void StepEvents::Anchor(CudaStream stream) {
  if (!timed_) return;
  anchor_width_ = std::numeric_limits<int64_t>::max();
  for (const GpuEvent& event : anchors_) {
    const int64_t before = NowNanoseconds();
    cuda_.EventRecord(event.get(), stream);
    cuda_.EventSynchronize(event.get());
    const int64_t width = NowNanoseconds() - before;
    if (width >= anchor_width_) continue;
    anchor_width_ = width;
    anchor_time_ = before + width / 2;
    anchor_ = event.get();
  }
}

void StepEvents::Begin(uint32_t op, CudaStream stream) const {
  if (timed_) cuda_.EventRecord(events_[op].begin.get(), stream);
}

void StepEvents::End(uint32_t op, CudaStream stream) const {
  if (HasEnd(op)) cuda_.EventRecord(events_[op].end.get(), stream);
}

void StepEvents::OrderAfter(uint32_t op, CudaStream stream) const {
  cuda_.StreamWaitEvent(stream, events_[op].end.get(), 0);
}

bool StepEvents::IsDone(uint32_t op) const {
  const int status = cuda_.EventQuery.Status(events_[op].end.get());
  if (status != 0 && status != kCudaNotReady) cuda_.EventQuery.Fail(status);
  return status == 0;
}

OpTime StepEvents::TimeOf(uint32_t op) const {
  if (!timed_) return {};
  const OpEvents& events = events_[op];
  return {anchor_time_ + NanosecondsBetween(cuda_, anchor_, events.begin.get()),
          anchor_time_ + NanosecondsBetween(cuda_, anchor_, events.end.get())};
}

}  // namespace rehearse
