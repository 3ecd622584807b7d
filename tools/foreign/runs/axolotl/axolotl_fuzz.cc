// Runs of axolotl.
#include "tests/fuzz/corpus.h"
#include "tests/fuzz/fuzz_target.h"
#include "tools/foreign/runs/axolotl/axolotl_import.h"

namespace rehearse {
namespace {

// As "deepspeed" in such a run names it.
constexpr const char* kFuzzedZero =
    R"({"zero_optimization": {"stage": 3, "reduce_bucket_size": "auto"}, "bf16": {"enabled": true}})";

void ReadAxolotl(std::string_view input) {
  RunSource source;
  source.text = input;
  source.file = "run.yml";
  source.cluster = "dgx-h100";
  source.beside = [](const std::string& name) {
    return name == "zero3.json" ? std::optional<std::string>(kFuzzedZero) : std::nullopt;
  };
  ImportAxolotl(source);
}

std::vector<std::string> AxolotlSeeds() {
  return {
      "base_model: unsloth/Llama-3.2-1B\nsequence_len: 2_048\nmicro_batch_size: 2\n"
      "gradient_accumulation_steps: 4\noptimizer: adamw_bnb_8bit\nbf16: auto\n"
      "gradient_checkpointing: true\nsample_packing: true\ndeepspeed: zero3.json\n"
      "attn_implementation: flash_attention_2\n",
      "base_model: Qwen/Qwen2.5-0.5B\nsequence_len: 512\nmicro_batch_size: 1\n"
      "fsdp_version: 2\nfsdp_config:\n  reshard_after_forward: true\n  offload_params: true\n"
      "dp_shard_size: 2\ntensor_parallel_size: 2\ncontext_parallel_size: 2\n"
      "plugins:\n  - axolotl.integrations.liger.LigerPlugin\nadapter: null\n"};
}

std::vector<std::string> AxolotlWords() {
  return {"adapter: lora\n",
          "rl: dpo\n",
          "fsdp:\n  - full_shard\n",
          "dp_replicate_size: 2\n",
          "expert_parallel_size: 2\n",
          "fp8: true\n",
          "auto",
          "null",
          "${micro_batch_size}",
          "-1",
          "4294967296",
          "500_000",
          "[",
          "{}",
          "\n"};
}

const FuzzTargetRow kAxolotlRow({"axolotl", ReadAxolotl, AxolotlSeeds, AxolotlWords});

}  // namespace
}  // namespace rehearse
