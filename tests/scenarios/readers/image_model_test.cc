// Scenarios of networks of images: presets of every kind, what they must not say, what cannot be
// split.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/readers/model_reader.h"
#include "tests/scenarios/small_scenario.h"

namespace rehearse {
namespace image_model_test {

using ::testing::AllOf;
using ::testing::HasSubstr;

using testing::ErrorOf;
using testing::ReadSmall;

const std::string kImages = R"(training={"batch": 8, "recomputation": "none"})";

std::string Model(const std::string& json) { return "model=" + json; }

Network NetworkOf(const std::vector<std::string>& overrides) {
  return *std::get<Workload>(ReadSmall(overrides).jobs.front().work).network;
}

TEST(ImageModelTest, APresetsNameTellsItsKind) {
  EXPECT_EQ(NetworkOf({Model(R"({"preset": "vgg-13", "classes": 1024})"), kImages}).samples, 8u);
  EXPECT_EQ(NetworkOf({Model(R"({"preset": "u-net-250m"})"), kImages}).sample_name, "images");
  EXPECT_EQ(NetworkOf({Model(R"({"preset": "autoddl-mlp"})"), kImages}).layers, 4);
  EXPECT_EQ(NetworkOf({Model(R"({"preset": "gpt-125m", "heads": 8})")}).layers, 12);
}

TEST(ImageModelTest, AnUnknownPresetSuggestsOneOfAnyKind) {
  EXPECT_THAT(ErrorOf({Model(R"({"preset": "vgg-12"})"), kImages}),
              AllOf(HasSubstr("/model/preset"), HasSubstr("vgg-1")));
}

TEST(ImageModelTest, PresetsOfAllKindsAreListedOnce) {
  std::vector<std::string> names;
  for (const ModelPreset& preset : ModelPresets()) {
    EXPECT_NE(preset.source, "") << preset.name;
    EXPECT_EQ(std::count(names.begin(), names.end(), preset.name), 0) << preset.name;
    names.push_back(preset.name);
  }
  for (const char* name : {"gpt-20b", "autoddl-mlp", "vgg-13", "u-net-4b"}) {
    EXPECT_THAT(names, ::testing::Contains(name));
  }
}

TEST(BadImageModelTest, AnImageThatCannotBeHalved) {
  EXPECT_THAT(
      ErrorOf({Model(R"({"preset": "vgg-13", "image": 48})"), kImages}),
      AllOf(HasSubstr("/model/image"), HasSubstr("48 pixels on a side"), HasSubstr("5 times")));
}

TEST(BadImageModelTest, ChannelsThatGroupsDoNotDivide) {
  EXPECT_THAT(ErrorOf({Model(R"({"preset": "u-net-250m", "channels": 72})"), kImages}),
              AllOf(HasSubstr("/model"), HasSubstr("groups of 32"), HasSubstr("72 channels")));
}

TEST(BadImageModelTest, SequencesAreForDecoders) {
  EXPECT_THAT(ErrorOf({Model(R"({"preset": "vgg-13"})")}), HasSubstr("unknown key \"sequence\""));
  EXPECT_THAT(ErrorOf({R"(training.convolution="implicit")"}),
              HasSubstr("unknown key \"convolution\""));
}

TEST(BadImageModelTest, ImagesAreNotCut) {
  EXPECT_THAT(ErrorOf({Model(R"({"preset": "vgg-13"})"), kImages, "training.batch=3"}),
              HasSubstr("a batch of 3 images cannot be split over 2 groups"));
}

TEST(BadImageModelTest, ClassesThatCannotBeSplit) {
  EXPECT_THAT(ErrorOf({Model(R"({"preset": "vgg-13", "classes": 1001})"), kImages}),
              AllOf(HasSubstr("1001"), HasSubstr("fc 3"), HasSubstr("2 parts")));
}

}  // namespace image_model_test
}  // namespace rehearse
