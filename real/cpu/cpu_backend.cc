#include "real/cpu/cpu_backend.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <limits>
#include <mutex>
#include <new>
#include <optional>
#include <string_view>
#include <thread>

#include <fmt/format.h>

#include "real/backends/host.h"
#include "real/backends/live_memory.h"
#include "real/kernels/kernels.h"
#include "real/transports/collective_run.h"
#include "real/transports/host_clock.h"
#include "sim/base/error.h"
#include "sim/base/threads.h"
#include "sim/base/units.h"

namespace rehearse {
namespace {

// Memory aligned for vector units.
template <typename T>
class AlignedArray {
 public:
  explicit AlignedArray(uint64_t elements)
      : data_(static_cast<T*>(::operator new[](elements * sizeof(T), kAlignment))),
        elements_(elements) {}

  T* data() const { return data_.get(); }
  uint64_t elements() const { return elements_; }

 private:
  static constexpr std::align_val_t kAlignment{64};
  struct Free {
    void operator()(T* data) const { ::operator delete[](data, kAlignment); }
  };
  std::unique_ptr<T, Free> data_;
  uint64_t elements_;
};

// Which ops of a step are done; threads of other streams wait for them.
class Progress {
 public:
  explicit Progress(size_t ops) : done_(ops) {}

  void Reset() {
    for (auto& done : done_) done.store(false, std::memory_order_relaxed);
    failed_.store(false);
  }
  void Finish(uint32_t op) {
    done_[op].store(true, std::memory_order_release);
    Notify();
  }
  void Fail() {
    failed_.store(true, std::memory_order_release);
    Notify();
  }
  // Returns false if the step has failed meanwhile.
  bool WaitFor(uint32_t op) {
    while (true) {
      const uint32_t seen = changes_.load(std::memory_order_acquire);
      if (done_[op].load(std::memory_order_acquire)) return true;
      if (failed()) return false;
      changes_.wait(seen, std::memory_order_acquire);
    }
  }
  bool failed() const { return failed_.load(std::memory_order_acquire); }

 private:
  void Notify() {
    changes_.fetch_add(1, std::memory_order_release);
    changes_.notify_all();
  }

  std::vector<std::atomic<bool>> done_;
  std::atomic<bool> failed_{false};
  std::atomic<uint32_t> changes_{0};
};

// Ops with a fixed duration and nothing to compute need no core, so the thread sleeps. Only at the
// end it watches the clock, because threads wake up late.
void WaitFor(Seconds duration) {
  constexpr int64_t kWatched = 200'000;  // nanoseconds
  const int64_t end = NowNanoseconds() + static_cast<int64_t>(duration.value() * 1e9);
  const int64_t asleep = end - kWatched - NowNanoseconds();
  if (asleep > 0) std::this_thread::sleep_for(std::chrono::nanoseconds(asleep));
  while (NowNanoseconds() < end) continue;
}

template <typename T>
class CpuBackend : public Backend {
 public:
  CpuBackend(const RankPlan& plan, Transport& transport, std::unique_ptr<Collectives> collectives)
      : plan_(plan),
        transport_(transport),
        collectives_(std::move(collectives)),
        progress_(plan.role->ops.size()),
        counting_(std::make_unique<LiveMemory>(plan)) {
    for (const MemoryPlan& memory : plan.memories) memories_.emplace_back(memory.elements);
    by_stream_.resize(std::max<size_t>(1, plan.role->streams.size()));
    for (uint32_t i = 0; i < plan.role->ops.size(); ++i) {
      const Op& op = plan.role->ops[i];
      by_stream_[op.stream.index()].push_back(i);
      OpCall call;
      for (const BufferId id : op.reads) call.reads.push_back(OperandOf(id));
      for (const BufferId id : op.writes) call.writes.push_back(OperandOf(id));
      if (const auto* compute = std::get_if<Compute>(&op.work)) {
        call.kernel = FindKernel<T>(compute->kernel);
      }
      call.activity = fmt::format("op {} \"{}\"", i, op.name);
      calls_.push_back(std::move(call));
    }
    for (size_t stream = 1; stream < by_stream_.size(); ++stream) {
      if (by_stream_[stream].empty() || threads_.TryAdd([this, stream] { Serve(stream); }))
        continue;
      EndThreads();
      throw Error(
          "the machine has no room for a thread for each stream (ulimit -u, -v); --streams "
          "blocking needs only one per rank");
    }
  }
  CpuBackend(const CpuBackend&) = delete;
  CpuBackend& operator=(const CpuBackend&) = delete;
  ~CpuBackend() override { EndThreads(); }

