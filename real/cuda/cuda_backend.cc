#include "real/cuda/cuda_backend.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "real/cuda/communicators.h"
#include "real/cuda/gemm.h"
#include "real/cuda/gemm_tuning.h"
#include "real/cuda/gpu.h"
#include "real/cuda/gpu_buffers.h"
#include "real/cuda/gpu_program.h"
#include "real/cuda/gpu_wait.h"
#include "real/cuda/kernel_functions.h"
#include "real/cuda/machine.h"
#include "real/cuda/nccl_profiler.h"
#include "real/cuda/step_events.h"
#include "real/cuda/step_graph.h"
#include "real/transports/host_clock.h"
#include "sim/base/error.h"

namespace rehearse {
namespace {

constexpr uint32_t kWindow = 128;  // ops that the host runs ahead: far below the launch queue

// Makes the device the calling thread's current one.
const CudaRuntime& OnDevice(const CudaRuntime& cuda, int device) {
  cuda.SetDevice(device);
  return cuda;
}

class CudaBackend : public Backend {
 public:
  CudaBackend(const GpuLibraries& gpu, const RankPlan& plan, Transport& transport,
              const CudaOptions& options)
      : gpu_(gpu),
        cuda_(gpu.cuda),
        plan_(plan),
        transport_(transport),
        options_(options),
        buffers_(OnDevice(gpu.cuda, options.device), plan, options.all_fp32, options.device),
        functions_(gpu.cuda) {
    choices_.resize(plan.role->ops.size());
    MakeStreams();
    SetMode(options.mode);
    if (options.tune_gemms) TuneProducts();
    communicators_.emplace(gpu, plan, transport);
  }

  std::string Description() const override { return DescribeGpu(gpu_, options_.device); }
  DType arithmetic() const override { return DType::kFp32; }

  void Write(BufferId buffer, const std::vector<double>& values) override {
    buffers_.Write(first_stream(), buffer, values);
  }
  std::vector<double> Read(BufferId buffer) const override {
    return buffers_.Read(first_stream(), buffer);
  }
  void Fill(BufferId buffer, double value) override {
    buffers_.Fill(first_stream(), buffer, value);
  }

  bool Use(StepMode mode) override {
    SetMode(mode);
    return true;
  }

  std::vector<LibraryChoice> Choices() const override {
    std::vector<LibraryChoice> known;
    for (const auto& choice : choices_) {
      if (choice) known.push_back(*choice);
    }
    return known;
  }

  void Step(const StepFacts& facts, std::vector<OpTime>* times,
            std::vector<RowLoss>* losses) override {
    times->assign(plan_.role->ops.size(), {});
    uint32_t launched = 0;
    try {
      if (mode_ == StepMode::kGraph) Capture(facts, &launched);
      events_->Anchor(first_stream());
      const int64_t began = NowNanoseconds();
      if (mode_ == StepMode::kGraph) {
        transport_.set_activity("the graph of the step");
        graph_->Launch();
        WaitUntil([this] { return graph_->IsDone(); }, [] { return "the graph of the step"; });
      } else {
        LaunchAll(facts, &launched, times);
      }
      communicators_->Check();
      if (!events_->is_timed() && !times->empty()) times->back() = {began, NowNanoseconds()};
      if (facts.keep_loss) ReadLosses(losses);
    } catch (const std::exception& error) {
      const std::string where = launched < names_.size()
                                    ? fmt::format("rank {}, {}: ", plan_.rank, names_[launched])
                                    : fmt::format("rank {}: ", plan_.rank);
      if (std::string_view(error.what()).starts_with("nccl")) {
        try {
          LookForLostRank(transport_);
        } catch (const RankLost& lost) {
          communicators_->Abort();
          throw RankLost(where + lost.what());
        }
      }
      communicators_->Abort();
      if (dynamic_cast<const RankLost*>(&error) != nullptr) throw RankLost(where + error.what());
      transport_.Abort(where + error.what());
      if (dynamic_cast<const Error*>(&error) != nullptr) throw Error(where + error.what());
      throw InternalError(where + error.what());
    }
  }

 private:
  // ---- set-up -----------------------------------------------------------------------------------

  void SetMode(StepMode mode) {
    mode_ = mode;
    std::optional<StepEvents>& wanted = mode == StepMode::kTimedOps ? timed_ : untimed_;
    if (!wanted) wanted.emplace(cuda_, *plan_.role, mode == StepMode::kTimedOps, kWindow / 2);
    events_ = &*wanted;
  }

