#include "workloads/networks/hf_config.h"

#include <algorithm>
#include <iterator>

#include <nlohmann/json.hpp>

namespace rehearse {
namespace {

// These keys change no sizes: positions, initialisation, inference, tokens, book-keeping.
constexpr const char* kWithoutSizes[] = {"_name_or_path",
                                         "learned_pos_emb",
                                         "attention_out_bias",
                                         "use_routing_bias",
                                         "qk_norm_type",
                                         "input_jitter_noise",
                                         "lm_head_bias",
                                         "order_of_interleaved_layers",
                                         "activation_dropout",
                                         "alibi",
                                         "apply_residual_connection_post_layernorm",
                                         "architectures",
                                         "attention_dropout",
                                         "attention_dropout_prob",
                                         "attention_multiplier",
                                         "attention_probs_dropout",
                                         "attention_softmax_in_fp32",
                                         "attn_dropout",
                                         "attn_dropout_prob",
                                         "attn_implementation",
                                         "attn_logit_softcapping",
                                         "attn_pdrop",
                                         "attn_scale",
                                         "attn_temperature_tuning",
                                         "auto_map",
                                         "bad_words_ids",
                                         "begin_suppress_tokens",
                                         "bf16",
                                         "bias_dropout_fusion",
                                         "boi_token_id",
                                         "bos_token_id",
                                         "cache_dir",
                                         "cache_implementation",
                                         "chunk_size_feed_forward",
                                         "classifier_dropout",
                                         "clip_limit",
                                         "cls_token_id",
                                         "cross_attention_hidden_size",
                                         "decoder_start_token_id",
                                         "dim_model_base",
                                         "diversity_penalty",
                                         "do_sample",
                                         "dropout",
                                         "dtype",
                                         "early_stopping",
                                         "emb_dropout_prob",
                                         "emb_pdrop",
                                         "embd_pdrop",
                                         "embedding_dropout",
                                         "embedding_multiplier",
                                         "encoder_no_repeat_ngram_size",
                                         "eoi_token_id",
                                         "eos_token_id",
                                         "ep_size",
                                         "experts_per_token",
                                         "exponential_decay_length_penalty",
                                         "ffn_dropout",
                                         "final_logit_softcapping",
                                         "final_w_init_variance_scale",
                                         "finetuning_task",
                                         "flash_attn",
                                         "floor_scale",
                                         "for_llm_compressor",
                                         "forced_bos_token_id",
                                         "forced_eos_token_id",
                                         "fp16",
                                         "fp32",
                                         "fp32_residual",
                                         "fused_dropout_add_ln",
                                         "hidden_dropout",
                                         "hidden_dropout_prob",
                                         "id2label",
                                         "im_end_id",
                                         "im_start_id",
                                         "image_token_id",
                                         "image_token_index",
                                         "init_config",
                                         "init_device",
                                         "init_std",
                                         "initial_context_length",
                                         "initializer_factor",
                                         "initializer_range",
                                         "is_decoder",
                                         "label2id",
                                         "layer_norm_bias",
                                         "layer_norm_eps",
                                         "layer_norm_epsilon",
                                         "layerdrop",
                                         "layernorm_compute_fp32",
                                         "layernorm_epsilon",
                                         "length_penalty",
                                         "logit_scale",
                                         "logits_attention_multiplier",
                                         "logits_scaling",
                                         "mask_token_id",
                                         "masked_softmax_fusion",
                                         "max_length",
                                         "max_position_embeddings",
                                         "max_seq_len",
                                         "max_sequence_length",
                                         "min_length",
                                         "mm_tokens_per_image",
                                         "model_max_length",
                                         "model_type",
                                         "moe_router_enable_expert_bias",
                                         "moe_router_topk_scaling_factor",
                                         "moe_z_loss_coeff",
                                         "mtp_loss_scaling_factor",
                                         "n_ctx",
                                         "n_positions",
                                         "no_repeat_ngram_size",
                                         "no_rope_layer_interval",
                                         "no_rope_layers",
                                         "no_rope_layers_interval",
                                         "norm_eps",
                                         "norm_epsilon",
                                         "norm_topk_prob",
                                         "num_beam_groups",
                                         "num_beams",
                                         "num_labels",
                                         "num_return_sequences",
                                         "offset_alibi",
                                         "original_max_position_embeddings",
                                         "output_attentions",
                                         "output_hidden_states",
                                         "output_router_logits",
                                         "output_scores",
                                         "pad_token_id",
                                         "partial_rotary",
                                         "partial_rotary_factor",
                                         "precision",
                                         "prefix",
                                         "pretraining_tp",
                                         "problem_type",
                                         "pruned_heads",
                                         "qk_layernorm_eps",
                                         "quantization",
                                         "query_pre_attn_scalar",
                                         "remove_invalid_values",
                                         "reorder_and_upcast_attn",
                                         "repetition_penalty",
                                         "resid_pdrop",
                                         "residual_dropout",
                                         "residual_multiplier",
                                         "return_dict",
                                         "return_dict_in_generate",
                                         "rms_norm_eps",
                                         "rope_dim",
                                         "rope_interleave",
                                         "rope_local_base_freq",
                                         "rope_parameters",
                                         "rope_pct",
                                         "rope_ratio",
                                         "rope_reorder",
                                         "rope_scaling",
                                         "rope_theta",
                                         "rope_theta_global",
                                         "rope_type",
                                         "rotary_dim",
                                         "rotary_emb_base",
                                         "rotary_emb_fraction",
                                         "rotary_pct",
                                         "rotary_percent",
                                         "rotary_percentage",
                                         "routed_scaling_factor",
                                         "router_bias_update_rate",
                                         "router_dtype",
                                         "router_jitter_noise",
                                         "router_use_fp32",
                                         "router_z_loss_coef",
                                         "scale_attention_softmax_in_fp32",
                                         "scale_attn_by_inverse_layer_idx",
                                         "scale_attn_weights",
                                         "scale_depth",
                                         "scale_emb",
                                         "scale_embedding",
                                         "scoring_function",
                                         "sep_token_id",
                                         "seq_aux",
                                         "seq_len",
                                         "seq_length",
                                         "skip_bias_add",
                                         "slow_but_exact",
                                         "summary_activation",
                                         "summary_first_dropout",
                                         "summary_proj_to_labels",
                                         "summary_type",
                                         "summary_use_proj",
                                         "suppress_tokens",
                                         "swiglu_limit",
                                         "task_specific_params",
                                         "temperature",
                                         "tf_legacy_loss",
                                         "tie_encoder_decoder",
                                         "tokenizer_class",
                                         "top_k",
                                         "top_p",
                                         "topk_scaling_factor",
                                         "torch_dtype",
                                         "torchscript",
                                         "transformers_version",
                                         "typical_p",
                                         "unk_token_id",
                                         "use_bfloat16",
                                         "use_cache",
                                         "use_dynamic_ntk",
                                         "use_flash_attn",
                                         "use_flash_attn_2",
                                         "use_logn_attn",
                                         "use_pad_tokenizer",
                                         "use_rmsnorm",
                                         "verbose",
                                         "video_token_id",
                                         "vision_end_token_id",
                                         "vision_feature_layer",
                                         "vision_start_token_id",
                                         "vision_token_id"};

// Whether a value says that there is something: not 0, 1, false, "" or an empty list.
bool SaysThatThereIs(const nlohmann::json& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number()) return value.get<double>() > 1;
  if (value.is_string()) return !value.get_ref<const std::string&>().empty();
  return !value.empty();
}

}  // namespace

