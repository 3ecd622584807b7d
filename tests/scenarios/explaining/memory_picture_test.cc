// The picture of a step's memory agrees with what the step's result says.
#include "scenarios/explaining/memory_picture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "scenarios/playing/rehearsal.h"
#include "tests/scenarios/small_scenario.h"

namespace rehearse {
namespace memory_picture_test {

using rehearse::testing::ReadSmall;
using ::testing::HasSubstr;

TEST(MemoryPictureTest, ItsPeakIsTheResultsMemory) {
  const Scenario scenario = ReadSmall({});
  const Result result = Rehearse(scenario).result;
  const MemoryPicture picture = PictureMemory(scenario, NoObserver());
  const MemoryUse& peak = picture.moments[picture.peak].use;
  EXPECT_EQ(peak.Total(), result.memory.Total());
  EXPECT_EQ(peak.activations, result.memory.activations);
  EXPECT_EQ(picture.step, result.step);
  for (const MemoryMoment& moment : picture.moments) {
    EXPECT_LE(moment.use.Total(), peak.Total());
    EXPECT_LE(moment.begin, picture.step);
  }
}

TEST(MemoryPictureTest, TheLargestBuffersComeFirst) {
  const MemoryPicture picture = PictureMemory(ReadSmall({}), NoObserver());
  ASSERT_FALSE(picture.largest.empty());
  EXPECT_LE(picture.largest.size(), 10u);
  Bytes sum;
  for (size_t i = 0; i < picture.largest.size(); ++i) {
    if (i > 0) {
      EXPECT_LE(picture.largest[i].bytes, picture.largest[i - 1].bytes);
    }
    sum += picture.largest[i].bytes;
  }
  EXPECT_LE(sum, picture.moments[picture.peak].use.Total());
  EXPECT_FALSE(picture.ops_at_peak.empty());
}

TEST(MemoryPictureTest, ChangesAreSimulatedAndSorted) {
  const MemoryPicture picture = PictureMemory(ReadSmall({}), NoObserver());
  ASSERT_FALSE(picture.changes.empty());
  for (size_t i = 1; i < picture.changes.size(); ++i) {
    if (!picture.changes[i].refused.empty()) continue;
    EXPECT_TRUE(picture.changes[i - 1].refused.empty());
    EXPECT_LE(picture.changes[i - 1].needed, picture.changes[i].needed);
    EXPECT_GT(picture.changes[i].step, Seconds(0));
  }
}

TEST(MemoryPictureTest, TextAndJsonSayTheSame) {
  const MemoryPicture picture = PictureMemory(ReadSmall({}), NoObserver());
  const std::string text = ToText(picture, false);
  for (const char* part : {"Over time", "Peak", "Ops at the peak", "Largest buffers there"})
    EXPECT_THAT(text, HasSubstr(part));
  const nlohmann::ordered_json json = ToJson(picture);
  EXPECT_EQ(json["schema"], "rehearse.memory.v1");
  EXPECT_EQ(json["moments"].size(), picture.moments.size());
  EXPECT_EQ(json["needed_bytes"], picture.fit.Needed().value());
}

}  // namespace memory_picture_test
}  // namespace rehearse
