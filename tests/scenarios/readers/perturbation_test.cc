#include "scenarios/readers/perturbation.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/scenarios/small_scenario.h"

namespace rehearse {
namespace perturbation_test {

using ::testing::AllOf;
using testing::ErrorOf;
using ::testing::HasSubstr;
using testing::Play;
using testing::ReadSmall;

std::string Perturbed(const std::string& json) { return "simulator.perturbation=" + json; }

double StepWith(const std::string& json, std::vector<std::string> changes = {}) {
  changes.push_back(Perturbed(json));
  return Play(changes).result.step.value();
}

double CarriedBy(const Rehearsal& rehearsal, const std::string& begin) {
  double bytes = 0;
  for (const LinkRecord& link : rehearsal.timeline.links) {
    if (link.name.starts_with(begin)) bytes += link.bytes.value();
  }
  return bytes;
}

Rehearsal PlayUnfolded(const std::vector<std::string>& changes) {
  Scenario scenario = ReadSmall(changes);
  scenario.lowering.fold = false;
  return Rehearse(scenario);
}

TEST(PerturbationTest, NothingPerturbedIsTheSameStep) {
  const std::string hash = Play().result.timeline_hash;
  EXPECT_EQ(Play({Perturbed("{}")}).result.timeline_hash, hash);
  EXPECT_EQ(Play({Perturbed(R"({"seed": 3, "compute_jitter": 0, "link_jitter": 0})")})
                .result.timeline_hash,
            hash);
}

TEST(PerturbationTest, TheSeedDecidesWhatJitterDoes) {
  const auto hash = [](int seed) {
    return Play({Perturbed(fmt::format(
                    R"({{"seed": {}, "compute_jitter": 0.05, "link_jitter": 0.1}})", seed))})
        .result.timeline_hash;
  };
  EXPECT_EQ(hash(1), hash(1));
  EXPECT_NE(hash(1), hash(2));
}

// Ranks wait for the slowest of their groups: jitter can only cost time, except for its mean
// effect, which is nearly zero over hundreds of kernels.
TEST(PerturbationTest, JitterMakesRanksWaitForEachOther) {
  const double steady = Play().result.step.value();
  const double shaky = StepWith(R"({"seed": 1, "compute_jitter": 0.1})");
  EXPECT_GT(shaky, steady);
  EXPECT_LT(shaky, 1.3 * steady);
}

// All kernels of all ranks take twice as long: so does the time during which a kernel runs.
TEST(PerturbationTest, WhereAllStraggleComputeTakesTheFactor) {
  // Without the cost of communication, of which there is more beside a shorter kernel.
  const std::vector<std::string> alone = {"simulator.protocol=none", "simulator.slowdown={}"};
  std::vector<std::string> all = alone;
  all.push_back(Perturbed(R"({"stragglers": [{"devices": "**", "compute_time": "2x"}]})"));
  const Result steady = Play(alone).result;
  const Result slow = Play(all).result;
  EXPECT_NEAR(slow.breakdown.compute.value(), 2 * steady.breakdown.compute.value(), 1e-9);
  EXPECT_EQ(slow.simulator.classes, steady.simulator.classes);
}

TEST(PerturbationTest, AStragglerSplitsOnlyTheClassesItTouches) {
  // 16 nodes, 64 ranks; column × row is a node, depth × data the nodes, 4 × 4. The straggler, its
  // node, its depth groups, its data groups and the others differ.
  const Result result =
      Play({"cluster=perlmutter:nodes=16", "strategy.depth=4", "strategy.data=4",
            "training.batch=64", Perturbed(R"({"stragglers": [{"devices": "node5/gpu1",
                                                            "compute_time": "1.5x"}]})")})
          .result;
  EXPECT_LT(result.simulator.classes, 40u);
}

// On bare links: a library knows of an edit when it chooses, not of what happens later.
TEST(PerturbationTest, ASlowerLinkCountsFromItsTimeOn) {
  const std::string bare = "simulator.protocol=none";
  const double steady = Play({bare}).result.step.value();
  const auto slowed_at = [&](const std::string& at) {
    return StepWith(
        fmt::format(R"({{"events": [{{"at": "{}", "links": "node1/nic*", "bandwidth": "0.1x"}}]}})",
                    at),
        {bare});
  };
  const double from_begin = slowed_at("0s");
  const double from_middle = slowed_at(fmt::format("{:.9f}s", steady / 2));
  EXPECT_EQ(slowed_at("10s"), steady);  // long after the end
  EXPECT_GT(from_middle, steady);
  EXPECT_GT(from_begin, from_middle);
  // From the beginning it is another machine: the same as an edit.
  const std::string edit = R"(edits=[{"links": "node1/nic*", "bandwidth": "0.1x"}])";
  EXPECT_NEAR(from_begin, Play({bare, edit}).result.step.value(), 1e-9);
}

TEST(PerturbationTest, BandwidthsAreOfTheLinksOwnAndRecoverGivesThatBack) {
  const double halved =
      StepWith(R"({"events": [{"at": "0s", "links": "node1/nic*", "bandwidth": "0.5x"}]})");
  // 0.5x, said twice, is 0.5x; a NIC has 25 GB/s.
  EXPECT_EQ(StepWith(R"({"events": [{"at": "0s", "links": "node1/nic*", "bandwidth": "0.5x"},
                                    {"at": "1us", "links": "node1/nic*", "bandwidth": "0.5x"}]})"),
            halved);
  EXPECT_LT(StepWith(R"({"events": [{"at": "0s", "links": "node1/nic*", "bandwidth": "0.5x"},
                                    {"at": "0s", "links": "node1/nic*", "recover": true}]})"),
            halved);
}

