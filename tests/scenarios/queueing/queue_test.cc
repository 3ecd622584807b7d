// Jobs as they come, beside queues that a few lines reckon.
#include "scenarios/queueing/queue.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <queue>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "scenarios/playing/rehearsal.h"
#include "scenarios/queueing/job_steps.h"
#include "scenarios/queueing/queue_result.h"
#include "sim/base/error.h"
#include "sim/base/json_document.h"
#include "sim/base/random_bits.h"
#include "tests/support/places.h"

namespace rehearse {
namespace queue_test {

using ::testing::HasSubstr;
using Json = nlohmann::json;

struct Came {
  double submitted;
  uint32_t devices;
  double seconds;
};

// Machines of 4 GPUs on a fabric that has a third of their bandwidth; a leaf has 3 of them.
Json Boxes(int machines) {
  return Json::parse(R"({"name": "boxes",
    "node": {"kind": "nvswitch", "devices": 4, "device": "a100-40g",
      "nvlink": {"bandwidth": "300GBps", "latency": "2us"},
      "pcie": {"bandwidth": "32GBps", "latency": "1us"}, "sockets": 1, "pcie_switches": 4,
      "nics": 4, "cable": {"bandwidth": "25GBps", "latency": "1us"}},
    "fabric": {"kind": "fat-tree", "radix": 16, "oversubscription": 3, "routing": "spray",
      "cable": {"bandwidth": "25GBps", "latency": "1us"}},
    "nodes": )" + std::to_string(machines) +
                     "}");
}

Json SmallWork() {
  return Json::parse(R"({
    "scenario": {"name": "mlp", "model": {"kind": "mlp", "sizes": [4096, 4096, 4096]},
      "training": {"batch": 4, "recomputation": "none"},
      "strategy": {"kind": "data-parallel", "data": 1, "overlap_gradients": true}},
    "per_device": {"strategy.data": 1, "training.batch": 64}})");
}

Scenario QueueOf(const std::vector<Came>& jobs, Json arrivals = Json::object(), int machines = 6,
                 const Json& others = Json::object()) {
  Json trace = {{"schema", "rehearse.job-trace.v1"},
                {"name", "few"},
                {"source", "by hand"},
                {"jobs", Json::array()}};
  for (size_t i = 0; i < jobs.size(); ++i) {
    trace["jobs"].push_back({{"name", "j" + std::to_string(i)},
                             {"submitted_seconds", jobs[i].submitted},
                             {"devices", jobs[i].devices},
                             {"seconds", jobs[i].seconds}});
  }
  const std::filesystem::path path = std::filesystem::temp_directory_path() /
                                     ("rehearse-trace-" + std::to_string(getpid()) + ".json");
  std::ofstream(path) << trace.dump();
  arrivals["trace"] = path.string();
  if (!arrivals.contains("work")) arrivals["work"] = Json::array({SmallWork()});
  Json scenario = {{"name", "q"}, {"cluster", Boxes(machines)}, {"arrivals", arrivals}};
  scenario.update(others);
  Scenario read = ReadQueueScenario(JsonDocument::FromText(scenario.dump(), "q.json"));
  std::filesystem::remove(path);
  return read;
}

// Jobs of one GPU on 24 of them, first come first served: the next begins when the first server is
// free, which a heap of ends knows.
TEST(QueueTest, OneGpuEachAreServersInAHeap) {
  RandomBits random(7);
  std::vector<Came> came;
  double now = 0;
  for (int i = 0; i < 500; ++i) {
    came.push_back({now, 1, 10 + 100 * random.Share()});
    now += 5 * random.Share();
  }
  const Queue queue = PlayQueue(QueueOf(came, {{"order", "fifo"}}));
  std::priority_queue<double, std::vector<double>, std::greater<>> ends;
  for (int i = 0; i < 24; ++i) ends.push(0);
  double waited = 0;
  for (size_t i = 0; i < came.size(); ++i) {
    const double begin = std::max(came[i].submitted, ends.top());
    ends.pop();
    ends.push(begin + came[i].seconds);
    waited += begin - came[i].submitted;
    EXPECT_NEAR(queue.jobs[i].began, begin, 1e-6) << i;
    EXPECT_NEAR(queue.jobs[i].Ran(), came[i].seconds, 1e-6) << i;
  }
  EXPECT_GT(waited, 500);
}

