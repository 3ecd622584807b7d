// The Schedule: what every rank does in one training step, in SPMD form.
//
// A Schedule is a list of roles (all data-parallel replicas share one; a pipeline has one per
// stage), each an ordered list of ops on streams, a map rank -> role, and the communicators. It is
// as small for 100,000 ranks as for 8. Schedules are plain data: the planner (workloads/) makes
// them, the lowering (collectives/) and the real executor (real/) take them;
// sim/schedule/schedule_check.h says what a valid one is.
//
// Its whole meaning: a stream runs its ops in list order. An op is ready when the previous op of
// its stream and all ops in `after` are done. A collective begins when all ranks of its group are
// ready (rendezvous); the k-th collective a rank posts on a communicator meets the k-th of the
// others. The k-th send from a to b on a communicator meets the k-th receive at b from a.
//
// A role may keep what it repeats only once (Repeat): a *position* counts the ops as they are done,
// copies included; an op's place in Role::ops says where it is kept. Spans of a Timeline name
// positions.
//
// A collective with n buffers read and n written is a group of n that are launched together
// (ncclGroupStart, DeepSpeed's coalesced gathers): the i-th buffer read goes to the i-th written,
// and bytes are those of all together.
//
// Bytes of a collective are nccl-tests' "size": all-reduce, broadcast, reduce: the buffer;
// all-gather: the gathered array; reduce-scatter: the array before; all-to-all: one rank's send
// buffer (the largest, where they differ); send-receive: what each member sends to the next of its
// group; barrier: zero; to and from the host: what is copied.
//
// A host copy is on a communicator whose groups have one rank each. Buffers that are `on_host` lie
// in the memory of the rank's host, and only host copies and the host's own work touch them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "sim/base/id.h"
#include "sim/base/quantity.h"
#include "sim/schedule/collective_choice.h"
#include "sim/schedule/communicator.h"
#include "sim/schedule/kernel.h"
#include "sim/schedule/sequence_order.h"