TEST(PerturbationTest, TransfersGoRoundAFailedNicAndAllBytesArrive) {
  const std::string failure =
      Perturbed(R"({"events": [{"at": "1ms", "links": "node1/nic0", "fail": true}]})");
  const Rehearsal steady = PlayUnfolded({});
  const Rehearsal failed = PlayUnfolded({failure});
  EXPECT_GT(failed.timeline.step, steady.timeline.step);
  EXPECT_GT(steady.timeline.step, ToTime(Seconds(1e-3)));
  // NIC 0 carried less, the node's NICs together the same.
  EXPECT_LT(CarriedBy(failed, "node1/nic0->group"), CarriedBy(steady, "node1/nic0->group"));
  const double all =
      CarriedBy(steady, "node1/nic0->group") + CarriedBy(steady, "node1/nic1->group") +
      CarriedBy(steady, "node1/nic2->group") + CarriedBy(steady, "node1/nic3->group");
  double all_failed = 0;
  for (int nic = 0; nic < 4; ++nic) {
    all_failed += CarriedBy(failed, fmt::format("node1/nic{}->group", nic));
  }
  EXPECT_NEAR(all_failed, all, 1e-6 * all);
}

TEST(PerturbationTest, WhereNothingLeadsRoundTransfersWaitForTheLink) {
  const double failed = StepWith(
      R"({"events": [{"at": "1ms", "links": "node1/nic*", "fail": true},
                     {"at": "500ms", "links": "node1/nic*", "recover": true}]})");
  EXPECT_GT(failed, 0.5);
  EXPECT_LT(failed, 0.5 + Play().result.step.value());
}

TEST(PerturbationTest, ALinkThatNeverRecoversIsNamed) {
  EXPECT_THAT(
      ErrorOf({Perturbed(R"({"events": [{"at": "1ms", "links": "node1/nic*", "fail": true}]})")}),
      AllOf(HasSubstr("/simulator/perturbation"), HasSubstr("node1/nic"), HasSubstr("op "),
            HasSubstr("does not recover")));
}

TEST(PerturbationTest, MistakesAreNamed) {
  const auto error = [](const char* json) { return ErrorOf({Perturbed(json)}); };
  EXPECT_THAT(error(R"({"compute_jitter": 0.1})"), HasSubstr("seed"));
  EXPECT_THAT(error(R"({"seed": 1, "compute_jitter": 0.5})"), HasSubstr("/compute_jitter"));
  EXPECT_THAT(error(R"({"jitter": 0.5})"), HasSubstr("unknown key"));
  EXPECT_THAT(error(R"({"stragglers": [{"devices": "node9/gpu0", "compute_time": "2x"}]})"),
              AllOf(HasSubstr("/stragglers/0/devices"), HasSubstr("did you mean")));
  EXPECT_THAT(error(R"({"stragglers": [{"devices": "**", "compute_time": 2}]})"),
              HasSubstr("/compute_time"));
  EXPECT_THAT(error(R"({"events": [{"at": "1ms", "links": "node1/nic*"}]})"),
              HasSubstr("exactly one"));
  EXPECT_THAT(error(R"({"events": [{"at": "1ms", "links": "node1/nic*", "fail": true,
                                    "recover": true}]})"),
              HasSubstr("exactly one"));
  EXPECT_THAT(error(R"({"events": [{"at": "1ms", "links": "node1/nic*", "fail": false}]})"),
              HasSubstr("expected true"));
  EXPECT_THAT(error(R"({"events": [{"at": "1ms", "links": "node1/nic*",
                                    "bandwidth": "-30GBps"}]})"),
              HasSubstr("/bandwidth"));
  EXPECT_THAT(error(R"({"events": [{"at": "1ms", "links": "node1/nic*", "one_way": true,
                                    "fail": true}]})"),
              HasSubstr("/one_way"));
  EXPECT_THAT(error(R"({"events": [{"at": 1, "links": "node1/nic*", "fail": true}]})"),
              HasSubstr("/at"));
}

TEST(PerturbationTest, TheClosedFormKnowsNoSingleLinks) {
  for (const char* json : {R"({"seed": 1, "link_jitter": 0.1})",
                           R"({"events": [{"at": "1ms", "links": "**", "bandwidth": "2x"}]})"}) {
    EXPECT_THAT(ErrorOf({"simulator.fidelity=formula", Perturbed(json)}), HasSubstr("formula"));
  }
  EXPECT_EQ(
      ErrorOf({"simulator.fidelity=formula", Perturbed(R"({"seed": 1, "compute_jitter": 0.1})")}),
      "no error");
}

}  // namespace perturbation_test
}  // namespace rehearse