HfConfig::HfConfig(const JsonReader& root) : root_(root) {
  for (const char* key : kWithoutSizes) read_.emplace_back(key);
}

JsonReader HfConfig::OneOf(const JsonReader& value) {
  if (!value.IsArray() || value.value().empty()) return value;
  const std::vector<JsonReader> all = value.Elements();
  for (const JsonReader& one : all) {
    if (one.value() != all.front().value())
      one.Expected("the same as for the layers before: all layers of a decoder here are alike");
  }
  return all.front();
}

void HfConfig::RefuseUnreadLayers() {
  constexpr const char* kExperts[] = {"expert", "moe"};
  constexpr const char* kLayers[] = {"mamba",        "ssm_",
                                     "linear_attn",  "linear_num_",
                                     "hybrid_",      "attn_type",
                                     "attn_layer_",  "layers_block_type",
                                     "block_conf",   "cross_attention_layers",
                                     "cla_share",    "rwkv",
                                     "conv_l_cache", "lightning",
                                     "index_topk",   "block_types",
                                     "altup",        "laurel"};
  for (const auto& [key, value] : root_.Members()) {
    if (IsRead(key) || !SaysThatThereIs(value.value())) continue;
    const auto has = [&key = key](const char* part) { return key.find(part) != std::string::npos; };
    if (std::any_of(std::begin(kLayers), std::end(kLayers), has))
      value.Fail("says that there are layers of another kind, which a decoder here cannot have");
    // Coefficients and names of kernels are no experts; numbers of them are.
    if (has("capacity")) continue;
    const bool is_number = value.value().is_number_integer() || value.value().is_structured();
    if (is_number && std::any_of(std::begin(kExperts), std::end(kExperts), has))
      value.Fail(
          "says that there are experts, under a name that this kind of model is not known to "
          "have; they must not be dropped");
  }
}

std::vector<std::string> HfConfig::Remarks() {
  std::sort(read_.begin(), read_.end());
  std::vector<std::string> unknown;
  for (const auto& [key, value] : root_.Members()) {
    if (!IsRead(key) && !value.value().is_null()) unknown.push_back(key);
  }
  if (!unknown.empty()) Remark(fmt::format("not understood: {}", fmt::join(unknown, ", ")));
  return remarks_;
}

}  // namespace rehearse
