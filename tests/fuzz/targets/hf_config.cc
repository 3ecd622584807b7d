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
 "sliding_window": 4096, "layer_types": ["sliding_attention", "full_attention"]})",
      R"({"model_type": "gemma3", "text_config": {"model_type": "gemma3_text", "hidden_size": 2560,
 "intermediate_size": 10240, "num_hidden_layers": 34, "sliding_window_pattern": 6}, "vision_config": {}})",
      R"({"model_type": "hunyuan_v1_moe", "hidden_size": 4096, "intermediate_size": 3072, "num_hidden_layers": 2,
 "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128167, "num_experts": 64, "moe_topk": [8, 8],
 "moe_intermediate_size": [3072, 3072], "num_shared_expert": [1, 1]})",
      R"({"model_type": "dbrx", "d_model": 6144, "n_heads": 48, "n_layers": 40, "vocab_size": 100352,
 "attn_config": {"kv_n_heads": 8}, "ffn_config": {"ffn_hidden_size": 10752, "moe_num_experts": 16, "moe_top_k": 4}})"};
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
          "\"kimi_k2\"",
          "\"glm4_moe\"",
          "\"llama4_text\"",
          "\"minimax_m2\"",
          "\"cohere2\"",
          "\"granitemoehybrid\"",
          "\"attn_type_list\"",
          "\"moe_layer_freq\"",
          "\"sliding_window_pattern\"",
          "\"num_nextn_predict_layers\"",
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
