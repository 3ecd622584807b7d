// Runs of axolotl, torchtune, accelerate and DeepSpeed, beside scenarios written by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sim/base/error.h"
#include "tests/foreign/runs/same_run.h"
#include "tools/foreign/machines/infragraph/yaml_text.h"
#include "tools/foreign/runs/accelerate/accelerate_import.h"
#include "tools/foreign/runs/axolotl/axolotl_import.h"
#include "tools/foreign/runs/deepspeed/deepspeed_import.h"
#include "tools/foreign/runs/torchtune/torchtune_import.h"

namespace rehearse {
namespace trainer_imports_test {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

class TrainerImportsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!HasYaml()) GTEST_SKIP() << "built without yaml-cpp";
  }
};

using Importer = ImportedScenario (*)(const RunSource& source);

constexpr const char* kZero3 =
    R"({"zero_optimization": {"stage": 3, "overlap_comm": true, "reduce_bucket_size": "auto",
        "stage3_prefetch_bucket_size": 1000000, "stage3_max_live_parameters": 2000000},
        "bf16": {"enabled": "auto"}, "train_batch_size": "auto"})";

RunSource Source(const std::string& text, const RunSettings& settings = {},
                 const std::string& cluster = "dgx-h100") {
  RunSource source;
  source.text = text;
  source.file = "run.yml";
  source.cluster = cluster;
  source.settings = settings;
  source.beside = [](const std::string& name) {
    return name == "zero3.json" ? std::optional<std::string>(kZero3) : std::nullopt;
  };
  return source;
}