  std::string Description() const override { return BlasDescription(); }
  DType arithmetic() const override { return sizeof(T) == 8 ? DType::kFp64 : DType::kFp32; }

  void Write(BufferId buffer, const std::vector<double>& values) override {
    const Operand<T> to = OperandOf(buffer);
    const uint64_t rows = RowsOf(values, to.columns);
    CHECK_LE(rows, to.rows);
    for (uint64_t i = 0; i < rows; ++i) {
      for (uint64_t j = 0; j < to.columns; ++j) {
        to.At(i, j) = static_cast<T>(values[i * to.columns + j]);
      }
    }
  }

  std::vector<double> Read(BufferId buffer) const override {
    const Operand<T> from = OperandOf(buffer);
    std::vector<double> values;
    values.reserve(from.elements());
    for (uint64_t i = 0; i < from.rows; ++i) {
      values.insert(values.end(), from.Row(i), from.Row(i) + from.columns);
    }
    return values;
  }

  void Fill(BufferId buffer, double value) override {
    const BufferPlan& own = plan_.buffers[buffer.index()];
    const AlignedArray<T>& memory = memories_[own.memory];
    std::fill(memory.data(), memory.data() + own.elements(), static_cast<T>(value));
    // Padding is summed with everything else, so it has to be a number.
    std::fill(memory.data() + own.elements(), memory.data() + memory.elements(), T(0));
  }

  void Step(const StepFacts& facts, std::vector<OpTime>* times,
            std::vector<RowLoss>* losses) override {
    facts_ = facts;
    times_ = times;
    times->assign(plan_.role->ops.size(), {});
    losses_.assign(by_stream_.size(), {});
    failure_ = nullptr;
    progress_.Reset();
    running_ = static_cast<uint32_t>(threads_.size());
    StartStep();
    RunStream(0);
    for (uint32_t left = running_; left > 0; left = running_) running_.wait(left);
    for (const std::vector<RowLoss>& own : losses_) {
      losses->insert(losses->end(), own.begin(), own.end());
    }
    if (failure_ != nullptr) std::rethrow_exception(failure_);
    if (counting_ == nullptr) return;
    counted_ = counting_->peak();
    counting_ = nullptr;  // every step takes the same, and counting takes time
  }

  std::optional<MemoryUse> CountedMemory() const override { return counted_; }

 private:
  struct OpCall {
    KernelFunction<T> kernel = nullptr;
    std::vector<Operand<T>> reads;
    std::vector<Operand<T>> writes;
    std::string activity;  // its name in messages
  };

  Operand<T> OperandOf(BufferId id) const {
    const BufferPlan& own = plan_.buffers[id.index()];
    Operand<T> operand;
    operand.data = memories_[own.memory].data() + own.offset;
    operand.rows = own.rows;
    operand.columns = own.columns;
    operand.stride = own.stride;
    operand.place = own.place ? &*own.place : nullptr;
    return operand;
  }

  // ---- streams ----------------------------------------------------------------------------------

  void EndThreads() {
    ends_ = true;
    StartStep();
    threads_.Join();
  }

  void StartStep() {
    started_.fetch_add(1, std::memory_order_release);
    started_.notify_all();
  }

  void Serve(size_t stream) {
    for (uint32_t step = 0;; ++step) {
      while (started_.load(std::memory_order_acquire) == step) started_.wait(step);
      if (ends_) return;
      RunStream(stream);
      running_.fetch_sub(1);
      running_.notify_all();
    }
  }

