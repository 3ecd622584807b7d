// Patterns of layers as they are read, and what state-space layers come to.
#include "workloads/networks/state_space.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/error.h"
#include "sim/base/json_document.h"
#include "workloads/networks/decoder_network.h"
#include "workloads/networks/model.h"

namespace rehearse {
namespace state_space_test {

using ::testing::HasSubstr;

GptModel Read(const std::string& text) {
  const JsonDocument document = JsonDocument::FromText(text, "model.json");
  return ReadModel(document.Root());
}

std::string ErrorOf(const std::string& text) {
  try {
    Read(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::string Pattern(const std::string& pattern, const std::string& more = "") {
  return R"({"style": "llama", "hidden": 64, "heads": 4, "vocabulary": 100, "layer_pattern": ")" +
         pattern + "\"" + more + "}";
}

TEST(LayerPatternTest, SaysWhatLayersAre) {
  const GptModel model =
      Read(Pattern("M-M*-", R"(, "activation": "squared-relu", "mamba": {"groups": 2})"));
  EXPECT_EQ(model.layers, 5u);
  EXPECT_EQ(model.StateSpaceLayers(), 2u);
  EXPECT_EQ(model.AttentionLayers(), 1u);
  EXPECT_EQ(model.MlpLayers(), 2u);
  Training training;
  training.batch = 1;
  training.sequence = 16;
  const Network network = MakeDecoder(model, training);
  EXPECT_DOUBLE_EQ(network.Parameters(), model.Parameters());
  // 2 heads of 64 in 8 groups would not do: 2·64/64 = 2.
  EXPECT_THAT(ErrorOf(Pattern("M")), HasSubstr("8 groups do not divide 2 state-space heads"));
}

TEST(LayerPatternTest, ParametersOfALayerAreThoseOfMegatronsMixer) {
  // Hidden 64, 16 heads of 8 (inner 128) in 4 groups with states of 10: in_proj 64·(256 + 80 + 16),
  // out_proj 128 × 64, convolution (128 + 80) × (4 + 1), dt bias, A and D 48, norm 128; a norm of
  // 64 before the layer. Embedding, output layer and last norm: 2 × 100 × 64 + 64.
  const GptModel model =
      Read(Pattern("M", R"(, "tied": false, "mamba": {"head": 8, "state": 10, "groups": 4})"));
  EXPECT_DOUBLE_EQ(model.Parameters(), 64 * 352 + 128 * 64 + 208 * 5 + 48 + 128 + 64 + 12864);
}

TEST(LayerPatternTest, FlopsAreMegatronsOfHybrids) {
  // For a token of a sequence of 16: forward 2·64·(4·64) for attention's products and 2·16·64 for
  // half of the core; 2·64·352 + 2·128·64 and 7·128·10 for the state space; 4·64·256 for the MLP;
  // 2·64·100 for the logits. Three times that.
  const GptModel model = Read(Pattern(
      "M-*", R"(, "activation": "squared-relu", "mamba": {"head": 8, "state": 10, "groups": 4})"));
  const double forward = 2 * 64 * 4 * 64 + 2 * 16 * 64 + 2 * 64 * 352 + 2 * 128 * 64 +
                         7 * 128 * 10 + 4 * 64 * 256 + 2 * 64 * 100;
  EXPECT_DOUBLE_EQ(ModelFlops(model, 1, 16).value(), 3 * forward);
}

TEST(LayerPatternTest, ProductsOfChunksAreThoseOfThePaper) {
  // A row in chunks of 4: C·Bᵀ of 4 groups 4·10 each, its product with 128 columns of x 4 each, and
  // twice 10 for each of those with states; two flops each.
  GptModel model =
      Read(Pattern("M", R"(, "mamba": {"head": 8, "state": 10, "groups": 4, "chunk": 4})"));
  Training training;
  training.batch = 1;
  training.sequence = 16;
  const Network network = MakeDecoder(model, training);
  const double products = 2 * (64 * 352 + 128 * 64 + 64 * 100);
  const double scan = 2 * (4 * 40 + 4 * 128 + 2 * 10 * 128);
  EXPECT_DOUBLE_EQ(ForwardFlops(network).value(), 16 * (products + scan));
}

// 64 columns; an attention of 4 heads 4·64², an expert 2·64·8, 4 of them; a router 64·4; a norm for
// each layer, and for each that predicts ahead three more and 2·64² that join.
TEST(LayerPatternTest, LettersAheadCountOnceWhereTheyAreShared) {
  const std::string more =
      R"(, "tied": false, "activation": "squared-relu", "predict_ahead": 2, "ahead_pattern": "*E",
         "experts": {"count": 4, "per_token": 2, "hidden": 8})";
  const GptModel own = Read(Pattern("*E", more));
  const GptModel shared = Read(Pattern("*E", more + R"(, "ahead_weights": "shared")"));
  const double layer = 4 * 64 * 64 + 4 * 2 * 64 * 8 + 64 * 4 + 2 * 64 + 2 * 64 * 64 + 3 * 64;
  EXPECT_DOUBLE_EQ(own.Parameters() - shared.Parameters(), layer);
  // Whichever has the weights, a token passes through three attentions.
  EXPECT_EQ(shared.AttentionLayers(), 3u);
  EXPECT_EQ(ModelFlops(own, 8, 8), ModelFlops(shared, 8, 8));
  // Vectors of 16 columns: there and back 2·64·16, and experts a quarter of theirs.
  const GptModel latent = Read(Pattern("*E", R"(, "activation": "squared-relu",
               "experts": {"count": 4, "per_token": 2, "hidden": 8, "latent": 16})"));
  const GptModel whole = Read(Pattern(
      "*E",
      R"(, "activation": "squared-relu", "experts": {"count": 4, "per_token": 2, "hidden": 8})"));
  EXPECT_DOUBLE_EQ(latent.Parameters() - whole.Parameters(), 2 * 64 * 16 - 3 * 4 * 2 * 16 * 8);
}

TEST(LayerPatternTest, RefusesWhatIsNoPattern) {
  EXPECT_THAT(ErrorOf(Pattern("M-x")), HasSubstr("letter 3 is \"x\", expected M"));
  EXPECT_THAT(ErrorOf(Pattern("M-", R"(, "layers": 3)")),
              HasSubstr("2 letters, but \"layers\" is 3"));
  EXPECT_THAT(ErrorOf(Pattern("-E")), HasSubstr("found an E, expected \"experts\""));
  EXPECT_THAT(ErrorOf(Pattern("-*", R"(, "mamba": {"head": 8})")), HasSubstr("with an M"));
  EXPECT_THAT(ErrorOf(Pattern("M", R"(, "mamba": {"head": 48, "groups": 1})")),
              HasSubstr("heads of 48 columns do not divide 2 times the hidden size 64"));
  EXPECT_THAT(ErrorOf(R"({"hidden": 64, "vocabulary": 9, "layer_pattern": "M-"})"),
              HasSubstr("expected \"style\": \"llama\""));
  EXPECT_THAT(
      ErrorOf(R"({"style": "llama", "hidden": 64, "vocabulary": 9, "layer_pattern": "M*"})"),
      HasSubstr("heads"));
  EXPECT_THAT(ErrorOf(Pattern("-*", R"(, "tied": false, "predict_ahead": 1)")),
              HasSubstr("expected \"ahead_pattern\""));
  EXPECT_THAT(ErrorOf(Pattern("-*", R"(, "ahead_pattern": "*x")")),
              HasSubstr("/ahead_pattern: letter 2 is \"x\""));
  EXPECT_THAT(ErrorOf(R"({"preset": "gpt-20b", "ahead_pattern": "*"})"),
              HasSubstr("expected a \"layer_pattern\""));
  EXPECT_THAT(ErrorOf(R"({"preset": "nemotron-h-8b", "layers": 51})"),
              HasSubstr("52 letters, but \"layers\" is 51"));
}

}  // namespace state_space_test
}  // namespace rehearse