std::string MistakeOf(Importer import, const RunSource& source) {
  try {
    import(source);
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

constexpr const char* kAxolotl = R"(base_model: someone/Meta-Llama-3.1-8B-Instruct
sequence_len: 4_096
sample_packing: true
micro_batch_size: 2
gradient_accumulation_steps: 4
optimizer: adamw_torch_fused
bf16: auto
gradient_checkpointing: true
attn_implementation: flash_attention_2
)";

TEST_F(TrainerImportsTest, AxolotlWithoutSharingIsDataParallel) {
  const std::string text = kAxolotl;
  const ImportedScenario imported = ImportAxolotl(Source(text));
  // 2 sequences x 4 passes x 8 ranks.
  EXPECT_EQ(DescribeRun(imported.text), DescribeRun(R"({
    "name": "hand", "cluster": "dgx-h100", "software": "fsdp-eager",
    "model": {"preset": "llama-3-8b"},
    "training": {"batch": 64, "sequence": 4096, "micro_batches": 4, "recomputation": "full",
                 "gradients": "bf16", "optimizer": "fused", "attention": "flash-2"},
    "strategy": {"kind": "combined", "data": 8, "zero": 0}})"));
  EXPECT_THAT(imported.remarks, Contains(HasSubstr("sample_packing")));
}

TEST_F(TrainerImportsTest, AxolotlReadsTheFileOfDeepSpeedBesideIt) {
  const std::string text = std::string(kAxolotl) + "deepspeed: zero3.json\n";
  // "auto" is the square of the hidden size.
  EXPECT_EQ(DescribeRun(ImportAxolotl(Source(text)).text), DescribeRun(R"({
    "name": "hand", "cluster": "dgx-h100", "software": "deepspeed-zero3",
    "model": {"preset": "llama-3-8b"},
    "training": {"batch": 64, "sequence": 4096, "micro_batches": 4, "recomputation": "full",
                 "optimizer": "fused", "attention": "flash-2"},
    "strategy": {"kind": "combined", "shard": 8, "zero": 3, "reduce_elements": 16777216,
                 "prefetch_elements": 1000000, "most_gathered": 2000000}})"));
  const std::string other = std::string(kAxolotl) + "deepspeed: other.json\n";
  EXPECT_THAT(MistakeOf(ImportAxolotl, Source(other)),
              HasSubstr("run.yml:10: deepspeed: there is no \"other.json\" beside this file"));
}

TEST_F(TrainerImportsTest, AxolotlSaysEveryAxis) {
  const std::string text = std::string(kAxolotl) +
                           "fsdp_version: 2\nfsdp_config:\n  reshard_after_forward: true\n"
                           "dp_shard_size: 4\ndp_replicate_size: 2\ntensor_parallel_size: 2\n"
                           "context_parallel_size: 2\n";
  // 2 sequences x 4 passes x 4 x 2 groups; 32 ranks.
  const ImportedScenario imported = ImportAxolotl(Source(text, {}, ""));
  EXPECT_EQ(imported.ranks, 32u);
  EXPECT_EQ(DescribeRun(imported.text), DescribeRun(R"({
    "name": "hand", "cluster": "dgx-h100:nodes=4", "software": "fsdp-eager",
    "model": {"preset": "llama-3-8b"},
    "training": {"batch": 64, "sequence": 4096, "micro_batches": 4, "recomputation": "full",
                 "optimizer": "fused", "attention": "flash-2"},
    "strategy": {"kind": "combined", "tensor": 2, "context": 2, "shard": 4, "replicas": 2,
                 "zero": 3, "copies": "per-parameter"}})"));
}

TEST_F(TrainerImportsTest, AxolotlListsWhatIsNotUnderstood) {
  const std::string text = std::string(kAxolotl) +
                           "overrides_of_model_config:\n  num_hidden_layers: 2\n"
                           "fsdp_version: 2\nfsdp_config:\n  state_dict_type: FULL_STATE_DICT\n"
                           "  auto_wrap_policy: TRANSFORMER_BASED_WRAP\n  reshard_forward: true\n";
  const ImportedScenario imported = ImportAxolotl(Source(text));
  EXPECT_THAT(imported.remarks, Contains("not understood: fsdp_config.reshard_forward"));
  EXPECT_THAT(imported.remarks, Contains(HasSubstr("overrides_of_model_config.num_hidden_layers")));
}

TEST_F(TrainerImportsTest, OtherTrainingsOfAxolotlAreRefusedByTheirKey) {
  const auto mistake = [](const char* more, const RunSettings& settings = {}) {
    const std::string text = std::string(kAxolotl) + more;
    return MistakeOf(ImportAxolotl, Source(text, settings));
  };
  EXPECT_THAT(mistake("adapter: llama-adapter\n"),
              HasSubstr("run.yml:10: adapter: found \"llama-adapter\""));
  EXPECT_EQ(mistake("adapter: llama-adapter\n", {{"adapter", "null"}}), "none");
  EXPECT_THAT(mistake("adapter: lora\nlora_target_modules:\n  - router\n"),
              HasSubstr("run.yml:10: adapter: found adapters beside router"));
  EXPECT_THAT(mistake("rl: dpo\n"), HasSubstr("training by preferences"));
  EXPECT_THAT(mistake("processor_type: AutoProcessor\n"), HasSubstr("images or sound"));
  EXPECT_THAT(mistake("unfrozen_parameters:\n  - head\n"), HasSubstr("frozen weights"));
  EXPECT_THAT(mistake("", {{"base_model", "someone/Unheard-9B"}}),
              HasSubstr("a model that is not known by name; expected --model-config"));
  const std::string text = kAxolotl;
  EXPECT_THAT(MistakeOf(ImportAxolotl, Source(text, {}, "")), HasSubstr("expected --cluster"));
}

constexpr const char* kTorchtune = R"(tokens: 1024
tokenizer:
  max_seq_len: ${tokens}
model:
  _component_: torchtune.models.qwen2_5.qwen2_5_3b
batch_size: 4
gradient_accumulation_steps: 2
optimizer:
  _component_: torch.optim.AdamW
  fused: True
loss:
  _component_: torchtune.modules.loss.LinearCrossEntropyLoss
enable_activation_checkpointing: True
dtype: bf16
)";

TEST_F(TrainerImportsTest, TorchtuneShardsOverAllRanks) {
  const std::string text = kTorchtune;
  EXPECT_EQ(DescribeRun(ImportTorchtune(Source(text, {{"tensor_parallel_dim", "2"}})).text),
            DescribeRun(R"({
    "name": "hand", "cluster": "dgx-h100", "software": "fsdp-eager",
    "model": {"style": "llama", "layers": 36, "hidden": 2048, "heads": 16, "groups": 2,
              "feed_forward": 11008, "vocabulary": 151936, "tied": true},
    "training": {"batch": 32, "sequence": 1024, "micro_batches": 2, "recomputation": "full",
                 "optimizer": "fused", "moments": "bf16", "cross_entropy": "fused"},
    "strategy": {"kind": "combined", "tensor": 2, "shard": 4, "zero": 3,
                 "copies": "per-parameter"}})"));
}

