// Recipes in Python, of Megatron-Bridge and NeMo.
#include "tests/fuzz/corpus.h"
#include "tests/fuzz/fuzz_target.h"
#include "tools/foreign/runs/nemo/nemo_import.h"

namespace rehearse {
namespace {

constexpr const char* kFuzzedModule =
    "def base_config():\n    cfg = Container(train=Train(micro_batch_size=1))\n    return cfg\n";

void ReadNemo(std::string_view input) {
  RunSource source;
  source.text = input;
  source.file = "recipe.py";
  source.beside = [](const std::string& name) {
    return name == "bridge/common.py" ? std::optional<std::string>(kFuzzedModule) : std::nullopt;
  };
  ImportNemo(source);
}

std::vector<std::string> NemoSeeds() {
  return {
      "from bridge.common import base_config as base\nLENGTH: int = 1024\n\n"
      "def tiny_pretrain_8gpu_h100_bf16_config(peft=None):\n    \"\"\"A recipe.\"\"\"\n"
      "    cfg = base()\n"
      "    cfg.model = AutoBridge.from_hf_pretrained(\"a/Llama-3.2-1B\").provider()\n"
      "    cfg.model.tensor_model_parallel_size = 2\n"
      "    cfg.model.seq_length = cfg.dataset.seq_length = LENGTH * 2\n"
      "    cfg.train.global_batch_size = 64\n"
      "    cfg.mixed_precision = bf16_with_fp8_current_scaling_mixed()\n"
      "    if peft is not None and cfg.model.seq_length == 1:\n"
      "        cfg.train.global_batch_size = 32\n    else:\n"
      "        cfg.ddp.overlap_grad_reduce = True\n"
      "    layout = {(1, 2): [[\"embedding\"] + [\"decoder\"] * 8, [\"loss\"]]}[(1, 2)]\n"
      "    cfg.env_vars = {**COMMON, \"NCCL_ALGO\": \"Ring\"}\n    return cfg\n",
      "def trainer(tensor: int = 1, nodes=1) -> T:\n"
      "    return run.Config(Trainer, tensor_model_parallel_size=tensor, num_nodes=nodes,\n"
      "                      devices=8, plugins=bf16_mixed())\n\n"
      "def pretrain_recipe(num_nodes: int = 2, fast=False):\n"
      "    recipe = run.Partial(pretrain, model=run.Config(Model, run.Config(Llama32Config1B)),\n"
      "        trainer=trainer(tensor=2, nodes=num_nodes),\n"
      "        data=run.Config(Mock, seq_length=512, global_batch_size=32,\n"
      "                        micro_batch_size=1))\n"
      "    if fast:\n        recipe = faster(recipe)\n    return recipe\n"};
}

std::vector<std::string> NemoWords() {
  return {"    if x == 1:\n",
          "    elif not x:\n",
          "    for i in a:\n",
          "def f(**k):\n",
          "f(**{\"a\": 1})",
          " if a else b",
          " or ",
          " + ",
          "[a for a in b]",
          "hasattr(c, \"a\")",
          "\"\"\"",
          "# ",
          "f(f(f(f())))",
          "None",
          "((((",
          "* 10000",
          "cfg.peft = LoRA()\n",
          "\n"};
}

const FuzzTargetRow kNemoRow({"nemo", ReadNemo, NemoSeeds, NemoWords});

}  // namespace
}  // namespace rehearse
