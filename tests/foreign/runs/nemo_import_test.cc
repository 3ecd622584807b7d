// Recipes in Python like those of Megatron-Bridge and NeMo, beside scenarios written by hand.
#include "tools/foreign/runs/nemo/nemo_import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sim/base/error.h"
#include "tests/foreign/runs/same_run.h"

namespace rehearse {
namespace nemo_import_test {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

// What is in another file: a function under another name, constants, defaults.
constexpr const char* kCommon = R"(
BATCH = 8 * 16
NULL_TOKENS: int = 32000

def _base():
    cfg = Container(train=Train(global_batch_size=BATCH, micro_batch_size=1),
                    mixed_precision="bf16_mixed", peft=None)
    return cfg

def _finish(cfg, impl="te"):
    if hasattr(cfg.model, "unheard_of"):
        cfg.model.context_parallel_size = 64
    cfg.ddp.grad_reduce_in_fp32 = False
)";

RunSource Source(const std::string& text, const RunSettings& settings = {}) {
  RunSource source;
  source.text = text;
  source.file = "recipe.py";
  source.settings = settings;
  source.beside = [](const std::string& name) {
    return name == "house/recipes/common.py" ? std::optional<std::string>(kCommon) : std::nullopt;
  };
  return source;
}

std::string MistakeOf(const std::string& text, const RunSettings& settings = {}) {
  try {
    ImportNemo(Source(text, settings));
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

constexpr const char* kBridge = R"(from house.recipes.common import (
    _base as _start,
    _finish,
)

LENGTH: int = 4096


def _with_batch(cfg, global_batch_size: int):
    cfg.train.global_batch_size = global_batch_size
    return cfg


def big_pretrain_32gpu_h100_bf16_config():
    """A docstring that says cfg.model.tensor_model_parallel_size = 64."""
    cfg = _start()
    cfg.model = AutoBridge.from_hf_pretrained("a/Meta-Llama-3-70B").get_model_config()
    # cfg.model.tensor_model_parallel_size = 64
    cfg.model.tensor_model_parallel_size = 4
    cfg.model.sequence_parallel = True
    cfg.model.pipeline_model_parallel_size = 2
    cfg.model.virtual_pipeline_model_parallel_size = None
    cfg.model.seq_length = LENGTH
    cfg.dataset.seq_length = cfg.model.seq_length
    cfg.model.recompute_granularity = "selective"
    cfg.model.recompute_modules = ["core_attn", "layernorm"]
    cfg.ddp.use_distributed_optimizer = cfg.ddp.overlap_grad_reduce = True
    _finish(cfg)
    cfg.env_vars = {
        **COMMON,
        "NCCL_PXN_DISABLE": 1,
    }
    return cfg


def big_pretrain_16gpu_h100_bf16_config():
    cfg = _with_batch(big_pretrain_32gpu_h100_bf16_config(), 64)
    return cfg


def big_peft_8gpu_h100_bf16_config(scheme="lora"):
    cfg = _start()
    cfg.peft = make_peft(scheme)
    return cfg
)";

TEST(NemoImportTest, ARecipeOfMegatronBridgeIsItsAssignments) {
  const std::string text = kBridge;
  const ImportedScenario imported =
      ImportNemo(Source(text, {{"config", "big_pretrain_32gpu_h100_bf16_config"}}));
  EXPECT_EQ(imported.ranks, 32u);
  EXPECT_EQ(DescribeRun(imported.text), DescribeRun(R"({
    "name": "hand", "cluster": "dgx-h100:nodes=4", "software": "nemo",
    "model": {"preset": "llama-3-70b"},
    "training": {"batch": 128, "sequence": 4096, "micro_batches": 32,
                 "recomputation": "selective",
                 "recomputed_ops": ["core-attention", "norms"]},
    "strategy": {"kind": "megatron", "tensor": 4, "data": 4, "distributed_optimizer": true,
                 "sequence_parallel": true, "overlap_gradients": true,
                 "overlap_parameter_gathers": true},
    "pipeline": {"stages": 2, "schedule": "1f1b"}})"));
  const nlohmann::json scenario = nlohmann::json::parse(imported.text);
  EXPECT_EQ(scenario["training"]["gradients"], "bf16");
  EXPECT_EQ(scenario["simulator"]["pxn"], false);
}

// Its performance scripts' launcher gives Adam in bf16 remainders; experts weigh what SwiGLU makes.
TEST(NemoImportTest, WhatTheLauncherOfFlatRecipesSetsIsSet) {
  const auto training = [](const std::string& more, const std::string& before) {
    const std::string text = before + kBridge +
                             "\n\ndef other_8gpu_h100_bf16_config():\n    cfg = _start()\n"
                             "    cfg.model.seq_length = 4096\n" +
                             more + "    return cfg\n";
    return nlohmann::json::parse(
        ImportNemo(Source(text, {{"config", "other_8gpu_h100_bf16_config"}})).text)["training"];
  };
  const std::string llama =
      "    cfg.model = AutoBridge.from_hf_pretrained(\"a/Meta-Llama-3-8B\")\n";
  const std::string mixtral =
      "    cfg.model = AutoBridge.from_hf_pretrained(\"a/Mixtral-8x7B-v0.1\")\n";
  const std::string flat = "from megatron.bridge.perf_recipes.llama.common import _finish as x\n";
  EXPECT_EQ(training(llama, flat)["masters"], "remainders");
  EXPECT_FALSE(training(llama, "").contains("masters"));
  EXPECT_FALSE(
      training(llama + "    cfg.ddp.use_megatron_fsdp = True\n", flat).contains("masters"));
  EXPECT_FALSE(training(llama, flat).contains("router_weights"));
  EXPECT_EQ(training(mixtral, flat)["router_weights"], "activation");
}

TEST(NemoImportTest, ARecipeThatBeginsWithAnotherChangesIt) {
  const std::string text = kBridge;
  const nlohmann::json scenario = nlohmann::json::parse(
      ImportNemo(Source(text, {{"config", "big_pretrain_16gpu_h100_bf16_config"},
                               {"micro_batch_size", "2"}}))
          .text);
  EXPECT_EQ(scenario["cluster"], "dgx-h100:nodes=2");
  EXPECT_EQ(scenario["training"]["batch"], 64);
  EXPECT_EQ(scenario["training"]["micro_batches"], 16);  // 64 over 2 x 2 ranks
}

constexpr const char* kNemo = R"(import nemo_run as run

NAME = "tiny"


def model():
    return run.Config(LlamaModel, config=run.Config(Llama2Config7B))


def trainer(
    tensor_parallelism: int = 2,
    pipeline_parallelism: int = 1,
    num_nodes: int = 1,
):
    strategy = run.Config(
        nl.MegatronStrategy,
        tensor_model_parallel_size=tensor_parallelism,
        pipeline_model_parallel_size=pipeline_parallelism,
        sequence_parallel=tensor_parallelism > 1,
        ddp=run.Config(Ddp, overlap_grad_reduce=True),
    )
    return run.Config(nl.Trainer, devices=8, num_nodes=num_nodes, strategy=strategy)


def pretrain_recipe(name=NAME, num_nodes: int = 2, performance_mode: bool = False):
    recipe = run.Partial(
        pretrain,
        model=model(),
        trainer=trainer(num_nodes=num_nodes),
        data=run.Config(Mock, seq_length=2048, global_batch_size=64, micro_batch_size=2),
        optim=distributed_fused_adam_with_cosine_annealing(max_lr=3e-4),
    )
    if performance_mode:
        recipe = faster(recipe)
    for callback in callbacks:
        recipe.trainer.strategy.context_parallel_size = 2
    return recipe


def faster(recipe):
    recipe.trainer.strategy.tensor_model_parallel_size = 4
    return recipe
)";

