#include "tests/support/gpu_schedules.h"

#include <numeric>

#include <fmt/format.h>

namespace rehearse {

RoleMaker::RoleMaker(uint32_t ranks) : ranks_(ranks) {
  std::vector<uint32_t> members(ranks);
  std::iota(members.begin(), members.end(), 0u);
  schedule.communicators.push_back(Communicator::Explicit("all", {members}));
  schedule.roles.resize(1);
  schedule.roles[0].name = "rank";
  schedule.role_of_rank.assign(ranks, 0);
  AddStream("compute", StreamKind::kCompute);
}

StreamId RoleMaker::AddStream(const std::string& name, StreamKind kind) {
  role().streams.push_back({name, kind});
  return StreamId(static_cast<uint32_t>(role().streams.size() - 1));
}

BufferId RoleMaker::AddBuffer(const std::string& name, BufferKind kind, uint64_t rows,
                              uint64_t columns, Cut cut) {
  Region region;
  region.rows = {rows, {}};
  region.columns = {columns, {}};
  Buffer buffer;
  buffer.name = name;
  buffer.kind = kind;
  buffer.dtype = dtype;
  buffer.rows = rows;
  buffer.columns = columns;
  if (cut == Cut::kRows) {
    region.rows.cut_by = {all()};
    buffer.rows = rows / ranks_;
  } else if (cut == Cut::kColumns) {
    region.columns.cut_by = {all()};
    buffer.columns = columns / ranks_;
  }
  buffer.bytes = static_cast<double>(buffer.rows * buffer.columns) * SizeOf(dtype);
  buffer.region = static_cast<uint32_t>(role().regions.size());
  role().regions.push_back(region);
  role().buffers.push_back(buffer);
  return BufferId(static_cast<uint32_t>(role().buffers.size() - 1));
}

BufferId RoleMaker::AddView(const std::string& name, BufferId of, uint64_t row, uint64_t column,
                            uint64_t rows, uint64_t columns) {
  Buffer buffer;
  buffer.name = name;
  buffer.dtype = dtype;
  buffer.rows = rows;
  buffer.columns = columns;
  buffer.view = View{of, row, column, {}, {}};
  role().buffers.push_back(buffer);
  return BufferId(static_cast<uint32_t>(role().buffers.size() - 1));
}

OpId RoleMaker::AddWork(const std::string& name, StreamId stream, const Work& work,
                        std::vector<BufferId> reads, std::vector<BufferId> writes,
                        std::vector<OpId> after) {
  Op op;
  op.name = name;
  op.stream = stream;
  op.work = work;
  op.reads = std::move(reads);
  op.writes = std::move(writes);
  op.after = std::move(after);
  role().ops.push_back(op);
  return OpId(static_cast<uint32_t>(role().ops.size() - 1));
}

OpId RoleMaker::AddCompute(const std::string& name, const Compute& compute,
                           std::vector<BufferId> reads, std::vector<BufferId> writes,
                           std::vector<OpId> after) {
  Compute typed = compute;
  typed.dtype = dtype;
  return AddWork(name, StreamId(0), typed, std::move(reads), std::move(writes), std::move(after));
}

OpId RoleMaker::AddCollective(const std::string& name, CollectiveKind kind, StreamId stream,
                              BufferId from, BufferId to, std::vector<OpId> after) {
  const Buffer& whole = role().buffers[(kind == CollectiveKind::kAllGather ? to : from).index()];
  Collective collective;
  collective.kind = kind;
  collective.communicator = all();
  collective.bytes = static_cast<double>(whole.rows * whole.columns) * SizeOf(dtype);
  collective.dtype = dtype;
  if (kind == CollectiveKind::kAllToAll) collective.algorithm = AlgorithmId::kDirect;
  return AddWork(name, stream, collective, {from}, {to}, std::move(after));
}

Compute Product(uint64_t m, uint64_t n, uint64_t k, GemmMode mode) {
  Compute compute;
  compute.kind = ComputeKind::kGemm;
  compute.kernel = Kernel::kGemm;
  compute.gemm = {m, n, k, mode, 1};
  compute.flops = FlopsOf(compute.gemm);
  return compute;
}

Compute Simple(Kernel kernel, std::vector<double> attributes) {
  Compute compute;
  compute.kernel = kernel;
  compute.attributes = std::move(attributes);
  return compute;
}

Schedule TensorParallelStep(uint32_t ranks, DType dtype) {
  using Cut = RoleMaker::Cut;
  constexpr uint64_t kRows = 12;
  constexpr uint64_t kIn = 10;
  constexpr uint64_t kHidden = 48;
  constexpr uint64_t kOut = 6;
  const uint64_t hidden = kHidden / ranks;
  RoleMaker maker(ranks);
  maker.dtype = dtype;
  const StreamId stream = maker.AddStream("all", StreamKind::kCommunication);
  const BufferId x = maker.AddBuffer("x", BufferKind::kActivation, kRows, kIn);
  const BufferId w1 = maker.AddBuffer("w1", BufferKind::kParameter, kHidden, kIn, Cut::kRows);
  const BufferId b1 = maker.AddBuffer("b1", BufferKind::kParameter, 1, kHidden, Cut::kColumns);
  const BufferId w2 = maker.AddBuffer("w2", BufferKind::kParameter, kOut, kHidden, Cut::kColumns);
  const BufferId dw1 = maker.AddBuffer("d w1", BufferKind::kGradient, kHidden, kIn, Cut::kRows);
  const BufferId db1 = maker.AddBuffer("d b1", BufferKind::kGradient, 1, kHidden, Cut::kColumns);
  const BufferId dw2 = maker.AddBuffer("d w2", BufferKind::kGradient, kOut, kHidden, Cut::kColumns);
  const auto activation = [&](const char* name, uint64_t columns, Cut cut = Cut::kNone) {
    return maker.AddBuffer(name, BufferKind::kActivation, kRows, columns, cut);
  };
  const BufferId y1 = activation("y1", kHidden, Cut::kColumns);
  const BufferId h = activation("h", kHidden, Cut::kColumns);
  const BufferId y2 = activation("y2", kOut);
  const BufferId loss = activation("loss", 1);
  const BufferId dy2 = activation("d y2", kOut);
  const BufferId dh = activation("d h", kHidden, Cut::kColumns);
  const BufferId dy1 = activation("d y1", kHidden, Cut::kColumns);
  const BufferId dx = activation("d x", kIn);

  maker.AddCompute("w1", Product(kRows, hidden, kIn, GemmMode::kNT), {x, w1}, {y1});
  maker.AddCompute("gelu", Simple(Kernel::kBiasGelu), {y1, b1}, {h});
  const OpId product =
      maker.AddCompute("w2", Product(kRows, kOut, hidden, GemmMode::kNT), {h, w2}, {y2});
  const OpId sum =
      maker.AddCollective("all-reduce y", CollectiveKind::kAllReduce, stream, y2, y2, {product});
  maker.AddCompute("loss", Simple(Kernel::kSquaredError), {y2}, {loss, dy2}, {sum});
  maker.AddCompute("d h", Product(kRows, hidden, kOut, GemmMode::kNN), {dy2, w2}, {dh});
  maker.AddCompute("d w2", Product(kOut, hidden, kRows, GemmMode::kTN), {dy2, h, dw2}, {dw2});
  maker.AddCompute("d gelu", Simple(Kernel::kBiasGeluBackward), {dh, y1, b1, db1}, {dy1, db1});
  const OpId d_x =
      maker.AddCompute("d x", Product(kRows, kIn, hidden, GemmMode::kNN), {dy1, w1}, {dx});
  maker.AddCollective("all-reduce d x", CollectiveKind::kAllReduce, stream, dx, dx, {d_x});
  maker.AddCompute("d w1", Product(hidden, kIn, kRows, GemmMode::kTN), {dy1, x, dw1}, {dw1});
  maker.schedule.tokens = kRows;
  return maker.schedule;
}

Schedule EveryCollective(uint32_t ranks) {
  using Cut = RoleMaker::Cut;
  const uint64_t rows = 2 * ranks;
  constexpr uint64_t kColumns = 6;
  RoleMaker maker(ranks);
  const StreamId stream = maker.AddStream("all", StreamKind::kCommunication);
  // Inputs differ between ranks: they are the ranks' blocks of one global array.
  const auto input = [&](const char* name) {
    return maker.AddBuffer(name, BufferKind::kActivation, rows * ranks, kColumns, Cut::kRows);
  };
  const auto output = [&](const std::string& name, uint64_t own_rows, uint64_t columns) {
    return maker.AddBuffer(name, BufferKind::kBuffer, own_rows, columns);
  };
  const BufferId x = input("x");
  const BufferId in_place = output("in place", rows, kColumns);
  const OpId copied = maker.AddCompute("copy", Simple(Kernel::kCopy), {x}, {in_place});
  const BufferId wide = output("wide", rows, 2 * kColumns);
  const BufferId columns = maker.AddView("columns", wide, 0, 3, rows, kColumns);
  const OpId into_columns =
      maker.AddCompute("copy to columns", Simple(Kernel::kCopy), {x}, {columns});
  maker.AddCollective("sum", CollectiveKind::kAllReduce, stream, x, output("sum", rows, kColumns));
  maker.AddCollective("sum in place", CollectiveKind::kAllReduce, stream, in_place, in_place,
                      {copied});
  maker.AddCollective("sum of columns", CollectiveKind::kAllReduce, stream, columns, columns,
                      {into_columns});
  const OpId largest = maker.AddCollective("maximum", CollectiveKind::kAllReduce, stream, x,
                                           output("maximum", rows, kColumns));
  std::get<Collective>(maker.schedule.roles[0].ops[largest.index()].work).reduction =
      Reduction::kMaximum;
  maker.AddCollective("gather", CollectiveKind::kAllGather, stream, x,
                      output("gathered", rows * ranks, kColumns));
  const BufferId gathered_wide = output("gathered wide", rows * ranks, 2 * kColumns);
  maker.AddCollective(
      "gather into columns", CollectiveKind::kAllGather, stream, columns,
      maker.AddView("gathered columns", gathered_wide, 0, 3, rows * ranks, kColumns),
      {into_columns});
  maker.AddCollective("scatter", CollectiveKind::kReduceScatter, stream, x,
                      output("scattered", rows / ranks, kColumns));
  maker.AddCollective("exchange", CollectiveKind::kAllToAll, stream, x,
                      output("exchanged", rows, kColumns));
  maker.AddCollective("broadcast", CollectiveKind::kBroadcast, stream, x,
                      output("broadcast", rows, kColumns));
  const BufferId reduced = output("reduced", rows, kColumns);
  const OpId cleared = maker.AddCompute("copy for reduce", Simple(Kernel::kCopy), {x}, {reduced});
  maker.AddCollective("reduce", CollectiveKind::kReduce, stream, x, reduced, {cleared});
  return maker.schedule;
}

Schedule RingOfMessages(uint32_t ranks) {
  constexpr uint64_t kRows = 4;
  constexpr uint64_t kColumns = 3;
  RoleMaker maker(ranks);
  // Peers are members of the rank's own group, so each rank needs a role of its own.
  const StreamId out = maker.AddStream("out", StreamKind::kCommunication);
  const StreamId in = maker.AddStream("in", StreamKind::kCommunication);
  const BufferId x =
      maker.AddBuffer("x", BufferKind::kActivation, kRows * ranks, kColumns, RoleMaker::Cut::kRows);
  const BufferId y = maker.AddBuffer("y", BufferKind::kBuffer, kRows, kColumns);
  const Bytes bytes = static_cast<double>(kRows * kColumns) * SizeOf(maker.dtype);
  maker.AddWork("send", out, Send{maker.all(), 0, bytes}, {x}, {}, {});
  maker.AddWork("receive", in, Receive{maker.all(), 0, bytes}, {}, {y}, {});
  const Role role = maker.schedule.roles[0];
  maker.schedule.roles.clear();
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    Role own = role;
    own.name = fmt::format("rank {}", rank);
    std::get<Send>(own.ops[0].work).peer = (rank + 1) % ranks;
    std::get<Receive>(own.ops[1].work).peer = (rank + ranks - 1) % ranks;
    maker.schedule.roles.push_back(own);
    maker.schedule.role_of_rank[rank] = rank;
  }
  return maker.schedule;
}

}  // namespace rehearse
