// Words that say how far a number can be trusted stand only where something speaks for them.
#include <nlohmann/json.hpp>

#include "tests/tools/program_fixture.h"

namespace rehearse {
namespace trust_words_test {

using ::testing::HasSubstr;
using ::testing::Not;

class TrustWordsTest : public ProgramTest {
 protected:
  // What a run prints of a shipped scenario, with more arguments.
  std::string Ran(const std::string& name, const std::string& arguments = "") const {
    const Outcome outcome = Execute("run '" + Shipped(name) + "' " + arguments);
    EXPECT_EQ(outcome.code, 0) << name << " " << arguments << "\n" << outcome.err;
    return outcome.out;
  }
};

constexpr const char* kStep = "axonn-gpt20b-perlmutter";
constexpr const char* kJitter =
    "--set 'simulator.perturbation={\"seed\": 1, \"compute_jitter\": 0.02}'";
constexpr const char* kFailing =
    "--set 'simulator.perturbation={\"events\": [{\"at\": \"300ms\", \"links\": \"node1/nic0\", "
    "\"bandwidth\": \"0.5x\"}]}'";

TEST_F(TrustWordsTest, ValidatedIsAWordForMachinesLikeThoseThatWerePublished) {
  EXPECT_THAT(Ran(kStep), HasSubstr("\nValidated   a100-40g"));
  // Nobody published steps of CPUs, or of a GPU whose failing links were known.
  EXPECT_THAT(Ran("cpu-4d"), Not(HasSubstr("\nValidated")));
  EXPECT_THAT(Ran(kStep, kFailing), Not(HasSubstr("\nValidated")));
  Write("mine.csv", "op,m,n,k,dtype,microseconds\ngemm,4096,8192,8192,bf16,2500\n");
  EXPECT_THAT(Ran(kStep, "--device-points mine.csv"), Not(HasSubstr("\nValidated")));
  const Outcome schedule =
      Execute("run '" + Shipped("schedules/two-ranks") + "' --cluster switch:devices=2");
  EXPECT_EQ(schedule.code, 0) << schedule.err;
  EXPECT_THAT(schedule.out, Not(HasSubstr("\nValidated")));
}

// Of Frontier's steps none is in the tables: that is said, and no error is claimed.
TEST_F(TrustWordsTest, WhereNoStepWasPublishedNoErrorIsClaimed) {
  const std::string out = Ran("axonn-unet-4b-frontier");
  EXPECT_THAT(out, HasSubstr("\nValidated   against no published step of such devices\n"));
  EXPECT_THAT(out, Not(HasSubstr("off in the mean")));
}

// Nor is any of a step whose products are cut, whatever its device and software.
TEST_F(TrustWordsTest, NoErrorIsClaimedForProductsInPieces) {
  for (const auto& [name, change] :
       {std::pair("strategy-sequence-parallel", "strategy.split_products=user-buffers"),
        std::pair("mixtral-8x7b-experts", "strategy.expert_pieces=2")}) {
    EXPECT_THAT(Ran(name), HasSubstr("off in the mean"));
    const std::string out = Ran(name, std::string("--set ") + change);
    EXPECT_THAT(out,
                HasSubstr("\nValidated   against no published step with its products in pieces"));
    EXPECT_THAT(out, Not(HasSubstr("off in the mean")));
  }
}

// A program that reads the result finds no number where the text has none.
TEST_F(TrustWordsTest, TheResultHasTheSameNumbersAsTheText) {
  const auto result = [&](const std::string& name, const std::string& arguments) {
    return nlohmann::json::parse(Ran(name, "--format json " + arguments));
  };
  const auto good = result(kStep, "");
  EXPECT_TRUE(good.contains("typical"));
  EXPECT_GT(good["trust"]["rows"], 0);
  EXPECT_TRUE(good["trust"].contains("mean_error"));
  for (const auto& other : {result("cpu-4d", ""), result(kStep, kJitter)}) {
    EXPECT_FALSE(other.contains("typical"));
    EXPECT_FALSE(other.contains("trust"));
  }
  const auto frontier = result("axonn-unet-4b-frontier", "");
  EXPECT_EQ(frontier["trust"]["rows"], 0);
  EXPECT_FALSE(frontier["trust"].contains("mean_error"));
}

// Weeks of steps that are as long as they typically are need devices whose spread is known.
TEST_F(TrustWordsTest, NoRunIsMadeOfTypicalStepsWhereNoneIsKnown) {
  const std::string run = R"( --set 'run={"tokens": "1M", "step": "typical", )"
                          R"("checkpoint": {"storage_bandwidth": "10GBps"}}')";
  const Outcome outcome = Execute("run '" + Shipped("cpu-4d") + "'" + run);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("not known how far these devices differ"));
}

TEST_F(TrustWordsTest, TypicallyIsAWordForDevicesThatDifferAndWhoseSpreadIsNotSaid) {
  EXPECT_THAT(Ran(kStep), HasSubstr("\n  typically "));
  EXPECT_THAT(Ran("cpu-4d"), Not(HasSubstr("typically")));
  EXPECT_THAT(Ran(kStep, kJitter), Not(HasSubstr("typically")));
}

// 2 GiB of a device would be needed, of a 40 GB one there is room, of a smaller one there is not.
TEST_F(TrustWordsTest, FitsIsTrueOnlyWhereThereIsRoom) {
  const auto fits = [&](const std::string& arguments) {
    const Outcome outcome =
        Execute("explain '" + Shipped(kStep) + "' --memory --format json --allow-oom " + arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out)["fits"].get<bool>();
  };
  EXPECT_TRUE(fits(""));
  EXPECT_FALSE(fits("--set training.batch=512"));
  EXPECT_THAT(Ran(kStep), Not(HasSubstr("does not fit")));
  EXPECT_THAT(Ran(kStep, "--allow-oom --set training.batch=512"), HasSubstr(": does not fit"));
}

TEST_F(TrustWordsTest, WhatWasMeasuredOnCpusSaysNothingOfBeingRepresentative) {
  const Outcome outcome =
      Execute("execute '" + Shipped("cpu-data-parallel") + "' --repeat 1 --warmup 0 --format json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, Not(HasSubstr("representative")));
  EXPECT_THAT(outcome.out, Not(HasSubstr("typical")));
}

// A calibration that has doubts of its own, and one that says nothing of it.
TEST_F(TrustWordsTest, ACalibrationThatIsNotRepresentativeIsNoted) {
  const auto run_with = [&](const char* about) {
    const std::string file =
        Write("mine.json", std::string(R"({"schema": "rehearse.calibration.v1", "host_cores": 2)") +
                               about + "}");
    return Ran("cpu-4d", "--calibration '" + file + "'");
  };
  EXPECT_THAT(run_with(R"(, "about": {"representative": false})"),
              HasSubstr("calibration: not representative"));
  EXPECT_THAT(run_with(R"(, "about": {"representative": true})"), Not(HasSubstr("representative")));
  EXPECT_THAT(run_with(""), Not(HasSubstr("representative")));
}

}  // namespace trust_words_test
}  // namespace rehearse
