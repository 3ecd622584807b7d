#include "scenarios/readers/micro_batch_size.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/readers/scenario.h"
#include "sim/base/error.h"

namespace rehearse {
namespace {

using ::testing::HasSubstr;

constexpr const char* kScenario = R"({
  "name": "sizes", "cluster": "dgx-a100", "model": {"preset": "gpt-1.3b"},
  "training": {"batch": 48, "sequence": 2048, "recomputation": "none", "micro_batch_size": 2},
  "strategy": {"kind": "megatron", "tensor": 2, "data": 4, "sequence_parallel": false,
               "overlap_all_reduce": true, "overlap_gradients": false,
               "distributed_optimizer": false}
})";

JsonDocument Changed(const std::vector<std::string>& changes) {
  JsonDocument document = JsonDocument::FromText(kScenario, "sizes.json");
  for (const std::string& change : changes) document.Set(change);
  return document;
}

uint32_t MicroBatches(const std::vector<std::string>& changes = {}) {
  const Scenario scenario = ReadScenario(Changed(changes));
  return std::get<Workload>(scenario.jobs.front().work).training.micro_batches;
}

std::string ErrorOf(const std::vector<std::string>& changes) {
  try {
    ReadScenario(Changed(changes));
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(MicroBatchSizeTest, CountsThemByGroupsOfRows) {
  EXPECT_EQ(MicroBatches(), 6u);
  EXPECT_EQ(MicroBatches({"strategy.tensor=1", "strategy.data=8"}), 3u);
  EXPECT_EQ(MicroBatches({R"(strategy={"kind": "fsdp", "shard": 4, "replicas": 2})",
                          "software=\"torchtitan\""}),
            3u);
  EXPECT_EQ(MicroBatches({R"(strategy={"kind": "combined", "tensor": 2, "shard": 4})",
                          "software=\"nemo\"", "training.micro_batch_size=1"}),
            12u);
}

TEST(MicroBatchSizeTest, MistakesHaveOneMessage) {
  EXPECT_THAT(ErrorOf({"training.micro_batch_size=5"}),
              HasSubstr("/training/micro_batch_size: a batch of 48 cannot be split over 4 groups "
                        "(axes that split rows) in micro-batches of 5 samples; expected 20 to "
                        "divide the batch"));
  EXPECT_THAT(ErrorOf({"training.micro_batches=2"}), HasSubstr("expected one of them"));
  EXPECT_THAT(ErrorOf({"training.micro_batch_size=0"}), HasSubstr("/training/micro_batch_size"));
  EXPECT_THAT(ErrorOf({R"(strategy={"kind": "summa", "q": 2, "depth": 1, "data": 2})"}),
              HasSubstr("expected \"micro_batches\""));
}

}  // namespace
}  // namespace rehearse
