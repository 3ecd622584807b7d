#include "scenarios/playing/few_layers.h"

#include <algorithm>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "scenarios/readers/cost_options.h"
#include "scenarios/readers/run_options.h"
#include "sim/schedule/buffer_check.h"
#include "sim/schedule/schedule_check.h"
#include "tests/scenarios/small_scenario.h"
#include "workloads/planner/fewer_layers.h"
#include "workloads/planner/planner.h"

namespace rehearse {
namespace few_layers_test {

using rehearse::testing::ReadSmall;

constexpr const char* kTwelveLayers = "model.layers=12";

std::string FourD(const char* sizes) {
  return fmt::format(R"(strategy={{"kind": "4d", {}, "transpose_alternate_layers": true,
      "overlap_all_reduce": true, "overlap_reduce_scatter": true, "overlap_all_gather": true,
      "cached_layers": 0}})",
                     sizes);
}

// All that is said about a step, without what it took to find out.
nlohmann::json SaidOf(const Result& result) {
  nlohmann::json said = nlohmann::json::parse(ToJson(result).dump());
  said.erase("simulator");
  return said;
}

// Of the small scenario with these changes and 12 layers.
std::optional<Result> OfFew(std::vector<std::string> changes) {
  changes.emplace_back(kTwelveLayers);
  return RehearseFewLayers(ReadSmall(changes));
}

void ExpectTheSame(std::vector<std::string> changes) {
  const std::optional<Result> few = OfFew(changes);
  changes.emplace_back(kTwelveLayers);
  ASSERT_TRUE(few.has_value());
  const Result whole = Rehearse(ReadSmall(changes)).result;
  EXPECT_EQ(SaidOf(*few), SaidOf(whole));
  EXPECT_EQ(few->timeline_hash, whole.timeline_hash);
  EXPECT_LE(few->simulator.events, whole.simulator.events);
  EXPECT_GT(few->simulator.wall, Seconds(0));
  EXPECT_GT(few->simulator.peak_rss, Bytes(1e6));

  // What is repeated is counted, then, and not written out.
  std::optional<Result> counted = RehearseFewLayers(ReadSmall(changes), {.hash = false});
  ASSERT_TRUE(counted.has_value());
  EXPECT_EQ(counted->timeline_hash, "");
  counted->timeline_hash = whole.timeline_hash;
  EXPECT_EQ(SaidOf(*counted), SaidOf(whole));

  // Prepare() leaves out these checks.
  const Scenario scenario = ReadSmall(changes);
  const auto& workload = std::get<Workload>(scenario.jobs.front().work);
  const auto fewer = WithFewerLayers(*workload.network, workload.strategy, 5);
  ASSERT_TRUE(fewer.has_value());
  EXPECT_EQ(fewer->network.left_out.count, 7u);
  const Schedule schedule = PlanStep(fewer->network, workload.training, fewer->strategy);
  EXPECT_NO_THROW(CheckSchedule(schedule));
  EXPECT_NO_THROW(CheckBuffers(schedule));
}

TEST(FewLayersTest, AStepOfManyLayersFollowsFromFew) {
  for (const char* sizes : {R"("column": 2, "row": 2, "depth": 2, "data": 1)",
                            R"("column": 8, "row": 1, "depth": 1, "data": 1)",
                            R"("column": 1, "row": 2, "depth": 4, "data": 1)",
                            R"("column": 2, "row": 1, "depth": 2, "data": 2)",
                            R"("column": 1, "row": 1, "depth": 1, "data": 8)"}) {
    SCOPED_TRACE(sizes);
    ExpectTheSame({FourD(sizes)});
  }
}

TEST(FewLayersTest, WhateverIsRecomputedAndHowManyMicroBatchesThereAre) {
  const std::string grid = FourD(R"("column": 2, "row": 2, "depth": 2, "data": 1)");
  for (const char* change :
       {"training.recomputation=none", "training.recomputation=selective",
        "training.micro_batches=4", "training.optimizer=loop", "training.kernels=eager",
        "simulator={\"fidelity\": \"formula\"}", "simulator={\"fidelity\": \"step\"}",
        "simulator={\"protocol\": \"none\", \"algorithm\": \"ring\"}", "training.precision=fp32"}) {
    SCOPED_TRACE(change);
    ExpectTheSame({grid, change});
  }
}

