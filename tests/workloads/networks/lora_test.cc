#include "workloads/networks/lora.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/error.h"
#include "sim/base/json_document.h"
#include "workloads/networks/decoder_network.h"
#include "workloads/networks/model.h"
#include "workloads/planner/planner.h"

namespace rehearse {
namespace lora_test {

using ::testing::HasSubstr;

GptModel Read(const std::string& text) {
  const JsonDocument document = JsonDocument::FromText(text, "model.json");
  return ReadModel(document.Root());
}
std::string MistakeOf(const std::string& text) {
  try {
    Read(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

Training OneSequence() {
  Training training;
  training.batch = 1;
  training.sequence = 1024;
  return training;
}

// Q, K and V are one product of 3h columns with one A, and so are gate and up.
TEST(LoraTest, ParametersAreThoseOfItsMatrices) {
  const GptModel model = Read(R"({"preset": "llama-2-7b", "lora": {"rank": 16}})");
  const double h = 4096;
  const double f = 11008;
  const double layer = 16 * ((h + 3 * h) + 2 * h + (h + 2 * f) + (f + h));
  EXPECT_EQ(model.AdapterParameters(), 32 * layer);
  const Network network = MakeDecoder(model, OneSequence());
  EXPECT_EQ(network.TrainedParameters(), 32 * layer);
  EXPECT_EQ(network.Parameters(), model.Parameters());
  EXPECT_EQ(model.Parameters() - model.AdapterParameters(),
            Read(R"({"preset": "llama-2-7b"})").Parameters());
}

TEST(LoraTest, OnlyAdaptersHaveGradientsAndState) {
  const GptModel model =
      Read(R"({"preset": "llama-2-7b", "layers": 2, "lora": {"rank": 8, "on": ["qkv"]}})");
  const Training training = OneSequence();
  const Network network = MakeDecoder(model, training);
  const Schedule schedule = PlanSerialStep(network, training, 1);
  uint32_t weight_gradients = 0;
  for (const Op& op : schedule.roles[0].ops) {
    const auto* compute = std::get_if<Compute>(&op.work);
    if (compute != nullptr && compute->kind == ComputeKind::kGemm &&
        compute->gemm.mode == GemmMode::kTN)
      ++weight_gradients;
  }
  EXPECT_EQ(weight_gradients, 2u * 2);
  double state = 0;
  double gradients = 0;
  for (const Buffer& buffer : schedule.roles[0].buffers) {
    if (buffer.kind == BufferKind::kOptimizer) state += buffer.bytes.value();
    if (buffer.kind == BufferKind::kGradient) gradients += buffer.bytes.value();
  }
  EXPECT_EQ(state, 12 * model.AdapterParameters());
  EXPECT_LT(gradients, 4 * model.AdapterParameters() + 4 * 5 * 4096 + 1);  // and the norms' gains
}

// Forward, gradients of values, and of adapters: twice what the model takes forward, and six flops
// for each parameter of an adapter and token.
TEST(LoraTest, FrozenMatricesHaveTwoProducts) {
  const GptModel plain = Read(R"({"preset": "llama-2-7b"})");
  const GptModel adapted = Read(R"({"preset": "llama-2-7b", "lora": {"rank": 16}})");
  const double tokens = 1024;
  const double of_cores =
      ModelFlops(plain, tokens, 1024).value() - ModelFlops(plain, tokens, 0).value();
  EXPECT_NEAR(ModelFlops(adapted, tokens, 1024).value() /
                  (2.0 / 3 * ModelFlops(plain, tokens, 0).value() + of_cores +
                   6 * tokens * adapted.AdapterParameters()),
              1, 1e-12);
}

TEST(LoraTest, MistakesAreNamed) {
  EXPECT_THAT(MistakeOf(R"({"preset": "llama-2-7b", "lora": {}})"), HasSubstr("/lora"));
  EXPECT_THAT(MistakeOf(R"({"preset": "llama-2-7b", "lora": {"rank": 0}})"),
              HasSubstr("/lora/rank"));
  EXPECT_THAT(MistakeOf(R"({"preset": "llama-2-7b", "lora": {"rank": 4, "on": []}})"),
              HasSubstr("/lora/on"));
  EXPECT_THAT(MistakeOf(R"({"preset": "llama-2-7b", "lora": {"rank": 4, "on": ["q_proj"]}})"),
              HasSubstr("q_proj"));
  EXPECT_THAT(MistakeOf(R"({"preset": "deepseek-v3", "lora": {"rank": 4}})"),
              HasSubstr("latent attention"));
}

}  // namespace lora_test
}  // namespace rehearse