  void RunStream(size_t stream) {
    for (const uint32_t op : by_stream_[stream]) {
      try {
        for (const OpId before : plan_.role->ops[op].after) {
          if (!progress_.WaitFor(before.index())) return;
        }
        if (progress_.failed()) return;
        RunOp(op);
      } catch (...) {
        KeepFailure(op);
        return;
      }
      progress_.Finish(op);
    }
  }

  void KeepFailure(uint32_t op) {
    std::exception_ptr failure;
    const std::string where = fmt::format("rank {}, {}: ", plan_.rank, calls_[op].activity);
    try {
      throw;
    } catch (const RankLost& error) {
      failure = std::make_exception_ptr(RankLost(where + error.what()));
    } catch (const Error& error) {
      failure = std::make_exception_ptr(Error(where + error.what()));
      transport_.Abort(where + error.what());
    } catch (const std::bad_alloc&) {
      failure = std::make_exception_ptr(Error(where + "out of memory"));
      transport_.Abort(where + "out of memory");
    } catch (const std::exception& error) {
      failure = std::make_exception_ptr(InternalError(where + error.what()));
      transport_.Abort(where + error.what());
    }
    const std::lock_guard<std::mutex> lock(failure_mutex_);
    if (failure_ == nullptr) failure_ = failure;
    progress_.Fail();
  }

  // ---- ops --------------------------------------------------------------------------------------

  void RunOp(uint32_t id) {
    const Op& op = plan_.role->ops[id];
    const OpCall& call = calls_[id];
    transport_.set_activity(call.activity.c_str());
    if (counting_ != nullptr) counting_->Begin(id);
    OpTime& time = (*times_)[id];
    time.ready = NowNanoseconds();
    if (const auto* compute = std::get_if<Compute>(&op.work)) {
      if (call.kernel == nullptr)
        WaitFor(compute->duration);
      else
        call.kernel(
            {*compute, op.tag, facts_, call.reads, call.writes, &losses_[op.stream.index()]});
    } else if (const auto* collective = std::get_if<Collective>(&op.work)) {
      // The members of a group go one after the other, as messages of one tag keep their order.
      for (size_t i = 0; i < op.reads.size(); ++i) RunCollectiveOp(id, i, *collective);
    } else {
      Exchange(id, std::holds_alternative<Send>(op.work));
    }
    time.end = NowNanoseconds();
    if (counting_ != nullptr) counting_->End(id);
  }

  // An operand as one run of `elements`, which may be more than it has if padding is needed; copied
  // through `memory` if it is not stored like that.
  T* AsRun(BufferId id, const Operand<T>& operand, uint64_t elements,
           std::vector<T>* memory) const {
    const BufferPlan& own = plan_.buffers[id.index()];
    const bool has_room =
        own.elements() == elements ||
        (!plan_.role->buffers[id.index()].view && memories_[own.memory].elements() >= elements);
    if (operand.IsDense() && has_room) return operand.data;
    memory->assign(elements, T(0));
    return memory->data();
  }

  static void Pack(const Operand<T>& from, T* to) {
    for (uint64_t i = 0; i < from.rows; ++i) {
      to = std::copy(from.Row(i), from.Row(i) + from.columns, to);
    }
  }
  static void Unpack(const T* from, const Operand<T>& to) {
    for (uint64_t i = 0; i < to.rows; ++i, from += to.columns) {
      std::copy(from, from + to.columns, to.Row(i));
    }
  }