// 24 GPUs: 16 run for 100 s, then 24 are wanted, then 8 for 50 s, then 8 for 200 s.
const std::vector<Came>& Mixed() {
  static const std::vector<Came> mixed = {{0, 16, 100}, {1, 24, 10}, {2, 8, 50}, {3, 8, 200}};
  return mixed;
}

std::vector<double> BeginsIn(const char* order) {
  const Queue queue = PlayQueue(QueueOf(Mixed(), {{"order", order}, {"sharing", "none"}}));
  std::vector<double> begins;
  for (const QueuedJob& job : queue.jobs) begins.push_back(job.began);
  return begins;
}

TEST(QueueTest, WhoMayBeginIsAsItsOrderSays) {
  const double first = PlayQueue(QueueOf({Mixed()[0]})).jobs.front().ended;
  EXPECT_THAT(BeginsIn("fifo"), ::testing::Pointwise(::testing::DoubleNear(0.01),
                                                     {0.0, first, first + 10, first + 10}));
  // The third ends before the first does; the fourth would delay the second.
  EXPECT_THAT(BeginsIn("backfill"),
              ::testing::Pointwise(::testing::DoubleNear(0.01), {0.0, first, 2.0, first + 10}));
  // The fourth takes the third's devices, so the second waits for both.
  EXPECT_THAT(BeginsIn("fit"),
              ::testing::Pointwise(::testing::DoubleNear(0.01), {0.0, 252.0, 2.0, 52.0}));
}

// Two jobs of two machines each, on one leaf's and the next one's: 3 machines a leaf.
TEST(QueueTest, AJobIsSlowerOnlyWhileTheOtherRuns) {
  // j0 has one machine; j1 has 1 to 4 and j2 has 5 to 8, so both cross leaves.
  const std::vector<Came> came = {{0, 4, 1000}, {0, 16, 400}, {0, 16, 100}};
  const Scenario scenario = QueueOf(came, {}, 9);
  const Queue queue = PlayQueue(scenario);
  JobSteps steps(scenario);
  const auto placed = [&](uint32_t first) {
    PlacedJob job;
    for (uint32_t i = 0; i < 16; ++i) job.placement.push_back(first + i);
    job.uplinks = steps.UplinksOf(job.placement);
    return job;
  };
  const PlacedJob one = placed(4);
  const PlacedJob two = placed(20);
  const double alone = steps.Alone(one) / steps.Best(0, 16);
  const double one_beside = steps.BesideOthers({&one, &two});
  const double two_beside = steps.BesideOthers({&two, &one});
  EXPECT_GT(two_beside, 1.01);
  EXPECT_NEAR(queue.jobs[1].by_placement, std::max(1.0, alone), 1e-9);
  const double two_without = 100 * queue.jobs[2].by_placement;
  EXPECT_NEAR(queue.jobs[2].Ran(), two_without * two_beside, 1e-6);
  // As long as the other runs it goes at its pace beside it, then alone.
  const double beside = queue.jobs[2].Ran();
  const double left = 400 * queue.jobs[1].by_placement - beside / one_beside;
  EXPECT_NEAR(queue.jobs[1].Ran(), beside + left, 1e-6);
  EXPECT_EQ(queue.jobs[0].SlowDown(), 1);
  const Queue apart = PlayQueue(QueueOf(came, {{"sharing", "none"}}, 9));
  EXPECT_NEAR(apart.jobs[2].Ran(), two_without, 1e-6);
}

// The same jobs as a scenario with "jobs" that runs them side by side.
TEST(QueueTest, PacesAreThoseOfJobsSideBySide) {
  const Scenario scenario = QueueOf({{0, 4, 1}}, {}, 9);
  JobSteps steps(scenario);
  Json json = {{"name", "pair"}, {"cluster", Boxes(9)}, {"jobs", Json::array()}};
  Json work = SmallWork()["scenario"];
  work["strategy"]["data"] = 16;
  work["training"]["batch"] = 16 * 64;
  for (const char* placement : {"4-19", "20-35"})
    json["jobs"].push_back({{"scenario", work}, {"placement", placement}, {"repeat", 2}});
  const Rehearsal together =
      Rehearse(ReadScenario(JsonDocument::FromText(json.dump(), "pair.json")));
  std::vector<PlacedJob> placed(2);
  for (size_t i = 0; i < 2; ++i) placed[i].placement = together.jobs->jobs[i].placement;
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_NEAR(steps.BesideOthers({&placed[i], &placed[1 - i]}),
                together.jobs->jobs[i].result.step / steps.Alone(placed[i]), 0.01);
  }
}

