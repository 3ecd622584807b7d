#include "real/cuda/gemm_tuning.h"

#include <algorithm>

namespace rehearse {
namespace {

constexpr GemmMode kModes[] = {GemmMode::kNN, GemmMode::kNT, GemmMode::kTN};

bool LiesTurned(GemmMode mode, bool is_a) { return mode == (is_a ? GemmMode::kTN : GemmMode::kNT); }

uint64_t BytesOf(const GpuOperand& operand) {
  return operand.rows * operand.columns * SizeOf(operand.storage);
}

LaunchPlan PlanTranspose(const GpuOperand& operand) {
  constexpr uint64_t kTile = 32;
  const auto tiles = [](uint64_t n) { return static_cast<uint32_t>((n + kTile - 1) / kTile); };
  LaunchPlan plan;
  plan.launches = {{"Transpose", {tiles(operand.columns), tiles(operand.rows), 1}, {256, 1, 1}}};
  return plan;
}

}  // namespace

void TunedProducts::Tune(const std::map<uint32_t, Product>& products) {
  std::array<uint64_t, 2> bytes{};
  for (const auto& [op, product] : products) {
    if (product.gemm.batch > 1) continue;
    bytes[0] = std::max(bytes[0], BytesOf(product.a));
    bytes[1] = std::max(bytes[1], BytesOf(product.b));
  }
  if (bytes[0] == 0) return;
  for (size_t i = 0; i < 2; ++i) areas_[i] = AllocateGpuMemory(cuda_, bytes[i]);

  std::map<Key, GemmMode> chosen;
  for (const auto& [op, product] : products) {
    const Gemm& gemm = product.gemm;
    if (gemm.batch > 1) continue;
    const Key key{gemm.m,
                  gemm.n,
                  gemm.k,
                  gemm.mode,
                  product.a.storage,
                  product.c.storage,
                  product.accumulates};
    const auto [entry, is_new] = chosen.try_emplace(key, gemm.mode);
    if (is_new) {
      ModeTrial trial{gemm, gemm.mode, {}};
      for (const GemmMode mode : kModes) {
        trial.seconds[static_cast<size_t>(mode)] = SecondsOf(Turn(product, mode));
      }
      const auto best = std::min_element(trial.seconds.begin(), trial.seconds.end());
      trial.chosen = kModes[best - trial.seconds.begin()];
      entry->second = trial.chosen;
      trials_.push_back(trial);
    }
    if (entry->second != gemm.mode) turned_.emplace(op, Turn(product, entry->second));
  }
}

bool TunedProducts::Multiply(uint32_t op) const {
  const auto found = turned_.find(op);
  if (found == turned_.end()) return false;
  Multiply(found->second);
  return true;
}

TunedProducts::Turned TunedProducts::Turn(const Product& product, GemmMode mode) const {
  Turned turned;
  turned.product = product;
  turned.product.gemm.mode = mode;
  turned.turns_a = LiesTurned(mode, true) != LiesTurned(product.gemm.mode, true);
  turned.turns_b = LiesTurned(mode, false) != LiesTurned(product.gemm.mode, false);
  const auto turn = [&](const GpuOperand& operand, size_t area) {
    GpuOperand transposed = operand;
    std::swap(transposed.rows, transposed.columns);
    transposed.stride = transposed.columns;
    transposed.data = areas_[area].get();
    return transposed;
  };
  if (turned.turns_a) turned.product.a = turn(product.a, 0);
  if (turned.turns_b) turned.product.b = turn(product.b, 1);
  const std::array<GpuOperand, 4> table = {product.a, turned.product.a, product.b,
                                           turned.product.b};
  turned.table = AllocateGpuMemory(cuda_, sizeof table);
  CopyToGpu(cuda_, stream_, turned.table.get(), table.data(), sizeof table);
  return turned;
}

void TunedProducts::Multiply(const Turned& turned) const {
  const auto* table = static_cast<const GpuOperand*>(turned.table.get());
  const auto transpose = [&](const GpuOperand* operands, const GpuOperand& turned_operand) {
    KernelArguments arguments{};
    arguments.operands = operands;
    arguments.reads = 1;
    arguments.writes = 1;
    GpuOperand as_it_lies = turned_operand;
    std::swap(as_it_lies.rows, as_it_lies.columns);
    functions_.Launch(PlanTranspose(as_it_lies), arguments, stream_);
  };
  if (turned.turns_a) transpose(table, turned.product.a);
  if (turned.turns_b) transpose(table + 2, turned.product.b);
  const Product& product = turned.product;
  blas_.Multiply(product.gemm, product.dtype, product.a, product.b, product.c, product.accumulates);
}

// The quickest of a few runs, after one that warms up cuBLAS.
double TunedProducts::SecondsOf(const Turned& turned) const {
  constexpr int kTrials = 3;
  const GpuEvent begin = MakeEvent(cuda_, EventUse::kTiming);
  const GpuEvent end = MakeEvent(cuda_, EventUse::kTiming);
  Multiply(turned);
  int64_t best = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    cuda_.EventRecord(begin.get(), stream_);
    Multiply(turned);
    cuda_.EventRecord(end.get(), stream_);
    cuda_.EventSynchronize(end.get());
    const int64_t took = NanosecondsBetween(cuda_, begin.get(), end.get());
    if (trial == 0 || took < best) best = took;
  }
  return static_cast<double>(best) * 1e-9;
}

}  // namespace rehearse
