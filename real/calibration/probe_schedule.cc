#include "real/calibration/probe_schedule.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "real/kernels/numbers.h"
#include "sim/base/error.h"

namespace rehearse {
namespace {

constexpr double kElement = 4;  // of collectives: fp32
constexpr double kSwitches[] = {4096, 8192, 65536, 1 << 20};
constexpr double kBesideSwitch = 128;
constexpr double kSmallestStep = 64;
constexpr uint64_t kSideMultiple = 8;

// This is Fisher-Yates with our own random numbers, which are the same everywhere.
template <typename T>
void Shuffle(uint64_t seed, std::vector<T>* values) {
  for (size_t i = values->size(); i > 1; --i)
    std::swap((*values)[i - 1], (*values)[HashAt(seed, i) % i]);
}

class ProbeBuilder {
 public:
  explicit ProbeBuilder(uint32_t ranks, DType dtype = DType::kFp32) : dtype_(dtype) {
    schedule_.role_of_rank.assign(ranks, 0);
    role_.name = "probe";
    role_.streams = {{"compute", StreamKind::kCompute}};
  }

  // Probes use parameters as operands, because these have values from the start.
  BufferId AddParameter(const std::string& name, uint64_t rows, uint64_t columns) {
    role_.regions.push_back({{rows, {}}, {columns, {}}, {}});
    Buffer buffer = MakeBuffer(name, BufferKind::kParameter, rows, columns);
    buffer.region = static_cast<uint32_t>(role_.regions.size() - 1);
    return Add(std::move(buffer));
  }
  BufferId AddActivation(const std::string& name, uint64_t rows, uint64_t columns) {
    return Add(MakeBuffer(name, BufferKind::kActivation, rows, columns));
  }
  // The first elements of a buffer of one row.
  BufferId AddView(BufferId of, uint64_t columns) {
    Buffer buffer =
        MakeBuffer(role_.buffers[of.index()].name, role_.buffers[of.index()].kind, 1, columns);
    buffer.bytes = Bytes(0);
    buffer.view = View{of, 0, 0, {}, {}};
    return Add(std::move(buffer));
  }

  StreamId AddStream(const std::string& name, StreamKind kind) {
    role_.streams.push_back({name, kind});
    return StreamId(static_cast<uint32_t>(role_.streams.size() - 1));
  }

  OpId AddCopy(BufferId from, BufferId to, uint64_t elements) {
    Compute compute;
    compute.kind = ComputeKind::kMemory;
    compute.kernel = Kernel::kCopy;
    compute.dtype = dtype_;
    compute.bytes = SizeOf(dtype_) * (2 * static_cast<double>(elements));
    return AddOp("copy", compute, from, {}, to);
  }
  OpId AddProduct(const Gemm& gemm, BufferId a, BufferId b, BufferId c) {
    Compute compute;
    compute.kind = ComputeKind::kGemm;
    compute.kernel = Kernel::kGemm;
    compute.dtype = dtype_;
    compute.gemm = gemm;
    compute.flops = FlopsOf(gemm);
    compute.bytes = BytesOf(gemm, dtype_);
    return AddOp("product", compute, a, b, c);
  }
  OpId AddCollective(const Collective& collective, BufferId from, BufferId to,
                     StreamId stream = StreamId(0)) {
    const OpId op = AddOp(Name(collective.kind), collective, from, {}, to);
    role_.ops.back().stream = stream;
    return op;
  }
  void Order(OpId op, OpId after) { role_.ops[op.index()].after.push_back(after); }
  CommunicatorId AddCommunicator(uint32_t group) {
    std::vector<std::vector<uint32_t>> groups;
    for (uint32_t rank = 0; rank < schedule_.ranks(); ++rank) {
      if (rank % group == 0) groups.emplace_back();
      groups.back().push_back(rank);
    }
    schedule_.communicators.push_back(Communicator::Explicit("probe", groups));
    return CommunicatorId(static_cast<uint32_t>(schedule_.communicators.size() - 1));
  }

  Schedule Build() {
    schedule_.roles = {std::move(role_)};
    return std::move(schedule_);
  }