namespace rehearse {

struct OpTag {};
using OpId = Id<OpTag>;  // position in Role::ops
struct StreamTag {};
using StreamId = Id<StreamTag>;  // position in Role::streams
struct BufferTag {};
using BufferId = Id<BufferTag>;  // position in Role::buffers

// 8 and 4 bits: operands that have been cast for a product, whatever the format (E4M3, E5M2, E2M1)
// and its scales. Backends keep such arrays in 16 bits (on CPUs in the type that they compute in).
enum class DType : uint8_t { kFp64, kFp32, kTf32, kBf16, kFp16, kFp8, kFp4 };
Bytes SizeOf(DType dtype);
const char* Name(DType dtype);  // "bf16"

// C(m×n) = A(m×k)·B(k×n) as BLAS sees it: which operand is transposed in memory.
enum class GemmMode : uint8_t { kNN, kNT, kTN };
const char* Name(GemmMode mode);

struct Gemm {
  uint64_t m = 0;
  uint64_t n = 0;
  uint64_t k = 0;
  GemmMode mode = GemmMode::kNN;
  uint32_t batch = 1;
};
Flops FlopsOf(const Gemm& gemm);               // 2·m·n·k·batch
Bytes BytesOf(const Gemm& gemm, DType dtype);  // A, B and C once each

// Which kernel an attention core is timed as. kFused is the one that the device's software usually
// runs (topology/devices/attention_model.h); flash-1 is FlashAttention of 2022 and 2023, efficient
// xformers' CUTLASS kernels. Backends execute the same whatever it says.
enum class AttentionKernel : uint8_t {
  kFused,
  kUnfused,  // two products, and the scores stored between them
  kFlash1,
  kFlash2,
  kFlash3,
  kCudnn,
  kEfficient,
};
const char* Name(AttentionKernel kernel);  // "flash-2"

// What kind of kernel a compute op is; the device's compute model has points for each kind.
enum class ComputeKind : uint8_t {
  kGemm,       // `gemm` counts
  kAttention,  // an attention core: `attention` counts
  kMemory,     // element-wise work, norms, optimizer: bound by `bytes`
  kFixed,      // takes `duration` on any device: measured elsewhere, or made up for illustration;
               // without kernels it is a wait, which occupies nothing and is never slowed down
  kHost,       // work of the host's processor on arrays in its memory, which bounds it: `bytes`
};

struct Compute {
  ComputeKind kind = ComputeKind::kMemory;
  Kernel kernel = Kernel::kNone;  // what it computes, for backends that execute it
  DType dtype = DType::kBf16;
  Gemm gemm;  // kGemm only; operands lie as its mode says
  std::optional<GemmMode>
      tuned;  // kGemm only: the mode that it is timed in, as if the operands lay so
  // kGemm only: it is one of so many equal parts, by rows and by columns of C, of a kernel that
  // communicates tile by tile, and takes its share of that kernel's time (FLUX, arXiv 2406.06858).
  uint32_t row_parts = 1;
  uint32_t column_parts = 1;
  AttentionKernel attention = AttentionKernel::kFused;  // kAttention only
  Seconds duration;                                     // kFixed only
  Flops flops;                                          // all kinds; for kGemm FlopsOf(gemm)
  Bytes bytes;                                          // memory traffic, read and written
  uint32_t kernels = 1;                                 // launches
  // kMemory only: elements of kernels that compute where each of theirs lies, because an operand is
  // broadcast or strided, and the part of `bytes` that is theirs.
  double strided = 0;
  Bytes strided_bytes;
  std::vector<double> attributes;  // of `kernel`; sim/schedule/kernel.h
};

enum class CollectiveKind : uint8_t {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kBroadcast,
  kReduce,
  kSendReceive,  // every member sends to the next one, the last to the first
  kBarrier,
  // Of one rank alone: its copy engines move buffers between the device and its host's memory.
  kToHost,
  kFromHost,
};
const char* Name(CollectiveKind kind);  // "all-reduce"
bool IsHostCopy(CollectiveKind kind);
// What libraries use for large arrays: a ring where there is one, a chain for broadcast and reduce,
// "pairwise" for all-to-all, "direct" for send-receive, "doubling" for barriers, "copy" to and from
// the host.
AlgorithmId UsualAlgorithm(CollectiveKind kind);

enum class Reduction : uint8_t { kSum, kMaximum };

struct Collective {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  CommunicatorId communicator = {};
  Bytes bytes = {};
  DType dtype = DType::kBf16;
  Reduction reduction = Reduction::kSum;
  AlgorithmId algorithm = AlgorithmId::kRing;
  Protocol protocol = Protocol::kNone;
  uint32_t root = 0;  // broadcast, reduce: a member of the group
  // All-to-all whose sizes differ (mixture of experts, grouped sends): what member i sends to
  // member j is pair_bytes[i·p + j], zero for nothing. Empty: all are bytes/p.
  std::vector<Bytes> pair_bytes = {};
  // For an all-to-all by "deepep", whose blocks hold tokens several times over: the share of the
  // bytes that is sent if a token goes once to every rank that wants it, and once to every machine.
  double rank_share = 1;
  double machine_share = 1;
  // Copy engines move it over the bare links, whatever library the rest is left to.
  bool copied = false;
};

// To or from the member `peer` of the rank's own group.
struct Send {
  CommunicatorId communicator;
  uint32_t peer = 0;
  Bytes bytes;
};
struct Receive {
  CommunicatorId communicator;
  uint32_t peer = 0;
  Bytes bytes;
};

using Work = std::variant<Compute, Collective, Send, Receive>;

enum class Phase : uint8_t { kForward, kRecompute, kBackward, kSynchronize, kUpdate };
const char* Name(Phase phase);  // "forward", ...

// What an op is part of. `layer` is -1 outside the repeated layers.
struct Tag {
  Phase phase = Phase::kForward;
  int32_t layer = -1;
  int32_t micro_batch = 0;
};

struct Op {
  std::string name;  // short, the same for equal ops of all layers: "qkv", "all-gather qkv"
  StreamId stream;
  Tag tag;
  Work work;
  std::vector<OpId> after;  // earlier ops of the role
  std::vector<BufferId> reads;
  std::vector<BufferId> writes;
};

enum class StreamKind : uint8_t { kCompute, kCommunication };
struct Stream {
  std::string name;  // "compute", or the communicator's name
  StreamKind kind = StreamKind::kCompute;
};

// A piece of device memory. Parameters, gradients and optimizer state live as long as the step;
// activations and buffers from their first to their last use in list order (see
// sim/schedule/memory.h).
enum class BufferKind : uint8_t { kParameter, kGradient, kOptimizer, kActivation, kBuffer };

// How one dimension of a global array is cut: `size` elements in all, into equal blocks over the
// members of `cut_by` (each communicator cuts every block of the one before it).
struct Extent {
  uint64_t size = 0;
  std::vector<CommunicatorId> cut_by;
};

// Which piece of which global array a rank's buffer holds: its block of rows and of columns, or,
// where `flat_by` is given, only a share of that block's elements, taken row by row and cut into
// equal runs (the last may be shorter by padding), as FSDP keeps weights. Equal for many buffers,
// so kept once per role.
struct Region {
  Extent rows;
  Extent columns;
  std::vector<CommunicatorId> flat_by;
  // The order in which rows are numbered, where ranks share sequences.
  SequenceOrder order = {};
};

// A buffer that is a part of another one (never of a view) and takes no memory: rows × columns
// elements from (row, column) on, moved on by as many pieces as the rank's position in
// `rows_cut_by` and `columns_cut_by` says (outermost first, as in Extent). With `rows_turned` it is
// the piece of the member so many places further on, the first one following the last: what reaches
// a rank step by step round a ring.
// A view of one row that does not fit into the buffer's is a run of its elements, row by row: a
// rank's share of a parameter (ZeRO).
struct View {
  BufferId of;
  uint64_t row = 0;
  uint64_t column = 0;
  std::vector<CommunicatorId> rows_cut_by = {};
  std::vector<CommunicatorId> columns_cut_by = {};
  uint32_t rows_turned = 0;
};

inline constexpr uint32_t kNoRegion = 0xffffffffu;

struct Buffer {
  std::string name;
  BufferKind kind = BufferKind::kActivation;
  // Zero for a view; may exceed rows × columns elements by the padding of equal shares.
  Bytes bytes = {};
  // What it holds, for backends: a row-major matrix. A buffer without rows can only be timed.
  DType dtype = DType::kBf16;
  uint64_t rows = 0;
  uint64_t columns = 0;
  // Position in Role::regions. Parameters and gradients have one, or else the views that cover them
  // do (biases and norms lie one after the other in one row).
  uint32_t region = kNoRegion;
  std::optional<View> view = std::nullopt;
  bool on_host = false;  // in the host's memory; only host copies and work touch it
  // On a GPU it lies where another array is that is not needed at the same time, and so counts as
  // no memory. Backends give it its own.
  bool borrowed = false;
};

// Where an access to a buffer falls: elements of the buffer itself, or of the one that it is a view
// of. A view whose place depends on the rank counts as the whole, and so does one of parameters,
// gradients or optimizer state. But pieces of rows that one communicator cuts are told apart by how
// far they are turned: their rows are counted from the rank's own piece on.
struct Footprint {
  BufferId buffer;  // not a view
  uint64_t row_begin = 0;
  uint64_t row_end = 0;
  uint64_t column_begin = 0;
  uint64_t column_end = 0;
  bool has_all_rows = true;
  // Where rows are counted from: the members' own pieces of so many rows; not set: the first row.
  CommunicatorId turned_by = {};
  uint64_t piece = 0;