  void MakeStreams() {
    const size_t count = std::max<size_t>(1, plan_.role->streams.size());
    packed_.resize(count);
    for (size_t i = 0; i < count; ++i) streams_.push_back(MakeStream(cuda_));
    buffers_.addresses().packed = [this](uint32_t stream, bool is_output, uint64_t bytes) {
      packed_bytes_ = std::max(packed_bytes_, bytes);
      return static_cast<void*>(packed_[stream][is_output ? 1 : 0].get());
    };
    int multiprocessors = 0;
    cuda_.DeviceGetAttribute(&multiprocessors, DeviceAttribute::kMultiprocessors, options_.device);
    // The program is made once to learn how much memory packing needs, and again with that memory.
    program_ = MakeGpuProgram(plan_, buffers_.addresses(), static_cast<uint32_t>(multiprocessors));
    if (packed_bytes_ > 0) {
      for (auto& areas : packed_) {
        for (GpuMemory& area : areas) area = AllocateGpuMemory(cuda_, packed_bytes_);
      }
      program_ =
          MakeGpuProgram(plan_, buffers_.addresses(), static_cast<uint32_t>(multiprocessors));
    }
    Upload();
  }

  void Upload() {
    operands_ = UploadTable(program_.operands);
    attributes_ = UploadTable(program_.attributes);
    blas_ = std::vector<std::optional<GpuBlas>>(streams_.size());
    tuned_ = std::vector<std::optional<TunedProducts>>(streams_.size());
    for (size_t stream = 0; stream < streams_.size(); ++stream) {
      const uint64_t floats =
          stream < program_.scratch_floats.size() ? program_.scratch_floats[stream] : 0;
      scratch_.push_back(AllocateGpuMemory(cuda_, std::max<uint64_t>(1, floats) * sizeof(float)));
    }
    for (uint32_t id = 0; id < plan_.role->ops.size(); ++id) {
      const Op& op = plan_.role->ops[id];
      names_.push_back(fmt::format("op {} \"{}\"", id, op.name));
      const uint64_t rows = program_.loss_rows[id];
      losses_.push_back(rows == 0 ? GpuMemory() : AllocateGpuMemory(cuda_, rows * sizeof(double)));
      const auto* compute = std::get_if<Compute>(&op.work);
      std::optional<GpuBlas>& blas = blas_[op.stream.index()];
      if (compute != nullptr && IsProduct(compute->kernel) && !blas) {
        blas.emplace(gpu_, streams_[op.stream.index()].get());
      }
    }
  }

  void TuneProducts() {
    std::vector<std::map<uint32_t, Product>> products(streams_.size());
    for (uint32_t id = 0; id < plan_.role->ops.size(); ++id) {
      const Op& op = plan_.role->ops[id];
      const auto* compute = std::get_if<Compute>(&op.work);
      if (compute == nullptr || compute->kernel != Kernel::kGemm) continue;
      products[op.stream.index()].emplace(id, ProductOf(id));
    }
    // Memory that has not been written may hold numbers that make arithmetic slow.
    buffers_.ClearAll(first_stream());
    for (size_t stream = 0; stream < streams_.size(); ++stream) {
      if (!blas_[stream]) continue;
      tuned_[stream].emplace(cuda_, *blas_[stream], functions_, streams_[stream].get());
      tuned_[stream]->Tune(products[stream]);
    }
  }

  template <typename T>
  GpuMemory UploadTable(const std::vector<T>& table) {
    GpuMemory memory = AllocateGpuMemory(cuda_, std::max<uint64_t>(1, table.size()) * sizeof(T));
    CopyToGpu(cuda_, first_stream(), memory.get(), table.data(), table.size() * sizeof(T));
    return memory;
  }

  // ---- a step -----------------------------------------------------------------------------------

  // The host never runs more than a window ahead of what has ended.
  void LaunchAll(const StepFacts& facts, uint32_t* launched, std::vector<OpTime>* times) {
    uint32_t finished = 0;
    for (; *launched < plan_.role->ops.size(); ++*launched) {
      transport_.set_activity(names_[*launched].c_str());
      LaunchOp(*launched, facts);
      for (; finished + kWindow <= *launched; ++finished) Finish(finished, times);
    }
    for (; finished < *launched; ++finished) Finish(finished, times);
    has_stepped_ = true;
  }