TEST(NemoImportTest, ARecipeOfNemoPassesKeywordsOn) {
  const std::string text = kNemo;
  const ImportedScenario imported = ImportNemo(Source(text));
  const nlohmann::json scenario = nlohmann::json::parse(imported.text);
  EXPECT_EQ(imported.ranks, 16u);
  EXPECT_EQ(scenario["model"]["preset"], "llama-2-7b");
  EXPECT_EQ(scenario["strategy"]["tensor"], 2);
  EXPECT_EQ(scenario["strategy"]["data"], 8);
  EXPECT_EQ(scenario["strategy"]["distributed_optimizer"], true);
  EXPECT_EQ(scenario["training"]["batch"], 64);
  EXPECT_THAT(imported.remarks, Contains(HasSubstr("line 35: context_parallel_size is under")));
  const nlohmann::json fast = nlohmann::json::parse(
      ImportNemo(Source(text, {{"performance_mode", "True"}, {"num_nodes", "4"}})).text);
  EXPECT_EQ(fast["strategy"]["tensor"], 4);
  EXPECT_EQ(fast["strategy"]["data"], 8);
}

TEST(NemoImportTest, WhatIsNotUnderstoodIsListed) {
  const std::string text = kNemo;
  const auto remarks = [&](const RunSettings& settings) {
    return ImportNemo(Source(text, settings)).remarks;
  };
  EXPECT_THAT(remarks({{"num_nodes", "4"}}), Not(Contains(HasSubstr("not understood"))));
  EXPECT_THAT(remarks({{"tensor_model_paralel_size", "4"}}),
              Contains("not understood: tensor_model_paralel_size"));
  std::string other = kNemo;
  const std::string ddp = "overlap_grad_reduce=True)";
  other.replace(other.find(ddp), ddp.size(), "overlap_grad_reduce=True), fsdp=\"megatron\"");
  EXPECT_THAT(ImportNemo(Source(other)).remarks, Contains("not understood: fsdp"));
}

