// Settings like those that MaxText publishes, beside scenarios written by hand.
#include "tools/foreign/runs/maxtext/maxtext_import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/error.h"
#include "tests/foreign/runs/same_run.h"
#include "tools/foreign/machines/infragraph/yaml_text.h"

namespace rehearse {
namespace maxtext_import_test {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

class MaxTextImportTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!HasYaml()) GTEST_SKIP() << "built without yaml-cpp";
  }
};

constexpr const char* kModel = R"(# a model of seven billion
base_emb_dim: 4096
base_num_query_heads: 32
base_num_kv_heads: 32
base_mlp_dim: 11008
base_num_decoder_layers: 32
head_dim: 128
mlp_activations: ["silu","linear"]
vocab_size: 32_000
enable_dropout: False
logits_via_embedding: False
decoder_block: "llama2"
)";

TEST_F(MaxTextImportTest, AModelsFileAndWhatIsGivenBesideMakeARun) {
  const ImportedScenario imported = ImportMaxText(kModel, "llama2-7b.yml", "dgx-h100:nodes=2",
                                                  {{"per_device_batch_size", "2"},
                                                   {"max_target_length", "4096"},
                                                   {"ici_tensor_parallelism", "4"},
                                                   {"dcn_data_parallelism", "2"}});
  EXPECT_EQ(DescribeRun(imported.text), DescribeRun(R"({
    "name": "hand", "software": "maxtext", "cluster": "dgx-h100:nodes=2",
    "model": {"preset": "llama-2-7b"},
    "training": {"batch": 32, "sequence": 4096, "recomputation": "full"},
    "strategy": {"kind": "combined", "tensor": 4, "shard": 2, "replicas": 2, "zero": 3,
                 "sequence_parallel": false, "overlap_all_reduce": false}})"));
  EXPECT_EQ(imported.ranks, 16u);
}

TEST_F(MaxTextImportTest, ExpertsShareTheirRanksWithTheWeights) {
  const std::string experts =
      std::string(kModel) + "num_experts: 8\nnum_experts_per_tok: 2\nbase_moe_mlp_dim: 2048\n" +
      "ici_expert_parallelism: 4\nper_device_batch_size: 1\nremat_policy: minimal\n";
  const ImportedScenario imported = ImportMaxText(experts, "moe.yml", "dgx-h100");
  EXPECT_EQ(DescribeRun(imported.text), DescribeRun(R"({
    "name": "hand", "software": "maxtext", "cluster": "dgx-h100",
    "model": {"preset": "llama-2-7b", "experts": {"count": 8, "per_token": 2, "hidden": 2048}},
    "training": {"batch": 8, "sequence": 2048, "recomputation": "selective",
                 "recomputed_ops": ["activations", "norms"]},
    "strategy": {"kind": "combined", "shard": 8, "expert": 4, "zero": 3}})"));
}

TEST_F(MaxTextImportTest, WhatCannotBeIsRefusedByItsKey) {
  const auto mistake = [](const std::string& more, const std::string& cluster = "dgx-h100") {
    try {
      ImportMaxText(kModel + more, "a.yml", cluster);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  EXPECT_THAT(mistake("per_device_batch_size: 0.3\n"), HasSubstr("no whole number"));
  EXPECT_THAT(mistake("", ""), HasSubstr("-1 takes all ranks"));
  EXPECT_THAT(mistake("ici_tensor_parallelism: 3\n"), HasSubstr("does not fit 8 ranks"));
  EXPECT_THAT(mistake("ici_pipeline_parallelism: 2\n"), HasSubstr("ici_pipeline_parallelism"));
  try {
    ImportMaxText("decoder_block: qwen3_next\n", "a.yml", "dgx-h100");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("layers that are not supported"));
  }
}

TEST_F(MaxTextImportTest, ANameOfAModelSaysItsSizes) {
  const auto import = [](const std::string& text) {
    return ImportMaxText(text, "a.yml", "dgx-h100");
  };
  for (const char* name : {"llama2-7b", "llama3.1-70b", "mixtral-8x7b", "mistral-7b", "gpt3-175b",
                           "deepseek3-671b", "qwen3-8b", "llama4-17b-16e"}) {
    const std::string text = import(std::string("model_name: ") + name + "\n").text;
    EXPECT_THAT(text, Not(HasSubstr("7168,"))) << name;
  }
  EXPECT_EQ(DescribeRun(import("model_name: llama2-7b\nmax_target_length: 4096\n").text),
            DescribeRun(R"({
    "name": "hand", "software": "maxtext", "cluster": "dgx-h100",
    "model": {"preset": "llama-2-7b"},
    "training": {"batch": 96, "sequence": 4096, "recomputation": "full"},
    "strategy": {"kind": "combined", "shard": 8, "zero": 3}})"));
  const std::string both = std::string(kModel) + "model_name: llama3-8b\n";
  EXPECT_THAT(import(both).remarks, Contains(HasSubstr("the base_* sizes beside it are played")));
  const ImportedScenario copy = import(
      "base_emb_dim: 2048\nbase_num_query_heads: 16\nbase_num_kv_heads: 16\nbase_mlp_dim: 7168\n"
      "base_num_decoder_layers: 16\nvocab_size: 32_000\nmodel_name: llama2-7b\n");
  EXPECT_THAT(copy.text, HasSubstr("\"preset\": \"llama-2-7b\""));
  EXPECT_THAT(copy.remarks, Not(Contains(HasSubstr("not understood"))));
  const ImportedScenario fewer = import("model_name: llama2-7b\nbase_num_decoder_layers: 4\n");
  EXPECT_THAT(fewer.text,
              AllOf(HasSubstr("\"preset\": \"llama-2-7b\""), HasSubstr("\"layers\": 4")));
  EXPECT_THAT(fewer.remarks, Contains(HasSubstr("base_num_decoder_layers is what is given")));
  EXPECT_THROW(import("model_name: gpt3-6b\n"), Error);
  try {
    import("run_name: a\nmodel_name: unheard-9b\n");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("a.yml:2: model_name: found \"unheard-9b\""),
                                    HasSubstr("expected its sizes, base_emb_dim")));
  }
}

TEST_F(MaxTextImportTest, WhatIsNotUnderstoodIsListed) {
  const auto remarks = [](const std::string& more) {
    return ImportMaxText(kModel + more, "a.yml", "dgx-h100").remarks;
  };
  EXPECT_THAT(remarks("run_name: a\nsteps: 10\nlearning_rate: 1.e-5\ndataset_type: synthetic\n"
                      "weight_dtype: float32\noptimizer_memory_host_offload: False\n"),
              Not(Contains(HasSubstr("not understood"))));
  EXPECT_THAT(
      remarks("per_device_batchsize: 2\nremat_polcy: full\nmu_dtype: bfloat16\n"
              "weight_dtype: bfloat16\noptimizer_memory_host_offload: True\n"),
      Contains(AllOf(HasSubstr("not understood: "), HasSubstr("per_device_batchsize"),
                     HasSubstr("remat_polcy"), HasSubstr("mu_dtype"), HasSubstr("weight_dtype"),
                     HasSubstr("optimizer_memory_host_offload"))));
}

}  // namespace maxtext_import_test
}  // namespace rehearse
