#include "workloads/planner/plan_builder.h"

#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "workloads/planner/casts.h"

namespace rehearse {
namespace {

// The communicators that every role has a stream for: those of each axis, and of the model.
std::vector<Communicator> FirstOf(const StepCommunicators& communicators) {
  const auto begin = communicators.all().begin();
  return {begin, begin + communicators.model().index() + 1};
}

}  // namespace

PlanBuilder::PlanBuilder(std::string role, StepCommunicators* communicators, DType precision,
                         std::vector<AxisCost> costs, Place place)
    : communicators_(*communicators),
      precision_(precision),
      costs_(std::move(costs)),
      place_(std::move(place)),
      builder_(std::move(role), FirstOf(*communicators)) {
  for (const MeshAxis& axis : mesh().axes()) sizes_.push_back(axis.size);
}

uint32_t PlanBuilder::SizeOfAxes(const std::vector<uint32_t>& axes) const {
  uint32_t size = 1;
  for (const uint32_t axis : axes) size *= sizes_[axis];
  return size;
}

CommunicatorId PlanBuilder::CommunicatorOf(const std::vector<uint32_t>& axes) {
  return WithStream(communicators_.Along(axes));
}

CommunicatorId PlanBuilder::CommunicatorNamed(const std::vector<uint32_t>& axes,
                                              const std::string& name) {
  return WithStream(communicators_.Named(axes, name));
}

CommunicatorId PlanBuilder::PipelineNamed(const std::string& name) {
  return CommunicatorNamed({static_cast<uint32_t>(mesh().axes().size())}, name);
}

CommunicatorId PlanBuilder::PairsOf(uint32_t rank, uint32_t other) {
  return WithStream(communicators_.Pairs(rank, other));
}

CommunicatorId PlanBuilder::WithStream(CommunicatorId communicator) {
  if (!builder_.HasStream(communicator)) {
    builder_.AddStream(communicators_[communicator], communicator);
  }
  return communicator;
}

std::string PlanBuilder::Label(const std::string& name) const {
  if (tag().layer < 0) return name;
  constexpr std::string_view kOfLayer = " of layer ";
  const std::string layer = std::to_string(tag().layer);
  std::string label;
  label.reserve(name.size() + kOfLayer.size() + layer.size());
  return label.append(name).append(kOfLayer).append(layer);
}

uint64_t PlanBuilder::LocalRows(const Tensor& tensor) const {
  return tensor.rows / Pieces(tensor.layout, sizes_, 0);
}
uint64_t PlanBuilder::LocalColumns(const Tensor& tensor) const {
  return tensor.columns / Pieces(tensor.layout, sizes_, 1);
}
double PlanBuilder::LocalElements(const Tensor& tensor) const {
  return static_cast<double>(LocalRows(tensor)) * static_cast<double>(LocalColumns(tensor));
}

// ---- buffers ------------------------------------------------------------------------------------

Tensor PlanBuilder::MakeTensor(std::string name, uint64_t rows, uint64_t columns,
                               const Layout& layout) {
  return MakeTensor(std::move(name), rows, columns, layout, precision_, SizeOf(precision_));
}

Tensor PlanBuilder::MakeTensor(std::string name, uint64_t rows, uint64_t columns,
                               const Layout& layout, DType dtype, Bytes element, BufferKind kind) {
  Tensor tensor{std::move(name), rows, columns, layout, {}, dtype};
  tensor.buffer = builder_.AddBuffer({.name = Label(tensor.name),
                                      .kind = kind,
                                      .bytes = LocalElements(tensor) * element,
                                      .dtype = dtype,
                                      .rows = LocalRows(tensor),
                                      .columns = LocalColumns(tensor),
                                      .region = RegionOf(rows, columns, layout)});
  return tensor;
}

Tensor PlanBuilder::MakeRowValues(std::string name, const Tensor& like, uint64_t numbers,
                                  BufferKind kind) {
  Layout layout = like.layout;
  for (Placement& placement : layout) {
    if (!IsSplit(placement, 0)) placement = B();
  }
  return MakeTensor(std::move(name), like.rows, numbers, layout, DType::kFp32, SizeOf(DType::kFp32),
                    kind);
}

std::optional<BufferId> PlanBuilder::ViewOfRows(BufferId of, uint64_t row, uint64_t rows) {
  Buffer part = BufferOf(of);
  View view = part.view.value_or(View{of, 0, 0, {}, {}});
  if (!view.rows_cut_by.empty() || BufferOf(view.of).columns != part.columns) return std::nullopt;
  view.row += row;
  part.bytes = Bytes(0);
  part.rows = rows;
  part.region = kNoRegion;
  part.borrowed = false;
  part.view = std::move(view);
  return builder_.AddBuffer(std::move(part));
}

std::vector<BufferId> PlanBuilder::EqualRows(BufferId of, uint32_t runs) {
  if (runs == 1) return {of};
  const uint64_t rows = BufferOf(of).rows / runs;
  CHECK_EQ(rows * runs, BufferOf(of).rows);
  std::vector<BufferId> parts;
  for (uint32_t i = 0; i < runs; ++i) {
    const std::optional<BufferId> part = ViewOfRows(of, i * rows, rows);
    CHECK(part.has_value());
    parts.push_back(*part);
  }
  return parts;
}

uint32_t PlanBuilder::RegionOf(uint64_t rows, uint64_t columns, const Layout& layout,
                               const std::vector<uint32_t>& flat_axes) {
  const auto [it, is_new] =
      regions_.emplace(RegionKey{rows, columns, CodeOf(layout), flat_axes}, 0);
  if (is_new) {
    const auto communicators = [](const auto& axes) {
      std::vector<CommunicatorId> ids;
      for (const uint32_t axis : axes) ids.emplace_back(axis);
      return ids;
    };
    it->second = builder_.AddRegion({{rows, communicators(SplitAxes(layout, 0))},
                                     {columns, communicators(SplitAxes(layout, 1))},
                                     communicators(flat_axes),
                                     OrderOf(rows, layout)});
  }
  return it->second;
}

void PlanBuilder::set_sequences(uint32_t axis, uint64_t sequence, bool balanced) {
  sequence_axis_ = axis;
  sequences_.sequence = sequence;
  sequences_.parts = sizes_[axis];
  sequences_.balanced = balanced;
}

// A block is what the axes outside the one that cuts sequences leave.
SequenceOrder PlanBuilder::OrderOf(uint64_t rows, const Layout& layout) const {
  if (sequences_.parts == 1 || !IsSplit(layout[sequence_axis_], 0)) return {};
  SequenceOrder order = sequences_;
  order.block = rows;
  for (const uint32_t axis : SplitAxes(layout, 0)) {
    if (axis == sequence_axis_) break;
    order.block /= sizes_[axis];
  }
  return order;
}

// ---- ops ----------------------------------------------------------------------------------------

// The host runs ahead of the device, so what counts is the sum of all launches so far. It counts
// layer by layer: a layer's first kernel waits for the launches of all before it.
void PlanBuilder::CountLaunches(uint32_t launches) {
  if (host_launch_ == Seconds(0)) return;
  const bool is_same = launched_.layer == tag().layer && launched_.phase == tag().phase &&
                       launched_.micro_batch == tag().micro_batch;
  if (!is_same && launches_ > 0) {
    Compute wait;
    wait.kind = ComputeKind::kFixed;
    wait.duration = host_launch_ * static_cast<double>(launches_);
    wait.kernels = 0;
    builder_.AddWait("launches", std::move(wait), HostStream());
    launches_ = 0;
  }
  const bool is_launched = is_same && graph_ > 0 && graph_ == launched_graph_;
  launched_ = tag();
  launched_graph_ = graph_;
  if (!is_launched) launches_ += graph_ > 0 ? 1 : launches;
}

OpId PlanBuilder::AddCompute(std::string name, Compute compute, std::vector<BufferId> reads,
                             std::vector<BufferId> writes) {
  CountLaunches(compute.kernels);
  return builder_.AddCompute(std::move(name), std::move(compute), std::move(reads),
                             std::move(writes));
}

Compute PlanBuilder::MemoryWork(Kernel kernel, double bytes) const {
  Compute compute;
  compute.kind = ComputeKind::kMemory;
  compute.kernel = kernel;
  compute.dtype = precision_;
  compute.bytes = Bytes(bytes);
  return compute;
}

OpId PlanBuilder::AddMemoryOp(std::string name, Kernel kernel, double bytes,
                              std::vector<BufferId> reads, std::vector<BufferId> writes,
                              uint32_t kernels, std::vector<double> attributes) {
  return AddMemoryOp(std::move(name), kernel, KernelCost{bytes, kernels}, std::move(reads),
                     std::move(writes), std::move(attributes));
}

OpId PlanBuilder::AddMemoryOp(std::string name, Kernel kernel, const KernelCost& cost,
                              std::vector<BufferId> reads, std::vector<BufferId> writes,
                              std::vector<double> attributes) {
  Compute compute = MemoryWork(kernel, cost.bytes);
  compute.kernels = cost.kernels;
  compute.strided = cost.strided;
  compute.strided_bytes = Bytes(cost.strided_bytes);
  compute.attributes = std::move(attributes);
  return AddCompute(std::move(name), std::move(compute), std::move(reads), std::move(writes));
}

OpId PlanBuilder::AddMemoryOpBeside(std::string name, Kernel kernel, double bytes, StreamId stream,
                                    std::vector<BufferId> reads, std::vector<BufferId> writes) {
  return builder_.AddComputeBeside(std::move(name), MemoryWork(kernel, bytes), stream,
                                   std::move(reads), std::move(writes));
}

StreamId PlanBuilder::HostStream() {
  if (!host_.IsSet()) host_ = AddStream("host", StreamKind::kCompute);
  return host_;
}

OpId PlanBuilder::AddHostOp(std::string name, Kernel kernel, double bytes,
                            std::vector<BufferId> reads, std::vector<BufferId> writes,
                            std::vector<double> attributes) {
  Compute compute = MemoryWork(kernel, bytes);
  compute.kind = ComputeKind::kHost;
  compute.kernels = 0;
  compute.attributes = std::move(attributes);
  return builder_.AddComputeBeside(std::move(name), std::move(compute), HostStream(),
                                   std::move(reads), std::move(writes));
}

// The bytes of all three arrays; C is in the plan's precision.
Bytes PlanBuilder::BytesOfGemm(const Gemm& gemm, BufferId a) const {
  const DType operands = BufferOf(a).dtype;
  if (!IsNarrow(operands)) return BytesOf(gemm, precision_);
  const auto m = static_cast<double>(gemm.m);
  const auto n = static_cast<double>(gemm.n);
  const auto k = static_cast<double>(gemm.k);
  return ((m + n) * k) * SizeOf(operands) + (m * n) * SizeOf(precision_);
}

OpId PlanBuilder::AddGemm(std::string name, const Gemm& gemm, BufferId a, BufferId b, BufferId c,
                          bool accumulate, std::optional<Bytes> bytes) {
  Compute compute;
  compute.kind = ComputeKind::kGemm;
  compute.kernel = Kernel::kGemm;
  const DType operands = BufferOf(a).dtype;
  compute.dtype = IsNarrow(operands) ? operands : precision_;
  compute.gemm = gemm;
  compute.flops = FlopsOf(gemm);
  compute.bytes = bytes.value_or(BytesOfGemm(gemm, a));
  if (const uint32_t parts = row_parts_ * column_parts_; parts > 1) {
    Gemm whole = gemm;
    whole.m *= row_parts_;
    whole.n *= column_parts_;
    compute.row_parts = row_parts_;
    compute.column_parts = column_parts_;
    compute.bytes = BytesOfGemm(whole, a) / parts;
    compute.kernels = has_launched_ ? 0 : 1;
    has_launched_ = true;
  }
  std::vector<BufferId> reads = {a, b};
  if (accumulate) reads.push_back(c);
  return AddCompute(std::move(name), std::move(compute), std::move(reads), {c});
}

OpId PlanBuilder::AddCollective(std::string name, Collective collective, Issue issue,
                                std::vector<BufferId> reads, std::vector<BufferId> writes) {
  const bool blocks = blocks_backward_ && tag().phase == Phase::kBackward;
  if (runs_chunks_ && !blocks) issue = Issue::kAsynchronous;
  CountLaunches(1);
  collective.algorithm = UsualAlgorithm(collective.kind);
  return builder_.AddCollective(std::move(name), std::move(collective), issue, std::move(reads),
                                std::move(writes));
}

OpId PlanBuilder::AddCollective(std::string name, CollectiveKind kind,
                                const std::vector<uint32_t>& axes, double bytes, DType dtype,
                                Issue issue, std::vector<BufferId> reads,
                                std::vector<BufferId> writes) {
  Collective collective;
  collective.kind = kind;
  collective.communicator = CommunicatorOf(axes);
  collective.bytes = Bytes(bytes);
  collective.dtype = dtype;
  return AddCollective(std::move(name), std::move(collective), issue, std::move(reads),
                       std::move(writes));
}

OpId PlanBuilder::AddSend(const Tensor& tensor, CommunicatorId communicator, uint32_t rank,
                          StreamId stream, Issue issue) {
  const Bytes bytes(LocalElements(tensor) * element());
  return builder_.AddMessage("send " + tensor.name, Send{communicator, rank, bytes}, stream, issue,
                             {Contiguous(tensor)}, {});
}

OpId PlanBuilder::AddReceive(const Tensor& tensor, CommunicatorId communicator, uint32_t rank,
                             StreamId stream) {
  const Bytes bytes(LocalElements(tensor) * element());
  return builder_.AddMessage("receive " + tensor.name, Receive{communicator, rank, bytes}, stream,
                             Issue::kAsynchronous, {}, {tensor.buffer});
}

OpId PlanBuilder::AddSend(std::string name, BufferId number, CommunicatorId communicator,
                          uint32_t rank) {
  return builder_.AddMessage(std::move(name), Send{communicator, rank, SizeOf(DType::kFp32)},
                             builder_.StreamOf(communicator), Issue::kAsynchronous, {number}, {});
}

OpId PlanBuilder::AddReceive(std::string name, BufferId number, CommunicatorId communicator,
                             uint32_t rank) {
  return builder_.AddMessage(std::move(name), Receive{communicator, rank, SizeOf(DType::kFp32)},
                             builder_.StreamOf(communicator), Issue::kAsynchronous, {}, {number});
}

std::vector<BufferId> PlanBuilder::CopyToHost(const std::string& name,
                                              const std::vector<BufferId>& buffers, OpId since) {
  std::vector<BufferId> copies = MakeCopies(buffers, /*on_host=*/true);
  AddHostCopy(CollectiveKind::kToHost, name, buffers, copies, since);
  return copies;
}

std::vector<BufferId> PlanBuilder::CopyFromHost(const std::string& name,
                                                const std::vector<BufferId>& buffers, OpId since) {
  std::vector<BufferId> copies = MakeCopies(buffers, /*on_host=*/false);
  AddHostCopy(CollectiveKind::kFromHost, name, buffers, copies, since);
  return copies;
}

void PlanBuilder::SendToHost(const std::string& name, const std::vector<BufferId>& buffers,
                             const std::vector<BufferId>& on_host, OpId since) {
  AddHostCopy(CollectiveKind::kToHost, name, buffers, on_host, since);
}

void PlanBuilder::ReturnFromHost(const std::string& name, const std::vector<BufferId>& on_host,
                                 const std::vector<BufferId>& buffers, OpId since) {
  AddHostCopy(CollectiveKind::kFromHost, name, on_host, buffers, since);
}

std::vector<BufferId> PlanBuilder::MakeCopies(const std::vector<BufferId>& buffers, bool on_host) {
  std::vector<BufferId> copies;
  for (const BufferId id : buffers) {
    Buffer own = BufferOf(id);
    CHECK(!own.view && own.on_host != on_host);
    own.on_host = on_host;
    if (on_host) own.name += ", on the host";
    copies.push_back(builder_.AddBuffer(std::move(own)));
  }
  return copies;
}

void PlanBuilder::AddHostCopy(CollectiveKind kind, const std::string& name,
                              const std::vector<BufferId>& from, const std::vector<BufferId>& to,
                              OpId since) {
  Collective copy;
  copy.kind = kind;
  copy.communicator = communicators_.OfHost();
  copy.algorithm = UsualAlgorithm(kind);
  for (const BufferId id : kind == CollectiveKind::kToHost ? to : from) {
    copy.bytes += BufferOf(id).bytes;
    copy.dtype = BufferOf(id).dtype;
  }
  StreamId& stream = copy_streams_[kind];
  if (!stream.IsSet())
    stream = AddStream(kind == CollectiveKind::kToHost ? "to host" : "from host");
  CountLaunches(static_cast<uint32_t>(from.size()));
  builder_.AddHostCopy(name, std::move(copy), stream, since, from, to);
}

void PlanBuilder::AllReduceRowValues(const std::string& name, const Tensor& values,
                                     const Tensor& like, Reduction reduction) {
  const AxesOfLayout axes = SplitAxes(like.layout, 1);
  if (axes.empty()) return;
  Collective collective;
  collective.kind = CollectiveKind::kAllReduce;
  collective.communicator = CommunicatorOf({axes.begin(), axes.end()});
  collective.bytes = LocalElements(values) * SizeOf(DType::kFp32);
  collective.dtype = DType::kFp32;
  collective.reduction = reduction;
  AddCollective("all-reduce " + name, std::move(collective), Issue::kBlocking, {values.buffer},
                {values.buffer});
}

// ---- redistribution -----------------------------------------------------------------------------

const std::vector<RedistributionStep>& PlanBuilder::PathTo(const Tensor& tensor,
                                                           const Layout& target) {
  const auto [it, is_new] =
      paths_.emplace(PathKey{CodeOf(tensor.layout), CodeOf(target), tensor.rows, tensor.columns},
                     std::vector<RedistributionStep>());
  if (is_new) {
    auto path = ShortestPath(tensor.layout, target, {tensor.rows, tensor.columns, element()},
                             sizes_, costs_);
    if (!path) {
      std::string mesh;
      for (const MeshAxis& axis : communicators_.mesh().axes()) {
        mesh += fmt::format("{}\"{}\" {}", mesh.empty() ? "" : " x ", axis.name, axis.size);
      }
      throw Error(place_, fmt::format("no redistribution turns \"{}\" ({}x{}) from {} into {} on "
                                      "the mesh {}",
                                      tensor.name, tensor.rows, tensor.columns,
                                      ToString(tensor.layout), ToString(target), mesh));
    }
    it->second = std::move(*path);
  }
  return it->second;
}

Tensor PlanBuilder::Redistribute(Tensor tensor, const Layout& target, Issue issue) {
  if (tensor.layout == target) return tensor;
  for (const RedistributionStep& step : PathTo(tensor, target)) {
    tensor = Take(step, std::move(tensor), issue);
  }
  return tensor;
}

Tensor PlanBuilder::Take(const RedistributionStep& step, Tensor tensor, Issue issue) {
  if (step.move == Move::kSlice) return Slice(step, std::move(tensor));
  const uint32_t ranks = SizeOfAxes(step.axes);
  const std::string name = fmt::format("{} {}", Name(step.move), tensor.name);
  const double size = SizeOf(tensor.dtype).value();
  const double before = LocalElements(tensor) * size;
  const auto collective = [&](CollectiveKind kind, double bytes, BufferId from, BufferId to) {
    AddCollective(name, kind, step.axes, bytes, tensor.dtype, issue, {from}, {to});
  };
  if (step.move == Move::kAllReduce) {
    tensor.layout = step.after;
    tensor.buffer = Contiguous(tensor);
    collective(CollectiveKind::kAllReduce, before, tensor.buffer, tensor.buffer);
    return tensor;
  }
  // What is cut by columns is sent as blocks, and what was cut by columns arrives as blocks.
  const bool cuts_columns = step.move != Move::kAllGather && step.to_dimension == 1;
  const bool joins_columns = step.move != Move::kReduceScatter && step.from_dimension == 1;
  const BufferId from = cuts_columns ? StackPieces(tensor, ranks) : Contiguous(tensor);
  Tensor result = MakeTensor(tensor.name, tensor.rows, tensor.columns, step.after, tensor.dtype,
                             SizeOf(tensor.dtype));
  const double after = LocalElements(result) * size;
  const BufferId to =
      joins_columns ? MakePieces(result, LocalRows(result) * ranks, LocalColumns(result) / ranks)
                    : result.buffer;
  switch (step.move) {
    case Move::kReduceScatter:
      collective(CollectiveKind::kReduceScatter, before, from, to);
      break;
    case Move::kAllToAll:
      collective(CollectiveKind::kAllToAll, before, from, to);
      break;
    case Move::kAllGather:
      collective(CollectiveKind::kAllGather, after, from, to);
      break;
    default:
      internal::FailCheck(__FILE__, __LINE__, "a step that moves nothing");
  }
  // PyTorch's all_gather copies the pieces out of its flat buffer, then a concatenation interleaves
  // them.
  if (joins_columns) {
    const bool twice = step.move == Move::kAllGather;
    AddMemoryOp("interleave " + tensor.name, Kernel::kUnstack, (twice ? 4 : 2) * after, {to},
                {result.buffer}, twice ? 2 : 1);
  }
  return result;
}

// A view, offset by this rank's place along the axes.
Tensor PlanBuilder::Slice(const RedistributionStep& step, Tensor tensor) {
  const Buffer& whole = BufferOf(tensor.buffer);
  View view = whole.view.value_or(View{tensor.buffer, 0, 0, {}, {}});
  auto& cut_by = step.to_dimension == 0 ? view.rows_cut_by : view.columns_cut_by;
  for (const uint32_t axis : step.axes) cut_by.emplace_back(axis);
  const Buffer piece{.name = whole.name,
                     .kind = whole.kind,
                     .bytes = Bytes(0),
                     .dtype = whole.dtype,
                     .rows = tensor.rows / Pieces(step.after, sizes_, 0),
                     .columns = tensor.columns / Pieces(step.after, sizes_, 1),
                     .region = RegionOf(tensor.rows, tensor.columns, step.after),
                     .view = view};
  tensor.layout = step.after;
  tensor.buffer = builder_.AddBuffer(piece);
  return tensor;
}

BufferId PlanBuilder::MakePieces(const Tensor& tensor, uint64_t rows, uint64_t columns) {
  return builder_.AddBuffer(
      {.name = Label(tensor.name + " in pieces"),
       .kind = BufferKind::kBuffer,
       .bytes = static_cast<double>(rows) * static_cast<double>(columns) * SizeOf(tensor.dtype),
       .dtype = tensor.dtype,
       .rows = rows,
       .columns = columns});
}

BufferId PlanBuilder::StackPieces(const Tensor& tensor, uint32_t pieces) {
  const BufferId stacked =
      MakePieces(tensor, LocalRows(tensor) * pieces, LocalColumns(tensor) / pieces);
  AddMemoryOp("stack " + tensor.name, Kernel::kStack,
              2 * LocalElements(tensor) * SizeOf(tensor.dtype).value(), {tensor.buffer}, {stacked});
  return stacked;
}

// Collectives work on whole arrays: columns out of a wider one are copied first.
BufferId PlanBuilder::Contiguous(const Tensor& tensor) {
  const Buffer& buffer = BufferOf(tensor.buffer);
  if (!buffer.view || BufferOf(buffer.view->of).columns == buffer.columns) return tensor.buffer;
  const Tensor copy = MakeTensor(tensor.name, tensor.rows, tensor.columns, tensor.layout,
                                 tensor.dtype, SizeOf(tensor.dtype));
  AddMemoryOp("copy " + tensor.name, Kernel::kCopy,
              2 * LocalElements(tensor) * SizeOf(tensor.dtype).value(), {tensor.buffer},
              {copy.buffer});
  return copy.buffer;
}

}  // namespace rehearse