TEST(NemoImportTest, SizesGivenCountInPlaceOfTheModels) {
  const std::string text = kNemo;
  const nlohmann::json model = nlohmann::json::parse(
      ImportNemo(Source(text, {{"ffn_hidden_size", "8192"}, {"num_layers", "4"}})).text)["model"];
  EXPECT_EQ(model["preset"], "llama-2-7b");
  EXPECT_EQ(model["feed_forward"], 8192);
  EXPECT_EQ(model["layers"], 4);
  EXPECT_THAT(ImportNemo(Source(text, {{"num_moe_experts", "4"}})).remarks,
              Contains(HasSubstr("--num-experts 4")));
}

TEST(NemoImportTest, WhatAFunctionOfAMissingModuleIsGivenIsSaidToBeLost) {
  const std::string text =
      "from house.recipes.other import trainer\n\ndef small_pretrain_8gpu_config():\n"
      "    cfg = Container(micro_batch_size=1, global_batch_size=8, seq_length=64)\n"
      "    cfg.model = from_hf_pretrained('a/Llama-2-7b')\n"
      "    cfg.trainer = trainer(tensor_parallelism=4, max_steps=10)\n    return cfg\n";
  EXPECT_THAT(ImportNemo(Source(text)).remarks,
              Contains(AllOf(HasSubstr("line 6: trainer() is in house/recipes/other.py"),
                             HasSubstr("(tensor_parallelism=4)"))));
}

TEST(NemoImportTest, TheCallbackOfOverlapMakesGradientsAndParametersOverlap) {
  const auto strategy = [](const std::string& callback) {
    std::string text = kNemo;
    const std::string ddp = "ddp=run.Config(Ddp, overlap_grad_reduce=True),";
    text.replace(text.find(ddp), ddp.size(), "");
    const std::string devices = "devices=8, ";
    text.replace(text.find(devices), devices.size(), devices + callback);
    return nlohmann::json::parse(ImportNemo(Source(text)).text)["strategy"];
  };
  const nlohmann::json without = strategy("");
  EXPECT_EQ(without["overlap_gradients"], false);
  const nlohmann::json with =
      strategy("callbacks=[run.Config(MegatronCommOverlapCallback, tp_comm_overlap=True)], ");
  EXPECT_EQ(with["overlap_gradients"], true);
  EXPECT_EQ(with["overlap_parameter_gathers"], true);
  EXPECT_EQ(with["bucket_elements"], 1 << 27);
  const nlohmann::json off =
      strategy("callbacks=[run.Config(MegatronCommOverlapCallback, overlap_grad_reduce=False)], ");
  EXPECT_EQ(off["overlap_gradients"], false);
}

TEST(NemoImportTest, ExpertsOfNemoAreReachedByAllToAll) {
  const std::string text =
      "def small_pretrain_8gpu_config():\n"
      "    cfg = Container(micro_batch_size=1, global_batch_size=8, seq_length=64)\n"
      "    cfg.model = from_hf_pretrained('a/Mixtral-8x7B-v0.1')\n"
      "    cfg.model.expert_model_parallel_size = 4\n    return cfg\n";
  EXPECT_THAT(ImportNemo(Source(text)).remarks, Not(Contains(HasSubstr("allgather"))));
}

