// What experts cost and where they lie, with the numbers derived; ExpertExecution in
// tests/real/execution checks that they compute what they should.
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <variant>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/schedule/expert_routing.h"
#include "tests/support/preset_strategies.h"
#include "workloads/networks/decoder_network.h"
#include "workloads/planner/planner.h"
#include "workloads/strategies/strategy_4d.h"
#include "workloads/strategies/strategy_combined.h"

namespace rehearse {
namespace expert_strategy_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

constexpr double kHidden = 96;
constexpr double kExpert = 24;  // columns of one
constexpr double kBf16 = 2;
constexpr double kFp32 = 4;

GptModel Experts() {
  GptModel model;
  model.name = "experts";
  model.layers = 1;
  model.hidden = 96;
  model.heads = 8;
  model.vocabulary = 192;
  model.llama = true;
  model.tied = false;
  model.experts = ExpertModel{.count = 8, .per_token = 2, .hidden = 24};
  return model;
}

// 128 tokens.
Training SmallTraining() {
  Training training;
  training.batch = 16;
  training.sequence = 8;
  training.recomputation = Recomputation::kNone;
  return training;
}

Network SmallNetwork() { return MakeDecoder(Experts(), SmallTraining()); }

// Eight ranks: two times four of the attention, four times two of the experts.
CombinedOptions Folded() {
  CombinedOptions options;
  options.tensor = 2;
  options.sequence_parallel = true;
  options.zero.stage = 1;
  options.zero.shard = 4;
  options.expert = 4;
  return options;
}

// Bytes of collectives by "NAME on COMMUNICATOR".
std::map<std::string, double> BytesByName(const Schedule& schedule, Phase phase) {
  std::map<std::string, double> bytes;
  for (const Op& op : schedule.roles[0].ops) {
    const auto* collective = std::get_if<Collective>(&op.work);
    if (collective == nullptr || op.tag.phase != phase) continue;
    const std::string axis = schedule.communicators[collective->communicator.index()].name();
    bytes[fmt::format("{} on {}", op.name, axis)] += collective->bytes.value();
  }
  return bytes;
}

Schedule PlanFolded(const CombinedOptions& options) {
  const Network network = SmallNetwork();
  return PlanStep(network, SmallTraining(), MakeCombined(options, network));
}

TEST(ExpertStrategy, TokensGoToTheirExpertsAndComeBack) {
  const Schedule schedule = PlanFolded(Folded());
  // 16 of 128 tokens per rank, with two choices each.
  const double choices = 16 * 2 * kHidden * kBf16;
  const std::map<std::string, double> forward = BytesByName(schedule, Phase::kForward);
  EXPECT_EQ(forward.at("dispatch tokens of experts on expert"), choices);
  EXPECT_EQ(forward.at("combine experts down on expert"), choices);
  EXPECT_EQ(forward.at("all-gather counts on expert"), 4 * 8 * kFp32);
  const std::map<std::string, double> backward = BytesByName(schedule, Phase::kBackward);
  EXPECT_EQ(backward.at("dispatch d results of experts on expert"), choices);
}

TEST(ExpertStrategy, InEightBitsTokensAreHalfAsLargeOnTheirWayToExperts) {
  CombinedOptions options = Folded();
  options.narrow_dispatch = true;
  const Schedule schedule = PlanFolded(options);
  const double choices = 16 * 2 * kHidden;
  const double narrow = 1 + 4.0 / 128;  // a scale in fp32 for 128 elements
  const std::map<std::string, double> forward = BytesByName(schedule, Phase::kForward);
  EXPECT_EQ(forward.at("dispatch tokens of experts on expert"), choices * narrow);
  EXPECT_EQ(forward.at("combine experts down on expert"), choices * kBf16);
  const std::map<std::string, double> backward = BytesByName(schedule, Phase::kBackward);
  EXPECT_EQ(backward.at("dispatch d results of experts on expert"), choices * narrow);
  // Reads the tokens, writes them narrow; the reverse where they arrive.
  double casts = 0;
  for (const Op& op : schedule.roles[0].ops) {
    if (op.name != "cast tokens of experts" && op.name != "widen tokens of experts") continue;
    casts += std::get<Compute>(op.work).bytes.value();
  }
  EXPECT_EQ(casts, 2 * choices * (kBf16 + narrow));
}

TEST(ExpertStrategy, GradientsOfExpertsAreSummedOverTheirReplicas) {
  const std::map<std::string, double> sums = BytesByName(PlanFolded(Folded()), Phase::kSynchronize);
  const double first = 2 * kHidden * 2 * kExpert;  // two experts of a rank: h x 2f
  EXPECT_EQ(sums.at("reduce-scatter gradient of experts up on expert data"), first * kFp32);
  // The router's over all that have tokens of their own.
  EXPECT_EQ(sums.at("all-reduce gradient of router on tensor"), kHidden * 8 * kFp32);
  EXPECT_EQ(sums.at("reduce-scatter gradient of router on shard"), kHidden * 8 * kFp32);
}

TEST(ExpertStrategy, FourConsecutiveRanksHaveAllExperts) {
  const Schedule schedule = PlanFolded(Folded());
  for (const Communicator& communicator : schedule.communicators) {
    if (communicator.name() != "expert") continue;
    EXPECT_EQ(communicator.size(), 4u);
    for (uint32_t member = 0; member < 4; ++member)
      EXPECT_EQ(communicator.Rank(1, member), 4 + member);
  }
}

TEST(ExpertStrategy, RanksThatShareAnExpertGatherItsTokens) {
  CombinedOptions options = Folded();
  options.expert_tensor = 2;
  const std::map<std::string, double> forward = BytesByName(PlanFolded(options), Phase::kForward);
  EXPECT_EQ(forward.at("all-gather tokens of experts on expert tensor"),
            2 * 16 * 2 * kHidden * kBf16);
}

// The busiest expert's rank and the others have roles of their own.
TEST(ExpertStrategy, RanksWithBusyExpertsHaveMoreToDo) {
  GptModel model = Experts();
  model.experts->imbalance = 2;
  Training training = SmallTraining();
  training.sequence = 64;
  const Network network = MakeDecoder(model, training);
  CombinedOptions options;
  options.data = 4;
  options.expert = 4;
  const Schedule schedule = PlanStep(network, training, MakeCombined(options, network));
  EXPECT_EQ(schedule.roles.size(), 4u);
  double all = 0;
  for (const Role& role : schedule.roles) {
    for (const Op& op : role.ops) {
      if (op.name != "experts up") continue;
      const auto& attributes = std::get<Compute>(op.work).attributes;
      for (size_t i = 1; i < attributes.size(); ++i) all += attributes[i];
    }
  }
  EXPECT_EQ(all, 16 * 64 * 2);  // no choice is lost
}

// Rows of a rank's experts, by micro-batch: the same all step, or other ones each time.
TEST(ExpertStrategy, WhichExpertsAreBusyChangesWithTheMicroBatch) {
  GptModel model = Experts();
  model.experts->imbalance = 2;
  Training training = SmallTraining();
  training.sequence = 64;
  training.micro_batches = 4;
  CombinedOptions options;
  options.data = 4;
  options.expert = 4;
  for (const bool changes : {false, true}) {
    model.experts->drawn_by_micro_batch = changes;
    const Network network = MakeDecoder(model, training);
    const Schedule schedule = PlanStep(network, training, MakeCombined(options, network));
    std::map<int32_t, double> rows;  // of all ranks
    std::set<double> of_first_rank;
    for (size_t i = 0; i < schedule.roles.size(); ++i) {
      const Role& role = schedule.roles[i];
      for (uint32_t position = 0; position < role.OpCount(); ++position) {
        const Op& op = role.At(position);
        if (op.name != "experts up" || role.TagAt(position).layer != 0) continue;
        const auto& attributes = std::get<Compute>(op.work).attributes;
        const double own = std::accumulate(attributes.begin() + 1, attributes.end(), 0.0);
        rows[role.TagAt(position).micro_batch] += own;
        if (i == 0) of_first_rank.insert(own);
      }
    }
    EXPECT_THAT(rows, ElementsAre(Pair(0, 16 / 4 * 64 * 2), Pair(1, 16 / 4 * 64 * 2),
                                  Pair(2, 16 / 4 * 64 * 2), Pair(3, 16 / 4 * 64 * 2)));
    EXPECT_EQ(of_first_rank.size() > 1, changes);
  }
}

TEST(ExpertStrategy, FlopsAreThoseOfTheExpertsThatATokenPasses) {
  const Network network = SmallNetwork();
  EXPECT_DOUBLE_EQ(3 * ForwardFlops(network).value(), network.model_flops.value());
  EXPECT_DOUBLE_EQ(network.Parameters(), Experts().Parameters());
  EXPECT_DOUBLE_EQ(Experts().Parameters() - Experts().ActiveParameters(),
                   (8 - 2) * 3 * kHidden * kExpert);
}

std::string RefusalOf(const Strategy& strategy, const Network& network) {
  try {
    PlanStep(network, SmallTraining(), strategy);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(ExpertStrategy, RanksWithTheSameTokensAreRefused) {
  const Network network = SmallNetwork();
  EXPECT_THAT(RefusalOf(MakeMegatron({.tensor = 2, .data = 2}, network), network),
              HasSubstr("along axis \"tensor\" have the same tokens"));
  FourDOptions options;
  options.column = 2;
  EXPECT_THAT(RefusalOf(MakeFourD(options, network), network), HasSubstr("expected \"kind\""));
}

TEST(ExpertStrategy, AMeshThatDoesNotFitIsRefused) {
  const Network network = SmallNetwork();
  CombinedOptions options;
  options.data = 6;
  options.expert = 4;
  EXPECT_THROW(MakeCombined(options, network), Error);
  options.data = 2;
  EXPECT_THROW(MakeCombined(options, network), Error);
}

TEST(ExpertStrategy, TokensThatAreNoWholeRunsAreRefused) {
  GptModel model = Experts();
  model.experts->capacity = 1;  // runs of 64 tokens
  const Network network = MakeDecoder(model, SmallTraining());
  EXPECT_THAT(RefusalOf(MakeDataParallel(16, true, network), network),
              HasSubstr("8 tokens, expected a multiple of 64"));
}

}  // namespace expert_strategy_test
}  // namespace rehearse
