// Models from Hugging Face's config.json: the same sizes and parameters as our presets.
#include "workloads/networks/hf_model.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/error.h"
#include "sim/base/json_document.h"
#include "workloads/networks/parameter_text.h"

namespace rehearse {
namespace hf_model_test {

using ::testing::AllOf;
using ::testing::HasSubstr;

HfModel Read(const std::string& text) {
  const JsonDocument document =
      JsonDocument::FromText(text, "config.json", {.numbers = JsonNumbers::kOfPython});
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
  EXPECT_THAT(neox.remarks, ::testing::IsEmpty());
  EXPECT_EQ(neox.model.parallel, ParallelBlocks::kTwoNorms);
  const HfModel gptj = Read(R"({"model_type": "gptj", "n_layer": 28, "n_embd": 4096, "n_head": 16,
    "vocab_size": 50400, "tie_word_embeddings": false})");
  EXPECT_EQ(gptj.model.parallel, ParallelBlocks::kOneNorm);
  const HfModel falcon = Read(R"({"model_type": "falcon", "num_hidden_layers": 60,
    "hidden_size": 8192, "num_attention_heads": 128, "num_kv_heads": 8, "vocab_size": 65024,
    "new_decoder_architecture": true})");
  EXPECT_EQ(falcon.model.parallel, ParallelBlocks::kTwoNorms);
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

// The sizes that most files have, in this order, and more.
std::string SizesText(const std::string& kind, int layers, int hidden, int heads, int groups,
                      int columns, int vocabulary, const std::string& more = "") {
  return R"({"model_type": ")" + kind + R"(", "num_hidden_layers": )" + std::to_string(layers) +
         R"(, "hidden_size": )" + std::to_string(hidden) + R"(, "num_attention_heads": )" +
         std::to_string(heads) + R"(, "num_key_value_heads": )" + std::to_string(groups) +
         R"(, "intermediate_size": )" + std::to_string(columns) + R"(, "vocab_size": )" +
         std::to_string(vocabulary) + more + "}";
}

struct Card {
  std::string text;
  double billions;
};

TEST(HfModelTest, FamiliesHaveTheParametersOfTheirCards) {
  const std::string latent = R"(, "kv_lora_rank": 512, "q_lora_rank": 1536, "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64, "v_head_dim": 128)";
  const Card cards[] = {
      {SizesText("kimi_k2", 61, 7168, 64, 64, 18432, 163840,
                 latent + R"(, "moe_intermediate_size": 2048, "n_routed_experts": 384,
                 "n_shared_experts": 1, "num_experts_per_tok": 8, "first_k_dense_replace": 1)"),
       1026},
      {SizesText("gemma2", 42, 3584, 16, 8, 14336, 256000,
                 R"(, "head_dim": 256, "hidden_act": "gelu_pytorch_tanh")"),
       9.24},
      {R"({"model_type": "gemma3", "vision_config": {}, "text_config": {"model_type": "gemma3_text",
        "num_hidden_layers": 34, "hidden_size": 2560, "intermediate_size": 10240,
        "sliding_window": 1024}})",
       3.88},
      {SizesText("glm4_moe", 46, 4096, 96, 8, 10944, 151552,
                 R"(, "head_dim": 128, "moe_intermediate_size": 1408, "n_routed_experts": 128,
                 "n_shared_experts": 1, "num_experts_per_tok": 8, "first_k_dense_replace": 1)"),
       106.9},
      {SizesText("minimax_m2", 62, 3072, 48, 8, 1536, 200064,
                 R"(, "head_dim": 128, "num_local_experts": 256, "num_experts_per_tok": 8,
                 "attn_type_list": [1, 1])"),
       228.7},
      {R"({"model_type": "llama4", "text_config": )" +
           SizesText("llama4_text", 48, 5120, 40, 8, 8192, 202048,
                     R"(, "head_dim": 128, "intermediate_size_mlp": 16384, "num_local_experts": 128,
                     "num_experts_per_tok": 1, "interleave_moe_layer_step": 2)") +
           "}",
       400.7},
      {SizesText("phi", 32, 2560, 32, 32, 10240, 51200, R"(, "hidden_act": "gelu_new")"), 2.78},
      {SizesText("phi3", 40, 5120, 40, 10, 17920, 100352, R"(, "sliding_window": null)"), 14.66},
      {SizesText("olmo2", 32, 4096, 32, 32, 11008, 100352), 7.3},
      {SizesText("granite", 40, 4096, 32, 8, 12800, 49155, R"(, "tie_word_embeddings": true)"),
       8.17},
      {SizesText("cohere", 40, 8192, 64, 64, 22528, 256000), 34.98},
      {R"({"model_type": "falcon", "num_hidden_layers": 60, "hidden_size": 8192,
        "num_attention_heads": 128, "vocab_size": 65024, "new_decoder_architecture": true,
        "num_kv_heads": 8, "bias": false})",
       41.3},
      {R"({"model_type": "bloom", "n_layer": 70, "hidden_size": 14336, "n_head": 112,
        "vocab_size": 250880})",
       176.25},
      {R"({"model_type": "opt", "num_hidden_layers": 32, "hidden_size": 4096, "ffn_dim": 16384,
        "num_attention_heads": 32, "vocab_size": 50272, "activation_function": "relu"})",
       6.65},
      {R"({"model_type": "mpt", "d_model": 4096, "n_heads": 32, "n_layers": 32,
        "vocab_size": 50432, "expansion_ratio": 4, "no_bias": true, "attn_config": {}})",
       6.65},
      {SizesText("starcoder2", 40, 6144, 48, 4, 24576, 49152, R"(, "tie_word_embeddings": false)"),
       15.96},
      {SizesText("internlm2", 32, 4096, 32, 8, 14336, 92544), 7.74},
      {SizesText("ernie4_5_moe", 28, 2560, 20, 4, 12288, 103424,
                 R"(, "moe_num_experts": 64, "moe_k": 6, "moe_intermediate_size": 1536,
                 "moe_layer_start_index": 1, "moe_num_shared_experts": 2,
                 "moe_capacity": [64, 64])"),
       21.8},
      {SizesText("hunyuan_v1_moe", 2, 4096, 32, 8, 3072, 128167,
                 R"(, "num_experts": 64, "moe_topk": [8, 8], "moe_intermediate_size": [3072, 3072],
                 "num_shared_expert": [1, 1], "tie_word_embeddings": true)"),
       0.5250 + 2 * 0.0419 + 2 * (65 * 3 * 4096 * 3072e-9)},
      {R"({"model_type": "dbrx", "d_model": 6144, "n_heads": 48, "n_layers": 40,
        "vocab_size": 100352, "attn_config": {"kv_n_heads": 8}, "ffn_config": {
        "ffn_hidden_size": 10752, "moe_num_experts": 16, "moe_top_k": 4}})",
       131.6},
      {R"({"model_type": "chatglm", "num_layers": 28, "hidden_size": 4096,
        "num_attention_heads": 32, "ffn_hidden_size": 13696, "padded_vocab_size": 65024,
        "multi_query_attention": true, "multi_query_group_num": 2, "kv_channels": 128})",
       6.24}};
  for (const Card& card : cards) {
    const GptModel model = Read(card.text).model;
    EXPECT_NEAR(model.Parameters(), card.billions * 1e9, 0.005 * card.billions * 1e9) << card.text;
  }
}

