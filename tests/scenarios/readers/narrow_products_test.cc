// Products in 8 and 4 bits, from a scenario to its step.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/playing/rehearsal.h"
#include "scenarios/readers/scenario.h"
#include "sim/base/error.h"
#include "sim/base/json_document.h"
#include "tests/support/places.h"

namespace rehearse {
namespace narrow_products_test {

using ::testing::AllOf;
using ::testing::HasSubstr;

Result Play(const std::vector<std::string>& changes) {
  JsonDocument document = JsonDocument::FromFile(SourceDir() + "/scenarios/strategy-megatron.json");
  document.Set("cluster=dgx-h100:nodes=2");
  for (const std::string& change : changes) document.Set(change);
  return Rehearse(ReadScenario(document)).result;
}

std::string ErrorOf(const std::vector<std::string>& changes) {
  try {
    Play(changes);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::string SwitchOf(const Result& result, const std::string& path) {
  for (const auto& one : result.software.switches) {
    if (one.path == path) return one.value;
  }
  return "not set";
}

TEST(NarrowProductsTest, MakeAStepShorter) {
  const double plain = Play({}).step.value();
  for (const char* recipe : {"fp8", "fp8-current", "fp8-blockwise"}) {
    const double narrow = Play({std::string("training.products=") + recipe}).step.value();
    EXPECT_LT(narrow, plain) << recipe;
    EXPECT_GT(narrow, plain / 2) << recipe;
  }
  // Casting to a scale that must be determined first reads every array once more.
  EXPECT_LT(Play({"training.products=fp8"}).step, Play({"training.products=fp8-current"}).step);
}

TEST(NarrowProductsTest, OrderScalesInKernelsOfTheirOwnIfAsked) {
  const std::string blackwell = "cluster=dgx-b200:nodes=2";
  for (const char* recipe : {"training.products=mxfp8", "training.products=nvfp4"}) {
    EXPECT_GT(Play({blackwell, recipe, "training.scales=apart"}).step,
              Play({blackwell, recipe}).step);
  }
  EXPECT_THAT(ErrorOf({"training.products=fp8", "training.scales=apart"}),
              AllOf(HasSubstr("/training/scales"), HasSubstr("mxfp8 or nvfp4")));
}

TEST(NarrowProductsTest, NeedDevicesWithUnitsForThem) {
  EXPECT_THAT(
      ErrorOf({"cluster=dgx-a100:nodes=2", "training.products=fp8"}),
      AllOf(HasSubstr("/training/products"), HasSubstr("a100-40g"), HasSubstr("\"plain\"")));
  EXPECT_THAT(ErrorOf({"training.products=mxfp8"}),
              AllOf(HasSubstr("h100"), HasSubstr("\"fp8-current\"")));
  EXPECT_THAT(ErrorOf({"training.products=nvfp4"}), HasSubstr("h100"));
  EXPECT_EQ(ErrorOf({"cluster=dgx-b200:nodes=2", "training.products=nvfp4"}), "no error");
  // CDNA 3 has 8 bits without scales for blocks, CDNA 4 has both.
  EXPECT_EQ(ErrorOf({"cluster=mi300x:nodes=2", "training.products=fp8"}), "no error");
  EXPECT_THAT(ErrorOf({"cluster=mi300x:nodes=2", "training.products=mxfp8"}),
              AllOf(HasSubstr("mi300x"), HasSubstr("\"fp8-current\"")));
  EXPECT_EQ(ErrorOf({"cluster=mi355x:nodes=2", "training.products=mxfp8"}), "no error");
}

TEST(NarrowProductsTest, RefuseWhatDoesNotBelongTogether) {
  EXPECT_THAT(ErrorOf({"training.products=fp9"}), HasSubstr("did you mean"));
  EXPECT_THAT(ErrorOf({"training.products=fp8", "training.precision=fp32"}), HasSubstr("plain"));
  EXPECT_THAT(ErrorOf({"training.narrow_parameters=true"}), HasSubstr("narrow_parameters"));
  EXPECT_THAT(ErrorOf({"cluster=dgx-b200:nodes=2", "training.products=nvfp4",
                       "training.narrow_parameters=true"}),
              HasSubstr("fp8-blockwise"));
}

// What mxfp8 gathers lies in the gradients' memory: 2 of 2 + 2 + 2 · 33/32 bytes of a matrix less,
// and no op takes longer or shorter.
TEST(NarrowProductsTest, OfMxfp8LieInTheGradientsMemory) {
  const std::vector<std::string> changes = {"cluster=dgx-b200:nodes=2", "training.products=mxfp8"};
  std::vector<std::string> narrow = changes;
  narrow.emplace_back("training.narrow_parameters=true");
  const Result both = Play(changes);
  const Result one = Play(narrow);
  EXPECT_EQ(both.step, one.step);
  EXPECT_EQ(both.memory.gradients, one.memory.gradients);
  EXPECT_EQ(both.memory.buffers, one.memory.buffers);
  EXPECT_LT(one.memory.parameters, 0.5 * both.memory.parameters);
}

TEST(NarrowProductsTest, WhatIsKeptNarrowIsRecomputedAndCast) {
  EXPECT_THAT(ErrorOf({"training.products=fp8-blockwise", "training.recomputation=none",
                       "training.casts=again"}),
              AllOf(HasSubstr("/training/casts"), HasSubstr("selective recomputation")));
  EXPECT_THAT(ErrorOf({"training.recomputation=selective", "training.narrow_kept=[\"attention\"]"}),
              AllOf(HasSubstr("/training/narrow_kept"), HasSubstr("8 bits")));
  EXPECT_THAT(ErrorOf({"training.narrow_kept=[\"activations\"]"}),
              AllOf(HasSubstr("/training/narrow_kept"), HasSubstr("8 bits")));
}

TEST(NarrowProductsTest, AreSetAsNemosRecipesDo) {
  const Result plain = Play({"software=nemo"});
  EXPECT_EQ(SwitchOf(plain, "training.narrow_parameters"), "not set");
  EXPECT_EQ(SwitchOf(plain, "strategy.bucket_elements"), "40000000");
  const Result delayed = Play({"software=nemo", "training.products=fp8"});
  EXPECT_EQ(SwitchOf(delayed, "training.narrow_parameters"), "true");
  EXPECT_EQ(SwitchOf(delayed, "training.precise_layers"), "not set");
  const Result current = Play({"software=nemo", "training.products=fp8-current"});
  EXPECT_EQ(SwitchOf(current, "training.precise_layers"), "1");
}

}  // namespace narrow_products_test
}  // namespace rehearse
