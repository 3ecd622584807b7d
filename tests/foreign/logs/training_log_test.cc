// Lines like those that trainings log, with made-up figures.
#include "tools/foreign/logs/training/training_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/error.h"

namespace rehearse {
namespace training_log_test {

using ::testing::HasSubstr;

// Five steps, of which the first is not counted, with these figures.
std::string Lines(const std::string& before, const std::vector<std::string>& figures,
                  const std::string& behind) {
  std::string text = "starting\n";
  for (const std::string& figure : figures) {
    text += before;
    text += figure;
    text += behind + "\n";
  }
  return text;
}

TrainingLog Log(const std::string& text) { return ReadTrainingLog(text, "run.log"); }

TEST(TrainingLogTest, EveryProgramHasItsLine) {
  const TrainingLog megatron =
      Log(Lines(" [2026-01-01 00:00:00] iteration  1/ 9 | consumed samples: 8 | elapsed time per "
                "iteration (ms): ",
                {"9000.0", "2000.0", "2100.0", "1900.0", "2050.0"}, " | lm loss: 1.0E+00 |"));
  EXPECT_EQ(megatron.program, "Megatron-LM");
  EXPECT_EQ(megatron.unit, StepUnit::kSeconds);
  EXPECT_EQ(megatron.left_out, 1u);
  // Of 1.9, 2.0, 2.05 and 2.1, the third.
  EXPECT_DOUBLE_EQ(megatron.Median(), 2.05);
  EXPECT_DOUBLE_EQ(megatron.Share(0), 1.9);
  EXPECT_DOUBLE_EQ(megatron.Share(1), 2.1);

  const TrainingLog titan = Log(Lines(
      "[titan] \033[31mstep:  1  \033[32mloss:  8.1  \033[34mtps: ", {"100", "6,123", "6,123"},
      "  \033[36mtflops: 35.1  \033[35mmfu: 3.50%\033[39m"));
  EXPECT_EQ(titan.program, "torchtitan");
  EXPECT_EQ(titan.unit, StepUnit::kTokensPerSecondOfADevice);
  EXPECT_DOUBLE_EQ(titan.Median(), 6123);

  const TrainingLog nanotron =
      Log("iteration: 3 / 9 | consumed_tokens: 1.2M | time_per_iteration_ms: 3.2K | lm_loss: 9\n");
  EXPECT_EQ(nanotron.program, "nanotron");
  EXPECT_DOUBLE_EQ(nanotron.Median(), 3.2);

  EXPECT_DOUBLE_EQ(
      Log("completed step: 3, seconds: 0.513, TFLOP/s/device: 3.1, Tokens/s/device: 7.5\n")
          .Median(),
      0.513);
  EXPECT_DOUBLE_EQ(Log("Step 4 | loss:1.2 lr:2e-05 tokens_per_second_per_gpu:812.5 \n").Median(),
                   812.5);
  EXPECT_DOUBLE_EQ(Log("Training epoch 0, iteration 4/9 | train_step_timing in s: 7.25\n").Median(),
                   7.25);
  EXPECT_EQ(Log("[INFO] epoch=0/micro_step=8/global_step=8, CurrSamplesPerSec=12.5, x=1\n").unit,
            StepUnit::kSamplesPerSecond);
}

TEST(TrainingLogTest, OfHuggingFacesTrainerTheSummaryCountsMoreThanTheBar) {
  const std::string bar =
      " 10%|#   | 1/10 [00:08<01:15, 30.00s/it]\r 20%|##  | 2/10 [00:16<01:06,  8.34s/it]\n"
      "{'loss': 1.2, 'learning_rate': 1e-05, 'epoch': 0.1}\n";
  EXPECT_DOUBLE_EQ(Log(bar).Median(), 8.34);
  const TrainingLog all =
      Log(bar + "{'train_runtime': 80.0, 'train_samples_per_second': 3.2, 'train_loss': 1.1}\n");
  EXPECT_EQ(all.unit, StepUnit::kSamplesPerSecond);
  EXPECT_DOUBLE_EQ(all.Median(), 3.2);
  EXPECT_DOUBLE_EQ(
      Log("{\n  \"train_runtime\": 80.0,\n  \"train_samples_per_second\": 3.5\n}\n").Median(), 3.5);
  EXPECT_DOUBLE_EQ(Log("  5%|# | 5/99 [00:01<00:10,  2.00it/s]\n").Median(), 0.5);
}

TEST(TrainingLogTest, ALogWithoutStepsIsRefused) {
  for (const char* text : {"", "seconds: 3\n", "tps: 12\n", "completed step: 1, seconds: soon\n"}) {
    try {
      Log(text);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("run.log: no line says how long a step took"));
    }
  }
}

}  // namespace training_log_test
}  // namespace rehearse