TEST(QueueTest, WhatJobsHeldIsWhatTheyRan) {
  RandomBits random(3);
  std::vector<Came> came;
  double now = 0;
  for (int i = 0; i < 120; ++i) {
    came.push_back({now, uint32_t{1} << random.Below(5), 20 + 200 * random.Share()});
    now += 40 * random.Share();
  }
  for (const char* order : {"fifo", "backfill", "fit"}) {
    const Queue queue = PlayQueue(QueueOf(came, {{"order", order}}));
    double held = 0;
    double lost = 0;
    for (const QueuedJob& job : queue.jobs) {
      held += job.devices * job.Ran();
      lost += job.devices * (job.Ran() - job.alone);
      EXPECT_GE(job.began, job.submitted);
      EXPECT_GE(job.SlowDown(), 1);
      EXPECT_NEAR(job.Ran(), job.alone * job.SlowDown(), 1e-6 * job.Ran());
    }
    EXPECT_NEAR(queue.held, held, 1e-6 * held);
    EXPECT_NEAR(queue.by_placement + queue.by_sharing, lost, 1e-6 * held);
    // Nobody holds what another holds.
    for (const Queue::Moment& moment : queue.moments) EXPECT_LE(moment.held, queue.devices);
    EXPECT_EQ(queue.moments.back().held, 0u);
  }
}

// Machines of 4: the first that waits needs one of the two wholly, and who begins on the other for
// long must not take it.
TEST(QueueTest, WhatIsReservedIsWholeMachines) {
  const std::vector<Came> came = {
      {0, 3, 100}, {0, 2, 200}, {1, 4, 50}, {2, 1, 10000}, {120, 1, 10000}};
  const Queue queue = PlayQueue(QueueOf(came, {{"order", "backfill"}}, 2));
  EXPECT_NEAR(queue.jobs[2].began, 100, 1e-6);
  EXPECT_NEAR(queue.jobs[3].began, 2, 1e-6);  // beside the second
}

// The second waits for 6 of 8 GPUs on two machines of 4, which must be free wholly: the third may
// not take the two that are left over.
TEST(QueueTest, WhatIsReservedIsWholeMachinesOfAJobThatFillsNone) {
  const std::vector<Came> came = {{0, 4, 100}, {1, 6, 50}, {2, 2, 1000}};
  const Queue queue = PlayQueue(QueueOf(came, {{"order", "backfill"}, {"sharing", "none"}}, 2));
  EXPECT_NEAR(queue.jobs[1].began, 100, 1e-6);
}

// The third and the fourth job have the same kind of place, but for one machine's cables.
TEST(QueueTest, AMachineThatIsSlowIsToldFromOthers) {
  const std::vector<Came> came(4, Came{0, 8, 100});
  const Json slow = {
      {"edits", {{{"links", "node4/nic*"}, {"kind", "network"}, {"bandwidth", "0.1x"}}}}};
  const Queue queue = PlayQueue(QueueOf(came, {{"sharing", "none"}}, 8, slow));
  const Queue equal = PlayQueue(QueueOf(came, {{"sharing", "none"}}, 8));
  EXPECT_GT(queue.jobs[2].by_placement, 1.5 * equal.jobs[2].by_placement);
  EXPECT_NEAR(queue.jobs[3].by_placement, equal.jobs[3].by_placement, 1e-9);
  const Json straggler = {
      {"simulator",
       {{"perturbation",
         {{"stragglers", {{{"devices", "node0/gpu1"}, {"compute_time", "3x"}}}}}}}}};
  EXPECT_GT(PlayQueue(QueueOf(came, {{"sharing", "none"}}, 8, straggler)).jobs[0].by_placement,
            1.5);
}

// What is left of a short job late in a trace is less than what the clock can tell.
TEST(QueueTest, AShortJobLateInATraceEnds) {
  const Queue queue = PlayQueue(QueueOf({{0, 1, 1}, {1e8, 1, 1e-9}}));
  EXPECT_EQ(queue.jobs[1].ended, 1e8);
}

