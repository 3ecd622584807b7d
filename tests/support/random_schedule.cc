#include "tests/support/random_schedule.h"

#include <array>
#include <numeric>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "collectives/algorithms/algorithm.h"
#include "sim/schedule/schedule.h"
#include "sim/schedule/schedule_json.h"
#include "tests/support/random_program.h"

namespace rehearse {
namespace {

using Json = nlohmann::ordered_json;

template <typename T, size_t kCount>
const T& Any(Random& random, const std::array<T, kCount>& values) {
  return values[random.Below(static_cast<uint32_t>(kCount))];
}

struct Machine {
  const char* name;
  uint32_t devices;
};
constexpr std::array kMachines = {Machine{"switch:devices=4", 4},
                                  Machine{"switch:devices=6", 6},
                                  Machine{"switch:devices=8", 8},
                                  Machine{"dgx-a100", 8},
                                  Machine{"dgx-a100:nodes=2", 16},
                                  Machine{"dgx-h100:nodes=2", 16},
                                  Machine{"dgx-h100:nodes=3", 24},
                                  Machine{"perlmutter:nodes=3", 12},
                                  Machine{"frontier", 8},
                                  Machine{"mi300x", 8},
                                  Machine{"tpu-v4:x=2,y=2,z=2", 8},
                                  Machine{"atp-ic1", 8},
                                  Machine{"piz-daint:nodes=6", 6},
                                  Machine{"rtx4090-pcie:nodes=2", 16},
                                  Machine{"roce-h100:nodes=2", 16},
                                  Machine{"dgx-1-v100", 8},
                                  Machine{"gcp-a3-high:nodes=1", 8},
                                  Machine{"alps:nodes=2", 8},
                                  Machine{"leonardo:nodes=2", 8},
                                  Machine{"bridge-pairs-a100", 8},
                                  Machine{"oneflow-v100:nodes=2", 16},
                                  Machine{"local-cpu:ranks=4", 4},
                                  Machine{"frontier-rocm6:nodes=2", 16}};

constexpr std::array kSettings = {
    R"({"fidelity": "step"})",
    R"({"fidelity": "formula"})",
    R"({"fidelity": "fluid"})",
    R"({"slowdown": {"gemm": 0.2, "attention": 0.1, "memory": 0.3, "communication": 0.4}})",
    R"({"slowdown": {}})",
    R"({"channels": 2})",
    R"({"nccl": "2.18"})",
    R"({"nvls": false})",
    R"({"copy_engines": ["column"]})",
    R"({"perturbation": {"seed": 3, "compute_jitter": 0.05}})",
    R"({"perturbation": {"seed": 5, "link_jitter": 0.1}})",
};

// Rows and columns of a mesh of all ranks.
struct Mesh {
  uint32_t columns = 1;
  uint32_t rows = 1;
};

enum Axis : uint32_t { kColumn, kRow, kAll, kPairs, kHost };

class ScheduleMaker {
 public:
  ScheduleMaker(Random* random, uint32_t ranks) : random_(*random), ranks_(ranks) {}

