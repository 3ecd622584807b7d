// Small schedules written by hand, so that the backend is tested without any planner.
#pragma once

#include <string>

#include "sim/schedule/schedule.h"

namespace rehearse {

// What a schedule's single role is made of, by name.
class RoleMaker {
 public:
  explicit RoleMaker(uint32_t ranks);

  CommunicatorId all() const { return CommunicatorId(0); }
  StreamId AddStream(const std::string& name, StreamKind kind);
  // An array is whole on every rank, or cut by all ranks along rows or columns.
  enum class Cut : uint8_t { kNone, kRows, kColumns };
  BufferId AddBuffer(const std::string& name, BufferKind kind, uint64_t rows, uint64_t columns,
                     Cut cut = Cut::kNone);
  BufferId AddView(const std::string& name, BufferId of, uint64_t row, uint64_t column,
                   uint64_t rows, uint64_t columns);
  OpId AddCompute(const std::string& name, const Compute& compute, std::vector<BufferId> reads,
                  std::vector<BufferId> writes, std::vector<OpId> after = {});
  OpId AddCollective(const std::string& name, CollectiveKind kind, StreamId stream, BufferId from,
                     BufferId to, std::vector<OpId> after = {});
  OpId AddWork(const std::string& name, StreamId stream, const Work& work,
               std::vector<BufferId> reads, std::vector<BufferId> writes, std::vector<OpId> after);

  DType dtype = DType::kFp32;
  Schedule schedule;

 private:
  Role& role() { return schedule.roles[0]; }
  uint32_t ranks_;
};

Compute Product(uint64_t m, uint64_t n, uint64_t k, GemmMode mode);
Compute Simple(Kernel kernel, std::vector<double> attributes = {});

// Two layers with GELU between them, W1 cut by columns of its output and W2 by its inputs over all
// ranks (Megatron-LM's MLP): all-reduce of Y on a stream of its own; backward with the all-reduce
// of dX beside dW1.
Schedule TensorParallelStep(uint32_t ranks, DType dtype);

// Has each kind of collective once, in and out of place, on whole buffers and on some columns.
Schedule EveryCollective(uint32_t ranks);

// Every rank sends to the next and receives from the one before, on a stream each.
Schedule RingOfMessages(uint32_t ranks);

}  // namespace rehearse
