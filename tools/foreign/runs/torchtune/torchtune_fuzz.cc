// Recipes of torchtune.
#include "tests/fuzz/corpus.h"
#include "tests/fuzz/fuzz_target.h"
#include "tools/foreign/runs/torchtune/torchtune_import.h"

namespace rehearse {
namespace {

void ReadTorchtune(std::string_view input) {
  RunSource source;
  source.text = input;
  source.file = "full.yaml";
  source.cluster = "dgx-h100";
  ImportTorchtune(source);
}

std::vector<std::string> TorchtuneSeeds() {
  return {
      "model:\n  _component_: torchtune.models.qwen2_5.qwen2_5_0_5b\n"
      "tokenizer:\n  max_seq_len: 1024\ndataset:\n  packed: True\nbatch_size: 2\n"
      "optimizer:\n  _component_: torch.optim.AdamW\n  fused: True\n"
      "loss:\n  _component_: torchtune.modules.loss.LinearCrossEntropyLoss\n"
      "gradient_accumulation_steps: 4\nenable_activation_checkpointing: True\ndtype: bf16\n",
      "batch: 3\nmodel:\n  _component_: torchtune.models.gemma2.gemma2_2b\n"
      "max_seq_len: 512\nbatch_size: ${batch}\ntensor_parallel_dim: 2\n"
      "data_parallel_shard_dim: -1\ncompile: True\n"
      "optimizer:\n  _component_: bitsandbytes.optim.PagedAdamW8bit\n"};
}

std::vector<std::string> TorchtuneWords() {
  return {"_component_: torchtune.models.llama3.lora_llama3_8b\n",
          "teacher_model:\n",
          "data_parallel_replicate_dim: 2\n",
          "context_parallel_dim: 2\n",
          "optimizer_in_bwd: True\n",
          "fsdp_cpu_offload: True\n",
          "dtype: fp32\n",
          "${dtype}",
          "null",
          "-1",
          "4294967296",
          "[",
          "{}",
          "\n"};
}

const FuzzTargetRow kTorchtuneRow({"torchtune", ReadTorchtune, TorchtuneSeeds, TorchtuneWords});

}  // namespace
}  // namespace rehearse
