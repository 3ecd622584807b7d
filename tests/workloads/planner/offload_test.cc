#include "workloads/planner/offload.h"

#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/error.h"
#include "sim/schedule/memory.h"
#include "sim/schedule/schedule_check.h"
#include "tests/support/preset_strategies.h"
#include "workloads/networks/decoder_network.h"
#include "workloads/planner/planner.h"

namespace rehearse {
namespace offload_test {

// Every layer leaves before the last one ends and after it has begun; windows are equal to a layer
// and the longer ones come first.
TEST(OffloadTest, WindowsCoverTheLayersEvenly) {
  for (uint32_t layers = 2; layers <= 40; ++layers) {
    for (uint32_t offloaded = 1; offloaded < layers; ++offloaded) {
      uint32_t before = 0;  // layers of the windows so far
      uint32_t longest = layers;
      for (uint32_t i = 0; i < offloaded; ++i) {
        const uint32_t end = EndOfWindow(layers, offloaded, i);
        const uint32_t length = end + 1 - before;
        EXPECT_GT(end, i);
        EXPECT_GE(length, layers / offloaded);
        EXPECT_LE(length, longest);
        longest = length;
        before = end + 1;
      }
      EXPECT_EQ(before, layers);
    }
  }
}

Training TrainingOf(Recomputation recomputation) {
  Training training;
  training.batch = 2;
  training.sequence = 64;
  training.recomputation = recomputation;
  return training;
}

GptModel Model() {
  GptModel model;
  model.name = "small";
  model.layers = 8;
  model.hidden = 64;
  model.heads = 4;
  model.vocabulary = 128;
  return model;
}

MemoryUse UseOf(const Training& training) {
  const Network network = MakeDecoder(Model(), training);
  return MemoryOfFullestRank(
      PlanStep(network, training, MakeMegatron({.tensor = 1, .data = 1}, network)));
}

// What n layers keep is on the host when the way back begins, layer by layer the same amount; the
// device has that much less.
TEST(OffloadTest, MemoryGoesFromTheDeviceToTheHost) {
  for (const Recomputation recomputation : {Recomputation::kNone, Recomputation::kFull}) {
    Training training = TrainingOf(recomputation);
    const MemoryUse none = UseOf(training);
    EXPECT_EQ(none.host, Bytes(0));
    double of_layer = 0;
    for (uint32_t n = 1; n < 8; ++n) {
      training.offloaded_layers = n;
      const MemoryUse use = UseOf(training);
      if (n == 1) of_layer = use.host.value();
      EXPECT_GT(of_layer, 0);
      EXPECT_DOUBLE_EQ(use.host.value(), n * of_layer);
      const double freed =
          (none.activations + none.buffers - use.activations - use.buffers).value();
      // The last ones that leave do so at the end of the last layer, as the fullest moment begins,
      // or return when it ends.
      EXPECT_LE(freed, n * of_layer);
      EXPECT_GE(freed, (n - 2.0) * of_layer);
    }
  }
  // Of a fully recomputed layer, only its input: batch x sequence x hidden in bf16.
  Training training = TrainingOf(Recomputation::kFull);
  training.offloaded_layers = 1;
  EXPECT_DOUBLE_EQ(UseOf(training).host.value(), 2.0 * 64 * 64 * 2);
}

// 12 bytes a parameter are away while activations are largest, and back for the update.
TEST(OffloadTest, OptimizerStateIsAwayWhileActivationsAreLargest) {
  Training training = TrainingOf(Recomputation::kNone);
  training.batch = 64;
  const MemoryUse kept = UseOf(training);
  training.offloaded_optimizer = true;
  const MemoryUse away = UseOf(training);
  EXPECT_GT(kept.optimizer, Bytes(0));
  EXPECT_EQ(away.host, kept.optimizer);
  EXPECT_EQ(away.optimizer, Bytes(0));
  EXPECT_EQ(away.activations, kept.activations);
  // With few activations the update is the fullest moment.
  training = TrainingOf(Recomputation::kFull);
  training.batch = 1;
  training.sequence = 4;
  training.offloaded_optimizer = true;
  EXPECT_EQ(UseOf(training).optimizer, away.host);
}

// 4 bytes of master weights and twice 2 of moments, in place of 12.
TEST(OffloadTest, MomentsMayHave16Bits) {
  Training training = TrainingOf(Recomputation::kNone);
  const MemoryUse whole = UseOf(training);
  training.moments = DType::kBf16;
  const MemoryUse narrow = UseOf(training);
  EXPECT_DOUBLE_EQ(narrow.optimizer.value(), whole.optimizer.value() * 8 / 12);
  EXPECT_EQ(narrow.parameters, whole.parameters);
  training.batch = 64;
  training.offloaded_optimizer = true;
  EXPECT_EQ(UseOf(training).host, narrow.optimizer);
}

// 12 bytes of state with whole masters, 10 with the 16 bits that parameters lack, 8 without any;
// with moments of 16 bits 8, 6 and 4.
TEST(OffloadTest, MastersMayBeRestsOrMissing) {
  Training training = TrainingOf(Recomputation::kNone);
  const MemoryUse whole = UseOf(training);
  const auto bytes = [&](MasterWeights masters, DType moments) {
    training.masters = masters;
    training.moments = moments;
    const MemoryUse use = UseOf(training);
    EXPECT_EQ(use.parameters, whole.parameters);
    EXPECT_EQ(use.gradients, whole.gradients);
    return 12 * use.optimizer.value() / whole.optimizer.value();
  };
  EXPECT_DOUBLE_EQ(bytes(MasterWeights::kRemainders, DType::kFp32), 10);
  EXPECT_DOUBLE_EQ(bytes(MasterWeights::kNone, DType::kFp32), 8);
  EXPECT_DOUBLE_EQ(bytes(MasterWeights::kFp32, DType::kBf16), 8);
  EXPECT_DOUBLE_EQ(bytes(MasterWeights::kRemainders, DType::kBf16), 6);
  EXPECT_DOUBLE_EQ(bytes(MasterWeights::kNone, DType::kBf16), 4);
}

MemoryUse UseOfShares(const Training& training, uint32_t stage) {
  const Network network = MakeDecoder(Model(), training);
  ZeroOptions zero;
  zero.shard = 4;
  zero.stage = stage;
  return MemoryOfFullestRank(PlanStep(network, training, MakeZero(zero, network)));
}

// ZeRO-Offload: 12 bytes a parameter of state, its gradient in fp32 and its copy in 16 bits are on
// the host; with ZeRO-2 and -3 the device keeps gradients of biases and norms, since only those of
// matrices are shared.
TEST(OffloadTest, AnUpdateOnTheHostLeavesTheDeviceParameters) {
  Training training = TrainingOf(Recomputation::kNone);
  training.batch = 4;
  const MemoryUse kept = UseOf(training);
  training.optimizer_on_host = true;
  const MemoryUse whole = UseOf(training);
  EXPECT_EQ(whole.optimizer, Bytes(0));
  EXPECT_EQ(whole.parameters, kept.parameters);
  EXPECT_EQ(whole.gradients, kept.gradients);
  const double number = 4;  // bytes of the norm
  EXPECT_DOUBLE_EQ(whole.host.value(), kept.optimizer.value() * (12 + 4 + 2) / 12 + number);
  for (const uint32_t stage : {2u, 3u}) {
    training.optimizer_on_host = false;
    const MemoryUse before = UseOfShares(training, stage);
    training.optimizer_on_host = true;
    const MemoryUse after = UseOfShares(training, stage);
    EXPECT_EQ(after.optimizer, Bytes(0));
    EXPECT_EQ(after.parameters, before.parameters);
    EXPECT_LT(after.gradients, 0.1 * before.gradients);
    EXPECT_DOUBLE_EQ(after.host.value(), before.optimizer.value() * (12 + 4 + 2) / 12 + number);
  }
}

// ZeRO-Infinity: of matrices, only what is gathered is on the device.
TEST(OffloadTest, SharesOfParametersMayBeOnTheHost) {
  Training training = TrainingOf(Recomputation::kNone);
  training.batch = 4;
  training.optimizer_on_host = true;
  const MemoryUse before = UseOfShares(training, 3);
  training.parameters_on_host = true;
  const MemoryUse after = UseOfShares(training, 3);
  EXPECT_LT(after.parameters, 0.1 * before.parameters);
  EXPECT_EQ(after.host, before.host);  // where the copy in 16 bits was, now the parameter is
  try {
    UseOf(training);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("\"parameters_on_host\": shares of ZeRO-3"));
  }
}

// With several micro-batches the sum comes from the host and goes back for each but the first.
TEST(OffloadTest, GradientsAreSummedOnTheHost) {
  for (const uint32_t micro_batches : {1u, 2u, 4u}) {
    Training training = TrainingOf(Recomputation::kNone);
    training.batch = 16;
    training.micro_batches = micro_batches;
    training.optimizer_on_host = true;
    const Network network = MakeDecoder(Model(), training);
    ZeroOptions zero;
    zero.shard = 4;
    zero.stage = 2;
    const Schedule schedule = PlanStep(network, training, MakeZero(zero, network));
    CheckSchedule(schedule);
    std::map<std::string, uint32_t> ops;
    for (const Op& op : schedule.roles[0].ops) ++ops[op.name];
    EXPECT_EQ(ops["offload gradient of qkv"], 8 * micro_batches);
    EXPECT_EQ(ops["return gradient of qkv"], 8 * (micro_batches - 1));
    EXPECT_EQ(ops["Adam"], 1u);
    EXPECT_EQ(ops["return parameters"], 1u);
  }
}

TEST(OffloadTest, OtherRulesAreNotUpdatedOnTheHost) {
  for (const UpdateRule rule : {UpdateRule::kLamb, UpdateRule::kMuon}) {
    Training training = TrainingOf(Recomputation::kNone);
    training.optimizer_on_host = true;
    training.update_rule = rule;
    try {
      UseOf(training);
      FAIL();
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr("expected \"update_rule\": \"adam\""));
    }
  }
}

// JAX without donated buffers: 2 + 12 bytes a parameter more, all the time.
TEST(OffloadTest, WhatIsNotDonatedIsThereTwice) {
  Training training = TrainingOf(Recomputation::kNone);
  const MemoryUse once = UseOf(training);
  training.donates_state = false;
  const MemoryUse twice = UseOf(training);
  EXPECT_EQ(twice.parameters, 2 * once.parameters);
  EXPECT_EQ(twice.optimizer, 2 * once.optimizer);
  EXPECT_EQ(twice.gradients, once.gradients);
  EXPECT_EQ(twice.activations, once.activations);
}

TEST(OffloadTest, TheLastLayerOfAStageStays) {
  Training training = TrainingOf(Recomputation::kNone);
  training.offloaded_layers = 8;
  try {
    UseOf(training);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr(
                                  "the activations of 8 layers are offloaded, but stage 0 has 8"));
  }
}

}  // namespace offload_test
}  // namespace rehearse