  bool Overlaps(const Footprint& other) const {
    return (!IsCountedAs(other) || (row_begin < other.row_end && other.row_begin < row_end)) &&
           column_begin < other.column_end && other.column_begin < column_end;
  }
  bool Covers(const Footprint& other) const {
    return (has_all_rows ||
            (IsCountedAs(other) && row_begin <= other.row_begin && other.row_end <= row_end)) &&
           column_begin <= other.column_begin && other.column_end <= column_end;
  }
  bool IsCountedAs(const Footprint& other) const {
    return turned_by == other.turned_by && piece == other.piece;
  }
  friend bool operator==(const Footprint&, const Footprint&) = default;
};

// The kept ops [begin, end) are done `times` more times, right after themselves: equal
// micro-batches of a step. In the c-th copy, ops that an op of the body is `after` lie c·(end -
// begin) further on, buffers of the body ([first_buffer, end_buffer) and as many before them)
// c·(end_buffer - first_buffer), and the micro-batch of its tag is c·micro_batches higher. So an op
// of the body may wait only for ops of the body and of the equally long piece before it; whatever
// comes later and names an op or a buffer of the body means the last copy's.
//
// Where `back` is more than 1, the body may refer to as many pieces before it, all of this length:
// to micro-batches that have been under way for longer. Their buffers move on as those of the piece
// before do, and what comes later may also name ops and buffers of the back - 1 pieces before the
// body: it means those of as many copies before the last.
struct Repeat {
  uint32_t begin = 0;
  uint32_t end = 0;
  uint32_t times = 0;
  uint32_t first_buffer = 0;
  uint32_t end_buffer = 0;
  int32_t micro_batches = 1;
  uint32_t back = 1;