TEST(FewLayersTest, OtherStrategiesToo) {
  for (const char* strategy :
       {R"({"kind": "data-parallel", "data": 8, "overlap_gradients": false})",
        R"({"kind": "zero-1", "shard": 8, "replicas": 1, "overlap_gradients": false})",
        R"({"kind": "megatron", "tensor": 4, "data": 2, "sequence_parallel": true,
            "overlap_all_reduce": true, "overlap_gradients": false,
            "distributed_optimizer": false})"}) {
    SCOPED_TRACE(strategy);
    ExpectTheSame({std::string("strategy=") + strategy});
  }
}

// One memory for all grids of eight, in this order and in the opposite one, is as good as none.
TEST(FewLayersTest, AMemoryOfGroupsChangesNothing) {
  std::vector<std::vector<std::string>> points;
  for (const char* simulator :
       {"{}", R"({"fidelity": "formula"})", R"({"protocol": "none", "algorithm": "ring"})"}) {
    for (uint32_t column = 1; column <= 8; column *= 2) {
      for (uint32_t row = 1; column * row <= 8; row *= 2) {
        for (uint32_t depth = 1; column * row * depth <= 8; depth *= 2)
          points.push_back({std::string("simulator=") + simulator,
                            FourD(fmt::format(R"("column": {}, "row": {}, "depth": {}, "data": {})",
                                              column, row, depth, 8 / (column * row * depth))
                                      .c_str())});
      }
    }
  }
  const auto scenario_of = [](std::vector<std::string> changes) {
    changes.emplace_back(kTwelveLayers);
    return ReadSmall(changes);
  };
  const Scenario first = scenario_of(points.front());
  for (const char* order : {"forwards", "backwards"}) {
    SCOPED_TRACE(order);
    GroupMemory memory(first.cluster, first.routing, first.lowering.nccl);
    for (const std::vector<std::string>& changes : points) {
      SCOPED_TRACE(changes.front() + changes.back());
      Scenario scenario = scenario_of(changes);
      const std::optional<Result> without = RehearseFewLayers(scenario);
      scenario.cluster = first.cluster;  // equal to its own
      memory.Begin();
      const std::optional<Result> with = RehearseFewLayers(scenario, {.memory = &memory});
      ASSERT_EQ(with.has_value(), without.has_value());
      if (!with) continue;
      EXPECT_EQ(with->timeline_hash, without->timeline_hash);
      EXPECT_EQ(SaidOf(*with), SaidOf(*without));
    }
    std::reverse(points.begin(), points.end());
  }
}

bool IsAt(const Place& place, const char* pointer) { return place.pointer == pointer; }

