// Models from Hugging Face's config.json: the same sizes and parameters as our presets.
#include "workloads/networks/hf_model.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/error.h"
#include "sim/base/json_document.h"

namespace rehearse {
namespace hf_model_test {

using ::testing::AllOf;
using ::testing::HasSubstr;

HfModel Read(const std::string& text) {
  const JsonDocument document = JsonDocument::FromText(text, "config.json");
  return ReadHfConfig(document.Root());
}

std::string ErrorOf(const std::string& text) {
  try {
    Read(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

const GptModel& Known(const std::string& name) {
  for (const GptModel& model : KnownModels()) {
    if (model.name == name) return model;
  }
  throw Error("no preset " + name);
}

std::string LlamaText(int layers, int hidden, int heads, int groups, int columns, int vocabulary,
                      const std::string& more = "") {
  return R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu",
    "rope_theta": 1e4, "torch_dtype": "bfloat16", "tie_word_embeddings": false,
    "num_hidden_layers": )" +
         std::to_string(layers) + R"(, "hidden_size": )" + std::to_string(hidden) +
         R"(, "num_attention_heads": )" + std::to_string(heads) + R"(, "num_key_value_heads": )" +
         std::to_string(groups) + R"(, "intermediate_size": )" + std::to_string(columns) +
         R"(, "vocab_size": )" + std::to_string(vocabulary) + more + "}";
}

void ExpectAsPreset(const HfModel& model, const std::string& preset) {
  const GptModel& known = Known(preset);
  EXPECT_DOUBLE_EQ(model.model.Parameters(), known.Parameters()) << preset;
  EXPECT_DOUBLE_EQ(model.model.ActiveParameters(), known.ActiveParameters()) << preset;
  // Windows matter where a sequence is longer than they are.
  EXPECT_DOUBLE_EQ(ModelFlops(model.model, 1e6, 65536).value(),
                   ModelFlops(known, 1e6, 65536).value())
      << preset;
}

TEST(HfModelTest, LlamasHaveTheParametersOfOurPresets) {
  const HfModel small = Read(LlamaText(32, 4096, 32, 32, 11008, 32000));
  ExpectAsPreset(small, "llama-2-7b");
  EXPECT_TRUE(small.remarks.empty());
  EXPECT_EQ(small.model.name, "llama-32x4096");
  ExpectAsPreset(Read(LlamaText(32, 4096, 32, 8, 14336, 128256)), "llama-3-8b");
  ExpectAsPreset(Read(LlamaText(80, 8192, 64, 8, 28672, 128256)), "llama-3-70b");
}

TEST(HfModelTest, MistralHasItsWindow) {
  ExpectAsPreset(Read(R"({"model_type": "mistral", "num_hidden_layers": 32, "hidden_size": 4096,
    "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336,
    "vocab_size": 32000, "sliding_window": 4096})"),
                 "mistral-7b");
}

TEST(HfModelTest, MixtralHasItsExperts) {
  const std::string text = R"({"model_type": "mixtral", "num_hidden_layers": 32,
    "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8,
    "intermediate_size": 14336, "vocab_size": 32000, "sliding_window": null,
    "num_local_experts": 8, "num_experts_per_tok": 2, "router_aux_loss_coef": 0.02})";
  const HfModel model = Read(text);
  ExpectAsPreset(model, "mixtral-8x7b");
  EXPECT_DOUBLE_EQ(model.model.experts->auxiliary, 0.02);
}

TEST(HfModelTest, QwensExpertsAndNormsThatOnlyTakeTime) {
  const HfModel model = Read(R"({"model_type": "qwen3_moe", "num_hidden_layers": 48,
    "hidden_size": 2048, "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128,
    "intermediate_size": 6144, "moe_intermediate_size": 768, "num_experts": 128,
    "num_experts_per_tok": 8, "decoder_sparse_step": 1, "mlp_only_layers": [],
    "sliding_window": null, "use_sliding_window": false, "max_window_layers": 48,
    "vocab_size": 151936})");
  ExpectAsPreset(model, "qwen3-30b-a3b");
  EXPECT_THAT(model.remarks, ::testing::ElementsAre("norms of queries and keys only take time"));
}

TEST(HfModelTest, DeepSeekHasLatentAttentionAndALayerThatLooksAhead) {
  const HfModel model = Read(R"({"model_type": "deepseek_v3", "num_hidden_layers": 61,
    "hidden_size": 7168, "num_attention_heads": 128, "num_key_value_heads": 128,
    "intermediate_size": 18432, "moe_intermediate_size": 2048, "n_routed_experts": 256,
    "n_shared_experts": 1, "num_experts_per_tok": 8, "first_k_dense_replace": 3,
    "moe_layer_freq": 1, "n_group": 8, "topk_group": 4, "topk_method": "noaux_tc",
    "scoring_func": "sigmoid", "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_rope_head_dim": 64,
    "qk_nope_head_dim": 128, "v_head_dim": 128, "num_nextn_predict_layers": 1,
    "vocab_size": 129280, "quantization_config": {"fmt": "e4m3"}})");
  ExpectAsPreset(model, "deepseek-v3");
  EXPECT_EQ(model.model.experts->limited_groups, 4u);
  EXPECT_TRUE(model.model.experts->sigmoid);
  ASSERT_EQ(model.remarks.size(), 1u);
  EXPECT_THAT(model.remarks[0], HasSubstr("quantization_config"));
}