  // The i-th collective of the op's group.
  void RunCollectiveOp(uint32_t id, size_t i, const Collective& collective) {
    const Op& op = plan_.role->ops[id];
    const Operand<T>& from = calls_[id].reads[i];
    const Operand<T>& to = calls_[id].writes[i];
    const Group& group = *plan_.groups[plan_.ops[id].communicator];
    CollectiveCall<T> call;
    call.collective = &collective;
    call.group = &group;
    call.tag = plan_.ops[id].tag;
    call.from_elements = from.elements();
    call.to_elements = to.elements();
    if (collective.kind == CollectiveKind::kAllGather) {
      call.to_elements = group.size() * from.elements();
    }
    if (collective.kind == CollectiveKind::kReduceScatter) {
      call.from_elements = group.size() * to.elements();
    }
    std::vector<T> packed_from;
    std::vector<T> packed_to;
    call.from = AsRun(op.reads[i], from, call.from_elements, &packed_from);
    if (!packed_from.empty()) Pack(from, packed_from.data());
    call.to = from.data == to.data && from.elements() == to.elements() && packed_from.empty()
                  ? to.data
                  : AsRun(op.writes[i], to, call.to_elements, &packed_to);
    // In a reduce only the root's result counts: the others keep what they have.
    if (!packed_to.empty()) Pack(to, packed_to.data());
    collectives_->Run(call);
    if (!packed_to.empty()) Unpack(packed_to.data(), to);
  }

  void Exchange(uint32_t id, bool sends) {
    const Op& op = plan_.role->ops[id];
    const OpPlan& planned = plan_.ops[id];
    const Operand<T>& operand = sends ? calls_[id].reads[0] : calls_[id].writes[0];
    std::vector<T> packed;
    T* data = AsRun(sends ? op.reads[0] : op.writes[0], operand, operand.elements(), &packed);
    const size_t bytes = operand.elements() * sizeof(T);
    if (sends) {
      if (!packed.empty()) Pack(operand, packed.data());
      transport_.Wait(transport_.Send(planned.peer, planned.tag, data, bytes));
    } else {
      transport_.Wait(transport_.Receive(planned.peer, planned.tag, data, bytes));
      if (!packed.empty()) Unpack(packed.data(), operand);
    }
  }

  const RankPlan& plan_;
  Transport& transport_;
  std::unique_ptr<Collectives> collectives_;
  std::vector<AlignedArray<T>> memories_;
  std::vector<OpCall> calls_;                     // by op
  std::vector<std::vector<uint32_t>> by_stream_;  // ops in order

  StepFacts facts_;
  std::vector<OpTime>* times_ = nullptr;
  std::vector<std::vector<RowLoss>> losses_;  // by stream
  Progress progress_;
  std::unique_ptr<LiveMemory> counting_;  // in the first step
  std::optional<MemoryUse> counted_;
  std::mutex failure_mutex_;
  std::exception_ptr failure_;

  std::atomic<uint32_t> started_{0};  // steps
  std::atomic<uint32_t> running_{0};  // threads that have not finished the step
  std::atomic<bool> ends_{false};
  Threads threads_;  // of all streams except the first
};

// Checks before any rank takes its memory, as the kernel would end the program without a word.
void CheckThatMemorySuffices(const RankPlan& plan, Transport& transport, DType arithmetic) {
  double elements = 0;
  for (const MemoryPlan& memory : plan.memories) elements += static_cast<double>(memory.elements);
  const bool shares = transport.name() == std::string_view("threads");
  const uint32_t ranks = shares ? transport.size() : 1;  // in this process
  if (transport.rank() == 0 || !shares) TakeRoomForProducts(ranks);
  const Bytes needed = elements * ranks * SizeOf(arithmetic);
  const std::optional<Bytes> available = AvailableMemory();
  transport.Barrier();
  if (!available || needed <= *available) return;
  throw Error(fmt::format(
      "out of memory: the arrays of {} need {}, this machine has {} left; "
      "rehearse run simulates the step without them",
      ranks == 1 ? "this rank" : fmt::format("{} ranks", ranks), Print(needed), Print(*available)));
}

}  // namespace

std::unique_ptr<Backend> MakeCpuBackend(const RankPlan& plan, Transport& transport,
                                        DType arithmetic,
                                        std::unique_ptr<Collectives> collectives) {
  CheckThatMemorySuffices(plan, transport, arithmetic);
  if (collectives == nullptr) collectives = MakeOwnCollectives(transport);
  if (arithmetic == DType::kFp64) {
    return std::make_unique<CpuBackend<double>>(plan, transport, std::move(collectives));
  }
  CHECK(arithmetic == DType::kFp32);
  return std::make_unique<CpuBackend<float>>(plan, transport, std::move(collectives));
}

}  // namespace rehearse
