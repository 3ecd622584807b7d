// The events of a step: they order streams, say when ops began and ended, and let the host wait.
//
// If ops are timed, each has a pair of events. If not, only ops that something waits for (another
// stream, the end of the step, now and then the host) have one, at their end, so that the cost of
// timing itself can be measured.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "real/backends/backend.h"
#include "real/cuda/gpu.h"

namespace rehearse {

class StepEvents {
 public:
  // `window`: among this many ops in a row, the host can wait for the end of at least one.
  StepEvents(const CudaRuntime& cuda, const Role& role, bool timed, uint32_t window);

  // Relates the GPU's clock to the host's, on an idle stream: several events are waited for at
  // once, and the quickest counts. Times are wrong by at most half of its duration.
  void Anchor(CudaStream stream);
  int64_t anchor_width() const { return anchor_width_; }
  bool is_timed() const { return timed_; }

  void Begin(uint32_t op, CudaStream stream) const;
  void End(uint32_t op, CudaStream stream) const;
  // Makes what comes next on `stream` wait for the op, which is on another one.
  void OrderAfter(uint32_t op, CudaStream stream) const;

  bool HasEnd(uint32_t op) const { return events_[op].end.get() != nullptr; }
  // Throws Error if the op, or one before it, failed on the device.
  bool IsDone(uint32_t op) const;
  // The times of an op that is done. Must not be called if ops are not timed.
  OpTime TimeOf(uint32_t op) const;

 private:
  struct OpEvents {
    GpuEvent begin;
    GpuEvent end;
  };

  const CudaRuntime& cuda_;
  bool timed_;
  std::vector<OpEvents> events_;
  std::array<GpuEvent, 5> anchors_;
  CudaEvent anchor_ = nullptr;  // the one that counts
  int64_t anchor_time_ = 0;     // on the host's clock
  int64_t anchor_width_ = 0;
};

}  // namespace rehearse