TEST(QueueTest, TwiceTheLoadComesTwiceAsFast) {
  const std::vector<Came> came = {{0, 1, 10}, {50, 1, 10}};
  EXPECT_EQ(PlayQueue(QueueOf(came, {{"load", 2}})).jobs[1].began, 25);
  EXPECT_EQ(PlayQueue(QueueOf(came, {{"first", 1}})).jobs.size(), 1u);
}

TEST(QueueTest, WhatIsLargerThanTheClusterIsLeftOutAndSaid) {
  const Queue queue = PlayQueue(QueueOf({{0, 1, 10}, {1, 64, 10}}));
  EXPECT_EQ(queue.jobs.size(), 1u);
  EXPECT_THAT(queue.notes.front(), HasSubstr("1 job of more than the cluster's 24 devices"));
}

std::string MistakeOf(const std::vector<Came>& jobs, const Json& arrivals) {
  try {
    PlayQueue(QueueOf(jobs, arrivals));
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(QueueTest, MistakesAreOneMessageEach) {
  const std::vector<Came> one = {{0, 3, 10}};
  EXPECT_THAT(MistakeOf({{0, 64, 10}}, {}),
              HasSubstr("/arrivals: no job of the trace has at most"));
  EXPECT_THAT(MistakeOf(one, {{"order", "sjf"}}), HasSubstr("/arrivals/order: found \"sjf\""));
  EXPECT_THAT(MistakeOf(one, {{"load", -1}}), HasSubstr("/arrivals/load: found -1"));
  EXPECT_THAT(MistakeOf(one, {{"work", Json::array()}}), HasSubstr("expected at least one work"));
  Json half = SmallWork();
  half["per_device"]["strategy.data"] = 0.5;
  EXPECT_THAT(MistakeOf(one, {{"work", {half}}}), HasSubstr("no work is one for a job with 3"));
  Json fixed = SmallWork();
  fixed.erase("per_device");
  EXPECT_THAT(MistakeOf(one, {{"work", {fixed}}}), HasSubstr("has 1 ranks, of a job with 3"));
  Json small = SmallWork();
  small["most_devices"] = 2;
  EXPECT_THAT(MistakeOf(one, {{"work", {small}}}), HasSubstr("no work is one for a job with 3"));
  EXPECT_THAT(MistakeOf(one, {{"unit", 8}}), HasSubstr("has at most 4 in a machine"));
  Json lacking = SmallWork();
  lacking["per_device"]["training.bach"] = 1;
  EXPECT_THAT(MistakeOf(one, {{"work", {lacking}}}), HasSubstr("q.json"));
  Json nested = SmallWork();
  nested["scenario"]["arrivals"] = {{"trace", "a.json"}};
  EXPECT_THAT(MistakeOf(one, {{"work", {nested}}}), HasSubstr("a job computes one step"));
  const Json scenario = {
      {"name", "q"}, {"cluster", Boxes(2)}, {"arrivals", {{"trace", "nowhere.json"}}}};
  const JsonDocument document = JsonDocument::FromText(scenario.dump(), "q.json");
  EXPECT_THROW(ReadQueueScenario(document), Error);
  EXPECT_THROW(ReadScenario(document), Error);
}

TEST(QueueTest, ResultsAreToldInThreeForms) {
  const Scenario scenario = QueueOf({{0, 4, 1000}, {0, 16, 400}, {0, 16, 100}}, {}, 9);
  const Queue queue = PlayQueue(scenario);
  const auto json = ToJson(queue, scenario);
  EXPECT_EQ(json["schema"], "rehearse.queue.v1");
  EXPECT_EQ(json["jobs"].size(), 3u);
  EXPECT_NEAR(json["device_hours"]["held"].get<double>(), queue.held / 3600, 1e-9);
  const std::string text = ToText(queue, scenario, false);
  EXPECT_THAT(text, HasSubstr("3 jobs of \"few\" on 36 devices"));
  EXPECT_THAT(text, HasSubstr("Jobs that lost most"));
  EXPECT_THAT(QueueSvg(queue, "few & more"), HasSubstr("few &amp; more: 3 jobs"));
}

}  // namespace queue_test
}  // namespace rehearse
