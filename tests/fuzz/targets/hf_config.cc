// A decoder's config.json, as Hugging Face has it.
#include "sim/base/json_document.h"
#include "sim/base/json_reader.h"
#include "tests/fuzz/corpus.h"
#include "tests/fuzz/fuzz_target.h"
#include "workloads/networks/hf_model.h"

namespace rehearse {
namespace {

void ReadConfig(std::string_view input) {
  const JsonDocument document = JsonDocument::FromText(input, "config.json");
  ReadHfConfig(document.Root());
}

std::vector<std::string> ConfigSeeds() {
  return {
      R"({"model_type": "llama", "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
 "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 32000, "hidden_act": "silu",
 "tie_word_embeddings": false, "max_position_embeddings": 4096, "rms_norm_eps": 1e-5})",
      R"({"model_type": "mixtral", "hidden_size": 4096, "intermediate_size": 14336,
 "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 32000,
 "num_local_experts": 8, "num_experts_per_tok": 2, "sliding_window": null})",
      R"({"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "vocab_size": 50257, "n_positions": 1024})",
      R"({"model_type": "deepseek_v3", "hidden_size": 7168, "intermediate_size": 18432,
 "moe_intermediate_size": 2048, "num_hidden_layers": 61, "num_attention_heads": 128, "n_routed_experts": 256,
 "num_experts_per_tok": 8, "n_shared_experts": 1, "first_k_dense_replace": 3, "moe_layer_freq": 1,
 "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
 "v_head_dim": 128, "vocab_size": 129280})",
      R"({"model_type": "gemma2", "hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26,
 "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "vocab_size": 256000,
 "sliding_window": 4096, "layer_types": ["sliding_attention", "full_attention"]})"};
}

std::vector<std::string> ConfigWords() {
  return {"\"model_type\"",
          "\"llama\"",
          "\"qwen2\"",
          "\"qwen3_moe\"",
          "\"mistral\"",
          "\"phi3\"",
          "\"gpt_neox\"",
          "\"gemma\"",
          "\"deepseek_v2\"",
          "\"opt\"",
          "\"falcon\"",
          "\"bloom\"",
          "\"hidden_size\"",
          "\"intermediate_size\"",
          "\"num_hidden_layers\"",
          "\"num_attention_heads\"",
          "\"num_key_value_heads\"",
          "\"head_dim\"",
          "\"vocab_size\"",
          "\"layer_types\"",
          "\"sliding_window\"",
          "\"num_local_experts\"",
          "\"num_experts_per_tok\"",
          "\"q_lora_rank\"",
          "\"kv_lora_rank\"",
          "\"attention_bias\"",
          "\"text_config\"",
          "\"use_sliding_window\"",
          "\"max_window_layers\"",
          "null",
          "true",
          "false",
          "0",
          "1",
          "-1",
          "1e9",
          "[]",
          "{}"};
}

const FuzzTargetRow kConfigRow({"hf_config", ReadConfig, ConfigSeeds, ConfigWords,
                                FuzzLanguage::kJson});

}  // namespace
}  // namespace rehearse
