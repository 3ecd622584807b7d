// Runs of weeks beside closed forms, and beside a simulation that goes second by second.
#include "scenarios/campaign/long_run.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "scenarios/campaign/intervals.h"

namespace rehearse {
namespace long_run_test {

double& RateOf(PartKind kind, RunModel* model) { return model->rates[static_cast<size_t>(kind)]; }

double MeanElapsed(const RunModel& model, int seeds) {
  double sum = 0;
  for (int seed = 0; seed < seeds; ++seed) {
    const RunRecord record = PlayRun(model, static_cast<uint64_t>(seed));
    EXPECT_TRUE(record.is_done);
    sum += record.times.Elapsed();
  }
  return sum / seeds;
}

TEST(LongRunTest, WithoutFailuresOnlyCheckpointsCostTime) {
  // 10 stretches of 100 s, a checkpoint of 5 s behind each: 100/105 of the time is training.
  const RunRecord record = PlayRun({.training = 1000, .interval = 100, .stall = 5}, 1);
  EXPECT_TRUE(record.is_done);
  EXPECT_DOUBLE_EQ(record.times.useful, 1000);
  EXPECT_DOUBLE_EQ(record.times.Elapsed(), 1050);
  EXPECT_EQ(record.Interruptions(), 0u);
}

TEST(LongRunTest, AStretchAtTheEndMayBeShorter) {
  // 100 + 5, 100 + 5, 50 + 5.
  const RunRecord record = PlayRun({.training = 250, .interval = 100, .stall = 5}, 1);
  EXPECT_DOUBLE_EQ(record.times.Elapsed(), 265);
}

TEST(LongRunTest, WhatIsWrittenBesideTrainingCostsOnlyTheLastWrite) {
  const RunRecord record = PlayRun({.training = 1000, .interval = 100, .stall = 5, .write = 20}, 1);
  EXPECT_DOUBLE_EQ(record.times.Elapsed(), 10 * 105 + 20);
}

TEST(LongRunTest, TheNextCheckpointWaitsForTheOneBeingWritten) {
  // 10 + 1; 10 beside the write of 15, 5 more, 1; the same; the last write.
  const RunRecord record = PlayRun({.training = 30, .interval = 10, .stall = 1, .write = 15}, 1);
  EXPECT_DOUBLE_EQ(record.times.Elapsed(), 11 + 16 + 16 + 15);
}

TEST(LongRunTest, ManyCyclesAtOnceAreThoseOneByOne) {
  // 10,000 cycles are skipped at once; the last is at the same time as if each were played.
  const RunRecord record = PlayRun({.training = 1e6, .interval = 100, .stall = 2, .write = 150}, 1);
  EXPECT_DOUBLE_EQ(record.times.useful, 1e6);
  EXPECT_NEAR(record.times.Elapsed(), 102 + 9999 * 152.0 + 150, 1e-6);
}

TEST(LongRunTest, ExponentialFailuresTakeWhatDalyDerived) {
  // Daly (2006), equation 13: M·e^(R/M)·(e^((τ+δ)/M) − 1)·T/τ. With M = 10,000 s, R = 600 + 300 s,
  // τ = 1,000 s, δ = 60 s and T = 200,000 s: 10,000 · 1.09417 · 0.11182 · 200 = 244,707 s.
  RunModel model = {
      .training = 200'000, .interval = 1000, .stall = 60, .detection = 600, .restart = 300};
  RateOf(PartKind::kSoftware, &model) = 1e-4;
  const double daly = 1e4 * std::exp(0.09) * (std::exp(0.106) - 1) * 200;
  EXPECT_NEAR(daly, 244'707, 20);
  // 3,000 runs with some 24 failures of some 1,500 s each: a standard error of 0.06 %.
  EXPECT_NEAR(MeanElapsed(model, 3000) / daly, 1, 0.003);
}

TEST(LongRunTest, PlannedStopsLoseNothing) {
  RunModel model = {.training = 100'000,
                    .interval = 1000,
                    .stall = 10,
                    .save = 50,
                    .detection = 600,
                    .restart = 300};
  RateOf(PartKind::kPlanned, &model) = 1e-4;
  const RunRecord record = PlayRun(model, 3);
  const auto stops = static_cast<double>(record.Interruptions());
  EXPECT_GT(stops, 0);
  EXPECT_EQ(record.times.lost, 0);
  EXPECT_EQ(record.times.detection, 0);
  EXPECT_NEAR(record.times.restart, 300 * stops, 1e-6);
}

TEST(LongRunTest, ARunThatNeverReachesACheckpointIsGivenUp) {
  RunModel model = {.training = 1e5, .interval = 1e5, .stall = 10, .detection = 600};
  RateOf(PartKind::kHost, &model) = 1e-2;
  EXPECT_FALSE(PlayRun(model, 1).is_done);
}

TEST(LongRunTest, TheSameSeedIsTheSameRun) {
  RunModel model = {
      .training = 1e6, .interval = 1000, .stall = 10, .detection = 600, .restart = 300};
  RateOf(PartKind::kGpu, &model) = 1e-4;
  EXPECT_EQ(PlayRun(model, 5).times.Elapsed(), PlayRun(model, 5).times.Elapsed());
  EXPECT_NE(PlayRun(model, 5).times.Elapsed(), PlayRun(model, 6).times.Elapsed());
}

// ---- A simulation that is as simple as it can be ------------------------------------------------

// Second by second: whatever happens, happens at the end of a second. All times of the model are
// whole seconds.
class Reference {
 public:
  Reference(const RunModel& model, uint32_t seed) : model_(model), random_(seed) {}

  double Play() {
    while (kept_ < model_.training) Second();
    return now_;
  }

 private:
  enum class State : uint8_t { kTraining, kStalling, kDetecting, kWaiting, kRestarting };

  bool Happens(double rate) { return std::uniform_real_distribution<double>()(random_) < rate; }
  double Replicas() const {
    double broken = 0;
    for (const double done : repairs_) broken += done > now_ ? 1 : 0;
    if (!model_.spares) return model_.replicas;
    const double machines =
        std::min<double>(model_.machines, model_.machines + *model_.spares - broken);
    if (machines == model_.machines) return model_.replicas;
    return model_.elastic ? std::floor(machines * model_.replicas / model_.machines) : 0;
  }
  void Work() {
    const bool is_slow = !found_.empty();
    const double speed =
        replicas_ / model_.replicas / (is_slow ? 1 + model_.straggler_slowdown : 1);
    done_ += speed;
    if (written_at_ > 0 && now_ >= written_at_) {
      kept_ = snapshot_;
      written_at_ = 0;
    }
    if (done_ >= std::min(snapshot_ + model_.interval, model_.training) && written_at_ == 0) {
      state_ = State::kStalling;
      left_ = model_.stall;
    }
  }
  void Second() {
    ++now_;
    switch (state_) {
      case State::kTraining:
        Work();
        break;
      case State::kStalling:
        if (--left_ <= 0) {
          done_ = std::min(done_, std::min(snapshot_ + model_.interval, model_.training));
          snapshot_ = done_;
          written_at_ = now_ + model_.write;
          if (model_.write == 0 || done_ >= model_.training) {
            now_ += done_ >= model_.training ? model_.write : 0;
            kept_ = snapshot_;
            written_at_ = 0;
          }
          state_ = State::kTraining;
        }
        break;
      case State::kDetecting:
        if (--left_ <= 0) state_ = State::kWaiting;
        break;
      case State::kWaiting:
        if (Replicas() > 0) {
          replicas_ = Replicas();
          state_ = State::kRestarting;
          left_ = model_.restart;
        }
        break;
      case State::kRestarting:
        if (--left_ <= 0) state_ = State::kTraining;
        break;
    }
    if (state_ == State::kWaiting) return;
    const double share = replicas_ / model_.replicas;
    for (size_t i = 0; i < kPartKinds; ++i)
      if (Happens(model_.rates[i] * share)) Fail(static_cast<PartKind>(i));
    if (Happens(model_.straggler_rate * share))
      found_.push_back(now_ + model_.straggler_found_after);
    const bool is_found = !found_.empty() && found_.front() <= now_;
    if (state_ == State::kTraining && (is_found || Replicas() > replicas_)) {
      now_ += model_.save;
      kept_ = snapshot_ = done_;
      written_at_ = 0;
      while (!found_.empty() && found_.front() <= now_) {
        found_.erase(found_.begin());
        repairs_.push_back(now_ + model_.repair);
      }
      state_ = State::kWaiting;
    }
  }
  void Fail(PartKind kind) {
    if (TakesMachine(kind)) repairs_.push_back(now_ + model_.repair);
    done_ = snapshot_ = kept_;
    written_at_ = 0;
    state_ = State::kDetecting;
    left_ = model_.detection;
  }

  const RunModel& model_;
  std::mt19937 random_;
  State state_ = State::kTraining;
  double now_ = 0;
  double done_ = 0;
  double kept_ = 0;
  double snapshot_ = 0;
  double written_at_ = 0;  // 0: nothing is being written
  double left_ = 0;
  double replicas_ = model_.replicas;
  std::vector<double> repairs_ = {};
  std::vector<double> found_ = {};
};

// The mean of 300 runs is some 3 % off in what is no training, where runs wait for repairs.
void ExpectAsReference(const RunModel& model) {
  constexpr int kRuns = 300;
  double sum = 0;
  for (uint32_t seed = 1; seed <= kRuns; ++seed) sum += Reference(model, seed).Play();
  const double reference = sum / kRuns - model.training;
  EXPECT_NEAR((MeanElapsed(model, 3000) - model.training) / reference, 1, 0.08);
}

RunModel Busy() {
  RunModel model = {.training = 20'000,
                    .interval = 400,
                    .stall = 20,
                    .save = 60,
                    .detection = 60,
                    .restart = 120,
                    .repair = 3000,
                    .machines = 8};
  RateOf(PartKind::kGpu, &model) = 2e-4;
  RateOf(PartKind::kSoftware, &model) = 1e-4;
  return model;
}

TEST(LongRunTest, IsAsTheReferenceSecondBySecond) { ExpectAsReference(Busy()); }

TEST(LongRunTest, IsAsTheReferenceWithWritesBesideTraining) {
  RunModel model = Busy();
  model.stall = 2;
  model.write = 100;
  ExpectAsReference(model);
}

TEST(LongRunTest, IsAsTheReferenceWithFewSpares) {
  RunModel model = Busy();
  model.spares = 1;
  ExpectAsReference(model);
}

TEST(LongRunTest, IsAsTheReferenceWithFewerReplicas) {
  RunModel model = Busy();
  model.spares = 0;
  model.elastic = true;
  model.replicas = 8;
  ExpectAsReference(model);
}

TEST(LongRunTest, IsAsTheReferenceWithStragglers) {
  RunModel model = Busy();
  model.straggler_rate = 2e-4;
  model.straggler_slowdown = 0.5;
  model.straggler_found_after = 2000;
  ExpectAsReference(model);
}

// ---- Intervals ----------------------------------------------------------------------------------

TEST(IntervalTest, FormulasAreYoungsAndDalys) {
  // C = 60 s, M = 10,000 s: sqrt(1,200,000) = 1,095.4 s; C/(2M) = 0.003, whose root is 0.05477:
  // 1,095.4·(1 + 0.018257 + 0.000333) − 60 = 1,055.8 s.
  EXPECT_NEAR(YoungInterval(60, 1e4), 1095.4, 0.1);
  EXPECT_NEAR(DalyInterval(60, 1e4), 1055.8, 0.1);
  EXPECT_EQ(DalyInterval(300, 100), 100);  // checkpoints that take longer than anything lasts
}

TEST(IntervalTest, TheBestOneIsDalysWhereFailuresAreExponential) {
  RunModel model = {.training = 2e6, .interval = 1, .stall = 60, .detection = 600, .restart = 300};
  RateOf(PartKind::kSoftware, &model) = 1e-4;
  const IntervalChoice choice = ChooseInterval(model, 5, 1, 100);
  // The optimum is flat: half a step of the grid, 19 %, away costs some 0.1 %.
  EXPECT_NEAR(choice.best / DalyInterval(60, 1e4), 1, 0.15);
  EXPECT_EQ(std::fmod(choice.best, 5), 0);
  const double best = EffectiveShare(model, choice.best, 1, 100);
  for (const TriedInterval& one : choice.tried) EXPECT_GE(best, one.effective - 1e-3);
}

TEST(IntervalTest, WithoutFailuresACheckpointAtTheEndIsBest) {
  const RunModel model = {.training = 1e6, .interval = 1, .stall = 60};
  EXPECT_EQ(ChooseInterval(model, 5, 1, 10).best, 1e6);
}

}  // namespace long_run_test
}  // namespace rehearse