TEST_F(TrainerImportsTest, TorchtuneForOneDeviceTakesOne) {
  const std::string text = kTorchtune;
  RunSource source = Source(text);
  source.file = "3B_full_single_device.yaml";
  EXPECT_EQ(ImportTorchtune(source).ranks, 1u);
}

TEST_F(TrainerImportsTest, AdaptersStandBesideAFrozenModel) {
  const auto lora_of = [](const ImportedScenario& imported) {
    return nlohmann::json::parse(imported.text)["model"]["lora"].dump();
  };
  const std::string all =
      std::string(kAxolotl) + "adapter: qlora\nlora_r: 32\nlora_target_linear: true\n";
  const ImportedScenario quantised = ImportAxolotl(Source(all));
  EXPECT_EQ(lora_of(quantised), R"({"rank":32})");
  EXPECT_THAT(quantised.remarks, Contains(HasSubstr("quantised there")));
  const std::string some = std::string(kAxolotl) +
                           "adapter: lora\nlora_r: 16\nlora_target_modules:\n  - q_proj\n"
                           "  - v_proj\n  - down_proj\n  - lm_head\n";
  const ImportedScenario others = ImportAxolotl(Source(some));
  EXPECT_EQ(lora_of(others), R"({"on":["qkv","down"],"rank":16})");
  EXPECT_THAT(others.remarks, Contains(HasSubstr("not supported beside lm_head")));
  const std::string recipe = kTorchtune;
  const ImportedScenario tuned = ImportTorchtune(
      Source(recipe, {{"model._component_", "torchtune.models.llama3.lora_llama3_8b"},
                      {"model.apply_lora_to_mlp", "true"},
                      {"model.lora_rank", "64"}}));
  EXPECT_EQ(lora_of(tuned), R"({"on":["up","down"],"rank":64})");
}

TEST_F(TrainerImportsTest, OtherRecipesOfTorchtuneAreRefused) {
  const auto mistake = [](const RunSettings& settings) {
    const std::string text = kTorchtune;
    return MistakeOf(ImportTorchtune, Source(text, settings));
  };
  EXPECT_THAT(mistake({{"model._component_", "torchtune.models.llama3.lora_llama3_8b"}}),
              HasSubstr("expected lora_attn_modules or apply_lora_to_mlp"));
  EXPECT_THAT(mistake({{"model._component_", "torchtune.models.llama3.dora_llama3_8b"}}),
              HasSubstr("DoRA"));
  EXPECT_THAT(mistake({{"loss._component_", "torchtune.rlhf.loss.DPOLoss"}}),
              HasSubstr("preferences"));
  EXPECT_THAT(mistake({{"teacher_model._component_", "llama3_8b"}}), HasSubstr("distillation"));
  EXPECT_THAT(mistake({{"optimizer._component_", "null"}}), HasSubstr("no training of torchtune"));
  EXPECT_THAT(mistake({{"tokenizer.max_seq_len", "null"}}),
              HasSubstr("expected --set tokenizer.max_seq_len=4096"));
}

RunSource WithModel(RunSource source) {
  source.model = FindModelByName("llama-2-7b");
  return source;
}