TEST(HfModelTest, MptsAttentionIsAsItsKindSays) {
  const auto groups = [](const std::string& attention) {
    return Read(R"({"model_type": "mpt", "d_model": 64, "n_heads": 4, "n_layers": 2,
                    "vocab_size": 100, "attn_config": {)" +
                attention + "}}")
        .model.Groups();
  };
  EXPECT_EQ(groups(""), 4u);
  EXPECT_EQ(groups(R"("attn_type": "multiquery_attention")"), 1u);
  EXPECT_EQ(groups(R"("attn_type": "grouped_query_attention", "kv_n_heads": 2)"), 2u);
}

// A path is no name, and what a terminal or a file system could take for something else neither.
TEST(HfModelTest, AModelIsCalledAsItsPathEnds) {
  const auto name = [](const std::string& path) {
    return Read(LlamaText(2, 64, 4, 4, 128, 100, R"(, "_name_or_path": ")" + path + "\""))
        .model.name;
  };
  EXPECT_EQ(name("meta-llama/Llama-3/"), "Llama-3");
  for (const char* path : {"my model", "caf\u00e9", "a\\\"b", ".", ""})
    EXPECT_EQ(name(path), "llama-2x64") << path;
}

TEST(HfModelTest, AGraniteHybridWithoutExpertsLeavesNoKeyUnread) {
  EXPECT_TRUE(Read(SizesText("granitemoehybrid", 2, 64, 4, 4, 128, 100,
                             R"(, "num_local_experts": 0, "num_experts_per_tok": 0,
                             "shared_intermediate_size": 128,
                             "layer_types": ["attention", "attention"])"))
                  .remarks.empty());
}

TEST(HfModelTest, WindowsAreAsTheFamilyHasThem) {
  const GptModel gemma =
      Read(SizesText("gemma3_text", 26, 1152, 4, 1, 6912, 262144, R"(, "sliding_window": 512)"))
          .model;
  EXPECT_EQ(gemma.window, 512u);
  EXPECT_EQ(gemma.global_every, 6u);
  EXPECT_EQ(gemma.head_size, 256u);
  const GptModel exaone = Read(SizesText("exaone4", 64, 5120, 40, 8, 27392, 102400,
                                         R"(, "sliding_window": 4096,
                                         "sliding_window_pattern": "LLLG")"))
                              .model;
  EXPECT_EQ(exaone.global_every, 4u);
  EXPECT_EQ(Read(SizesText("mistral", 32, 4096, 32, 8, 14336, 32000)).model.window, 4096u);
  EXPECT_EQ(Read(SizesText("mistral", 32, 4096, 32, 8, 14336, 32000, R"(, "sliding_window": null)"))
                .model.window,
            0u);
}

TEST(HfModelTest, ExpertsAreNeverDropped) {
  const std::string experts = R"(, "num_experts_per_tok": 2, "moe_intermediate_size": 64)";
  EXPECT_THAT(ErrorOf(SizesText("llama", 2, 64, 4, 4, 128, 100, R"(, "num_local_experts": 8)")),
              AllOf(HasSubstr("/num_local_experts"), HasSubstr("must not be dropped")));
  EXPECT_THAT(ErrorOf(SizesText("qwen3_moe", 2, 64, 4, 4, 128, 100, experts)),
              HasSubstr("num_experts"));
  EXPECT_THAT(ErrorOf(SizesText("glm4_moe", 2, 64, 4, 4, 128, 100,
                                experts + R"(, "expert_count_total": 16, "num_experts": 8)")),
              HasSubstr("/expert_count_total"));
  // DeepSeek's experts under another name.
  EXPECT_EQ(Read(SizesText("deepseek", 2, 64, 4, 4, 128, 100,
                           experts + R"(, "num_routed_experts": 16, "num_shared_experts": 1)"))
                .model.experts->count,
            16u);
}

TEST(HfModelTest, StateSpacesAreReadUnderTheirNames) {
  // nvidia/Nemotron-H-8B-Base-8K and AntonV/mamba2-2.7b-hf.
  const std::string numbers = R"(, "chunk_size": 128, "conv_kernel": 4, "expand": 2, "n_groups": 8,
    "mamba_head_dim": 64, "mamba_num_heads": 128, "ssm_state_size": 128, "mlp_hidden_act": "relu2",
    "attention_head_dim": 128, "tie_word_embeddings": false, "use_conv_bias": true,
    "time_step_limit": [0.0, Infinity],
    "hybrid_override_pattern": "M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-")";
  const HfModel hybrid = Read(SizesText("nemotron_h", 52, 4096, 32, 8, 21504, 131072, numbers));
  EXPECT_EQ(hybrid.model.Parameters(), 8100852736);
  EXPECT_FALSE(hybrid.model.rotary);
  const HfModel mamba = Read(
      R"({"model_type": "mamba2", "num_hidden_layers": 64, "hidden_size": 2560, "num_heads": 80,
          "head_dim": 64, "state_size": 128, "n_groups": 1, "conv_kernel": 4, "expand": 2,
          "chunk_size": 256, "vocab_size": 50288, "tie_word_embeddings": true})");
  EXPECT_EQ(mamba.model.Parameters(), 2702599680);
  // nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16: 31.6 billion parameters.
  const HfModel nano = Read(SizesText(
      "nemotron_h", 52, 2688, 32, 2, 1856, 131072,
      R"(, "hybrid_override_pattern": "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME",
         "head_dim": 128, "mamba_num_heads": 64, "mamba_head_dim": 64, "n_groups": 8,
         "ssm_state_size": 128, "n_routed_experts": 128, "num_experts_per_tok": 6,
         "moe_intermediate_size": 1856, "moe_shared_expert_intermediate_size": 3712,
         "n_shared_experts": 1, "tie_word_embeddings": false)"));
  EXPECT_NEAR(nano.model.Parameters(), 31.6e9, 0.1e9);
  EXPECT_NEAR(nano.model.ActiveParameters(), 3.6e9, 0.1e9);
  // nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-BF16: 120 billion, and a layer that predicts ahead.
  const HfModel super = Read(SizesText(
      "nemotron_h", 88, 4096, 32, 2, 2688, 131072,
      R"(, "hybrid_override_pattern": "MEMEMEM*EMEMEMEM*EMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*)"
      R"(EMEMEMEMEM*EMEMEMEM*EMEMEMEME",
         "head_dim": 128, "mamba_num_heads": 128, "mamba_head_dim": 64, "n_groups": 8,
         "ssm_state_size": 128, "n_routed_experts": 512, "num_experts_per_tok": 22,
         "moe_intermediate_size": 2688, "moe_shared_expert_intermediate_size": 5376,
         "moe_latent_size": 1024, "n_shared_experts": 1, "num_nextn_predict_layers": 1,
         "mtp_layers_block_type": ["attention", "moe"], "tie_word_embeddings": false)"));
  EXPECT_EQ(super.model.experts->latent, 1024u);
  EXPECT_EQ(super.model.ahead_pattern, "*E");
  EXPECT_NEAR(super.model.Parameters(), 123.6e9, 0.1e9);
  EXPECT_NEAR(super.model.ActiveParameters(), 13.0e9, 0.1e9);
  EXPECT_THAT(ErrorOf(SizesText("nemotron_h", 2, 64, 4, 4, 128, 100,
                                R"(, "hybrid_override_pattern": "M-*", "mamba_num_heads": 8)")),
              HasSubstr("3 letters, but \"layers\" is 2"));
}

TEST(HfModelTest, LayersThatADecoderCannotHaveAreRefusedByName) {
  for (const char* kind : {"mamba", "bamba", "jamba", "falcon_h1", "zamba2"}) {
    EXPECT_THAT(ErrorOf(SizesText(kind, 2, 64, 4, 4, 128, 100)), HasSubstr("state-space")) << kind;
  }
  EXPECT_THAT(ErrorOf(SizesText("qwen3_next", 2, 64, 4, 4, 128, 100)),
              HasSubstr("linear attention"));
  EXPECT_THAT(ErrorOf(SizesText("llama", 2, 64, 4, 4, 128, 100, R"(, "mamba_d_state": 128)")),
              HasSubstr("/mamba_d_state"));
  EXPECT_THAT(ErrorOf(SizesText("granitemoehybrid", 2, 64, 4, 4, 128, 100,
                                R"(, "layer_types": ["mamba", "attention"])")),
              HasSubstr("state-space"));
  EXPECT_THAT(ErrorOf(SizesText("minimax_m2", 2, 64, 4, 4, 128, 100,
                                R"(, "attn_type_list": [1, 0], "num_local_experts": 4,
                                "num_experts_per_tok": 2)")),
              HasSubstr("lightning"));
}

TEST(HfModelTest, LargeNumbersAreTrillions) {
  EXPECT_EQ(ParameterText(1.026e12), "1.03 trillion");
  EXPECT_EQ(ParameterText(0.9997e12), "1 trillion");
  EXPECT_EQ(ParameterText(70.6e9), "70.6 billion");
  EXPECT_EQ(ParameterText(0.0341e9), "0.0341 billion");
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