  uint32_t size() const { return end - begin; }
  uint32_t buffers() const { return end_buffer - first_buffer; }
  // The first op and buffer that copies shift, and that they mean in copies if named later.
  uint32_t FirstOp() const { return begin - (back - 1) * size(); }
  uint32_t FirstBuffer() const { return first_buffer - (back - 1) * buffers(); }
};

struct Role {
  std::string name;
  std::vector<Stream> streams;
  std::vector<Buffer> buffers;
  std::vector<Region> regions;
  std::vector<Op> ops;  // as they are kept
  // In order and disjoint; empty: positions are places in `ops`.
  std::vector<Repeat> repeats{};

  // How many ops the role does, copies included.
  uint32_t OpCount() const;
  // Where in `ops` the op at a position is kept.
  uint32_t PlaceAt(uint32_t position) const;
  // The op at a position, as it is kept: its name, stream and work count for every copy, the
  // micro-batch of its tag and what it is after, reads and writes for the first.
  const Op& At(uint32_t position) const;
  Tag TagAt(uint32_t position) const;
  // The positions that the op at a position comes after, in the order of Op::after.
  std::vector<uint32_t> AfterAt(uint32_t position) const;
};

struct Schedule {
  std::vector<Communicator> communicators;
  std::vector<Role> roles;
  std::vector<uint32_t> role_of_rank;  // one entry per rank: position in `roles`

  // Facts of the step that only the planner knows, over all ranks.
  Flops model_flops;                  // of the mathematics, without recomputation (MFU)
  Flops hardware_flops;               // with recomputation (HFU)
  double tokens = 0;                  // of the step; 0 when the model has none
  std::string token_name = "tokens";  // what is counted: images, for a network of images

  uint32_t ranks() const { return static_cast<uint32_t>(role_of_rank.size()); }
};

Footprint FootprintOf(const std::vector<Buffer>& buffers, BufferId buffer);
bool IsWait(const Compute& compute);
bool IsHostWork(const Work& work);  // of the host's processor: ComputeKind::kHost
// The communicator that a communication op is on; not set for Compute.
CommunicatorId CommunicatorOf(const Work& work);
// The bytes of a communication op; zero for Compute.
Bytes CommunicationBytes(const Work& work);
bool IsHostCopy(const Work& work);
// Whether it communicates in groups of one, so that nothing moves.
bool MovesNothing(const Schedule& schedule, const Work& work);
// "all-reduce of 168 MiB on \"row\"", "GEMM 8192x7168x3584 NN", for messages and traces.
std::string Describe(const Schedule& schedule, const Work& work);

}  // namespace rehearse