// All of a scenario goes into the part of it that is played. Each structure is taken apart here, so
// that this does not compile until a field that is added to it is compared, too.
TEST(FewLayersTest, NoFieldOfAScenarioIsDropped) {
  Scenario whole = ReadSmall({kTwelveLayers, "training.batch=16", "strategy.cached_layers=0"});
  whole.description = "a description";
  whole.lists_jobs = true;
  whole.lowering.fidelity = Fidelity::kStep;
  whole.lowering.channels = 3;
  whole.lowering.copy_engines = {"row"};
  whole.routing.seed = 7;
  whole.perturbation_place.pointer = "/simulator/perturbation";
  whole.changes.emplace_back();
  whole.given = std::make_shared<const nlohmann::json>("given");
  whole.files.emplace_back();
  whole.run = std::make_shared<const RunOptions>();
  whole.costs = std::make_shared<const CostOptions>();
  JobRequest& asked = whole.jobs.front();
  asked.collective_pins.emplace_back();
  asked.software.name = "some software";
  asked.start = Seconds(3);
  asked.repeat = 2;
  asked.place.pointer = "/model";
  asked.attention_place.pointer = "/training/attention";
  asked.role_places.emplace_back();
  const auto& workload = std::get<Workload>(asked.work);
  auto fewer = WithFewerLayers(*workload.network, workload.strategy, 5);
  ASSERT_TRUE(fewer.has_value());
  const Scenario few = WithFewer(whole, std::move(*fewer));

  const auto& [name, description, cluster, jobs, lists_jobs, lowering, routing, perturbation_place,
               changes, files, memory, allow_out_of_memory, given, run, costs, arrivals] = few;
  EXPECT_EQ(name, "small");
  EXPECT_EQ(description, "a description");
  EXPECT_EQ(cluster, whole.cluster);
  ASSERT_EQ(jobs.size(), 1u);
  EXPECT_TRUE(lists_jobs);
  EXPECT_EQ(lowering.fidelity, Fidelity::kStep);
  EXPECT_EQ(lowering.channels, 3u);
  EXPECT_EQ(lowering.copy_engines, std::vector<std::string>{"row"});
  EXPECT_TRUE(lowering.note_flows);
  EXPECT_EQ(routing, whole.routing);
  EXPECT_TRUE(IsAt(perturbation_place, "/simulator/perturbation"));
  EXPECT_EQ(changes.size(), whole.changes.size());
  EXPECT_EQ(files.size(), 1u);
  EXPECT_EQ(memory, whole.memory);
  EXPECT_TRUE(allow_out_of_memory);
  EXPECT_EQ(given, whole.given);
  EXPECT_EQ(run, whole.run);
  EXPECT_EQ(costs, whole.costs);
  EXPECT_EQ(arrivals, whole.arrivals);

  const auto& [job_name, work, collective_pins, software, placement, busy, start, repeat,
               nominal_peak, place, attention_place, role_places] = jobs.front();
  EXPECT_EQ(job_name, asked.name);
  EXPECT_EQ(collective_pins.size(), asked.collective_pins.size());
  EXPECT_EQ(software.name, "some software");
  EXPECT_EQ(placement, asked.placement);
  EXPECT_FALSE(busy.has_value());
  EXPECT_EQ(start, Seconds(3));
  EXPECT_EQ(repeat, 2u);
  EXPECT_EQ(nominal_peak, asked.nominal_peak);
  EXPECT_TRUE(IsAt(place, "/model"));
  EXPECT_TRUE(IsAt(attention_place, "/training/attention"));
  EXPECT_EQ(role_places.size(), 1u);

  const auto& [network, training, strategy, pipeline] = std::get<Workload>(work);
  EXPECT_EQ(network->layers, 5);
  EXPECT_EQ(training.batch, 16u);
  EXPECT_EQ(strategy.name, workload.strategy.name);
  EXPECT_EQ(strategy.products.size(), network->matrices.size());
  EXPECT_FALSE(pipeline.has_value());
}

// Layers that are treated differently, or not many enough, are all played.
TEST(FewLayersTest, SaysNothingWhereLayersDiffer) {
  const std::string grid = FourD(R"("column": 2, "row": 2, "depth": 2, "data": 1)");
  EXPECT_TRUE(OfFew({grid}).has_value());
  EXPECT_FALSE(OfFew({grid, "strategy.cached_layers=3"}).has_value());
  EXPECT_FALSE(OfFew({grid, "training.recomputed_layers=[4]"}).has_value());
  EXPECT_FALSE(OfFew({grid, R"(simulator={"perturbation": {"seed": 1, "compute_jitter": 0.05}})"})
                   .has_value());
  EXPECT_FALSE(RehearseFewLayers(ReadSmall({grid, "model.layers=6"})).has_value());
}

// The same words as for the whole step.
TEST(FewLayersTest, SaysThatTheStepDoesNotFit) {
  const auto message_of = [](const auto& play) -> std::string {
    try {
      play();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  const std::vector<std::string> changes = {
      FourD(R"("column": 2, "row": 2, "depth": 2, "data": 1)"), "model.layers=400",
      "model.hidden=8192", "model.heads=64"};
  const std::string of_few = message_of([&] { RehearseFewLayers(ReadSmall(changes)); });
  EXPECT_EQ(of_few, message_of([&] { Rehearse(ReadSmall(changes)); }));
  EXPECT_NE(of_few.find("out of memory: a rank needs"), std::string::npos) << of_few;
  const std::string at_once =
      message_of([&] { RehearseFewLayers(ReadSmall(changes), {.bounds_memory = true}); });
  EXPECT_NE(at_once.find("out of memory: a rank keeps"), std::string::npos) << at_once;
}

}  // namespace few_layers_test
}  // namespace rehearse
