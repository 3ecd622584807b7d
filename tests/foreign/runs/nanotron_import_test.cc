// Configurations like those of nanotron's examples, beside scenarios written by hand.
#include "tools/foreign/runs/nanotron/nanotron_import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/error.h"
#include "tests/foreign/runs/same_run.h"
#include "tools/foreign/machines/infragraph/yaml_text.h"

namespace rehearse {
namespace nanotron_import_test {

using ::testing::HasSubstr;

class NanotronImportTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!HasYaml()) GTEST_SKIP() << "built without yaml-cpp";
  }
};

// Llama 2's 7 billion.
constexpr const char* kSizes = R"(model:
  dtype: bfloat16
  model_config:
    hidden_act: silu
    hidden_size: 4096
    intermediate_size: 11008
    max_position_embeddings: 4096
    num_attention_heads: 32
    num_hidden_layers: 32
    num_key_value_heads: 32
    pad_token_id: null
    tie_word_embeddings: false
    vocab_size: 32000
)";
constexpr const char* kSteps = R"(optimizer:
  accumulate_grad_in_fp32: true
  zero_stage: 1
parallelism:
  dp: 4
  pp: 2
  pp_engine: 1f1b
  tp: 2
  tp_mode: REDUCE_SCATTER
  recompute_layer: true
tokens:
  batch_accumulation_per_replica: 8
  micro_batch_size: 3
  sequence_length: 4096
)";

ImportedScenario Nanotron(const std::string& text, const std::string& cluster = "",
                          const RunSettings& settings = {}) {
  return ImportNanotron(text, "tiny.yaml", cluster, settings);
}

TEST_F(NanotronImportTest, AConfigurationIsARun) {
  const ImportedScenario imported =
      Nanotron(std::string(kSizes) + "    is_llama_config: true\n" + kSteps);
  // 3 sequences x 8 passes x 4 ranks of data.
  EXPECT_EQ(DescribeRun(imported.text), DescribeRun(R"({
    "name": "hand", "cluster": "dgx-h100:nodes=2", "model": {"preset": "llama-2-7b"},
    "training": {"batch": 96, "sequence": 4096, "micro_batches": 8, "recomputation": "full",
                 "gradients": "fp32"},
    "strategy": {"kind": "megatron", "tensor": 2, "data": 4, "distributed_optimizer": true,
                 "sequence_parallel": true, "overlap_all_reduce": false,
                 "overlap_gradients": true},
    "pipeline": {"stages": 2, "schedule": "1f1b"}})"));
  EXPECT_EQ(imported.ranks, 16u);
}

TEST_F(NanotronImportTest, KeysAreChangedAndAnotherMachineHasMoreData) {
  const ImportedScenario imported =
      Nanotron(std::string(kSizes) + "    is_llama_config: true\n" + kSteps, "dgx-h100:nodes=4",
               {{"parallelism.pp", "1"}, {"tokens.sequence_length", "2048"}});
  EXPECT_EQ(DescribeRun(imported.text), DescribeRun(R"({
    "name": "hand", "cluster": "dgx-h100:nodes=4", "model": {"preset": "llama-2-7b"},
    "training": {"batch": 384, "sequence": 2048, "micro_batches": 8, "recomputation": "full",
                 "gradients": "fp32"},
    "strategy": {"kind": "megatron", "tensor": 2, "data": 16, "distributed_optimizer": true,
                 "sequence_parallel": true, "overlap_all_reduce": false,
                 "overlap_gradients": true}})"));
}

TEST_F(NanotronImportTest, ExpertsHaveTheirOwnKeys) {
  const std::string experts =
      "    is_qwen2_config: true\n    moe_config:\n      num_experts: 8\n      top_k: 2\n"
      "      moe_intermediate_size: 1024\n";
  const ImportedScenario imported =
      Nanotron(std::string(kSizes) + experts + kSteps, "",
               {{"parallelism.pp", "1"}, {"parallelism.expert_parallel_size", "4"}});
  EXPECT_EQ(DescribeRun(imported.text), DescribeRun(R"({
    "name": "hand", "cluster": "dgx-h100",
    "model": {"preset": "llama-2-7b", "head_norms": true,
              "experts": {"count": 8, "per_token": 2, "hidden": 1024}},
    "training": {"batch": 96, "sequence": 4096, "micro_batches": 8, "recomputation": "full",
                 "gradients": "fp32"},
    "strategy": {"kind": "combined", "tensor": 2, "shard": 4, "zero": 1, "expert": 4,
                 "sequence_parallel": true, "overlap_all_reduce": false,
                 "overlap_gradients": true}})"));
}

TEST_F(NanotronImportTest, WhatCannotBeIsRefusedByItsKey) {
  const auto mistake = [](const std::string& more, const RunSettings& settings = {}) {
    try {
      Nanotron(std::string(kSizes) + more + kSteps, "", settings);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  EXPECT_THAT(mistake("    is_mamba_config: true\n"), HasSubstr("its layers are not supported"));
  EXPECT_THAT(mistake("    is_llama_config: true\n", {{"parallelism.pp_engine", "zb"}}),
              HasSubstr("parallelism.pp_engine: found \"zb\""));
  EXPECT_THAT(mistake("    is_llama_config: true\n", {{"optimizer.zero_stage", "3"}}),
              HasSubstr("expected 0 or 1"));
  EXPECT_THAT(mistake("    is_llama_config: true\n    moe_config:\n      layers: [0, 2]\n"),
              HasSubstr("experts in some layers only"));
}

}  // namespace nanotron_import_test
}  // namespace rehearse