  // What is loaded or connected on first use (kernels, NCCL) cannot be in a capture, so it is done
  // before, in a step that is undone.
  void StepInVain(const StepFacts& facts, uint32_t* launched) {
    const GpuMemory saved = buffers_.Save(first_stream());
    std::vector<OpTime> times(plan_.role->ops.size());
    LaunchAll(facts, launched, &times);
    buffers_.Restore(first_stream(), saved);
    *launched = 0;
  }

  void Capture(const StepFacts& facts, uint32_t* launched) {
    if (graph_ && captured_ == facts) {
      *launched = static_cast<uint32_t>(names_.size());
      return;
    }
    if (!has_stepped_) StepInVain(facts, launched);
    graph_.reset();
    std::vector<CudaStream> streams;
    for (const GpuStream& stream : streams_) streams.push_back(stream.get());
    graph_.emplace(cuda_, streams, [&] {
      for (; *launched < plan_.role->ops.size(); ++*launched) LaunchOp(*launched, facts);
    });
    captured_ = facts;
  }

  void LaunchOp(uint32_t id, const StepFacts& facts) {
    const Op& op = plan_.role->ops[id];
    const uint32_t stream_id = op.stream.index();
    CudaStream stream = streams_[stream_id].get();
    for (const OpId before : op.after) {
      const uint32_t other = plan_.role->ops[before.index()].stream.index();
      if (other != stream_id) events_->OrderAfter(before.index(), stream);
    }
    events_->Begin(id, stream);
    if (const auto* compute = std::get_if<Compute>(&op.work)) {
      LaunchCompute(id, *compute, op.tag, facts);
    } else {
      LaunchCommunication(id, op);
    }
    events_->End(id, stream);
  }

  void LaunchCompute(uint32_t id, const Compute& compute, const Tag& tag, const StepFacts& facts) {
    const GpuOp& op = program_.ops[id];
    const uint32_t stream = plan_.role->ops[id].stream.index();
    if (!IsProduct(compute.kernel)) {
      KernelArguments arguments = ArgumentsOf(op.kernel[0], stream);
      arguments.random = RandomStreamOf(compute, tag, facts.seed);
      arguments.tokens = facts.tokens;
      arguments.step = facts.number;
      arguments.losses = facts.keep_loss ? static_cast<double*>(losses_[id].get()) : nullptr;
      LaunchKernel(op.kernel[0], arguments, stream);
      return;
    }
    if (tuned_[stream] && tuned_[stream]->Multiply(id)) return;
    const Product product = ProductOf(id);
    if (compute.kernel == Kernel::kGroupedGemm) {
      blas_[stream]->MultiplyGroups(compute, product.a, product.b, product.c, product.accumulates);
      return;
    }
    blas_[stream]->Multiply(product.gemm, product.dtype, product.a, product.b, product.c,
                            product.accumulates);
  }

  Product ProductOf(uint32_t id) const {
    const auto& compute = std::get<Compute>(plan_.role->ops[id].work);
    const OperandRun& run = program_.ops[id].operands;
    const GpuOperand* operands = program_.operands.data() + run.first;
    return {compute.gemm, compute.dtype,       operands[0],
            operands[1],  operands[run.reads], run.reads > 2};
  }

  void LaunchCommunication(uint32_t id, const Op& op) {
    const std::vector<GpuCommunication>& group = program_.ops[id].communication;
    const auto launch = [&] {
      for (const GpuCommunication& member : group) LaunchMember(id, op, member);
    };
    NcclListener listener;  // NCCL reports a group's operations when it is closed
    if (group.size() > 1 && !IsHostCopy(op.work)) {
      communicators_->RunAsOne(launch);
    } else {
      launch();
    }
    if (!listener.has_heard()) return;
    choices_[id] = listener.heard();
    choices_[id]->op = id;
  }

  void LaunchMember(uint32_t id, const Op& op, const GpuCommunication& work) {
    const uint32_t stream_id = op.stream.index();
    CudaStream stream = streams_[stream_id].get();
    if (work.clear_bytes > 0) cuda_.MemsetAsync(work.clear, 0, work.clear_bytes, stream);
    for (const GpuKernel& copy : work.pack) {
      LaunchKernel(copy, ArgumentsOf(copy, stream_id), stream_id);
    }
    const OpPlan& planned = plan_.ops[id];
    if (const auto* collective = std::get_if<Collective>(&op.work)) {
      communicators_->Run(*collective, work.buffers, stream);
    } else if (std::holds_alternative<Send>(op.work)) {
      communicators_->Send(planned.communicator, planned.peer, work.buffers, stream);
    } else {
      communicators_->Receive(planned.communicator, planned.peer, work.buffers, stream);
    }
    for (const GpuKernel& copy : work.unpack) {
      LaunchKernel(copy, ArgumentsOf(copy, stream_id), stream_id);
    }
  }