TEST(NemoImportTest, LayoutsAsListsAreMegatronsNotation) {
  const std::string text =
      "def _layout(stages, virtual):\n"
      "    known = {\n        (1, 1): None,\n"
      "        (2, 1): [[\"embedding\"] + [\"decoder\"] * 20] + [[\"decoder\"] * 12 + "
      "[\"loss\"]],\n"
      "    }\n    return known[(stages, virtual or 1)]\n\n"
      "def small_pretrain_2gpu_config():\n"
      "    cfg = Container(micro_batch_size=1, global_batch_size=8, seq_length=64)\n"
      "    cfg.model = from_hf_pretrained('a/Llama-2-7b')\n"
      "    cfg.model.pipeline_model_parallel_size = 2\n"
      "    cfg.model.pipeline_model_parallel_layout = _layout(2, None)\n    return cfg\n";
  const nlohmann::json scenario = nlohmann::json::parse(ImportNemo(Source(text)).text);
  EXPECT_EQ(scenario["pipeline"]["layout"],
            "E" + std::string(20, 't') + "|" + std::string(12, 't') + "L");
}

TEST(NemoImportTest, TheNameSaysOnWhichMachine) {
  const auto scenario = [](const std::string& name) {
    const std::string text =
        "def small_" + name +
        "_config():\n    cfg = Container(micro_batch_size=1, global_batch_size=256, "
        "seq_length=64)\n    cfg.model = from_hf_pretrained('a/Llama-3.2-1B')\n    return cfg\n";
    return nlohmann::json::parse(ImportNemo(Source(text)).text);
  };
  EXPECT_EQ(scenario("16gpu_b200")["cluster"], "dgx-b200:nodes=2");
  EXPECT_EQ(scenario("32gpu_gb300")["cluster"], "gb300-nvl72:racks=1");
  EXPECT_EQ(scenario("32gpu_gb300")["placement"], "block");
  // 64 devices of each rack of 72.
  EXPECT_EQ(scenario("128gpu_gb200")["cluster"], "gb200-nvl72:racks=2");
  EXPECT_EQ(scenario("128gpu_gb200")["placement"], "0-63,72-135");
}

TEST(NemoImportTest, PrecisionsAreFunctionsOrNames) {
  const auto products = [](const std::string& precision) {
    const std::string text =
        "def small_pretrain_1gpu_config():\n"
        "    cfg = Container(micro_batch_size=1, global_batch_size=8, seq_length=64)\n"
        "    cfg.model = from_hf_pretrained('a/Llama-3.2-1B')\n    cfg.mixed_precision = " +
        precision + "\n    return cfg\n";
    return nlohmann::json::parse(ImportNemo(Source(text)).text)["training"].value("products", "");
  };
  EXPECT_EQ(products("bf16_mixed()"), "");
  EXPECT_EQ(products("bf16_with_fp8_current_scaling_mixed()"), "fp8-current");
  EXPECT_EQ(products("\"bf16_with_mxfp8_mixed\""), "mxfp8");
  EXPECT_EQ(products("get_mixed_precision_config(\"bf16_with_fp8_delayed_scaling_mixed\")"), "fp8");
  EXPECT_EQ(products("_perf_precision(\"nvfp4\")"), "nvfp4");
}

TEST(NemoImportTest, AdaptersAreThoseOfTheRecipe) {
  const auto lora_of = [](const std::string& more) {
    const std::string text =
        "def small_peft_8gpu_config():\n    cfg.model = from_hf_pretrained('llama-2-7b')\n"
        "    cfg.train.micro_batch_size = 1\n    cfg.train.global_batch_size = 8\n"
        "    cfg.model.seq_length = 2048\n    cfg.peft = LoRA()\n" +
        more;
    RunSource source = Source(text);
    source.cluster = "dgx-h100";
    return nlohmann::json::parse(ImportNemo(source).text)["model"]["lora"].dump();
  };
  EXPECT_EQ(lora_of(""), R"({"rank":32})");
  EXPECT_EQ(lora_of("    cfg.peft.dim = 8\n    cfg.peft.target_modules = ['linear_qkv']\n"),
            R"({"on":["qkv"],"rank":8})");
}

