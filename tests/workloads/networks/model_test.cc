#include "workloads/networks/model.h"

#include <cmath>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sim/base/error.h"
#include "sim/base/json_document.h"

namespace rehearse {
namespace model_test {

GptModel Read(const std::string& text) {
  const JsonDocument document = JsonDocument::FromText(text, "model.json");
  return ReadModel(document.Root());
}

TEST(ModelTest, PresetsHaveAboutTheParametersOfTheirNames) {
  // The AxoNN paper's names are rounded: within 8 %.
  const std::pair<const char*, double> named[] = {
      {"gpt-5b", 5e9}, {"gpt-10b", 10e9}, {"gpt-20b", 20e9}, {"gpt-40b", 40e9}, {"gpt-80b", 80e9}};
  for (const auto& [name, parameters] : named) {
    const GptModel model = Read(fmt::format(R"({{"preset": "{}"}})", name));
    EXPECT_NEAR(model.Parameters() / parameters, 1, 0.08) << name;
  }
}

// What experts drop is not computed: as with half as many experts a token. A capacity that nobody
// fills adds nothing.
TEST(ModelTest, DroppedTokensAreNoArithmetic) {
  const auto flops = [](const std::string& experts) {
    return ModelFlops(Read(R"({"preset": "mixtral-8x7b", "experts": )" + experts + "}"), 4096, 4096)
        .value();
  };
  EXPECT_DOUBLE_EQ(flops(R"({"capacity": 0.5})"), flops(R"({"per_token": 1})"));
  EXPECT_DOUBLE_EQ(flops(R"({"capacity": 1.5})"), flops("{}"));
  EXPECT_DOUBLE_EQ(
      Read(R"({"preset": "mixtral-8x7b", "experts": {"capacity": 0.5}})").ActiveParameters(),
      Read(R"({"preset": "mixtral-8x7b"})").ActiveParameters());
}

TEST(ModelTest, FlopsAreThoseOfNarayanansFormula) {
  // 72·B·s·l·h²·(1 + s/6h + V/12lh) of GPT-20B on 4M tokens.
  const GptModel model = Read(R"({"preset": "gpt-20b"})");
  const double tokens = 2048.0 * 2048;
  const auto h = static_cast<double>(model.hidden);
  const auto v = static_cast<double>(model.vocabulary);
  const double l = model.layers;
  EXPECT_NEAR(ModelFlops(model, tokens, 2048).value() /
                  (72 * tokens * l * h * h * (1 + 2048 / (6 * h) + v / (12 * l * h))),
              1, 1e-12);
}

// ATP (arXiv 2301.08658), Table 2: teraFLOP of a layer for 4 sequences of 2,048, in units of 2^40.
TEST(AtpTable2Test, ALayersWorkIsAsPrinted) {
  const std::pair<const char*, double> printed[] = {
      {"atp-m1", 2.625}, {"atp-m2", 9.75}, {"atp-m3", 37.5}, {"atp-m4", 83.25}};
  for (const auto& [name, teraflop] : printed) {
    GptModel model = Read(fmt::format(R"({{"preset": "{}"}})", name));
    const auto flops = [&](uint32_t layers) {
      model.layers = layers;
      return ModelFlops(model, 4 * 2048.0, 2048).value();
    };
    EXPECT_NEAR((flops(2) - flops(1)) / std::pow(2, 40), teraflop, 1e-9) << name;
  }
}

TEST(ModelTest, HeadsMustDivideTheHiddenSize) {
  EXPECT_THROW(Read(R"({"layers": 2, "hidden": 100, "heads": 3, "vocabulary": 10})"), Error);
}

TEST(ModelTest, APresetCanBeChanged) {
  const GptModel model = Read(R"({"preset": "gpt-5b", "layers": 2})");
  EXPECT_EQ(model.layers, 2u);
  EXPECT_EQ(model.hidden, 4096u);
}

TEST(ModelTest, AnUnknownPresetSuggestsTheNearest) {
  try {
    Read(R"({"preset": "gpt-20"})");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("gpt-20b"), std::string::npos) << error.what();
  }
}

}  // namespace model_test
}  // namespace rehearse