  KernelArguments ArgumentsOf(const GpuKernel& work, uint32_t stream) const {
    KernelArguments arguments{};
    arguments.operands = static_cast<const GpuOperand*>(operands_.get()) + work.run.first;
    arguments.attributes = static_cast<const double*>(attributes_.get()) + work.first_attribute;
    arguments.scratch = static_cast<float*>(scratch_[stream].get());
    arguments.reads = work.run.reads;
    arguments.writes = work.run.writes;
    arguments.attribute_count = work.attribute_count;
    arguments.kernel = work.kernel;
    return arguments;
  }

  void LaunchKernel(const GpuKernel& work, const KernelArguments& arguments, uint32_t stream) {
    functions_.Launch(work.plan, arguments, streams_[stream].get());
  }

  // ---- waiting ----------------------------------------------------------------------------------

  void Finish(uint32_t id, std::vector<OpTime>* times) {
    if (!events_->HasEnd(id)) return;
    WaitUntil([this, id] { return events_->IsDone(id); },
              [this] { return OpsThatHang(plan_, *events_, names_); });
    (*times)[id] = events_->TimeOf(id);
  }

  void WaitUntil(const std::function<bool()>& is_done,
                 const std::function<std::string()>& what_hangs) {
    WaitForGpu({*communicators_, transport_, options_.stall_seconds}, is_done, what_hangs);
  }

  void ReadLosses(std::vector<RowLoss>* losses) {
    for (uint32_t id = 0; id < plan_.role->ops.size(); ++id) {
      const uint64_t rows = program_.loss_rows[id];
      if (rows == 0) continue;
      const Op& op = plan_.role->ops[id];
      std::vector<double> values(rows);
      CopyFromGpu(cuda_, first_stream(), values.data(), losses_[id].get(), rows * sizeof(double));
      const GpuOperand* operands = program_.operands.data() + program_.ops[id].operands.first;
      // The first read (S, or X of a squared error) says which rows these are, or the loss does.
      const GpuOperand& placed = operands[0].placed != 0 ? operands[0] : operands[op.reads.size()];
      const auto& compute = std::get<Compute>(op.work);
      uint64_t column = placed.global_column;
      if (compute.kernel == Kernel::kCrossEntropy)  // how many tokens ahead
        column = compute.attributes.empty() ? 0 : static_cast<uint64_t>(compute.attributes[0]);
      for (uint64_t i = 0; i < rows; ++i)
        losses->push_back({placed.BatchRow(i), column, values[i]});
    }
  }

  CudaStream first_stream() const { return streams_[0].get(); }

  const GpuLibraries& gpu_;
  const CudaRuntime& cuda_;
  const RankPlan& plan_;
  Transport& transport_;
  const CudaOptions options_;

  GpuBuffers buffers_;
  KernelFunctionTable functions_;
  std::vector<GpuStream> streams_;                // by StreamId
  std::vector<std::array<GpuMemory, 2>> packed_;  // by stream: in, out
  uint64_t packed_bytes_ = 0;                     // of each
  GpuProgram program_;
  GpuMemory operands_;
  GpuMemory attributes_;
  std::vector<GpuMemory> scratch_;                   // by stream
  std::vector<std::optional<GpuBlas>> blas_;         // by stream
  std::vector<std::optional<TunedProducts>> tuned_;  // by stream; none unless asked for
  std::vector<GpuMemory> losses_;                    // by op
  std::optional<StepEvents> timed_;
  std::optional<StepEvents> untimed_;
  StepMode mode_ = StepMode::kTimedOps;
  bool has_stepped_ = false;
  StepEvents* events_ = nullptr;                       // one of these
  std::vector<std::string> names_;                     // by op
  std::vector<std::optional<LibraryChoice>> choices_;  // by op
  std::optional<GpuCommunicators> communicators_;
  std::optional<StepGraph> graph_;  // gone before the communicators that it uses
  StepFacts captured_;              // of the captured step
};

}  // namespace

std::unique_ptr<Backend> MakeCudaBackend(const GpuLibraries& gpu, const RankPlan& plan,
                                         Transport& transport, const CudaOptions& options) {
  return std::make_unique<CudaBackend>(gpu, plan, transport, options);
}

}  // namespace rehearse
