#include "sim/schedule/schedule.h"

#include <algorithm>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "sim/base/units.h"
#include "sim/schedule/done_ops.h"

namespace rehearse {
namespace {

// The names of an enum in the order of its values.
template <typename Enum, size_t kCount>
const char* NameIn(const char* const (&names)[kCount], Enum value) {
  const auto index = static_cast<size_t>(value);
  CHECK_LT(index, kCount);
  return names[index];
}

std::string CommunicatorName(const Schedule& schedule, CommunicatorId id) {
  if (id.index() < schedule.communicators.size())
    return fmt::format("\"{}\"", schedule.communicators[id.index()].name());
  return "a communicator that does not exist";
}

std::string Print(Flops flops) {
  std::string rate = Print(FlopsPerSecond(flops.value()));
  rate.resize(rate.size() - 2);  // "/s"
  return rate;
}

std::string Describe(const Compute& compute) {
  switch (compute.kind) {
    case ComputeKind::kGemm: {
      const Gemm& gemm = compute.gemm;
      const std::string text = fmt::format("GEMM {}x{}x{} {}", gemm.m, gemm.n, gemm.k,
                                           Name(compute.tuned.value_or(gemm.mode)));
      return gemm.batch == 1 ? text : fmt::format("{}, batch of {}", text, gemm.batch);
    }
    case ComputeKind::kAttention:
      return fmt::format("attention of {}", Print(compute.flops));
    case ComputeKind::kMemory:
      return fmt::format("memory-bound work on {}", Print(compute.bytes));
    case ComputeKind::kFixed:
      return fmt::format("compute of {}", Print(compute.duration));
    case ComputeKind::kHost:
      return fmt::format("the host's work on {}", Print(compute.bytes));
  }
  internal::FailCheck(__FILE__, __LINE__, "unknown kind of compute");
}

}  // namespace

uint32_t Role::OpCount() const { return DoneOps(*this).size(); }

uint32_t Role::PlaceAt(uint32_t position) const { return DoneOps(*this).At(position).place; }

const Op& Role::At(uint32_t position) const { return ops[PlaceAt(position)]; }

Tag Role::TagAt(uint32_t position) const {
  const DoneOps all(*this);
  const DoneOp done = all.At(position);
  Tag tag = ops[done.place].tag;
  tag.micro_batch += all.MicroBatchesLater(done);
  return tag;
}

std::vector<uint32_t> Role::AfterAt(uint32_t position) const {
  const DoneOps all(*this);
  const DoneOp done = all.At(position);
  std::vector<uint32_t> after;
  for (const OpId before : ops[done.place].after) after.push_back(all.PositionOf(before, done));
  return after;
}

Bytes SizeOf(DType dtype) {
  switch (dtype) {
    case DType::kFp64:
      return Bytes(8);
    case DType::kFp32:
    case DType::kTf32:
      return Bytes(4);
    case DType::kBf16:
    case DType::kFp16:
      return Bytes(2);
    case DType::kFp8:
      return Bytes(1);
    case DType::kFp4:
      return Bytes(0.5);
  }
  internal::FailCheck(__FILE__, __LINE__, "unknown dtype");
}

const char* Name(DType dtype) {
  return NameIn({"fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "fp4"}, dtype);
}

const char* Name(GemmMode mode) { return NameIn({"NN", "NT", "TN"}, mode); }

const char* Name(AttentionKernel kernel) {
  return NameIn({"fused", "unfused", "flash-1", "flash-2", "flash-3", "cudnn", "efficient"},
                kernel);
}

const char* Name(CollectiveKind kind) {
  return NameIn({"all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast", "reduce",
                 "send-receive", "barrier", "to-host", "from-host"},
                kind);
}

bool IsHostCopy(CollectiveKind kind) {
  return kind == CollectiveKind::kToHost || kind == CollectiveKind::kFromHost;
}

AlgorithmId UsualAlgorithm(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllToAll:
      return AlgorithmId::kPairwise;
    case CollectiveKind::kBroadcast:
    case CollectiveKind::kReduce:
      return AlgorithmId::kChain;
    case CollectiveKind::kSendReceive:
      return AlgorithmId::kDirect;
    case CollectiveKind::kBarrier:
      return AlgorithmId::kDoubling;
    case CollectiveKind::kToHost:
    case CollectiveKind::kFromHost:
      return AlgorithmId::kCopy;
    case CollectiveKind::kAllReduce:
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter:
      break;
  }
  return AlgorithmId::kRing;
}

const char* Name(Phase phase) {
  return NameIn({"forward", "recompute", "backward", "synchronize", "update"}, phase);
}

Flops FlopsOf(const Gemm& gemm) {
  return Flops(2.0 * static_cast<double>(gemm.m) * static_cast<double>(gemm.n) *
               static_cast<double>(gemm.k) * gemm.batch);
}

Bytes BytesOf(const Gemm& gemm, DType dtype) {
  const auto m = static_cast<double>(gemm.m);
  const auto n = static_cast<double>(gemm.n);
  const auto k = static_cast<double>(gemm.k);
  return (m * k + k * n + m * n) * gemm.batch * SizeOf(dtype);
}

Footprint FootprintOf(const std::vector<Buffer>& buffers, BufferId buffer) {
  const Buffer& own = buffers[buffer.index()];
  const auto whole = [&](BufferId of) {
    const Buffer& root = buffers[of.index()];
    return Footprint{.buffer = of,
                     .row_end = std::max<uint64_t>(root.rows, 1),
                     .column_end = std::max<uint64_t>(root.columns, 1)};
  };
  if (!own.view) return whole(buffer);
  Footprint footprint = whole(own.view->of);
  const bool lives_long = own.kind != BufferKind::kActivation && own.kind != BufferKind::kBuffer;
  if (lives_long) return footprint;
  const uint64_t all = footprint.row_end;
  const auto set_rows = [&](uint64_t begin) {
    footprint.row_begin = begin;
    footprint.row_end = begin + own.rows;
    footprint.has_all_rows = begin == 0 && own.rows == all;
  };
  const std::vector<CommunicatorId>& cut_by = own.view->rows_cut_by;
  if (cut_by.empty()) {
    set_rows(own.view->row);
  } else if (cut_by.size() == 1 && own.view->row == 0) {
    set_rows(own.view->rows_turned * own.rows);
    footprint.turned_by = cut_by.front();
    footprint.piece = own.rows;
  }
  if (own.view->columns_cut_by.empty()) {
    footprint.column_begin = own.view->column;
    footprint.column_end = own.view->column + own.columns;
  }
  return footprint;
}

bool IsWait(const Compute& compute) {
  return compute.kind == ComputeKind::kFixed && compute.kernels == 0;
}

bool IsHostWork(const Work& work) {
  const auto* compute = std::get_if<Compute>(&work);
  return compute != nullptr && compute->kind == ComputeKind::kHost;
}

CommunicatorId CommunicatorOf(const Work& work) {
  if (const auto* collective = std::get_if<Collective>(&work)) return collective->communicator;
  if (const auto* send = std::get_if<Send>(&work)) return send->communicator;
  if (const auto* receive = std::get_if<Receive>(&work)) return receive->communicator;
  return CommunicatorId();
}

Bytes CommunicationBytes(const Work& work) {
  if (const auto* collective = std::get_if<Collective>(&work)) return collective->bytes;
  if (const auto* send = std::get_if<Send>(&work)) return send->bytes;
  if (const auto* receive = std::get_if<Receive>(&work)) return receive->bytes;
  return Bytes(0);
}

bool IsHostCopy(const Work& work) {
  const auto* collective = std::get_if<Collective>(&work);
  return collective != nullptr && IsHostCopy(collective->kind);
}

bool MovesNothing(const Schedule& schedule, const Work& work) {
  const CommunicatorId communicator = CommunicatorOf(work);
  return communicator.IsSet() && schedule.communicators[communicator.index()].size() == 1 &&
         !IsHostCopy(work);
}

std::string Describe(const Schedule& schedule, const Work& work) {
  if (const auto* compute = std::get_if<Compute>(&work)) return Describe(*compute);
  const std::string name = CommunicatorName(schedule, CommunicatorOf(work));
  const std::string size = Print(CommunicationBytes(work));
  if (const auto* collective = std::get_if<Collective>(&work))
    return fmt::format("{} of {} on {}", Name(collective->kind), size, name);
  if (const auto* send = std::get_if<Send>(&work))
    return fmt::format("send of {} to member {} on {}", size, send->peer, name);
  return fmt::format("receive of {} from member {} on {}", size, std::get<Receive>(work).peer,
                     name);
}

}  // namespace rehearse