TEST_F(TrainerImportsTest, AccelerateNeedsModelSequenceAndBatchBeside) {
  const std::string text =
      "distributed_type: FSDP\nmixed_precision: bf16\nnum_processes: 16\n"
      "fsdp_config:\n  fsdp_sharding_strategy: HYBRID_SHARD\n"
      "  fsdp_backward_prefetch: BACKWARD_POST\n  fsdp_activation_checkpointing: true\n";
  const RunSettings settings = {{"sequence", "2048"}, {"micro_batch_size", "3"}};
  // Eight ranks of a machine share, and two machines do the same.
  EXPECT_EQ(DescribeRun(ImportAccelerate(WithModel(Source(text, settings, ""))).text),
            DescribeRun(R"({
    "name": "hand", "cluster": "dgx-h100:nodes=2", "software": "fsdp-eager",
    "model": {"preset": "llama-2-7b"},
    "training": {"batch": 48, "sequence": 2048, "recomputation": "full"},
    "strategy": {"kind": "combined", "shard": 8, "replicas": 2, "zero": 3,
                 "backward_prefetch": "post"}})"));
  EXPECT_THAT(MistakeOf(ImportAccelerate, Source(text, settings, "")),
              HasSubstr("nothing says which model it is"));
  EXPECT_THAT(MistakeOf(ImportAccelerate, WithModel(Source(text, {settings[0]}, ""))),
              HasSubstr("expected --set micro_batch_size=1"));
  EXPECT_THAT(MistakeOf(ImportAccelerate, WithModel(Source(text, {settings[1]}, ""))),
              HasSubstr("expected --set sequence=4096"));
}

TEST_F(TrainerImportsTest, AccelerateStartsDeepSpeed) {
  const std::string text =
      "distributed_type: DEEPSPEED\nmixed_precision: bf16\nnum_processes: 8\n"
      "deepspeed_config:\n  zero_stage: 2\n  gradient_accumulation_steps: 4\n"
      "  offload_optimizer_device: cpu\n";
  const RunSettings settings = {{"sequence", "2048"}, {"micro_batch_size", "1"}};
  EXPECT_EQ(DescribeRun(ImportAccelerate(WithModel(Source(text, settings, ""))).text),
            DescribeRun(R"({
    "name": "hand", "cluster": "dgx-h100", "software": "deepspeed-zero3",
    "model": {"preset": "llama-2-7b"},
    "training": {"batch": 32, "sequence": 2048, "micro_batches": 4, "recomputation": "none",
                 "optimizer_on_host": true},
    "strategy": {"kind": "combined", "shard": 8, "zero": 2, "reduce_elements": 500000000,
                 "overlap_gradients": false, "overlap_reduce_scatter": false}})"));
}

TEST(DeepSpeedImportTest, BatchesSayHowManyRanksThereAre) {
  const std::string text =
      R"({"train_batch_size": 64, "train_micro_batch_size_per_gpu": 2,
          "gradient_accumulation_steps": 2, "bf16": {"enabled": true},
          "activation_checkpointing": {"partition_activations": false},
          "zero_optimization": {"stage": 3, "zero_hpz_partition_size": 8}})";
  EXPECT_EQ(DescribeRun(ImportDeepSpeed(WithModel(Source(text, {{"sequence", "512"}}, ""))).text),
            DescribeRun(R"({
    "name": "hand", "cluster": "dgx-h100:nodes=2", "software": "deepspeed-zero3",
    "model": {"preset": "llama-2-7b"},
    "training": {"batch": 64, "sequence": 512, "micro_batches": 2, "recomputation": "full"},
    "strategy": {"kind": "combined", "shard": 16, "zero": 3, "backward_within": 8}})"));
  EXPECT_THAT(MistakeOf(ImportDeepSpeed, WithModel(Source("{\"a\": 1}"))),
              HasSubstr("no configuration of DeepSpeed"));
}

