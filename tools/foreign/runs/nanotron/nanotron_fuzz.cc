// Configurations of nanotron.
#include "tests/fuzz/corpus.h"
#include "tests/fuzz/fuzz_target.h"
#include "tools/foreign/runs/nanotron/nanotron_import.h"

namespace rehearse {
namespace {

void ReadNanotron(std::string_view input) { ImportNanotron(input, "tiny.yaml", ""); }

constexpr const char* kNanotronSteps =
    "parallelism:\n  dp: 2\n  tp: 2\n  pp: 2\n  pp_engine: 1f1b\n  tp_mode: REDUCE_SCATTER\n"
    "tokens:\n  micro_batch_size: 1\n  batch_accumulation_per_replica: 2\n  sequence_length: 64\n"
    "optimizer:\n  zero_stage: 1\n  accumulate_grad_in_fp32: true\n";

std::vector<std::string> NanotronSeeds() {
  const std::string sizes =
      "model:\n  model_config:\n    hidden_size: 64\n    intermediate_size: 128\n"
      "    num_attention_heads: 4\n    num_hidden_layers: 4\n    num_key_value_heads: 2\n"
      "    vocab_size: 256\n    max_position_embeddings: 64\n";
  return {sizes + "    is_llama_config: true\n    pad_token_id: null\n" + kNanotronSteps,
          sizes +
              "    is_qwen2_config: true\n    moe_config:\n      num_experts: 8\n      top_k: 1\n"
              "      enable_shared_expert: true\n" +
              kNanotronSteps};
}

std::vector<std::string> NanotronWords() {
  return {"model:\n",
          "  model_config:\n",
          "    moe_config:\n",
          "      layers: [0]\n",
          "  dp: 3\n",
          "  tp: 64\n",
          "  pp_engine: afab\n",
          "  zero_stage: 2\n",
          "null",
          "true",
          "is_mamba_config: true\n",
          "-1",
          "4294967296",
          "[",
          "{}",
          "\n"};
}

const FuzzTargetRow kNanotronRow({"nanotron", ReadNanotron, NanotronSeeds, NanotronWords});

}  // namespace
}  // namespace rehearse
