// Devices of two sizes in one cluster: each rank must fit its own.
#include "scenarios/playing/memory_fit.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/scenarios/small_scenario.h"
#include "tests/support/places.h"

namespace rehearse {
namespace memory_fit_test {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr double kGib = 1073741824;

std::string DeviceOf(const char* name, const char* memory) {
  return fmt::format(R"({{"name": "{}", "memory": "{}", "memory_bandwidth": "1TBps",
                          "matrix_peak_16": "100TFLOPS"}})",
                     name, memory);
}

// Rank 0 has a large device and needs more, rank 1 a small one.
std::string Scenario(const char* big, const char* small, const char* first, const char* second) {
  const auto role = [](const char* name, const char* bytes) {
    return fmt::format(
        R"({{"name": "{}", "buffers": [{{"name": "state", "kind": "optimizer", "bytes": "{}"}}],
             "ops": [{{"name": "work", "duration": "1ms"}}]}})",
        name, bytes);
  };
  return fmt::format(
      R"({{"name": "two sizes",
           "cluster": {{"name": "two", "vertices": [
               {{"name": "a", "kind": "device", "node": "n", "device": {}}},
               {{"name": "b", "kind": "device", "node": "n", "device": {}}}],
             "links": [{{"between": ["a", "b"], "kind": "nvlink", "bandwidth": "100GBps",
                         "latency": "1us"}}]}},
           "jobs": [{{"name": "job", "placement": [0, 1], "schedule":
             {{"schema": "rehearse.schedule.v1", "ranks": 2, "communicators": [],
               "roles": [{}, {}], "role_of_rank": [["front", 1], ["back", 1]]}}}}]}})",
      DeviceOf("big", big), DeviceOf("small", small), role("front", first), role("back", second));
}

Rehearsal PlayText(const std::string& text) {
  return Rehearse(ReadScenario(JsonDocument::FromText(text, "two.json")));
}

std::string ErrorOfText(const std::string& text) {
  try {
    PlayText(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// 50 of 80 GiB leave 30, 12 of 16 leave 4: the second is printed, and both fit.
TEST(MemoryFitTest, TheRankWithTheLeastRoomIsTold) {
  const Rehearsal played = PlayText(Scenario("80GiB", "16GiB", "50GiB", "12GiB"));
  const Result& result = played.jobs->jobs.front().result;
  EXPECT_EQ(result.memory.Total(), Bytes(12 * kGib));
  EXPECT_EQ(result.memory_capacity, Bytes(16 * kGib));
  EXPECT_EQ(result.memory_rank, 1u);
  EXPECT_THAT(
      ToText(result, false),
      HasSubstr("12 GiB of 16 GiB (75.0 %) on rank 1 (b, small), which has the least room\n"));
  const auto json = ToJson(result);
  EXPECT_EQ(json["memory"]["capacity"], 16 * kGib);
  EXPECT_EQ(json["memory"]["rank"], 1);
}

// 1.06 GB of the driver, 32 MiB of cuBLAS, and NCCL's buffers of "tensor" and "model" (2 ranks in a
// box, 24 channels: 544 MiB) and "data" (8 in two boxes, over 4 NICs with 2 channels each, doubled:
// 16 of 688/24 MiB). Devices that are no GPUs, as those above, have none.
TEST(MemoryFitTest, AGpuHoldsDriverAndLibrariesBesides) {
  JsonDocument document = JsonDocument::FromFile(SourceDir() + "/scenarios/strategy-megatron.json");
  for (const char* change : {"cluster=dgx-h100:nodes=2", "strategy.tensor=2", "strategy.data=8"})
    document.Set(change);
  const Result result = Rehearse(ReadScenario(document)).result;
  constexpr double kMebi = 1024.0 * 1024;
  EXPECT_NEAR(result.memory_reserve.value(), 1.06e9 + (32 + 2 * 544 + 16 * 688 / 24.0) * kMebi, 1);
  EXPECT_THAT(ToText(result, false), HasSubstr("driver, NCCL and cuBLAS\n"));
  EXPECT_EQ(PlayText(Scenario("80GiB", "16GiB", "50GiB", "12GiB"))
                .jobs->jobs.front()
                .result.memory_reserve,
            Bytes(0));
}

// 20 GiB do not fit in 16, though the first rank needs more and has 80.
TEST(MemoryFitTest, ARankThatDoesNotFitItsOwnDeviceIsNamed) {
  EXPECT_THAT(ErrorOfText(Scenario("80GiB", "16GiB", "50GiB", "20GiB")),
              AllOf(HasSubstr("out of memory: rank 1 (b, small) needs 20 GiB"),
                    HasSubstr("the device small has 16 GiB")));
}

TEST(MemoryFitTest, DevicesOfOneSizeTellTheFullestRank) {
  const Rehearsal played = PlayText(Scenario("80GiB", "80GiB", "12GiB", "50GiB"));
  EXPECT_THAT(ToText(played.jobs->jobs.front().result, false),
              HasSubstr("50 GiB of 80 GiB (62.5 %) on the fullest rank\n"));
}

}  // namespace memory_fit_test
}  // namespace rehearse