TEST(DeepSpeedImportTest, OptimizersAreNamed) {
  const auto import = [](const std::string& type) {
    const std::string text =
        R"({"train_micro_batch_size_per_gpu": 2, "bf16": {"enabled": true},
            "optimizer": {"type": ")" +
        type + "\"}}";
    return ImportDeepSpeed(WithModel(Source(text, {{"sequence", "512"}})));
  };
  EXPECT_THAT(import("Lamb").text, HasSubstr("\"update_rule\": \"lamb\""));
  EXPECT_THAT(import("Muon").text, HasSubstr("\"update_rule\": \"muon\""));
  EXPECT_THAT(import("OneBitLamb").remarks, Contains(HasSubstr("OneBitLamb; played as Adam")));
  for (const char* compressed : {"OneBitAdam", "ZeroOneAdam", "OneBitLamb"})
    EXPECT_THAT(import(compressed).remarks, Contains(HasSubstr("not compressed to one")));
  EXPECT_THAT(import("AdamW").remarks, Not(Contains(HasSubstr("compressed"))));
  EXPECT_THAT(import("AdamW").text, Not(HasSubstr("update_rule")));
}

TEST(DeepSpeedImportTest, WhatIsNotUnderstoodIsListed) {
  const auto remarks = [](const std::string& more) {
    const std::string text =
        R"({"train_micro_batch_size_per_gpu": 2, "bf16": {"enabled": true}, )" + more + "}";
    return ImportDeepSpeed(WithModel(Source(text, {{"sequence", "512"}}))).remarks;
  };
  EXPECT_THAT(
      remarks(R"("communication_data_type": "fp16", "data_types": {"grad_accum_dtype": "bf16"},
                 "torch_autocast": {"enabled": true},
                 "zero_optimization": {"stage": 2, "stag": 3, "overlap_com": true,
                                       "reduce_scatter": false,
                                       "offload_optimiser": {"device": "cpu"},
                                       "offload_optimizer": {"device": "cpu", "ratio": 0.3}})"),
      AllOf(Contains(AllOf(
                HasSubstr("not understood: "), HasSubstr("communication_data_type"),
                HasSubstr("data_types.grad_accum_dtype"), HasSubstr("torch_autocast.enabled"),
                HasSubstr("zero_optimization.stag"), HasSubstr("zero_optimization.overlap_com"),
                HasSubstr("offload_optimiser.device"), HasSubstr("offload_optimizer.ratio"))),
            Contains(HasSubstr("reduce_scatter false"))));
  EXPECT_THAT(remarks(R"("steps_per_print": 10, "torch_autocast": {"enabled": false},
                         "gradient_clipping": 1.0, "optimizer": {"params": {"lr": 0.1}},
                         "zero_optimization": {"stage": 2, "allgather_partitions": true,
                           "contiguous_gradients": true, "sub_group_size": 1000000000,
                           "reduce_scatter": true})"),
              Not(Contains(HasSubstr("not understood"))));
}

TEST(DeepSpeedImportTest, MicroBatchesThatDoNotFitAreRefused) {
  const std::string text =
      R"({"train_batch_size": 60, "train_micro_batch_size_per_gpu": 2, "fp16": {"enabled": true}})";
  EXPECT_THAT(MistakeOf(ImportDeepSpeed, WithModel(Source(text, {{"sequence", "512"}}))),
              HasSubstr("60 sequences are not a multiple of train_micro_batch_size_per_gpu 2 x 8"));
}

TEST(ModelNamesTest, SpellingsOfAModelAreOne) {
  const auto keys = [](const char* name) {
    const std::optional<NamedModel> found = FindModelByName(name);
    return found ? found->keys.dump() : std::string("unknown");
  };
  for (const char* name : {"meta-llama/Llama-3.1-8B", "NousResearch/Meta-Llama-3-8B-Instruct",
                           "llama3_1_8b", "Llama31Config8B", "llama3-8b"})
    EXPECT_EQ(keys(name), R"({"preset":"llama-3-8b"})") << name;
  EXPECT_EQ(keys("Qwen/Qwen3-30B-A3B-Instruct-2507"), R"({"preset":"qwen3-30b-a3b"})");
  for (const char* name : {"nvidia/Nemotron-H-56B-Base-8K", "NemotronHConfig56B", "nemotronh_56b"})
    EXPECT_EQ(keys(name), R"({"preset":"nemotron-h-56b"})") << name;
  for (const char* name : {"nvidia/NVIDIA-Nemotron-Nano-9B-v2-Base", "NemotronNano9Bv2"})
    EXPECT_EQ(keys(name), R"({"preset":"nemotron-nano-9b-v2"})") << name;
  EXPECT_EQ(keys("BaseMambaConfig2_7B"), R"({"preset":"mamba2-2.7b"})");
  EXPECT_EQ(keys("Qwen3-8B"), keys("qwen3_8b_instruct"));
  EXPECT_EQ(keys("Qwen/Qwen3-8B-VL"), "unknown");
  EXPECT_EQ(keys("llama"), "unknown");
  EXPECT_EQ(keys(""), "unknown");
}

}  // namespace trainer_imports_test
}  // namespace rehearse
