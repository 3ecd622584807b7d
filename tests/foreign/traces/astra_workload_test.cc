// Workloads of ASTRA-sim 1.0 and SimAI: who communicates with whom, and in which order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/error.h"
#include "sim/base/json_document.h"
#include "sim/base/json_reader.h"
#include "sim/schedule/schedule_json.h"
#include "tools/foreign/traces/astra_sim/workload_text.h"

namespace rehearse {
namespace astra_workload_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Schedule Workload(const std::string& text, uint32_t ranks = 8,
                  const WorkloadSettings& settings = {}) {
  const ImportedWorkload imported = ImportAstraWorkload(text, "gpt.txt", ranks, settings);
  return ReadSchedule(JsonDocument::FromText(imported.text, "out").Root());
}
std::string WorkloadErrorOf(const std::string& text, uint32_t ranks = 8) {
  try {
    Workload(text, ranks);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::vector<std::string> OpNames(const Schedule& schedule) {
  std::vector<std::string> names;
  for (const Op& op : schedule.roles.front().ops) names.push_back(op.name);
  return names;
}

std::vector<uint32_t> AfterOf(const Schedule& schedule, size_t op) {
  std::vector<uint32_t> after;
  for (const OpId id : schedule.roles.front().ops[op].after) after.push_back(id.index());
  return after;
}

const Collective& CollectiveOf(const Schedule& schedule, size_t op) {
  return std::get<Collective>(schedule.roles.front().ops[op].work);
}

constexpr const char* kTwoLayers =
    "2\na -1 10 ALLREDUCE 64 20 ALLREDUCE 64 30 ALLREDUCE 128 0\n"
    "b -1 11 NONE 0 21 NONE 0 31 ALLREDUCE 128 0\n";

TEST(AstraWorkloadTest, TransformersWaitForTensorRanksAndNotForDataRanks) {
  const Schedule schedule =
      Workload(std::string("HYBRID_TRANSFORMER model_parallel_NPU_group: 2\n") + kTwoLayers);
  EXPECT_THAT(OpNames(schedule),
              ElementsAre("a", "all-reduce a", "b", "b inputs", "b weights", "all-reduce b weights",
                          "a inputs", "all-reduce a inputs", "a weights", "all-reduce a weights"));
  EXPECT_THAT(AfterOf(schedule, 2), ElementsAre(1));  // forward of b, for what a communicates
  EXPECT_THAT(AfterOf(schedule, 6), IsEmpty());       // not for b's gradients
  EXPECT_THAT(AfterOf(schedule, 8), ElementsAre(7));  // between a's two products
  EXPECT_THAT(AfterOf(schedule, 9), ElementsAre(8));
  EXPECT_EQ(schedule.ranks(), 8u);
  EXPECT_EQ(CollectiveOf(schedule, 9).bytes.value(), 128);
}

TEST(AstraWorkloadTest, GroupsAreTensorThenExpertsThenStages) {
  const Schedule schedule = Workload(
      "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 2 pp: 2 all_gpus: 16\n1\n"
      "a -1 1 ALLTOALL_EP 64 1 NONE 0 1 REDUCESCATTER_DP_EP 64 0\n");
  ASSERT_EQ(schedule.communicators.size(), 2u);
  // Of 16 ranks, 8 are a stage: 2 tensor x 4 data, of which 2 share experts.
  for (const Communicator& group : schedule.communicators) {
    const bool is_expert = group.name() == "expert";
    EXPECT_EQ(group.size(), 2u) << group.name();
    EXPECT_EQ(group.Rank(0, 1), is_expert ? 2u : 4u);
  }
}

TEST(AstraWorkloadTest, OfModelAndDataTheInnerOnesAreNeighbours) {
  for (const auto& [policy, step] :
       {std::pair("HYBRID_DATA_MODEL", 1u), {"HYBRID_MODEL_DATA", 4u}}) {
    const Schedule schedule =
        Workload(std::string(policy) + "\n" + kTwoLayers, 8, {{"model_parallel_NPU_group", "2"}});
    for (const Communicator& group : schedule.communicators) {
      if (group.name() == "tensor") {
        EXPECT_EQ(group.Rank(0, 1), step) << policy;
      }
    }
    // The first layer's gradients of inputs go nowhere.
    EXPECT_THAT(OpNames(schedule), ::testing::Not(::testing::Contains("all-reduce a inputs")));
  }
}

TEST(AstraWorkloadTest, DataParallelLayersCommunicateBesideTheGradientsOfInputs) {
  const Schedule schedule = Workload(std::string("DATA\n") + kTwoLayers);
  EXPECT_THAT(OpNames(schedule), ElementsAre("a", "b", "b weights", "all-reduce b weights",
                                             "b inputs", "a weights", "all-reduce a weights"));
  EXPECT_THAT(AfterOf(schedule, 4), IsEmpty());
}

TEST(AstraWorkloadTest, ModelParallelLayersWaitBehindTheProductsOfWeights) {
  const Schedule schedule = Workload(
      "MODEL\n2\na -1 10 NONE 0 20 NONE 0 30 NONE 0 0\nb -1 11 NONE 0 21 ALLREDUCE 64 31 NONE 0 0");
  EXPECT_THAT(OpNames(schedule), ElementsAre("a", "b", "b inputs", "all-reduce b inputs",
                                             "b weights", "a inputs", "a weights"));
  EXPECT_THAT(AfterOf(schedule, 4), IsEmpty());
  EXPECT_THAT(AfterOf(schedule, 5), ElementsAre(3));
}

TEST(AstraWorkloadTest, CheckpointsAreComputedAgain) {
  const Schedule schedule = Workload(
      "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 1 checkpoints: 1 0 "
      "checkpoint_initiates: 1 1\n2\na -1 10 NONE 0 20 NONE 0 30 NONE 0 0\n"
      "b -1 11 NONE 0 21 NONE 0 31 NONE 0 0");
  EXPECT_THAT(OpNames(schedule),
              ElementsAre("a", "b", "a", "b inputs", "b weights", "a inputs", "a weights"));
  EXPECT_EQ(schedule.roles.front().ops[2].tag.phase, Phase::kRecompute);
}

TEST(AstraWorkloadTest, WhatArrivedIsUsedBeforeComputeGoesOn) {
  const Schedule schedule = Workload(
      "HYBRID_TRANSFORMER model_parallel_NPU_group: 8\n2\na -1 1 ALLGATHER 64 0 NONE 0 0 NONE 0 7\n"
      "b -1 1 NONE 0 0 NONE 0 0 NONE 0 0\n");
  EXPECT_THAT(OpNames(schedule), ElementsAre("a", "all-gather a", "use a", "b"));
  EXPECT_THAT(AfterOf(schedule, 3), ElementsAre(2));
}

TEST(AstraWorkloadTest, CustomizedLayersSayHowEachIsShared) {
  const Schedule schedule = Workload(
      "HYBRID_CUSTOMIZED\n3\n"
      "a -1 10 ALLGATHER 64 20 REDUCESCATTER 64 30 ALLREDUCE 128 0 HYBRID_DATA_MODEL\n"
      "b -1 11 ALLGATHER 64 21 REDUCESCATTER 64 31 ALLREDUCE 128 0 HYBRID_MODEL_DATA\n"
      "c -1 12 NONE 0 22 NONE 0 32 ALLREDUCE 128 0 DATA\n",
      8, {{"model_parallel_NPU_group", "2"}});
  EXPECT_THAT(
      OpNames(schedule),
      ElementsAre("a", "all-gather a", "b", "all-gather b", "c", "c inputs", "c weights",
                  "all-reduce c weights", "b inputs", "reduce-scatter b inputs", "b weights",
                  "all-reduce b weights", "a inputs", "a weights", "all-reduce a weights"));
  const auto group = [&](size_t op) {
    return schedule.communicators[CollectiveOf(schedule, op).communicator.index()].name();
  };
  EXPECT_EQ(group(1), "near");
  EXPECT_EQ(group(3), "far");
  EXPECT_EQ(group(7), "all");
  EXPECT_EQ(group(9), "far");
  EXPECT_EQ(group(11), "near");
  EXPECT_EQ(group(14), "far");
  EXPECT_THAT(AfterOf(schedule, 10), IsEmpty());       // beside what b's gradients need
  EXPECT_THAT(AfterOf(schedule, 12), ElementsAre(9));  // which is awaited behind it
  for (const Communicator& of : schedule.communicators) {
    EXPECT_EQ(of.size(), of.name() == "near" ? 2u : of.name() == "far" ? 4u : 8u);
    EXPECT_EQ(of.Rank(0, 1), of.name() == "far" ? 2u : 1u);
  }
}

TEST(AstraWorkloadTest, AnEmbeddingsTokensTravelBesideTheBottomLayers) {
  const std::string layers =
      "3\ne -1 5 ALLTOALL 64 6 ALLTOALL 64 7 NONE 0 0\n"
      "m -1 10 NONE 0 20 NONE 0 30 ALLREDUCE 128 0\nt -1 11 NONE 0 21 NONE 0 31 ALLREDUCE 128 0\n";
  for (const char* head : {"HYBRID_DLRM 1\n", "HYBRID_DLRM_ENHANCED DLRM_LAST_BOTTOM_LAYER: 1\n"}) {
    const Schedule schedule = Workload(head + layers);
    EXPECT_THAT(OpNames(schedule),
                ElementsAre("e", "all-to-all e", "m", "t", "t weights", "all-reduce t weights",
                            "t inputs", "all-to-all e inputs", "m weights", "all-reduce m weights",
                            "m inputs", "e weights"));
    EXPECT_THAT(AfterOf(schedule, 2), IsEmpty());
    EXPECT_THAT(AfterOf(schedule, 3), ElementsAre(1));
    EXPECT_THAT(AfterOf(schedule, 7), ElementsAre(6));
    EXPECT_THAT(AfterOf(schedule, 8), IsEmpty());
    EXPECT_EQ(schedule.communicators.size(), 1u);  // all ranks
  }
  EXPECT_THAT(WorkloadErrorOf("HYBRID_DLRM\n" + layers),
              HasSubstr("--set DLRM_LAST_BOTTOM_LAYER=4"));
  EXPECT_THAT(WorkloadErrorOf("HYBRID_DLRM 3\n" + layers),
              HasSubstr("expected a layer from 1 to 2"));
}

TEST(AstraWorkloadTest, WhatIsNoWorkloadIsRefusedAtItsLine) {
  EXPECT_THAT(WorkloadErrorOf("HYBRID_CUSTOMIZED\n1\n"), HasSubstr("model_parallel_NPU_group=8"));
  EXPECT_THAT(WorkloadErrorOf("HYBRID_CUSTOMIZED model_parallel_NPU_group: 2\n1\n"
                              "a -1 1 NONE 0 1 NONE 0 1 NONE 0 0 DATAS\n"),
              HasSubstr("no way of sharing a layer; did you mean \"DATA\"?"));
  EXPECT_THAT(WorkloadErrorOf("DATAS\n1\n"), HasSubstr("did you mean \"DATA\"?"));
  EXPECT_THAT(WorkloadErrorOf("DATA\n1\na -1 1 NONE\n"),
              HasSubstr("gpt.txt:3: found 4 values of layer 1 of 1, expected 12"));
  EXPECT_THAT(WorkloadErrorOf("DATA\n1\n", 0), HasSubstr("--set all_gpus=64"));
  EXPECT_THAT(WorkloadErrorOf("HYBRID_DATA_MODEL\n1\n"), HasSubstr("model_parallel_NPU_group=8"));
  EXPECT_THAT(WorkloadErrorOf("HYBRID_TRANSFORMER model_parallel_NPU_group: 3\n1\n"),
              HasSubstr("8 ranks cannot be shared by 3 tensor"));
}

}  // namespace astra_workload_test
}  // namespace rehearse