  Schedule Make() {
    DrawMesh();
    AddCommunicators();
    const bool in_stages = mesh_.rows > 1 && random_.Chance(50);
    const uint32_t roles = in_stages ? mesh_.rows : random_.Chance(70) ? 1 : 2;
    schedule_.roles.resize(roles);
    for (uint32_t r = 0; r < roles; ++r) BeginRole(r);
    for (uint32_t rank = 0; rank < ranks_; ++rank)
      schedule_.role_of_rank.push_back(in_stages ? rank / mesh_.columns : rank % roles);
    const uint32_t before = random_.Below(6);
    const uint32_t body = random_.Between(1, 8);
    const uint32_t after = random_.Below(6);
    const uint32_t times = random_.Chance(40) ? random_.Between(1, random_.Chance(75) ? 6 : 60) : 0;
    for (uint32_t i = 0; i < before; ++i) AddOp(0);
    // What a repeat refers to lies in it or in the equally long piece before it.
    const auto begin = static_cast<uint32_t>(schedule_.roles[0].ops.size());
    for (uint32_t i = 0; i < body; ++i) AddOp(begin > body ? begin - body : 0);
    if (in_stages) AddMessages();
    const auto end = static_cast<uint32_t>(schedule_.roles[0].ops.size());
    for (Role& role : schedule_.roles) {
      for (uint32_t i = begin; i < end; ++i) {
        std::erase_if(role.ops[i].after, [&](OpId op) { return op.index() + end < 2 * begin; });
      }
      const auto buffers = static_cast<uint32_t>(role.buffers.size());
      if (times > 0)
        role.repeats = {{begin, end, times, buffers, buffers, static_cast<int32_t>(1)}};
    }
    for (uint32_t i = 0; i < after; ++i) AddOp(begin);
    if (random_.Chance(60)) {
      schedule_.model_flops = Flops(1e9 * random_.Between(1, 1000));
      schedule_.hardware_flops = schedule_.model_flops * 1.25;
      schedule_.tokens = random_.Between(1, 100'000);
    }
    return std::move(schedule_);
  }

 private:
  void DrawMesh() {
    std::vector<uint32_t> divisors;
    for (uint32_t i = 1; i <= ranks_; ++i)
      if (ranks_ % i == 0) divisors.push_back(i);
    mesh_.columns = divisors[random_.Below(static_cast<uint32_t>(divisors.size()))];
    mesh_.rows = ranks_ / mesh_.columns;
  }

  void AddCommunicators() {
    const auto [columns, rows] = mesh_;
    auto& all = schedule_.communicators;
    all.push_back(Communicator::Strided("column", {{columns, 1}}, {{rows, columns}}));
    all.push_back(Communicator::Strided("row", {{rows, columns}}, {{columns, 1}}));
    all.push_back(Communicator::Strided("all", {{ranks_, 1}}, {}));
    // Groups are pairs, or three ranks, that may lie anywhere.
    std::vector<uint32_t> order(ranks_);
    std::iota(order.begin(), order.end(), 0u);
    for (uint32_t i = ranks_; i > 1; --i) std::swap(order[i - 1], order[random_.Below(i)]);
    const uint32_t size = ranks_ % 3 == 0 && random_.Chance(50) ? 3 : 2;
    std::vector<std::vector<uint32_t>> groups;
    for (uint32_t i = 0; i < ranks_; i += size)
      groups.emplace_back(order.begin() + i, order.begin() + i + size);
    all.push_back(Communicator::Explicit("pairs", groups));
    all.push_back(Communicator::Strided("host", {}, {{ranks_, 1}}));
  }

  void BeginRole(uint32_t number) {
    Role& role = schedule_.roles[number];
    role.name = fmt::format("role {}", number);
    role.streams = {{"compute", StreamKind::kCompute}};
    for (const Communicator& communicator : schedule_.communicators)
      role.streams.push_back({communicator.name(), StreamKind::kCommunication});
    role.streams.push_back({"side", StreamKind::kCompute});
    role.streams.push_back({"in", StreamKind::kCommunication});
    // Each stream has two buffers of its own, so that there are no races, and the host one.
    constexpr std::array kKinds = {BufferKind::kParameter, BufferKind::kGradient,
                                   BufferKind::kOptimizer, BufferKind::kActivation,
                                   BufferKind::kBuffer};
    for (uint32_t i = 0; i <= 2 * role.streams.size(); ++i) {
      Buffer buffer;
      buffer.name = fmt::format("b{}", i);
      buffer.bytes = Bytes(1024.0 * random_.Between(1, 1'000'000));
      buffer.on_host = i == 2 * role.streams.size();
      buffer.kind = buffer.on_host ? BufferKind::kBuffer : Any(random_, kKinds);
      role.buffers.push_back(buffer);
    }
  }

  // The op is the same for all roles but for what it computes, so that they meet.
  void AddOp(uint32_t first) {
    const auto place = static_cast<uint32_t>(schedule_.roles[0].ops.size());
    Op op;
    const bool computes = random_.Chance(50);
    const Axis axis = computes ? kColumn : random_.Chance(8) ? kHost : AnyAxis();
    op.name = fmt::format("op {}", computes ? random_.Below(4) : 4 + axis);
    op.tag.phase = static_cast<Phase>(place / 5 % 5);
    op.tag.layer = static_cast<int32_t>(random_.Below(4)) - 1;
    op.tag.micro_batch = static_cast<int32_t>(random_.Below(3));
    if (!computes) op.work = AnyCollective(axis);
    const bool is_sync = axis != kHost && random_.Chance(15);  // on the stream of kernels
    op.stream = StreamId(computes  ? (random_.Chance(80) ? 0 : 1 + kHost + 1)
                         : is_sync ? 0
                                   : 1 + axis);
    for (uint32_t i = random_.Below(3); i > 0 && place > first; --i) {
      const OpId other(first + random_.Below(place - first));
      if (std::find(op.after.begin(), op.after.end(), other) == op.after.end())
        op.after.push_back(other);
    }
    for (Role& role : schedule_.roles) {
      if (computes) op.work = AnyCompute();
      op.reads.clear();
      op.writes.clear();
      const bool is_host_copy = !computes && axis == kHost;
      const auto any_buffer = [&] { return BufferId(2 * op.stream.index() + random_.Below(2)); };
      const BufferId on_host(static_cast<uint32_t>(role.buffers.size() - 1));
      if (is_host_copy) {
        const bool to_host = std::get<Collective>(op.work).kind == CollectiveKind::kToHost;
        op.reads = {to_host ? any_buffer() : on_host};
        op.writes = {to_host ? on_host : any_buffer()};
      } else if (random_.Chance(60)) {
        const uint32_t count = computes ? random_.Between(1, 3) : 1;
        for (uint32_t i = 0; i < count; ++i) op.reads.push_back(any_buffer());
        op.writes.push_back(any_buffer());
      }
      role.ops.push_back(op);
    }
  }

  Axis AnyAxis() { return static_cast<Axis>(random_.Below(4)); }

  Bytes AnyBytes() {
    constexpr std::array kSizes = {0.0, 8.0, 1e3, 65536.0, 1e6, 3e7, 1e8};
    const double size = Any(random_, kSizes);
    return Bytes(size * random_.Between(1, 3));
  }

  Work AnyCollective(Axis axis) {
    Collective collective;
    collective.communicator = CommunicatorId(axis);
    collective.bytes = AnyBytes();
    collective.dtype = random_.Chance(50) ? DType::kBf16 : DType::kFp32;
    if (axis == kHost) {
      collective.kind = random_.Chance(50) ? CollectiveKind::kToHost : CollectiveKind::kFromHost;
      collective.algorithm = UsualAlgorithm(collective.kind);
      return collective;
    }
    collective.kind = kCollectiveKinds[random_.Below(std::size(kCollectiveKinds))];
    const uint32_t size = schedule_.communicators[axis].size();
    if (collective.kind == CollectiveKind::kBarrier) collective.bytes = Bytes(0);
    if (random_.Chance(40)) {
      collective.algorithm = AlgorithmId::kAuto;
      collective.protocol = Protocol::kAuto;
    } else if (random_.Chance(75)) {
      collective.algorithm = UsualAlgorithm(collective.kind);
    } else {
      std::vector<AlgorithmId> able;
      for (const Algorithm& row : Algorithms())
        if (row.kinds.Has(collective.kind)) able.push_back(row.id);
      collective.algorithm = able[random_.Below(static_cast<uint32_t>(able.size()))];
      constexpr std::array kDrawn = {Protocol::kNone, Protocol::kNone, Protocol::kSimple,
                                     Protocol::kLL, Protocol::kLL128};
      collective.protocol = Any(random_, kDrawn);
    }
    if (collective.kind == CollectiveKind::kBroadcast || collective.kind == CollectiveKind::kReduce)
      collective.root = random_.Below(size);
    if (collective.kind == CollectiveKind::kAllToAll && random_.Chance(40) && size <= 16) {
      double most = 0;
      for (uint32_t from = 0; from < size; ++from) {
        double sum = 0;
        for (uint32_t to = 0; to < size; ++to) {
          const double bytes = random_.Chance(20) ? 0 : 1000.0 * random_.Between(1, 500);
          collective.pair_bytes.emplace_back(bytes);
          sum += bytes;
        }
        most = std::max(most, sum);
      }
      collective.bytes = Bytes(most);
    }
    if (collective.algorithm == AlgorithmId::kDeepEp) {
      collective.rank_share = 0.75;
      collective.machine_share = 0.5;
    }
    return collective;
  }

  Work AnyCompute() {
    Compute compute;
    compute.dtype = random_.Chance(70) ? DType::kBf16 : DType::kFp32;
    compute.kernels = random_.Chance(80) ? 1 : random_.Between(2, 5);
    switch (random_.Below(5)) {
      case 0:
      case 1: {
        constexpr std::array kModes = {GemmMode::kNN, GemmMode::kNT, GemmMode::kTN};
        compute.kind = ComputeKind::kGemm;
        compute.gemm = {64u * random_.Between(1, 40), 64u * random_.Between(1, 40),
                        32u * random_.Between(1, 100), Any(random_, kModes),
                        random_.Chance(80) ? 1 : random_.Between(2, 9)};
        if (random_.Chance(30)) compute.tuned = Any(random_, kModes);
        compute.flops = FlopsOf(compute.gemm);
        compute.bytes = BytesOf(compute.gemm, compute.dtype);
        break;
      }
      case 2:
        compute.kind = ComputeKind::kAttention;
        compute.attention = static_cast<AttentionKernel>(random_.Below(random_.Chance(95) ? 2 : 7));
        compute.flops = Flops(1e8 * random_.Between(1, 500));
        compute.bytes = Bytes(1e5 * random_.Between(1, 500));
        break;
      case 3:
        compute.kind = ComputeKind::kMemory;
        compute.bytes = Bytes(1e5 * random_.Between(1, 3000));
        if (random_.Chance(30)) {
          compute.strided = 1000.0 * random_.Between(1, 900);
          compute.strided_bytes = compute.bytes * 0.25;
        }
        break;
      default:
        compute.kind = ComputeKind::kFixed;
        compute.duration = Seconds(1e-6 * random_.Between(0, 300));
        if (random_.Chance(20)) compute.kernels = 0;
    }
    return compute;
  }

  // Each stage passes something to the next one, and waits for what the one before sends.
  void AddMessages() {
    const Bytes bytes = AnyBytes();
    for (uint32_t r = 0; r < schedule_.roles.size(); ++r) {
      Role& role = schedule_.roles[r];
      Op op;
      op.tag.micro_batch = 0;
      const OpId last(static_cast<uint32_t>(role.ops.size() - 1));
      const CommunicatorId row(kRow);
      op.name = "receive";
      op.stream = StreamId(kHost + 3);
      if (r > 0) {
        op.work = Receive{row, r - 1, bytes};
      } else {
        Compute wait;
        wait.kind = ComputeKind::kFixed;
        wait.duration = Seconds(1e-6);
        wait.kernels = 0;
        op.work = wait;
      }
      role.ops.push_back(op);
      op.name = "send";
      op.stream = StreamId(1 + kRow);
      op.after = {last};
      if (r > 0 && random_.Chance(50)) op.after.push_back(OpId(last.index() + 1));
      if (r + 1 < schedule_.roles.size()) {
        op.work = Send{row, r + 1, bytes};
      } else {
        op.stream = StreamId(0);
        op.work = AnyCompute();
      }
      role.ops.push_back(op);
    }
  }

  Random& random_;
  const uint32_t ranks_;
  Mesh mesh_;
  Schedule schedule_;
};

}  // namespace

std::string RandomScheduleScenario(uint64_t seed) {
  Random random(seed);
  const Machine& machine = Any(random, kMachines);
  const Schedule schedule = ScheduleMaker(&random, machine.devices).Make();
  Json scenario;
  scenario["name"] = fmt::format("random-{}", seed);
  scenario["cluster"] = machine.name;
  scenario["jobs"] = {
      {{"placement", "block"},
       {"schedule", Json::parse(WriteSchedule(schedule, {.name = "random", .description = ""}))}}};
  Json& job = scenario["jobs"][0];
  if (random.Chance(25)) job["start"] = fmt::format("{}us", random.Between(1, 500));
  if (random.Chance(25)) job["repeat"] = random.Between(2, 3);
  scenario["simulator"] = Json::object();
  for (uint32_t i = random.Below(3); i > 0; --i)
    scenario["simulator"].update(Json::parse(Any(random, kSettings)));
  return scenario.dump(1);
}

}  // namespace rehearse
