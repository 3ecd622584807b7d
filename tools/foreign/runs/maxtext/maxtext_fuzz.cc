// MaxText's settings.
#include "tests/fuzz/corpus.h"
#include "tests/fuzz/fuzz_target.h"
#include "tools/foreign/runs/maxtext/maxtext_import.h"

namespace rehearse {
namespace {

void ReadMaxText(std::string_view input) { ImportMaxText(input, "base.yml", "dgx-h100:nodes=2"); }

std::vector<std::string> MaxTextSeeds() {
  return {
      "base_emb_dim: 256\nbase_num_query_heads: 4\nbase_num_kv_heads: 2\nbase_mlp_dim: 512\n"
      "base_num_decoder_layers: 2\nhead_dim: 64\nvocab_size: 32_000 # tokens\n"
      "mlp_activations: [\"silu\", \"linear\"]\nlogits_via_embedding: False\n"
      "decoder_block: \"llama2\"\nici_tensor_parallelism: 2\nper_device_batch_size: 0.5\n",
      "decoder_block: deepseek\nattention_type: mla\nnum_experts: 8\nnum_experts_per_tok: 2\n"
      "base_moe_mlp_dim: 64\nshared_experts: 1\nfirst_num_dense_layers: 1\nkv_lora_rank: 64\n"
      "ici_expert_parallelism: 4\nremat_policy: minimal\nquantization: fp8\nnum_slices: 2\n"};
}

std::vector<std::string> MaxTextWords() {
  return {"base_emb_dim: ",
          "base_mlp_dim: ",
          "num_experts: ",
          "decoder_block: ",
          "ici_fsdp_parallelism: -1\n",
          "dcn_data_parallelism: 2\n",
          "num_slices: 2\n",
          "sliding_window_size: 128\n",
          "gemma2\n",
          "gpt3\n",
          "mlp_activations: [gelu]\n",
          "0",
          "-1",
          "1e9",
          "32_000",
          "True",
          "null",
          "[",
          "]",
          "\n"};
}

const FuzzTargetRow kMaxTextRow({"maxtext", ReadMaxText, MaxTextSeeds, MaxTextWords});

}  // namespace
}  // namespace rehearse
