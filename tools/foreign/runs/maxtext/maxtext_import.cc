#include "tools/foreign/runs/maxtext/maxtext_import.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/base/error.h"
#include "sim/base/json_document.h"
#include "sim/base/json_parse.h"
#include "sim/base/known_names.h"
#include "tools/foreign/machines/infragraph/yaml_text.h"
#include "tools/foreign/runs/model_names.h"
#include "tools/foreign/runs/torchtitan/job_config.h"

namespace rehearse {
namespace {

constexpr int64_t kMostMaxTextLayers = 10000;
constexpr int64_t kMostMaxTextColumns = 1 << 24;

// Its kinds of layers, and every how many layers one sees all tokens where the others have windows.
struct LayerKind {
  const char* name = "";
  int64_t global_every = 0;
};
constexpr LayerKind kLayerKinds[] = {{"default"}, {"llama2"},    {"mistral"},   {"mixtral"},
                                     {"gemma"},   {"gemma2", 2}, {"qwen2"},     {"gemma3", 6},
                                     {"qwen3"},   {"olmo3", 4},  {"qwen3_moe"}, {"gpt_oss", 2},
                                     {"gpt3"},    {"llama4", 4}, {"deepseek"}};

const LayerKind& KindOfLayers(JobConfig& keys) {
  const std::string name = keys.TextOr({"decoder_block"}, "llama2");
  std::vector<std::string> names;
  for (const LayerKind& kind : kLayerKinds) {
    if (name == kind.name) return kind;
    names.emplace_back(kind.name);
  }
  keys.Fail({"decoder_block"}, fmt::format("found \"{}\", layers that are not supported{}", name,
                                           KnownNames(name, names)));
}

void SetExpertsOfMaxText(JobConfig& keys, ScenarioDraft& draft, int64_t columns) {
  const int64_t count = keys.WholeOr({"num_experts"}, 1, 1 << 16, 1);
  const int64_t chosen = keys.WholeOr({"num_experts_per_tok"}, 1, 1 << 16, 1);
  const int64_t width = keys.WholeOr({"base_moe_mlp_dim"}, -1, kMostMaxTextColumns, -1);
  const int64_t shared = keys.WholeOr({"shared_experts"}, 0, 1 << 10, 0);
  const int64_t dense = keys.WholeOr({"first_num_dense_layers"}, 0, kMostMaxTextLayers, 0);
  const int64_t every = keys.WholeOr({"interleave_moe_layer_step"}, 1, kMostMaxTextLayers, 1);
  const std::string score = keys.TextOr({"routed_score_func"}, "");
  if (count == 1) return;
  const int64_t hidden = width > 0 ? width : columns;
  draft.Set("/model/experts", nlohmann::ordered_json::object(), keys.OriginOf({"num_experts"}));
  draft.Set("/model/experts/count", count, keys.OriginOf({"num_experts"}));
  draft.Set("/model/experts/per_token", chosen, keys.OriginOf({"num_experts_per_tok"}));
  draft.Set("/model/experts/hidden", hidden, keys.OriginOf({"base_moe_mlp_dim"}));
  if (shared > 0) draft.Set("/model/experts/shared", shared * hidden);
  if (dense > 0) draft.Set("/model/experts/first_dense", dense);
  if (every > 1) draft.Set("/model/experts/every", every);
  if (score == "sigmoid") draft.Set("/model/experts/router", "sigmoid");
}

// Its own names of models that have others elsewhere.
struct MaxTextModel {
  const char* theirs;
  const char* ours;
};
constexpr MaxTextModel kOwnModels[] = {
    {"deepseek2-16b", "deepseek-v2-lite"}, {"deepseek2-236b", "deepseek-v2"},
    {"deepseek3-671b", "deepseek-v3"},     {"kimi-k2-1t", "kimi-k2"},
    {"llama4-17b-16e", "llama4-scout"},    {"llama4-17b-128e", "llama4-maverick"}};

struct MaxTextSize {
  const char* theirs;
  const char* ours;
  int64_t usual;
  bool is_needed;  // of a model without a name
};
constexpr MaxTextSize kSizesOfMaxText[] = {{"base_emb_dim", "/model/hidden", 2048, true},
                                           {"base_num_query_heads", "/model/heads", 16, true},
                                           {"base_mlp_dim", "/model/feed_forward", 7168, true},
                                           {"base_num_decoder_layers", "/model/layers", 16, true},
                                           {"base_num_kv_heads", "/model/groups", 16, false}};

// Whether model_name says the sizes. Its file of that name is not read; what is written here counts
// if all is.
bool SetNamedModelOfMaxText(JobConfig& keys, ScenarioDraft& draft) {
  const JobConfig::Names names = {"model_name"};
  const std::string name = keys.TextOr(names, "default");
  if (name.empty() || name == "default") return false;
  // A copy of configs/base.yml has the sizes of no model, which the name's replace there.
  bool has_sizes = true;
  bool is_base = true;
  for (const MaxTextSize& size : kSizesOfMaxText) {
    has_sizes = has_sizes && (!size.is_needed || keys.Has({size.theirs}));
    is_base = is_base && keys.WholeOr({size.theirs}, 1, kMostMaxTextColumns, -1) == size.usual;
  }
  if (has_sizes && !is_base) {
    draft.Remark(fmt::format(
        "model_name {}: the base_* sizes beside it are played; MaxText has its own for that name",
        name));
    return false;
  }
  std::string known = name;
  for (const MaxTextModel& model : kOwnModels)
    if (name == model.theirs) known = model.ours;
  // Other sizes of "gpt3-" read as fractions: 3-6b is no 3.6b.
  const bool is_other_gpt = name.starts_with("gpt3-") && name != "gpt3-175b";
  const std::optional<NamedModel> found = is_other_gpt ? std::nullopt : FindModelByName(known);
  if (!found) {
    keys.Fail(names,
              fmt::format("found {}, a model that is not known by name (as llama2-7b, llama3.1-70b "
                          "and mixtral-8x7b are); expected its sizes, base_emb_dim, "
                          "base_num_decoder_layers and so on, as in MaxText's "
                          "configs/models/{}.yml",
                          QuotedJson(name), name));
  }
  SetNamedModel(found, name, keys.OriginOf(names), &draft);
  for (const MaxTextSize& size : kSizesOfMaxText) {
    const JobConfig::Names size_names = {size.theirs};
    if (is_base || !keys.Has(size_names)) continue;
    draft.Set(size.ours, keys.WholeOr(size_names, 1, kMostMaxTextColumns, 1),
              keys.OriginOf(size_names));
    draft.Remark(fmt::format("model_name {}: {} is what is given, the rest is the model's", name,
                             size.theirs));
  }
  return true;
}

void SetModelOfMaxText(JobConfig& keys, ScenarioDraft& draft) {
  if (keys.WholeOr({"global_parameter_scale"}, 1, 1 << 20, 1) != 1)
    keys.Fail({"global_parameter_scale"}, "expected 1: scales of a model are not supported");
  if (SetNamedModelOfMaxText(keys, draft)) return;
  const LayerKind& kind = KindOfLayers(keys);
  const int64_t hidden = keys.WholeOr({"base_emb_dim"}, 1, 1 << 20, 2048);
  const int64_t heads = keys.WholeOr({"base_num_query_heads"}, 1, 1 << 16, 16);
  const int64_t groups = keys.WholeOr({"base_num_kv_heads"}, 1, 1 << 16, heads);
  const int64_t columns = keys.WholeOr({"base_mlp_dim"}, 1, kMostMaxTextColumns, 7168);
  const bool is_latent = keys.TextOr({"attention_type"}, "global") == "mla";
  const size_t activations = std::max<size_t>(keys.Texts({"mlp_activations"}).size(), 1);
  const bool has_gate = activations > 1 || !keys.Has({"mlp_activations"});
  draft.Set("/model/style", has_gate ? "llama" : "gpt", keys.OriginOf({"mlp_activations"}));
  // Its layers of Gemma 2 are pairs, the first of which has a window.
  const int64_t of_block = std::string_view(kind.name) == "gemma2" ? 2 : 1;
  draft.Set("/model/layers",
            of_block * keys.WholeOr({"base_num_decoder_layers"}, 1, kMostMaxTextLayers, 16),
            keys.OriginOf({"base_num_decoder_layers"}));
  draft.Set("/model/hidden", hidden, keys.OriginOf({"base_emb_dim"}));
  draft.Set("/model/heads", heads, keys.OriginOf({"base_num_query_heads"}));
  draft.Set("/model/feed_forward", columns, keys.OriginOf({"base_mlp_dim"}));
  draft.Set("/model/vocabulary", keys.WholeOr({"vocab_size"}, 1, kMostMaxTextColumns, 32000),
            keys.OriginOf({"vocab_size"}));
  draft.Set("/model/tied", keys.BoolOr({"logits_via_embedding"}, false));
  const int64_t head = keys.WholeOr({"head_dim"}, 1, 1 << 16, 128);
  const int64_t query = keys.WholeOr({"q_lora_rank"}, 0, 1 << 20, 0);
  const int64_t rank = keys.WholeOr({"kv_lora_rank"}, 1, 1 << 20, 512);
  const int64_t nope = keys.WholeOr({"qk_nope_head_dim"}, 1, 1 << 20, 128);
  const int64_t rope = keys.WholeOr({"qk_rope_head_dim"}, 1, 1 << 20, 64);
  const int64_t value = keys.WholeOr({"v_head_dim"}, 1, 1 << 20, 128);
  if (is_latent) {
    draft.Set("/model/latent",
              {{"query_rank", query},
               {"kv_rank", rank},
               {"rope_head", rope},
               {"head", nope},
               {"value_head", value}},
              keys.OriginOf({"attention_type"}));
  } else {
    if (groups != heads) draft.Set("/model/groups", groups, keys.OriginOf({"base_num_kv_heads"}));
    draft.Set("/model/head_size", head, keys.OriginOf({"head_dim"}));
  }
  const int64_t window =
      keys.WholeOr({"sliding_window_size", "chunk_attn_window_size"}, 0, kMostMaxTextColumns, 0);
  if (window > 0) {
    draft.Set("/model/window", window, keys.OriginOf({"sliding_window_size"}));
    if (kind.global_every > 0) draft.Set("/model/global_every", kind.global_every);
  }
  for (const char* name : {"use_indexer", "use_sparse_indexer"}) {
    if (keys.BoolOr({name}, false)) keys.Fail({name}, "its sparse attention is not supported");
  }
  if (keys.BoolOr({"use_qk_norm"}, false) && has_gate) {
    draft.Set("/model/head_norms", true, keys.OriginOf({"use_qk_norm"}));
    draft.Remark("use_qk_norm: norms of queries and keys only take time");
  }
  if (keys.WholeOr({"mtp_num_layers"}, 0, 64, 0) > 0)
    draft.Remark("not supported: mtp_num_layers; the layers that predict ahead are left out");
  SetExpertsOfMaxText(keys, draft, columns);
}

// The mesh: each axis is a product of its part in a slice and of that over slices.
struct MaxTextMesh {
  uint64_t data = 1;
  uint64_t shard = 1;
  uint64_t tensor = 1;
  uint64_t context = 1;
  uint64_t expert = 1;
  uint64_t ranks = 1;
  bool splits_sequence = false;  // tensor ranks also share the sequence where they can
};

struct MaxTextAxis {
  const char* name;
  uint64_t MaxTextMesh::*size;
};
constexpr MaxTextAxis kAxes[] = {{"data", &MaxTextMesh::data},
                                 {"fsdp", &MaxTextMesh::shard},
                                 {"fsdp_transpose", &MaxTextMesh::shard},
                                 {"tensor", &MaxTextMesh::tensor},
                                 {"tensor_sequence", &MaxTextMesh::tensor},
                                 {"sequence", &MaxTextMesh::context},
                                 {"context", &MaxTextMesh::context},
                                 {"expert", &MaxTextMesh::expert}};

MaxTextMesh ReadMesh(JobConfig& keys, ScenarioDraft& draft, const std::string& cluster) {
  MaxTextMesh mesh;
  uint64_t product = 1;
  uint64_t MaxTextMesh::*open = nullptr;  // the axis that takes what is left
  bool is_given = false;
  const auto slices = static_cast<uint64_t>(
      std::max<int64_t>(keys.WholeOr({"num_slices"}, -1, kMostDegree, -1), 1));
  for (const char* where : {"ici", "dcn"}) {
    for (const MaxTextAxis& axis : kAxes) {
      const std::string name = fmt::format("{}_{}_parallelism", where, axis.name);
      const bool is_inside = std::string_view(where) == "ici";
      const bool is_usual_rest = std::string_view(axis.name) == (is_inside ? "fsdp" : "data");
      const int64_t usual = is_usual_rest ? -1 : 1;
      const int64_t size = keys.WholeOr({name.c_str()}, -1, kMostDegree, usual);
      if (size == 0) keys.Fail({name.c_str()}, "found 0, expected -1 or at least 1");
      if (size > 1 && std::string_view(axis.name) == "tensor_sequence") mesh.splits_sequence = true;
      if (size > 0) {
        mesh.*axis.size *= static_cast<uint64_t>(size);
        product = std::min(product * static_cast<uint64_t>(size), uint64_t{1} << 40);
        is_given = is_given || size > 1;
      } else if (is_inside) {
        open = axis.size;
      } else if (!is_inside) {
        mesh.*axis.size *= slices;  // -1 is as many as there are: one, unless said
        product = std::min(product * slices, uint64_t{1} << 40);
      }
    }
  }
  for (const char* name : {"ici_pipeline_parallelism", "dcn_pipeline_parallelism"}) {
    if (keys.WholeOr({name}, -1, kMostDegree, 1) != 1)
      keys.Fail({name}, "pipelines of MaxText are not imported; expected 1");
  }
  const ImportedMachine machine = draft.PutOnMachine(
      cluster, open == nullptr && is_given ? std::optional<uint64_t>(product) : std::nullopt,
      {"the product of the mesh", 0}, "--cluster: -1 takes all ranks that are left");
  if (machine.ranks % product != 0 || (open == nullptr && machine.ranks != product)) {
    draft.Fail({}, fmt::format("the mesh of {} does not fit {} ranks ({})", product, machine.ranks,
                               machine.from.name));
  }
  if (open != nullptr) mesh.*open *= machine.ranks / product;
  mesh.ranks = machine.ranks;
  if (machine.spares) draft.Set("/placement", "block");
  return mesh;
}

void SetStepOfMaxText(JobConfig& keys, ScenarioDraft& draft, const MaxTextMesh& mesh) {
  const JobConfig::Names batch_names = {"per_device_batch_size"};
  const double of_device = keys.Has(batch_names) ? keys.At(batch_names).Number(1e-6, 1 << 20) : 12;
  const int64_t passes = keys.WholeOr({"gradient_accumulation_steps"}, 1, 1 << 20, 1);
  const double at_once = of_device * static_cast<double>(mesh.ranks);
  const auto batch = static_cast<uint64_t>(std::llround(at_once));
  if (batch == 0 || std::abs(at_once - static_cast<double>(batch)) > 1e-6 * at_once) {
    draft.Fail(keys.OriginOf(batch_names),
               fmt::format("{} sequences on each of {} devices are no whole number", of_device,
                           mesh.ranks));
  }
  draft.Set("/training/batch", batch * static_cast<uint64_t>(passes), keys.OriginOf(batch_names));
  draft.Set("/training/micro_batches", passes, keys.OriginOf({"gradient_accumulation_steps"}));
  draft.Set("/training/sequence", keys.WholeOr({"max_target_length"}, 1, int64_t{1} << 24, 2048),
            keys.OriginOf({"max_target_length"}));
  const std::string policy = keys.TextOr({"remat_policy"}, "full");
  if (policy.starts_with("minimal")) {
    draft.Set("/training/recomputation", "selective", keys.OriginOf({"remat_policy"}));
    draft.Set("/training/recomputed_ops", {"activations", "norms"});
  } else {
    draft.Set("/training/recomputation", "full", keys.OriginOf({"remat_policy"}));
    if (policy != "full")
      draft.Remark(fmt::format("not supported: remat_policy {}; played as full", policy));
  }
  const std::string narrow = keys.TextOr({"quantization"}, "");
  if (narrow.find("fp8") != std::string::npos) {
    draft.Set("/training/products", "fp8", keys.OriginOf({"quantization"}));
  } else if (!narrow.empty()) {
    draft.Remark(fmt::format("not supported: quantization {}; products have 16 bits", narrow));
  }
  const std::string attention = keys.TextOr({"attention"}, "autoselected");
  if (attention == "dot_product") draft.Set("/training/attention", "unfused");
  const std::string optimizer = keys.TextOr({"opt_type"}, "adamw");
  if (!optimizer.starts_with("adam"))
    draft.Remark(fmt::format("not supported: opt_type {}; played as Adam", optimizer));
}

void SetStrategyOfMaxText(ScenarioDraft& draft, const MaxTextMesh& mesh) {
  draft.Set("/strategy/kind", "combined");
  draft.Set("/strategy/tensor", mesh.tensor);
  if (mesh.tensor > 1) {
    draft.Set("/strategy/sequence_parallel", mesh.splits_sequence);
    draft.Set("/strategy/overlap_all_reduce", false);
  }
  if (mesh.context > 1) draft.Set("/strategy/context", mesh.context);
  // Weights are also spread over the ranks that share the experts.
  draft.Set("/strategy/shard", mesh.shard * mesh.expert);
  if (mesh.data > 1) draft.Set("/strategy/replicas", mesh.data);
  if (mesh.expert > 1) draft.Set("/strategy/expert", mesh.expert);
  draft.Set("/strategy/zero", 3);
}

std::string MaxTextKeysOf(const RunSettings& settings) {
  nlohmann::json keys = nlohmann::json::object();
  for (const RunSetting& setting : settings) {
    keys[setting.name] = nlohmann::json::accept(setting.value)
                             ? nlohmann::json::parse(setting.value)
                             : nlohmann::json(setting.value);
  }
  return keys.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Python's True and 32_000, which YAML 1.2 has not, as YAML has them.
std::string WithoutPython(std::string_view text) {
  std::string result;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string line(text.substr(begin, end - begin));
    begin = end + 1;
    const size_t colon = line.find(": ");
    const size_t first =
        colon == std::string::npos ? colon : line.find_first_not_of(' ', colon + 1);
    if (first != std::string::npos) {
      const size_t last = std::min(line.find_first_of(" #\r", first), line.size());
      std::string value = line.substr(first, last - first);
      if (value == "True" || value == "False")
        value = value == "True" ? "true" : "false";
      else if (value.find_first_not_of("0123456789_") == std::string::npos)
        std::erase(value, '_');
      line.replace(first, last - first, value);
    }
    result += line + "\n";
  }
  return result;
}

// What decides nothing of a step's time, by how it begins: logs, checkpoints, data, the learning
// rate, decoding, tiles of TPU kernels.
constexpr std::string_view kQuietInMaxText[] = {"run_name",
                                                "checkpoint_",
                                                "enable_checkpointing",
                                                "save_",
                                                "async_checkpointing",
                                                "max_num_checkpoints",
                                                "enable_continuous_",
                                                "enable_single_",
                                                "enable_emergency_",
                                                "enable_multi_tier_",
                                                "multi_tier_",
                                                "mtc_",
                                                "local_checkpoint_",
                                                "load_",
                                                "lora_input_",
                                                "force_unroll",
                                                "enable_orbax",
                                                "source_checkpoint_",
                                                "colocated_python_",
                                                "override_",
                                                "debug",
                                                "reuse_example_batch",
                                                "metrics_file",
                                                "gcs_",
                                                "normalization_layer_epsilon",
                                                "constant_bound_",
                                                "quant_cfg_path",
                                                "kv_quant_",
                                                "model_call_mode",
                                                "weight_quantization_",
                                                "act_quantization_",
                                                "bwd_quantization_",
                                                "quantization_local_",
                                                "dropout_rate",
                                                "normalize_embedding_",
                                                "mlp_activations_limit",
                                                "mtp_loss_",
                                                "mtp_eval_",
                                                "load_balance_",
                                                "wi_tile_",
                                                "wo_tile_",
                                                "norm_topk_",
                                                "routed_scaling_",
                                                "routed_bias",
                                                "num_layers_per_pipeline_",
                                                "num_pipeline_",
                                                "pipeline_",
                                                "scan_",
                                                "set_remat_",
                                                "param_scan_axis",
                                                "mla_naive_",
                                                "moba_",
                                                "index_",
                                                "record_internal_",
                                                "base_output_directory",
                                                "jax_",
                                                "hardware",
                                                "mesh_axes",
                                                "data_sharding",
                                                "input_data_sharding_",
                                                "sharding_tolerance",
                                                "tokenize",
                                                "add_bos",
                                                "add_eos",
                                                "use_truncation",
                                                "use_chat_template",
                                                "chat_template",
                                                "expansion_factor_",
                                                "eval_",
                                                "max_corpus_",
                                                "train_",
                                                "packing",
                                                "num_epoch",
                                                "generate_",
                                                "max_segments_",
                                                "per_device_batch_size_start",
                                                "per_device_batch_size_increment",
                                                "global_rampup_",
                                                "dpo_",
                                                "sft_",
                                                "dataset_",
                                                "hf_",
                                                "grain_",
                                                "steps",
                                                "log_",
                                                "skip_",
                                                "learning_rate",
                                                "lr_",
                                                "wsd_",
                                                "warmup_",
                                                "max_prefill_",
                                                "prompt",
                                                "prefill_",
                                                "autoregressive_",
                                                "profile",
                                                "upload_",
                                                "hide_",
                                                "managed_",
                                                "dump_",
                                                "enable_dropout",
                                                "enable_data_",
                                                "data_shuffle_",
                                                "init_weights_",
                                                "gradient_clipping_",
                                                "adam_",
                                                "muon_",
                                                "collect_",
                                                "stack_",
                                                "use_iota_",
                                                "rope_",
                                                "local_rope_",
                                                "max_position_",
                                                "original_max_",
                                                "beta_",
                                                "mscale",
                                                "compiled_",
                                                "compile_topology",
                                                "decode_",
                                                "target_eval_",
                                                "enable_goodput_",
                                                "monitor_",
                                                "goodput_",
                                                "enable_pathways_",
                                                "step_deviation_",
                                                "enable_gcp_",
                                                "report_",
                                                "heartbeat_",
                                                "enable_tensorboard",
                                                "use_vertex_",
                                                "vertex_",
                                                "inference_",
                                                "enable_model_warmup",
                                                "enable_llm_",
                                                "multi_sampling",
                                                "return_log_",
                                                "ar_cache_",
                                                "compute_axis_",
                                                "prometheus_",
                                                "enable_jax_",
                                                "enable_checkpoint_",
                                                "enable_single_controller",
                                                "shardy",
                                                "ragged_",
                                                "sa_",
                                                "cost_estimate_",
                                                "dq_reduction_",
                                                "pagedattn_",
                                                "enable_prefix_",
                                                "prefix_",
                                                "enable_padding_",
                                                "nope_layer_",
                                                "temperature_",
                                                "freeze_",
                                                "dtype_mm",
                                                "remat_policy_for_vit",
                                                "image_",
                                                "video_",
                                                "audio_",
                                                "subslice_",
                                                "enable_nnx",
                                                "gdn_",
                                                "use_qk_norm_in_gdn",
                                                "partial_rotary_",
                                                "vllm_",
                                                "force_q_layout",
                                                "position_id_",
                                                "mrope_",
                                                "max_num_images_",
                                                "sinkhorn_",
                                                "inhomogeneous_",
                                                "base_config",
                                                "attention_bias",
                                                "mlp_bias",
                                                "elastic_",
                                                "use_tokamax_",
                                                "use_jax_splash",
                                                "use_splash_"};

// What would decide something if it were not as MaxText has it (configs/base.yml).
struct MaxTextUsual {
  std::string_view name;
  const char* value;
};
constexpr MaxTextUsual kUsualInMaxText[] = {{"dtype", "\"bfloat16\""},
                                            {"weight_dtype", "\"float32\""},
                                            {"grad_dtype", "\"float32\""},
                                            {"mu_dtype", "\"\""},
                                            {"matmul_precision", "\"default\""},
                                            {"activations_in_float32", "false"},
                                            {"replicate_quant_scale", "false"},
                                            {"quantize_kvcache", "false"},
                                            {"use_qwix_quantization", "false"},
                                            {"use_manual_quantization", "false"},
                                            {"logits_dot_in_fp32", "false"},
                                            {"cast_logits_to_fp32", "true"},
                                            {"float32_qk_product", "false"},
                                            {"float32_logits", "false"},
                                            {"float32_weight_sum", "true"},
                                            {"float32_gate_logits", "false"},
                                            {"megablox", "true"},
                                            {"sparse_matmul", "true"},
                                            {"capacity_factor", "-1"},
                                            {"use_random_routing", "false"},
                                            {"use_custom_sort_vjp", "true"},
                                            {"use_ring_of_experts", "false"},
                                            {"expert_shard_attention_option", "\"fsdp\""},
                                            {"moe_fsdp_use_two_stage_all_gather", "false"},
                                            {"shard_exp_on_fsdp", "false"},
                                            {"use_2d_fsdp_sharding", "false"},
                                            {"n_routing_groups", "-1"},
                                            {"topk_routing_group", "-1"},
                                            {"use_batch_split_schedule", "false"},
                                            {"optimizer_memory_host_offload", "false"},
                                            {"parameter_memory_host_offload", "false"},
                                            {"decoder_layer_input", "\"device\""},
                                            {"context", "\"remat\""},
                                            {"mlpwi", "\"remat\""},
                                            {"mlpwi_0", "\"remat\""},
                                            {"mlpwi_1", "\"remat\""},
                                            {"mlpwo", "\"remat\""},
                                            {"query_proj", "\"remat\""},
                                            {"key_proj", "\"remat\""},
                                            {"value_proj", "\"remat\""},
                                            {"qkv_proj", "\"remat\""},
                                            {"out_proj", "\"remat\""},
                                            {"mla_q", "\"remat\""},
                                            {"mla_kv", "\"remat\""},
                                            {"attention_sink", "false"},
                                            {"attn_logits_soft_cap", "0"},
                                            {"final_logits_soft_cap", "0"},
                                            {"use_post_attn_norm", "false"},
                                            {"use_post_ffw_norm", "false"},
                                            {"moba", "false"},
                                            {"fused_qkv", "false"},
                                            {"fused_mlp", "false"},
                                            {"shard_mode", "\"auto\""},
                                            {"shard_optimizer_over_data", "false"},
                                            {"num_vocab_tiling", "1"},
                                            {"enable_rampup_batch_size", "false"},
                                            {"use_dpo", "false"},
                                            {"use_sft", "false"},
                                            {"use_untrainable_positional_embedding", "false"},
                                            {"trainable_position_size", "-1"},
                                            {"max_checkify", "false"},
                                            {"reshape_q", "false"},
                                            {"custom_mesh", "\"\""},
                                            {"allow_split_physical_axes", "false"},
                                            {"optimize_mesh_for_tpu_v6e", "false"},
                                            {"use_ragged_attention", "false"},
                                            {"use_max_logit_estimate", "-1"},
                                            {"context_parallel_load_balance", "true"},
                                            {"context_parallel_strategy", "\"all_gather\""},
                                            {"use_chunked_prefill", "false"},
                                            {"use_multimodal", "false"},
                                            {"use_audio", "false"},
                                            {"use_audio_in_video", "false"},
                                            {"use_mrope", "false"},
                                            {"mhc_expansion_rate", "0"},
                                            {"dcn_context_autoregressive_parallelism", "1"},
                                            {"ici_context_autoregressive_parallelism", "1"},
                                            {"dcn_tensor_transpose_parallelism", "1"},
                                            {"ici_tensor_transpose_parallelism", "1"},
                                            {"dcn_autoregressive_parallelism", "1"},
                                            {"ici_autoregressive_parallelism", "1"},
                                            // Of the model, read unless it has a name.
                                            {"decoder_block", "\"llama2\""},
                                            {"vocab_size", "32000"},
                                            {"head_dim", "128"},
                                            {"mlp_activations", "[\"silu\",\"linear\"]"},
                                            {"logits_via_embedding", "false"},
                                            {"attention_type", "\"global\""},
                                            {"num_experts", "1"},
                                            {"num_experts_per_tok", "1"},
                                            {"base_moe_mlp_dim", "7168"},
                                            {"shared_experts", "1"},
                                            {"first_num_dense_layers", "0"},
                                            {"interleave_moe_layer_step", "1"},
                                            {"routed_score_func", "\"\""},
                                            {"q_lora_rank", "0"},
                                            {"kv_lora_rank", "512"},
                                            {"qk_nope_head_dim", "128"},
                                            {"qk_rope_head_dim", "64"},
                                            {"v_head_dim", "128"},
                                            {"sliding_window_size", "0"},
                                            {"chunk_attn_window_size", "0"},
                                            {"use_sparse_indexer", "false"},
                                            {"use_qk_norm", "false"},
                                            {"mtp_num_layers", "0"}};

bool DecidesNothingInMaxText(const std::string& key, const nlohmann::json& value) {
  if (value.is_null() || value == "None") return true;
  for (const MaxTextUsual& usual : kUsualInMaxText)
    if (key == usual.name) return value == nlohmann::json::parse(usual.value);
  return key.ends_with("_for_vit") || key.ends_with("_for_audio") ||
         std::any_of(std::begin(kQuietInMaxText), std::end(kQuietInMaxText),
                     [&](std::string_view begin) { return key.starts_with(begin); });
}

}  // namespace

ImportedScenario ImportMaxText(std::string_view text, const std::string& file,
                               const std::string& cluster, const RunSettings& settings) {
  ScenarioDraft draft(file);
  const JsonDocument document = ReadYaml(WithoutPython(text), draft.file());
  const JsonDocument overrides = JsonDocument::FromText(MaxTextKeysOf(settings), "--set");
  if (!document.Root().IsObject())
    document.Root().Expected("settings of MaxText, such as base_emb_dim: 4096");
  JobConfig keys(document.Root(), overrides.Root());
  draft.Set("/software", "maxtext");
  const MaxTextMesh mesh = ReadMesh(keys, draft, cluster);
  SetModelOfMaxText(keys, draft);
  SetStepOfMaxText(keys, draft, mesh);
  SetStrategyOfMaxText(draft, mesh);
  std::vector<std::string> unknown;
  for (const std::string& key : keys.Unread()) {
    const JsonReader& from = overrides.Root().Has(key) ? overrides.Root() : document.Root();
    if (!DecidesNothingInMaxText(key, from.At(key).value())) unknown.push_back(key);
  }
  draft.RemarkOnUnknown(unknown);
  return draft.Finish();
}

}  // namespace rehearse
