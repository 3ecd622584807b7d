#include "real/probe_schedule.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "real/numbers.h"
#include "sim/error.h"

namespace rehearse {
namespace {

constexpr double kElement = 4;  // fp32
constexpr double kSwitches[] = {4096, 8192, 65536, 1 << 20};
constexpr double kBesideSwitch = 128;
constexpr double kSmallestStep = 64;
constexpr std::array kKinds = {CollectiveKind::kAllReduce, CollectiveKind::kAllGather,
                               CollectiveKind::kReduceScatter, CollectiveKind::kAllToAll};
constexpr double kSmallestSide = 16;
constexpr double kLargestSide = 2048;
constexpr uint64_t kSideMultiple = 8;

// Fisher-Yates with the library's own random numbers, the same everywhere.
template <typename T>
void Shuffle(uint64_t seed, std::vector<T>* values) {
  for (size_t i = values->size(); i > 1; --i)
    std::swap((*values)[i - 1], (*values)[HashAt(seed, i) % i]);
}

class ProbeBuilder {
 public:
  explicit ProbeBuilder(uint32_t ranks) {
    schedule_.role_of_rank.assign(ranks, 0);
    role_.name = "probe";
    role_.streams = {{"compute", StreamKind::kCompute}};
  }

  // Parameters have numbers from the start.
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

  void AddCopy(BufferId from, BufferId to, uint64_t elements) {
    Compute compute;
    compute.kind = ComputeKind::kMemory;
    compute.kernel = Kernel::kCopy;
    compute.dtype = DType::kFp32;
    compute.bytes = Bytes(2 * kElement * static_cast<double>(elements));
    AddOp("copy", compute, from, {}, to);
  }
  void AddProduct(const Gemm& gemm, BufferId a, BufferId b, BufferId c) {
    Compute compute;
    compute.kind = ComputeKind::kGemm;
    compute.kernel = Kernel::kGemm;
    compute.dtype = DType::kFp32;
    compute.gemm = gemm;
    compute.flops = FlopsOf(gemm);
    compute.bytes = BytesOf(gemm, DType::kFp32);
    AddOp("product", compute, a, b, c);
  }
  void AddCollective(const Collective& collective, BufferId from, BufferId to) {
    AddOp(Name(collective.kind), collective, from, {}, to);
  }
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
  static Buffer MakeBuffer(const std::string& name, BufferKind kind, uint64_t rows,
                           uint64_t columns) {
    Buffer buffer;
    buffer.name = name;
    buffer.kind = kind;
    buffer.dtype = DType::kFp32;
    buffer.rows = rows;
    buffer.columns = columns;
    buffer.bytes = Bytes(kElement * static_cast<double>(rows * columns));
    return buffer;
  }
  BufferId Add(Buffer buffer) {
    role_.buffers.push_back(std::move(buffer));
    return BufferId(static_cast<uint32_t>(role_.buffers.size() - 1));
  }
  void AddOp(const char* name, Work work, BufferId from, BufferId also_from, BufferId to) {
    Op op;
    op.name = name;
    op.stream = StreamId(0);
    op.work = std::move(work);
    op.reads = {from};
    if (also_from.IsSet()) op.reads.push_back(also_from);
    op.writes = {to};
    role_.ops.push_back(std::move(op));
  }

  Schedule schedule_;
  Role role_;
};

// The i-th number of van der Corput's sequence: i's digits behind the point, the last first.
double VanDerCorput(uint64_t i, uint64_t base) {
  double value = 0;
  for (double digit = 1.0 / static_cast<double>(base); i > 0; i /= base) {
    value += digit * static_cast<double>(i % base);
    digit /= static_cast<double>(base);
  }
  return value;
}

uint64_t SideAt(double share) {
  const double side = kSmallestSide * std::pow(kLargestSide / kSmallestSide, share);
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
  for (double bytes = kSmallestStep; bytes <= largest.value() * 1.001; bytes *= std::sqrt(2.0))
    add(bytes);
  for (const double at : kSwitches) {
    add(at - kBesideSwitch);
    add(at + kBesideSwitch);
  }
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

Schedule MakeCollectiveProbe(uint32_t ranks, uint32_t group, const std::vector<Bytes>& steps,
                             uint64_t seed) {
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
  for (const CollectiveKind kind : kKinds) {
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
    if (kind == CollectiveKind::kAllToAll) collective.algorithm = "pairwise";
    const BufferId to =
        kind == CollectiveKind::kAllReduce
            ? from
            : builder.AddView(received, kind == CollectiveKind::kReduceScatter ? share : whole);
    builder.AddCollective(collective, from, to);
  }
  return builder.Build();
}

Schedule MakeProductProbe(uint32_t ranks, const std::vector<Gemm>& products, uint64_t seed) {
  ProbeBuilder builder(ranks);
  std::vector<Gemm> shuffled = products;
  Shuffle(seed, &shuffled);
  for (const Gemm& gemm : shuffled) {
    const bool a_transposed = gemm.mode == GemmMode::kTN;
    const bool b_transposed = gemm.mode == GemmMode::kNT;
    const uint64_t a_rows = a_transposed ? gemm.k : gemm.m;
    const uint64_t a_columns = a_transposed ? gemm.m : gemm.k;
    const BufferId source = builder.AddParameter("source", a_rows, a_columns);
    const BufferId a = builder.AddActivation("a", a_rows, a_columns);
    const BufferId b =
        builder.AddParameter("b", b_transposed ? gemm.n : gemm.k, b_transposed ? gemm.k : gemm.n);
    const BufferId c = builder.AddActivation("c", gemm.m, gemm.n);
    builder.AddCopy(source, a, a_rows * a_columns);
    builder.AddProduct(gemm, a, b, c);
  }
  return builder.Build();
}

std::vector<Gemm> ProbeProducts(size_t shapes, Flops most) {
  std::vector<Gemm> products;
  for (uint64_t i = 1; products.size() < 3 * shapes; ++i) {
    Gemm gemm;
    gemm.m = SideAt(VanDerCorput(i, 2));
    gemm.n = SideAt(VanDerCorput(i, 3));
    gemm.k = SideAt(VanDerCorput(i, 5));
    if (FlopsOf(gemm) > most) continue;
    for (const GemmMode mode : {GemmMode::kNN, GemmMode::kNT, GemmMode::kTN}) {
      gemm.mode = mode;
      products.push_back(gemm);
    }
  }
  return products;
}

}  // namespace rehearse