// Layers by letters, joined texts, a constant of another file.
constexpr const char* kHybrid = R"(from house.recipes.common import _base, NULL_TOKENS

def hybrid_pretrain_8gpu_h100_bf16_config():
    cfg = _base()
    cfg.model = HybridModelProvider(
        hybrid_layer_pattern=(
            "MEM*"
            "M-"
        ),
        num_layers=6,
        hidden_size=1024,
        ffn_hidden_size=4096,
        num_attention_heads=16,
        num_query_groups=2,
        kv_channels=128,
        mamba_num_heads=32,
        mamba_state_dim=64,
        num_moe_experts=8,
        moe_router_topk=2,
        moe_ffn_hidden_size=512,
        moe_router_score_function="sigmoid",
        moe_aux_loss_coeff=0.0001,
        activation_func=squared_relu,
        seq_length=2048,
        expert_model_parallel_size=4,
    )
    cfg.tokenizer.vocab_size = NULL_TOKENS
    cfg.ddp.use_distributed_optimizer = True
    return cfg
)";

TEST(NemoImportTest, AProviderOfHybridsIsTheModel) {
  EXPECT_EQ(DescribeRun(ImportNemo(Source(kHybrid)).text), DescribeRun(R"({
    "name": "hybrid_pretrain_8gpu_h100_bf16_config", "cluster": "dgx-h100", "software": "nemo",
    "model": {"style": "llama", "layers": 6, "layer_pattern": "MEM*M-", "hidden": 1024,
              "heads": 16, "groups": 2, "head_size": 128, "feed_forward": 4096,
              "vocabulary": 32000, "tied": false, "activation": "squared-relu", "rotary": false,
              "mamba": {"heads": 32, "state": 64, "head": 64, "groups": 8},
              "experts": {"count": 8, "per_token": 2, "hidden": 512, "router": "sigmoid",
                          "auxiliary_loss": 0.0001}},
    "training": {"batch": 128, "sequence": 2048, "micro_batches": 16, "recomputation": "none"},
    "strategy": {"kind": "combined", "shard": 8, "zero": 1, "expert": 4,
                 "overlap_gradients": false}})"));
  std::string other = kHybrid;
  const std::string rule = "squared_relu";
  other.replace(other.find(rule), rule.size(), "gelu");
  EXPECT_THAT(MistakeOf(other), HasSubstr("activation_func: expected squared_relu"));
  EXPECT_EQ(DescribeRun(ImportNemo(Source(kHybrid, {{"vocab_size", "131072"}})).text).find("32000"),
            std::string::npos);
}

TEST(NemoImportTest, WhatCannotBeReadIsRefused) {
  EXPECT_THAT(MistakeOf(kBridge), HasSubstr("found 3 recipes, expected --set config=NAME"));
  EXPECT_THAT(MistakeOf(kBridge, {{"config", "bigg"}}), HasSubstr("found no recipe \"bigg\""));
  EXPECT_THAT(MistakeOf(kBridge, {{"config", "big_peft_8gpu_h100_bf16_config"}, {"model", "1"}}),
              HasSubstr("no model"));
  EXPECT_THAT(MistakeOf("def small_peft_config():\n    cfg.model = from_hf_pretrained('gpt-20b')\n"
                        "    cfg.peft = DoRA()\n"),
              HasSubstr("recipe.py:3: peft: adapters with magnitudes"));
  EXPECT_THAT(MistakeOf("def a_config():\n    cfg.model = from_hf_pretrained('b/Unheard-9B')\n"),
              HasSubstr("recipe.py:2: model: found \"b/Unheard-9B\""));
  EXPECT_THAT(MistakeOf("def a_config():\n    cfg.model = from_hf_pretrained('b/Llama-2-7b')\n"
                        "    cfg.model.freeze_vision_model = False\n"),
              HasSubstr("recipe.py:3: freeze_vision_model: models of images"));
  EXPECT_THAT(MistakeOf("print(1)\n"), HasSubstr("no function here makes a recipe"));
  EXPECT_THAT(MistakeOf("def a_config():\n    layout = {(1\x9c, 2): 3}[(1\x9c, 2)]\n"),
              HasSubstr("names no model"));
}

}  // namespace nemo_import_test
}  // namespace rehearse