TEST(HfModelTest, GptOssHasWindowsInEverySecondLayer) {
  std::string types;
  for (int i = 0; i < 12; ++i) types += R"("sliding_attention", "full_attention",)";
  types.pop_back();
  const std::string head = R"({"model_type": "gpt_oss", "num_hidden_layers": 24,
    "hidden_size": 2880, "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64,
    "intermediate_size": 2880, "num_local_experts": 32, "num_experts_per_tok": 4,
    "attention_bias": true, "sliding_window": 128, "vocab_size": 201088, "layer_types": [)";
  const HfModel model = Read(head + types + "]}");
  ExpectAsPreset(model, "gpt-oss-20b");
  EXPECT_THAT(model.remarks, ::testing::Contains(HasSubstr("attention_bias")));
  EXPECT_THAT(ErrorOf(head + R"("full_attention"]})"), HasSubstr("expected 24"));
  types.replace(0, 19, R"("full_attention")");
  EXPECT_THAT(ErrorOf(head + types + "]}"),
              AllOf(HasSubstr("/layer_types"), HasSubstr("breaks the order")));
}

TEST(HfModelTest, YarnScalesRotaryEmbeddingsUnlessItsFactorIsOne) {
  const auto scales = [](const std::string& scaling) {
    return Read(R"({"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64,
      "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 512, "rope_scaling": )" +
                scaling + "}")
        .model.scaled_rotary;
  };
  EXPECT_TRUE(scales(R"({"rope_type": "yarn", "factor": 4.0})"));
  EXPECT_TRUE(scales(R"({"type": "yarn", "factor": 4.0})"));
  EXPECT_FALSE(scales(R"({"rope_type": "yarn", "factor": 4.0, "attention_factor": 1.0})"));
  EXPECT_FALSE(scales(R"({"rope_type": "yarn", "mscale": 1.0, "mscale_all_dim": 1.0})"));
  EXPECT_FALSE(scales(R"({"rope_type": "llama3", "factor": 8.0})"));
  EXPECT_FALSE(scales("null"));
}

TEST(HfModelTest, GptsAreOfTheirOwnStyle) {
  const HfModel gpt2 = Read(R"({"model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12,
    "n_inner": null, "vocab_size": 50257, "_name_or_path": "openai-community/gpt2"})");
  EXPECT_EQ(gpt2.model.name, "gpt2");
  GptModel same = Known("gpt-125m");
  same.vocabulary = 50257;
  EXPECT_DOUBLE_EQ(gpt2.model.Parameters(), same.Parameters());
  // 44 layers of 12·h², two tables of 50,432 rows: 20.6 billion, as the paper says.
  const HfModel neox = Read(R"({"model_type": "gpt_neox", "num_hidden_layers": 44,
    "hidden_size": 6144, "num_attention_heads": 64, "intermediate_size": 24576,
    "vocab_size": 50432, "hidden_act": "gelu_fast", "tie_word_embeddings": false})");
  EXPECT_NEAR(neox.model.Parameters(), 20.55e9, 0.05e9);
  EXPECT_THAT(neox.remarks, ::testing::ElementsAre(HasSubstr("use_parallel_residual")));
}

TEST(HfModelTest, WhatIsWrittenIsReadAsTheSameModel) {
  const HfModel model = Read(LlamaText(32, 4096, 32, 8, 14336, 128256));
  const JsonDocument again = JsonDocument::FromText(model.keys.dump(), "model.json");
  EXPECT_DOUBLE_EQ(ReadModel(again.Root()).Parameters(), model.model.Parameters());
}

TEST(HfModelTest, KeysThatNobodyKnowsAreListed) {
  const HfModel model =
      Read(LlamaText(2, 64, 4, 4, 128, 100, R"(, "residual_lanes": 4, "a_key": 1, "empty": null)"));
  EXPECT_THAT(model.remarks, ::testing::ElementsAre("not understood: a_key, residual_lanes"));
}

TEST(HfModelTest, WhatCannotBeCarriedIsRefusedByName) {
  EXPECT_THAT(ErrorOf("[]"), HasSubstr("config.json"));
  EXPECT_THAT(ErrorOf("{}"), HasSubstr("model_type"));
  EXPECT_THAT(ErrorOf(R"({"model_type": "bert"})"),
              AllOf(HasSubstr("\"bert\""), HasSubstr("/model_type")));
  EXPECT_THAT(ErrorOf(R"({"model_type": "llama"})"), HasSubstr("num_hidden_layers"));
  EXPECT_THAT(ErrorOf(LlamaText(2, 64, 4, 3, 128, 100)), HasSubstr("3 groups do not divide"));
  EXPECT_THAT(ErrorOf(LlamaText(0, 64, 4, 4, 128, 100)), HasSubstr("/num_hidden_layers"));
  EXPECT_THAT(ErrorOf(R"({"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64,
    "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 10, "hidden_act": "relu"})"),
              AllOf(HasSubstr("/hidden_act"), HasSubstr("\"relu\""), HasSubstr("silu")));
  EXPECT_THAT(ErrorOf(R"({"model_type": "qwen2", "num_hidden_layers": 4, "hidden_size": 64,
    "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 10,
    "use_sliding_window": true, "sliding_window": 8, "max_window_layers": 2})"),
              HasSubstr("/max_window_layers"));
}

}  // namespace hf_model_test
}  // namespace rehearse
