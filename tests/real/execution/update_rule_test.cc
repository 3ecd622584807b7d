// Optimizers: a serial step is a textbook's, and whatever the strategy, the numbers are the serial
// step's.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "real/kernels/numbers.h"
#include "sim/base/error.h"
#include "sim/schedule/buffer_check.h"
#include "sim/schedule/schedule_check.h"
#include "tests/real/executed.h"
#include "tests/support/preset_strategies.h"
#include "workloads/networks/decoder_network.h"
#include "workloads/planner/pipeline_orders.h"
#include "workloads/planner/planner.h"
#include "workloads/planner/stage_sizes.h"
#include "workloads/strategies/strategy_4d.h"
#include "workloads/strategies/strategy_combined.h"
#include "workloads/strategies/strategy_summa.h"

namespace rehearse {
namespace update_rule_test {

constexpr double kTolerance = 1e-10;
constexpr uint64_t kSeed = 5;

// Tall and wide matrices, and square ones.
GptModel Decoder(bool llama) {
  GptModel model;
  model.name = "decoder";
  model.layers = 2;
  model.hidden = 16;
  model.heads = 4;
  model.vocabulary = 32;
  if (llama) {
    model.llama = true;
    model.groups = 2;
    model.feed_forward = 24;
    model.tied = false;
  }
  return model;
}

Training TrainingOf(UpdateRule rule) {
  Training training;
  training.micro_batches = 2;
  training.batch = 8;
  training.sequence = 8;
  training.recomputation = Recomputation::kNone;
  training.update_rule = rule;
  return training;
}

std::vector<Strategy> Strategies(const Network& network) {
  std::vector<Strategy> strategies = {
      MakeMegatron({.tensor = 2, .data = 2}, network),
      MakeMegatron({.tensor = 2, .data = 2, .sequence_parallel = true}, network),
      MakeMegatron({.tensor = 2, .data = 2, .distributed_optimizer = true}, network),
      MakeFourD({.column = 2, .row = 2, .depth = 2}, network),
      MakeSumma({.q = 2, .depth = 1}, network)};
  for (const uint32_t stage : {1u, 2u, 3u}) {
    ZeroOptions zero;
    zero.shard = 2;
    zero.replicas = 2;
    zero.stage = stage;
    zero.by_layer = stage == 3;
    zero.prefetch = stage == 3 ? 1 : 0;
    strategies.push_back(MakeZero(zero, network));
    CombinedOptions both;
    both.tensor = 2;
    both.sequence_parallel = true;
    both.zero = zero;
    both.zero.replicas = 1;
    strategies.push_back(MakeCombined(both, network));
  }
  return strategies;
}

TEST(UpdateRuleTest, EveryStrategyGivesTheSerialNumbers) {
  for (const UpdateRule rule : {UpdateRule::kLamb, UpdateRule::kSgd, UpdateRule::kMuon}) {
    for (const bool llama : {false, true}) {
      Training training = TrainingOf(rule);
      for (const DType precision : {DType::kBf16, DType::kFp32}) {
        training.precision = precision;
        const Network network = MakeDecoder(Decoder(llama), training);
        const StepNumbers serial = ComputeSerially(PlanSerialStep(network, training, 1), kSeed);
        for (const Strategy& strategy : Strategies(network)) {
          SCOPED_TRACE(fmt::format("{}, rule {}, {}, {}", strategy.name, static_cast<int>(rule),
                                   llama ? "llama" : "gpt", Name(precision)));
          const Schedule schedule = PlanStep(network, training, strategy);
          CheckSchedule(schedule);
          CheckBuffers(schedule);
          const CheckReport report = ExecuteAndCompare(serial, schedule, kSeed);
          EXPECT_TRUE(report.Passes(kTolerance)) << DescribeDifferences(report);
        }
      }
    }
  }
}

// Both ends of the pipeline have the table that is tied to the output layer, and scale it alike.
TEST(UpdateRuleTest, StagesGiveTheSerialNumbers) {
  for (const UpdateRule rule : {UpdateRule::kLamb, UpdateRule::kSgd, UpdateRule::kMuon}) {
    const Training training = TrainingOf(rule);
    const Network network = MakeDecoder(Decoder(false), training);
    const StepNumbers serial = ComputeSerially(PlanSerialStep(network, training, 1), kSeed);
    const Strategy strategy =
        MakeMegatron({.tensor = 2, .data = 2, .distributed_optimizer = true}, network);
    const Schedule schedule = PlanStages(network, training, strategy, EvenStages(network, 2),
                                         OneForwardOneBackward(2, training.micro_batches));
    CheckSchedule(schedule);
    CheckBuffers(schedule);
    const CheckReport report = ExecuteAndCompare(serial, schedule, kSeed);
    EXPECT_TRUE(report.Passes(kTolerance)) << DescribeDifferences(report);
  }
}

using Array = std::vector<double>;  // row by row

double Norm(const Array& x) {
  double sum = 0;
  for (const double value : x) sum += value * value;
  return std::sqrt(sum);
}

// Adam's direction in the first step, in which corrected moments are the gradient and its square.
Array FirstDirection(const Array& g, double epsilon) {
  Array u;
  for (const double value : g) u.push_back(value / (std::abs(value) + epsilon));
  return u;
}

Array Product(const Array& a, const Array& b, uint64_t m, uint64_t n, uint64_t k) {
  Array c(m * n);
  for (uint64_t i = 0; i < m; ++i) {
    for (uint64_t j = 0; j < n; ++j) {
      for (uint64_t l = 0; l < k; ++l) c[i * n + j] += a[i * k + l] * b[l * n + j];
    }
  }
  return c;
}

Array Transpose(const Array& a, uint64_t rows, uint64_t columns) {
  Array t(a.size());
  for (uint64_t i = 0; i < rows; ++i) {
    for (uint64_t j = 0; j < columns; ++j) t[j * rows + i] = a[i * columns + j];
  }
  return t;
}

// zeropower_via_newtonschulz5 of github.com/KellerJordan/Muon.
Array Orthogonal(Array x, uint64_t rows, uint64_t columns) {
  if (rows > columns)
    return Transpose(Orthogonal(Transpose(x, rows, columns), columns, rows), columns, rows);
  const double norm = Norm(x) + 1e-7;
  for (double& value : x) value /= norm;
  for (int step = 0; step < 5; ++step) {
    const Array a = Product(x, Transpose(x, rows, columns), rows, rows, columns);
    Array b = Product(a, a, rows, rows, rows);
    for (size_t i = 0; i < b.size(); ++i) b[i] = -4.7750 * a[i] + 2.0315 * b[i];
    const Array bx = Product(b, x, rows, columns, rows);
    for (size_t i = 0; i < x.size(); ++i) x[i] = 3.4445 * x[i] + bx[i];
  }
  return x;
}

// The first step of a rule, from the clipped gradient.
Array Stepped(UpdateRule rule, const std::string& name, const Array& w, const Array& g,
              uint64_t rows, uint64_t columns) {
  constexpr double kRate = 1e-4;
  constexpr double kDecay = 0.01;
  Array u;
  double rate = kRate;
  double kept = 1;
  const bool is_matrix = rows > 1 && name.find("embedding") == std::string::npos &&
                         name.find("output") == std::string::npos;
  if (rule == UpdateRule::kLamb) {
    u = FirstDirection(g, 1e-6);
    for (size_t i = 0; i < u.size(); ++i) u[i] += kDecay * w[i];
    if (Norm(w) > 0 && Norm(u) > 0) rate *= Norm(w) / Norm(u);
  } else if (rule == UpdateRule::kSgd) {
    u = g;
  } else if (rule == UpdateRule::kMuon && is_matrix) {
    Array d = g;  // plus 0.95 times the momentum, which is the same
    for (double& value : d) value *= 1.95;
    u = Orthogonal(d, rows, columns);
    const double tall = static_cast<double>(rows) / static_cast<double>(columns);
    rate *= std::sqrt(std::max(1.0, tall));
    kept = 1 - kRate * kDecay;
  } else {
    u = FirstDirection(g, 1e-8);
  }
  Array stepped;
  for (size_t i = 0; i < w.size(); ++i) stepped.push_back(kept * w[i] - rate * u[i]);
  return stepped;
}

TEST(UpdateRuleTest, ASerialStepIsTheTextbooks) {
  for (const UpdateRule rule :
       {UpdateRule::kAdam, UpdateRule::kLamb, UpdateRule::kSgd, UpdateRule::kMuon}) {
    const Training training = TrainingOf(rule);
    const Network network = MakeDecoder(Decoder(true), training);
    const StepNumbers numbers = ComputeSerially(PlanSerialStep(network, training, 1), kSeed);
    double norm = 0;
    for (const auto& [name, array] : numbers.arrays) {
      if (array.kind == BufferKind::kGradient) norm = std::hypot(norm, Norm(array.values));
    }
    int compared = 0;
    for (const auto& [name, array] : numbers.arrays) {
      if (array.kind != BufferKind::kParameter) continue;
      SCOPED_TRACE(fmt::format("{}, rule {}", name, static_cast<int>(rule)));
      const InitialValues initial(kSeed, name, array.rows, array.columns);
      Array w;
      for (uint64_t i = 0; i < array.rows; ++i)
        for (uint64_t j = 0; j < array.columns; ++j) w.push_back(initial.At(i, j));
      Array g = numbers.arrays.at("gradient of " + name).values;
      for (double& value : g) value *= norm > 1 ? 1 / norm : 1;
      const Array expected = Stepped(rule, name, w, g, array.rows, array.columns);
      ASSERT_EQ(array.values.size(), expected.size());
      for (size_t i = 0; i < expected.size(); ++i)
        ASSERT_NEAR(array.values[i], expected[i], 1e-12) << i;
      ++compared;
    }
    EXPECT_EQ(compared, 2 + 2 * (4 + 2) + 1);  // tables; products and gains of layers; a gain
  }
}

// Bytes of the state by hand, in bf16: masters and moments.
TEST(UpdateRuleTest, StatesHaveTheirMoments) {
  const auto bytes = [](UpdateRule rule) {
    const Training training = TrainingOf(rule);
    const Network network = MakeDecoder(Decoder(true), training);
    Bytes state;
    const Schedule schedule = PlanSerialStep(network, training, 1);
    for (const Buffer& buffer : schedule.roles.front().buffers)
      if (buffer.kind == BufferKind::kOptimizer) state += buffer.bytes;
    return state.value();
  };
  // Of a layer: QKV 16·(4 + 2·2)·4, projection 16·16, up 16·48, down 24·16; 5 gains of 16; two
  // tables of 32·16.
  const double matrices = 2.0 * (16 * 32 + 16 * 16 + 16 * 48 + 24 * 16);
  const double others = 5 * 16 + 2.0 * 32 * 16;
  EXPECT_EQ(bytes(UpdateRule::kAdam), 12 * (matrices + others));
  EXPECT_EQ(bytes(UpdateRule::kLamb), 12 * (matrices + others));
  EXPECT_EQ(bytes(UpdateRule::kSgd), 8 * (matrices + others));
  EXPECT_EQ(bytes(UpdateRule::kMuon), 8 * matrices + 12 * others);
}

// What an update adds to the step's communication and products.
TEST(UpdateRuleTest, WhatTravelsForAnUpdate) {
  const auto schedule_of = [](UpdateRule rule, bool shares) {
    const Training training = TrainingOf(rule);
    const Network network = MakeDecoder(Decoder(true), training);
    return PlanStep(
        network, training,
        MakeMegatron({.tensor = 2, .data = 2, .distributed_optimizer = shares}, network));
  };
  const auto bytes_of = [](const Schedule& schedule, const std::string& prefix) {
    double bytes = 0;
    for (const Op& op : schedule.roles.front().ops) {
      const auto* collective = std::get_if<Collective>(&op.work);
      if (collective != nullptr && op.name.starts_with(prefix)) bytes += collective->bytes.value();
    }
    return bytes;
  };
  // Two fp32 numbers of each of 4·2 + 2 matrices and 5 gains.
  EXPECT_EQ(bytes_of(schedule_of(UpdateRule::kLamb, false), "all-reduce LAMB norms"), 8 * 15.0);
  // Directions of matrices in bf16: all of each over tensor, and before that a half over data.
  const double matrices = 2.0 * (16 * 32 + 16 * 16 + 16 * 48 + 24 * 16) * 2;
  EXPECT_EQ(bytes_of(schedule_of(UpdateRule::kMuon, false), "all-gather direction"), matrices);
  const Schedule muon = schedule_of(UpdateRule::kMuon, true);
  EXPECT_EQ(bytes_of(muon, "all-gather direction"), 1.5 * matrices);
  // Five steps of 4·s²·l + 2·s³ flops, s and l the smaller and the larger side.
  double flops = 0;
  for (const Op& op : muon.roles.front().ops) {
    const auto* compute = std::get_if<Compute>(&op.work);
    if (compute != nullptr && op.name.starts_with("Newton-Schulz")) flops += compute->flops.value();
  }
  const auto of = [](double s, double l) { return 5 * (4 * s * s * l + 2 * s * s * s); };
  EXPECT_EQ(flops, 2 * (of(16, 32) + of(16, 16) + of(16, 48) + of(16, 24)));
}

TEST(UpdateRuleTest, PiecesAreMadeOrthogonalWhereTheyLie) {
  // Nothing travels over tensor, and a piece has 16 x 16 of QKV's 32 x 16, 16 x 8 of the
  // projection, 24 x 16 of MLP-up and 16 x 12 of MLP-down.
  Training training = TrainingOf(UpdateRule::kMuon);
  training.muon_by_pieces = true;
  const Network network = MakeDecoder(Decoder(true), training);
  const Schedule schedule =
      PlanStep(network, training, MakeMegatron({.tensor = 2, .data = 2}, network));
  CheckSchedule(schedule);
  CheckBuffers(schedule);
  double flops = 0;
  for (const Op& op : schedule.roles.front().ops) {
    EXPECT_FALSE(op.name.starts_with("all-gather direction"));
    const auto* compute = std::get_if<Compute>(&op.work);
    if (compute != nullptr && op.name.starts_with("Newton-Schulz")) flops += compute->flops.value();
  }
  const auto of = [](double s, double l) { return 5 * (4 * s * s * l + 2 * s * s * s); };
  EXPECT_EQ(flops, 2 * (of(16, 16) + of(8, 16) + of(16, 24) + of(12, 16)));
}

TEST(UpdateRuleTest, OrthogonalStepsOfExpertsAreRefused) {
  const Training training = TrainingOf(UpdateRule::kMuon);
  GptModel model = Decoder(true);
  model.experts = ExpertModel{};
  model.experts->count = 4;
  model.experts->per_token = 2;
  model.experts->hidden = 8;
  const Network network = MakeDecoder(model, training);
  try {
    PlanSerialStep(network, training, 1);
    FAIL() << "planned";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("muon"), std::string::npos) << error.what();
  }
}

}  // namespace update_rule_test
}  // namespace rehearse