 private:
  Buffer MakeBuffer(const std::string& name, BufferKind kind, uint64_t rows,
                    uint64_t columns) const {
    Buffer buffer;
    buffer.name = name;
    buffer.kind = kind;
    buffer.dtype = dtype_;
    buffer.rows = rows;
    buffer.columns = columns;
    buffer.bytes = SizeOf(dtype_) * static_cast<double>(rows * columns);
    return buffer;
  }
  BufferId Add(Buffer buffer) {
    role_.buffers.push_back(std::move(buffer));
    return BufferId(static_cast<uint32_t>(role_.buffers.size() - 1));
  }
  OpId AddOp(const char* name, Work work, BufferId from, BufferId also_from, BufferId to) {
    Op op;
    op.name = name;
    op.stream = StreamId(0);
    op.work = std::move(work);
    op.reads = {from};
    if (also_from.IsSet()) op.reads.push_back(also_from);
    op.writes = {to};
    role_.ops.push_back(std::move(op));
    return OpId(static_cast<uint32_t>(role_.ops.size() - 1));
  }

  DType dtype_;
  Schedule schedule_;
  Role role_;
};

// Sizes of the operands as they are stored.
struct Sides {
  uint64_t a_rows;
  uint64_t a_columns;
  uint64_t b_rows;
  uint64_t b_columns;
};
Sides SidesOf(const Gemm& gemm) {
  Sides sides{gemm.m, gemm.k, gemm.k, gemm.n};
  if (gemm.mode == GemmMode::kTN) std::swap(sides.a_rows, sides.a_columns);
  if (gemm.mode == GemmMode::kNT) std::swap(sides.b_rows, sides.b_columns);
  return sides;
}

// The i-th number of van der Corput's sequence: i's digits behind the point, the last first.
double VanDerCorput(uint64_t i, uint64_t base) {
  double value = 0;
  for (double digit = 1.0 / static_cast<double>(base); i > 0; i /= base) {
    value += digit * static_cast<double>(i % base);
    digit /= static_cast<double>(base);
  }
  return value;
}

uint64_t SideAt(const ProductRange& range, double share) {
  const auto smallest = static_cast<double>(range.smallest_side);
  const double side =
      smallest * std::pow(static_cast<double>(range.largest_side) / smallest, share);
  const auto multiples = static_cast<uint64_t>(std::lround(side / kSideMultiple));
  return std::max<uint64_t>(1, multiples) * kSideMultiple;
}

}  // namespace

std::vector<Bytes> ProbeStepSizes(Bytes largest) {
  std::vector<Bytes> sizes;
  const auto add = [&](double bytes) {
    const Bytes size(kElement * std::round(bytes / kElement));
    if (size <= largest) sizes.push_back(size);
  };
  const double doublings = std::log2(largest.value() / kSmallestStep);
  for (int half = 0; half <= 2 * doublings + 0.001; ++half)
    add(kSmallestStep * std::exp2(half / 2.0));
  for (const double at : kSwitches) {
    add(at - kBesideSwitch);
    add(at + kBesideSwitch);
  }
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

Schedule MakeCollectiveProbe(uint32_t ranks, uint32_t group, const std::vector<Bytes>& steps,
                             uint64_t seed, std::span<const CollectiveKind> kinds) {
  CHECK(!steps.empty());
  CHECK_EQ(ranks % group, 0u);
  ProbeBuilder builder(ranks);
  const CommunicatorId communicator = builder.AddCommunicator(group);
  const auto elements = [](Bytes bytes) { return static_cast<uint64_t>(bytes.value() / kElement); };
  const uint64_t most = group * elements(*std::max_element(steps.begin(), steps.end()));
  const BufferId source = builder.AddParameter("source", 1, most);
  const BufferId sent = builder.AddActivation("sent", 1, most);
  const BufferId received = builder.AddActivation("received", 1, most);

  struct Trial {
    CollectiveKind kind;
    Bytes step;
  };
  std::vector<Trial> trials;
  for (const CollectiveKind kind : kinds) {
    for (const Bytes step : steps) trials.push_back({kind, step});
  }
  Shuffle(seed, &trials);
  for (const auto& [kind, step] : trials) {
    const uint64_t share = elements(step);
    const uint64_t whole = group * share;
    const uint64_t written = kind == CollectiveKind::kAllGather ? share : whole;
    const BufferId from = builder.AddView(sent, written);
    builder.AddCopy(builder.AddView(source, written), from, written);
    Collective collective;
    collective.kind = kind;
    collective.communicator = communicator;
    collective.bytes = step * static_cast<double>(group);
    collective.dtype = DType::kFp32;
    if (kind == CollectiveKind::kAllToAll) collective.algorithm = AlgorithmId::kPairwise;
    const BufferId to =
        kind == CollectiveKind::kAllReduce
            ? from
            : builder.AddView(received, kind == CollectiveKind::kReduceScatter ? share : whole);
    builder.AddCollective(collective, from, to);
  }
  return builder.Build();
}

Schedule MakeProductProbe(uint32_t ranks, const std::vector<Gemm>& products, uint64_t seed,
                          DType dtype) {
  ProbeBuilder builder(ranks, dtype);
  std::vector<Gemm> shuffled = products;
  Shuffle(seed, &shuffled);
  for (const Gemm& gemm : shuffled) {
    const Sides sides = SidesOf(gemm);
    const BufferId source = builder.AddParameter("source", sides.a_rows, sides.a_columns);
    const BufferId a = builder.AddActivation("a", sides.a_rows, sides.a_columns);
    const BufferId b = builder.AddParameter("b", sides.b_rows, sides.b_columns);
    const BufferId c = builder.AddActivation("c", gemm.m, gemm.n);
    builder.AddCopy(source, a, sides.a_rows * sides.a_columns);
    builder.AddProduct(gemm, a, b, c);
  }
  return builder.Build();
}

Schedule MakeEncounterProbe(uint32_t ranks, const std::vector<Encounter>& encounters, DType dtype) {
  ProbeBuilder builder(ranks, dtype);
  const CommunicatorId communicator = builder.AddCommunicator(ranks);
  const StreamId stream = builder.AddStream("communication", StreamKind::kCommunication);
  const auto elements_of = [&](Bytes bytes) {
    return static_cast<uint64_t>(bytes.value() / SizeOf(dtype).value());
  };
  uint64_t most = 0;
  for (const Encounter& encounter : encounters) most = std::max(most, elements_of(encounter.bytes));
  const BufferId whole_sent = builder.AddParameter("sent", 1, most);
  const BufferId whole_received = builder.AddActivation("received", 1, most);
  OpId last;
  for (const Encounter& encounter : encounters) {
    const Gemm& gemm = encounter.product;
    const bool copies = gemm.m == 0;
    const Sides sides = copies ? Sides{1, encounter.copied, 1, 1} : SidesOf(gemm);
    const BufferId a = builder.AddParameter("a", sides.a_rows, sides.a_columns);
    const BufferId b = builder.AddParameter("b", sides.b_rows, sides.b_columns);
    const BufferId c = copies ? builder.AddActivation("c", 1, encounter.copied)
                              : builder.AddActivation("c", gemm.m, gemm.n);
    const uint64_t elements = elements_of(encounter.bytes);
    const BufferId sent = builder.AddView(whole_sent, elements);
    const BufferId received = builder.AddView(whole_received, elements);
    Collective collective;
    collective.kind = CollectiveKind::kAllReduce;
    collective.communicator = communicator;
    collective.dtype = dtype;
    collective.bytes = SizeOf(dtype) * static_cast<double>(elements);
    const auto compute = [&] {
      return copies ? builder.AddCopy(a, c, encounter.copied) : builder.AddProduct(gemm, a, b, c);
    };
    const OpId alone = compute();
    if (last.IsSet()) builder.Order(alone, last);
    const OpId collective_alone = builder.AddCollective(collective, sent, received, stream);
    builder.Order(collective_alone, alone);
    builder.Order(compute(), collective_alone);
    last = builder.AddCollective(collective, sent, received, stream);
  }
  return builder.Build();
}

std::vector<Gemm> ProbeProducts(size_t shapes, const ProductRange& range) {
  const auto smallest = static_cast<double>(range.smallest_side);
  CHECK(Flops(2 * smallest * smallest * smallest) < range.most);
  std::vector<Gemm> products;
  for (uint64_t i = 1; products.size() < 3 * shapes; ++i) {
    Gemm gemm;
    gemm.m = SideAt(range, VanDerCorput(i, 2));
    gemm.n = SideAt(range, VanDerCorput(i, 3));
    gemm.k = SideAt(range, VanDerCorput(i, 5));
    if (FlopsOf(gemm) > range.most) continue;
    for (const GemmMode mode : {GemmMode::kNN, GemmMode::kNT, GemmMode::kTN}) {
      gemm.mode = mode;
      products.push_back(gemm);
    }
  }
  return products;
}

}  // namespace rehearse
