// Training that is stopped keeps the losses it has.
#include "real/execution/training.h"

#include <gtest/gtest.h>

#include "real/transports/transport_threads.h"
#include "tests/support/preset_strategies.h"
#include "workloads/networks/decoder_network.h"
#include "workloads/planner/planner.h"

namespace rehearse {
namespace training_test {

Schedule OnRanks(uint32_t ranks) {
  GptModel model;
  model.name = "tiny";
  model.layers = 1;
  model.hidden = 8;
  model.heads = 2;
  model.vocabulary = 11;
  Training training;
  training.batch = 4;
  training.sequence = 3;
  training.recomputation = Recomputation::kNone;
  const Network network = MakeDecoder(model, training);
  return PlanStep(network, training, MakeDataParallel(ranks, false, network));
}

std::vector<double> LossesOf(const Schedule& schedule, const TrainingOptions& options) {
  std::vector<double> losses;
  RunAsThreads(schedule.ranks(), [&](Transport& transport) {
    std::vector<double> own = Train(schedule, transport, options);
    if (transport.rank() == 0) losses = std::move(own);
  });
  return losses;
}

TEST(TrainingTest, AllRanksStopAfterTheSameStep) {
  const Schedule schedule = OnRanks(2);
  TrainingOptions options;
  options.steps = 3;
  const std::vector<double> three = LossesOf(schedule, options);
  options.steps = 1000;
  int asked = 0;  // by rank 0 alone
  options.is_stopped = [&] { return ++asked == 3; };
  EXPECT_EQ(LossesOf(schedule, options), three);
  EXPECT_EQ(asked, 3);
}

TEST(TrainingTest, TheSerialStepsStopToo) {
  TrainingOptions options;
  options.steps = 1000;
  options.is_stopped = [] { return true; };
  EXPECT_EQ(TrainSerially(OnRanks(1), options).size(), 1u);
}

}  // namespace training_test
}  // namespace rehearse
